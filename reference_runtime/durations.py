"""Durations as people write them: `5s`, `250ms`, `1.5m`, and seconds where no unit stands. Whole nanoseconds within."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal

#: From the smallest to the largest; nanoseconds of each.
UNITS: Mapping[str, int] = {
    "ns": 1,
    "us": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_WRITTEN = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,9})?)(ns|us|ms|s|m|h)?", re.ASCII)


def nanoseconds(text: str) -> int:
    """What a text says in nanoseconds. Raises ValueError for one that is no duration, or none of whole nanoseconds."""
    written = _WRITTEN.fullmatch(text)
    if written is None:
        raise ValueError(f"{text!r:.80} is no duration; expected a number and {', '.join(UNITS)}, as in 5s or 250ms")
    ns = Decimal(written[1]) * UNITS[written[2] or "s"]
    if ns != int(ns):
        raise ValueError(f"{text!r:.80} is no whole number of nanoseconds")
    return int(ns)


def spelled(ns: int) -> str:
    """A duration in the largest unit of which it is a whole number, as `nanoseconds` reads it."""
    unit = next(unit for unit in reversed([*UNITS]) if ns % UNITS[unit] == 0) if ns else "s"
    return f"{ns // UNITS[unit]}{unit}"
