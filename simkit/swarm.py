"""Swarm: draw from the tape which faults a run has, and how often each; some are off, the rest at wild weights.

A run that has every fault a little finds less than many runs that each have a few of them a lot.
Source: A. Groce and others, "Swarm Testing", ISSTA 2012.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import attrs

from simkit._storage.faults import NEVER, SILENT, DiskFaults, Ratio

if TYPE_CHECKING:
    from simkit.tape import Stream
    from simkit.world import World

__all__ = ["draw_faults"]

#: How often a fault happens in a run, the default first; a fault is off in half of the runs.
_RATIOS: tuple[Ratio, ...] = (NEVER, (1, 1000), (1, 100), (1, 10))
_RATIO_WEIGHTS = (6, 3, 2, 1)
_MEMORY: tuple[Ratio, ...] = (NEVER, (1, 1000), (1, 100))


def draw_faults(
    world: World, hosts: Iterable[str] = (), *, silent: bool = False, clocks: bool = True
) -> Mapping[str, str]:
    """Draw what may go wrong in this run, on the network and on these hosts (all that there are, when none is named).

    Args:
        world: whose tape is drawn from, and whose faults are set.
        hosts: by name.
        silent: also faults that damage data in silence; declare `world.copies` before, or nothing may survive.
        clocks: also clocks that are wrong; one that is put right jumps.

    Returns: what was drawn, option by option, for a report; what is off is not in it.
    """
    from simkit.network import NetworkOptions

    stream = world.tape.stream("swarm")
    drawn: dict[str, str] = {}
    network = _mask(stream, "network", NetworkOptions, (), drawn)
    world.network.options = attrs.evolve(world.network.options, **network)
    world.points.out_of_memory = _note("points.out_of_memory", _MEMORY[stream.choose("oom", 3, (6, 2, 1))], drawn)
    for name in tuple(hosts) or tuple(world.hosts):
        host = world.host(name)
        disk = _mask(stream, f"disk/{name}", DiskFaults, () if silent else SILENT, drawn)
        host.disk.faults = attrs.evolve(host.disk.faults, **disk)
        if clocks:
            host.clock.draw()
        if host.clock.skew_ns or host.clock.drift_ppb:
            drawn[f"clock/{name}"] = f"skew {host.clock.skew_ns} ns, drift {host.clock.drift_ppb} ns/s"
    return drawn


def _mask(stream: Stream, part: str, options: type, without: tuple[str, ...], drawn: dict[str, str]) -> dict[str, Any]:
    """A ratio for each option that is one."""
    ratios = [field.name for field in attrs.fields(options) if field.default == NEVER and field.name not in without]
    return {
        name: _note(f"{part}.{name}", _RATIOS[stream.choose(f"{part}.{name}", len(_RATIOS), _RATIO_WEIGHTS)], drawn)
        for name in ratios
    }


def _note(name: str, ratio: Ratio, drawn: dict[str, str]) -> Ratio:
    if ratio != NEVER:
        drawn[name] = f"{ratio[0]}/{ratio[1]}"
    return ratio
