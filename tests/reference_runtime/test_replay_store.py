"""Turns in the store: leased once, fenced by generation and length of history, and their commands are operations of plans."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from reference_runtime import Refusal, Store, runner, views
from reference_runtime.commands import Outcome
from reference_runtime.documents import replayed
from reference_runtime.events import events
from reference_runtime.interpreter import INTERPRETER
from reference_runtime.model import Json, Rejected
from reference_runtime.turns import Turn
from reference_runtime.workflow import Context, Workflow, workflow
from tests.runtime_plans import work_off
from tests.runtime_rig import EAGER, call, finish, plan, states, take, wait

CODES = {"agent": "1"}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    one = Store.open(str(tmp_path / "s.db"), policy=EAGER)
    yield one
    one.close()


def work(input_: object = None, name: str = "agent") -> Json:
    return {"version": 1, "workflow": name, "input": input_}


def claim(store: Store, execution: str = "w#1", code: str = "1", holding: tuple[int, ...] = ()) -> list[Turn]:
    return store.claim_turns(execution, {"agent": code}, holding, 8)


def said(store: Store, turn: Turn) -> Json:
    """A turn as its holder gets it when it knows nothing yet."""
    commands, outcomes, _ = store.history(turn)
    return {
        "task": turn.task,
        "input": json.loads(turn.input),
        "segment": turn.segment,
        "commands": commands,
        "told": outcomes,
    }


def step(store: Store, one: Workflow, turn: Turn) -> tuple[Json, Turn | None]:
    """Run one turn cold and have it taken; what was said, and the turn that follows at once."""
    warm = runner.begin(one, said(store, turn))
    report = runner.advance(warm, said(store, turn)["told"])
    warm.replay.close()
    if report["trouble"]:
        assert store.park_turn(turn, one.code, report["trouble"], report.get("expected")) is None
        return report, None
    rejected, following = store.take_turn(turn, one.code, report["commands"], report["end"], "w#1")
    assert rejected is None
    return report, following


def go(store: Store, one: Workflow, code: str = "1") -> Json:
    """Run turns until none is due; the status then."""
    turns: list[Turn | None] = list(claim(store, code=code))
    while turns:
        turn = turns.pop()
        if turn is not None:
            turns.append(step(store, one, turn)[1])
    return views.status(store, "t")


@workflow("agent")
async def pay_twice(ctx: Context, _: object) -> list[str]:
    first = await ctx.call("ledger", {"amount": 1}, id="a")
    second = await ctx.call("ledger", {"amount": 2}, id="b", carries=["a"])
    return [first["nonce"], second["nonce"]]


def test_a_workflow_runs_to_its_end(store):
    """Commands become operations, their outcomes make the next turn due, and the returned value is the result."""
    store.submit("t", work())
    assert store.submit("t", work()).attempt == "t.1"
    assert go(store, pay_twice)["state"] == "running"
    finish(store, nonce="n1")
    go(store, pay_twice)
    finish(store, nonce="n2")
    status = go(store, pay_twice)
    assert (status["state"], status["result"]) == ("done", ["n1", "n2"])
    assert states(status) == {"a": "succeeded", "b": "succeeded"}


@pytest.mark.parametrize(
    ("document", "wrong"),
    [
        ({"version": 1, "workflow": ""}, "version 1 and a name"),
        ({"version": 2, "workflow": "agent"}, "version 1 and a name"),
        ({"version": 1, "workflow": "agent", "inputs": 3}, "has no inputs"),
        ({"version": 1, "workflow": "agent", "allowance": {"calls": -1}}, "calls"),
        ({"version": 1, "workflow": "interpret", "input": {"version": 3}}, "version 1 and a root"),
    ],
)
def test_a_workflow_that_cannot_be_is_refused(store, document, wrong):
    """What is wrong with a submitted workflow is said before anything is admitted."""
    with pytest.raises(Refusal, match=wrong):
        store.submit("t", document)
    assert views.status(store, "t") == {"state": "unknown"}


def test_a_turn_is_leased_once(store):
    """Nobody else gets a leased turn; its holder, who says that it knows nothing of it, gets it again."""
    store.submit("t", work())
    (turn,) = claim(store)
    assert claim(store, "w#2") == []
    assert claim(store, holding=(turn.generation,)) == []
    assert claim(store) == [turn]
    assert store.leases() == [(turn.generation, "w#1")]


def test_a_stale_holder_changes_nothing(store):
    """A holder whose turn was taken back, or who knows another history, is refused and leaves evidence."""
    store.submit("t", work())
    (old,) = claim(store)
    store.reclaim(old.generation)
    (new,) = claim(store, "w#2")
    for held in (old, attrs.evolve(new, length=1), attrs.evolve(new, segment=2)):
        rejected, following = store.take_turn(held, "1", [], {"returned": 1}, "w#1")
        assert isinstance(rejected, Rejected)
        assert following is None
        assert isinstance(store.park_turn(held, "1", "no"), Rejected)
    assert views.status(store, "t")["state"] == "running"
    assert len(views.journal(store, "t")["rejected"]) == 6
    (again,) = claim(store, "w#2")
    step(store, pay_twice, again)
    assert states(views.status(store, "t")) == {"a": "planned"}


def test_a_worker_that_left_gives_its_turns_back(store):
    """A turn handed back is due at once for somebody else."""
    store.submit("t", work())
    (turn,) = claim(store)
    assert store.hand_back("w#1") == [turn.generation]
    assert [one.attempt for one in claim(store, "w#2")] == ["t.1"]


def test_turns_go_to_those_who_have_the_code(store):
    """A workflow nobody here knows waits for an execution that does."""
    store.submit("t", work(name="other"))
    assert claim(store) == []
    assert views.status(store, "t")["state"] == "running"
    assert len(store.claim_turns("w#2", {"other": "7"}, (), 8)) == 1


@workflow("agent", code="2")
async def pay_otherwise(ctx: Context, _: object) -> None:
    await ctx.call("ledger", {"amount": 3}, id="a")


def test_divergence_parks_the_task_and_other_code_resumes_it(store):
    """Code that asks for something else is refused with both commands; the task keeps all it has and is offered to others."""
    store.submit("t", work())
    go(store, pay_twice)
    finish(store, nonce="n1")
    status = go(store, pay_otherwise, code="2")
    assert status["state"] == "blocked"
    assert status["reason"].startswith("diverged: at main:1 history has main:1 call 'a'")
    assert ", the code has main:1 call 'a'" in status["reason"]
    history, code = status["reason"].split(", the code has ")
    assert '"params":{"amount":1}' in history
    assert '"params":{"amount":3}' in code
    assert claim(store, code="2") == []
    assert store.signal("t", "s1", "go", {"nonce": "x"})["disposition"] == "buffered"
    assert go(store, pay_twice)["state"] == "running"
    finish(store, nonce="n2")
    status = go(store, pay_twice)
    assert (status["state"], status["result"]) == ("done", ["n1", "n2"])


def test_an_operation_that_cannot_be_is_refused(store):
    """What no plan could have is named, and nothing of the turn is kept."""

    @workflow("agent")
    async def faxes(ctx: Context, _: object) -> None:
        await ctx.call("fax")

    store.submit("t", work())
    (turn,) = claim(store)
    with pytest.raises(Refusal, match="no service 'fax'"):
        step(store, faxes, turn)
    assert store.holds_turn(turn)
    assert states(views.status(store, "t")) == {}


def test_a_failure_is_the_functions_to_handle(store):
    """A refused call raises in the function, which may go on; one that raises fails the task for that reason."""

    @workflow("agent")
    async def careful(ctx: Context, _: object) -> str:
        try:
            await ctx.call("ledger", id="a")
        except Exception as error:
            await ctx.call("reader", id="b")
            raise ValueError(str(error)) from error
        return "not reached"

    store.submit("t", work())
    go(store, careful)
    finish(store, "failed")
    assert go(store, careful)["state"] == "running"
    finish(store)
    status = go(store, careful)
    assert status["state"] == "failed"
    assert "raised: ValueError: a: " in status["error"]
    assert states(status) == {"a": "failed", "b": "succeeded"}


@workflow("agent")
async def count(ctx: Context, state: Any) -> list[str]:
    """Take two signals a segment until six were taken."""
    taken = list(state or [])
    for _ in range(2):
        item = await ctx.wait("item")
        taken.append((item or {})["nonce"])
    if len(taken) < 6:
        ctx.continue_as_new(taken)
    return taken


def test_a_cut_history_loses_no_signal(store):
    """Signals that come before, between and after the cuts are each taken once, in order, and history stays short."""
    store.submit("t", work())
    for number in range(6):
        store.signal("t", f"s{number}", "item", {"nonce": str(number)})
        if number % 3 == 2:
            status = go(store, count)
    assert (status["state"], status["result"]) == ("done", [str(number) for number in range(6)])
    assert {one["id"] for one in status["operations"]} >= {"item#1", "2~item#1", "3~item#2"}
    assert store._value("SELECT max(number) FROM command_history") == 2


def test_what_is_made_for_an_operation_takes_no_other_ones_id(store):
    """A check that is made anew, or what sweeps up, is called like no operation of a later segment, which has its number."""

    @workflow("agent")
    async def numbered(ctx: Context, is_late: object) -> str:
        if not is_late:
            await ctx.artifact("report", 10, id="1")
            await ctx.check("1", id="2")
            await ctx.artifact("report", 20, id="3")
            ctx.continue_as_new(state=True)
        return (await ctx.call("ledger", id="2"))["nonce"]

    store.submit("t", work())
    done = list[str]()
    for _ in range(4):
        go(store, numbered)
        done += work_off(store)
    status = go(store, numbered)
    assert done == ["t:1", "t:2", "t:3", "t:2~~2", "t:2~2"]
    assert (status["state"], status["result"]) == ("done", "n-2~2")


def test_a_signal_taken_by_a_lost_wait_is_free_again(store):
    """A wait whose branch lost before it was heard hands its signal on: the next wait of that name gets it."""

    @workflow("agent")
    async def racing(ctx: Context, _: object) -> str:
        await ctx.race(ctx.call("ledger", id="a"), ctx.wait("go", id="early"))
        return (await ctx.wait("go", id="late") or {})["nonce"]

    store.submit("t", work())
    go(store, racing)
    finish(store)
    store.signal("t", "s1", "go", {"nonce": "x"})
    assert states(views.status(store, "t"))["early"] == "succeeded"
    status = go(store, racing)
    assert (status["state"], status["result"]) == ("done", "x")
    assert store.signal("t", "s1", "go", {"nonce": "x"})["consumer"] == "t.1:late"


def test_outcomes_are_ordered_by_acceptance(store):
    """Whoever accepts what in which order, history has that order, and a turn sees all that came before its lease."""

    @workflow("agent")
    async def both(ctx: Context, _: object) -> list[Any]:
        return await ctx.gather(ctx.wait("x", id="x"), ctx.wait("y", id="y"))

    store.submit("t", work())
    go(store, both)
    store.signal("t", "2", "y", {"nonce": "ny"})
    store.signal("t", "1", "x", {"nonce": "nx"})
    (turn,) = claim(store)
    assert [Outcome(**one).operation for one in store.history(turn)[1]] == ["y", "x"]
    assert store.history(turn, [1, 2, 1])[1][0]["operation"] == "x"
    assert store.history(turn, [1, 1, 1])[2] is False


def test_plans_have_no_turns(store):
    """A plan's task is none of a runner's business."""
    store.submit("t", plan(call("a")))
    assert claim(store) == []
    finish(store)
    assert views.status(store, "t")["state"] == "done"


def test_an_unresolved_operation_blocks_until_somebody_settles_it(store):
    """A blind call nobody knows the outcome of blocks the workflow; the receiver's late word lets it go on."""

    @workflow("agent")
    async def mails(ctx: Context, _: object) -> str:
        return str((await ctx.call("mailer", id="m"))["nonce"])

    store.submit("t", work())
    go(store, mails)
    finish(store, "unknown")
    assert go(store, mails)["state"] == "blocked"
    assert store.signal("t", "n1", "notice", {"operation": "m", "nonce": "late"})["disposition"] == "released"
    status = go(store, mails)
    assert (status["state"], status["result"]) == ("done", "late")


def test_a_turn_of_a_stopped_task_does_not_count(store):
    """A stop that was accepted while a turn was under way: what the turn would ask for is never begun."""
    store.submit("t", work())
    (turn,) = claim(store)
    store.cancel("t", "c")
    rejected, following = store.take_turn(turn, "1", [], {"returned": 1}, "w#1")
    assert isinstance(rejected, Rejected)
    assert following is None
    assert views.status(store, "t")["state"] == "cancelled"
    assert claim(store) == []


@pytest.mark.parametrize("is_late", [False, True])
def test_what_was_done_is_made_up_for_when_the_function_fails(store, is_late):
    """A compensation that was noted, before or after its call, is due when the function raises, and the task fails after it."""

    @workflow("agent")
    async def fails(ctx: Context, _: object) -> None:
        if not is_late:
            await ctx.compensate("a", "ledger", {"undo": 1}, id="u")
        await ctx.call("ledger", id="a")
        if is_late:
            await ctx.compensate("a", "ledger", {"undo": 1}, id="u")
        await ctx.compensate("never", "ledger", {})
        raise ValueError("no more")

    store.submit("t", work())
    go(store, fails)
    finish(store)
    assert go(store, fails)["phase"] == "compensating"
    finish(store)
    status = go(store, fails)
    assert status["state"] == "failed"
    assert status["reason"].startswith("raised: ValueError: no more (test_replay_store.py:")
    assert states(status) == {"u": "succeeded", "a": "succeeded", "compensate#1": "skipped"}


def test_code_put_right_under_its_version_waits_for_a_retry(store):
    """What it asked for otherwise was refused to that version; another one, or a word of somebody, has it tried."""
    store.submit("t", work())
    go(store, pay_twice)
    finish(store, nonce="n1")
    wrong = attrs.evolve(pay_otherwise, code="1")
    assert go(store, wrong)["state"] == "blocked"
    assert go(store, pay_twice)["state"] == "blocked"
    store.retry("t", "r")
    assert go(store, pay_twice)["state"] == "running"


@pytest.mark.parametrize("is_late", [False, True])
def test_a_stop_during_a_call_undoes_what_was_noted_before_it(store, is_late):
    """The call is followed to its end; a compensation that was to be noted after it never is, as its function has no turn."""

    @workflow("agent")
    async def books(ctx: Context, _: object) -> None:
        if not is_late:
            await ctx.compensate("hotel", "ledger", {"undo": 1}, id="u")
        await ctx.call("ledger", id="hotel")
        if is_late:
            await ctx.compensate("hotel", "ledger", {"undo": 1}, id="u")

    store.submit("t", work())
    go(store, books)
    grant, ticket = take(store)
    assert ticket.operation == "hotel"
    store.cancel("t", "c")
    store.settle(grant, "succeeded", {"nonce": "n"}, "")
    if not is_late:
        finish(store)
    status = go(store, books)
    assert status["state"] == "cancelled"
    assert states(status) == {"hotel": "succeeded"} | ({} if is_late else {"u": "succeeded"})


def test_a_compensation_of_nothing_says_so(store):
    """Of a call that failed there is nothing to undo; of a name that nothing has, that is said, since it may be misspelt."""

    @workflow("agent")
    async def misspells(ctx: Context, _: object) -> None:
        await ctx.compensate("hotel", "ledger", {}, id="u")
        await ctx.compensate("hotle", "ledger", {}, id="v")
        await ctx.call("ledger", id="hotel")

    store.submit("t", work())
    go(store, misspells)
    finish(store, "failed")
    go(store, misspells)
    reasons = dict(store._rows("SELECT id, reason FROM operation WHERE state = 'skipped'"))
    assert reasons == {
        "u": "not-needed: there is no effect to undo",
        "v": "not-needed: no operation 'hotle' was ever asked for",
    }


def test_a_turn_that_takes_its_workers_with_it_is_parked(store):
    """After as many deaths in a row as the policy allows, the turn is for other code only; a turn that is taken clears them."""
    store.submit("t", work())
    for _ in range(store.policy.deaths_max):
        assert views.status(store, "t")["state"] == "running"
        (turn,) = claim(store)
        store.reclaim(turn.generation)
    status = views.status(store, "t")
    assert (status["state"], status["reason"]) == (
        "blocked",
        "turn-exhausted: 5 workers in a row were lost over one turn",
    )
    assert claim(store) == []
    (turn,) = claim(store, code="1.1")
    store.reclaim(turn.generation)
    (turn,) = claim(store, code="1.1")
    step(store, pay_twice, turn)
    assert store._value("SELECT deaths FROM workflow") == 0
    assert views.status(store, "t")["state"] == "running"


def test_a_turn_of_a_run_that_has_ended_is_not_parked(store):
    """A stop has taken it; that its holder went silent as well is told of in no event after the end."""
    store.submit("t", work())
    for _ in range(store.policy.deaths_max - 1):
        (turn,) = claim(store)
        store.reclaim(turn.generation)
    (turn,) = claim(store)
    store.cancel("t", "stop")
    told = events(store, "t", 0)
    assert told["events"][-1]["kind"] == "cancelled"
    store.reclaim(turn.generation)
    assert (events(store, "t", 0)["events"], claim(store), store.leases()) == (told["events"], [], [])


def lost(store: Store) -> None:
    """Worker after worker is lost over one turn."""
    for _ in range(store.policy.deaths_max):
        (turn,) = claim(store)
        store.reclaim(turn.generation)
    assert views.status(store, "t")["state"] == "blocked"


def test_a_parked_turn_is_tried_again_when_somebody_says_so(store):
    """By the same code, with every death forgotten and the history as it was; a repeat of the word changes nothing more."""
    store.submit("t", work())
    lost(store)
    assert store.retry("t", "1") == {"disposition": "accepted"}
    assert views.status(store, "t")["state"] == "running"
    lost(store)
    assert store.retry("t", "1") == {"disposition": "accepted"}
    assert claim(store) == []
    assert store.retry("t", "2") == {"disposition": "accepted"}
    (turn,) = claim(store)
    step(store, pay_twice, turn)
    assert views.status(store, "t")["state"] == "running"


def test_a_retry_of_nothing_says_so(store):
    """What is not parked is left alone; what is over stays over; an id means one command; an unknown task is refused."""
    store.submit("t", work())
    (turn,) = claim(store)
    assert store.retry("t", "1") == {"disposition": "nothing-parked"}
    assert store.holds_turn(turn)
    with pytest.raises(Refusal, match="conflict"):
        store.pause("t", "1")
    store.cancel("t", "2")
    assert store.retry("t", "3") == {"disposition": "too-late", "why": "the task has ended: cancelled"}
    store.submit("p", plan(call("a")))
    assert store.retry("p", "4") == {"disposition": "nothing-parked"}
    with pytest.raises(Refusal, match="unknown-task"):
        store.retry("nobody", "5")


def test_a_child_whose_end_was_taken_is_not_told_what_comes_late(store):
    """Its function has no turn for a late word about its effect: its owner went on without it, and ends as it would."""
    inner = {"op": "child", "id": "k", "plan": plan(call("a", "mailer"), call("b"))}
    store.submit("t", replayed(plan({"op": "par", "id": "both", "children": [inner, wait("w", "go")]})))

    def run_turns() -> None:
        for _ in range(9):
            turns = store.claim_turns("w#1", {INTERPRETER.name: "1"}, [], 8)
            for turn in turns:
                step(store, INTERPRETER, turn)
            if not turns:
                return
        raise AssertionError("turns are given out for ever")

    run_turns()
    finish(store, "unknown")
    run_turns()
    store.signal("t/k", "n", "notice", {"operation": "a", "nonce": "late"})
    run_turns()
    status = views.status(store, "t/k")
    assert (status["state"], states(status)) == ("blocked", {"a": "reconciled", "b": "planned"})
    store.signal("t", "g", "go", {"nonce": "n"})
    run_turns()
    assert (views.status(store, "t")["state"], store.leases()) == ("blocked", [])


@pytest.mark.parametrize(
    ("leaf", "said"),
    [
        ({**wait("w", "go"), "timeout": 1}, "wait 'w': it has no timeout; it has signal, timeout_ns"),
        (wait("w~1", "go"), "operation id 'w~1'"),
    ],
)
@pytest.mark.parametrize("in_style", [dict, replayed])
def test_a_child_of_a_workflow_is_spelt_as_a_task_is(store, leaf, said, in_style):
    """Its plan is refused as it would be by itself, and nothing of the turn is taken."""

    @workflow("agent")
    async def parent(ctx: Context, _: object) -> None:
        await ctx.child(in_style(plan(leaf)), id="k")

    store.submit("t", work())
    (turn,) = claim(store)
    with pytest.raises(Refusal, match=re.escape(said)):
        step(store, parent, turn)
    assert views.status(store, "t")["operations"] == []
    with pytest.raises(Refusal, match=re.escape(said)):
        store.submit("own", in_style(plan(leaf)))
