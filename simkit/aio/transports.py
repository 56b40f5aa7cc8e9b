"""A stream transport over a simulated socket: writes at once what the window takes, buffers the rest, tells when to pause."""

from __future__ import annotations

import asyncio
import errno
import socket as stdlib_socket
from asyncio import protocols, transports
from typing import TYPE_CHECKING, Any

import trio

if TYPE_CHECKING:
    from simkit.aio.loop import SimulatedLoop
    from simkit.aio.servers import SimulatedServer

_RECEIVE_BYTES = 256 * 1024


class StreamTransport(transports._FlowControlMixin, asyncio.Transport):
    """One end of a connection.

    Args:
        loop: whose.
        sock: a connected socket of the simulation.
        protocol: who is told.
        waiter: done once the protocol knows of the connection.
        server: which accepted it.
    """

    _start_tls_compatible = True

    def __init__(
        self,
        loop: SimulatedLoop,
        sock: Any,
        protocol: Any,
        waiter: asyncio.Future[None] | None = None,
        server: SimulatedServer | None = None,
    ) -> None:
        super().__init__({"socket": sock, "sockname": sock.getsockname(), "peername": _peer(sock)}, loop)
        self._loop = loop
        self._sock = sock
        self._server = server
        self._buffer = bytearray()
        self._closing = self._eof = self._draining = self._paused = False
        self._lost = False
        self._resumed = trio.Event()
        self._reading = trio.CancelScope()
        self.set_protocol(protocol)
        loop.opened(self)
        if server is not None:
            server.attach(self)
        loop.call_soon(protocol.connection_made, self)
        loop.call_soon(self._begin_reading)
        if waiter is not None:
            loop.call_soon(_done, waiter)

    # ---- the protocol

    def set_protocol(self, protocol: Any) -> None:
        """As in asyncio."""
        self._protocol = protocol
        self._is_buffered = isinstance(protocol, asyncio.BufferedProtocol)

    def get_protocol(self) -> Any:
        """As in asyncio."""
        return self._protocol

    # ---- reading

    def _begin_reading(self) -> None:
        self._loop.start(self._read, name="asyncio reader")

    async def _read(self) -> None:
        with self._reading:
            while True:
                try:
                    data = await self._sock.recv(_RECEIVE_BYTES)
                except trio.ClosedResourceError:
                    return
                except OSError as error:
                    self._loop.within(lambda error=error: self._fail(error))
                    return
                while self._paused:
                    await self._resumed.wait()
                if not self._loop.within(lambda data=data: self._deliver(data)):
                    return

    def _deliver(self, data: bytes) -> bool:
        """Hand on what has come; say whether to go on reading."""
        if self._closing:
            return False
        try:
            if not data:
                if not self._protocol.eof_received():
                    self.close()
                return False
            if self._is_buffered:
                protocols._feed_data_to_buffered_proto(self._protocol, data)
            else:
                self._protocol.data_received(data)
        except (SystemExit, KeyboardInterrupt) as leaving:
            self._loop.end_with(leaving)
            return False
        except BaseException as error:  # noqa: BLE001  # as asyncio's own transports do
            self._fatal_error(error, "Fatal error: protocol.data_received() call failed.")
            return False
        return True

    def is_reading(self) -> bool:
        """As in asyncio."""
        return not self._paused and not self._closing

    def pause_reading(self) -> None:
        """As in asyncio."""
        if not self._paused and not self._closing:
            self._paused = True
            self._resumed = trio.Event()

    def resume_reading(self) -> None:
        """As in asyncio."""
        if self._paused:
            self._paused = False
            self._resumed.set()

    # ---- writing

    def write(self, data: Any) -> None:
        """As in asyncio."""
        if not isinstance(data, bytes | bytearray | memoryview):
            raise TypeError(f"data argument must be a bytes-like object, not {type(data).__name__!r}")
        if self._eof:
            raise RuntimeError("Cannot call write() after write_eof()")
        if not data or self._lost:
            return
        if not self._buffer:
            try:
                data = memoryview(data)[self._sock.send_now(data) :]
            except OSError as error:
                self._fail(error)
                return
        if data:
            self._buffer.extend(data)
            self._maybe_pause_protocol()
            self._begin_draining()

    def writelines(self, list_of_data: Any) -> None:
        """As in asyncio."""
        self.write(b"".join(list_of_data))

    def _begin_draining(self) -> None:
        if not self._draining:
            self._draining = True
            self._loop.start(self._drain, name="asyncio writer")

    async def _drain(self) -> None:
        try:
            while self._buffer:
                await self._sock.wait_writable()
                sent = self._sock.send_now(bytes(self._buffer))
                del self._buffer[:sent]
                self._loop.within(self._maybe_resume_protocol)
        except trio.ClosedResourceError:
            return
        except OSError as error:
            self._loop.within(lambda error=error: self._fail(error))
            return
        finally:
            self._draining = False
        self._loop.within(self._drained)

    def _drained(self) -> None:
        if self._closing:
            self._call_connection_lost(None)
        elif self._eof:
            self._shut_write()

    def write_eof(self) -> None:
        """As in asyncio."""
        if not self._closing and not self._eof:
            self._eof = True
            if not self._buffer:
                self._shut_write()

    def _shut_write(self) -> None:
        try:
            self._sock.shutdown(stdlib_socket.SHUT_WR)
        except OSError as error:
            self._fail(error)

    def can_write_eof(self) -> bool:
        """As in asyncio."""
        return True

    def get_write_buffer_size(self) -> int:
        """As in asyncio."""
        return len(self._buffer)

    # ---- the end

    def is_closing(self) -> bool:
        """As in asyncio."""
        return self._closing

    def close(self) -> None:
        """As in asyncio: what is buffered is sent first."""
        if not self._closing:
            self._closing = True
            self._reading.cancel()
            if not self._buffer:
                self._loop.call_soon(self._call_connection_lost, None)

    def abort(self) -> None:
        """As in asyncio: what is buffered is lost."""
        self._force_close(None)

    def drop(self) -> None:
        """The process is dead."""
        self._closing = self._lost = True

    def shut(self) -> None:
        """The program is over."""
        self._closing = self._lost = True
        self._sock.close()

    def _fail(self, error: OSError) -> None:
        self._fatal_error(error, "Fatal read or write error on socket transport")

    def _fatal_error(self, error: BaseException, message: str = "Fatal error on transport") -> None:
        """asyncio's sslproto calls this too."""
        if not isinstance(error, OSError):
            context = {"message": message, "exception": error, "transport": self, "protocol": self._protocol}
            self._loop.call_exception_handler(context)
        self._force_close(error)

    def _force_close(self, error: BaseException | None) -> None:
        if self._lost:
            return
        self._buffer.clear()
        self._closing = self._lost = True
        self._reading.cancel()
        self._loop.call_soon(self._call_connection_lost, error)

    def _call_connection_lost(self, error: BaseException | None) -> None:
        self._lost = True
        try:
            self._protocol.connection_lost(error)
        finally:
            if isinstance(error, OSError) and error.errno == errno.ECONNABORTED:
                self._sock.abort()
            self._sock.close()
            self._loop.forget(self)
            server, self._server = self._server, None
            if server is not None:
                server.detach(self)


def _peer(sock: Any) -> Any:
    try:
        return sock.getpeername()
    except OSError:
        return None


def _done(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
