"""A datagram transport over a simulated UDP socket."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import trio

if TYPE_CHECKING:
    from simkit.aio.loop import SimulatedLoop

_DATAGRAM_BYTES_MAX = 64 * 1024


class DatagramTransport(asyncio.DatagramTransport):
    """One UDP socket; `remote` is where it is connected to, if it is."""

    def __init__(
        self, loop: SimulatedLoop, sock: Any, protocol: Any, remote: Any, waiter: asyncio.Future[None]
    ) -> None:
        super().__init__({"socket": sock, "sockname": sock.getsockname(), "peername": remote})
        self._loop = loop
        self._sock = sock
        self._protocol = protocol
        self._remote = remote
        self._closing = False
        self._reading = trio.CancelScope()
        loop.opened(self)
        loop.call_soon(protocol.connection_made, self)
        loop.call_soon(lambda: loop.start(self._read, name="asyncio datagram reader"))
        loop.call_soon(lambda: None if waiter.done() else waiter.set_result(None))

    async def _read(self) -> None:
        with self._reading:
            while True:
                try:
                    data, source = await self._sock.recvfrom(_DATAGRAM_BYTES_MAX)
                except trio.ClosedResourceError:
                    return
                except OSError as error:
                    if self._closing:
                        return
                    self._loop.within(lambda error=error: self._protocol.error_received(error))
                    continue
                self._loop.within(lambda data=data, source=source: self._protocol.datagram_received(data, source))

    def sendto(self, data: Any, addr: Any = None) -> None:
        """As in asyncio: it is sent, or lost."""
        if self._remote is not None and addr not in (None, self._remote):
            raise ValueError(f"Invalid address: must be None or {self._remote}")
        if not self._closing:
            payload = bytes(data)
            self._loop.start(lambda: self._send(payload, addr), name="asyncio datagram writer")

    async def _send(self, data: bytes, addr: Any) -> None:
        try:
            if self._remote is None:
                await self._sock.sendto(data, addr)
            else:
                await self._sock.send(data)
        except OSError as error:
            if not self._closing:
                self._loop.within(lambda error=error: self._protocol.error_received(error))

    def get_write_buffer_size(self) -> int:
        """Nothing is buffered."""
        return 0

    def is_closing(self) -> bool:
        """As in asyncio."""
        return self._closing

    def close(self) -> None:
        """As in asyncio."""
        if not self._closing:
            self._closing = True
            self._reading.cancel()
            self._loop.call_soon(self._lost)

    abort = close

    def drop(self) -> None:
        """The process is dead."""
        self._closing = True

    def shut(self) -> None:
        """The program is over."""
        self._closing = True
        self._sock.close()

    def _lost(self) -> None:
        self._loop.forget(self)
        try:
            self._protocol.connection_lost(None)
        finally:
            self._sock.close()
