"""A server of the simulated event loop: accepts on the sockets of the world, a transport and a protocol for each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import trio

if TYPE_CHECKING:
    from simkit.aio.loop import SimulatedLoop
    from simkit.aio.transports import StreamTransport


class SimulatedServer(asyncio.AbstractServer):
    """What `create_server` gives.

    Args:
        loop: whose.
        sockets: that listen.
        factory: makes a protocol for each connection.
        over: makes a transport over (socket, protocol).
    """

    def __init__(
        self, loop: SimulatedLoop, sockets: list[Any], factory: Callable[[], Any], over: Callable[..., Any]
    ) -> None:
        self._loop = loop
        self._sockets = list(sockets)
        self._factory = factory
        self._over = over
        self._accepting: trio.CancelScope | None = None
        self._connections: dict[StreamTransport, None] = {}
        self._waiters: list[asyncio.Future[None]] = []
        self._forever: asyncio.Future[None] | None = None
        self._closed = False

    @property
    def sockets(self) -> tuple[Any, ...]:
        """The sockets that listen; none once it is closed."""
        return tuple(self._sockets)

    def get_loop(self) -> asyncio.AbstractEventLoop:
        """As in asyncio."""
        return self._loop

    def is_serving(self) -> bool:
        """As in asyncio."""
        return self._accepting is not None and not self._closed

    async def start_serving(self) -> None:
        """As in asyncio."""
        if self._accepting is None and not self._closed:
            self._accepting = trio.CancelScope()
            for sock in self._sockets:
                self._loop.start(lambda sock=sock: self._accept(sock), name="asyncio acceptor")

    async def serve_forever(self) -> None:
        """As in asyncio: until it is cancelled or closed."""
        if self._forever is not None:
            raise RuntimeError(f"server {self!r} is already being awaited on serve_forever()")
        if self._closed:
            raise RuntimeError(f"server {self!r} is closed")
        await self.start_serving()
        self._forever = self._loop.create_future()
        try:
            await self._forever
        except asyncio.CancelledError:
            self.close()
            await self.wait_closed()
            raise
        finally:
            self._forever = None

    async def _accept(self, sock: Any) -> None:
        assert self._accepting is not None
        with self._accepting:
            while True:
                try:
                    accepted, _ = await sock.accept()
                except (OSError, trio.ClosedResourceError):
                    return
                self._loop.within(lambda accepted=accepted: self._serve(accepted))

    def _serve(self, accepted: Any) -> None:
        try:
            self._over(accepted, self._factory(), server=self)
        except Exception as error:  # noqa: BLE001  # as asyncio does: one connection is lost, the server goes on
            accepted.close()
            self._loop.call_exception_handler({"message": "Error on accepting a connection", "exception": error})

    def attach(self, transport: StreamTransport) -> None:
        """A connection is open."""
        self._connections[transport] = None

    def detach(self, transport: StreamTransport) -> None:
        """A connection is closed."""
        self._connections.pop(transport, None)
        self._wake()

    def close(self) -> None:
        """As in asyncio: no more connections; those that are open stay."""
        if self._closed:
            return
        self.shut()
        self._loop.forget(self)
        if self._forever is not None and not self._forever.done():
            self._forever.cancel()
        self._wake()

    def drop(self) -> None:
        """The process is dead."""
        self._closed = True

    def shut(self) -> None:
        """Stop listening, whatever waits for that."""
        self._closed = True
        if self._accepting is not None:
            self._accepting.cancel()
        for sock in self._sockets:
            sock.close()
        self._sockets.clear()

    def close_clients(self) -> None:
        """Close every connection (3.13)."""
        for transport in list(self._connections):
            transport.close()

    def abort_clients(self) -> None:
        """Break every connection (3.13)."""
        for transport in list(self._connections):
            transport.abort()

    async def wait_closed(self) -> None:
        """Until it is closed and its connections are."""
        if self._closed and not self._connections:
            return
        waiter = self._loop.create_future()
        self._waiters.append(waiter)
        await waiter

    def _wake(self) -> None:
        if self._closed and not self._connections:
            waiters, self._waiters = self._waiters, []
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)
