"""Who waits for work: requests that found none, and are served by the very transaction that makes some for them.

Without this a request would be woken after that transaction, and lease what there is in one of its own: two commits where one
says the same. What is leased here is what the request itself would lease, and is told only after the commit.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from typing import Generic, Protocol, TypeVar

import attrs
import trio


class Leased(Protocol):
    """What can be leased."""

    @property
    def generation(self) -> int: ...


Lease = TypeVar("Lease", bound=Leased)


@attrs.define(eq=False)
class Waiting(Generic[Lease]):
    """One request: how it leases what there is, and what was leased to it while it waited."""

    execution: str
    take: Callable[[], list[Lease]]
    leases: list[Lease] = attrs.field(factory=list)
    _woken: trio.Event = attrs.field(factory=trio.Event)

    def look(self) -> list[Lease]:
        """What was leased to it, else what it can lease now."""
        return self.leases or self.take()

    async def woken(self) -> None:
        """Wait until there may be something, or something was leased."""
        self._woken = trio.Event()
        await self._woken.wait()

    def wake(self) -> None:
        self._woken.set()


@attrs.define(eq=False)
class WaitingRoom(Generic[Lease]):
    """The requests that wait, in the order in which they came."""

    _waiting: dict[Waiting[Lease], None] = attrs.field(factory=dict)

    def __len__(self) -> int:
        """How many requests wait."""
        return len(self._waiting)

    @contextmanager
    def waits(self, execution: str, take: Callable[[], list[Lease]]) -> Iterator[Waiting[Lease]]:
        """For as long as a request waits."""
        waiting = Waiting(execution, take)
        self._waiting[waiting] = None
        try:
            yield waiting
        finally:
            del self._waiting[waiting]

    def wake(self) -> None:
        """Have everybody look again."""
        for waiting in self._waiting:
            waiting.wake()

    def take(self) -> dict[Waiting[Lease], list[Lease]]:
        """Lease to those who wait, in the transaction under way; who has been leased something has had its turn."""
        taken = {waiting: waiting.take() for waiting in self._waiting if not waiting.leases}
        return {waiting: leases for waiting, leases in taken.items() if leases}


def leased(taken: dict[Waiting[Lease], list[Lease]]) -> list[tuple[int, str]]:
    """What was leased to those who waited: generations and the executions that hold them."""
    return [(lease.generation, waiting.execution) for waiting, leases in taken.items() for lease in leases]


def give(taken: dict[Waiting[Lease], list[Lease]], held: Container[int]) -> list[tuple[int, str]]:
    """Tell those who waited what they were leased, now that it is durable, as `leased` gives it; but for what is not `held` any
    more, as it was given back or taken by force before that.
    """
    kept = {waiting: [one for one in leases if one.generation in held] for waiting, leases in taken.items()}
    for waiting, leases in kept.items():
        waiting.leases = leases
        waiting.wake()
    return leased(kept)
