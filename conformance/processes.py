"""Units of a target as real processes: started, killed, paused and cleaned away for certain.

    Processes          owns every process started through it; leaving its block ends them all, also on Ctrl-C
    UnitProcess        one of them: its streams, `kill`, `ask_to_leave`, `pause`, `resume`, `wait`, its last words
    environment(…)     the variables a unit gets: the user's, without what would leak this Python into it

A unit leads a session and process group of its own. What is done to it is done to all of its group, and asserted: a
kill that the process did not die of, or that a member survived, is an error and never a silent pass. Members that left
the group are found by a token in their environment where the system shows it (`/proc`). Should this process itself be killed,
they are ended by its heir.
"""

from __future__ import annotations

import contextlib
import functools
import os
import secrets
import shlex
import signal
import subprocess
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypeVar

import trio

from conformance import heir, machine, members, pipes
from simkit.errors import ExitCode, Problem, SimkitError

T = TypeVar("T")

#: Units one `Processes` may have had; a target that dies and dies is given up on long before.
UNITS_MAX: Final = 1_000

_TAIL_BYTES: Final = 4_096
_TAIL_LINES: Final = 12
_LINE_MAX: Final = 200
_ORIGIN_MAX: Final = 300
_SIGNAL_S: Final = 10.0  # how long the system may take to carry a signal out
_POLL_S: Final = 0.001
_EXIT_S: Final = 1.0  # how long a process whose streams ended may take to exit
_UNLEAKED: Final = ("PYTHON", "VIRTUAL_ENV", "COVERAGE_", "COV_CORE_", "PYTEST_", "SIMKIT_")


def environment(extra: Mapping[str, str]) -> dict[str, str]:
    """The user's variables without those of this Python and this kit, and `extra`.

    PYTHONDONTWRITEBYTECODE is among those left out: a fresh virtual environment would compile on every start.
    """
    return {**{k: v for k, v in os.environ.items() if not k.startswith(_UNLEAKED)}, **extra}


class UnitProcess:
    """One process of a target, leader of its own group. Made by `Processes.start`."""

    def __init__(
        self, name: str, process: trio.Process, token: str, stderr: Path, origin: str, by_hand: str, in_short: str = ""
    ) -> None:
        self.name = name
        self.origin = origin  # command and folder
        self.by_hand = by_hand  # a shell line that starts it without the kit
        self.in_short = in_short or by_hand  # the same without what means nothing once the run is over
        self.pid = process.pid
        self.stderr = stderr
        self._process = process
        self._token = token
        self._reaped = False
        self._killing: trio.Event | None = None  # set when the kill under way has been carried out

    @property
    def stdin(self) -> trio.abc.SendStream:
        """Its standard input. Breaks only once the process is known to have ended, see `stdout`."""
        assert self._process.stdin is not None
        return pipes.Input(self._process.stdin, self._departure)

    @property
    def stdout(self) -> trio.abc.ReceiveStream:
        """Its standard output. A dying process closes its streams before it is dead: the end of this one is given when
        it has ended and a kill under way is over, so that whoever meets it finds `alive` to be false.
        """
        assert self._process.stdout is not None, f"{self.name} was started without control: its output is in its log"
        return pipes.Output(self._process.stdout, self._departure)

    @property
    def alive(self) -> bool:
        """Whether it has not ended yet. A paused process is alive, and so is one while `kill` is at work: a death is
        seen by the killer before anybody could take it for one of its own accord.
        """
        return self._killing is not None or self._process.returncode is None

    @property
    def returncode(self) -> int | None:
        """None while alive, the exit code, or the negative number of the signal it died of."""
        return self._process.returncode

    def pids(self) -> tuple[int, ...]:
        """The numbers of all its live processes, as far as the system shows them."""
        if not members.SHOWN:
            return (self.pid,)
        return tuple(member.pid for member in members.find(self._token, self.pid))

    @property
    def ending(self) -> str:
        """How it ended, in two or three words."""
        return _ending(self.returncode)

    async def wait(self) -> int:
        """Its return code, once it has ended."""
        return await self._process.wait()

    async def kill(self) -> None:
        """SIGKILL to the whole group, sent before anything is awaited; all of it is dead when this returns.

        Raises SimkitError: `worker-died` (it had ended by itself), `kill-missed` (it ended at this instant, but not of
        the signal), `kill-survived` (a member is still there). What it had written can still be read from `stdout`.
        A kill while another is at work waits for that one.
        """
        if self._killing is not None:
            await self._killing.wait()
            return
        self._signal(signal.SIGKILL)
        self._killing = trio.Event()
        try:
            with trio.CancelScope(shield=True):
                await self._reap(killed=True)
        finally:
            self._killing.set()
            self._killing = None
        if self.returncode != -signal.SIGKILL:
            raise SimkitError(self.death("kill-missed"))

    def ask_to_leave(self) -> None:
        """SIGTERM to the whole group. Raises SimkitError `worker-died` where it had ended by itself."""
        self._signal(signal.SIGTERM)

    async def pause(self) -> None:
        """SIGSTOP to the whole group; none of its threads runs any more when this returns."""
        self._signal(signal.SIGSTOP)
        await self._until(self._is_stopped, "pause")

    async def resume(self) -> None:
        """SIGCONT to the whole group; all of it runs again when this returns."""
        self._signal(signal.SIGCONT)
        await self._until(self._is_running, "resume")

    async def end(self) -> None:
        """Away with it, whatever state it is in: group killed, process reaped, streams closed. Shielded, repeatable."""
        with trio.CancelScope(shield=True):
            killed = self.returncode is None
            if killed:
                os.killpg(self.pid, signal.SIGKILL)
            await self._reap(killed=killed)
            for stream in (self._process.stdin, self._process.stdout):
                if stream is not None:
                    await stream.aclose()

    async def first(self, ask: Callable[[], Awaitable[T]]) -> T:
        """The answer to the first question, or SimkitError `worker-died-at-start` if the process ended over it."""
        try:
            return await ask()
        except SimkitError as error:
            if error.problem.code not in {"adapter-gone", "adapter-silent"}:
                raise
            with trio.move_on_after(_EXIT_S):
                await self.wait()
            if self.alive:
                raise
            raise SimkitError(self.death("worker-died-at-start")) from error

    def last_words(self) -> str:
        """The end of its error output, at most a dozen lines of bounded length."""
        try:
            with self.stderr.open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
                return tail(file.read(_TAIL_BYTES))
        except OSError as error:
            return f"(cannot be read: {error})"

    def death(self, code: str = "worker-died") -> Problem:
        """What to tell of a process that ended by itself."""
        words = "\n    ".join(self.last_words().splitlines()) or "(none)"
        return Problem(
            code=code,
            what=f"{self.name} (process {self.pid}) {_ended(self.returncode)}; its last words:\n    {words}",
            where=self.origin,
            expected="a process that runs until the kit ends it",
            hint=f"by hand: {self.in_short}",
            exit_code=ExitCode.TARGET,
        )

    async def _departure(self) -> None:
        """The streams have ended: wait until the process has too, unless it only closed them."""
        with trio.move_on_after(_EXIT_S):
            await self.wait()
        if self._killing is not None:
            await self._killing.wait()

    def _signal(self, number: signal.Signals) -> None:
        # Asking for its return code reaps a dead process, so that here its number cannot have become somebody else's.
        if self.returncode is not None:
            raise SimkitError(self.death())
        os.killpg(self.pid, number)

    async def _reap(self, *, killed: bool) -> None:
        await self._process.wait()
        if self._reaped:
            return
        deadline = trio.current_time() + _SIGNAL_S
        while left := members.find(self._token, self.pid if killed else None):
            for member in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(member.pid, signal.SIGKILL)
            if trio.current_time() > deadline:
                raise SimkitError(self._unmoved("kill-survived", f"processes {[m.pid for m in left]} survive SIGKILL"))
            await trio.sleep(_POLL_S)
        self._reaped = True

    async def _until(self, reached: Callable[[], bool], what: str) -> None:
        with trio.move_on_after(_SIGNAL_S):
            while not reached():
                if self.returncode is not None:
                    raise SimkitError(self.death())
                await trio.sleep(_POLL_S)
            return
        raise SimkitError(self._unmoved(f"{what}-missed", f"the signal to {what} was not carried out"))

    def _is_stopped(self) -> bool:
        # For the leader the system says when its last thread has stopped; of other members /proc shows the state.
        report = os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT)
        return report is not None and not self._nudge(signal.SIGSTOP, stopped=False)

    def _is_running(self) -> bool:
        if not members.SHOWN:
            return os.waitid(os.P_PID, self.pid, os.WCONTINUED | os.WNOHANG | os.WNOWAIT) is not None
        return not self._nudge(signal.SIGCONT, stopped=True)

    def _nudge(self, number: signal.Signals, *, stopped: bool) -> bool:
        """Signal members still in this state (one that left the group did not get the group's); whether there are any."""
        found = [member for member in members.find(self._token, self.pid) if member.stopped is stopped]
        for member in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(member.pid, number)
        return bool(found)

    def _unmoved(self, code: str, what: str) -> Problem:
        return Problem(
            code,
            f"{self.name} (process {self.pid}): {what} within {_SIGNAL_S:g} s",
            "process world",
            "the system to carry the signal out at once",
            "is the machine overloaded, or a process stuck in the kernel (state D)?",
            ExitCode.INTERNAL,
        )


class Processes:
    """Every process started here is gone when the block is left, however it is left."""

    def __init__(self) -> None:
        self._units: list[UnitProcess] = []

    async def __aenter__(self) -> Self:
        return self

    @trio.lowlevel.enable_ki_protection
    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with trio.CancelScope(shield=True):
            for unit in self._units:  # all are told before any is waited for
                if unit.returncode is None:
                    os.killpg(unit.pid, signal.SIGKILL)
            failures = [failure for unit in self._units if (failure := await _end(unit))]
        if failures:
            raise failures[0]

    # Between the birth of a process and its place in the list nothing may interrupt.
    @trio.lowlevel.enable_ki_protection
    async def start(
        self,
        name: str,
        command: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        stderr: Path,
        control: bool = True,
    ) -> UnitProcess:
        """Start `command` with exactly the variables `env`, error output appended to the file `stderr`.

        Without `control` its standard output goes there too: nobody would read it, and a full pipe would stop it.
        Raises SimkitError `worker-cannot-start` when there is no such program, folder or right to run it, and `machine-short`
        when the system has no process, descriptor or room left for it.
        """
        if len(self._units) >= UNITS_MAX:
            raise SimkitError(_cannot_start(name, command, cwd, f"{UNITS_MAX} processes were started already"))
        token = f"{_estate()}.{secrets.token_hex(8)}"
        try:
            with stderr.open("ab") as log:
                process = await trio.lowlevel.open_process(
                    list(command),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE if control else log,
                    stderr=log,
                    cwd=cwd,
                    env={**env, members.VARIABLE: token},
                    start_new_session=True,
                )
        except (OSError, ValueError) as error:
            if isinstance(error, OSError) and error.errno in machine.SHORTAGES:
                what = f"{name} cannot be started: {error.strerror}"
                raise SimkitError(machine.short(what, _origin(command, cwd))) from error
            raise SimkitError(_cannot_start(name, command, cwd, str(error))) from error
        unit = UnitProcess(
            name,
            process,
            token,
            stderr,
            _origin(command, cwd),
            by_hand(command, cwd, env),
            by_hand(command, cwd, {name: value for name, value in _given(env).items() if _lasts(name)}),
        )
        self._units.append(unit)
        return unit


@functools.cache
def _estate() -> str:
    """What tokens of this kit begin with; somebody sees to it that nothing of it outlives this process."""
    estate = secrets.token_hex(8)
    if members.SHOWN:
        heir.appoint(estate)
    return estate


async def _end(unit: UnitProcess) -> SimkitError | None:
    try:
        await unit.end()
    except SimkitError as error:
        return error  # told once the others are gone too
    return None


def _ended(returncode: int | None) -> str:
    if returncode is not None and returncode >= 0:
        return f"ended by itself with {_ending(returncode)}"
    return _ending(returncode)


def _ending(returncode: int | None) -> str:
    if returncode is None:
        return "still runs"
    if returncode >= 0:
        return f"exit code {returncode}"
    try:
        return f"died of {signal.Signals(-returncode).name}"
    except ValueError:
        return f"died of signal {-returncode}"


def _origin(command: Sequence[str], cwd: Path) -> str:
    return f"`{shlex.join(command)[:_ORIGIN_MAX]}` in {cwd}"


def by_hand(command: Sequence[str], cwd: Path, env: Mapping[str, str]) -> str:
    """A shell line that starts a unit with these variables, on an empty state folder."""
    given = _given(env)
    words = [f"{name}={'$(mktemp -d)' if name == 'SIMKIT_STATE' else shlex.quote(given[name])}" for name in given]
    return " ".join([f"cd {shlex.quote(str(cwd))} &&", *words, shlex.join(command)])


def _given(env: Mapping[str, str]) -> Mapping[str, str]:
    """The variables that the kit gave, those of its configuration among them; whoever starts it has the others as well."""
    ours = os.environ
    return {k: v for k, v in env.items() if k.startswith("SIMKIT_") or k == "PYTHONPATH" or ours.get(k) != v}


def _lasts(name: str) -> bool:
    """Does a variable still mean something when the run is over? Addresses and ports of its services do not."""
    return name in {"SIMKIT_STATE", "SIMKIT_CONFIGURATION"} or not name.startswith("SIMKIT_")


def tail(log: bytes) -> str:
    """The end of an error output, at most a dozen lines of bounded length."""
    text = log[-_TAIL_BYTES:].decode("utf-8", "replace")
    return "\n".join(_cut(line) for line in text.strip().splitlines()[-_TAIL_LINES:])


def _cut(line: str) -> str:
    return line if len(line) <= _LINE_MAX else f"{line[:_LINE_MAX]}…"


def _cannot_start(name: str, command: Sequence[str], cwd: Path, why: str) -> Problem:
    return Problem(
        "worker-cannot-start",
        f"{name} cannot be started: {why}",
        _origin(command, cwd),
        "a command that runs",
        "the unit's command stands in the adapter's manifest, adapter.toml",
        ExitCode.TARGET,
    )
