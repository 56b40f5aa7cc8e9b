"""Processes that share a campaign's work: what is sent to their group, and what is lost with one of them."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from conformance import events as e
from conformance.campaign import parallel, seeds
from conformance.store import Store
from simkit.errors import SimkitError

#: A member that is struck while it is not yet out of the campaign's group, as `_shielded` lets it start.
STRUCK = """
    import os, signal
    from multiprocessing import get_context
    from conformance.campaign import parallel

    stop, both = get_context("spawn").Event(), {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, both)
    for number in both:
        os.kill(os.getpid(), number)
    parallel._enlist(stop)
    assert not both & signal.pthread_sigmask(signal.SIG_BLOCK, ())
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    print("enlisted")
"""


def test_what_was_sent_to_the_group_does_not_end_a_member_that_just_leaves_it() -> None:
    """It was meant for the campaign, and a member that ended over it would be told as lost."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(STRUCK)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (0, "enlisted\n"), done.stderr


def lost() -> None:
    os._exit(1)


def later(times: int) -> Callable[[], bool]:
    """False so many times, then True."""
    answers = iter([False] * times)
    return lambda: next(answers, True)


def test_a_member_that_is_lost_is_told_unless_the_campaign_is_to_stop() -> None:
    """Interrupted is interrupted: whoever pulls the plug pulls it on every process, and what was judged is still summed up."""

    def tasks() -> Iterator[tuple[Callable[[], None]]]:
        yield from [(lost,)] * 3

    for stopping, told in ((later(1), False), (later(1000), True)):
        with parallel.working(1, stopping) as pool:
            if told:
                with pytest.raises(SimkitError, match="job-lost"):
                    list(pool.do(tasks()))
            else:
                assert list(pool.do(tasks())) == []


def test_a_campaign_that_is_interrupted_twice_says_what_it_had_judged(tmp_path: Path) -> None:
    """Wherever the second interrupt strikes."""
    told: list[e.Event] = []

    def emit(event: e.Event) -> None:
        told.append(event)
        if isinstance(event, e.Progress):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        seeds.run(
            "reference",
            config=None,
            mutant=None,
            seeds=range(3),
            boundaries=False,
            kernel="fast",
            jobs=1,
            store=Store(tmp_path),
            emit=emit,
            stopping=lambda: False,
        )
    assert sum(isinstance(one, e.RunFinished) for one in told) == 1
    assert any(isinstance(one, e.VerdictReached) and one.verdict.exercised for one in told)
