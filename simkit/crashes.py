"""Crashes: take a probe run, and crash it at every boundary that it crossed, into every state that this may leave.

Generic on purpose: the caller's `run_with` makes a run in which the crash strikes, usually by `Host.at_boundary`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import attrs

from simkit.disk import CrashState
from simkit.host import Host
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


def power_losses(
    probe: Outcome[Any] | Mapping[str, int],
    run_with: Callable[[CrashPoint, Callable[[Host], object]], T],
    *,
    bound: int = 100,
    most: int | None = None,
) -> Iterator[tuple[CrashPoint, CrashState, T]]:
    """Lose power at each boundary of the probe, into each state that the disk may be left in; give each with its result.

    Args:
        probe: a run, or its boundaries.
        run_with: makes one run. It is given the point, and what to call there with the host, usually by
            `host.at_boundary(point.number, lambda: strike(host))`.
        bound: states for each boundary: all when there are no more, else a sample (`Disk.crash_states`).
        most: boundaries, as for `crash_points`.
    """
    for point in crash_points(probe, most=most):
        found: list[CrashState] = []

        def look(host: Host, found: list[CrashState] = found) -> None:
            found.extend(host.disk.crash_states(bound))
            host.power_loss(found[0])

        result = run_with(point, look)
        if not found:
            raise RuntimeError(f"nothing was struck at {point}: the run is another than the probe")
        yield point, found[0], result
        for state in found[1:]:
            yield point, state, run_with(point, lambda host, state=state: host.power_loss(state))  # type: ignore[misc]
