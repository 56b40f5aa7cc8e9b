"""Presence: which executions are there to be given work, by the monotonic clock.

Who asks for work is there while it is asking, and a term longer: it may be at work with what it was given, or on its way
back after its connection broke. Who is heard of otherwise is there for a term from then. Who says that it leaves is gone, also
where it was still asking: nobody hears the answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import attrs
import trio


@attrs.define(eq=False)
class Presence:
    """Executions, each with the moment until which it counts as there; `term_s` in seconds."""

    term_s: float
    _until: dict[str, float] = attrs.field(factory=dict)
    _asking: dict[str, int] = attrs.field(factory=dict)
    _left: dict[str, float] = attrs.field(factory=dict)  # and until when something of it may still be on its way

    @contextmanager
    def asking(self, execution: str) -> Iterator[None]:
        """For as long as an execution asks for work."""
        self._asking[execution] = self._asking.get(execution, 0) + 1
        try:
            yield
        finally:
            self._asking[execution] -= 1
            self.heard(execution)

    def heard(self, execution: str) -> None:
        """An execution has given a sign of life."""
        if execution not in self._left:
            self._until[execution] = trio.current_time() + self.term_s

    def leave(self, execution: str) -> None:
        """An execution has said that it is over."""
        self._until.pop(execution, None)
        self._left[execution] = trio.current_time() + self.term_s

    def has_left(self, execution: str) -> bool:
        """Whether an execution has said that it is over."""
        return execution in self._left

    def there(self) -> list[str]:
        """Who is there now; who is gone is forgotten."""
        now = trio.current_time()
        self._left = {one: until for one, until in self._left.items() if until > now or one in self._asking}
        self._asking = {one: count for one, count in self._asking.items() if count > 0}
        self._until = {one: until for one, until in self._until.items() if until > now or one in self._asking}
        return sorted({*self._until, *self._asking} - self._left.keys())

    def heard_s(self) -> dict[str, float]:
        """Of who is there now, how many seconds ago that was heard of; who is asking is heard of all the time."""
        now = trio.current_time()
        return {one: 0.0 if self._asking.get(one) else now - (self._until[one] - self.term_s) for one in self.there()}


@attrs.define(eq=False)
class Runners:
    """Which workflows are run by those who ask for turns. Each is there as with `Presence`, by `presence`, which is of these
    alone: work of other kinds is asked for by who runs no workflow at all.
    """

    presence: Presence
    _names: dict[str, frozenset[str]] = attrs.field(factory=dict)

    @contextmanager
    def asking(self, execution: str, names: Iterable[str]) -> Iterator[None]:
        """For as long as an execution asks for turns of the workflows of these names."""
        self.names()  # so that who is gone is forgotten, whether or not anybody wants to know
        self._names[execution] = frozenset(names)
        with self.presence.asking(execution):
            yield

    def heard(self, execution: str) -> None:
        """An execution has given a sign of life: it may be at work with its turns, and ask for no more meanwhile."""
        if execution in self._names:
            self.presence.heard(execution)

    def leave(self, execution: str) -> None:
        """An execution has said that it is over."""
        if execution in self._names:
            self.presence.leave(execution)

    def by_execution(self) -> dict[str, frozenset[str]]:
        """The names of the workflows that each who is there runs; who is gone is forgotten."""
        self._names = {one: self._names[one] for one in self.presence.there() if one in self._names}
        return self._names

    def names(self) -> frozenset[str]:
        """The names of the workflows that somebody who is there runs."""
        return frozenset[str]().union(*self.by_execution().values())
