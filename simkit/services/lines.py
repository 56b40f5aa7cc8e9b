r"""The simulated wire: one request per line, one reply per line, JSON, on any trio stream.

    request   {"service", "run", "op", …}\n     the fields of `simkit.services.contracts.Request`; what is left out is not said
    reply     {"status", "body", "replayed"}\n

A credential is the field `secret`; how long to wait after 429 and 529 is the body's `retry_after_ns`. A reply that is cut
is the first half of its line, and then the end of the connection.

A connection carries one request after the other. `LineReader` cuts a stream into bounded lines, for this wire and for
the kit's side of the adapter protocol alike; `abort` makes a peer see a reset.
"""

from __future__ import annotations

import contextlib
import json
import socket
import struct
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import attrs
import trio
import trio.abc

from simkit.errors import Problem
from simkit.services.contracts import (
    BODY_BYTES_MAX,
    BadRequestError,
    Reply,
    Request,
    bad_request,
    unreadable,
)
from simkit.services.passage import Gate, Outside
from simkit.services.requests import load_json, parse_request

#: Told which worker incarnation sent what could not be read: a fault of the adapter, not of the harness.
ProblemSink: TypeAlias = Callable[[int, Problem], None]

_RECEIVE_BYTES: Final = 65_536


class LineTooLongError(ValueError):
    """A line went over its bound before it ended; `start` is how it began."""

    def __init__(self, start: bytes, bytes_max: int) -> None:
        super().__init__(start, bytes_max)
        self.start = start
        self.bytes_max = bytes_max

    def __str__(self) -> str:
        return f"a line over {self.bytes_max} bytes, beginning {self.start[:80]!r}"


class LineReader:
    """Cuts a receive stream into lines of at most `bytes_max` bytes, without their ends.

    A `read` that is cancelled loses nothing: what had arrived is kept for the next one.
    """

    def __init__(self, stream: trio.abc.ReceiveStream, bytes_max: int) -> None:
        self._stream = stream
        self._bytes_max = bytes_max
        self._buffer = bytearray()
        self._searched = 0

    @property
    def rest(self) -> bytes:
        """What arrived after the last whole line: after the end of the stream, a line that was cut off."""
        return bytes(self._buffer)

    async def read(self) -> bytes | None:
        """The next whole line, None at the end of the stream.

        Raises `LineTooLongError`, and what the stream raises when it is broken.
        """
        while (end := self._buffer.find(b"\n", self._searched)) < 0:
            self._searched = len(self._buffer)
            if self._searched > self._bytes_max:
                break
            chunk = await self._stream.receive_some(_RECEIVE_BYTES)
            if not chunk:
                return None
            self._buffer += chunk
        if end < 0 or end > self._bytes_max:
            raise LineTooLongError(bytes(self._buffer[:200]), self._bytes_max)
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        self._searched = 0
        return line


async def abort(stream: trio.abc.AsyncResource) -> None:
    """Break a connection so that the peer sees a reset (a stream that is no socket is closed forcefully)."""
    if isinstance(stream, trio.SocketStream):
        with contextlib.suppress(OSError, trio.ClosedResourceError):  # closed by somebody else already
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        stream.socket.close()
    else:
        await trio.aclose_forcefully(stream)


async def swallow(stream: trio.abc.ReceiveStream) -> None:
    """Keep a connection open without ever answering, until the peer gives up."""
    while await stream.receive_some(_RECEIVE_BYTES):
        pass


def encode(request: Request) -> bytes:
    """A request as a line of this wire."""
    return _line({**attrs.asdict(request), "script": list(request.script)})


async def serve_connection(
    stream: trio.abc.Stream, outside: Outside, gate: Gate, incarnation: int, on_problem: ProblemSink
) -> None:
    """Serve one connection of worker `incarnation` until either side is done with it."""
    async with stream:
        await _serve_open(stream, outside, gate, incarnation, on_problem)


async def _serve_open(
    stream: trio.abc.Stream, outside: Outside, gate: Gate, incarnation: int, on_problem: ProblemSink
) -> None:
    try:
        await _converse(stream, outside, gate, incarnation, on_problem)
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        return  # the caller died or hung up; what it asked for has happened or not, as recorded


async def serve_lines(
    listeners: Sequence[trio.abc.Listener[trio.SocketStream]],
    outside: Outside,
    gate: Gate,
    incarnation: int | Callable[[trio.SocketStream], int],
    on_problem: ProblemSink,
    *,
    task_status: trio.TaskStatus[Sequence[trio.abc.Listener[trio.SocketStream]]] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve every connection `listeners` accept, until cancelled.

    `incarnation` is the worker all of them belong to, or tells it from a connection.
    """

    async def handle(stream: trio.SocketStream) -> None:
        number = incarnation(stream) if callable(incarnation) else incarnation
        await _serve_open(stream, outside, gate, number, on_problem)  # who accepted it closes it

    await trio.serve_listeners(handle, list(listeners), task_status=task_status)


async def _converse(
    stream: trio.abc.Stream, outside: Outside, gate: Gate, incarnation: int, on_problem: ProblemSink
) -> None:
    reader = LineReader(stream, BODY_BYTES_MAX)
    fate = "sent"
    while fate == "sent":
        channel = _LineChannel(stream)
        try:
            if (line := await reader.read()) is None:
                return
            request = parse_request(load_json(line, field="line"))
        except (BadRequestError, LineTooLongError) as error:
            bad = error if isinstance(error, BadRequestError) else BadRequestError("line", str(error))
            on_problem(incarnation, unreadable(bad, f"worker #{incarnation}, simulated wire"))
            await channel.send(bad_request(bad))
            if isinstance(error, LineTooLongError):
                return
            continue
        await outside.serve(request, incarnation, gate, channel)
        fate = channel.fate
    if fate == "dropped":
        await swallow(stream)


@attrs.define
class _LineChannel:
    """`fate` says how the request ended; `open` when the caller was gone before it got anything."""

    stream: trio.abc.Stream
    fate: str = "open"

    async def send(self, reply: Reply) -> None:
        self.fate = "sent"
        await self._send_all(_reply_line(reply))

    async def cut(self, reply: Reply) -> None:
        self.fate = "cut"
        line = _reply_line(reply)
        await self._send_all(line[: len(line) // 2])

    async def reset(self) -> None:
        self.fate = "reset"
        await abort(self.stream)

    async def drop(self) -> None:
        self.fate = "dropped"

    async def _send_all(self, data: bytes) -> None:
        try:
            await self.stream.send_all(data)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self.fate = "open"


def _reply_line(reply: Reply) -> bytes:
    return _line({"status": reply.status, "body": reply.body, "replayed": reply.kind == "saved"})


def _line(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode("ascii") + b"\n"
