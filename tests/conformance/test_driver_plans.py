"""The driver and the new operations of plans: it decides, signals, follows, reads, fetches and searches."""

from __future__ import annotations

import hashlib

import pytest

from scenarios.history import (
    Answered,
    Asked,
    Died,
    Fetched,
    Fired,
    Received,
    Scanned,
    Stored,
)
from scenarios.interruption import Interruption
from scenarios.plan import Approve, Artifact, Branch, Call, Child, Plan, Seq, Wait, approval_digest, content
from tests.conformance.driver_rig import CHAIN
from tests.conformance.seen_rig import at, closed, events, place
from tests.conformance.verbs_rig import Faults, watch

PAY = Call("pay", "ledger", {"amount": 7})
APPROVED = Plan(Seq("main", (Call("a", "ledger"), Approve("ok", "pay"), PAY)))


def test_an_approval_is_given_by_alice_for_what_the_status_shows() -> None:
    """One decision with a fresh nonce, bound to the digest; the look-up at release is no effect."""
    seen = watch(APPROVED)
    (decision,) = events(seen.observation, Asked, verb="decide")
    assert (decision.operation, decision.decision, decision.actor) == ("ok", "approve", "alice")
    assert decision.digest == approval_digest(PAY)
    assert decision.nonce is not None
    assert decision.id == "r:ok:1"
    (look,) = events(seen.observation, Received, service="desk")
    assert (look.op, look.lookup) == ("ok", True)
    assert place(seen.observation, look) < place(seen.observation, events(seen.observation, Received, op="pay")[0])
    assert closed(seen.observation) == "settled"


def test_an_arm_that_is_not_taken_keeps_nobody_waiting() -> None:
    """The wait after a branch is signalled although one arm has done nothing."""
    arms = Branch("which", "a", (Call("left", "ledger"), Call("right", "ledger")))
    seen = watch(Plan(Seq("main", (Call("a", "ledger"), arms, Wait("w", "go"), Call("b", "ledger")))))
    assert len({"left", "right"} & {one.op for one in events(seen.observation, Received)}) == 1
    assert [one.name for one in events(seen.observation, Asked, verb="signal")] == ["go"]
    assert closed(seen.observation) == "settled"


def test_a_wait_that_has_run_out_is_not_signalled() -> None:
    """Another wait of its name, shown as waiting later, is the one that is meant."""
    waits = Seq("main", (Call("a", "ledger"), Wait("w", "go", 1), Wait("v", "go"), Call("b", "ledger", {}, ("v",))))
    seen = watch(Plan(waits))
    assert {one.id for one in events(seen.observation, Asked, verb="signal")} == {"r:v"}
    assert closed(seen.observation) == "settled"


def test_what_a_child_asks_is_its_parents_under_a_longer_name() -> None:
    """Requests of run r/c are those of r by operations c/x, and may be struck there; its waits are signalled in its run."""
    child = Child("c", Seq("inner", (Call("x", "ledger"), Call("y", "ledger"))))
    seen = watch(Plan(Seq("main", (child, Call("z", "ledger")))), Interruption("drop", at("c/x", "applied")))
    requests = events(seen.observation, Received)
    assert [(one.run, one.op) for one in requests] == [("r", op) for op in ("c/x", "c/x", "c/y", "z")]
    assert requests[0].key == "r/c:x"
    assert seen.observation.fired == ("drop@c/x#1.applied",)


def test_a_detached_child_is_followed_to_its_end() -> None:
    """The run has ended before; the child is asked for by its own name, and only that is recorded under it."""
    seen = watch(Plan(Seq("main", (Call("a", "ledger"), Child("c", Call("x", "ledger"), detached=True)))))
    (asked,) = [one for one in events(seen.observation, Asked, verb="status") if one.run != "r"]
    assert asked.run == "r/c"
    assert closed(seen.observation) == "settled"


def test_artifacts_are_fetched_and_hashed_by_the_kit() -> None:
    """What the store has at the location that is shown, not what is said of it."""
    seen = watch(Plan(Seq("main", (Artifact("art", "report", 100), Call("b", "ledger")))))
    (fetched,) = events(seen.observation, Fetched)
    data = content("r", "art", 100)
    assert (fetched.name, fetched.version, fetched.size, fetched.found) == ("report", 1, 100, True)
    assert fetched.digest == hashlib.sha256(data).hexdigest()
    assert [one.state for one in events(seen.observation, Stored)] == ["staged", "committed"]
    assert [one.part for one in events(seen.observation, Received, op="art")] == [1, None]


def test_events_are_read_on_from_the_last_cursor() -> None:
    """Once after a strike, at the end page after page, once more from an old cursor, and never at every poll."""
    seen = watch(CHAIN, Interruption("kill", at("b", "applied")))
    (death,) = events(seen.observation, Died)
    pages = [
        (one.at_ns > death.at_ns, [row["operation"] for row in (one.body or {})["events"]])
        for one in events(seen.observation, Answered)
        if one.body is not None and "events" in one.body
    ]
    assert pages == [(True, ["a"]), (True, ["b"]), (True, []), (True, ["b"])]
    assert len(events(seen.observation, Asked, verb="journal")) == 2


@pytest.mark.parametrize("leaks", [False, True])
def test_a_secret_is_searched_for_everywhere(leaks: bool) -> None:
    """Its value is handed over and arrives; a harness that writes it down is found out, in its store and its journal."""
    plan = Plan(Seq("main", (Call("a", "ledger", secret="card"), Call("b", "ledger"))))
    seen = watch(plan, faults=Faults(leaks=leaks))
    (scan,) = events(seen.observation, Scanned)
    assert {"store", "logs", "status", "events", "artifacts", "journal"} == set(scan.places)
    assert scan.found == (("store:card", "journal:card") if leaks else ())
    assert [one.secret for one in events(seen.observation, Received)] == [True, False]
    value = seen.world.secrets["card"]
    assert all(value not in repr(one) for one in events(seen.observation, Received))


def test_without_secrets_nothing_is_searched() -> None:
    """And nothing is made up to be kept."""
    seen = watch(CHAIN)
    assert events(seen.observation, Scanned) == []
    assert seen.world.secrets == {}


def test_a_target_without_the_verbs_is_not_asked() -> None:
    """Neither events nor artifacts nor journal; what needs a verb it does not have has not fired."""
    cancel = Interruption("cancel", at("a", "applied"))
    seen = watch(CHAIN, cancel, verbs=("start", "status", "signal"))
    assert {one.verb for one in events(seen.observation, Asked)} == {"start", "status"}
    assert seen.observation.unfired == (cancel.label,)
    assert events(seen.observation, Fired) == []
