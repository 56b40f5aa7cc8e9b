"""A listening port: connections wait here, ready, until the program accepts them."""

from __future__ import annotations

import collections
from collections.abc import Callable

import trio

from simkit._network.endpoint import Address, Endpoint
from simkit._network.waiter import Waiter


class Listener:
    """The accept queue of one port of one host."""

    def __init__(self, place: str, local: Address, backlog: int, forget: Callable[[Listener], None]) -> None:
        self.place = place
        self.local = local
        self.queue: collections.deque[Endpoint] = collections.deque()
        self._backlog = backlog
        self._forget = forget
        self._waiter = Waiter("accepting on")

    @property
    def full(self) -> bool:
        """Whether a new connection has to try again later: as on Linux, one more than the backlog may wait."""
        return len(self.queue) > self._backlog

    def offer(self, end: Endpoint) -> None:
        """Queue a new connection."""
        self.queue.append(end)
        self._waiter.wake()

    async def next(self) -> Endpoint:
        """Wait for a connection."""
        while not self.queue:
            await self._waiter.wait()
        return self.queue.popleft()

    def close(self) -> None:
        """Stop listening; connections not accepted are reset."""
        self._waiter.fail(trio.ClosedResourceError("this socket was closed by another task"))
        self._stop()

    def die(self, *, silent: bool = False) -> None:
        """The process is gone: as `close`, and nobody is told; `silent`, nor are those whose connections wait here."""
        self._waiter.forget()
        self._stop(silent=silent)

    def _stop(self, *, silent: bool = False) -> None:
        self._forget(self)
        while self.queue:
            end = self.queue.popleft()
            if silent:
                end.vanish()
            else:
                end.close(reset=True)
