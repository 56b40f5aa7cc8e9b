"""Tools: what an answer means, and both wires against servers that misbehave."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import attrs
import pytest
import trio

from reference_runtime.credentials import Credentials
from reference_runtime.rpc import LINE_BYTES_MAX, Lines
from reference_runtime.tools import BODY_BYTES_MAX, Busy, Rejected, Request, Unknown, Unsent, connect, interpret
from tests.runtime_rig import MS

REQUEST = Request("ledger", "t", "a", "t.1:a", {"x": 1}, {"z": "n"}, ("ok",))


@pytest.mark.parametrize(
    ("status", "body", "saved", "meaning"),
    [
        (200, {}, False, Unknown),
        (200, None, False, Unknown),
        (400, {}, False, Rejected),
        (404, {}, False, Rejected),
        (408, {}, False, Unknown),
        (409, {}, False, Busy),
        (422, {}, False, Rejected),
        (429, {}, False, Busy),
        (500, {}, False, Unknown),
        (503, {}, False, Unknown),
        (503, {}, True, Rejected),
        (302, {}, False, Unknown),
    ],
)
def test_what_an_answer_means(status, body, saved, meaning):
    """Definite, busy and unknown are told apart; only a saved 5xx is final; no nonce is no answer."""
    with pytest.raises(meaning):
        interpret(status, body, saved=saved)


def test_an_old_token_is_refused_for_good():
    """A conflict over the key is over in a while; one over the token never is, as its owner has a successor."""
    with pytest.raises(Rejected) as caught:
        interpret(409, {"error": "fenced", "request": "req-1"})
    assert (caught.value.reason, caught.value.external) == ("fenced", "req-1")
    with pytest.raises(Busy):
        interpret(409, {"error": "busy"})


def test_an_address_is_checked():
    """Another scheme or half an address is refused with what was expected."""
    for address in ("ftp://h:1", "http://h", "h:1", ""):
        with pytest.raises(ValueError, match="expected http://host:port"):
            connect(address)


@pytest.mark.parametrize("more", ["/api", "?key=s3cret", "#part", "//x"])
@pytest.mark.parametrize("user", ["", "ada:s3cret@", "@"])
def test_an_address_is_a_host_and_a_port(more, user):
    """What else it says would be left out without a word, so it is refused; a password in it is not repeated."""
    with pytest.raises(ValueError, match="and nothing else: a tool is at its own name there") as refused:
        connect(f"http://{user}h:1{more}")
    assert "ada" not in str(refused.value)
    connect("http://h:1/")


Handler = Callable[[trio.SocketStream], Awaitable[None]]


def _ask(
    scheme: str, handler: Handler, *, lookup: bool = False, timeout_ns: int = 5000 * MS, request: Request = REQUEST
) -> Any:
    """What one request to a server with this connection handler comes to."""

    async def main():
        async with trio.open_nursery() as nursery:
            (listener,) = await nursery.start(functools.partial(trio.serve_tcp, host="127.0.0.1"), handler, 0)
            address = f"{scheme}://127.0.0.1:{listener.socket.getsockname()[1]}"
            tools = connect(address, timeout_ns=timeout_ns, secrets=Credentials({"bank": "value"}))
            try:
                return await (tools.lookup(request) if lookup else tools.call(request))
            except Exception as error:  # noqa: BLE001 - handed to the test
                return error
            finally:
                nursery.cancel_scope.cancel()

    return trio.run(main)


def _http(answer: bytes, seen: list[bytes]) -> Handler:
    async def handler(stream: trio.SocketStream) -> None:
        head = b""
        while b"\r\n\r\n" not in head or (b'"script"' not in head and head.startswith(b"POST")):
            head += await stream.receive_some()
        seen.append(head)
        await stream.send_all(answer)
        await stream.aclose()

    return handler


def _line(answer: bytes, seen: list[bytes]) -> Handler:
    async def handler(stream: trio.SocketStream) -> None:
        seen.append(await Lines(stream).receive() or b"")
        await stream.send_all(answer)
        await stream.aclose()

    return handler


def test_http_says_everything_once():
    """The request line, the key as a header and the body are as published; the answer's JSON comes back."""
    seen: list[bytes] = []
    answer = _ask("http", _http(b'HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\n{"nonce": "n"}', seen))
    head, _, body = seen[0].partition(b"\r\n\r\n")
    assert answer == {"nonce": "n"}
    assert head.startswith(b"POST /ledger HTTP/1.1\r\n")
    assert b"Idempotency-Key: t.1:a" in head
    assert json.loads(body) == {"run": "t", "op": "a", "params": {"x": 1}, "carries": {"z": "n"}, "script": ["ok"]}


def test_http_looks_up_by_reference():
    """A look-up is a GET by the caller's own reference; 404 means that there is no effect."""
    seen: list[bytes] = []
    assert _ask("http", _http(b"HTTP/1.1 404 No\r\nContent-Length: 2\r\n\r\n{}", seen), lookup=True) is None
    assert seen[0].startswith(b"GET /ledger?reference=t%3Aa&script=%5B%22ok%22%5D HTTP/1.1\r\n")


def test_lines_say_everything_once():
    """One line with all fields there, one line back."""
    seen: list[bytes] = []
    assert _ask("lines", _line(b'{"status": 200, "body": {"nonce": "n"}, "replayed": false}\n', seen)) == {"nonce": "n"}
    fields = {"service", "run", "op", "key", "params", "carries", "script", "lookup"}
    assert set(json.loads(seen[0])) == fields


def test_lines_look_up():
    """The same line with `lookup` asks what became of it; 404 means nothing did."""
    seen: list[bytes] = []
    assert _ask("lines", _line(b'{"status": 404, "body": {}}\n', seen), lookup=True) is None
    assert json.loads(seen[0])["lookup"] is True


@pytest.mark.parametrize(
    ("scheme", "answer"),
    [
        ("http", b""),
        ("http", b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"),
        ("http", b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n{"),
        ("http", b"nonsense\r\n\r\n"),
        ("lines", b""),
        ("lines", b'{"status": 200, "bo'),
        ("lines", b"[]\n"),
    ],
)
def test_half_an_answer_is_an_unknown_outcome(scheme, answer):
    """Closed, cut off or garbled: the request left, so nothing is known."""
    seen: list[bytes] = []
    handler = (_http if scheme == "http" else _line)(answer, seen)
    assert isinstance(_ask(scheme, handler), Unknown)
    assert seen


@pytest.mark.parametrize(
    ("scheme", "answer"),
    [
        ("http", b""),
        ("http", b"HTTP/1.1 200"),
        ("http", b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"),
        ("lines", b""),
    ],
)
def test_a_closed_connection_is_told_with_whose_it_was(scheme, answer):
    """In words, and not in the terms of a library."""
    said = str(_ask(scheme, (_http if scheme == "http" else _line)(answer, [])))
    assert re.fullmatch(r"127\.0\.0\.1:\d+ closed the connection before it had answered", said)


@pytest.mark.parametrize("scheme", ["http", "lines"])
def test_no_answer_in_time_is_an_unknown_outcome(scheme):
    """A receiver that takes the request and says nothing leaves the outcome unknown after the timeout."""

    async def handler(stream):
        await trio.sleep_forever()

    assert isinstance(_ask(scheme, handler, timeout_ns=20 * MS), Unknown)


@pytest.mark.parametrize("scheme", ["http", "lines"])
def test_a_receiver_that_is_not_there_got_nothing(scheme):
    """A refused connection is Unsent: not a byte left."""

    async def main():
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        port = listener.socket.getsockname()[1]
        await listener.aclose()
        with pytest.raises(Unsent):
            await connect(f"{scheme}://127.0.0.1:{port}").call(REQUEST)

    trio.run(main)


FULL = attrs.evolve(
    REQUEST,
    tool="store",
    secret="bank",
    fields={"token": 7, "remaining_ns": 5, "part": 2, "subject": "s", "version": 1},
)


def test_everything_else_a_request_says_is_a_field_of_it():
    """Over lines in the line; over HTTP in the body, with the secret in a header and never in an address."""
    lines: list[bytes] = []
    bodies: list[bytes] = []
    answers = (
        ("lines", _line(b'{"status": 200, "body": {"nonce": "n"}}\n', lines)),
        ("http", _http(b'HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\n{"nonce": "n"}', bodies)),
    )
    for scheme, handler in answers:
        assert _ask(scheme, handler, request=FULL) == {"nonce": "n"}
    body = json.loads(bodies[0].partition(b"\r\n\r\n")[2])
    assert json.loads(lines[0]).items() >= {**FULL.fields, "secret": "value"}.items()
    assert body.items() >= FULL.fields.items()
    assert b"Secret: value\r\n" in bodies[0]
    assert "secret" not in body


def test_a_look_up_says_them_in_its_address():
    """What is no text is JSON there; a credential stays in its header."""
    seen: list[bytes] = []
    answer = b'HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\n{"nonce": "n"}'
    assert _ask("http", _http(answer, seen), request=FULL, lookup=True) == {"nonce": "n"}
    target = seen[0].split()[1].decode()
    said = {name: values[0] for name, values in parse_qs(urlsplit(target).query).items()}
    assert said.pop("reference") == "t:a"
    assert json.loads(said.pop("params")) == FULL.params
    assert said.pop("subject") == "s"
    assert {name: json.loads(value) for name, value in said.items()} == {
        "script": ["ok"],
        "token": 7,
        "remaining_ns": 5,
        "part": 2,
        "version": 1,
    }
    assert b"Secret: value\r\n" in seen[0]


@pytest.mark.parametrize(
    ("scheme", "answer", "retry_after_ns"),
    [
        ("http", b"HTTP/1.1 429 No\r\nRetry-After: 2\r\nContent-Length: 2\r\n\r\n{}", 2 * 1000 * MS),
        (
            "http",
            b'HTTP/1.1 529 No\r\nRetry-After: 2\r\nContent-Length: 39\r\n\r\n{"retry_after_ns": 7, "request": "r-1"}',
            7,
        ),
        ("http", b"HTTP/1.1 429 No\r\nRetry-After: soon\r\nContent-Length: 2\r\n\r\n{}", 0),
        ("lines", b'{"status": 429, "body": {"retry_after_ns": 7, "request": "r-1"}}\n', 7),
        ("lines", b'{"status": 529, "body": {"retry_after_ns": -7}}\n', 0),
    ],
)
def test_a_receiver_may_say_when_to_come_back(scheme, answer, retry_after_ns):
    """Busy, with its wish in nanoseconds, the body's before the header's, and its own id of the request."""
    failure = _ask(scheme, (_http if scheme == "http" else _line)(answer, []))
    assert isinstance(failure, Busy)
    assert failure.retry_after_ns == retry_after_ns
    assert failure.external == ("r-1" if b"r-1" in answer else None)


@pytest.mark.parametrize("scheme", ["http", "lines"])
def test_an_answer_too_long_is_none(scheme):
    """What no report could hand on is not taken for an answer; it is not read without end either."""
    body = json.dumps({"nonce": "n" * BODY_BYTES_MAX}).encode()
    answer = {
        "http": b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body),
        "lines": b'{"status": 200, "body": %s}\n' % body,
    }[scheme]
    assert isinstance(_ask(scheme, (_http if scheme == "http" else _line)(answer, [])), Unknown)


def test_a_report_of_the_longest_answer_fits_into_a_line():
    """Also when every character of it is escaped."""
    answer = {"nonce": "\N{GREEK SMALL LETTER ALPHA}" * (BODY_BYTES_MAX // 2)}
    assert len(json.dumps({"answer": answer})) < LINE_BYTES_MAX - 10_000
