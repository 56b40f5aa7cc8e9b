"""Connections: how many there may be, what is read from them and sent, and when one is given up.

A server has only so many descriptors, and only so much memory for lines that are half read or half sent. So one connection too
many is refused in words, and a peer that stays in the midst of a line for too long is let go.
"""

from __future__ import annotations

import resource
import socket
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import suppress

import trio

from reference_runtime.log import OFF, Log
from reference_runtime.model import Json, Refusal
from reference_runtime.rpc import CROWDED, LOST, Lines

NS = 1_000_000_000
CONNECTIONS_MAX = 1_000
#: How long a peer may take for a line, or for a piece of an answer.
STALL_NS = 30 * NS
#: How long one that was refused has to read why, and how many are waited for at a time.
FAREWELL_S = 1
FAREWELLS_MAX = 32
#: Descriptors that are for something else: the store's files, modules, pipes, and connections that are being refused.
DESCRIPTORS_KEPT = 32 + FAREWELLS_MAX
#: Seconds of silence before the first question, between questions, and how many go unanswered.
KEEPALIVE: Mapping[str, int] = {"TCP_KEEPIDLE": 60, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 4}


def descriptors_for(connections: int) -> int:
    """How many connections, of so many, this process has descriptors for, once its limit on them is as high as it may be."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + DESCRIPTORS_KEPT
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return max(1, min(wanted, soft) - DESCRIPTORS_KEPT) if soft != resource.RLIM_INFINITY else connections


def keep_alive(listeners: Sequence[trio.SocketListener]) -> None:
    """Have the system ask of connections that are silent whether their peers are still there: those who vanished without a word
    would be counted for ever. What is accepted has the options of what it came through.
    """
    for listener in listeners:
        listener.socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in KEEPALIVE.items():
            if hasattr(socket, name):  # not on every system
                listener.socket.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


class Connections:
    """The open ones, at most `connections_max`; the log is told of those that are refused or given up."""

    def __init__(self, connections_max: int = CONNECTIONS_MAX, *, stall_ns: int = STALL_NS, log: Log = OFF) -> None:
        self.connections_max = connections_max
        self.stall_ns = stall_ns
        self.log = log
        self._open: dict[Lines, None] = {}
        self._leaving = 0
        self._is_told = False  # of a time in which there are too many

    def enter(self, lines: Lines) -> bool:
        """Count a connection in; False for one too many."""
        if len(self._open) >= self.connections_max:
            return False
        self._open[lines] = None
        return True

    def leave(self, lines: Lines) -> None:
        """Count a connection out."""
        del self._open[lines]
        self._is_told = False

    async def refuse(self, lines: Lines) -> None:
        """Tell a peer that there is no room, and wait a moment for it to read that."""
        if not self._is_told:
            self._is_told = True
            self.log("refusing-connections", open=len(self._open))
        no = Refusal(CROWDED, f"{self.connections_max} connections are open; try again when some have ended")
        with suppress(*LOST), trio.move_on_after(FAREWELL_S):
            await lines.send(denial(None, no))
            if self._leaving < FAREWELLS_MAX:
                await self._see_off(lines)

    async def _see_off(self, lines: Lines) -> None:
        """Wait until a peer has hung up: to close with something unread would take back what was sent."""
        self._leaving += 1
        try:
            if isinstance(lines.stream, trio.abc.HalfCloseableStream):
                await lines.stream.send_eof()
            await lines.until_end()
        finally:
            self._leaving -= 1

    def excuse(self) -> None:
        """Begin everybody's time anew: it was this server that did not read."""
        for lines in self._open:
            if lines.since is not None:
                lines.since = trio.current_time()

    async def drop_stalled(self) -> None:
        """Close connections whose peer has been in the midst of a line for too long."""
        if not self._open:
            return
        too_long = trio.current_time() - self.stall_ns / NS
        for lines in [one for one in self._open if one.since is not None and one.since <= too_long]:
            self.log("dropped-connection", peer=_peer(lines), reason="stalled", seconds=round(self.stall_ns / NS, 3))
            await trio.aclose_forcefully(lines.stream)


def _peer(lines: Lines) -> str:
    with suppress(AttributeError, OSError):
        host, port = lines.stream.socket.getpeername()[:2]  # type: ignore[attr-defined]  # of a socket's stream
        return f"{host}:{port}"
    return "unknown"


def denial(id_: int | None, no: Refusal) -> Json:
    """A refusal as an answer."""
    return {"id": id_, "error": {"code": no.code, "message": no.message}}


async def next_request(lines: Lines) -> bytes | None:
    """The next request; None when the connection is gone, or nothing more can be read from it, which is said."""
    try:
        return await lines.receive()
    except LOST:
        return None
    except ValueError as error:
        with suppress(*LOST):
            await lines.send(denial(None, Refusal("too-large", str(error))))
        return None


async def send_answer(lines: Lines, answer: Json) -> None:
    """Send an answer, or that it is too long to be one. Raises as a stream does."""
    try:
        await lines.send(answer)
    except Refusal as no:
        await lines.send(denial(answer["id"], no))


async def while_there(lines: Lines, answered: Awaitable[Json]) -> Json | None:
    """An answer that takes its time; None, and it is given up, when the connection is gone before."""

    async def watch() -> None:
        with suppress(*LOST):
            await lines.until_end()
        nursery.cancel_scope.cancel()

    answer: Json | None = None
    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch)
        answer = await answered
        nursery.cancel_scope.cancel()
    return answer
