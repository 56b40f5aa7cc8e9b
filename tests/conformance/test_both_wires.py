"""Every service over both wires: the same conversation gets the same answers as JSON lines and as HTTP."""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any
from urllib.parse import urlencode

import attrs
import pytest
import trio
import trio.testing

from conformance.hosted import hosted
from simkit.services import CONTRACTS, LineReader, Outside, Request, encode, open_gate, serve_connection
from tests.service_rig import Facts, counted

#: One exchange: status, body, whether it was a saved answer; None for an answer that broke off.
Answer = tuple[int, Any, bool] | None

#: The run of a child of a child, with a colon of its own.
CHILD = "r:1/c/d"
WHERE = f"{CHILD}/report/1"
DATA = base64.b64encode(b"text").decode()


def request(service: str, op: str = "a", **fields: Any) -> Request:
    return Request(service, CHILD, op, **fields)


def look(service: str, op: str = "a", **fields: Any) -> Request:
    return request(service, op, lookup=True, **fields)


CONVERSATIONS = {
    "ledger": [request("ledger", key="k", params={"answer_bytes": 12}), request("ledger", key="k", remaining_ns=-5)],
    "registry": [look("registry"), request("registry"), look("registry", script=("down",)), look("registry", "b@2")],
    "mailer": [request("mailer", secret="hush", carries={"z": "n"}), request("mailer", secret="hush")],
    "reader": [request("reader"), request("reader", script=("ok", "reject"))],
    "flaky": [request("flaky", key="k", script=("error-after",)), request("flaky", key="k", script=("error-after",))],
    "fenced": [request("fenced", token=2), request("fenced", token=1), request("fenced", token=2, key="k")],
    "model": [
        *[request("model", params={"prompt": "é", "tokens": 9}, script=("429", "529", "cut", "duplicate", "wrong"))] * 5
    ],
    "store": [
        request("store", part=1, params={"action": "put", "location": WHERE, "parts": 1, "data": DATA}),
        look("store", params={"action": "list", "location": WHERE}),
        request(
            "store",
            digest=hashlib.sha256(b"text").hexdigest(),
            params={"action": "commit", "location": WHERE, "parts": 1},
        ),
        look("store", params={"action": "get", "location": WHERE}),
        look("store", params={"action": "get", "location": "elsewhere"}),
    ],
    "desk": [look("desk", actor="alice"), look("desk", actor="mallory"), look("desk", params={"actor": "alice"})],
    "operation": [
        request("operation", key="k", params={"ns": 5}),
        look("operation"),
        request("operation", params={"action": "cancel", "name": "operations/1"}),
        look("operation", "other", params={"name": "operations/1"}),
    ],
    "checker": [
        *[request("checker", subject="report", version=2, digest="d", script=("timeout", "failed"))] * 3,
    ],
}


def test_there_is_a_conversation_with_every_service() -> None:
    """No service is left out, and every field of a request is sent at least once."""
    assert list(CONVERSATIONS) == list(CONTRACTS)
    sent = [one for conversation in CONVERSATIONS.values() for one in conversation]
    for field in attrs.fields(Request):
        assert any(getattr(one, field.name) not in (None, False, (), {}) for one in sent), field.name


@pytest.mark.parametrize("service", CONTRACTS)
def test_both_wires_say_the_same(service: str) -> None:
    """Answers, facts and what the services were asked are equal, request by request, whichever wire they came over."""
    conversation = CONVERSATIONS[service]
    by_lines, line_facts = over(conversation, lines)
    by_http, http_facts = over(conversation, over_http)
    assert by_lines == by_http
    assert line_facts.rows == http_facts.rows
    assert line_facts.asked == http_facts.asked == conversation
    assert sum(answer is None for answer in by_lines) == (1 if service == "model" else 0)


@attrs.define
class Asked(Facts):
    """Facts, with the requests as they arrived."""

    asked: list[Request] = attrs.field(factory=list)

    def received(self, call: int, request: Request, incarnation: int, digest: str) -> None:
        self.asked.append(request)
        super().received(call, request, incarnation, digest)


Wire = Callable[[Outside, Sequence[Request]], Awaitable[list[Answer]]]


def over(conversation: Sequence[Request], wire: Wire) -> tuple[list[Answer], Asked]:
    """What one wire answers, in a world of its own, and its facts."""
    facts = Asked()

    async def main() -> list[Answer]:
        with trio.fail_after(10):
            return await wire(Outside(counted(), facts, lambda: 0), conversation)

    return trio.run(main), facts


async def lines(outside: Outside, conversation: Sequence[Request]) -> list[Answer]:
    """Each request on a connection of its own, as after one that broke off."""
    got: list[Answer] = []
    for one in conversation:
        ours, theirs = trio.testing.memory_stream_pair()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve_connection, theirs, outside, open_gate, 1, unexpected)
            await ours.send_all(encode(one))
            reader = LineReader(ours, 1 << 20)
            line = await reader.read()
            assert (line is None) is bool(reader.rest), "an answer that is cut has a beginning"
            await ours.aclose()
        reply = json.loads(line) if line else None
        got.append((reply["status"], reply["body"], reply["replayed"]) if reply else None)
    return got


async def over_http(outside: Outside, conversation: Sequence[Request]) -> list[Answer]:
    async with hosted(outside, unexpected) as host:
        port = await host.open_port(1)
        return [await trio.to_thread.run_sync(partial(exchange, port, one)) for one in conversation]


def unexpected(incarnation: int, problem: object) -> None:
    raise AssertionError((incarnation, problem))


def exchange(port: int, one: Request) -> Answer:
    """One request in its HTTP form, on a connection of its own."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    fields = {name: value for name, value in attrs.asdict(one).items() if value not in (None, (), {}, [], False)}
    service = fields.pop("service")
    headers = {name: fields.pop(field) for name, field in HEADERS.items() if field in fields}
    try:
        if one.lookup:
            del fields["lookup"]
            fields["reference"] = f"{fields.pop('run')}:{fields.pop('op')}"
            query = {name: value if isinstance(value, str) else json.dumps(value) for name, value in fields.items()}
            connection.request("GET", f"/{service}?{urlencode(query)}", headers=headers)
        else:
            connection.request("POST", f"/{service}", json.dumps(fields), headers)
        reply = connection.getresponse()
        text = read(reply)
        if len(text) < int(reply.getheader("Content-Length", "")):
            assert text, "an answer that is cut has a beginning"
            return None
        body = json.loads(text)
        assert reply.getheader("Retry-After") == ("1" if "retry_after_ns" in body else None)
        return reply.status, body, reply.getheader("Idempotent-Replayed") == "true"
    finally:
        connection.close()


def read(reply: http.client.HTTPResponse) -> bytes:
    """The body, as far as it came."""
    try:
        return reply.read()
    except http.client.IncompleteRead as error:
        return error.partial


HEADERS = {"Idempotency-Key": "key", "Secret": "secret"}
