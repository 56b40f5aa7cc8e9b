"""How long a world may take to come to its end once all faults are off: what an explorer gives a healed run.

The bound is a number on the tape (`"!patience"`), so that a run that ends by it replays like any other. Each number stands
for four times the time of the one before: liveness is tried again with four times the bound before it fails.
"""

from __future__ import annotations

from typing import NoReturn

__all__ = ["LivenessError", "lost_patience", "patience_for", "patience_ns"]

_FIRST_NS = 60_000_000_000
_FACTOR = 4


class LivenessError(AssertionError):
    """The program did not come to its end although nothing has gone wrong for a long time."""


def patience_ns(number: int) -> int:
    """The virtual time that a number (from 1) stands for."""
    return _FIRST_NS * int(_FACTOR ** (number - 1))


def patience_for(ns: int) -> int:
    """The least number that stands for at least `ns`."""
    number = 1
    while patience_ns(number) < ns:
        number += 1
    return number


def lost_patience(within_ns: int) -> NoReturn:
    """Time is up."""
    raise LivenessError(f"no end {within_ns / 1e9:.0f} s of virtual time after all faults were off")
