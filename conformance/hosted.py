"""The outside's services for real processes: HTTP/1.1 on loopback, one listening port per worker incarnation.

    hosted(outside, …)      serves while the block runs; gives a `Hosted`
    Hosted.open_port(n)     a port of incarnation n's own: who called is known without trust

    POST /<service>                         {"run", "op", "params", "carries", "script", …} and, where the caller keys
                                            its calls, the header Idempotency-Key
    GET  /<service>?reference=<run>:<op>    looks up an earlier effect; the reference is split at its last colon

The body has every other field of `simkit.services.contracts.Request` by its name; a look-up has them as parameters of its
query, those that are no text (`params`, `carries`, `script`, `token`, `remaining_ns`, `part`, `version`) written as JSON. A
credential is the header Secret, or the field `secret` of a body; in a query it is refused. Answers are those of the
contracts, as the body, with these headers:

    Idempotent-Replayed: true     a key's first answer again
    Retry-After: <seconds>        with 429 and 529, rounded up; the body's `retry_after_ns` is exact

A request that cannot be read gets 400 {"error": "bad-request", "field", "message"}. A reply that is cut promises its whole
length, gives half of its body and ends the connection.

Contracts, barriers and the order of facts are simkit.services'; this is a transport, with control of every connection:
a reply that is dropped leaves it open and silent, one that is reset ends it by RST.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import AsyncIterator
from typing import Final
from urllib.parse import parse_qs

import attrs
import h11
import trio

from simkit.errors import ExitCode, Problem, SimkitError
from simkit.services import (
    BODY_BYTES_MAX,
    BadRequestError,
    Gate,
    Outside,
    ProblemSink,
    Reply,
    Request,
    abort,
    bad_request,
    load_json,
    open_gate,
    parse_request,
    swallow,
    unreadable,
)

#: Connections one worker incarnation may have open at a time.
CONNECTIONS_MAX: Final = 512

NS: Final = 1_000_000_000
_LOOPBACK: Final = "127.0.0.1"
_RECEIVE_BYTES: Final = 65_536
_HEAD_BYTES_MAX: Final = 16_384
#: Fields of a look-up's query that are JSON; the others are plain text.
_JSON_PARAMETERS: Final = ("params", "carries", "script", "token", "remaining_ns", "part", "version")
_FAREWELL_S: Final = 1.0  # how long a refused caller may take to finish sending and read why


@contextlib.asynccontextmanager
async def hosted(outside: Outside, on_problem: ProblemSink, *, gate: Gate = open_gate) -> AsyncIterator[Hosted]:
    """Serve `outside` on loopback while the block runs; every port and connection is gone afterwards.

    `on_problem(incarnation, problem)` is told of requests that cannot be read, a fault of the adapter, and of connections that
    were refused for there are too many.
    """
    failure: BaseException | None = None
    async with trio.open_nursery() as nursery:
        try:
            yield Hosted(outside, gate, on_problem, nursery)
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - raised again below, out of the nursery's group
            failure = error
        nursery.cancel_scope.cancel()
    if failure:
        raise failure


@attrs.define(eq=False)
class _Port:
    incarnation: int
    number: int
    connections: int = 0  # that are open


class Hosted:
    """The listening side; made by `hosted`."""

    def __init__(self, outside: Outside, gate: Gate, on_problem: ProblemSink, nursery: trio.Nursery) -> None:
        self._outside = outside
        self._gate = gate
        self._on_problem = on_problem
        self._nursery = nursery
        self._ports: dict[int, _Port] = {}

    async def open_port(self, incarnation: int, port: int = 0) -> int:
        """Listen for worker `incarnation`; returns the port, a free one unless `port` names it.

        Raises SimkitError (`port-in-use`, `cannot-listen`) when the system does not give it.
        """
        if incarnation in self._ports:
            raise ValueError(f"incarnation {incarnation} has a port already: {self._ports[incarnation].number}")
        listeners = await _listen(port)
        opened = _Port(incarnation, listeners[0].socket.getsockname()[1])
        self._ports[incarnation] = opened
        self._nursery.start_soon(self._accept, opened, listeners)
        return opened.number

    async def _accept(self, port: _Port, listeners: list[trio.SocketListener]) -> None:
        async def handle(stream: trio.SocketStream) -> None:
            await self._serve(port, stream)

        await trio.serve_listeners(handle, listeners, handler_nursery=self._nursery)

    async def _serve(self, port: _Port, stream: trio.SocketStream) -> None:
        if port.connections >= CONNECTIONS_MAX:  # a reset that no history tells of: the run cannot be judged
            self._on_problem(port.incarnation, _too_many(port))
            await abort(stream)
            return
        port.connections += 1
        try:
            async with stream:
                await self._converse(port, _Connection(stream))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # the caller died or hung up; what it asked for has happened or not, as recorded
        finally:
            port.connections -= 1

    async def _converse(self, port: _Port, connection: _Connection) -> None:
        fate = "sent"
        while fate == "sent":
            try:
                request = await connection.next_request()
            except BadRequestError as error:
                self._on_problem(port.incarnation, unreadable(error, f"worker #{port.incarnation}, port {port.number}"))
                await connection.refuse(error)
                return
            if request is None:
                return
            await self._outside.serve(request, port.incarnation, self._gate, connection)
            fate = connection.next_cycle()
        if fate == "dropped":
            await connection.hold()


@attrs.define(eq=False)
class _Connection:
    """One connection of one caller, and the `Channel` of the request it carries at the moment.

    `fate` says how that request ended; `open` when the caller was gone before it got anything.
    """

    stream: trio.SocketStream
    http: h11.Connection = attrs.field(
        factory=lambda: h11.Connection(h11.SERVER, max_incomplete_event_size=_HEAD_BYTES_MAX)
    )
    fate: str = "open"

    async def next_request(self) -> Request | None:
        """The next request, None when the caller is done or gone. Raises BadRequestError naming what is off."""
        self.fate = "open"
        try:
            return await self._read_request()
        except h11.RemoteProtocolError as error:
            raise BadRequestError("http", f"not HTTP/1.1 as expected ({error})") from None

    async def hold(self) -> None:
        """Stay open and silent until the caller gives up."""
        await swallow(self.stream)

    async def _read_request(self) -> Request | None:
        head = await self._next_event()
        if not isinstance(head, h11.Request):
            return None
        body = bytearray()
        while isinstance(event := await self._next_event(), h11.Data):
            body += event.data
            if len(body) > BODY_BYTES_MAX:
                raise BadRequestError("body", f"over {BODY_BYTES_MAX} bytes")
        return _read(head, bytes(body)) if isinstance(event, h11.EndOfMessage) else None

    async def _next_event(self) -> h11.Event | type[h11.PAUSED] | None:
        """The next event; None when the caller hung up, be it in the middle of a message (it may have been killed)."""
        while (event := self.http.next_event()) is h11.NEED_DATA:
            if self.http.they_are_waiting_for_100_continue:
                await self.stream.send_all(
                    self.http.send(h11.InformationalResponse(status_code=100, headers=[])) or b""
                )
            data = await self.stream.receive_some(_RECEIVE_BYTES)
            if not data:
                return None
            self.http.receive_data(data)
        return event  # type: ignore[return-value]

    def next_cycle(self) -> str:
        """Make ready for the next request if the connection is kept alive; how this one ended otherwise."""
        if self.fate == "sent" and self.http.our_state is h11.DONE and self.http.their_state is h11.DONE:
            self.http.start_next_cycle()
            return "sent"
        return "closed" if self.fate == "sent" else self.fate

    async def send(self, reply: Reply) -> None:
        self.fate = "sent"
        try:
            # One piece, and no checkpoint before the system has it: the record says "sent" already.
            await self.stream.send_all(self._response(reply))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self.fate = "open"

    async def cut(self, reply: Reply) -> None:
        """Promise the whole body, send half of it, and hang up."""
        self.fate = "cut"
        response = self._response(reply)
        rest = len(_body(reply)) // 2
        with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            await self.stream.send_all(response[: len(response) - rest])

    async def reset(self) -> None:
        self.fate = "reset"
        await abort(self.stream)

    async def drop(self) -> None:
        self.fate = "dropped"

    async def refuse(self, error: BadRequestError) -> None:
        """Say why, and let the caller finish sending: closing at once would reset the answer away."""
        if self.http.our_state not in {h11.IDLE, h11.SEND_RESPONSE}:
            return
        with trio.move_on_after(_FAREWELL_S):
            await self.stream.send_all(self._response(bad_request(error), close=True))
            await self.stream.send_eof()
            await swallow(self.stream)

    def _response(self, reply: Reply, *, close: bool = False) -> bytes:
        body = _body(reply)
        headers = [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
        if reply.kind == "saved":
            headers.append(("Idempotent-Replayed", "true"))
        if "retry_after_ns" in reply.body:
            headers.append(("Retry-After", str(math.ceil(reply.body["retry_after_ns"] / NS))))
        if close:
            headers.append(("Connection", "close"))
        events = (h11.Response(status_code=reply.status, headers=headers), h11.Data(data=body), h11.EndOfMessage())
        return b"".join(self.http.send(event) or b"" for event in events)


def _body(reply: Reply) -> bytes:
    return json.dumps(reply.body).encode("ascii")


async def _listen(port: int) -> list[trio.SocketListener]:
    try:
        return await trio.open_tcp_listeners(port, host=_LOOPBACK)
    except OSError as error:
        in_use = bool(port)
        raise SimkitError(
            Problem(
                code="port-in-use" if in_use else "cannot-listen",
                what=f"the services cannot listen: {error}",
                where=f"{_LOOPBACK}:{port}",
                expected="a free port on loopback",
                hint="leave the port to the kit"
                if in_use
                else "is there a network namespace without loopback, or no descriptor left?",
                exit_code=ExitCode.USAGE if in_use else ExitCode.INTERNAL,
            )
        ) from error


def _too_many(port: _Port) -> Problem:
    return Problem(
        "too-many-connections",
        f"worker #{port.incarnation} wanted more than {CONNECTIONS_MAX} connections to the services at a time; one was refused",
        f"{_LOOPBACK}:{port.number}",
        f"up to {CONNECTIONS_MAX} connections of one worker",
        "close connections that are no longer used, or keep them alive; a call that times out leaves one open",
        ExitCode.INCONCLUSIVE,
    )


def _read(head: h11.Request, body: bytes) -> Request:
    """A request from its HTTP form."""
    path, _, query = head.target.decode("ascii", "replace").partition("?")
    service, secret = path.removeprefix("/"), _header(head, "Secret")
    given: dict[str, object] = {"service": service}
    if secret is not None:
        given["secret"] = secret
    match head.method:
        case b"POST":
            given |= {"key": _header(head, "Idempotency-Key"), "lookup": False}
            return parse_request(load_json(body, field="body"), given=given)
        case b"GET":
            return parse_request(_queried(query), given=given | {"key": None, "lookup": True})
    raise BadRequestError(
        "method", f"{head.method!r:.40}; expected POST /<service> or GET /<service>?reference=<run>:<op>"
    )


def _header(head: h11.Request, name: str) -> str | None:
    """The value of a header that may stand once; messages repeat no value, it may be a secret."""
    values = [value for header, value in head.headers if header == name.lower().encode("ascii")]
    if not values:
        return None
    if len(values) > 1 or not values[0].isascii() or not values[0]:
        raise BadRequestError(name, f"expected one value, in ASCII; got {len(values)}, of {len(values[0])} bytes")
    return values[0].decode("ascii")


def _queried(query: str) -> dict[str, object]:
    """The fields of a look-up from its query: the reference as run and op, the others by their names."""
    parameters = parse_qs(query, keep_blank_values=True)
    run, op = _reference(parameters.pop("reference", []), query)
    fields: dict[str, object] = {"run": run, "op": op}
    for name, values in sorted(parameters.items()):
        if name in {"run", "op", "secret"} or len(values) > 1:
            raise BadRequestError(
                name, "expected reference=<run>:<op>, every parameter once, and no secret in an address"
            )
        fields[name] = load_json(values[0].encode(), field=name) if name in _JSON_PARAMETERS else values[0]
    return fields


def _reference(references: list[str], query: str) -> tuple[str, str]:
    # The names of children's runs and of operations may hold anything but a colon after the last one.
    run, _, op = references[0].rpartition(":") if len(references) == 1 else ("", "", "")
    if not run or not op:
        raise BadRequestError("reference", f"expected reference=<run>:<op>; got {query!r:.80}")
    return run, op


__all__ = ["CONNECTIONS_MAX", "Hosted", "hosted"]
