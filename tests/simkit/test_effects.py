"""Effects: what steps declare, when two depend on each other, and what a strategy sees of a task that waits."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from simkit import Tape, World, run, step, touch
from simkit.effects import EVERYTHING, Effect, dependent, footprint
from simkit.strategy import TaskView


@pytest.mark.parametrize(
    ("one", "other", "matters"),
    [
        (footprint("read", "x"), footprint("read", "x"), False),
        (footprint("read", "x"), footprint("write", "x"), True),
        (footprint("write", "x"), footprint("write", "y"), False),
        (footprint("local", ""), footprint("local", ""), False),
        (footprint("spin", ""), EVERYTHING, True),
        (footprint("acquire", "x"), footprint("release", "x"), True),
        ((), EVERYTHING, True),
        ((), (), False),
        ((Effect("read", "x"), Effect("write", "y")), footprint("read", "y"), True),
    ],
)
def test_dependence(one: tuple[Effect, ...], other: tuple[Effect, ...], matters: bool) -> None:
    """Steps depend on each other when one writes what the other touches, in either order of asking."""
    assert dependent(one, other) is matters
    assert dependent(other, one) is matters


def test_a_wrong_kind_is_refused() -> None:
    """A misspelt effect would silently race with nothing."""
    with pytest.raises(ValueError, match="not 'wriet'"):
        footprint("wriet", "x")  # type: ignore[arg-type]


def test_outside_a_simulation_steps_are_checkpoints() -> None:
    """A program keeps its declarations in production: they cost a checkpoint and mean nothing."""

    async def program() -> int:
        touch("write", "x")
        await step("read", "x")
        return 7

    assert trio.run(program) == 7


def test_a_cancelled_step_may_touch_anything() -> None:
    """A task that was cancelled will not do what it declared, and a strategy is told so."""
    seen: list[Any] = []

    class Looking:
        every_step = True

        def pick(self, runnable: list[TaskView], step: int) -> int:
            seen.extend(task.peek.pending() for task in runnable if task.peek is not None)
            return 0

    async def program(_world: World) -> str:
        with trio.CancelScope() as scope:
            scope.cancel()
            await step("read", "x")
            return "went on"
        return "cancelled"

    assert run(program, tape=Tape.from_seed(0), strategy=Looking()).value == "cancelled"  # type: ignore[arg-type]
    assert EVERYTHING in seen


def test_a_strategy_sees_footprints_and_places() -> None:
    """What a waiting task declared, and its innermost lines in the program, the kit's and trio's own left out."""
    seen: dict[Any, str] = {}

    class Looking:
        every_step = True

        def pick(self, runnable: list[TaskView], step: int) -> int:
            for task in runnable:
                assert task.peek is not None
                seen[task.peek.pending()] = task.peek.site()
            return 0

    async def helper() -> None:
        await step("update", "x")

    async def program(_world: World) -> None:
        await helper()

    run(program, tape=Tape.from_seed(0), strategy=Looking()).unwrap()  # type: ignore[arg-type]
    place = seen[footprint("update", "x")]
    assert "program:" in place
    assert "helper:" in place
    assert "step" not in place.replace("test_a_strategy", "")
