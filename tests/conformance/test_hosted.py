"""Hosted services over real sockets: the HTTP form, keep-alive, drops, resets, bad callers, ports per incarnation."""

from __future__ import annotations

import http.client
import itertools
import json
import socket
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

import attrs
import pytest
import trio

from conformance import hosted as serving_side
from conformance.hosted import Hosted, hosted
from simkit.errors import ExitCode, Problem, SimkitError
from simkit.services import BODY_BYTES_MAX, Barrier, Delivery, Fault, Gate, Outside, Reply, Request, open_gate

T = TypeVar("T")


@attrs.define
class Facts:
    """A recorder that keeps every fact as a short row."""

    rows: list[tuple[Any, ...]] = attrs.field(factory=list)
    problems: list[tuple[int, Problem]] = attrs.field(factory=list)

    def received(self, call: int, request: Request, incarnation: int, digest: str) -> None:
        self.rows.append(("received", request.op, incarnation))

    def applied(self, call: int, effect: int, nonce: str) -> None:
        self.rows.append(("applied", nonce))

    def replied(self, call: int, reply: Reply, delivery: Delivery) -> None:
        self.rows.append(("replied", reply.status, delivery))

    def stored(self, location: str, state: str) -> None:
        self.rows.append(("stored", location, state))

    def authority(self, actor: str, *, granted: bool) -> None:
        self.rows.append(("authority", actor, granted))


@attrs.define
class Client:
    """A blocking standard-library client, as adapters use, each request in a thread."""

    port: int
    connection: http.client.HTTPConnection = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)

    async def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, Any, bool]:
        return await trio.to_thread.run_sync(partial(self._ask, method, path, body, headers))

    def _ask(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> tuple[int, Any, bool]:
        self.connection.request(method, path, body, {k.replace("_", "-"): v for k, v in headers.items()})
        response = self.connection.getresponse()
        return response.status, json.loads(response.read()), response.getheader("Idempotent-Replayed") == "true"

    async def call(self, service: str = "ledger", op: str = "a", key: str | None = "k") -> tuple[int, Any, bool]:
        body = json.dumps({"run": "r1", "op": op, "params": {}, "carries": {}, "script": []}).encode()
        return await self.ask("POST", f"/{service}", body, **({"Idempotency_Key": key} if key else {}))


def serving(talk: Callable[[Hosted, Facts], Awaitable[T]], gate: Gate = open_gate) -> tuple[T, Facts]:
    """Run `talk` against hosted services; also every fact."""
    numbers = itertools.count(1)
    facts = Facts()

    async def main() -> T:
        outside = Outside(lambda: f"n{next(numbers)}", facts, lambda: 0)
        with trio.fail_after(10):
            async with hosted(outside, lambda n, problem: facts.problems.append((n, problem)), gate=gate) as host:
                return await talk(host, facts)

    return trio.run(main), facts


def at(barrier: Barrier, fault: Fault) -> Gate:
    async def gate(_call: int, _request: Request, nth: int, where: Barrier) -> Fault | None:
        return fault if (nth, where) == (1, barrier) else None

    return gate


def test_a_call_its_repetition_and_a_lookup_over_one_connection() -> None:
    """POST executes, the key's answer comes again marked as replayed, a registry is looked up by GET; all kept alive."""

    async def talk(host: Hosted, _: Facts) -> list[Any]:
        client = Client(await host.open_port(1))
        missing = await client.ask("GET", "/registry?reference=r1:b")
        sock = client.connection.sock
        got = [missing, await client.call(), await client.call(), await client.call("registry", "b", None)]
        got.append(await client.ask("GET", "/registry?reference=r1:b"))
        assert client.connection.sock is sock
        client.connection.close()
        return got

    got, facts = serving(talk)
    assert got == [
        (404, {"error": "missing", "request": "req-000001"}, False),
        (200, {"nonce": "n1", "request": "req-000002"}, False),
        (200, {"nonce": "n1", "request": "req-000003"}, True),
        (200, {"nonce": "n2", "request": "req-000004"}, False),
        (200, {"nonce": "n2", "request": "req-000005"}, False),
    ]
    assert facts.problems == []
    assert [row[0] for row in facts.rows].count("applied") == 2


def test_the_port_tells_which_incarnation_called() -> None:
    """Two workers say the same; the facts tell them apart by their ports."""

    async def talk(host: Hosted, _: Facts) -> None:
        for incarnation in (1, 2):
            client = Client(await host.open_port(incarnation))
            await client.call()
            client.connection.close()

    assert [row for row in serving(talk)[1].rows if row[0] == "received"] == [
        ("received", "a", 1),
        ("received", "a", 2),
    ]


@pytest.mark.parametrize(
    ("barrier", "fault", "effect"),
    [("received", Fault("reset"), False), ("applied", Fault("reset"), True), ("applied", Fault("gone"), True)],
)
def test_a_reset_call_breaks_the_connection(barrier: Barrier, fault: Fault, effect: bool) -> None:
    """The caller sees its connection break, and the effect is there only if the fault struck after it."""

    async def talk(host: Hosted, _: Facts) -> type[Exception] | None:
        client = Client(await host.open_port(1))
        try:
            await client.call()
        except (ConnectionResetError, http.client.RemoteDisconnected) as error:
            return type(error)
        finally:
            client.connection.close()
        return None

    got, facts = serving(talk, at(barrier, fault))
    assert got is (http.client.RemoteDisconnected if fault.kind == "gone" else ConnectionResetError)
    assert any(row[0] == "applied" for row in facts.rows) is effect


def test_a_dropped_reply_leaves_the_connection_open_and_others_served() -> None:
    """The caller of a dropped call hears neither reply nor end while another call goes through."""

    async def talk(host: Hosted, facts: Facts) -> tuple[str, int]:
        port = await host.open_port(1)
        stream = await trio.open_tcp_stream("127.0.0.1", port)
        async with stream:
            await stream.send_all(post("ledger", {"run": "r1", "op": "a"}))
            while ("replied", 200, "dropped") not in facts.rows:
                await trio.lowlevel.checkpoint()
            client = Client(port)
            status = (await client.call("ledger", "b", None))[0]
            client.connection.close()
            with trio.move_on_after(0.02):
                return f"heard {await stream.receive_some()!r}", status
            return "silence", status

    assert serving(talk, at_op("a", "applied", Fault("drop")))[0] == ("silence", 200)


def at_op(op: str, barrier: Barrier, fault: Fault) -> Gate:
    async def gate(_call: int, request: Request, _nth: int, where: Barrier) -> Fault | None:
        return fault if (request.op, where) == (op, barrier) else None

    return gate


def post(service: str, body: object, headers: str = "") -> bytes:
    text = json.dumps(body).encode()
    return f"POST /{service} HTTP/1.1\r\nHost: x\r\n{headers}Content-Length: {len(text)}\r\n\r\n".encode() + text


def test_a_caller_killed_while_its_call_is_held_blocks_nobody() -> None:
    """A call held at `received` whose caller resets still comes to its end when released, and others pass meanwhile."""
    held, release = trio.Event(), trio.Event()

    async def gate(_call: int, request: Request, _nth: int, barrier: Barrier) -> Fault | None:
        if request.op == "held" and barrier == "received":
            held.set()
            await release.wait()
        return None

    async def talk(host: Hosted, facts: Facts) -> int:
        port = await host.open_port(1)
        stream = await trio.open_tcp_stream("127.0.0.1", port)
        await stream.send_all(post("mailer", {"run": "r1", "op": "held"}))
        await held.wait()
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        await stream.aclose()
        client = Client(port)
        status = (await client.call())[0]
        client.connection.close()
        release.set()
        while [row[0] for row in facts.rows].count("replied") < 2:
            await trio.lowlevel.checkpoint()
        return status

    assert serving(talk, gate)[0] == 200


def test_facts_stand_in_the_order_in_which_anybody_could_act_on_them() -> None:
    """A reply is on record before its caller has it, so what the caller does next always comes later."""

    async def talk(host: Hosted, facts: Facts) -> list[int]:
        client, seen = Client(await host.open_port(1)), []
        for n in range(20):
            await client.call(op=f"o{n}", key=None)
            seen.append(len(facts.rows))
        client.connection.close()
        return seen

    assert serving(talk)[0] == [3 * (n + 1) for n in range(20)]


@pytest.mark.parametrize(
    ("request_bytes", "field"),
    [
        (post("bank", {"run": "r", "op": "a"}), "service"),
        (post("ledger", {"op": "a"}), "run"),
        (post("ledger", {"run": "r", "op": "a", "key": "k"}), "key"),
        (post("registry", {"run": "r", "op": "a", "lookup": True}), "lookup"),
        (post("ledger", {"run": "r", "op": "a", "token": "x"}), "token"),
        (post("ledger", {"run": "r", "op": "a", "secret": "s"}, "Secret: s\r\n"), "secret"),
        (post("ledger", {"run": "r", "op": "a"}, "Secret: s\r\nSecret: t\r\n"), "Secret"),
        (b"GET /registry?reference=r:a&script=down HTTP/1.1\r\nHost: x\r\n\r\n", "script"),
        (b"GET /registry?reference=r:a&secret=s HTTP/1.1\r\nHost: x\r\n\r\n", "secret"),
        (b"GET /desk?reference=r:a&actor=a&actor=b HTTP/1.1\r\nHost: x\r\n\r\n", "actor"),
        (b"GET /desk?reference=r:a&actor= HTTP/1.1\r\nHost: x\r\n\r\n", "actor"),
        (post("ledger", {"run": "r", "op": "a"}, "Idempotency-Key: \r\n"), "Idempotency-Key"),
        (post("ledger", {"run": "r", "op": "a"}, "Idempotency-Key: a\r\nIdempotency-Key: b\r\n"), "Idempotency-Key"),
        (b"POST /ledger HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n{", "body"),
        (b"GET /ledger?reference=r:a HTTP/1.1\r\nHost: x\r\n\r\n", "lookup"),
        (b"GET /registry?reference=ra HTTP/1.1\r\nHost: x\r\n\r\n", "reference"),
        (b"DELETE /ledger HTTP/1.1\r\nHost: x\r\n\r\n", "method"),
        (b"nonsense\r\n\r\n", "http"),
        (b"GET /" + b"x" * 20_000, "http"),
        (post("ledger", "x" * BODY_BYTES_MAX), "body"),
    ],
)
def test_a_request_that_cannot_be_read_is_refused_and_reported(request_bytes: bytes, field: str) -> None:
    """The caller gets 400 with the field's name even when it is still sending; the kit hears whose adapter it was."""

    async def talk(host: Hosted, _: Facts) -> bytes:
        stream = await trio.open_tcp_stream("127.0.0.1", await host.open_port(9))
        async with stream:
            await stream.send_all(request_bytes)
            await stream.send_eof()
            answer = b""
            async for chunk in stream:
                answer += chunk
        return answer

    answer, facts = serving(talk)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["field"] == field
    assert [(n, problem.code, field in problem.what) for n, problem in facts.problems] == [(9, "bad-request", True)]
    assert facts.rows == []


def test_a_caller_that_dies_in_the_middle_of_a_request_is_no_protocol_error() -> None:
    """Half a request and then the end is what a killed worker leaves; nobody is blamed and nothing is received."""

    async def talk(host: Hosted, facts: Facts) -> None:
        stream = await trio.open_tcp_stream("127.0.0.1", await host.open_port(1))
        async with stream:
            await stream.send_all(post("ledger", {"run": "r1", "op": "a"})[:-3])
            await stream.send_eof()
            assert not await stream.receive_some()

    facts = serving(talk)[1]
    assert (facts.rows, facts.problems) == ([], [])


def test_expect_100_continue_is_answered() -> None:
    """A client that asks before it sends its body is told to go on."""

    async def talk(host: Hosted, _: Facts) -> bytes:
        stream = await trio.open_tcp_stream("127.0.0.1", await host.open_port(1))
        async with stream:
            request = post("ledger", {"run": "r1", "op": "a"}, "Expect: 100-continue\r\n")
            head, body = request.split(b"\r\n\r\n")
            await stream.send_all(head + b"\r\n\r\n")
            answer = await stream.receive_some()
            await stream.send_all(body)
            return bytes(answer + await stream.receive_some())

    answer = serving(talk)[0]
    assert answer.startswith(b"HTTP/1.1 100 ")
    assert b"HTTP/1.1 200 " in answer


def test_a_port_in_use_says_so() -> None:
    """Asking for a port somebody else has gives an error with a code, the place and a hint."""

    async def talk(host: Hosted, _: Facts) -> Problem:
        with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(SimkitError) as caught:
            await host.open_port(1, taken.getsockname()[1])
        return caught.value.problem

    problem = serving(talk)[0]
    assert problem.code == "port-in-use"
    assert problem.where.startswith("127.0.0.1:")
    assert problem.hint


def test_an_error_in_the_block_comes_out_as_it_is() -> None:
    """What the kit raises while services run is not wrapped into a group by their machinery."""

    async def talk(_host: Hosted, _: Facts) -> None:
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        serving(talk)


def test_a_limit_of_the_kit_that_was_met_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its reset stands in no history, so nothing can be judged by what the worker made of it."""
    monkeypatch.setattr(serving_side, "CONNECTIONS_MAX", 2)

    async def talk(host: Hosted, facts: Facts) -> list[int]:
        port = await host.open_port(7)
        told = []
        streams = []
        for _ in range(3):
            streams.append(await trio.open_tcp_stream("127.0.0.1", port))
            await trio.testing.wait_all_tasks_blocked(0.05)
            told.append(len(facts.problems))
        for stream in streams:
            await stream.aclose()
        return told

    told, facts = serving(talk)
    assert told == [0, 0, 1]
    ((worker, problem),) = facts.problems
    assert (worker, problem.code, problem.exit_code) == (7, "too-many-connections", ExitCode.INCONCLUSIVE)
    assert "more than 2 connections" in problem.what
