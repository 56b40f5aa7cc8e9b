"""What is blocked says what to do about it, each kind of it; who puts a turn aside says so, too."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio

from reference_runtime import Client, Server, Worker
from reference_runtime.cli import complaining_of_turns
from reference_runtime.evolution import Code
from reference_runtime.log import OFF, Log
from reference_runtime.model import Json
from reference_runtime.remedies import remedy
from reference_runtime.tools import Rejected, Unsent
from reference_runtime.workflow import Context, workflow
from tests.asking_rig import Asking, asking
from tests.runtime_rig import FakeTools, call, finish, plan, served, undo, until

WORK: Json = {"version": 1, "workflow": "agent", "input": None}
BY_CODE = (
    "start a worker with `--code 2`, or one that goes on with it (`--older 2`);"
    " this is the version of `worker --code`, and none of `@workflow(..., code=...)`"
)
BY_RETRY = (
    "once the workflow's code is right, say `retry t`;"
    " code under another version of `@workflow(..., code=...)` is tried by itself"
)


@workflow("agent")
async def _forgets(ctx: Context, _: Any) -> None:
    ctx.call("ledger", id="a")


@workflow("agent")
async def _misspells(ctx: Context, _: Any) -> None:
    await ctx.call("legder", id="a")


@workflow("owner")
async def _owner(ctx: Context, _: Any) -> None:
    await ctx.child(WORK, id="inner")


async def _beside(
    port: int, client: Client, log: Log, *workflows: Any, task: str = "t", wanted: str = "blocked"
) -> Json:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(Worker(Client("127.0.0.1", port), FakeTools(), workflows=workflows, log=log).run)
        standing = await until(client, task, wanted)
        nursery.cancel_scope.cancel()
    return standing


def _put_aside(path: Any, log: Log, one: Any = _forgets, *, again: bool = False) -> Json:
    """A task whose turn was put aside, twice if `again`, as it says that it stands."""

    async def run() -> Json:
        async with served(path / "s.db") as (_, port), Client("127.0.0.1", port) as client:
            await client.submit("t", WORK)
            standing = await _beside(port, client, log, one)
            if again:
                await client.retry("t", "again")
                await _beside(port, client, log, one)
            return {**await client.status("t", explain=True), "reason": standing["reason"]}

    return trio.run(run)


@pytest.mark.parametrize(("one", "what"), [(_forgets, "never awaited"), (_misspells, "no service 'legder'")])
def test_a_turn_that_is_put_aside_is_in_the_workers_log(tmp_path, one, what):
    """With its task and why, whether the worker or the server refused it; the task's status says what to do."""
    lines: list[str] = []
    standing = _put_aside(tmp_path, Log(lines.append), one)
    (told,) = [said for said in map(json.loads, lines) if said["event"] == "put-aside"]
    assert (told["task"], told["workflow"], told["code"]) == ("t", "agent", "1")
    assert told["reason"] == standing["reason"]
    assert what in told["reason"]
    assert standing["remedy"] == BY_RETRY


def test_without_a_log_it_is_a_warning_once_per_task_and_reason(tmp_path, capsys):
    """On standard error, with what to do; a log that there is stays the only one."""
    standing = _put_aside(tmp_path, complaining_of_turns(OFF), again=True)
    assert capsys.readouterr().err == f"warning: 't' is put aside as blocked: {standing['reason']}; {BY_RETRY}\n"
    one = Log(list[str]().append)
    assert complaining_of_turns(one) is one


def test_a_misspelt_tool_is_told_with_what_was_meant_and_the_line(tmp_path):
    """As the server refuses it, which has no code."""
    reason = _put_aside(tmp_path, OFF, _misspells)["reason"]
    assert reason.startswith("refused: call 'a': no service 'legder'; did you mean 'ledger'?; there are ledger, ")
    assert reason.endswith(f" (test_blocked.py:{_misspells.function.__code__.co_firstlineno + 2})")


def test_who_waits_for_a_child_is_told_what_is_to_be_done_about_that(tmp_path):
    """Its own id is the one that is retried."""

    async def run() -> str:
        async with served(tmp_path / "s.db") as (server, port), Client("127.0.0.1", port) as client:
            await client.submit("t", {**WORK, "workflow": "owner"})
            await _beside(port, client, OFF, _owner, _forgets, task="t/inner")
            return str(remedy(server.store, "t"))

    assert trio.run(run) == f"child 't/inner': {BY_RETRY.replace('retry t', 'retry t/inner')}"


def test_each_kind_of_blocked_has_its_way_out(store):
    """Other code is not there, or an effect is not known; what is not blocked needs nothing."""
    store.submit("s", plan(call("fax", "mailer")))
    finish(store, "unknown")
    assert remedy(store, "s") == (
        "find out what became of 'fax', and say `settle s fax happened|never-happened --actor NAME`"
    )
    store.submit("t", {**plan(call("a")), "code": "2"})
    assert remedy(store, "t") is None
    store.introduce("w#1", Code("1"))
    store.strand(["w#1"])
    assert remedy(store, "t") == BY_CODE
    assert remedy(store, "nowhere") is None


def test_what_undoes_can_only_have_happened(store):
    """The other word would be refused."""
    store.submit("t", plan(undo("refund", "pay", "mailer"), call("pay"), call("b")))
    finish(store)
    finish(store, "failed")
    finish(store, "unknown")
    assert remedy(store, "t") == "find out what became of 'refund', and say `settle t refund happened --actor NAME`"


def test_what_was_not_sent_says_so_once(tmp_path):
    """The code of the reason, and what the tool said of it; the same of whatever else a tool has to say."""

    async def run(said: Exception) -> str:
        path = tmp_path / f"{type(said).__name__}.db"
        async with served(path) as (_, port), Client("127.0.0.1", port) as client, trio.open_nursery() as nursery:
            tools = FakeTools(script={"a": [said] * 100_000})
            nursery.start_soon(Worker(Client("127.0.0.1", port), tools).run)
            await client.submit("t", plan(call("a")))
            while (detail := (await client.status("t"))["operations"][0]["detail"]) is None:  # noqa: ASYNC110
                await trio.sleep(0.002)
            nursery.cancel_scope.cancel()
        return str(detail)

    unsent = trio.run(run, Unsent("bank:1: refused"))
    assert unsent.removeprefix("repeat: ") == "unsent: bank:1: refused"
    assert trio.run(run, Rejected("422: no")).endswith(": 422: no")
    assert "Rejected" not in trio.run(run, Rejected("422: no"))
    assert trio.run(run, KeyError("nonce")).endswith("KeyError: 'nonce'")


def test_the_command_line_says_what_to_do(tmp_path, capsys):
    """`status` in its answer, and `submit --wait`, which ends with it, on standard error as well."""

    async def program(ask: Asking, server: Server) -> None:
        path = tmp_path / "plan.json"
        path.write_text(json.dumps(plan(call("fax", "mailer"))))
        server.store.submit("t", plan(call("fax", "mailer")))
        finish(server.store, "unknown")
        said = "find out what became of 'fax', and say `settle t fax happened|never-happened --actor NAME`"
        assert (await ask.one("status", "t"))["remedy"] == said
        assert await ask.refused("submit", "t", str(path), "--wait") == f"warning: 't' is blocked: {said}\n"

    asking(tmp_path, capsys, program)
