"""Vouching: what nobody could establish is settled by a person's word, once, for good, and only where nothing is known."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from reference_runtime import Client, Refusal, Store, Worker, views
from reference_runtime.model import Json
from reference_runtime.tools import Unknown
from reference_runtime.workflow import Context, OperationFailed, workflow
from tests.runtime_plans import artifact
from tests.runtime_rig import FakeTools, call, finish, in_hand, plan, seq, served, settle, states, undo, until

HOW = {"actor": "ada", "nonce": "fax-1"}


def blocked(store: Store) -> Json:
    """A run that has paid, noted how to undo it, and does not know whether its fax went out."""
    store.submit("t", plan(undo("refund", "bank"), call("bank"), call("fax", "mailer"), call("after")))
    finish(store)
    finish(store, "unknown")
    return views.status(store, "t")


def test_what_is_blocked_says_what_may_have_happened_and_what_stands(store):
    """Both by name, the undoing too."""
    status = blocked(store)
    assert (status["state"], status["phase"]) == ("blocked", "ended")
    assert status["reason"].startswith("outcome-unknown: fax unresolved: ")
    assert status["reason"].endswith("; what is unresolved may have happened; not undone: bank (by refund)")


def test_what_comes_too_late_says_why(store):
    """Of what is blocked with the way out, of what is over with its end, of what is to stop with that."""
    blocked(store)
    for answer in (store.cancel("t", "1"), store.pause("t", "2"), store.retry("t", "3")):
        assert answer["disposition"] == "too-late"
        assert answer["why"].startswith(
            "the task has ended blocked, and only `settle` lets it go on: outcome-unknown: fax"
        )
    store.submit("s", plan(call("a")))
    in_hand(store)
    store.cancel("s", "1")
    assert store.pause("s", "2")["why"] == "the task is to stop, and begins nothing more"


def test_what_happened_is_accepted_and_the_run_goes_on(store, reopened):
    """Under the name it is known by, also in the next life; a repeat has the first answer and changes nothing."""
    blocked(store)
    told = store.vouch("t", "v", "fax", "happened", **HOW)
    assert told == {"disposition": "settled", "word": "happened"}
    store = reopened(store)
    assert store.vouch("t", "v", "fax", "happened", **HOW) == told
    status = views.status(store, "t")
    (fax,) = [one for one in status["operations"] if one["id"] == "fax"]
    assert (fax["state"], fax["nonce"]) == ("reconciled", "fax-1")
    assert fax["detail"] == "vouched: ada says that it happened"
    finish(store)
    assert views.status(store, "t")["state"] == "done"


def test_what_never_happened_fails_the_run_and_what_was_done_is_undone(store):
    """As if the receiver had refused it."""
    blocked(store)
    store.vouch("t", "v", "fax", "never-happened", **HOW)
    status = views.status(store, "t")
    assert (status["state"], status["phase"]) == ("running", "compensating")
    finish(store)
    status = views.status(store, "t")
    assert (status["state"], states(status)["refund"]) == ("failed", "succeeded")
    assert status["reason"] == "vouched: fax failed: ada says that it never happened"


def test_only_what_nobody_knows_can_be_settled(store):
    """What is known stays known, and what is still being found out is left to that."""
    store.submit("t", plan(seq(call("a"), call("b", "registry")), call("c")))
    finish(store)
    with pytest.raises(Refusal, match="not-unresolved: operation 'a' is succeeded; unresolved: none"):
        store.vouch("t", "1", "a", "never-happened", **HOW)
    settle(store, in_hand(store)["b"], "unknown")
    with pytest.raises(Refusal, match="not-unresolved: operation 'b' is unknown, and the runtime is still finding out"):
        store.vouch("t", "2", "b", "happened", **HOW)
    with pytest.raises(Refusal, match="not-unresolved: there is no operation 'z'"):
        store.vouch("t", "3", "z", "happened", **HOW)
    with pytest.raises(Refusal, match="unknown-task"):
        store.vouch("nowhere", "4", "a", "happened", **HOW)


def test_an_id_means_one_word(store):
    """A word is not taken back under its own id, nor under another one."""
    blocked(store)
    store.vouch("t", "v", "fax", "happened", **HOW)
    with pytest.raises(Refusal, match="conflict"):
        store.vouch("t", "v", "fax", "never-happened", **HOW)
    with pytest.raises(Refusal, match="not-unresolved: operation 'fax' is reconciled"):
        store.vouch("t", "w", "fax", "never-happened", **HOW)


def test_what_undoes_is_done_by_hand_or_stays_open(store):
    """That it was not done would leave what it undoes as it is, so only that it was done settles it."""
    store.submit("t", plan(undo("refund", "bank", "mailer"), call("bank"), call("no")))
    finish(store)
    finish(store, "failed")
    finish(store, "unknown")
    assert views.status(store, "t")["reason"].startswith("compensation-unresolved: refund")
    with pytest.raises(Refusal, match="cannot-settle: 'refund' undoes 'bank', which would stand as it is; make up for"):
        store.vouch("t", "1", "refund", "never-happened", **HOW)
    store.vouch("t", "2", "refund", "happened", **HOW)
    status = views.status(store, "t")
    assert (status["state"], states(status)["refund"]) == ("failed", "reconciled")


def test_content_is_settled_by_nobodys_word(store):
    """It is accepted by its digest."""
    store.submit("t", plan(artifact("a")))
    store.db.execute("UPDATE operation SET state = 'unresolved', due_ns = NULL")
    with pytest.raises(Refusal, match="cannot-settle: 'a' is a artifact"):
        store.vouch("t", "1", "a", "happened", **HOW)


def test_a_stopped_run_stays_stopped(store):
    """What became of its effect is known, and nothing goes on."""
    store.submit("t", plan(call("fax", "mailer"), call("after")))
    ticket = in_hand(store)["fax"]
    store.cancel("t", "stop")
    settle(store, ticket, "unknown")
    assert views.status(store, "t")["state"] == "cancelled"
    store.vouch("t", "v", "fax", "never-happened", **HOW)
    status = views.status(store, "t")
    assert (status["state"], status["reason"]) == ("cancelled", "cancelled")
    assert states(status) == {"fax": "failed", "after": "planned"}


@workflow("faxing")
async def faxing(ctx: Context, _: Any) -> str:
    await ctx.compensate("bank", "ledger", {}, id="refund")
    await ctx.call("ledger", id="bank")
    try:
        return str((await ctx.call("mailer", id="fax"))["nonce"])
    except OperationFailed as no:
        return no.reason


@pytest.mark.parametrize(
    ("word", "result"),
    [("happened", "fax-1"), ("never-happened", "vouched: ada says that it never happened")],
)
def test_a_function_is_told_what_somebody_vouched_for(tmp_path, word, result):
    """Of what happened as of any answer, of what never happened as of a refusal; the trail says whose word it was."""

    async def run() -> None:
        async with served(tmp_path / "s.db") as (_, port), Client("127.0.0.1", port) as client:
            worker = Worker(Client("127.0.0.1", port), FakeTools(script={"fax": [Unknown("lost")]}), workflows=[faxing])
            async with trio.open_nursery() as nursery:
                nursery.start_soon(worker.run)
                await client.submit("t", {"version": 1, "workflow": "faxing", "input": None})
                await until(client, "t", "blocked")
                assert await client.settle("t", "v", "fax", word, **HOW) == {"disposition": "settled", "word": word}
                status = await until(client, "t", "done")
                assert status["result"] == result
                with pytest.raises(Refusal, match="not-unresolved"):
                    await client.settle("t", "w", "fax", word, **HOW)
                with pytest.raises(
                    Refusal, match="bad-request: vouch: word 'maybe'; there are happened, never-happened"
                ):
                    await client.call("vouch", {"task": "t", "id": "x", "operation": "fax", "word": "maybe", **HOW})
                audit = (await client.journal("t"))["audit"]
                said = [
                    (one["actor"], one["action"], one["target"], one["detail"])
                    for one in audit
                    if one["actor"] == "ada"
                ]
                assert said == [("ada", "settle", "fax", "settled"), ("ada", "refuse", "fax", "not-unresolved")]
                worker.stop()

    trio.run(run)
