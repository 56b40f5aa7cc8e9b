"""One simulation at a time: a run replaces parts of trio and of the standard library for the whole process."""

from __future__ import annotations

import _thread
from types import TracebackType

from simkit.errors import ExitCode, Problem, SimkitError

__all__ = ["Turn"]

_lock = _thread.allocate_lock()
_holder = 0


class Turn:
    """Held during a run."""

    __slots__ = ()

    def __enter__(self) -> None:
        global _holder  # noqa: PLW0603  # there is one process to hold
        if not _lock.acquire(blocking=False):
            raise _taken(inside=_holder == _thread.get_ident())
        _holder = _thread.get_ident()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _lock.release()


def _taken(*, inside: bool) -> SimkitError:
    where = "inside the simulation that is running" if inside else "another thread has a simulation running"
    hint = (
        "what is simulated inside a simulation is another host or process: world.host(name).start(fn)"
        if inside
        else "wait for the other, or run seeds in processes: simkit.campaign(…, jobs=2)"
    )
    return SimkitError(
        Problem(
            "run-within-run",
            "a simulation cannot begin here",
            where,
            "one at a time in a process",
            hint,
            ExitCode.USAGE,
        )
    )
