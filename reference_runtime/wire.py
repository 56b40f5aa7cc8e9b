"""Tools over a wire: HTTP/1.1, or JSON lines where a whole HTTP exchange would only be weight.

One connection per call, on purpose: an idle connection that broke meanwhile would make an outcome unknown that never was.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable
from typing import Any, TypeVar
from urllib.parse import urlencode

import h11
import trio

from reference_runtime.model import Json
from reference_runtime.rpc import LOST, Lines
from reference_runtime.tools import BODY_BYTES_MAX, NS, Request, Unknown, Unsent, interpret

T = TypeVar("T")


class _Wire:
    def __init__(self, host: str, port: int, timeout_ns: int) -> None:
        self.host = host
        self.port = port
        self.timeout_ns = timeout_ns

    async def _connect(self) -> trio.SocketStream:
        """A fresh connection. Raises `Unsent`: as long as this has not returned, nothing has left."""
        with trio.move_on_after(self.timeout_ns / NS):
            try:
                return await trio.open_tcp_stream(self.host, self.port)
            except OSError as error:
                raise Unsent(f"{self.host}:{self.port}: {error}") from error
        raise Unsent(f"{self.host}:{self.port}: no connection within {self.timeout_ns} ns")

    async def _answer(self, exchange: Awaitable[T]) -> T:
        """What an exchange gives in time. Raises `Unknown`: something may have left."""
        with trio.move_on_after(self.timeout_ns / NS):
            try:
                return await exchange
            except (*LOST, h11.RemoteProtocolError, ValueError, KeyError, TypeError) as error:
                raise Unknown(f"no answer: {error!r}") from error
        raise Unknown(f"no answer within {self.timeout_ns} ns")


class HttpTools(_Wire):
    """`POST /<tool>` with an Idempotency-Key header where there is a key; `GET /<tool>?reference=` to look up."""

    async def call(self, request: Request) -> Json:
        body = {
            "run": request.task,
            "op": request.operation,
            "params": request.params,
            "carries": dict(request.carries),
            "script": list(request.script),
        }
        key = [] if request.key is None else [("Idempotency-Key", request.key)]
        status, answer, saved = await self._exchange("POST", f"/{request.tool}", key, json.dumps(body).encode())
        return interpret(status, answer, saved=saved)

    async def lookup(self, request: Request) -> Json | None:
        reference = urlencode({"reference": f"{request.task}:{request.operation}"})
        status, answer, saved = await self._exchange("GET", f"/{request.tool}?{reference}", [], b"")
        return None if status == 404 else interpret(status, answer, saved=saved)

    async def _exchange(
        self, method: str, path: str, headers: list[tuple[str, str]], body: bytes
    ) -> tuple[int, Any, bool]:
        async with await self._connect() as stream:
            return await self._answer(self._talk(stream, method, path, headers, body))

    async def _talk(
        self, stream: trio.SocketStream, method: str, path: str, headers: list[tuple[str, str]], body: bytes
    ) -> tuple[int, Any, bool]:
        connection = h11.Connection(h11.CLIENT)
        fixed = [("Host", f"{self.host}:{self.port}"), ("Connection", "close"), ("Content-Length", str(len(body)))]
        request = h11.Request(method=method, target=path, headers=[*fixed, *headers])
        await stream.send_all(
            (connection.send(request) or b"")
            + (connection.send(h11.Data(data=body)) or b"")
            + (connection.send(h11.EndOfMessage()) or b"")
        )
        return await _read_response(connection, stream)


async def _read_response(connection: h11.Connection, stream: trio.SocketStream) -> tuple[int, Any, bool]:
    """Status, JSON body, and whether the receiver says that it is a saved answer."""
    status, saved, body = 0, False, bytearray()
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(await stream.receive_some())
        elif isinstance(event, h11.Response):
            status = event.status_code
            saved = (b"idempotent-replayed", b"true") in [(name.lower(), value) for name, value in event.headers]
        elif isinstance(event, h11.Data):
            body += event.data
            if len(body) > BODY_BYTES_MAX:
                raise ValueError(f"an answer is at most {BODY_BYTES_MAX} bytes")
        elif isinstance(event, h11.EndOfMessage):
            return status, json.loads(bytes(body) or b"null"), saved
        elif isinstance(event, h11.ConnectionClosed) or event is h11.PAUSED:
            raise ValueError("the connection closed before the answer ended")


class LineTools(_Wire):
    """One JSON line there, one back."""

    async def call(self, request: Request) -> Json:
        status, answer, saved = await self._exchange(request, lookup=False)
        return interpret(status, answer, saved=saved)

    async def lookup(self, request: Request) -> Json | None:
        status, answer, saved = await self._exchange(request, lookup=True)
        return None if status == 404 else interpret(status, answer, saved=saved)

    async def _exchange(self, request: Request, *, lookup: bool) -> tuple[int, Any, bool]:
        async with await self._connect() as stream:
            return await self._answer(self._talk(Lines(stream), request, lookup=lookup))

    async def _talk(self, lines: Lines, request: Request, *, lookup: bool) -> tuple[int, Any, bool]:
        await lines.send(
            {
                "service": request.tool,
                "run": request.task,
                "op": request.operation,
                "key": request.key,
                "params": request.params,
                "carries": dict(request.carries),
                "script": list(request.script),
                "lookup": lookup,
            }
        )
        line = await lines.receive()
        if line is None:
            raise ValueError("the connection closed before the answer")
        answer = json.loads(line)
        return int(answer["status"]), answer.get("body"), bool(answer.get("replayed"))
