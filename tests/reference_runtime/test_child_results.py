"""What a child came to is its owner's: recorded with the end of its leaf, and the same for every rerun."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio

from reference_runtime import Client, Store, Worker, runner, views
from reference_runtime.documents import replayed
from reference_runtime.interpreter import INTERPRETER
from reference_runtime.model import Json
from reference_runtime.tools import Unknown
from reference_runtime.workflow import Context, OperationFailed, workflow
from tests.runtime_plans import child, work_off
from tests.runtime_rig import FakeTools, call, plan, served, until, wait

HOW = {"actor": "ada", "nonce": "fax-1"}
MINE = {"x": "x#1", "y": "y#1"}


def work(name: str, input_: object = None) -> Json:
    return {"version": 1, "workflow": name, "input": input_}


@workflow("twice")
async def twice(ctx: Context, number: int) -> Any:
    """A child that returns what its input says, once something was done."""
    await ctx.call("reader", id="r")
    return None if number == 0 else {"twice": [2 * number]}


@workflow("owner")
async def owner(ctx: Context, children: list[Json]) -> list[Any]:
    """Every child one after the other, with a step after each, whose turn reruns the function where it is not warm."""
    found = []
    for number, one in enumerate(children):
        found.append(await ctx.child(one["plan"], id=f"k{number}", **one.get("terms", {})))
        await ctx.call("reader", {"after": found[-1]}, id=f"after{number}")
    return found


@pytest.mark.parametrize("warm_max", [0, 256])
@pytest.mark.parametrize(
    ("document", "terms", "result"),
    [
        (work("twice", 4), {}, {"twice": [8]}),
        (work("twice", 0), {}, None),
        (plan(call("x"), call("y")), {}, MINE),
        (replayed(plan(call("x"), call("y"))), {}, MINE),
        (plan(), {}, {}),
        (work("twice", 4), {"detached": True}, None),
    ],
)
def test_a_workflow_is_given_what_its_child_came_to(tmp_path, monkeypatch, document, terms, result, warm_max):
    """What a function returned, the nonces of a plan in either style; a detached one is not waited for. Warm or rerun."""
    monkeypatch.setattr(runner, "WARM_MAX", warm_max)
    tools = FakeTools()

    async def run() -> None:
        async with served(tmp_path / "s.db") as (_, port), Client("127.0.0.1", port) as client:
            worker = Worker(Client("127.0.0.1", port), tools, workflows=[owner, twice, INTERPRETER])
            async with trio.open_nursery() as nursery:
                nursery.start_soon(worker.run)
                await client.submit("t", work("owner", [{"plan": document, "terms": terms}, {"plan": plan(call("z"))}]))
                status = await until(client, "t", "done", "failed", "blocked")
                assert (status["state"], status["result"]) == ("done", [result, {"z": "z#1"}])
                (first, second) = (await client.journal("t"))["children"]
                assert (first["run"], first["operation"], second["result"]) == ("t/k0", "k0", '{"z":"z#1"}')
                assert json.loads(first["result"] or "null") == result
                nursery.cancel_scope.cancel()

    trio.run(run)
    assert [one.params["after"] for one in tools.calls if one.operation.startswith("after")] == [result, {"z": "z#1"}]


def test_a_child_that_failed_has_no_result(tmp_path):
    """It raises as ever; nothing of what it had done is handed over."""

    @workflow("owner")
    async def heedful(ctx: Context, document: Json) -> str:
        try:
            await ctx.child(document, id="k")
        except OperationFailed as failed:
            return failed.reason
        return "it came to something"

    async def run() -> Json:
        async with served(tmp_path / "s.db") as (_, port), Client("127.0.0.1", port) as client:
            worker = Worker(Client("127.0.0.1", port), FakeTools(), workflows=[heedful])
            async with trio.open_nursery() as nursery:
                nursery.start_soon(worker.run)
                no = {"op": "fail", "id": "no", "reason": "because"}
                await client.submit("t", work("owner", plan(call("x"), no)))
                status = await until(client, "t", "done", "failed", "blocked")
                assert [one["result"] for one in (await client.journal("t"))["children"]] == [None]
                nursery.cancel_scope.cancel()
            return status

    assert trio.run(run)["result"] == "child-failed: t/k: planned-failure: no: because"


def test_a_plan_has_its_childs_result_in_its_journal(tmp_path):
    """Through a restart, with the end of the leaf; its own result has the nonces of its own operations, and no others."""
    store = Store.open(str(tmp_path / "s.db"))
    store.submit("t", plan(child("k", call("x"), call("y")), wait("w", "go"), call("b")))
    assert work_off(store) == ["t/k:x", "t/k:y"]
    store.close()
    store = Store.open(str(tmp_path / "s.db"))
    (one,) = views.journal(store, "t")["children"]
    told = {"attempt": "t.1", "operation": "k", "run": "t/k", "owner": "t", "result": '{"x":"n-x","y":"n-y"}'}
    assert one == told
    store.signal("t", "1", "go", {"nonce": "n"})
    assert work_off(store) == ["t:b"]
    assert views.status(store, "t")["result"] == {"w": "n", "b": "n-b"}
    store.close()


@pytest.mark.parametrize(("is_first", "result"), [(True, {"fax": "fax-1"}), (False, None)])
def test_a_child_that_was_settled_first_hands_on_what_it_came_to(tmp_path, is_first, result):
    """Its owner was blocked over it. Where only the child is vouched for, and nobody said what became of what it did, there is
    nothing to hand on.
    """
    tools = FakeTools(script={"fax": [Unknown("lost")]})

    async def run() -> None:
        async with served(tmp_path / "s.db") as (_, port), Client("127.0.0.1", port) as client:
            worker = Worker(Client("127.0.0.1", port), tools, workflows=[owner])
            async with trio.open_nursery() as nursery:
                nursery.start_soon(worker.run)
                await client.submit("t", work("owner", [{"plan": plan(call("fax", "mailer"))}]))
                await until(client, "t", "blocked")
                if is_first:
                    await client.settle("t/k0", "v", "fax", "happened", **HOW)
                    assert (await client.status("t/k0"))["state"] == "done"
                await client.settle("t", "v", "k0", "happened", **HOW)
                assert (await until(client, "t", "done"))["result"] == [result]
                nursery.cancel_scope.cancel()

    trio.run(run)
