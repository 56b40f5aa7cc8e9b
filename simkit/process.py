"""A simulated process: killed without unwinding, asked to leave, paused, resumed, restarted on the same disk.

A task belongs to the process in its context: every task that a process's code starts is its own, also in a nursery that
another process opened. A handle that the dead still hold raises `ProcessDead` (sync) or never returns (async).
"""

from __future__ import annotations

import contextlib
import contextvars
import signal
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Literal, cast

import attrs
import trio

from simkit._guard.state import here
from simkit._kernel.owner import OWNER
from simkit._options import need_whole
from simkit._storage.handle import ProcessDead
from simkit.errors import shown_of, told, wrong

if TYPE_CHECKING:
    from simkit.world import Host

__all__ = ["ExitStatus", "Process", "ProcessDead", "current_process"]


_NOT_ASYNC = object()


@attrs.frozen
class ExitStatus:
    """How a process ended."""

    kind: Literal["exited", "failed", "killed"]
    value: Any = None  # what its function returned, when it exited
    error: BaseException | None = attrs.field(default=None, repr=shown_of)  # what its function raised, when it failed

    def __str__(self) -> str:
        return self.kind if self.error is None else f"failed: {told(self.error)}"


class Process:
    """A process on a host; `Host.start` makes one. Its id is unique in a world and never used again."""

    def __init__(self, host: Host, pid: int, name: str, version: str | None = None) -> None:
        self.host = host
        self.pid = pid
        self.name = name
        #: Which code it runs, when whoever started it has said so.
        self.version = version
        #: How it ended; None while it lives.
        self.status: ExitStatus | None = None
        #: Whether it is stopped, as by SIGSTOP.
        self.paused = False
        self._stalled_until_ns = 0
        self._is_asked_to_leave = False  # while it is stopped: it hears of it as it goes on
        self._ended = trio.Event()
        self._mourners: list[Callable[[], object]] = []
        self._last_acts: list[Callable[[], object]] = []

    @property
    def label(self) -> str:
        """Its name in traces and messages: host/name#pid, or host/name@version#pid."""
        version = "" if self.version is None else f"@{self.version}"
        return f"{self.host.name}/{self.name}{version}#{self.pid}"

    @property
    def alive(self) -> bool:
        """Whether it has not ended; a paused process is alive."""
        return self.status is None

    def __repr__(self) -> str:
        state = str(self.status) if self.status is not None else "paused" if self.paused else "alive"
        return f"<Process {self.label} {state}>"

    def kill(self) -> None:
        """End it at this very instant: no `finally` and no `except` of its tasks runs, now or later.

        Its own running code, if it is that which calls (through a hook, say), goes on to its next await, as Python
        cannot stop it earlier; every handle it holds is shut by then.
        """
        self._end(ExitStatus("killed"))

    def terminate(self) -> None:
        """Ask it to leave, as SIGTERM does: its handler of that signal is called as this process, at this very instant; a
        stopped one hears of it when it goes on. A process without a handler is killed by it.

        `trio.open_signal_receiver(signal.SIGTERM)` and `signal.signal` set handlers, also in a simulation. A handler that
        raises ends the process there, without unwinding what its tasks were at.
        """
        if not self.alive:
            return
        if self.paused:
            self._is_asked_to_leave = True
            return
        self.host.world.trace.record("terminate", self.label)
        guard = here()
        handler = guard.handlers.get((self.pid, int(signal.SIGTERM)), signal.SIG_DFL) if guard else signal.SIG_DFL
        if handler == signal.SIG_DFL:
            self.kill()
        elif handler != signal.SIG_IGN:
            context = contextvars.copy_context()
            context.run(OWNER.set, self)
            context.run(self._handle, handler)

    def upgrade(self, fn: Callable[..., Awaitable[Any]], *args: Any, version: str | None = None) -> Process:
        """Kill it, and start other code in its place: same host, disk and name, another id. Returns the new process."""
        self.kill()
        return self.host.start(fn, *args, name=self.name, version=version)

    def pause(self) -> None:
        """Stop it, as SIGSTOP does: none of its tasks runs; its timers run out, what arrives for it waits."""
        if self.alive and not self.paused:
            self.paused = True
            self.host.world.trace.record("pause", self.label)
            self.host.world.kernel.pause(self)

    def resume(self) -> None:
        """Let it go on, as SIGCONT does: what became due while it was stopped happens to it now."""
        if self.alive and self.paused:
            self.paused = False
            self.host.world.trace.record("resume", self.label)
            self._unstall()

    def stall(self, ns: int) -> None:
        """Let none of its tasks go on for `ns` from their next await, as when the call it is in takes so long."""
        need_whole("Process.stall: ns", ns, 0)
        if self.alive:
            world = self.host.world
            self._stalled_until_ns = max(self._stalled_until_ns, world.now_ns) + ns
            world.kernel.pause(self)
            world.call_later(self._stalled_until_ns - world.now_ns, self._unstall)

    async def wait(self) -> ExitStatus:
        """Wait until it has ended, and return how."""
        await self._ended.wait()
        return cast("ExitStatus", self.status)

    def on_death(self, callback: Callable[[], object], /) -> None:
        """Call back when it ends in whatever way, at that instant, in order of registration; at once if it has."""
        if self.alive:
            self._mourners.append(callback)
        else:
            callback()

    def on_leaving(self, callback: Callable[[], object], /) -> None:
        """Call back, as this process, when it is about to end by itself: what an interpreter does at its end. No kill does."""
        self._last_acts.append(callback)

    def relieve(self) -> None:
        """Let it go on, whether it was paused or stalled."""
        if self.paused or self._stalled_until_ns:
            self._stalled_until_ns = 0
            self.paused = True
            self.resume()

    # ---- for Host and World

    async def live(self, fn: Callable[..., Awaitable[Any]], args: tuple[Any, ...]) -> None:
        """The root task: run `fn(*args)` and end as it ends."""
        try:
            result: object = fn(*args)
            value = await result if isinstance(result, Awaitable) else _NOT_ASYNC
        except (trio.Cancelled, KeyboardInterrupt):
            raise  # the world itself is ending
        except SystemExit as leaving:
            self._leave(ExitStatus("failed", error=leaving) if leaving.code else ExitStatus("exited"))
        except BaseException as error:  # noqa: BLE001  # an operating system takes whatever a program ends with
            self._leave(ExitStatus("failed", error=error))
        else:
            if value is _NOT_ASYNC:  # nobody would notice that it did nothing: the run ends
                what = f"{getattr(fn, '__qualname__', 'it')} returned {type(result).__name__}, which nobody can await"
                mistake = wrong("Host.start: fn", fn, f"an async function; {what}")
                self.host.world.mistakes.append(mistake)
                raise mistake
            self._leave(ExitStatus("exited", value))

    def _handle(self, handler: Callable[[int, None], object]) -> None:
        try:
            handler(int(signal.SIGTERM), None)
        except SystemExit as leaving:
            self._leave(ExitStatus("failed", error=leaving) if leaving.code else ExitStatus("exited"))
        except Exception as error:  # noqa: BLE001  # an operating system takes whatever a program ends with
            self._leave(ExitStatus("failed", error=error))

    def _leave(self, status: ExitStatus) -> None:
        """End by itself, unless it is killed over what is still to be done."""
        with contextlib.suppress(ProcessDead):
            for act in self._last_acts:
                act()
        self._end(status)

    def _unstall(self) -> None:
        world = self.host.world
        if self.alive and not self.paused and world.now_ns >= self._stalled_until_ns:
            world.kernel.resume(self)
        if self._is_asked_to_leave and not self.paused:
            self._is_asked_to_leave = False
            self.terminate()

    def _end(self, status: ExitStatus) -> None:
        if self.status is not None:
            return
        self.status = status
        self.paused = False
        world = self.host.world
        error = "" if status.error is None else type(status.error).__name__
        world.trace.record(status.kind, self.label, error)
        if status.kind == "failed":
            world.failures.append(self)
        world.kernel.kill(self)
        self.host.forget(self)
        mourners, self._mourners = self._mourners, []
        for mourner in mourners:
            mourner()
        self._ended.set()


def current_process() -> Process | None:
    """The process whose code is running; None on the outside, which is no process and cannot be killed."""
    return OWNER.get()  # type: ignore[return-value]  # what owns tasks here is a process
