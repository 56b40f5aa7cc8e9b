"""The debugger before a step: opened in the frames and the context of the task, in the real world; not without a terminal."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from simkit import Case, Found, SimkitError, World, current_process, replay, search
from simkit.debugging import TaskDebugger, check_debugger, debug
from simkit.replaying import Moment


async def nap(world: World) -> int:
    length = 7
    await world.sleep_ns(length)
    length += 1
    return length


async def worker(world: World) -> None:
    await nap(world)


async def program(world: World) -> None:
    process = world.host("machine").start(worker, world, name="worker")
    await process.wait()
    await world.sleep_ns(1)
    raise ValueError("always")


@pytest.fixture(scope="module")
def case() -> Case:
    found = search(program, "fifo")
    assert isinstance(found, Found)
    return found.case


@pytest.fixture(scope="module")
def awake(case: Case) -> int:
    """The event at which the worker goes on after its nap."""
    trace = replay(case, program).outcome.trace
    return [event.index for event in trace.events() if event.kind == "step" and "worker" in event.detail][-1]


def typed(case: Case, event: int, *commands: str) -> tuple[Any, str]:
    """What a replay gives, and what the debugger printed, when somebody types these commands."""
    out = io.StringIO()
    keyboard = io.StringIO("".join(f"{command}\n" for command in commands))

    def hold(moment: Moment) -> None:
        moment.task.context.run(TaskDebugger(stdin=keyboard, stdout=out, readrc=False).hold, moment)

    return replay(case, program, before=(event, hold)), out.getvalue()


@pytest.fixture(autouse=True)
def _tracing() -> Any:
    before = sys.gettrace()
    yield
    sys.settrace(before)


def test_the_task_is_seen_before_its_step(case: Case, awake: int) -> None:
    """Its innermost frame of the program with its variables, and by `up` the one that called it."""
    again, told = typed(case, awake, "p length", "up", "p world.now_ns", "continue")
    assert again.answer == "reproduced"
    assert f"before event {awake}" in told
    assert "test_debugging.py" in told
    assert "nap()" in told
    assert "worker()" in told
    assert "(Pdb) 7" in told


def test_next_goes_on_in_the_step_itself(case: Case, awake: int) -> None:
    """The line after the await is the first to stop at, and what it does is seen."""
    again, told = typed(case, awake, "next", "next", "p length", "continue")
    assert "-> length += 1" in told
    assert "-> return length" in told
    assert "(Pdb) 8" in told
    assert again.answer == "reproduced"
    assert again.digest == case.digest


def test_a_task_that_has_not_begun_stops_at_its_first_line(case: Case) -> None:
    """Of the program, not of the kit's supervisor around it, and one can step on; no tracer is left behind."""
    events = list(replay(case, program).outcome.trace.events())
    begins = next(event.index for event in events if event.kind == "step" and "worker" in event.detail)
    tracer = sys.gettrace()
    again, told = typed(case, begins, "p world", "step", "step", "next", "p length", "continue")
    assert sys.gettrace() is tracer
    stops = re.findall(r"test_debugging\.py\(\d+\)(\w+)\(\)", told)
    assert stops == ["worker", "nap", "nap", "nap"], told
    assert "process.py" not in told
    assert "(Pdb) 7" in told
    assert again.answer == "reproduced"


@pytest.mark.parametrize("commands", [["quit"], ["next", "quit"]])
def test_to_quit_ends_the_replay(case: Case, awake: int, commands: list[str]) -> None:
    """Nothing runs on behind the user's back, and nothing is made of it."""
    again, _ = typed(case, awake, *commands)
    assert (again.answer, again.failures) == ("stopped", ())
    assert again.outcome.steps < sum(steps for _, steps in case.schedule)


def test_another_debugger_is_called_in_the_context_of_the_task(
    case: Case, awake: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may read files of the real world meanwhile, and finds the task among the variables of who calls it."""
    seen: list[object] = []

    def hook() -> None:
        caller = sys._getframe(1)
        process = current_process()
        seen.extend([process and process.label, caller.f_locals["task"].name, Path(__file__).read_text()[:3]])

    monkeypatch.setattr(sys, "breakpointhook", hook)
    assert replay(case, program, before=(awake, debug)).answer == "reproduced"
    assert seen == ["machine/worker#101", "machine/worker#101", '"""']


def test_pythonbreakpoint_is_honoured(case: Case, awake: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As Python itself does; 0 stands for none."""
    monkeypatch.setattr(sys, "breakpointhook", sys.__breakpointhook__)
    monkeypatch.setenv("PYTHONBREAKPOINT", "0")
    assert replay(case, program, before=(awake, debug)).answer == "reproduced"
    monkeypatch.setenv("PYTHONBREAKPOINT", f"{__name__}.called")
    calls.clear()
    replay(case, program, before=(awake, debug))
    assert calls == ["called"]


calls: list[str] = []


def called() -> None:
    calls.append("called")


def test_without_a_terminal_it_is_refused() -> None:
    """Unless another debugger was named, which may need none."""
    with pytest.raises(SimkitError, match="no terminal") as caught:
        check_debugger({}, terminal=False)
    assert caught.value.problem.code == "no-terminal"
    check_debugger({"PYTHONBREAKPOINT": "remote.set_trace"}, terminal=False)
    check_debugger({}, terminal=True)
