"""One end of a TCP connection: receive buffer, send window, half-close, reset. Outcomes are those of Linux.

Data that arrived before a reset stays readable; closing with unread data resets; a segment that reaches a closed end
is answered with a reset.
"""

from __future__ import annotations

import errno
import os

import trio

from simkit._network.pipe import Kind, Pipe, Wire
from simkit._network.waiter import Waiter

Address = tuple[str, int]


class Endpoint:
    """One end; `pair` makes two that face each other."""

    __slots__ = (
        "_buffer",
        "_credit",
        "_eof",
        "_error",
        "_reported",
        "_wire",
        "closed",
        "connection",
        "local",
        "out",
        "peer",
        "place",
        "reader",
        "remote",
        "shut_write",
        "vanished",
        "writer",
    )

    out: Pipe
    peer: Endpoint

    def __init__(self, wire: Wire, connection: int, place: str, local: Address, remote: Address) -> None:
        self.connection = connection
        self.place = place
        self.local = local
        self.remote = remote
        self.reader = Waiter("receiving on")
        self.writer = Waiter("sending on")
        self.closed = False
        self.shut_write = False
        #: Whether its machine lost power without telling anybody.
        self.vanished = False
        self._wire = wire
        self._buffer = bytearray()
        self._credit = 0
        self._eof = False
        self._error = 0
        self._reported = False

    @property
    def over(self) -> bool:
        """Whether this side has nothing more to do with the connection."""
        return bool(self.closed or self._error)

    # ---- the program's side

    @property
    def readable(self) -> bool:
        """Whether `read` would not block."""
        return bool(self._buffer or self._eof or self._error)

    @property
    def writable(self) -> bool:
        """Whether `write` would not block."""
        return bool(self._error or self.shut_write or self.out.space > 0)

    def read(self, size: int) -> bytes | None:
        """Return up to `size` bytes, b"" at the end, None when there is nothing yet; raise once after a reset."""
        if self._buffer:
            data = bytes(self._buffer[:size])
            del self._buffer[:size]
            self._acknowledge(len(data))
            return data
        if self._eof:  # an end of stream once seen outlives a later reset, as on Linux
            return b""
        if self._error:
            self._report()
            return b""
        return None

    def write(self, data: bytes | memoryview) -> int | None:
        """Send what the window takes and return how much; None when it is full; raise after a reset or half-close."""
        if self._error:
            self._report()
        if self._error or self.shut_write:
            raise OSError(errno.EPIPE, os.strerror(errno.EPIPE))
        size = min(len(data), self.out.space)
        if size <= 0:
            return 0 if not len(data) else None
        if self._wire.breaks(self.place, self.peer.place):
            self.break_both()
        else:
            self.out.push(Kind.DATA, bytes(data[:size]))
        return size

    def shutdown_write(self) -> None:
        """Send the end of the stream; reading goes on."""
        if not self.shut_write:
            self.shut_write = True
            if not self._error:
                self.out.push(Kind.FIN)
            self.writer.wake()

    def shutdown_read(self) -> None:
        """Read nothing more."""
        self._eof = True
        self.reader.wake()

    def close(self, *, reset: bool = False) -> None:
        """Give the end back; with unread data, or `reset`, by a reset, which drops what is unsent."""
        if self.closed:
            return
        self.closed = True
        for waiter in (self.reader, self.writer):
            waiter.fail(trio.ClosedResourceError("this socket was closed by another task"))
        if reset or self._buffer:
            self.send_reset(drop=reset)
        else:
            self.shutdown_write()
        self._done()

    def die(self, *, reset: bool, drop: bool) -> None:
        """The process is gone: its tasks never run again, the peer is told by a reset or by an end of stream.

        One that had ended its stream already has nothing left to tell; who still sends to it meets a reset then.
        """
        self.reader.forget()
        self.writer.forget()
        self.closed = True
        if (reset and not self.shut_write) or self._buffer:
            self.send_reset(drop=drop)
        else:
            self.shutdown_write()
        self._done()

    def vanish(self) -> None:
        """The machine is off: nobody is told, and what arrives finds nobody."""
        self.reader.forget()
        self.writer.forget()
        self.closed = self.vanished = True
        self._done()

    # ---- the network's side

    def deny(self) -> None:
        """Answer what arrived for a connection that the machine, back on, knows nothing of."""
        if self._wire.is_up(self.place):
            self.send_reset(drop=False)

    def send_reset(self, *, drop: bool) -> None:
        """Reset the connection; with `drop` what is still in flight is lost."""
        if self._error:
            return
        self._error = errno.ECONNRESET
        if drop:
            self.out.drop()
        self.out.push(Kind.RST)

    def break_both(self) -> None:
        """Break the connection in the middle: both ends meet a reset, everything in flight is lost."""
        for end in (self, self.peer):
            end.out.drop()
        for end in (self, self.peer):
            end.reset_received()

    def deliver(self, kind: Kind, data: bytes, count: int) -> None:
        """A segment arrived."""
        if kind is Kind.RST:
            self.reset_received()
        elif self._error == errno.ETIMEDOUT and kind is Kind.DATA:
            self.out.push(Kind.RST)  # it gave up on the connection, and says so when the peer turns up again
        elif self.closed:
            if self.vanished and not self._wire.is_up(self.place):
                if kind is not Kind.ACK:
                    self._wire.unanswered(self)
            elif kind is Kind.DATA or self.vanished:
                self.send_reset(drop=False)
        elif kind is Kind.DATA:
            self._buffer += data
            self.reader.wake()
        elif kind is Kind.FIN:
            self._eof = True
            self.reader.wake()
        else:
            self.out.unacked -= count
            self.writer.wake()

    def reset_received(self, error: int = errno.ECONNRESET) -> None:
        """The peer reset the connection, or did not answer for too long."""
        if self._error:
            return
        self._error = errno.EPIPE if self._eof else error
        self._wire.note("reset", self.connection, self.peer.place, self.place, 0)
        self.out.drop()
        self.reader.wake()
        self.writer.wake()
        self._done()

    def _report(self) -> None:
        """Raise what broke the connection, once: after that Linux says end of stream to readers and EPIPE to writers."""
        if not self._reported:
            self._reported = True
            raise OSError(self._error, os.strerror(self._error))

    def _acknowledge(self, count: int) -> None:
        """Tell the sender of room, a quarter of the window at a time."""
        self._credit += count
        if self._credit * 4 >= self._wire.buffer_bytes and not self._error:
            self.out.push(Kind.ACK, count=self._credit)
            self._credit = 0

    def _done(self) -> None:
        if self.over and self.peer.over:
            self._wire.forget(self.connection)


def pair(
    wire: Wire, connection: int, client: tuple[str, Address], server: tuple[str, Address]
) -> tuple[Endpoint, Endpoint]:
    """Return the two ends of a new connection; each argument is a host's name and a local address."""
    near = Endpoint(wire, connection, client[0], client[1], server[1])
    far = Endpoint(wire, connection, server[0], server[1], client[1])
    near.peer, far.peer = far, near
    near.out = Pipe(wire, connection, client[0], server[0], far.deliver)
    far.out = Pipe(wire, connection, server[0], client[0], near.deliver)
    return near, far
