"""Wall clocks of units of real processes that can be set: a number in a file, added to the time by whoever follows it.

The kit writes by how many nanoseconds the clock is off, and the program, at each look at its clock, what it has added; both
are signed 64-bit numbers, little-endian, one after the other. So the kit knows that a jump took place. What a program does
for it is one call of the helper, `follow_clock`; its manifest says `clock = true` of the unit.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from simkit.errors import ExitCode, Problem, SimkitError

if TYPE_CHECKING:
    from pathlib import Path

#: The variable that names the file.
VARIABLE: Final = "SIMKIT_CLOCK"
_NUMBER: Final = struct.Struct("<q")
#: What stands for "never looked at": no clock is off by 292 years.
_NEVER: Final = -(2**63)


class Clock:
    """The clock of one unit, which goes on over its restarts."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._off_ns = 0
        self._jumped = False
        path.write_bytes(_NUMBER.pack(0) + _NUMBER.pack(_NEVER))

    def jump(self, ns: int) -> bool:
        """Set it by so much; False when nobody has ever looked at it, so that nobody would notice."""
        if self._seen() == _NEVER:
            return False
        self._off_ns += ns
        self._jumped = True
        with self.path.open("r+b") as file:
            file.write(_NUMBER.pack(self._off_ns))
        return True

    def demand_noticed(self) -> None:
        """Raise SimkitError where it was set and never looked at again: a jump that did not take place."""
        if self._jumped and self._seen() != self._off_ns:
            raise SimkitError(
                Problem(
                    "jump-missed",
                    f"the clock {self.path.stem} was set by {self._off_ns} ns, and nobody has looked at it since",
                    "process world",
                    "a unit that goes on looking at its wall clock",
                    "a unit whose wall clock decides nothing needs no `clock = true` in adapter.toml",
                    ExitCode.TARGET,
                )
            )

    def _seen(self) -> int:
        seen: int = _NUMBER.unpack_from(self.path.read_bytes(), _NUMBER.size)[0]
        return seen
