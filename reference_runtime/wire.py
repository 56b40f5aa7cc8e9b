"""Tools over a wire: HTTP/1.1, or JSON lines where a whole HTTP exchange would only be weight.

One connection per call, on purpose: an idle connection that broke meanwhile would make an outcome unknown that never was.
A request is encoded in full before there is a connection: what cannot be said leaves nothing behind.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

import attrs
import h11
import trio

from reference_runtime import jsontext
from reference_runtime.connecting import connect
from reference_runtime.credentials import Credentials
from reference_runtime.model import Json
from reference_runtime.rpc import LOST, Lines
from reference_runtime.tools import BODY_BYTES_MAX, NS, Request, Undispatchable, Unknown, Unsent, interpret

T = TypeVar("T")
#: Receivers whose questions are about more than a reference.
_ASKED_BY_PARAMS = frozenset({"desk", "store", "operation"})
#: What a header may hold: printable, and no blank at either end, where receivers cut it off.
_PLAIN = re.compile(r"[!-~]([ -~]*[!-~])?")
#: What a quoted key begins with, and no other.
_QUOTED = "utf-8''"


@attrs.frozen
class Reply:
    """An answer as it came. `saved`: the receiver says that it is one it had kept for the key."""

    status: int
    body: Any
    saved: bool = False
    retry_after_ns: int = 0


Reader = Callable[[trio.SocketStream], Awaitable[Reply]]


class _Closed(Exception):  # noqa: N818 - what the peer did
    """The receiver closed the connection before its answer had ended."""


class _Wire:
    def __init__(self, host: str, port: int, timeout_ns: int, credentials: Credentials) -> None:
        self.host = host
        self.port = port
        self.timeout_ns = timeout_ns
        self.credentials = credentials

    async def call(self, request: Request) -> Json:
        return self._understood(await self._ask(request, lookup=False))

    async def lookup(self, request: Request) -> Json | None:
        reply = await self._ask(request, lookup=True)
        return None if reply.status == 404 else self._understood(reply)

    async def _ask(self, request: Request, *, lookup: bool) -> Reply:
        try:
            message, read = self._encode(request, self._secret(request), lookup=lookup)
        except (ValueError, TypeError, h11.LocalProtocolError) as error:
            raise Undispatchable(f"it cannot be encoded: {self.credentials.hide(str(error))}") from None
        async with await self._connect() as stream:
            return await self._answer(self._exchange(stream, message, read))

    def _encode(self, request: Request, secret: str | None, *, lookup: bool) -> tuple[bytes, Reader]:
        """All bytes of a request, and what reads its answer. Raises ValueError, TypeError or LocalProtocolError."""
        raise NotImplementedError

    def _secret(self, request: Request) -> str | None:
        if request.secret is None:
            return None
        value = self.credentials.value(request.secret)
        if value is None:
            raise Undispatchable(f"this worker has no secret {request.secret!r}")
        return value

    async def _connect(self) -> trio.SocketStream:
        """A fresh connection. Raises `Unsent`: as long as this has not returned, nothing has left."""
        with trio.move_on_after(self.timeout_ns / NS):
            try:
                return await connect(self.host, self.port)
            except OSError as error:
                raise Unsent(f"{self.host}:{self.port}: {error}") from error
        raise Unsent(f"{self.host}:{self.port}: no connection within {self.timeout_ns} ns")

    async def _exchange(self, stream: trio.SocketStream, message: bytes, read: Reader) -> Reply:
        await stream.send_all(message)
        return await read(stream)

    async def _answer(self, exchange: Awaitable[T]) -> T:
        """What an exchange gives in time. Raises `Unknown`: something may have left."""
        with trio.move_on_after(self.timeout_ns / NS):
            try:
                return await exchange
            except _Closed:
                raise Unknown(f"{self.host}:{self.port} closed the connection before it had answered") from None
            except (*LOST, h11.RemoteProtocolError, ValueError, KeyError, TypeError) as error:
                raise Unknown(f"no answer: {type(error).__name__}: {self.credentials.hide(str(error))}") from None
        raise Unknown(f"no answer within {self.timeout_ns} ns")

    def _understood(self, reply: Reply) -> Json:
        body = self.credentials.hide(reply.body)
        return interpret(reply.status, body, saved=reply.saved, retry_after_ns=reply.retry_after_ns)


class HttpTools(_Wire):
    """`POST /<tool>` with an Idempotency-Key header where there is a key; `GET /<tool>?reference=` to look up."""

    def _encode(self, request: Request, secret: str | None, *, lookup: bool) -> tuple[bytes, Reader]:
        method, target, body = "POST", f"/{request.tool}", b""
        headers = [] if secret is None else [("Secret", secret)]
        if lookup:
            method, target = "GET", f"{target}?{_query(request)}"
        else:
            body = _dump(_said(request))
            headers += [] if request.key is None else [("Idempotency-Key", _in_a_header(request.key))]
        fixed = [("Host", f"{self.host}:{self.port}"), ("Connection", "close"), ("Content-Length", str(len(body)))]
        head = h11.Request(method=method, target=target, headers=[*fixed, *headers])
        connection = h11.Connection(h11.CLIENT)
        message = b"".join(connection.send(event) or b"" for event in (head, h11.Data(data=body), h11.EndOfMessage()))
        return message, functools.partial(_read_response, connection)


def _in_a_header(key: str) -> str:
    """A key as a header can carry it: what is no plain ASCII is quoted, and marked so that it is no other key's text."""
    is_plain = _PLAIN.fullmatch(key) and not key.startswith(_QUOTED)
    return key if is_plain else f"{_QUOTED}{quote(key, safe='')}"


def _query(request: Request) -> str:
    """The reference of a look-up and what else it says; what is no text is written as JSON."""
    said = {"script": list(request.script), "params": request.params if request.tool in _ASKED_BY_PARAMS else {}}
    more = {name: value for name, value in {**said, **request.fields}.items() if value not in ([], {})}
    texts = {name: value if isinstance(value, str) else _dump(value).decode() for name, value in more.items()}
    return urlencode({"reference": f"{request.task}:{request.operation}", **texts})


async def _read_response(connection: h11.Connection, stream: trio.SocketStream) -> Reply:
    """Status, JSON body, and what the headers say. Raises ValueError, or what h11 raises."""
    status, headers, body, is_open = 0, dict[bytes, bytes](), bytearray(), True
    while True:
        try:
            event = connection.next_event()
        except h11.RemoteProtocolError:
            if is_open:
                raise
            raise _Closed from None  # h11 speaks of its own states
        if event is h11.NEED_DATA:
            data = await stream.receive_some()
            is_open = bool(data)
            connection.receive_data(data)
        elif isinstance(event, h11.Response):
            status, headers = event.status_code, {name.lower(): value for name, value in event.headers}
        elif isinstance(event, h11.Data):
            body += event.data
            if len(body) > BODY_BYTES_MAX:
                raise ValueError(f"an answer is at most {BODY_BYTES_MAX} bytes")
        elif isinstance(event, h11.EndOfMessage):
            retry_after = headers.get(b"retry-after", b"")
            return Reply(
                status,
                jsontext.read(bytes(body) or b"null"),
                saved=headers.get(b"idempotent-replayed") == b"true",
                retry_after_ns=int(retry_after) * NS if retry_after.isdigit() else 0,
            )
        elif isinstance(event, h11.ConnectionClosed) or event is h11.PAUSED:
            raise _Closed


class LineTools(_Wire):
    """One JSON line there, one back."""

    def _encode(self, request: Request, secret: str | None, *, lookup: bool) -> tuple[bytes, Reader]:
        said = {"service": request.tool, "key": request.key, "lookup": lookup, **_said(request)}
        return _dump(said if secret is None else {**said, "secret": secret}) + b"\n", _read_line


async def _read_line(stream: trio.SocketStream) -> Reply:
    line = await Lines(stream).receive()
    if line is None:
        raise _Closed
    if len(line) > BODY_BYTES_MAX:
        raise ValueError(f"an answer is at most {BODY_BYTES_MAX} bytes")
    answer = jsontext.read(line)
    return Reply(int(answer["status"]), answer.get("body"), bool(answer.get("replayed")))


def _said(request: Request) -> Json:
    """What every wire says of a request."""
    return {
        "run": request.task,
        "op": request.operation,
        "params": _encodable(request.params),
        "carries": dict(request.carries),
        "script": list(request.script),
        **request.fields,
    }


def _encodable(params: Json) -> Json:
    """The parameters, unless they ask to be taken for some that cannot be encoded. Raises ValueError."""
    if params.get("poison") is True:
        raise ValueError("params are marked as poison")
    return params


def _dump(value: object) -> bytes:
    return json.dumps(value, allow_nan=False).encode("ascii")
