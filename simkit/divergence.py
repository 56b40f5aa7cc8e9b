"""Where a replay left the recorded run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from simkit.trace import Event, Trace, first_difference

if TYPE_CHECKING:
    from simkit.case import Case
    from simkit.strategy import ReplayDivergedError

_SHOWN_MAX = 5


@attrs.frozen
class Divergence:
    """The first event that differs is one of `first` … `last`, both included, numbered as in the trace."""

    first: int
    last: int
    recorded: str = ""  # what was recorded there, as far as the case knows
    replayed: tuple[Event, ...] = ()  # what the replay has there
    note: str = ""

    @property
    def exact(self) -> bool:
        """Whether it is known to one event."""
        return self.first == self.last

    @property
    def where(self) -> str:
        """In words."""
        return f"at event {self.last}" if self.exact else f"between events {self.first} and {self.last}"

    def __str__(self) -> str:
        parts = [f"recorded {self.recorded}"] if self.recorded else []
        if self.replayed:
            shown = "; ".join(map(str, self.replayed[:_SHOWN_MAX]))
            more = len(self.replayed) - _SHOWN_MAX
            parts.append(f"the replay has {shown}" + (f"; and {more} more" if more > 0 else ""))
        if self.note:
            parts.append(self.note)
        return self.where + (": " if parts else "") + "; ".join(parts)


def by_schedule(case: Case, error: ReplayDivergedError, trace: Trace) -> Divergence:
    """The task that took a step can not take it: known to the event, unless the ladder shows an earlier difference."""
    at = len(trace)
    window = None if case.ladder is None else case.ladder.window(trace)
    if window is not None and window[1] < at:
        return _within(window, trace, note=f"it can be followed as far as event {at}: {error.got}")
    return Divergence(at, at, error.expected, note=f"replayed {error.got}")


def by_digest(case: Case, trace: Trace, second: Trace) -> Divergence | None:
    """Every step could be taken, yet something else was told on the way. `second` is of another run on this machine."""
    window = None if case.ladder is None else case.ladder.window(trace)
    difference = first_difference(trace, second)
    if difference is not None and (window is None or window[0] <= difference.index <= window[1]):
        at = difference.index
        note = f"a second replay has {difference.right or 'ended'}: the program does not repeat itself here"
        return Divergence(at, at, replayed=() if difference.left is None else (difference.left,), note=note)
    if window is None:
        return None
    return _within(window, trace)


def _within(window: tuple[int, int], trace: Trace, note: str = "") -> Divergence:
    """What the replay has in the window. All its steps are the recorded ones, so that what is told between them differs."""
    first, last = window
    events = [event for event in trace.events(first) if event.index <= last]
    told = [event for event in events if event.kind != "step"] if first != last else events
    return Divergence(first, last, replayed=tuple(told or events), note=note)
