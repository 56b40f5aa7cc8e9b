"""Workflows on a whole runtime: server, workers that come and go, warm functions and cold ones, code that changes."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
import trio

from reference_runtime import Client, Patience, Rejected, Unknown, Worker, runner
from reference_runtime.documents import replayed
from reference_runtime.interpreter import INTERPRETER
from reference_runtime.log import OFF, Log
from reference_runtime.model import Json
from reference_runtime.workflow import Context, OperationFailed, Workflow, workflow
from tests.runtime_rig import DEADLINE_S, MS, FakeTools, call, par, plan, served, sleep, states, until, wait

WORK = {"version": 1, "workflow": "agent", "input": {"n": 3}}


@workflow("agent")
async def agent(ctx: Context, input_: Any) -> Json:
    """Draw, call side by side, race a wait against a sleep, and say what came of it."""
    drawn = await ctx.random()
    answers = await ctx.gather(*(ctx.call("ledger", {"n": n, "drawn": drawn}) for n in range(input_["n"])))
    first, _ = await ctx.race(ctx.wait("go"), ctx.sleep(20 * MS))
    started_ns = await ctx.now()
    last = await ctx.call("reader", {"after": [one["nonce"] for one in answers]})
    return {"drawn": drawn, "first": first, "last": last["nonce"], "started": started_ns > 0, "id": await ctx.uuid()}


@contextlib.asynccontextmanager
async def _worker(port: int, tools: FakeTools, *workflows: Workflow, log: Log = OFF) -> AsyncIterator[Worker]:
    one = Worker(Client("127.0.0.1", port), tools, workflows=workflows, log=log)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(one.run)
        yield one
        nursery.cancel_scope.cancel()


def _client(port: int) -> Client:
    return Client("127.0.0.1", port, patience=Patience(total_ns=DEADLINE_S * 1000 * MS))


def _run(
    tmp_path: Any, document: Json, workflows: Sequence[Workflow], tools: FakeTools | None = None, log: Log = OFF
) -> Json:
    """Have one document done by one worker; its last status, with the history it left."""

    async def main() -> Json:
        async with served(tmp_path / "s.db") as (server, port), _client(port) as client:
            async with _worker(port, tools or FakeTools(), *workflows, log=log):
                await client.submit("t", document)
                status = await until(client, "t", "done", "failed", "blocked")
            history = server.store._rows("SELECT branch, sequence, kind, id FROM command_history ORDER BY number")
            return {**status, "history": history}

    return trio.run(main)


@pytest.mark.parametrize("warm_max", [0, 256])
def test_cold_and_warm_do_the_same(tmp_path, monkeypatch, warm_max):
    """A function begun anew for every turn leaves the history of one that was kept: same commands, same places."""
    monkeypatch.setattr(runner, "WARM_MAX", warm_max)
    status = _run(tmp_path, WORK, [agent])
    assert status["state"] == "done"
    assert status["result"]["first"] == 1
    assert [f"{branch}:{sequence} {kind} {id_}" for branch, sequence, kind, id_ in status["history"]] == [
        ":0 nondet random#1",
        "all1.0:1 call all1.0.ledger#1",
        "all1.1:1 call all1.1.ledger#1",
        "all1.2:1 call all1.2.ledger#1",
        "first1.0:1 wait first1.0.go#1",
        "first1.1:1 sleep first1.1.sleep#1",
        ":1 abandon abandon#1",
        ":0 nondet time#1",
        ":2 call reader#1",
        ":0 nondet uuid#1",
    ]
    assert states(status)["first1.0.go#1"] == "skipped"


def _accepted(status: Json) -> int:
    return sum(one["state"] == "succeeded" for one in status["operations"])


def test_workers_that_die_between_turns(tmp_path):
    """Each worker is gone after one accepted result; the next one goes on from the history, and no call is made twice."""
    tools = FakeTools()

    @workflow("agent")
    async def chain(ctx: Context, _: Any) -> list[str]:
        return [(await ctx.call("ledger", {"n": n}))["nonce"] for n in range(4)]

    async def main() -> Json:
        async with served(tmp_path / "s.db", lease_ns=50 * MS) as (_, port), _client(port) as client:
            await client.submit("t", WORK)
            status = await client.status("t")
            with trio.fail_after(DEADLINE_S):
                while (before := status)["state"] != "done":
                    async with _worker(port, tools, chain):
                        while _accepted(status) == _accepted(before) and status["state"] != "done":
                            status = await client.status("t")
            return status

    status = trio.run(main)
    assert len(status["result"]) == 4
    assert len(tools.effects) == 4


@workflow("agent", code="2")
async def other_agent(ctx: Context, _: Any) -> str:
    """The same first step, and another second one."""
    await ctx.call("ledger", {"n": 1}, id="a")
    await ctx.call("reader", id="x")
    return "other"


@workflow("agent", code="1")
async def first_agent(ctx: Context, _: Any) -> str:
    await ctx.call("ledger", {"n": 1}, id="a")
    await ctx.wait("go", id="w")
    return "first"


def test_incompatible_code_parks_and_compatible_code_goes_on(tmp_path):
    """A deployment whose code does not fit is told so with both commands; rolled back, the task ends as if nothing was."""

    async def main() -> tuple[Json, Json]:
        async with served(tmp_path / "s.db") as (_, port), _client(port) as client:
            await client.submit("t", WORK)
            async with _worker(port, FakeTools(), first_agent):
                await until(client, "t", "waiting")
            async with _worker(port, FakeTools(), other_agent):
                await client.signal("t", "1", "go", {"nonce": "n"})
                parked = await until(client, "t", "blocked")
            async with _worker(port, FakeTools(), first_agent):
                return parked, await until(client, "t", "done")

    parked, done = trio.run(main)
    assert parked["reason"].startswith("diverged: at main:2 history has main:2 wait 'w'")
    assert ", the code has main:2 call 'x'" in parked["reason"]
    assert done["result"] == "first"


def _wordy(code: str) -> Workflow:
    async def function(ctx: Context, _: Any) -> None:
        await ctx.gather(ctx.call("ledger", {"text": "x" * 5_000 + code}, id="a"), ctx.wait("go"))

    return Workflow("agent", code, function)


@pytest.mark.parametrize("is_told", [True, False])
def test_where_two_commands_part_is_shown(tmp_path, monkeypatch, is_told):
    """Far into what both say, if what the code has is not too long to be told; if it is, from their beginning."""

    async def main() -> Json:
        async with served(tmp_path / "s.db") as (_, port), _client(port) as client:
            await client.submit("t", WORK)
            async with _worker(port, FakeTools(), _wordy("1")):
                await until(client, "t", "waiting")
            if not is_told:
                monkeypatch.setattr(runner, "LINE_BYTES_MAX", runner.MARGIN_BYTES + 4_000)
            async with _worker(port, FakeTools(), _wordy("2")):
                await client.signal("t", "1", "go", {"nonce": "n"})
                return await until(client, "t", "blocked")

    reason = trio.run(main)["reason"]
    history, code = reason.split(", the code has ")
    assert history.startswith("diverged: at all1.0:1 history has all1.0:1 call 'a'")
    assert ('xxx1"' in history, 'xxx2"' in code) == (is_told, is_told)
    assert len(reason) < 900


def test_a_stop_never_enters_history(tmp_path):
    """A cancelled workflow is over with what it had; its history holds no trace of the stop, and no turn follows."""

    async def main() -> tuple[Json, Any]:
        async with served(tmp_path / "s.db") as (server, port), _client(port) as client:
            async with _worker(port, FakeTools(), first_agent):
                await client.submit("t", WORK)
                await until(client, "t", "waiting")
                await client.call("cancel", {"task": "t", "id": "c"})
                status = await until(client, "t", "cancelled")
            return status, server.store._rows("SELECT operation FROM outcome_history")

    status, outcomes = trio.run(main)
    assert outcomes == [("a",)]
    assert status["cancel"] == "quiescent"


@workflow("agent")
async def sleepy(ctx: Context, _: Any) -> None:
    """Break the one rule there is."""
    await ctx.call("ledger", id="a")
    await trio.sleep(0)


def test_a_foreign_await_parks_the_task_with_its_name(tmp_path):
    """What cannot be recorded is refused where it stands, and the task waits for better code."""
    status = _run(tmp_path, WORK, [sleepy])
    assert status["state"] == "blocked"
    assert "operations of its context only" in status["reason"]
    assert "awaits trio." in status["reason"]


@pytest.mark.parametrize("warm_max", [0, 256])
def test_a_forgotten_await_parks_the_task(tmp_path, monkeypatch, warm_max):
    """It is not done, nor over with a call that nobody made; put right, the task goes on from what it had."""
    monkeypatch.setattr(runner, "WARM_MAX", warm_max)

    def agent_that(*, awaits: bool, code: str) -> Workflow:
        @workflow("agent", code=code)
        async def mended(ctx: Context, _: Any) -> str:
            first = await ctx.call("ledger", {"n": 1}, id="a")
            second = ctx.call("ledger", {"n": 2}, id="b")
            return str((await second)["nonce"] if awaits else first["nonce"])

        return mended

    tools = FakeTools()

    async def main() -> tuple[Json, Json]:
        async with served(tmp_path / "s.db") as (_, port), _client(port) as client:
            await client.submit("t", WORK)
            async with _worker(port, tools, agent_that(awaits=False, code="1")):
                parked = await until(client, "t", "blocked", "done")
            async with _worker(port, tools, agent_that(awaits=True, code="2")):
                return parked, await until(client, "t", "done")

    parked, done = trio.run(main)
    assert parked["state"] == "blocked"
    assert "call 'b' was made but never awaited" in parked["reason"]
    assert (done["result"], len(tools.calls)) == ("b#1", 2)


def test_where_an_error_came_from_is_in_the_workers_log(tmp_path):
    """One line of JSON with the whole way there, once; the task's reason has the line alone."""

    @workflow("agent")
    async def stumbles(ctx: Context, _: Any) -> str:
        answer = await ctx.call("ledger", id="a")
        return str(answer["no such thing"])

    lines: list[str] = []
    status = _run(tmp_path, WORK, [stumbles], log=Log(lines.append))
    line = stumbles.function.__code__.co_firstlineno + 3
    assert status["reason"] == f"raised: KeyError: 'no such thing' (test_replay_runtime.py:{line})"
    (told,) = [one for one in map(json.loads, lines) if one["event"] == "raised"]
    assert (told["task"], told["workflow"]) == ("t", "agent")
    assert f'line {line}, in stumbles\n    return str(answer["no such thing"])' in told["traceback"]


def test_a_refusal_may_be_caught(tmp_path):
    """A definite no is raised in the function, which decides what it means."""

    @workflow("agent")
    async def careful(ctx: Context, _: Any) -> str:
        try:
            await ctx.call("ledger", id="a")
        except OperationFailed as failed:
            return f"{failed.operation} was refused"
        return "not reached"

    status = _run(tmp_path, WORK, [careful], FakeTools(script={"a": [Rejected("422: no")]}))
    assert (status["state"], status["result"]) == ("done", "a was refused")


def test_a_plan_in_the_style_of_replay(tmp_path):
    """The interpreter carries a plan out under its own ids, with the result and the shown operations of a plan."""
    made = plan(call("a"), par(call("b", carries=("a",)), sleep("s", 1)), call("c", "reader", carries=("b",)))
    tools = FakeTools()
    status = _run(tmp_path, replayed(made), [INTERPRETER], tools)
    assert status["state"] == "done"
    assert status["result"] == {"a": "a#1", "b": "b#1", "c": "c#1"}
    assert [one["id"] for one in status["operations"]] == ["a", "b", "s", "c"]
    assert [dict(one.carries) for one in tools.calls] == [{}, {"a": "a#1"}, {"b": "b#1"}]


def test_a_plan_shows_what_is_still_to_come(tmp_path):
    """Before its turn, every operation of an interpreted plan is shown as planned."""

    async def main() -> Json:
        async with served(tmp_path / "s.db") as (_, port), _client(port) as client:
            await client.submit("t", replayed(plan(wait("w", "go"), call("a"))))
            return await client.status("t")

    status = trio.run(main)
    assert states(status) == {"w": "planned", "a": "planned"}
    assert [one["ready"] for one in status["operations"]] == [None, None]  # its code knows, which has not run yet


@pytest.mark.parametrize("warm_max", [0, 256])
def test_a_history_in_pieces(tmp_path, monkeypatch, warm_max):
    """What came back may be more than one line has room for: it is told in pieces, and the function goes on where it was."""
    monkeypatch.setattr(runner, "WARM_MAX", warm_max)
    monkeypatch.setattr("reference_runtime.turn_verbs.CHUNK_BYTES", 2_000)

    @workflow("agent")
    async def reads(ctx: Context, _: Any) -> int:
        pages = [len((await ctx.call("reader", {"page": page}, id=f"p{page}"))["nonce"]) for page in range(12)]
        return sum(pages) + len(await ctx.gather(*(ctx.call("reader", id=f"q{page}") for page in range(12))))

    tools = FakeTools(effects={f"{side}{page}#1": "x" * 3_000 for side in "pq" for page in range(12)})
    status = _run(tmp_path, WORK, [reads], tools)
    assert (status["state"], status["result"]) == ("done", 36_012)


def test_a_turn_that_says_too_much_is_refused(tmp_path, monkeypatch):
    """What cannot be sent in one line parks the task with its size, instead of being tried for ever."""
    monkeypatch.setattr(runner, "LINE_BYTES_MAX", runner.MARGIN_BYTES + 1_000)

    @workflow("agent")
    async def talks(ctx: Context, _: Any) -> str:
        return "x" * 2_000

    status = _run(tmp_path, WORK, [talks])
    assert status["state"] == "blocked"
    assert status["reason"].startswith("refused: what one turn asks for is 2")


def test_a_result_that_is_no_json_is_refused(tmp_path):
    """A value that cannot be recorded is told, and the task waits for code that returns another."""

    @workflow("agent")
    async def returns_itself(ctx: Context, _: Any) -> object:
        return ctx

    status = _run(tmp_path, WORK, [returns_itself])
    assert status["state"] == "blocked"
    assert "not JSON serializable" in status["reason"]


@pytest.mark.parametrize("where", ["asked", "returned"])
def test_what_cannot_be_reported_of_a_turn_parks_it(tmp_path, where):
    """Its worker says so once, instead of being given the turn again and again."""
    turns = []

    @workflow("agent")
    async def unsayable(ctx: Context, _: Any) -> float:
        turns.append(ctx.task)
        if where == "asked":
            await ctx.call("ledger", {"x": float("nan")})
        return float("nan")

    status = _run(tmp_path, {"version": 1, "workflow": "agent", "input": None}, [unsayable])
    assert (status["state"], len(turns)) == ("blocked", 1)
    assert status["reason"].startswith("refused: not a JSON line: ")


@workflow("busy")
async def busy(ctx: Context, n: int) -> None:
    """Always has one more turn."""
    await ctx.now()
    ctx.continue_as_new(n + 1)


@workflow("quick")
async def quick(_: Context, __: Any) -> int:
    return 7


def test_workflows_that_never_rest_leave_room_for_others(tmp_path, monkeypatch):
    """One worker has more of them than turns at a time: those that need a single turn have it, and no busy one is stuck."""
    monkeypatch.setattr(runner, "TURNS", 1)

    async def main() -> Json:
        async with served(tmp_path / "s.db") as (server, port), _client(port) as client:
            async with _worker(port, FakeTools(), busy, quick):
                for name in ("a", "b"):
                    await client.submit(name, {"version": 1, "workflow": "busy", "input": 0})
                    await client.submit(f"{name}-quick", {"version": 1, "workflow": "quick", "input": None})
                status = await until(client, "b-quick", "done")
                with trio.fail_after(DEADLINE_S):
                    for _ in range(2):
                        seen = _segments(server)
                        while not all(now > then for now, then in zip(_segments(server), seen, strict=True)):  # noqa: ASYNC110
                            await trio.sleep(0.01)
            return status

    assert trio.run(main)["result"] == 7


def _segments(server: Any) -> list[int]:
    return [row[0] for row in server.store._rows("SELECT segment FROM workflow WHERE name = 'busy' ORDER BY attempt")]


@workflow("again")
async def again(ctx: Context, is_second: bool) -> list[str]:
    """Call twice, in the second segment."""
    if not is_second:
        ctx.continue_as_new(True)
    return [(await ctx.call("registry", {"n": n}, id=name))["nonce"] for n, name in enumerate("ab")]


def test_a_later_segment_looks_up_what_it_asked_for(tmp_path):
    """Its operations are told apart by receivers as by the store: one that got nowhere is not taken for the one before it."""
    tools = FakeTools({"2~b": [Unknown("no answer")]})
    status = _run(tmp_path, {"version": 1, "workflow": "again", "input": False}, [again], tools)
    assert status["result"] == ["2~a#1", "2~b#2"]
    assert [one.operation for one in tools.lookups] == ["2~b"]


@pytest.mark.parametrize(
    ("terms", "more", "said"),
    [
        ({"share": {"calls": "x"}}, {}, "share of 'child#1' 'calls' is 'x'"),
        ({"share": {"calls": -5}}, {}, "share of 'child#1' 'calls' is -5"),
        ({"share": {"calls": 2**70}}, {}, "share of 'child#1' 'calls' is 1180591620717411303424"),
        ({"share": {"colour": 1}}, {}, "share of 'child#1' 'colour' is 1"),
        ({}, {"allowance": "calls"}, "allowance must be dict"),
        ({}, {"allowance": ["calls"]}, "allowance must be dict"),
        ({}, {"allowance": {"calls": "x"}}, "allowance 'calls' is 'x'"),
    ],
)
def test_a_child_that_cannot_be_is_refused(tmp_path, terms, more, said):
    """Before anything is set aside for it: its parent is put aside with what is wrong, and the server goes on."""

    @workflow("parent")
    async def parent(ctx: Context, _: Any) -> None:
        await ctx.child({**plan(sleep("s", 1)), **more}, **terms)

    status = _run(tmp_path, {"version": 1, "workflow": "parent", "input": None}, [parent])
    assert (status["state"], status["children"]) == ("blocked", [])
    assert said in status["reason"]
