"""One attempt to connect: SYN there, answer back, refused, unreachable or timed out."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

import trio

from simkit._network.endpoint import Address, Endpoint, pair
from simkit._network.waiter import Waiter

if TYPE_CHECKING:
    from simkit.network import Network

#: A SYN that met a full accept queue is sent again after this long, as Linux does.
SYN_RETRY_NS = 1_000_000_000


class Attempt:
    """A connection being made; `outcome()` waits for it."""

    def __init__(self, network: Network, source: tuple[str, Address], target: tuple[str, Address]) -> None:
        self._network = network
        self._source = source
        self._target = target
        self._waiter = Waiter("connecting")
        self._end: Endpoint | None = None
        self._error = 0
        self._given_up = False
        self._deadline = network.call_later(network.options.connect_timeout_ns, lambda: self._fail(errno.ETIMEDOUT))
        self._travel(there=True, then=self._arrive)

    async def outcome(self) -> Endpoint:
        """Return the connected end, or raise what connect(2) would."""
        try:
            while self._end is None:
                if self._error:
                    where = f"{self._target[1][0]}:{self._target[1][1]}"
                    raise OSError(self._error, f"{os.strerror(self._error)}: {where}")
                await self._waiter.wait()
        finally:
            self._deadline.cancel()
            self._given_up = self._end is None
        return self._end

    def forget_task(self) -> None:
        """The process is gone: who waited never runs again."""
        self._waiter.forget()

    def abandon(self) -> None:
        """The socket is gone; a connection already made is reset."""
        self._waiter.fail(trio.ClosedResourceError("this socket was closed by another task"))
        self._given_up = True
        self._deadline.cancel()
        if self._end is not None:
            self._drop(self._end)

    def _arrive(self) -> None:
        """The SYN is at the target. Nobody there hears of a connection whose client gave up, or gets no answer yet: what
        waits to be accepted has shaken hands. The client sends its SYN again once the answer can come through.
        """
        source, target = self._source[0], self._target[0]
        if self._given_up or self._error:
            return
        if not self._network.is_up(target) or self._network.loses_syn(source, target):
            self._try_again()
            return
        listener = self._network.listener(target, self._target[1])
        if listener is None:
            self._travel(there=False, then=lambda: self._fail(errno.ECONNREFUSED))
        elif listener.full:
            self._try_again()
        elif self._network.is_held_up(target, source):
            self._travel(there=False, then=lambda: self._travel(there=True, then=self._arrive))
        else:
            connection = self._network.next_connection()
            near, far = pair(self._network, connection, self._source, (self._target[0], self._target[1]))
            self._network.connections[connection] = near
            listener.offer(far)
            self._travel(there=False, then=lambda: self._established(near))

    def _try_again(self) -> None:
        if not self._given_up and not self._error:
            self._network.call_later(SYN_RETRY_NS, lambda: self._travel(there=True, then=self._arrive))

    def _established(self, near: Endpoint) -> None:
        if self._given_up or self._error:
            self._drop(near)
            return
        self._network.note("connect", near.connection, near.place, near.peer.place, 0)
        self._end = near
        self._waiter.wake()

    def _drop(self, near: Endpoint) -> None:
        """Nobody wants the connection any more; a machine that is off does not even say so."""
        if self._network.is_up(near.place):
            near.close(reset=True)
        else:
            near.vanish()

    def _fail(self, error: int) -> None:
        if self._end is None and not self._error:
            self._error = error
            self._waiter.wake()

    def _travel(self, *, there: bool, then: Callable[[], object]) -> None:
        source, target = (self._source[0], self._target[0])
        if not there:
            source, target = target, source
        self._network.post(source, target, then)
