"""Strategies pick, schedules replay, and a replay that cannot says where."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
import trio

from simkit.limits import Limits
from simkit.strategy import (
    Fifo,
    RandomWalk,
    ReplayDivergedError,
    ReplaySchedule,
    Strategy,
    StrategyError,
    TaskView,
    segments,
)
from simkit.tape import Tape
from simkit.world import Outcome, World, run


def walk(seed: int) -> RandomWalk:
    return RandomWalk(Tape.from_seed(seed).stream("schedule"))


async def race(_world: World, tasks: int = 4, steps: int = 3) -> list[int]:
    """Tasks append their number at every step; the order tells the schedule."""
    order: list[int] = []

    async def runner(number: int) -> None:
        for _ in range(steps):
            order.append(number)
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        for number in range(tasks):
            nursery.start_soon(runner, number)
    return order


def raced(strategy: Strategy | None, kernel: str = "fast") -> Outcome[list[int]]:
    return run(race, tape=Tape.from_seed(0), strategy=strategy, kernel=kernel)  # type: ignore[arg-type]


def test_fifo_takes_turns() -> None:
    """First come, first served: every task in turn; also what no strategy means."""
    assert raced(Fifo()).unwrap() == [0, 1, 2, 3] * 3
    assert raced(Fifo()).digest == raced(None).digest


def test_random_walks_differ_by_seed_only() -> None:
    """The same seed walks the same way, twenty seeds walk twenty ways."""
    assert raced(walk(3)).digest == raced(walk(3)).digest
    assert len({tuple(raced(walk(seed)).unwrap()) for seed in range(20)}) == 20


def test_a_random_walk_finds_a_lost_update() -> None:
    """One pre-emption in the wrong place loses an update; among thirty random schedules both ends are met."""

    async def update(_world: World) -> int:
        value = 0

        async def increment() -> None:
            nonlocal value
            seen = value
            await trio.lowlevel.checkpoint()
            value = seen + 1

        async with trio.open_nursery() as nursery:
            nursery.start_soon(increment)
            nursery.start_soon(increment)
        return value

    found = {run(update, tape=Tape.from_seed(0), strategy=walk(seed)).unwrap() for seed in range(30)}
    assert found == {1, 2}


@pytest.mark.parametrize("kernel", ["fast", "fallback"])
@pytest.mark.parametrize("seed", range(5))
def test_a_schedule_replays(seed: int, kernel: str) -> None:
    """The recorded segments give the same order and the same digest, on either kernel."""
    recorded = raced(walk(seed))
    again = raced(ReplaySchedule(recorded.schedule), kernel)
    assert again.error is None
    assert (again.value, again.digest) == (recorded.value, recorded.digest)


def test_segments_join_steps_in_a_row() -> None:
    """A schedule is run-length encoded."""
    assert segments([1, 1, 2, 1]) == ((1, 2), (2, 1), (1, 1))
    assert segments([]) == ()


def test_divergence_names_event_expected_and_got() -> None:
    """A schedule of another program stops at the first step that cannot be taken, and tells who was recorded and who could."""
    recorded = raced(walk(1))

    async def smaller(world: World) -> list[int]:
        return await race(world, tasks=2)

    again = run(smaller, tape=Tape.from_seed(0), strategy=ReplaySchedule(recorded.schedule))
    assert isinstance(again.error, ReplayDivergedError)
    assert again.error.event == again.steps
    assert again.error.expected.startswith("a step of task ")
    assert "runnable: " in again.error.got
    assert f"diverged at step {again.error.event}" in str(again.error)


def test_a_longer_and_a_shorter_run_diverge() -> None:
    """Ending early and going on beyond the record are divergences, also on the fallback kernel."""
    recorded = raced(None)
    for kernel in ("fast", "fallback"):
        longer = raced(ReplaySchedule(recorded.schedule[:-2]), kernel).error
        assert isinstance(longer, ReplayDivergedError)
        assert longer.expected == "the end of the run"
        shorter = raced(ReplaySchedule((*recorded.schedule, (1, 3))), kernel).error
        assert isinstance(shorter, ReplayDivergedError)
        assert (shorter.expected, shorter.got) == ("3 more steps", "the end of the run")


def test_a_prefix_can_hand_over() -> None:
    """With `then`, the recorded steps are only the beginning."""
    recorded = raced(walk(2))
    again = raced(ReplaySchedule(recorded.schedule[:5], then=Fifo()))
    assert again.error is None
    assert again.schedule[:4] == recorded.schedule[:4]


def test_divergence_survives_pickling() -> None:
    """A worker process can send it home."""
    error = ReplayDivergedError.at(5, "a step of task 3", "the end of the run")
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.event, copy.expected, copy.got, str(copy)) == (5, error.expected, error.got, str(error))


def test_a_strategy_sees_numbers_names_and_processes() -> None:
    """A strategy written by a user gets views, and may pick by them."""
    seen: list[TaskView] = []

    class LastFirst:
        def pick(self, runnable: list[TaskView], step: int) -> int:
            seen.extend(runnable)
            return len(runnable) - 1

    async def main(world: World) -> None:
        world.host("h").start(trio.sleep, 0)
        await trio.sleep(0)
        await trio.sleep(1)

    run(main, tape=Tape.from_seed(0), strategy=LastFirst()).unwrap()  # type: ignore[arg-type]
    assert {(view.number, view.process) for view in seen} >= {(1, None), (2, "h/main#101")}


NONSENSE: list[tuple[object, str]] = [
    (9, "picked 9"),
    (-1, "picked -1"),
    (None, "picked None, which is no int"),
    ("0", "picked '0', which is no int"),
    (0.0, "picked 0.0, which is no int"),
    (True, "picked True, which is no int"),
    (ZeroDivisionError("oh"), "raised ZeroDivisionError: oh"),
    (StopIteration(), "raised StopIteration"),
]


@pytest.mark.parametrize("kernel", ["fast", "fallback"])
@pytest.mark.parametrize("method", ["pick", "index"])
@pytest.mark.parametrize(("nonsense", "told"), NONSENSE, ids=lambda value: str(value).replace(" ", "-") or "nothing")
def test_a_strategy_that_talks_nonsense_is_named(nonsense: object, told: str, method: str, kernel: str) -> None:
    """The run ends with an error that names strategy, step and what was expected; the next run is none the worse."""

    class Wrong:
        def pick(self, _runnable: object, step: int) -> Any:
            if step < 2:
                return 0
            if isinstance(nonsense, Exception):
                raise nonsense
            return nonsense

    strategy = Wrong() if method == "pick" else type("Wrong", (Wrong,), {"index": Wrong.pick})()
    error = raced(strategy, kernel).error
    assert isinstance(error, StrategyError)
    assert told in error.problem.what
    assert error.problem.what.startswith("the strategy ")
    assert "Wrong" in error.problem.what
    assert error.problem.where == "step 2 of the schedule"
    assert error.problem.expected.startswith("the index of ")
    assert raced(Fifo(), kernel).error is None


@pytest.mark.slow
@pytest.mark.parametrize("method", ["pick", "index"])
def test_a_strategy_that_comes_to_no_end_is_named(method: str) -> None:
    """The watchdog gets it out, and it is the strategy that is blamed, not the program; the next run is none the worse."""

    class Endless:
        def pick(self, _runnable: object, step: int) -> int:
            while step > 1:
                pass
            return 0

    strategy = Endless() if method == "pick" else type("Endless", (Endless,), {"index": Endless.pick})()
    error = run(race, tape=Tape.from_seed(0), strategy=strategy, limits=Limits(step_s=0.5)).error
    assert isinstance(error, StrategyError)
    assert "Endless came to no end" in error.problem.what
    assert error.problem.where == "step 2 of the schedule"
    assert raced(Fifo()).error is None
