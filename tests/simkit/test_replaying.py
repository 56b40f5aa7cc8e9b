"""Replays: the four answers, the event where a run parts from its case, and a run looked at on the way."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any

import attrs
import pytest
import trio

from simkit import (
    Case,
    Found,
    Outcome,
    RandomWalk,
    SimkitError,
    Tape,
    World,
    campaign,
    current_process,
    replay,
    replay_until,
    run,
    search,
)
from simkit.ladder import RUNGS_MAX, Ladder
from simkit.replaying import Moment
from simkit.trace import Trace


class Settings:
    """What a later version of the program may do otherwise."""

    size = 3
    naps = 0
    raises: type[BaseException] | None = ValueError
    walk = 0


@pytest.fixture(autouse=True)
def settings() -> type[Settings]:
    for name, value in {"size": 3, "naps": 0, "raises": ValueError, "walk": 0}.items():
        setattr(Settings, name, value)
    return Settings


async def server() -> None:
    with open("/data/log", "w") as file:  # noqa: PTH123, ASYNC230  # of the simulated disk
        file.write("x" * Settings.size)
    for _ in range(20):
        await trio.sleep(0.01)
    await trio.serve_tcp(_echo, 80)


async def _echo(stream: trio.SocketStream) -> None:
    async for data in stream:
        await stream.send_all(data)


async def program(world: World) -> None:
    """A server with a disk, a client, and a failure that one choice in three brings."""
    process = world.host("server").start(server, name="server")
    for _ in range(20):
        await world.sleep_ns(20_000_000)
    async with await trio.open_tcp_stream("server", 80) as stream:
        await stream.send_all(b"hello")
        assert await stream.receive_some() == b"hello"
        for _ in range(Settings.naps):
            await world.sleep_ns(1)
        if world.tape.stream("work").choose("luck", 3) == 2 and Settings.raises is not None:
            raise Settings.raises("bad luck")
    await world.sleep_ns(1_000_000)
    assert process.alive


@pytest.fixture(scope="module")
def case() -> Case:
    Settings.size, Settings.naps, Settings.raises = 3, 0, ValueError
    found = search(program, "random")
    assert isinstance(found, Found)
    assert found.case.ladder is not None
    assert found.case.ladder.events > RUNGS_MAX
    return found.case


# ---- answers


def test_a_case_is_reproduced(case: Case) -> None:
    """The same failure, with the same digest."""
    again = replay(case, program)
    assert (again.answer, again.failures, again.divergence) == ("reproduced", ("ValueError",), None)
    assert again.digest == case.digest
    assert case.digest in str(again)


def test_a_mended_program_is_fixed(case: Case) -> None:
    """It takes the same way until the recorded run ended by its failure, and then goes on."""
    Settings.raises = None
    again = replay(case, program)
    assert (again.answer, again.failures, again.divergence) == ("fixed", (), None)
    assert again.outcome.steps > sum(steps for _, steps in case.schedule) - 2


def test_another_failure_at_the_end_is_another_failure(case: Case) -> None:
    """The way there was the same."""
    Settings.raises = KeyError
    again = replay(case, program)
    assert (again.answer, again.failures) == ("different failure", ("KeyError",))


def test_what_the_case_promises_can_be_told(case: Case) -> None:
    """By whoever knows better than the type of an exception."""

    def judge(outcome: Outcome[Any]) -> Sequence[str]:
        return ("unlucky",) if outcome.error is not None else ()

    assert replay(case, program, judge=judge).answer == "different failure"
    assert replay(case, program, judge=judge, wanted="unlucky").answer == "reproduced"


# ---- divergences


def test_a_divergence_in_what_is_told_is_named(case: Case) -> None:
    """Every step can be taken, but a write is of another size: the ladder names a few events, that write among them."""
    right = first_write(run_again(case))
    Settings.size = 4
    again = replay(case, program)
    assert again.answer == "diverged"
    assert again.divergence is not None
    assert again.divergence.first <= right <= again.divergence.last
    assert again.divergence.last - again.divergence.first <= len(run_again(case)) // RUNGS_MAX + 1
    assert "write /data/log 0 4" in str(again.divergence)
    assert again.failures == ("ValueError",)


def test_a_divergence_in_the_schedule_is_known_to_the_event(case: Case) -> None:
    """A recorded task that is not there: the replay says where, and what it gives all the same."""
    at = len(case.schedule) // 2
    other = (77, case.schedule[at][1])
    again = replay(attrs.evolve(case, schedule=(*case.schedule[:at], other, *case.schedule[at + 1 :])), program)
    assert again.answer == "diverged"
    assert again.divergence is not None
    assert again.divergence.exact
    steps = [event.index for event in run_again(case).events() if event.kind == "step"]
    assert again.divergence.last == steps[sum(count for _, count in case.schedule[:at])]
    assert "a step of task 77" in str(again.divergence)
    assert "followed as far as it fits: ValueError" in str(again)


def test_the_first_difference_is_named_not_the_last(case: Case) -> None:
    """A task that naps cannot follow in the end; the clock that it moves is what differs first."""
    recorded = [event.now_ns for event in run_again(case).events()]
    Settings.naps = 2
    again = replay(case, program)
    assert again.answer == "diverged"
    assert again.divergence is not None
    assert again.divergence.last < len(recorded)
    assert any(event.kind == "clock" and event.now_ns not in recorded for event in again.divergence.replayed)
    assert "followed as far as event" in str(again.divergence)


@pytest.mark.parametrize("what", ["digest", "ladder"])
def test_an_old_case_diverges_somewhere(case: Case, what: str) -> None:
    """Without a ladder, or with another digest beside it, no event is named, and none is made up."""
    if what == "digest":
        again = replay(attrs.evolve(case, digest="0" * 32), program)
    else:
        Settings.size = 4
        again = replay(attrs.evolve(case, ladder=None), program)
    assert again.answer == "diverged"
    assert again.divergence is None


def test_a_program_that_does_not_repeat_itself_is_told(case: Case) -> None:
    """A second replay differs from the first: the event is known, and that the case is not to blame."""
    Settings.size = 4

    async def unsteady(world: World) -> None:
        Settings.size += 1
        await program(world)

    again = replay(case, unsteady)
    assert again.divergence is not None
    assert again.divergence.exact
    assert "does not repeat itself" in str(again.divergence)


def run_again(case: Case) -> Trace:
    sink = io.StringIO()
    return replay(case, program, trace_sink=sink).outcome.trace


def first_write(trace: Trace) -> int:
    return next(event.index for event in trace.events() if event.kind == "boundary" and " write " in event.detail)


# ---- the ladder


def trace_of(texts: Sequence[str]) -> Trace:
    trace = Trace()
    for text in texts:
        trace.record(text)
    return trace


@pytest.mark.parametrize("events", [0, 1, 2, 63, 64, 65, 1000])
def test_a_ladder_bounds_every_difference(events: int) -> None:
    """Wherever one event differs, is missing or comes on top, it lies in the window; equal traces have none."""
    texts = [f"event {number}" for number in range(events)]
    ladder = Ladder.of(trace_of(texts))
    assert ladder.window(trace_of(texts)) is None
    assert len(ladder.rungs) <= RUNGS_MAX * 8
    assert ladder.window(trace_of([*texts, "more"])) == (events, events)
    for at in range(0, events, max(1, events // 10)):
        for other in (
            [*texts[:at], "other", *texts[at + 1 :]],
            [*texts[:at], *texts[at + 1 :]],
            [*texts[:at], "other", *texts[at:]],
        ):
            window = ladder.window(trace_of(other))
            assert window is not None
            assert window[0] <= at <= window[1]
            assert window[1] - window[0] <= events // RUNGS_MAX + 1
            assert ladder.agrees(trace_of(other), window[0])
            assert not ladder.agrees(trace_of(other), events + 1)


def test_every_kind_of_case_has_a_ladder() -> None:
    """Those of a search and those of a campaign."""
    found = search(program, "random")
    assert isinstance(found, Found)
    (failure, *_) = campaign(program, 20).failures
    for case in (found.case, failure.case):
        assert case.ladder == Ladder.of(replay(case, program).outcome.trace)


# ---- looked at on the way


def test_the_trace_is_written_as_json_lines(case: Case) -> None:
    """Every event of the replay, numbered as everywhere else."""
    sink = io.StringIO()
    again = replay(case, program, trace_sink=sink)
    lines = [json.loads(line) for line in sink.getvalue().splitlines()]
    assert lines == [attrs.asdict(event) for event in again.outcome.trace.events()]


def test_a_standstill_shows_where_everything_stands(case: Case) -> None:
    """Before a step of main, in the middle of the exchange: tasks with their frames, hosts, files and the connection."""
    trace = run_again(case)
    event = max(one.index for one in trace.events() if one.kind == "step" and one.detail.startswith("task 1 "))
    standing = replay_until(case, program, event)
    assert (standing.event, standing.now_ns) == (event, next(trace.events(event)).now_ns)
    tasks = {task.name: task for task in standing.tasks}
    assert tasks["main"].state == "next"
    assert tasks["main"].stack[-1].endswith("in program")
    echo = tasks["_run_handler"]
    assert (echo.process, echo.state) == ("server/server#101", "waiting")
    assert echo.stack[-1].endswith("in _echo")
    (host,) = [host for host in standing.hosts if host.name == "server"]
    assert host.processes == ("server/server#101",)
    assert [(file.path, file.size, file.pending > 0) for file in host.files] == [("/data/log", 3, True)]
    assert len(standing.connections) == 1
    text = str(standing)
    assert all(word in text for word in (f"before event {event}", "/data/log  3 bytes", "outside", "in _echo"))


def test_an_event_inside_a_step_stops_before_that_step(case: Case) -> None:
    """The write is told in the first step of the server; a move of the clock comes before the step that follows. Why the run
    does not stop where it was asked to is said.
    """
    trace = run_again(case)
    write = first_write(trace)
    step = max(event.index for event in trace.events() if event.kind == "step" and event.index < write)
    inside = replay_until(case, program, write)
    assert inside.event == step
    assert (
        inside.sections()[f"event {write}"]
        == f"it lies within the step that begins at event {step}; a replay stops only before a step"
    )
    assert f"event {write}\n  it lies within" in str(inside)
    assert not any(title.startswith("event") for title in replay_until(case, program, step).sections())
    clock = next(event.index for event in trace.events() if event.kind == "clock")
    between = replay_until(case, program, clock)
    assert between.event > clock
    assert f"of which the next begins at event {between.event};" in between.sections()[f"event {clock}"]


@pytest.mark.parametrize("event", [-1, 10_000])
def test_an_event_that_is_not_there_is_told(case: Case, event: int) -> None:
    """With how many there are."""
    assert case.ladder is not None
    with pytest.raises(SimkitError, match=f"the replay has {case.ladder.events} events") as caught:
        replay_until(case, program, event)
    assert caught.value.problem.code == "event-unknown"


def test_a_call_back_comes_right_before_the_step(case: Case) -> None:
    """In the run itself, which goes on, and is the same run."""
    seen: list[tuple[int, str]] = []
    trace = run_again(case)
    event = [one.index for one in trace.events() if one.kind == "step"][-3]

    def look(moment: Moment) -> None:
        assert current_process() is None
        seen.append((len(moment.world.trace), moment.task.name))

    again = replay(case, program, before=(event, look))
    assert seen == [(event, next(trace.events(event)).detail.split(" ", 2)[2])]
    assert again.answer == "reproduced"


def test_real_processes_have_no_events() -> None:
    """Their cases are refused, with the reason."""
    case = Case("process", {"target": "naive"}, {"name": "tour/undisturbed"})
    with pytest.raises(SimkitError, match="keep their own time"):
        replay_until(case, program, 0)


def test_both_kernels_stand_still_alike(case: Case) -> None:
    """The same picture from either."""
    fast, fallback = (replay_until(case, program, 50, kernel=kernel) for kernel in ("fast", "fallback"))  # type: ignore[arg-type]
    assert fast == fallback


def test_a_drawn_run_is_replayed_too() -> None:
    """A run drawn from a seed, made a case by hand."""
    tape = Tape.from_seed(5)
    drawn = run(program, tape=tape, strategy=RandomWalk(tape.stream("walk")))
    case = Case("simulated", {}, {}, 5, departures=drawn.departures, schedule=drawn.schedule, digest=drawn.digest)
    assert replay(case, program).answer in {"fixed", "different failure"}
