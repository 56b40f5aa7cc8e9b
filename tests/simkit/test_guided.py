"""Searching by what runs show: what is deep is found with feedback, and not in as many runs without."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
import trio

import simkit
from simkit.coverage import guided
from simkit.searching import search
from simkit.world import World

MONITORED = sys.version_info >= (3, 12)


@pytest.fixture(autouse=True)
def untraced() -> Iterator[None]:
    """Where edges need the trace function, nobody else has it, though coverage.py may measure the test suite."""
    tracer = sys.gettrace()
    sys.settrace(tracer if MONITORED else None)
    try:
        yield
    finally:
        sys.settrace(tracer)


SECRET = (3, 14, 7, 1, 9, 12)
RUNS = 300


class Deep(Exception):  # noqa: N818  # what is searched for, not an error
    """All conditions were met."""


async def chain(world: World) -> None:
    """Six conditions, each true in one run of sixteen: one run of 16,777,216 meets them all."""
    stream = world.tape.stream("client")
    if stream.choose("byte", 16) == SECRET[0]:  # noqa: SIM102  # a branch for each, as in real programs far apart
        if stream.choose("byte", 16) == SECRET[1]:  # noqa: SIM102
            if stream.choose("byte", 16) == SECRET[2]:  # noqa: SIM102
                if stream.choose("byte", 16) == SECRET[3]:  # noqa: SIM102
                    if stream.choose("byte", 16) == SECRET[4]:  # noqa: SIM102
                        if stream.choose("byte", 16) == SECRET[5]:
                            raise Deep


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_feedback_finds_what_is_deep(seed: int) -> None:
    """A chain of six conditions is found by mutation with feedback in a few hundred runs, not so without, nor by chance."""
    found = guided(chain, seed, RUNS, every=1)
    assert isinstance(found.result.counts.runs, int)
    assert found.result, f"not found in {found.result.counts.runs} runs; the curve: {found.curve}"
    assert isinstance(found.result.error, Deep)
    assert [value for _, value in sorted(found.result.case.departures.items())] == list(SECRET)
    assert not guided(chain, seed, RUNS, every=1, feedback=False).result
    assert not search(chain, "random", runs_max=RUNS, seed=seed)


@pytest.mark.slow
def test_a_guided_search_repeats_itself_and_its_case_replays() -> None:
    """Equal arguments give equal searches, run by run; the case that is found replays to the same digest."""
    one, other = guided(chain, 3, RUNS, every=1), guided(chain, 3, RUNS, every=1)
    assert one.curve == other.curve
    assert (one.result.counts, one.result.case) == (other.result.counts, other.result.case)
    assert simkit.replay(one.result.case, chain).answer == "reproduced"
    assert guided(chain, 4, RUNS, every=1).curve != one.curve


async def ladder(world: World) -> None:
    """Three tasks, nine rungs, and a fall to the ground whenever the wrong task comes next."""
    rung = 0

    def climb(who: str) -> None:
        nonlocal rung
        if rung == 0:
            wanted = "c"
        elif rung == 1:
            wanted = "a"
        elif rung == 2:
            wanted = "b"
        elif rung == 3:
            wanted = "a"
        elif rung == 4:
            wanted = "c"
        elif rung == 5:
            wanted = "b"
        elif rung == 6:
            wanted = "c"
        elif rung == 7:
            wanted = "a"
        elif rung == 8:
            wanted = "b"
        else:
            raise Deep
        rung = rung + 1 if who == wanted else 0

    async def task(who: str) -> None:
        for _ in range(8):
            await trio.lowlevel.checkpoint()
            climb(who)

    async with trio.open_nursery() as nursery:
        for who in "abc":
            nursery.start_soon(task, who)


@pytest.mark.slow
def test_feedback_finds_a_schedule() -> None:
    """Schedules are mutated too: tasks that must come in one order are found to, and not in as many runs without feedback."""
    found = guided(ladder, 3, 2000, every=1)
    assert found.result, f"not found; the curve: {found.curve}"
    assert not guided(ladder, 3, found.result.counts.runs, every=1, feedback=False).result


@pytest.mark.slow
def test_a_search_goes_on_from_the_corpus_of_another() -> None:
    """The tapes of a corpus are run first: what it had come to is there again at once."""
    first = guided(chain, 1, RUNS, every=1)
    assert first.result
    again = guided(chain, 2, RUNS, corpus=first.corpus, every=1)
    assert again.result
    assert again.result.counts.runs <= len(first.corpus)
