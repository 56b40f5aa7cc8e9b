"""Approvals in workflows: what was approved is what is asked for, and a call that nobody can release any more ends."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Awaitable, Callable
from typing import Any

import attrs
import pytest

from reference_runtime import Store, views
from reference_runtime.documents import replayed
from reference_runtime.interpreter import INTERPRETER
from reference_runtime.model import Grant, Ticket
from reference_runtime.turns import Turn
from reference_runtime.workflow import Context, OperationFailed, workflow
from tests.reference_runtime.test_replay_store import go, step, work
from tests.replay_rig import CTX, begin, ids, ok
from tests.runtime_rig import EAGER, approve, call, finish, par, plan, race, seq, states, under, wait


def _approving(second: Callable[[], Any]) -> Callable[[], Any]:
    async def agent():
        await CTX.approve(CTX.call("ledger", {"amount": 1}, id="pay"), id="ok")
        return await second()

    return agent


@pytest.mark.parametrize(
    ("second", "got"),
    [
        (lambda: CTX.call("ledger", {"amount": 9}, id="pay"), "call 'pay'"),
        (lambda: CTX.call("ledger", {"amount": 1}, id="pay", tries=2), "call 'pay'"),
        (lambda: CTX.call("reader", {"amount": 1}, id="pay"), "call 'pay'"),
        (lambda: CTX.wait("go", id="pay"), "wait 'pay'"),
        (lambda: CTX.approve(CTX.call("ledger", {"amount": 2}, id="pay"), id="again"), "call 'pay'"),
    ],
)
@pytest.mark.parametrize("prefix", ["", "2~"])
def test_what_was_approved_is_what_is_asked_for(second, got, prefix):
    """Anything else under its id is refused, with both side by side; a history that has it already is let be."""
    replay = begin(_approving(second), prefix=prefix)
    known = list(replay.fresh)
    replay.recorded()
    replay.deliver(ok(f"{prefix}ok"))
    said = str(replay.check())
    theirs, ours = said.split(", the code has ")
    assert f"call '{prefix}pay'" in theirs
    assert '{"params":{"amount":1},"service":"ledger","tolerate":true}' in theirs
    assert ours.startswith(got.replace("'pay'", f"'{prefix}pay'"))
    known.append(replay.fresh[0])
    later = begin(_approving(second), known, prefix)
    later.deliver(ok(f"{prefix}ok"))
    assert (later.check(), later.fresh) == (None, [])
    for one in (replay, later):
        one.close()


def test_what_was_approved_and_changed_since_is_refused():
    """Both say what they said as they were asked for, though the function goes on changing the same dict."""

    async def agent():
        to = {"account": "A"}
        pay = CTX.call("ledger", {"to": to}, id="pay")
        await CTX.approve(pay, id="ok")
        to["account"] = "B"
        await pay

    replay = begin(agent)
    replay.recorded()
    replay.deliver(ok("ok"))
    theirs, ours = str(replay.check()).split(", the code has ")
    assert ('"account":"A"' in theirs, '"account":"B"' in ours) == (True, True)
    replay.close()


@pytest.mark.parametrize("is_first", [True, False])
def test_a_call_and_its_approval_may_be_asked_for_side_by_side(is_first):
    """In either order: neither is begun before both are known. As another one it is refused there, too."""

    async def agent(amount: int) -> None:
        pay = CTX.call("ledger", {"amount": 1}, id="pay")
        ok = CTX.approve(CTX.call("ledger", {"amount": amount}, id="pay"), id="ok")
        await CTX.gather(*((pay, ok) if is_first else (ok, pay)))

    replay = begin(functools.partial(agent, 1))
    assert (replay.check(), sorted(ids(replay))) == (None, ["ok", "pay"])
    other = begin(functools.partial(agent, 2))
    assert "operation 'pay' is not what is to be approved" in str(other.check())
    for one in (replay, other):
        one.close()


def test_nobody_is_asked_about_what_may_have_been_sent():
    """However the outcomes come, an approval that follows its call is refused; one that history has is let be."""

    async def agent():
        async def late() -> None:
            await CTX.wait("go", id="go")
            await CTX.approve(CTX.call("ledger", id="pay"), id="ok")

        await CTX.gather(CTX.call("ledger", id="pay"), late())

    replay = begin(agent)
    first = list(replay.fresh)
    for is_taken in (True, False):
        one = begin(agent)
        if is_taken:
            one.recorded()
        one.deliver(ok("go"))
        assert "approve 'ok' is about 'pay', which was asked for before it" in str(one.check())
        asked = one.fresh[-1]
        one.close()
    later = begin(agent, [*first, asked])
    later.deliver(ok("go"))
    assert (later.check(), later.fresh) == (None, [])
    for one in (replay, later):
        one.close()


@workflow("agent")
async def asks(ctx: Context, pays: Any) -> str:
    """Have a payment approved, and make it only if told to."""
    payment = ctx.call("ledger", {"amount": 5}, id="pay")
    decision = await ctx.approve(payment, id="ok")
    return str((await payment)["nonce"]) if pays else decision


@pytest.mark.parametrize(("pays", "result", "ends"), [(True, "n-pay", "succeeded"), (False, "yes", "skipped")])
def test_an_approval_is_about_the_call_that_follows(store, pays, result, ends):
    """The decision is bound to the call as it will be made; one that is never made is skipped in the end."""
    store.submit("t", work(pays))
    status = go(store, asks)
    (approval,) = status["approvals"]
    assert (status["state"], status["on"], approval["of"]) == ("waiting", "ok", "pay")
    store.decide("t", "ok", "approve", approval["digest"], "alice", "d1", "yes")
    go(store, asks)
    for lease in store.claim("w", (), 1):
        assert isinstance(lease, Grant)
        ticket = store.dispatch(attrs.evolve(lease, granted={"ok": True}))
        assert isinstance(ticket, Ticket)
        store.settle(under(ticket), "succeeded", {"nonce": "n-pay"}, "")
    status = go(store, asks)
    assert (status["state"], status["result"]) == ("done", result)
    assert states(status) == {"ok": "succeeded", "pay": ends}


@workflow("agent")
async def gives_up(ctx: Context, mode: Any) -> Any:
    """Ask about a payment for as long as nobody says `late`, and make it all the same; or ask somebody else."""
    payment = ctx.call("ledger", {"amount": 5}, id="pay")

    async def asking() -> int:
        which, _ = await ctx.race(ctx.approve(payment, id="ok"), ctx.wait("late", id="late"))
        return which

    try:
        if mode == "beside":
            return [(await ctx.gather(payment, asking()))[0]["nonce"]]
        which = await asking()
        if which == 1 and mode == "anew":
            await ctx.approve(payment, id="boss")
        return (await payment)["nonce"]
    except OperationFailed as failed:
        if mode == "raises":
            raise
        return [failed.operation, failed.reason]


GIVEN_UP = "withdrawn: approval 'ok' was given up before anybody decided"


def pay(store: Store) -> list[str]:
    """Carry out what may be claimed; whose authority was asked for."""
    asked: list[str] = []
    for lease in store.claim("w", (), 2):
        assert isinstance(lease, Grant)
        asked += lease.authority
        ticket = store.dispatch(attrs.evolve(lease, granted=dict.fromkeys(lease.authority, True)))
        assert isinstance(ticket, Ticket)
        store.settle(under(ticket), "succeeded", {"nonce": "paid"}, "")
    return asked


@pytest.mark.parametrize("mode", ["awaits", "beside", "raises"])
def test_what_a_given_up_approval_was_to_release_ends(store, mode):
    """Nobody will decide any more: the call fails for that at once, whether it was awaited by then or is afterwards."""
    store.submit("t", work(mode))
    assert go(store, gives_up)["on"] == "ok"
    store.signal("t", "s", "late", {})
    status = go(store, gives_up)
    assert states(status) == {"ok": "skipped", "pay": "failed", "late": "succeeded"}
    assert [one["state"] for one in status["approvals"]] == ["withdrawn"]
    if mode == "raises":
        assert (status["state"], status["reason"]) == ("failed", GIVEN_UP)
    else:
        assert (status["state"], status["result"]) == ("done", ["pay", GIVEN_UP])
    assert store.claim("w", (), 1) == []


@pytest.mark.parametrize(("mode", "result"), [("awaits", "paid"), ("beside", ["paid"])])
def test_an_approval_that_came_in_time_releases(store, mode, result):
    """The other way the race may go."""
    store.submit("t", work(mode))
    (approval,) = go(store, gives_up)["approvals"]
    store.decide("t", "ok", "approve", approval["digest"], "alice", "d", "yes")
    go(store, gives_up)
    assert pay(store) == ["ok"]
    status = go(store, gives_up)
    assert (status["state"], status["result"]) == ("done", result)


def test_a_given_up_approval_is_heard_of_after_a_restart(store, tmp_path):
    """It is given up by one server, and the call awaited under another one."""

    @workflow("agent")
    async def waits(ctx: Context, _: object) -> str:
        payment = ctx.call("ledger", {"amount": 5}, id="pay")
        await ctx.race(ctx.approve(payment, id="ok"), ctx.wait("late", id="late"))
        await ctx.wait("go", id="go")
        return str((await payment)["nonce"])

    store.submit("t", work())
    go(store, waits)
    store.signal("t", "s", "late", {})
    go(store, waits)
    store.close()
    later = Store.open(str(tmp_path / "s.db"), policy=EAGER)
    later.signal("t", "g", "go", {})
    status = go(later, waits)
    assert (status["state"], status["reason"]) == ("failed", GIVEN_UP)
    later.close()


def test_somebody_else_may_be_asked_about_the_same(store):
    """The one that was given up is shown as that, and holds nothing up once the call was asked about anew."""
    store.submit("t", work("anew"))
    go(store, gives_up)
    store.signal("t", "s", "late", {})
    status = go(store, gives_up)
    assert (status["state"], status["on"], store.claim("w", (), 1)) == ("waiting", "boss", [])
    store.decide("t", "boss", "approve", status["approvals"][0]["digest"], "alice", "d", "yes")
    go(store, gives_up)
    assert pay(store) == ["boss"]
    status = go(store, gives_up)
    assert (status["state"], status["result"]) == ("done", "paid")
    assert {one["operation"]: one["state"] for one in status["approvals"]} == {"ok": "withdrawn", "boss": "released"}


def test_what_else_was_asked_about_it_ends_with_it(store):
    """Two were to decide, one of whom is not waited for any more: nobody waits for the other one's word for nothing."""

    @workflow("agent")
    async def two(ctx: Context, _: object) -> list[str]:
        payment = ctx.call("ledger", {"amount": 5}, id="pay")

        async def reason(one: Awaitable[Any]) -> str:
            try:
                return str(await one)
            except OperationFailed as failed:
                return f"{failed.operation} {failed.reason}"

        first = ctx.race(ctx.approve(payment, id="ok"), ctx.wait("late", id="late"))
        return (await ctx.gather(reason(payment), first, reason(ctx.approve(payment, id="boss"))))[::2]

    store.submit("t", work())
    assert go(store, two)["state"] == "waiting"
    store.signal("t", "s", "late", {})
    status = go(store, two)
    assert (status["state"], status["result"]) == ("done", [f"pay {GIVEN_UP}", f"boss {GIVEN_UP}"])
    assert [one["state"] for one in status["approvals"]] == ["withdrawn", "withdrawn"]


def test_what_is_asked_anew_at_once_is_not_given_up(store):
    """Given up and asked about anew in one turn, beside the call itself."""

    @workflow("agent")
    async def beside(ctx: Context, _: object) -> str:
        payment = ctx.call("ledger", {"amount": 5}, id="pay")

        async def asking() -> None:
            await ctx.race(ctx.approve(payment, id="ok"), ctx.gather())
            await ctx.approve(payment, id="boss")

        return str((await ctx.gather(payment, asking()))[0]["nonce"])

    store.submit("t", work())
    status = go(store, beside)
    assert states(status) == {"pay": "planned", "ok": "skipped", "boss": "planned"}
    assert (status["state"], status["on"]) == ("waiting", "boss")
    digest = status["approvals"][0]["digest"]
    store.decide("t", "boss", "approve", digest, "alice", "d", "yes")
    assert pay(store) == ["boss"]
    status = go(store, beside)
    assert (status["state"], status["result"]) == ("done", "paid")


@pytest.mark.parametrize("is_first", [True, False])
def test_a_call_beside_its_approval_waits_quietly(store, is_first):
    """It is shown as waiting for the decision, is nobody's to claim before, and leaves after it."""

    @workflow("agent")
    async def beside(ctx: Context, _: object) -> list[Any]:
        payment = ctx.call("ledger", {"amount": 5}, id="pay")
        both = (payment, ctx.approve(payment, id="ok"))
        return [len(await ctx.gather(*(both if is_first else both[::-1])))]

    store.submit("t", work())
    status = go(store, beside)
    assert (status["state"], status["phase"], status["on"]) == ("waiting", "waiting", "ok")
    assert store.claim("w", (), 1) == []
    store.decide("t", "ok", "approve", status["approvals"][0]["digest"], "alice", "d", "yes")
    assert pay(store) == ["ok"]
    status = go(store, beside)
    assert (status["state"], status["result"]) == ("done", [2])


def walk(store: Store) -> None:
    """Take turns of the interpreter until none is due."""
    turns: list[Turn | None] = list(store.claim_turns("w#1", {"interpret": "1"}, (), 8))
    while turns:
        turn = turns.pop()
        if turn is not None:
            turns.append(step(store, INTERPRETER, turn)[1])


def test_a_call_of_a_plan_waits_for_an_approval_that_is_still_to_be_asked_for(store):
    """In the style of replay, too: what stands beside the approval may come first, and is held all the same."""
    asking = seq(call("x"), approve("ok", "pay"))
    store.submit("t", replayed(plan(par(asking, call("pay", amount=5)))))
    walk(store)
    finish(store)
    walk(store)
    status = views.status(store, "t")
    assert (status["on"], states(status)["pay"], store.claim("w", (), 1)) == ("ok", "planned", [])
    store.decide("t", "ok", "approve", status["approvals"][0]["digest"], "alice", "d", "yes")
    assert pay(store) == ["ok"]
    walk(store)
    assert views.status(store, "t")["state"] == "done"


def test_a_denied_approval_is_not_for_the_function_to_catch(store):
    """It fails the task for the denial, and the function is told nothing of it."""

    @workflow("agent")
    async def hopes(ctx: Context, _: object) -> str:
        try:
            await ctx.approve(ctx.call("ledger", id="pay"), id="ok")
        except OperationFailed:
            return "caught"
        return "approved"

    store.submit("t", work())
    (approval,) = go(store, hopes)["approvals"]
    store.decide("t", "ok", "deny", approval["digest"], "alice", "d1", "no")
    status = go(store, hopes)
    assert (status["state"], status["reason"]) == ("failed", "denied: ok by alice")


PASSED_OVER = "withdrawn: 'pay' was skipped"


async def loses_a_race(ctx: Context, payment: Any) -> None:
    await ctx.race(payment, ctx.wait("late", id="late"))


async def loses_by_an_error(ctx: Context, payment: Any) -> None:
    async def breaks() -> None:
        await ctx.wait("late", id="late")
        raise ValueError

    with contextlib.suppress(ValueError):
        await ctx.gather(payment, breaks())


@pytest.mark.parametrize("loses", [loses_a_race, loses_by_an_error])
@pytest.mark.parametrize("is_caught", [True, False])
def test_an_approval_of_a_call_that_is_given_up_is_told_so(store, loses, is_caught):
    """It stands outside of what gave the call up: whoever waits for the decision is told that none will come."""

    @workflow("agent")
    async def agent(ctx: Context, _: object) -> Any:
        payment = ctx.call("ledger", {"amount": 5}, id="pay")

        async def asking() -> str:
            try:
                return await ctx.approve(payment, id="ok")
            except OperationFailed as failed:
                if is_caught:
                    return str(failed)
                raise

        return (await ctx.gather(asking(), loses(ctx, payment)))[0]

    store.submit("t", work())
    assert go(store, agent)["on"] == "ok"
    store.signal("t", "s", "late", {})
    status = go(store, agent)
    assert states(status) == {"ok": "failed", "pay": "skipped", "late": "succeeded"}
    assert [one["state"] for one in status["approvals"]] == ["withdrawn"]
    if is_caught:
        assert (status["state"], status["result"]) == ("done", f"ok: {PASSED_OVER}")
    else:
        assert (status["state"], status["reason"]) == ("failed", PASSED_OVER)


def test_an_approval_of_a_call_that_was_just_given_up_is_not_asked_for(store):
    """Both in one turn: the question comes after the call is gone."""

    @workflow("agent")
    async def agent(ctx: Context, _: object) -> str:
        payment = ctx.call("ledger", {"amount": 5}, id="pay")
        await ctx.race(payment, ctx.gather())
        try:
            return await ctx.approve(payment, id="ok")
        except OperationFailed as failed:
            return failed.reason

    store.submit("t", work())
    status = go(store, agent)
    assert (status["state"], status["result"], status["approvals"]) == ("done", PASSED_OVER, [])


def test_an_approval_that_is_given_up_with_its_call_is_skipped(store):
    """Nobody waits for either, in whichever order they stand, so neither fails."""

    @workflow("agent")
    async def agent(ctx: Context, _: object) -> None:
        payment = ctx.call("ledger", {"amount": 5}, id="pay")
        both = ctx.gather(payment, ctx.approve(payment, id="ok"))
        await ctx.race(both, ctx.wait("late", id="late"))

    store.submit("t", work())
    go(store, agent)
    store.signal("t", "s", "late", {})
    status = go(store, agent)
    assert (status["state"], states(status)["pay"], states(status)["ok"]) == ("done", "skipped", "skipped")


@pytest.mark.parametrize("is_late", [False, True])
def test_an_approval_of_a_plan_ends_with_its_call(store, is_late):
    """In the style of replay as in the other one: it is skipped, and the walk goes on, also where it comes to it afterwards."""
    asking = seq(*([wait("w", "go")] if is_late else []), approve("ok", "pay"), call("z"), id_="asking")
    store.submit("t", replayed(plan(par(asking, race("r", call("pay", amount=5), wait("late", "late"))))))
    walk(store)
    for name in ("late", "go"):
        store.signal("t", name, name, {})
        walk(store)
    (one,) = [one for one in views.status(store, "t")["operations"] if one["id"] == "ok"]
    assert (one["state"], one["detail"]) == ("skipped", PASSED_OVER)
    finish(store)
    walk(store)
    status = views.status(store, "t")
    assert (status["state"], states(status)["z"]) == ("done", "succeeded")


@pytest.mark.parametrize(
    ("kind", "make"),
    [
        ("child", lambda: CTX.child(plan(call("a")), id="one")),
        ("artifact", lambda: CTX.artifact("report", 5, id="one")),
        ("sleep", lambda: CTX.sleep(5, id="one")),
        ("approve", lambda: CTX.approve(CTX.call("ledger", id="pay"), id="one")),
    ],
)
def test_only_calls_are_approved(kind, make):
    """Anything else would begin without the decision; a model's call waits for it, too."""
    with pytest.raises(ValueError, match=rf"no {kind} can be approved; what can be is ctx\.call\(.*ctx\.model\("):
        CTX.approve(make(), id="ok")
    assert CTX.approve(CTX.model("say", 5, id="one"), id="ok").leaf["of"] == "one"
