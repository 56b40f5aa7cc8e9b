"""Discovery: how many different things runs have shown, and how likely the next is to show something new.

The estimate is Good and Turing's: the share of observations that were made exactly once (Good: The Population Frequencies
of Species and the Estimation of Population Parameters, Biometrika 1953; for fuzzing Böhme: STADS, TOSEM 2018).
"""

from __future__ import annotations

import attrs

#: No more different things than this are kept; beyond, what is new counts as new each time it comes.
_KEPT_MAX = 200_000


@attrs.frozen
class Point:
    """A point of the curve."""

    runs: int
    distinct: int
    chance_of_new: float


class Discovery:
    """Counts observations, and keeps the curve at 1, 2, 4, … of them."""

    def __init__(self) -> None:
        self.runs = 0
        self.distinct = 0
        self._once = 0
        self._times: dict[str, int] = {}
        self._curve: list[Point] = []
        self._next = 1

    def saw(self, thing: str | None) -> bool:
        """Count one observation; say whether it is new. None stands for one that was never made and is never made again."""
        times = 0 if thing is None else self._times.get(thing, 0)
        self.runs += 1
        if times == 0:
            self.distinct += 1
            self._once += 1
        elif times == 1:
            self._once -= 1
        if thing is not None and (times or len(self._times) < _KEPT_MAX):
            self._times[thing] = times + 1
        if self.runs == self._next:
            self._next *= 2
            self._curve.append(self._now())
        return times == 0

    def curve(self) -> tuple[Point, ...]:
        """The points so far, and the present one."""
        if not self.runs or self._curve[-1].runs == self.runs:
            return tuple(self._curve)
        return (*self._curve, self._now())

    def _now(self) -> Point:
        return Point(self.runs, self.distinct, self._once / self.runs)
