"""The list of workers: who is there, what they run and have in hand, and since when nothing was heard of them."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from reference_runtime import Client, Code, Promise, Server, Store, Worker, embedded
from reference_runtime.__main__ import main
from reference_runtime.fleet import table, workers
from reference_runtime.model import Json
from reference_runtime.presence import Presence
from reference_runtime.workflow import Context, workflow
from tests.runtime_rig import DEADLINE_S, EAGER, FakeTools, call, plan, served

S = 10**9


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    one = Store.open(str(tmp_path / "s.db"), policy=EAGER, tools={"fax": Promise("blind")})
    yield one
    one.leave()


def test_leases_are_shown_with_who_has_them(store):
    """Operations and turns, in the order in which they were leased; who is gone and has some is shown, too."""
    code = Code("2", "compatible", ("1",), tools={"fax": "blind"})
    one, two = store.welcome("w", code), store.welcome("v", Code())
    store.submit("t", plan(call("a", "fax")))
    store.submit("u", {"version": 1, "workflow": "trip", "input": None})
    (a,) = store.claim(one, [], 9)
    (turn,) = store.claim_turns(one, {"trip": "2"}, [], 1)
    said = {"version": "2", "policy": "compatible", "older": ("1",), "transforms": {}, "tools": {"fax": "blind"}}
    held = [
        {"task": "t", "operation": "a", "generation": a.generation},
        {"task": "u", "operation": None, "generation": turn.generation},
    ]
    assert workers(store, {one: 0.25, two: 0.0}, {one: ["trip"]}) == [
        {
            "execution": two,
            "code": {"version": "1", "policy": "refuse", "older": (), "transforms": {}, "tools": {}},
            "is_there": True,
            "heard_ago_ns": 0,
            "workflows": [],
            "holding": [],
        },
        {
            "execution": one,
            "code": said,
            "is_there": True,
            "heard_ago_ns": S // 4,
            "workflows": ["trip"],
            "holding": held,
        },
    ]
    (gone,) = workers(store, {}, {})
    assert (gone["execution"], gone["is_there"], gone["heard_ago_ns"], gone["holding"]) == (one, False, None, held)


def test_a_table_is_for_people(store, snapshot):
    """A column for each thing; what there is nothing of is a dash."""
    one, two = store.welcome("w", Code("2", "pin", tools={"fax": "blind"})), store.welcome("v", Code())
    store.submit("t", plan(call("a", "fax")))
    store.submit("u", {"version": 1, "workflow": "trip", "input": None})
    store.claim(one, [], 9)
    store.claim_turns(one, {"trip": "2"}, [], 1)
    assert table(workers(store, {two: 1.26}, {two: ["other", "trip"]})) == snapshot


def test_a_terminal_is_told_nothing_but_text(store):
    """Whatever somebody calls himself, what he runs, or a task: it stays on its line, and moves no cursor."""
    odd = "w\x1b[2J\nx"
    store.submit("t", plan(call("a")))
    store.claim(odd, [], 1)
    header, line = table(workers(store, {odd: 0.0}, {odd: [odd, "fine"]}))
    assert line.isprintable()
    assert line.count(r"w\x1b[2J\nx") == 2
    assert header.index("HOLDING") == line.index("t:a")


def test_how_long_ago_is_counted_from_the_last_sign_of_life():
    """Who is asking is heard of all the time; after a term of silence nothing is known any more, nor of who has left."""

    async def run() -> None:
        presence = Presence(1.0)
        with presence.asking("a"):
            await trio.sleep(5)
            presence.heard("b")
            await trio.sleep(0.25)
            assert presence.heard_s() == {"a": 0.0, "b": pytest.approx(0.25)}
            presence.leave("b")
            assert presence.heard_s() == {"a": 0.0}
        await trio.sleep(0.75)
        assert presence.heard_s() == {"a": pytest.approx(0.75)}
        await trio.sleep(0.5)
        assert presence.heard_s() == {}

    trio.run(run, clock=MockClock(autojump_threshold=0))


@workflow("trip")
async def trip(ctx: Context, _: Any) -> None:
    await ctx.wait("go")


async def _once(client: Client, wanted: int) -> list[Json]:
    """The workers, once so many leases are out, and who is there has asked for turns as well as for work."""
    with trio.fail_after(DEADLINE_S):
        while True:
            found = await client.workers()
            if sum(len(one["holding"]) for one in found) == wanted and all(one["workflows"] for one in found):
                return found
            await trio.sleep(0.002)


def test_the_command_shows_who_is_there(tmp_path, capsys):
    """As lines of JSON, and as a table; who has left is gone from both."""

    async def run() -> None:
        let_go = trio.Event()
        tools = FakeTools(script={"a": [let_go.wait]})
        async with served(tmp_path / "s.db") as (_, port), Client("127.0.0.1", port) as client:

            async def ask(*argv: str) -> list[str]:
                capsys.readouterr()
                command = functools.partial(main, ["workers", *argv, "--server", f"127.0.0.1:{port}"])
                assert await trio.to_thread.run_sync(command) == 0
                return capsys.readouterr().out.splitlines()

            assert (await ask(), len(await ask("--format", "text"))) == ([], 1)
            worker = Worker(Client("127.0.0.1", port), tools, name="w", code=Code("7"), workflows=[trip])
            async with trio.open_nursery() as nursery:
                nursery.start_soon(worker.run)
                await client.submit("t", plan(call("a")))
                (told,) = await _once(client, 1)
                (line,) = await ask("--format", "json")
                said = json.loads(line)
                assert {**said, "heard_ago_ns": 0} == {**told, "heard_ago_ns": 0}
                assert 0 <= said["heard_ago_ns"] < 5 * S
                assert (said["code"]["version"], said["workflows"], said["is_there"]) == ("7", ["trip"], True)
                _, row = await ask("--format", "text")
                assert row.split()[:3] == [said["execution"], "7", "refuse"]
                assert row.endswith("trip       -      t:a")
                let_go.set()
                await _once(client, 0)
                worker.stop()
            assert await ask() == []

    trio.run(run)


def test_a_restarted_server_shows_who_has_work_in_hand(store):
    """Before that is heard of, and without the network."""

    async def run() -> list[Json]:
        async with embedded(Server(store)) as handle:
            return await handle.workers()

    execution = store.welcome("w", Code())
    store.submit("t", plan(call("a")))
    store.claim(execution, [], 9)
    (one,) = trio.run(run)
    assert (one["execution"], one["is_there"], [held["operation"] for held in one["holding"]]) == (
        execution,
        False,
        ["a"],
    )
