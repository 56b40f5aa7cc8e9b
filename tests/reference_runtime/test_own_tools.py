"""Tools of one's own: declared with their promises, recorded with each call, and carried out by who has declared the same."""

from __future__ import annotations

import functools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from reference_runtime import Client, Code, Policy, Promise, Refusal, Server, Store, Unknown, Worker, views
from reference_runtime.documents import replayed
from reference_runtime.interpreter import INTERPRETER
from reference_runtime.model import Json
from reference_runtime.plan import parse
from reference_runtime.promises import KNOWN
from reference_runtime.rpc import Lines
from reference_runtime.workflow import Context, workflow
from tests.runtime_plans import child
from tests.runtime_rig import (
    DEADLINE_S,
    EAGER,
    MS,
    FakeTools,
    call,
    finish,
    plan,
    states,
    undo,
    until,
    wait,
)

OWN = {
    "bank": Promise("keyed"),
    "fax": Promise("blind"),
    "post": Promise("lookup"),
    "atlas": Promise("read"),
    "vault": Promise("fenced"),
}
DECLARED = {name: one.semantics for name, one in OWN.items()}


def opened(path: Path, tools: dict[str, Promise] | None = None, policy: Policy = EAGER) -> Store:
    """A store; its execution `w` has declared every tool of these tests."""
    store = Store.open(str(path / "s.db"), policy=policy, tools=OWN if tools is None else tools)
    store.introduce("w", Code(tools=DECLARED))
    return store


def hello(store: Store, name: str, **tools: str) -> str:
    """An execution that has declared these tools."""
    return store.welcome(name, Code(tools=tools))


# -- calls


def test_a_plan_calls_a_tool_of_ones_own():
    """As it calls any other, also to make up for something, and in a child; an unknown one is named with those there are."""
    tools = {**KNOWN, **OWN}
    steps = parse(plan(call("a", "bank"), undo("u", "a", "fax"), child("k", call("x", "post"))), tools)
    assert [(step.tool, step.semantics) for step in steps if step.tool] == [("bank", "keyed"), ("fax", "blind")]
    known = r"there are ledger, registry, .*, operation, bank, fax, post, atlas, vault; serve --tools declares one of your own"
    for inside in (call("a", "faks"), child("k", call("a", "faks"))):
        with pytest.raises(Refusal, match=f"call 'a': no service 'faks'; {known}"):
            parse(plan(inside), tools)


@pytest.mark.parametrize("in_style", [dict, replayed])
def test_a_task_is_refused_that_calls_what_is_not_there(tmp_path, in_style):
    """And nothing of it is kept."""
    store = opened(tmp_path)
    with pytest.raises(Refusal, match="bad-plan: call 'a': no service 'faks'"):
        store.submit("t", in_style(plan(call("a", "faks"))))
    assert views.status(store, "t") == {"state": "unknown"}
    store.close()


def _claimed(store: Store, execution: str) -> list[str]:
    return [lease.operation for lease in store.claim(execution, [], 9)]


def test_work_goes_to_who_has_declared_the_same(tmp_path):
    """And to nobody else, who is not told that there is any; other work is anybody's."""
    store = opened(tmp_path)
    store.submit("t", plan(call("a", "fax")))
    none, other, same = hello(store, "n"), hello(store, "o", fax="keyed", bank="keyed"), hello(store, "s", fax="blind")
    for execution in (none, other):
        assert (_claimed(store, execution), store.next_work_ns(execution)) == ([], None)
    store.submit("u", plan(call("b")))
    assert _claimed(store, none) == ["b"]
    assert store.next_work_ns(same) is not None
    assert _claimed(store, same) == ["a"]
    store.close()


def test_what_was_admitted_keeps_its_promise(tmp_path):
    """Whatever a restarted server declares: work in hand is for those who have declared it as it was, and new work as it is."""
    store = opened(tmp_path, {"fax": Promise("blind", tries=3)})
    store.submit("old", plan(call("a", "fax")))
    store.close()
    store = opened(tmp_path, {"fax": Promise("keyed")})
    store.submit("new", plan(call("b", "fax")))
    before, after = hello(store, "before", fax="blind"), hello(store, "after", fax="keyed")
    assert (_claimed(store, after), _claimed(store, before)) == (["b"], ["a"])
    rows = store._rows("SELECT id, semantics, spec ->> 'declared' FROM operation ORDER BY id")
    assert rows == [("a", "blind", '{"tries":3}'), ("b", "keyed", None)]
    store.close()
    store = opened(tmp_path, {})
    store.submit("third", plan(call("c")))
    assert _claimed(store, hello(store, "without")) == ["c"]
    store.close()


@pytest.mark.parametrize("inside", [call("x", "fax"), child("l", call("y"), call("x", "fax"))])
def test_a_child_whose_tool_is_gone_fails_its_owner(tmp_path, inside):
    """It is told by name, in place of the server's end, before anything of the child begins."""
    store = opened(tmp_path)
    store.submit("t", plan(wait("w", "go"), child("k", inside)))
    store.close()
    store = opened(tmp_path, {})
    store.signal("t", "1", "go", {"nonce": "n"})
    status = views.status(store, "t")
    assert status["state"] == "failed"
    assert "no-service: the child calls 'fax', which is declared no more; there are ledger" in status["reason"]
    store.close()


# -- limits


def _given_up(limit: str, tries: int) -> str:
    return f"outcome-unknown: a unresolved: {limit}: unknown after {tries} tries; what is unresolved may have happened"


@pytest.mark.parametrize(
    ("of_plan", "of_tool", "of_server", "calls"), [(9, 2, 9, 2), (2, 9, 9, 2), (None, 9, 2, 2), (None, 2, 9, 2)]
)
def test_the_least_limit_counts(tmp_path, of_plan, of_tool, of_server, calls):
    """That of the plan, of the tool's declaration, or of the server."""
    policy = attrs.evolve(EAGER, tries_max=of_server, backoff_ns_min=2, backoff_ns_max=2)
    store = opened(tmp_path, {"atlas": Promise("read", tries=of_tool)}, policy)
    limit = {} if of_plan is None else {"tries": of_plan}
    store.submit("t", plan({**call("a", "atlas"), **limit}))
    for _ in range(calls):
        finish(store, "unknown")
    assert views.status(store, "t")["reason"] == _given_up("retries-exhausted", calls)
    store.close()


@pytest.mark.parametrize(("declared_ns", "state"), [(None, "unknown"), (1, "unresolved")])
def test_a_key_is_used_for_as_long_as_the_tool_remembers_it(tmp_path, declared_ns, state):
    """One that forgets early is not asked again under a key that it may have forgotten."""
    store = opened(tmp_path, {"bank": Promise("keyed", key_lifetime_ns=declared_ns)})
    store.submit("t", plan(call("a", "bank")))
    finish(store, "unknown")
    assert states(views.status(store, "t")) == {"a": state}
    store.close()


def test_time_runs_out_as_it_is_declared(tmp_path):
    """From the first call on."""
    store = opened(tmp_path, {"atlas": Promise("read", elapsed_ns=0)})
    store.submit("t", plan(call("a", "atlas")))
    finish(store, "unknown")
    assert views.status(store, "t")["reason"] == _given_up("time-exhausted", 1)
    store.close()


# -- a whole runtime


@contextmanager
def _closing(store: Store) -> Iterator[Store]:
    try:
        yield store
    finally:
        store.leave()


@workflow("order")
async def order(ctx: Context, tool: str) -> str:
    return str((await ctx.call(tool, {"to": "Ada"}, id="a"))["nonce"])


@pytest.mark.parametrize("document", [plan(call("a", "fax")), replayed(plan(call("a", "fax")))])
def test_who_lacks_a_tool_leaves_its_work_alone(tmp_path, monkeypatch, document):
    """The status says what is missing, as long as it is; a worker that has it goes on."""
    monkeypatch.setattr(Server, "_is_new", lambda _: False)
    tools = FakeTools()

    async def run(store: Store) -> Json:
        server = Server(store, lease_ns=200 * MS)
        async with trio.open_nursery() as nursery:
            listeners = await nursery.start(server.serve, "127.0.0.1", 0)
            port = listeners[0].socket.getsockname()[1]
            async with Client("127.0.0.1", port) as client:
                for code in (Code(), Code(tools={"fax": "keyed"})):
                    nursery.start_soon(Worker(Client("127.0.0.1", port), tools, code=code, workflows=[INTERPRETER]).run)
                await client.submit("t", document)
                told = "no worker that is there has declared tool 'fax' as blind; declared are fax as keyed"
                with trio.fail_after(DEADLINE_S):
                    while (await client.status("t", explain=True))["missing"] != told:  # noqa: ASYNC110 - over a network
                        await trio.sleep(0.002)
                assert tools.calls == []
                nursery.start_soon(Worker(Client("127.0.0.1", port), tools, code=Code(tools=DECLARED)).run)
                status = await until(client, "t", "done")
                assert (await client.status("t", explain=True))["missing"] is None
            nursery.cancel_scope.cancel()
        return status

    with _closing(opened(tmp_path)) as store:
        assert trio.run(run, store)["result"] == {"a": "a#1"}


def test_a_workflow_that_calls_what_is_not_there_is_blocked(tmp_path):
    """With the tools that there are; it goes on once the server knows the tool, and it is tried again."""

    async def run(store: Store, *, is_first: bool) -> Json:
        server = Server(store, lease_ns=200 * MS)
        async with trio.open_nursery() as nursery:
            listeners = await nursery.start(server.serve, "127.0.0.1", 0)
            port = listeners[0].socket.getsockname()[1]
            worker = Worker(Client("127.0.0.1", port), FakeTools(), code=Code(tools=DECLARED), workflows=[order])
            nursery.start_soon(worker.run)
            async with Client("127.0.0.1", port) as client:
                if is_first:
                    await client.submit("t", {"version": 1, "workflow": "order", "input": "fax"})
                    status = await until(client, "t", "blocked")
                else:
                    await client.retry("t", "again")
                    status = await until(client, "t", "done")
            nursery.cancel_scope.cancel()
        return status

    with _closing(opened(tmp_path, {"bank": Promise("keyed")})) as store:
        reason = trio.run(lambda: run(store, is_first=True))["reason"]
    line = order.function.__code__.co_firstlineno + 2
    assert reason.startswith("refused: call 'a': no service 'fax'; there are ledger, ")
    assert "bank; serve --tools declares one of your own" in reason
    assert reason.endswith(f" (test_own_tools.py:{line})")
    with _closing(opened(tmp_path)) as store:
        assert trio.run(lambda: run(store, is_first=False))["result"] == "a#1"


@pytest.mark.parametrize(
    ("tool", "calls", "lookups", "state"),
    [
        ("bank", 2, 0, "succeeded"),
        ("vault", 2, 0, "succeeded"),
        ("atlas", 2, 0, "succeeded"),
        ("post", 1, 1, "reconciled"),
        ("fax", 1, 0, "unresolved"),
    ],
)
def test_its_promise_decides_about_a_lost_answer(tmp_path, tool, calls, lookups, state):
    """As for the tools that were always there: under the same key, looked up, or left alone."""
    tools = FakeTools(script={"a": [Unknown("lost")]}, effects={"": "a#1"})

    async def run(store: Store) -> Json:
        async with trio.open_nursery() as nursery:
            listeners = await nursery.start(Server(store).serve, "127.0.0.1", 0)
            port = listeners[0].socket.getsockname()[1]
            nursery.start_soon(Worker(Client("127.0.0.1", port), tools, code=Code(tools=DECLARED)).run)
            async with Client("127.0.0.1", port) as client:
                await client.submit("t", plan(call("a", tool)))
                status = await until(client, "t", "done", "blocked")
            nursery.cancel_scope.cancel()
        return status

    with _closing(opened(tmp_path)) as store:
        assert states(trio.run(run, store)) == {"a": state}
    assert (len(tools.calls), len(tools.lookups)) == (calls, lookups)
    keys = {one.key for one in tools.calls}
    assert keys == ({"t.1:a"} if tool in ("bank", "vault") else {None})
    assert all(("token" in one.fields) == (tool == "vault") for one in tools.calls)


# -- real processes


def _file(path: Path, text: str) -> str:
    (path / "tools.json").write_text(text)
    return str(path / "tools.json")


@contextmanager
def _process(*argv: str) -> Iterator[subprocess.Popen[str]]:
    env = {**os.environ, "PYTHONWARNINGS": "error"}
    command = [sys.executable, "-m", "reference_runtime", *argv]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as one:
        try:
            yield one
        finally:
            one.kill()


@pytest.mark.slow
@pytest.mark.parametrize(("tool", "state", "asked"), [("bank", "done", ["call", "call"]), ("fax", "blocked", ["call"])])
def test_a_worker_is_killed_in_a_call_of_ones_own_tool(tmp_path, tool, state, asked):
    """The next worker asks a bank again under its key, and leaves a fax alone."""
    declared = _file(tmp_path, json.dumps({name: {"promise": one.semantics} for name, one in OWN.items()}))
    seen: list[Json] = []
    killed = trio.Event()

    async def answer(stream: trio.SocketStream) -> None:
        request = json.loads(await Lines(stream).receive() or b"")
        seen.append(request)
        if len(seen) == 1:
            killed.set()
            await trio.sleep_forever()  # the caller is about to be killed
        await stream.send_all(b'{"status": 200, "body": {"nonce": "n"}}\n')

    async def run() -> Any:
        async with trio.open_nursery() as nursery:
            listeners = await nursery.start(functools.partial(trio.serve_tcp, host="127.0.0.1"), answer, 0)
            services = f"lines://127.0.0.1:{listeners[0].socket.getsockname()[1]}"
            serve = ("serve", "--store", str(tmp_path / "s.db"), "--listen", "127.0.0.1:0", "--lease", "200ms")
            with _process(*serve, "--tools", declared) as server:
                line = await trio.to_thread.run_sync(server.stdout.readline)
                port = int(json.loads(line)["listening"].rpartition(":")[2])
                work = ("worker", "--server", f"127.0.0.1:{port}", "--services", services, "--tools", declared)
                async with Client("127.0.0.1", port) as client:
                    await client.submit("t", plan(call("a", tool)))
                    with _process(*work) as worker:
                        await killed.wait()
                        worker.send_signal(signal.SIGKILL)
                        await trio.to_thread.run_sync(worker.wait)
                    with _process(*work):
                        status = await until(client, "t", "done", "blocked")
            nursery.cancel_scope.cancel()
        return status

    assert trio.run(run)["state"] == state
    assert [(one["service"], "lookup" if one["lookup"] else "call") for one in seen] == [(tool, one) for one in asked]
    assert {one["key"] for one in seen} == {"t.1:a" if tool == "bank" else None}
