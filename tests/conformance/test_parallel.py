"""Processes that share a campaign's work: what is sent to their group, and what is lost with one of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from conformance import events as e
from conformance import targets
from conformance.campaign import parallel, seeds
from conformance.campaign.docket import Docket, origin_of
from conformance.campaign.judged import Judged
from conformance.order import Order
from conformance.store import Store
from scenarios.verdict import Finding, Violation
from simkit.case import Case
from simkit.errors import SimkitError
from tests.report_samples import history

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
        seeds.run(Order("reference"), range(3), jobs=1, store=Store(tmp_path), emit=emit, stopping=lambda: False)
    assert sum(isinstance(one, e.RunFinished) for one in told) == 1
    assert any(isinstance(one, e.VerdictReached) and one.verdict.exercised for one in told)


def test_results_that_wait_for_their_turn_outlive_an_interrupt() -> None:
    """Whoever interrupts a long task loses that one, and none of those that were done beside it."""
    pools: list[parallel.Pool] = []

    def stopping() -> bool:
        later = pools[0]._waiting[1:] if pools else []
        if len(later) == 2 and all(one.done() for one in later):
            raise KeyboardInterrupt
        return False

    def interrupted(pool: parallel.Pool) -> None:
        pools.append(pool)
        try:
            next(pool.do(iter([(signal.pause,), (abs, -1), (abs, -2)])))
        except KeyboardInterrupt:
            assert list(pool.finished()) == [1, 2]
            assert list(pool.finished()) == []
            raise

    with pytest.raises(KeyboardInterrupt), parallel.working(2, stopping) as working:
        interrupted(working)


class Interrupted:
    """A pool whose owner is interrupted when he has been given one result, and three are there."""

    def do(self, tasks: Iterator[tuple[Any, ...]], _ahead: int) -> Iterator[Any]:
        self.tasks = tasks
        yield self._next()
        raise KeyboardInterrupt

    def finished(self) -> Iterator[Any]:
        yield from (self._next() for _ in range(2))

    def _next(self) -> Any:
        function, *arguments = next(self.tasks)
        return function(*arguments)


def test_each_seed_is_told_by_itself_and_none_that_is_judged_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many processes work: the first one is told when one is judged, and an interrupt costs what is not."""
    told: list[e.Event] = []

    @contextmanager
    def working(_processes: int, _stopping: Callable[[], bool]) -> Iterator[Interrupted]:
        yield Interrupted()

    monkeypatch.setattr(parallel, "working", working)
    with pytest.raises(KeyboardInterrupt):
        seeds.run(
            Order("reference"), range(100), jobs=2, store=Store(tmp_path), emit=told.append, stopping=lambda: False
        )
    assert [one.seed for one in told if isinstance(one, e.RunFinished)] == [0, 1, 2]
    assert any(isinstance(one, e.VerdictReached) and one.verdict.exercised for one in told)


def test_a_failure_that_is_interrupted_while_it_is_made_small_is_kept_as_it_was_found(tmp_path: Path) -> None:
    """It has been seen; only the small form of it has not."""
    told: list[e.Event] = []
    target = targets.parse("naive")

    def shrinks(_judged: Judged, _kind: str) -> None:
        raise KeyboardInterrupt

    docket = Docket(target, origin_of(target, "process"), Store(tmp_path), told.append, shrinks=shrinks)
    finding = Finding(1, (Violation("recomputed", "It was made anew.", (1,)),))
    case = Case("process", {"target": "naive"}, {"name": "seed/7"}, 7)
    with pytest.raises(KeyboardInterrupt):
        docket.add(Judged("seed/7", 7, {"DUR-3": finding}, history=history(), case=case))
    (finished,) = [one for one in told if isinstance(one, e.RunFinished)]
    (found,) = [one for one in told if isinstance(one, e.ViolationFound)]
    assert finished.case_id == found.case_id is not None
    assert Store(tmp_path).load_case(found.case_id).seed == 7
