"""The bounds of a run. Everything is bounded, and whatever meets a bound is inconclusive: neither passed nor failed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import attrs

from simkit._options import at_least, seconds
from simkit.errors import ExitCode, Problem, SimkitError

__all__ = ["Bound", "BoundError", "Limits"]

Bound = Literal["steps", "time", "callbacks", "step-time", "memory", "events"]

_MEANING: Mapping[str, str] = {
    "steps": "its tasks took all the steps they may",
    "time": "virtual time went as far as it may",
    "callbacks": "timers set each other for one instant, without an end",
    "step-time": "one step went on and on: this code never yields",
    "memory": "the process gained all the memory it may",
    "events": "the trace has all the events it may",
}


@attrs.frozen
class Limits:
    """The bounds of a run. Meeting one ends it, with nothing unwound; the outcome says which.

    Steps and virtual time are counted. The others are looked at a few times a second from beside, so where exactly they
    end a run differs.
    """

    steps: int = attrs.field(default=1_000_000, validator=at_least(1))
    time_ns: int = attrs.field(default=30 * 24 * 3600 * 1_000_000_000, validator=at_least(0))  # virtual
    step_s: float = attrs.field(default=10.0, validator=seconds)  # real time of one step
    memory_bytes: int = attrs.field(default=4 << 30, validator=at_least(1))  # what the process gains during the run
    events: int = attrs.field(default=50_000_000, validator=at_least(1))  # in the trace


class BoundError(SimkitError, RuntimeError):
    """What an outcome gives instead of a value when a bound was met."""

    @classmethod
    def of(cls, bound: Bound, steps: int, stack: str = "") -> BoundError:
        """The error for `bound`, met after so many steps, when the program stood at `stack`."""
        lines = [line.strip() for line in stack.splitlines()]
        frames = [line for line in lines if line.startswith("File ")]
        place = frames[-1] if frames else lines[0].partition(" at ")[2] if lines else ""
        hint = "simkit.Limits sets the bounds; a trace tells who runs away"
        return cls(
            Problem(
                "bound-met",
                f"the simulation met its bound on {bound} after {steps} steps: {_MEANING[bound]}",
                place or f"step {steps}",
                "a run that comes to its end within its limits",
                hint if not stack else f"{hint}; the program stood here:\n{stack}",
                ExitCode.INCONCLUSIVE,
            )
        )
