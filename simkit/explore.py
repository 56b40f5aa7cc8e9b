"""Exploration: take a probe run, and crash it at every boundary that it crossed.

Generic on purpose: the caller's `run_with` makes a run in which the crash strikes, usually by `Host.at_boundary`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import attrs

from simkit.world import Outcome

T = TypeVar("T")


@attrs.frozen(order=True)
class CrashPoint:
    """Right before storage boundary `number` (from 1) of host `host` takes effect."""

    host: str
    number: int

    def __str__(self) -> str:
        return f"{self.host}.boundary#{self.number}"


def crash_points(probe: Outcome[Any] | Mapping[str, int], *, most: int | None = None) -> list[CrashPoint]:
    """Every boundary of a probe run, host by host; with `most`, that many, evenly spread and with both ends."""
    boundaries = probe.boundaries if isinstance(probe, Outcome) else probe
    points = [CrashPoint(host, number) for host in sorted(boundaries) for number in range(1, boundaries[host] + 1)]
    if most is None or len(points) <= most:
        return points
    if most < 2:
        return points[:most]
    return [points[index * (len(points) - 1) // (most - 1)] for index in range(most)]


def crash_everywhere(
    probe: Outcome[Any] | Mapping[str, int], run_with: Callable[[CrashPoint], T], *, most: int | None = None
) -> Iterator[tuple[CrashPoint, T]]:
    """Run once for each boundary of the probe, and give each crash with what came of it, as they come."""
    for point in crash_points(probe, most=most):
        yield point, run_with(point)
