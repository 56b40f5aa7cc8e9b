"""Secrets: their values are in requests, and nowhere else: not in the store, in an answer, in an error, in a log."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import pytest
import trio

from reference_runtime import Client, Worker, connect
from reference_runtime.credentials import Credentials
from reference_runtime.log import Log
from reference_runtime.rpc import Lines
from reference_runtime.tools import Request, Undispatchable
from tests.runtime_rig import call, plan, served, until

VALUE = "s3cr3t-value"


def test_what_comes_back_is_cleaned():
    """Every text of a JSON value, names too; shown without a value."""
    credentials = Credentials({"bank": VALUE})
    dirty = {f"a {VALUE}": [VALUE, 7, None, {"b": f"x{VALUE}y{VALUE}"}]}
    assert credentials.hide(dirty) == {"a [bank]": ["[bank]", 7, None, {"b": "x[bank]y[bank]"}]}
    assert VALUE not in repr(credentials)
    assert credentials.value("bank") == VALUE
    assert credentials.value("other") is None


@pytest.mark.parametrize("text", ["", "[]", f'"{VALUE}', f'{{"a": "{VALUE}\\n"}}', '{"a": ""}', '{"a": 7}'])
def test_what_no_request_could_carry_is_refused_without_its_value(text):
    """A secret is printable ASCII text; the refusal repeats nothing."""
    with pytest.raises(ValueError, match="secret") as refused:
        Credentials.from_json(text)
    assert VALUE not in str(refused.value)


async def _echo_line(seen: list[bytes], stream: trio.SocketStream) -> None:
    """A receiver that tells its callers what they told it."""
    line = await Lines(stream).receive() or b"{}"
    seen.append(line)
    secret = json.loads(line).get("secret")
    answers = {"a": {"status": 200, "body": {"nonce": f"n {secret}"}}, "b": {"status": 400, "body": {"error": secret}}}
    await stream.send_all(json.dumps(answers[json.loads(line)["op"]]).encode() + b"\n")


async def _echo_http(seen: list[bytes], stream: trio.SocketStream) -> None:
    request = b""
    while b'"script"' not in request:
        request += await stream.receive_some()
    seen.append(request)
    a = b'"a"' in request
    body = json.dumps({"nonce": f"n {VALUE}"} if a else {"error": VALUE}).encode()
    status = b"200 OK" if a else b"400 No"
    await stream.send_all(b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body))
    await stream.aclose()


@pytest.mark.parametrize(("scheme", "echo"), [("lines", _echo_line), ("http", _echo_http)])
def test_a_receiver_that_echoes_a_secret_spreads_nothing(tmp_path, scheme, echo):
    """The request carries the value; journal, status, file and log know only the name."""
    seen: list[bytes] = []
    logged: list[str] = []
    told: list[str] = []
    with_secret = [call(name) | {"secret": "bank"} for name in ("a", "b")]

    async def main():
        async with trio.open_nursery() as nursery:
            (listener,) = await nursery.start(
                functools.partial(trio.serve_tcp, functools.partial(echo, seen), host="127.0.0.1"), 0
            )
            tools = connect(
                f"{scheme}://127.0.0.1:{listener.socket.getsockname()[1]}", secrets=Credentials({"bank": VALUE})
            )
            async with served(tmp_path / "s.db") as (_, port), Client("127.0.0.1", port) as client:
                nursery.start_soon(Worker(Client("127.0.0.1", port), tools, log=Log(logged.append)).run)
                await client.submit("t", plan(*with_secret))
                status = await until(client, "t", "failed")
                told.append(json.dumps([status, await client.journal("t")]))
                nursery.cancel_scope.cancel()

    trio.run(main)
    assert len([one for one in seen if VALUE.encode() in one]) == 2
    files = b"".join(path.read_bytes() for path in Path(tmp_path).iterdir())
    assert VALUE not in "".join(told + logged)
    assert VALUE.encode() not in files
    assert "[bank]" in told[0]
    assert {json.loads(line)["event"] for line in logged} >= {"ready", "calling", "reported"}


@pytest.mark.parametrize("scheme", ["lines", "http"])
def test_parameters_that_no_wire_carries_are_never_sent(scheme):
    """A tool finds out by itself, before there is a connection."""
    request = Request(tool="ledger", task="t", operation="a", key="k", params={"x": float("nan")}, carries={})
    with pytest.raises(Undispatchable, match="it cannot be encoded"):
        trio.run(connect(f"{scheme}://127.0.0.1:1").call, request)


@pytest.mark.parametrize("scheme", ["lines", "http"])
def test_what_cannot_be_said_fails_before_anything_leaves(tmp_path, scheme):
    """Parameters that no wire carries, and a secret that this worker does not have, are definite failures."""

    async def main():
        async with served(tmp_path / "s.db") as (_, port), trio.open_nursery() as nursery:
            tools = connect(f"{scheme}://127.0.0.1:1")  # nobody is asked
            nursery.start_soon(Worker(Client("127.0.0.1", port), tools).run)
            async with Client("127.0.0.1", port) as client:
                await client.submit("t", plan(call("a", poison=True)))
                await client.submit("u", plan(call("a", "mailer") | {"secret": "bank"}))
                for task in ("t", "u"):
                    assert "undispatchable" in (await until(client, task, "failed"))["error"]
                    assert [row["report"] for row in (await client.journal(task))["invocations"]] == ["failed"]
            nursery.cancel_scope.cancel()

    trio.run(main)
