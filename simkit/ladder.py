"""The ladder of a trace: running digests at up to 64 places, so that a replay learns where it left a run whose trace is gone.

A digest of the whole trace says only that two runs differ. A rung stands for all events before its place, so the first rung
that differs bounds the first event that does, from both sides; a trace of at most 64 events has a rung after each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from simkit.trace import Trace

RUNGS_MAX = 64
_DIGITS = 8


@attrs.frozen
class Ladder:
    """How many events a trace had, and its running digests, eight hex digits each, one after the other."""

    events: int
    rungs: str

    @classmethod
    def of(cls, trace: Trace) -> Ladder:
        """The ladder of a trace."""
        return cls(len(trace), "".join(trace.running_digests(_places(len(trace)))))

    @classmethod
    def from_json(cls, data: Mapping[str, Any] | Ladder | None) -> Ladder | None:
        """Read `to_json` back."""
        return data if data is None or isinstance(data, Ladder) else cls(data["events"], data["rungs"])

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return {"events": self.events, "rungs": self.rungs}

    def window(self, trace: Trace) -> tuple[int, int] | None:
        """The first event in which `trace` differs is one of these, both included; None when no rung differs.

        The last may be the end of either trace: the number of the event that one has and the other has not.
        """
        places = _places(self.events)
        before = 0
        within = [place for place in places if place <= len(trace)]
        for place, digest in zip(within, trace.running_digests(within), strict=True):
            rung = places.index(place) * _DIGITS
            if self.rungs[rung : rung + _DIGITS] != digest:
                return before, place - 1
            before = place
        if len(trace) == self.events:
            return None
        return before, min(len(trace), self.events)

    def agrees(self, trace: Trace, events: int) -> bool:
        """Whether no rung among the first so many events differs."""
        found = self.window(trace)
        return found is None or found[1] >= events


def problem_with(value: object) -> str:
    """What is wrong with a ladder as JSON; empty when nothing is."""
    if value is None:
        return ""
    if not isinstance(value, dict) or set(value) != {"events", "rungs"}:
        return "expected events and rungs, or null"
    events, rungs = value["events"], value["rungs"]
    if type(events) is not int or events < 0:
        return f"events: expected a whole number from 0, got {events!r}"
    digits = isinstance(rungs, str) and set(rungs) <= set("0123456789abcdef")
    if not digits or len(rungs) != len(_places(events)) * _DIGITS:
        return f"rungs: expected {len(_places(events))} times {_DIGITS} hex digits"
    return ""


def _places(events: int) -> list[int]:
    """After how many events the rungs stand: evenly spread, the last one after all."""
    return sorted({events * rung // RUNGS_MAX for rung in range(1, RUNGS_MAX + 1)} - {0})
