"""Replay: run a case again, and say what became of it: reproduced, fixed, a different failure, or diverged at an event.

`replay` gives the answer; on the way it can write the trace, and call back right before one step (a debugger, say).
`replay_until` stops there and returns the picture of the run at a standstill.

A case holds no trace, only its digest and a ladder of digests. Where the schedule itself cannot be followed, the event is
known; where only digests differ, the ladder bounds it, and a second run on this machine finds it when the program does not
even repeat itself.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import attrs

from simkit._options import need_program
from simkit.case import Case
from simkit.divergence import Divergence, by_digest, by_schedule
from simkit.errors import ExitCode, Problem, SimkitError, wrong
from simkit.shrinking import LooseSchedule
from simkit.standstill import Standstill
from simkit.stepwise import Moment, Stop, Stopping, step_of
from simkit.strategy import ReplayDivergedError, ReplaySchedule, Segment, Strategy, StrategyError
from simkit.testing import raised_in
from simkit.trace import Sink
from simkit.world import KernelName, Limits, Outcome, World, run

__all__ = ["Answer", "Divergence", "Moment", "Replayed", "Standstill", "Stop", "replay", "replay_until"]

Program = Callable[[World], Awaitable[Any]]
#: Names what a run shows that it should not, in the words of `case.expect["anomaly"]`; nothing for a run that passes.
Judge = Callable[[Outcome[Any]], Sequence[str]]
#: "stopped": a call-back ended the replay on its way, so that nothing is known.
Answer = Literal["reproduced", "fixed", "different failure", "diverged", "stopped"]
_MAIN = 1
_LIMITS = Limits()


def what_is_raised(outcome: Outcome[Any]) -> Sequence[str]:
    """The type of what main raised, as in the cases of `search` and of `campaign`; of a run that met a bound, that."""
    if outcome.bound is not None:
        return (f"bound on {outcome.bound}",)
    return () if outcome.error is None else (type(outcome.error).__name__,)


def _first_raised(outcome: Outcome[Any]) -> Sequence[str]:
    """As `what_is_raised`, of a campaign in which no process may fail: that of the first process that did, before main's."""
    error = raised_in(outcome, processes_may_fail=False)
    return what_is_raised(outcome) if error is None else (type(error).__name__,)


@attrs.frozen
class Replayed:
    """What became of a case."""

    case: Case
    answer: Answer
    outcome: Outcome[Any] = attrs.field(repr=False)
    failures: tuple[str, ...]  # what it shows now; for a run that diverged, followed as far as it fits
    divergence: Divergence | None = None

    @property
    def digest(self) -> str:
        """The digest of the replay's trace."""
        return self.outcome.digest

    @property
    def error(self) -> BaseException | None:
        """What main raised in the replay."""
        return self.outcome.error

    def __str__(self) -> str:
        words = f"case {self.case.id}{f' ({self.case.altered})' if self.case.altered else ''}: {self.answer}"
        shown = ", ".join(self.failures) or "nothing fails"
        match self.answer:
            case "reproduced":
                return f"{words}, {shown}, with the same digest {self.digest}"
            case "diverged":
                where = self.divergence or "where the case keeps no event: its digest is another"
                return f"{words} {where}; followed as far as it fits: {shown}"
        return words if self.answer in {"fixed", "stopped"} else f"{words}: {shown}"


def replay(
    case: Case | Path | str,
    program: Program,
    *,
    judge: Judge | None = None,
    wanted: str | None = None,
    kernel: KernelName = "fast",
    guard: bool = True,
    limits: Limits | None = None,
    trace_sink: Sink | None = None,
    before: tuple[int, Callable[[Moment], object]] | None = None,
) -> Replayed:
    """Run a case again: the same choices, the same schedule.

    Args:
        case: of the simulated world, with the program that it was found in; or the path of its file.
        program: what is run, as for `simkit.run`.
        judge: what a run shows that it should not; default: the type of what main raised, or a process that may not fail.
        wanted: which of these the case promises; default: `case.expect["anomaly"]`.
        kernel: as for `run`.
        guard: as for `run`.
        limits: as for `run`; a changed program may run away. Default: those that the case names, if it does.
        trace_sink: an open text file that gets every event of the replay as JSON lines, as it goes.
        before: (number of an event, what to call): called once, in the replay, right before the step of that event. It ends
            the replay by `Moment.end`, or by raising `Stop`.

    Raises: SimkitError when there is no such event, or for a case of real processes.
    """
    case = _checked(case, program)
    if judge is None:
        judge = what_is_raised if case.options.get("processes_may_fail", True) else _first_raised
    again = _Again(case, program, kernel=kernel, guard=guard, limits=limits or _limits_of(case))
    outcome = again.watched(before, trace_sink) if before is not None else again.strictly(trace_sink)
    if isinstance(outcome.error, Stop):
        return Replayed(case, "stopped", outcome, ())
    if isinstance(outcome.error, ReplayDivergedError):
        return _answer_of_diverged(case, again, outcome.error, outcome, judge, _wanted(case, wanted))
    failures = tuple(judge(outcome))
    named = _wanted(case, wanted)
    if outcome.digest == case.digest:
        answer: Answer = "reproduced" if named in failures else "different failure" if failures else "fixed"
        return Replayed(case, answer, outcome, failures)
    if named not in failures and _agrees_until_main_ended(case, outcome):
        return Replayed(case, "different failure" if failures else "fixed", outcome, failures)
    return Replayed(case, "diverged", outcome, failures, by_digest(case, outcome.trace, again.strictly().trace))


def replay_until(
    case: Case | Path | str,
    program: Program,
    event: int,
    *,
    kernel: KernelName = "fast",
    guard: bool = True,
    limits: Limits | None = None,
    trace_sink: Sink | None = None,
) -> Standstill:
    """Run a case up to the step of event number `event` (from 0, as in its trace), and say how everything stands there.

    An event that is told inside a step stops the run before that step; one that is told between two steps, such as a move
    of the clock, before the step that follows. The other arguments are those of `replay`, and so are the errors.
    """
    case = _checked(case, program)
    found: list[Standstill] = []

    def look(moment: Moment) -> None:
        found.append(moment.standstill())
        raise Stop

    again = _Again(case, program, kernel=kernel, guard=guard, limits=limits or _limits_of(case))
    again.watched((event, look), trace_sink)
    if not found:  # the second run is not the first one
        raise SimkitError(
            Problem(
                "replay-unsteady",
                f"the replay did not come to event {event} again",
                f"case {case.id}",
                "a program that repeats itself",
                "two replays of it differ on this machine: `simkit doctor` tells what is not deterministic",
                ExitCode.DIVERGED,
            )
        )
    return attrs.evolve(found[0], asked=event)


@attrs.frozen
class _Again:
    """Runs a case again, in one way or another."""

    case: Case
    program: Program
    kernel: KernelName = attrs.field(kw_only=True)
    guard: bool = attrs.field(kw_only=True)
    limits: Limits = attrs.field(kw_only=True)

    def strictly(self, sink: Sink | None = None) -> Outcome[Any]:
        """By the recorded schedule."""
        return self.by(self.case.strategy(), sink)

    def by(self, strategy: Strategy, sink: Sink | None = None) -> Outcome[Any]:
        """By some strategy."""
        return run(
            self.program,
            tape=self.case.tape(),
            strategy=strategy,
            kernel=self.kernel,
            guard=self.guard,
            limits=self.limits,
            trace_sink=sink,
        )

    def watched(self, before: tuple[int, Callable[[Moment], object]], sink: Sink | None) -> Outcome[Any]:
        """As `strictly`, and call back before the step of an event. It takes one run more to find that step."""
        event, call = before
        tracer = sys.gettrace()
        with Stopping(self.case.strategy(), step_of(self.strictly().trace, event), call) as strategy:
            try:
                outcome = self.by(strategy, sink)
            finally:
                sys.settrace(tracer)  # a debugger that was opened has nothing to see any more
        if isinstance(outcome.error, StrategyError) and outcome.error.__cause__ is not None:
            raise outcome.error.__cause__  # of the call-back
        return outcome


def _answer_of_diverged(
    case: Case, again: _Again, error: ReplayDivergedError, outcome: Outcome[Any], judge: Judge, wanted: str
) -> Replayed:
    """A mended program takes the same steps until its main ended in the recorded run, and then goes on; any other has
    diverged, and is followed as far as it fits.
    """
    recorded = _until_main_ended(case.schedule)
    if error.event >= sum(steps for _, steps in recorded):
        on = again.by(ReplaySchedule(recorded, then=LooseSchedule()))
        failures = tuple(judge(on))
        if wanted not in failures and _agrees_until_main_ended(case, on):
            return Replayed(case, "different failure" if failures else "fixed", on, failures)
    loosely = again.by(LooseSchedule(case.schedule))
    return Replayed(case, "diverged", loosely, tuple(judge(loosely)), by_schedule(case, error, outcome.trace))


def _until_main_ended(schedule: tuple[Segment, ...]) -> tuple[Segment, ...]:
    """Up to the last step of the main task, which is number 1; what follows only winds up."""
    ends = [at + 1 for at, (task, _) in enumerate(schedule) if task == _MAIN]
    return schedule[: max(ends, default=0)]


def _agrees_until_main_ended(case: Case, outcome: Outcome[Any]) -> bool:
    """Whether the replay is the recorded run up to the last step that main took there; a case without ladder vouches for
    its schedule only.
    """
    steps = sum(steps for _, steps in _until_main_ended(case.schedule))
    events = [index for index, event in enumerate(outcome.trace.events()) if event.kind == "step"]
    if steps == 0 or steps > len(events):
        return False
    return case.ladder is None or case.ladder.agrees(outcome.trace, events[steps - 1])


def _limits_of(case: Case) -> Limits:
    """Those that an exploration gave the run, if the case tells them."""
    named = case.options.get("limits")
    steps = named.get("steps") if isinstance(named, dict) else None
    return Limits(steps=steps) if isinstance(steps, int) else _LIMITS


def _wanted(case: Case, given: str | None) -> str:
    return given if given is not None else str((case.expect or {}).get("anomaly", ""))


def _checked(case: Case | Path | str, program: object) -> Case:
    if isinstance(case, Path) or (isinstance(case, str) and Path(case).is_file()):
        case = Case.load(case)
    if not isinstance(case, Case):
        raise wrong("replay: case", case, "a case, such as Case.load(path) gives, or the path of one")
    need_program("replay: program", program)
    if case.world != "simulated":
        raise SimkitError(
            Problem(
                "replay-not-simulated",
                "this is a case of real processes, which keep their own time and have no trace",
                f"case {case.id}",
                "a case of the simulated world",
                "replay it as a whole: `simkit replay` does, several times",
            )
        )
    return case
