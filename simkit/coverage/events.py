"""Features of an outcome: which named points were on and off, which faults struck, what came right after what.

Pairs of neighbours in the trace stand for the schedule: that a write came after a loss of power, or the server's task
after a client's, is new even where no line of code is. Kinds and names count, numbers do not.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from simkit.coverage.shapes import folded

if TYPE_CHECKING:
    from simkit.trace import Entry, Told, Trace
    from simkit.world import Outcome

#: Where an event says what happened, if not by its kind alone.
_DETAILS = {"boundary": 3, "net": 1, "point": 1}
_PAIRS_MAX = 2000


def of_outcome(outcome: Outcome[Any]) -> Iterator[str]:
    """All features of one run but its edges and its disks."""
    for name, count in outcome.points.items():
        if count.held:
            yield f"point {name} on"
        if count.held < count.reached:
            yield f"point {name} off"
    for what, times in outcome.fired.items():
        if times:
            yield f"fault {folded(what)}"
    yield f"end {_ending(outcome)}"
    yield from itertools.islice(pairs(outcome.trace), _PAIRS_MAX)


def pairs(trace: Trace) -> Iterator[str]:
    """Kinds of events that are neighbours, and names of tasks whose steps are; each pair once."""
    kinds = [_kind(entry) for entry in trace.entries() if isinstance(entry, tuple)]
    for one, next_one in dict.fromkeys(itertools.pairwise(kinds)):
        yield f"pair {one} > {next_one}"
    names = {number: folded(name.rpartition(".")[2]) for number, name in trace.names.items()}
    steps = trace.steps()
    switches = dict.fromkeys(itertools.pairwise(steps))
    named = ((names.get(one, "?"), names.get(next_one, "?")) for one, next_one in switches if one != next_one)
    for one, next_one in dict.fromkeys(named):
        yield f"switch {one} > {next_one}"


def steps_at(trace: Trace, moments: Mapping[str, int]) -> dict[str, int]:
    """How many steps had been taken when the trace had so many entries, for each of `moments`."""
    counts = list(itertools.accumulate((_is_step(entry) for entry in trace.entries()), initial=0))
    return {name: counts[moment] for name, moment in moments.items()}


def _is_step(entry: Entry) -> bool:
    return type(entry) is int and entry >= 0


def _kind(told: Told) -> str:
    kind = str(told[0])
    detail = _DETAILS.get(kind, len(told))
    return kind if detail >= len(told) else f"{kind} {told[detail]}"


def _ending(outcome: Outcome[Any]) -> str:
    if outcome.bound is not None:
        return f"bound {outcome.bound}"
    return "returned" if outcome.error is None else type(outcome.error).__name__
