"""One command, from its first event to its exit code: whatever happens in between, what was judged is out and kept.

An event goes to the reporter first, so that it is seen even when the journal's disk is full, then to the journal. The first
Ctrl-C (or SIGTERM, or the end of the terminal) asks the engine to finish the running seed; the second ends the command at once.
"""

from __future__ import annotations

import os
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import attrs

from conformance import events as e
from conformance.cli import interrupts
from conformance.reporters import Reporter
from conformance.store import Journal, Store
from conformance.tally import Tally
from simkit.errors import ExitCode, Problem, SimkitError, worst

if TYPE_CHECKING:
    from types import FrameType


#: What a command did: its exit code and the reason, in one sentence or none.
Done: TypeAlias = tuple[ExitCode, str]

#: Problems of the store, met again by whatever is written next.
_TOLD_ONCE = frozenset({"disk-full", "folder-unwritable", "path-in-the-way", "file-unusable"})

_STOP_NOTICE = "\nstopping: the running {} is finished and saved first; Ctrl-C again ends at once\n"


@attrs.define
class Stop:
    """Has someone asked the command to stop? Call it to know."""

    requested: bool = False
    unit: str = "run"  # what is being done one after the other: seeds or runs

    def __call__(self) -> bool:
        return self.requested

    def on_signal(self, _number: int, _frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True
        with suppress(OSError):  # os.write, for a handler may interrupt a print to the same stream
            os.write(2, _STOP_NOTICE.format(self.unit).encode())


@attrs.define
class Session:
    """A running command."""

    command: str
    reporter: Reporter
    store: Store
    journal: Journal | None = None
    clock: Callable[[], float] = time.monotonic
    stop: Stop = attrs.field(factory=Stop)
    tally: Tally = attrs.field(factory=Tally)
    codes: list[ExitCode] = attrs.field(factory=list)  # earned besides the command's own
    reasons: list[str] = attrs.field(factory=list)
    told: set[str] = attrs.field(factory=set)

    def emit(self, event: e.Event) -> None:
        """Show an event, count it, keep it. Never raises for a full disk: that is told, and earns its exit code."""
        if isinstance(event, e.Trouble) and not self._heeds(event.problem):
            return
        if isinstance(event, e.Progress) and self.stop.requested:
            event = attrs.evolve(event, stopping=True)
        self.tally.add(event)
        try:
            self.reporter.show(event)
        except BrokenPipeError:  # whoever read our output has gone; journal, cases and certificate are still wanted
            _mute()
        except OSError as error:
            self._lose_output(error)
        if isinstance(event, e.CampaignBegan):
            _open_journal(self)
        if self.journal is None:
            return
        try:
            self.journal.append(event)
        except SimkitError as error:
            self.close_journal()
            self.trouble(error.problem)

    def _lose_output(self, error: OSError) -> None:
        """Standard output takes no more: say so on the other stream, and go on for the sake of journal and cases."""
        _mute()
        hint = "free some space, or send the output elsewhere; the journal in the store has every event"
        what = f"standard output cannot be written: {error.strerror or error}"
        problem = Problem("output-lost", what, "standard output", "a place that takes it", hint)
        if self._heeds(problem):
            with suppress(OSError):
                sys.stderr.write(f"{problem}\n")

    def close_journal(self) -> None:
        """Close the journal, if there is one still."""
        journal, self.journal = self.journal, None
        if journal is not None:
            with suppress(SimkitError):  # what it could not write was told when it was appended
                journal.close()

    def trouble(self, problem: Problem) -> None:
        """Tell a problem and let it count for the exit code."""
        self.emit(e.Trouble(problem))

    def _heeds(self, problem: Problem) -> bool:
        """Let a problem count for the exit code; whether it is worth telling. A full disk fails every write: once is enough."""
        same = problem.code if problem.code in _TOLD_ONCE else f"{problem.code} {problem.what} {problem.where}"
        self.codes.append(problem.exit_code)
        self.reasons.append(problem.code)
        told = same in self.told
        self.told.add(same)
        return not told


def conduct(session: Session, body: Callable[[Session], Done], *, campaign: bool) -> int:
    """Run `body` and return the exit code. A campaign that began keeps a journal and ends with `CampaignEnded`."""
    began = session.clock()
    with interrupts.deferred():  # outside of the body, which heeds them in its own way
        try:
            code, reason = _guarded(session, body)
            if (campaign and code is not ExitCode.USAGE) or session.tally.began:
                session.emit(_ended(session, code, reason, session.clock() - began))
            return int(code)
        finally:
            session.reporter.close()
            session.close_journal()


def _open_journal(session: Session) -> None:
    """Begin the journal, with the campaign and not before. A store that cannot be written is told at once; the campaign
    runs all the same, for its results are on the screen.
    """
    try:
        session.store.check()
        session.journal = session.store.open_journal(session.command)
    except SimkitError as error:
        session.trouble(error.problem)


def _guarded(session: Session, body: Callable[[Session], Done]) -> Done:
    earned: list[Done] = []
    try:
        with interrupts.taken(session.stop.on_signal):
            earned.append(body(session))
    except BaseException as error:  # noqa: BLE001 - a command answers for everything that is raised inside it
        for leaf in _leaves(error):
            _answer_for(leaf, session)
    if session.stop.requested:
        session.codes.append(ExitCode.INTERRUPTED)
    if session.tally.violations and not earned:
        earned.append((ExitCode.VIOLATION, "violated: " + ", ".join(session.tally.broken())))
    code = worst([*session.codes, *(one for one, _ in earned)])
    reasons = ["interrupted"] if code is ExitCode.INTERRUPTED else []
    return code, "; ".join([*reasons, *dict.fromkeys(session.reasons), *(reason for _, reason in earned if reason)])


def _leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for one in error.exceptions for leaf in _leaves(one)]
    return [error]


def _answer_for(error: BaseException, session: Session) -> None:
    match error:
        case SimkitError():
            session.trouble(error.problem)
        case KeyboardInterrupt():
            session.codes.append(ExitCode.INTERRUPTED)
        case _:
            session.trouble(_bug(error, session.store))


def _bug(error: BaseException, store: Store) -> Problem:
    """The block for a bug of the kit: the traceback goes to a file, or to standard error when there is no file to be had."""
    text = "".join(traceback.format_exception(error))
    try:
        kept = f"the traceback is in {store.save_bug(text)}; please report it with that file"
    except SimkitError:
        sys.stderr.write(text)
        kept = "the traceback is above; please report it"
    frames = traceback.extract_tb(error.__traceback__)
    where = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "unknown"
    what = f"a bug in simkit: {type(error).__name__}: {error}"
    return Problem("bug", what, where, "no exception of this kind", kept, ExitCode.INTERNAL)


def _ended(session: Session, code: ExitCode, reason: str, seconds: float) -> e.CampaignEnded:
    counts = session.tally.counts()
    per = counts.get("seeds") or counts["runs"]
    rate = round(per / seconds, 1) if seconds > 0 else 0.0
    return e.CampaignEnded(counts, round(seconds, 3), rate, code, reason)


def _mute() -> None:
    """Point standard output at nothing, so that the interpreter's last flush does not complain."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def short(path: Path) -> str:
    """As seen from the current folder, when it lies below."""
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
