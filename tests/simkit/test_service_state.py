"""The services beyond keys: fencing, metering, authority, long work, verdicts; look-ups, padding and forgotten keys."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from simkit.services import CHECK_OUTCOMES, KEY_LIFETIME_NS, Fault, Reply, Request
from tests.service_rig import Counter, World, at, kinds, replies


def fenced(token: int | None, op: str = "a", key: str | None = None, run: str = "r") -> Request:
    return Request("fenced", run, op, key, token=token)


# -- fenced ----------------------------------------------------------------------------------------------------------


def test_a_token_older_than_the_newest_seen_is_refused() -> None:
    """The same token and newer ones pass, an older one is told so for good; other operations have tokens of their own."""
    counter = Counter()
    kinds = [counter.ask(fenced(token)).kind for token in (2, 2, 3, 2, 3)]
    assert kinds == ["executed", "executed", "executed", "fenced", "executed"]
    assert counter.ask(fenced(1, "b")).kind == "executed"
    assert counter.ask(fenced(2)) == Reply(409, {"error": "fenced"}, "fenced")


def test_a_request_without_token_is_older_than_every_token() -> None:
    """It passes only where no token was seen yet."""
    counter = Counter()
    assert [counter.ask(fenced(token)).kind for token in (None, 1, None)] == ["executed", "executed", "fenced"]


def test_fencing_comes_before_keys() -> None:
    """Even a saved answer is not for one whose token is old; with the newest token the key gives it again."""
    counter = Counter()
    asked = [fenced(1, key="k"), fenced(2, key="k"), fenced(1, key="k")]
    assert [counter.ask(request).kind for request in asked] == ["executed", "saved", "fenced"]


def test_a_newer_token_overtakes_one_that_is_on_its_way() -> None:
    """A request held between its barriers is refused when it would be applied after a newer one was seen; its key is free."""
    counter = Counter()
    held = counter.state.begin(10, fenced(1, key="k"))
    assert counter.ask(fenced(2, key="other")).kind == "executed"
    assert counter.state.settle(held).reply.kind == "fenced"
    assert counter.ask(fenced(2, key="k")).kind == "executed"


@given(st.lists(st.tuples(st.sampled_from("ab"), st.none() | st.integers(0, 5)), max_size=12))
def test_tokens_that_had_effects_never_go_back(asked: list[tuple[str, int | None]]) -> None:
    """Over any order of requests, the tokens behind an operation's effects do not decrease, and the newest one passes."""
    counter = Counter()
    passed: dict[str, list[int]] = {"a": [], "b": []}
    for op, token in asked:
        reply = counter.ask(fenced(token, op))
        if reply.kind == "executed":
            passed[op].append(-1 if token is None else token)
        else:
            assert passed[op]
            assert passed[op][-1] > (-1 if token is None else token)
    for tokens in passed.values():
        assert tokens == sorted(tokens)


# -- model -----------------------------------------------------------------------------------------------------------


def model(**params: Any) -> Request:
    return Request("model", "r", "a", params={"prompt": "say", **params})


@pytest.mark.parametrize(
    ("params", "tokens"), [({"tokens": 101}, 50), ({"tokens": 100, "uses": 120}, 120), ({"uses": 0}, 0), ({}, 1)]
)
def test_a_model_meters_what_it_used(params: dict[str, int], tokens: int) -> None:
    """By `uses`, else half of what was allowed; it may be more than was allowed. The answer and the record agree."""
    reply = Counter().ask(model(**params))
    assert (reply.body["usage"], reply.usage) == ({"tokens": tokens}, tokens)


USES = st.lists(
    st.tuples(st.none() | st.integers(0, 9), st.sampled_from(["ok", "duplicate", "wrong", "429", "reject"]))
)


@given(USES)
def test_what_is_metered_is_what_was_answered(asked: list[tuple[int | None, str]]) -> None:
    """Over any answers and refusals, a refusal costs nothing, and every answer costs what it tells, with calls that parse."""
    counter = Counter()
    for uses, entry in asked:
        settled = counter.settle(model(tokens=10) if uses is None else model(tokens=10, uses=uses), entry)
        answered = entry not in {"429", "reject"}
        assert (settled.effect is not None) is answered
        assert settled.reply.usage == ((5 if uses is None else uses) if answered else None)
        calls = settled.reply.body["calls"] if answered else []
        assert all(isinstance(call["id"], str) and isinstance(call["arguments"]["amount"], int) for call in calls)
    assert counter.state.effects == sum(entry not in {"429", "reject"} for _, entry in asked)


def test_the_transcript_chooses_the_answer_and_every_answer_is_a_new_one() -> None:
    """One transcript gets the same words and tool call under a fresh nonce; another transcript gets others."""
    counter = Counter()
    one, same, other = (
        counter.ask(model()),
        counter.ask(model()),
        counter.ask(attrs.evolve(model(), carries={"z": "n"})),
    )
    assert one.nonce != same.nonce
    assert (one.body["content"], one.body["calls"]) == (same.body["content"], same.body["calls"])
    assert one.body["content"] != other.body["content"]
    assert one.body["calls"][0]["id"] != other.body["calls"][0]["id"]


def test_tool_calls_may_be_bad_while_their_form_is_right() -> None:
    """`duplicate` gives two calls under one id, `wrong` an amount below zero; both cost what a good answer costs."""
    good, twice, wrong = (Counter().ask(model(tokens=8), entry) for entry in ("ok", "duplicate", "wrong"))
    assert [call["id"] for call in twice.body["calls"]] == [good.body["calls"][0]["id"]] * 2
    assert twice.body["calls"][0]["arguments"] != twice.body["calls"][1]["arguments"]
    assert wrong.body["calls"][0]["arguments"]["amount"] < 0 < good.body["calls"][0]["arguments"]["amount"]
    assert {good.usage, twice.usage, wrong.usage} == {4}


def test_an_answer_may_leave_its_price_out() -> None:
    """`unmetered` says nothing of tokens, and all else as it would have said it."""
    good, unpriced = (Counter().ask(model(tokens=8), entry) for entry in ("ok", "unmetered"))
    assert (good.body.keys() - unpriced.body.keys(), unpriced.usage) == ({"usage"}, None)
    assert {name: good.body[name] for name in unpriced.body} == unpriced.body


@pytest.mark.parametrize("entry", ["429", "529"])
@pytest.mark.parametrize("service", ["model", "ledger"])
def test_a_refusal_for_lack_of_room_says_when_to_come_back(service: str, entry: str) -> None:
    """Nothing happened, nothing is saved, the key is free again, and the caller is told how long to wait."""
    request = Request(service, "r", "a", "k")
    counter = Counter()
    settled = counter.settle(request, entry)
    assert (settled.reply.status, settled.reply.kind, settled.effect) == (int(entry), "limited", None)
    assert settled.reply.body["retry_after_ns"] > 0
    assert (counter.ask(request).kind, counter.state.effects) == ("executed", 1)


def test_an_answer_that_is_cut_was_paid_for() -> None:
    """The reply breaks off in the middle: the effect and its usage are on record, the caller has nothing whole."""

    async def main() -> tuple[list[Any], World]:
        world = World()
        asked = attrs.evolve(model(tokens=8), script=("cut", "error-after", "ok"))
        lost = at("applied", Fault("drop"), nth=3)
        return [await world.ask(asked, lost) for _ in range(3)], world

    got, world = trio.run(main)
    assert (got[0], got[1].status, got[2]) == ("cut", 503, "dropped")
    assert [row[-1] for row in world.facts.rows if row[0] == "replied"] == ["reset", "sent", "dropped"]
    assert [reply.usage for reply in world.facts.answers] == [4, 4, 4]


# -- checker ---------------------------------------------------------------------------------------------------------


def test_a_checker_says_what_its_script_says_about_what_it_was_asked() -> None:
    """Outcomes come request by request, passed when the script is at its end; each names subject, version and digest."""
    check = Request("checker", "r", "c", subject="report", version=2, digest="d1", script=CHECK_OUTCOMES)
    got = replies(*[check] * 6)
    assert [reply.outcome for reply in got if isinstance(reply, Reply)] == [*CHECK_OUTCOMES, "passed"]
    for reply in got:
        assert isinstance(reply, Reply)
        body = reply.body
        assert (body["outcome"], body["subject"], body["version"], body["digest"]) == (reply.outcome, "report", 2, "d1")
    assert len({reply.nonce for reply in got if isinstance(reply, Reply)}) == 6


@given(st.lists(st.sampled_from([*CHECK_OUTCOMES, "429", "reject", "error-after"]), max_size=6))
def test_a_verdict_is_the_scripts_or_there_is_none(script: list[str]) -> None:
    """Each request follows its own entry: a verdict, or a refusal or failure that says nothing about the subject."""
    check = Request("checker", "r", "c", subject="report", version=1, digest="d", script=tuple(script))
    for entry, reply in zip(script, replies(*[check] * len(script)), strict=True):
        assert isinstance(reply, Reply)
        assert reply.body.get("outcome") == (entry if entry in CHECK_OUTCOMES else None)


# -- desk ------------------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.sampled_from(["grant", "revoke", "ask"]), st.sampled_from(["alice", "mallory", "bob"]))))
def test_authority_is_what_was_granted_and_not_withdrawn_since(steps: list[tuple[str, str]]) -> None:
    """Alice may decide from the beginning, nobody else; every question gets what is true at that moment."""
    counter, allowed = Counter(), {"alice"}
    for action, actor in steps:
        if action == "ask":
            reply = counter.ask(Request("desk", "r", "w", lookup=True, actor=actor))
            assert reply == Reply(200, {"allowed": actor in allowed, "actor": actor}, "found")
        elif action == "grant":
            counter.state.grant(actor)
            allowed.add(actor)
        else:
            counter.state.revoke(actor)
            allowed.discard(actor)


def test_the_actor_may_stand_in_params_and_changes_of_authority_are_on_record() -> None:
    """Both forms of the question mean the same; the outside records a grant and a revocation in order with the answers."""

    async def main() -> list[tuple[Any, ...]]:
        world = World()
        question = Request("desk", "r", "w", lookup=True, params={"actor": "alice"})
        assert (await world.ask(question)).body["allowed"]  # type: ignore[union-attr]
        world.outside.revoke("alice")
        assert not (await world.ask(attrs.evolve(question, params={}, actor="alice"))).body["allowed"]  # type: ignore[union-attr]
        world.outside.grant("alice")
        return [row for row in world.facts.rows if row[0] != "received"]

    assert [row[:3] for row in trio.run(main)] == [
        ("replied", 1, 200),
        ("authority", "alice", False),
        ("replied", 2, 200),
        ("authority", "alice", True),
    ]


# -- operation -------------------------------------------------------------------------------------------------------


def start(key: str | None = None, **params: Any) -> Request:
    return Request("operation", "r", "a", key, params=params)


def get(name: str | None = None) -> Request:
    return Request("operation", "r", "a", lookup=True, params={"name": name} if name else {})


def test_long_work_is_named_at_once_and_done_later() -> None:
    """A start answers with a name; who asks later gets "not yet", then a result that nobody knew before."""
    counter = Counter()
    assert counter.ask(get()).kind == "missing"
    started = counter.ask(start(ns=10))
    name = started.body["name"]
    assert counter.ask(get(name)).body == {"name": name, "nonce": started.nonce, "done": False}
    counter.now_ns = 10
    done = counter.ask(get())
    assert (done.body["done"], done.nonce) == (True, started.nonce)
    assert done.body["result"] not in {None, started.nonce}
    assert counter.ask(get(name)) == done


def test_a_start_is_keyed_and_what_is_asked_afterwards_is_not() -> None:
    """The same key starts nothing twice; cancel and delete under that key are no start."""
    counter = Counter()
    first, second = counter.ask(start("k", ns=10)), counter.ask(start("k", ns=10))
    assert (second.kind, second.body["name"]) == ("saved", first.body["name"])
    cancel = start("k", action="cancel", name=first.body["name"])
    assert counter.ask(cancel).kind == "executed"
    assert counter.ask(cancel).kind == "executed"


def test_a_reference_finds_the_first_operation_that_was_started_under_it() -> None:
    """Without a key a start is a new one every time; what was found once is found again, the others by their names."""
    counter = Counter()
    first, second = counter.ask(start()).body["name"], counter.ask(start()).body["name"]
    assert [counter.ask(one).body["name"] for one in (get(), get(second))] == [first, second]


@pytest.mark.parametrize(("stubborn", "error"), [(False, "cancelled"), (True, None)])
def test_a_cancel_is_a_request(stubborn: bool, error: str | None) -> None:
    """Work may heed it or not; either way the asker finds out only by asking, and cancelling it again changes nothing."""
    counter = Counter()
    name = counter.ask(start(ns=10, stubborn=stubborn)).body["name"]
    assert counter.ask(start(action="cancel", name=name)).status == 200
    assert counter.ask(get(name)).body.get("error") == error
    counter.now_ns = 10
    end = counter.ask(get(name)).body
    assert end["done"]
    assert end.get("error") == error
    assert ("result" in end) is stubborn


def test_a_cancel_that_comes_after_the_end_changes_nothing() -> None:
    """What is done stays done, with its result."""
    counter = Counter()
    name = counter.ask(start()).body["name"]
    done = counter.ask(get(name))
    counter.ask(start(action="cancel", name=name))
    assert counter.ask(get(name)) == done


def test_a_deleted_operation_is_gone_and_works_on() -> None:
    """Nobody finds it any more, by name or by reference, and it is not stopped."""
    counter = Counter()
    name = counter.ask(start(ns=10)).body["name"]
    assert counter.ask(start(action="delete", name=name)).status == 200
    assert [counter.ask(one).kind for one in (get(name), get(), start(action="delete", name=name))] == ["missing"] * 3
    assert counter.state.operations.is_working(name)


@given(st.lists(st.sampled_from(["start", "cancel", "delete", "get", "wait"]), max_size=15), st.booleans())
def test_whatever_is_asked_what_was_done_stays_so(steps: list[str], stubborn: bool) -> None:
    """Over any order of questions, an end once seen is seen again, until the operation is deleted, and then never more."""
    counter = Counter()
    name = counter.ask(start(ns=3, stubborn=stubborn)).body["name"]
    end, deleted = None, False
    for step in steps:
        if step == "wait":
            counter.now_ns += 1
        elif step == "get":
            reply = counter.ask(get(name))
            assert (reply.kind == "missing") is deleted
            assert deleted or end in (None, reply.body)
            end = reply.body if not deleted and reply.body["done"] else end
        else:
            counter.ask(start(ns=3) if step == "start" else start(action=step, name=name))
            deleted = deleted or step == "delete"


# -- for every service -----------------------------------------------------------------------------------------------


def test_look_ups_follow_a_script_of_their_own() -> None:
    """A receiver may be down for look-ups: 503, whatever it has; entries that are no look-up's mean nothing there."""
    do = Request("registry", "r", "a", script=("ok", "error-before"))
    look = attrs.evolve(do, lookup=True, script=("down", "error-before", "ok"))
    assert kinds(do, look, look, look, look) == ["executed", "error", "found", "found", "found"]


def test_nonces_are_padded_to_the_length_that_is_asked_for() -> None:
    """`answer_bytes` makes answers of any size: the nonce, in answer and effect alike, filled up with dots."""
    settled = Counter().settle(Request("ledger", "r", "a", "k", {"answer_bytes": 9}))
    assert settled.reply.nonce == settled.reply.body["nonce"] == "n1......."
    assert settled.effect
    assert settled.effect.nonce == "n1......."
    assert Counter().ask(Request("ledger", "r", "a", "k", {"answer_bytes": 1})).nonce == "n1"


def test_every_answer_tells_the_receivers_own_id_of_the_request() -> None:
    """Executed, saved, refused, failed and looked up alike, each another one, and the record has it too."""
    do = Request("flaky", "r", "a", "k", script=("error-before", "reject"))
    got = replies(do, do, do, do, Request("registry", "r", "a", lookup=True))
    ids = [reply.body["request"] for reply in got if isinstance(reply, Reply)]
    assert len(set(ids)) == 5
    assert ids == [reply.external for reply in got if isinstance(reply, Reply)]


@given(st.integers(1, 100), st.lists(st.integers(0, 60), max_size=10))
def test_a_key_lives_as_long_as_the_outside_was_told(lifetime_ns: int, pauses_ns: Iterable[int]) -> None:
    """From the answer that was saved until the lifetime is over a key is kept, and then it starts anew."""
    counter = Counter(key_lifetime_ns=lifetime_ns)
    saved_ns = None
    for pause_ns in pauses_ns:
        counter.now_ns += pause_ns
        kept = saved_ns is not None and counter.now_ns - saved_ns < lifetime_ns
        assert counter.ask(Request("ledger", "r", "a", "k")).kind == ("saved" if kept else "executed")
        saved_ns = saved_ns if kept else counter.now_ns
    assert KEY_LIFETIME_NS == 86_400_000_000_000


def test_a_key_and_a_reference_may_be_forgotten_at_once() -> None:
    """The kit makes a receiver forget: a key starts anew, a reference finds nothing; the effect itself stays counted."""
    counter = Counter()
    do, find = Request("ledger", "r/c", "a", "k"), Request("registry", "r/c", "a")
    for request in (do, find):
        assert counter.ask(request).kind == "executed"
    assert not counter.state.forget_key("ledger", "other")
    assert not counter.state.forget_key("flaky", "k")
    assert counter.state.forget_key("ledger", "k")
    assert counter.state.forget_key("registry", "r/c:a")
    assert counter.ask(do).kind == "executed"
    assert counter.ask(attrs.evolve(find, lookup=True)).kind == "missing"
    assert counter.state.effects == 3
    name = counter.ask(start("k")).body["name"]
    assert counter.state.forget_key("operation", "r:a")
    assert counter.state.forget_key("operation", "k")
    assert [counter.ask(one).kind for one in (get(), get(name), start("k"))] == ["missing", "found", "executed"]
