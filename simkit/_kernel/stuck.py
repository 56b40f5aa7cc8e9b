"""A simulated thread that waits for something real."""

from __future__ import annotations

import sys
import traceback

from simkit.errors import ExitCode, Problem, SimkitError

__all__ = ["ThreadStuckError", "stuck"]


class ThreadStuckError(SimkitError):
    """A function in a simulated thread never came back."""


def stuck(ident: int, seconds: float) -> ThreadStuckError:
    """The error of the real thread with this number, which did not come back for so long."""
    frame = sys._current_frames().get(ident)
    where = "a function given to trio.to_thread" if frame is None else _place(traceback.extract_stack(frame))
    return ThreadStuckError(
        Problem(
            "thread-stuck",
            f"a function in a simulated thread did not come back within {seconds:.0f} s",
            where,
            "a function that ends, or waits only by trio.from_thread or time.sleep",
            "locks, queues and events of the standard library wait for threads that do not run meanwhile: use trio's, or run "
            "the program of threads under simkit.threaded.run; a lock that was made before the run is a real one there too",
            ExitCode.TARGET,
        )
    )


def _place(stack: traceback.StackSummary) -> str:
    last = stack[-1]
    return f"{last.filename}:{last.lineno} in {last.name}"
