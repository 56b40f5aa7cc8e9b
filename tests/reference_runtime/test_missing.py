"""A workflow of a name that nobody runs: its status says so to who asks, and nothing else about it changes."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from reference_runtime import Client, Refusal, Server, Store, Worker
from reference_runtime.__main__ import main
from reference_runtime.missing import lacking, missing
from reference_runtime.model import Json
from reference_runtime.presence import Presence, Runners
from reference_runtime.workflow import Context, workflow
from tests.runtime_rig import DEADLINE_S, FakeTools, call, plan, served, until


def document(name: str) -> Json:
    return {"version": 1, "workflow": name, "input": {}}


@workflow("trip")
async def trip(ctx: Context, _: Any) -> None:
    await ctx.wait("go")


async def _told(client: Client, task: str) -> str:
    """What is missing, once anything is."""
    with trio.fail_after(DEADLINE_S):
        while (said := (await client.status(task, explain=True))["missing"]) is None:  # noqa: ASYNC110 - over a network
            await trio.sleep(0.002)
        return str(said)


def test_a_misspelt_name_is_told_with_those_that_there_are(tmp_path, monkeypatch):
    """To who asks why; what the status says otherwise is the same. What somebody runs is missing once that worker has left."""
    monkeypatch.setattr(Server, "_is_new", lambda _: False)

    async def run() -> None:
        async with served(tmp_path / "s.db") as (_, port), Client("127.0.0.1", port) as client:
            worker = Worker(Client("127.0.0.1", port), FakeTools(), workflows=[trip])
            async with trio.open_nursery() as nursery:
                nursery.start_soon(worker.run)
                for task, what in (("good", document("trip")), ("bad", document("tripp")), ("plan", plan(call("a")))):
                    await client.submit(task, what)
                await until(client, "good", "waiting")
                assert await _told(client, "bad") == ("no worker that is there runs workflow 'tripp'; there are trip")
                explained = await client.status("bad", explain=True)
                assert {**await client.status("bad"), "missing": explained["missing"], "remedy": None} == explained
                assert (explained["state"], explained["phase"], explained["reason"]) == ("running", "admitted", None)
                for task in ("good", "plan", "nowhere"):
                    assert (await client.status(task, explain=True))["missing"] is None
                worker.stop()
            assert await _told(client, "good") == "no worker that is there runs workflow 'trip'; there are none"
            await client.cancel("bad", "stop")
            assert (await client.status("bad", explain=True))["missing"] is None

    trio.run(run)


def test_a_server_that_has_just_come_up_draws_no_conclusions(tmp_path):
    """Everybody has a term to come back to it."""

    async def run() -> None:
        server = Server(Store.open(str(tmp_path / "s.db")), lease_ns=10**10)
        server.store.submit("t", document("trip"))
        async with trio.open_nursery() as nursery:
            await nursery.start(server.serve, "127.0.0.1", 0)
            await trio.sleep(9.9)
            assert (await server.status("t", explain=True))["missing"] is None
            await trio.sleep(0.2)
            assert (await server.status("t", explain=True))["missing"] is not None
            nursery.cancel_scope.cancel()
        server.store.close()

    trio.run(run, clock=MockClock(autojump_threshold=0))


def test_a_turn_that_is_leased_is_with_somebody(store):
    """Whoever is known to run what; a function that is over needs nobody, nor does what is stopped."""
    store.submit("t", document("trip"))
    assert missing(store, "t", {"a", "b"}) == "no worker that is there runs workflow 'trip'; there are a, b"
    assert missing(store, "t", {"trip"}) is None
    (turn,) = store.claim_turns("w#1", {"trip": "1"}, (), 1)
    assert missing(store, "t", ()) is None
    command = {"branch": "", "sequence": 1, "kind": "call", "id": "x", "digest": "", "spec": call("x")}
    store.take_turn(turn, "1", [command], {}, "w#1")
    assert missing(store, "t", ()) is not None
    store.cancel("t", "stop")
    assert missing(store, "t", ()) is None


def test_what_a_child_lacks_is_told_of_who_waits_for_it(store):
    """At any depth, with the child's id; not of a detached one, nor of one that is over."""

    def starts(id_: str, name: str, **more: object) -> Json:
        spec = {"op": "child", "id": id_, "plan": document(name), "detached": False, **more}
        return {"branch": "", "sequence": 1, "kind": "child", "id": id_, "digest": "", "spec": spec}

    def take(name: str, command: Json) -> None:
        (turn,) = store.claim_turns("w#1", {name: "1"}, (), 1)
        store.take_turn(turn, "1", [command], {}, "w#1")

    said = "no worker that is there runs workflow 'tripp'; there are"
    store.submit("t", document("owner"))
    take("owner", starts("c", "middle"))
    take("middle", starts("deep", "tripp"))
    assert lacking(store, "t", {"middle", "owner", "tripp"}, ()) is None
    assert lacking(store, "t", {"middle", "owner"}, ()) == f"child 't/c/deep': {said} middle, owner"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("reference_runtime.missing.CHILDREN_MAX", 1)
        assert lacking(store, "t", {"middle", "owner"}, ()) is None
    assert lacking(store, "t/c/deep", {"middle"}, ()) == f"{said} middle"
    store.submit("u", document("owner"))
    take("owner", starts("c", "tripp", detached=True))
    assert lacking(store, "u", {"owner"}, ()) is None
    store.cancel("t", "stop")
    assert lacking(store, "t", {"owner"}, ()) is None


def test_who_runs_what_is_known_for_a_term():
    """While somebody asks, and as long after as a sign of life says; not of who has left, nor of who runs no workflow."""

    async def run() -> None:
        runners = Runners(Presence(1.0))
        with runners.asking("a", ["one", "two"]):
            await trio.sleep(5)
            with runners.asking("b", ["three"]):
                assert runners.names() == {"one", "two", "three"}
        await trio.sleep(0.9)
        runners.heard("b")
        runners.heard("c")
        await trio.sleep(0.2)
        assert runners.names() == {"three"}
        runners.heard("a")  # what was forgotten is not known again by a sign of life
        assert runners.names() == {"three"}
        runners.leave("b")
        assert runners.names() == set()

    trio.run(run, clock=MockClock(autojump_threshold=0))


def test_who_waits_for_the_end_is_told_once(tmp_path, capsys, monkeypatch):
    """On standard error, while the waiting goes on; standard output has the end alone."""
    monkeypatch.setattr(Server, "_is_new", lambda _: False)
    looks, seen = 0, trio.Event()
    status = Server.status

    async def counted(self: Server, task: str, **asked: Any) -> Json:
        nonlocal looks
        standing = await status(self, task, **asked)
        looks += standing["missing"] is not None
        if looks == 3:
            seen.set()
        return standing

    monkeypatch.setattr(Server, "status", counted)
    path = tmp_path / "tripp.json"
    path.write_text(json.dumps(document("tripp")))

    async def run() -> None:
        async with served(tmp_path / "s.db") as (server, port), trio.open_nursery() as nursery:
            argv = ["submit", "t", str(path), "--wait", "--server", f"127.0.0.1:{port}"]

            async def stop() -> None:
                with trio.fail_after(DEADLINE_S):
                    await seen.wait()
                await server.cancel("t", "stop")

            nursery.start_soon(stop)
            assert await trio.to_thread.run_sync(main, argv) == 1

    trio.run(run)
    out, err = capsys.readouterr()
    assert err == "warning: no worker that is there runs workflow 'tripp'; there are none\n"
    (line,) = out.splitlines()
    assert (json.loads(line)["state"], json.loads(line)["missing"]) == ("cancelled", None)


@pytest.mark.parametrize("explain", ["yes", 1, []])
def test_explaining_is_yes_or_no(tmp_path, explain):
    """Anything else is refused by the name of the field."""

    async def run() -> None:
        async with served(tmp_path / "s.db") as (_, port), Client("127.0.0.1", port) as client:
            with pytest.raises(Refusal, match="bad-request: status: explain must be bool"):
                await client.call("status", {"task": "t", "explain": explain})

    trio.run(run)
