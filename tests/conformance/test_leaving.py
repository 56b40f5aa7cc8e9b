"""Workers that are asked to leave, against a runtime in memory: who does, who stays, who dies of it, and who it is."""

from __future__ import annotations

import pytest

from scenarios.history import Died, Fired, Received
from scenarios.interruption import Interruption, Site
from scenarios.plan import Call, Plan, Seq, Wait
from simkit.errors import SimkitError
from tests.conformance.driver_rig import BOUNDS, CHAIN, MS, Habits
from tests.conformance.seen_rig import at, closed, events, final
from tests.conformance.verbs_rig import watch

NIGHT = Plan(Seq("main", (Call("a", "ledger"), Wait("w", "never", 5 * BOUNDS.settle_ns), Call("b", "ledger"))))


def test_who_is_asked_to_leave_ends_what_it_is_at() -> None:
    """The call is carried out once; another worker does the rest, and nothing is held against the one that left."""
    plan = Plan(Seq("main", tuple(Call(op, "ledger") for op in "abcd")))
    seen = watch(plan, Interruption("leave", at("a", "received"), then=Interruption("kill", at("c", "received"))))
    first, second = events(seen.observation, Died)
    assert (first.cause, first.incarnation, second.cause) == ("left", 1, "killed")
    sent = [(one.op, one.incarnation) for one in events(seen.observation, Received)]
    assert sent == [("a", 1), ("b", 2), ("c", 2), ("c", 3), ("d", 3)]
    assert (seen.observation.unfired, closed(seen.observation)) == ((), "settled")


def test_who_is_asked_to_leave_again_and_again_keeps_nobody_from_judging() -> None:
    """Other than ends of its own accord, these are as it should be."""
    plan = Plan(Seq("main", tuple(Call(f"c{n}", "ledger") for n in range(6))))
    seen = watch(plan, *(Interruption("leave", at(f"c{n}", "received")) for n in range(5)))
    assert [one.cause for one in events(seen.observation, Died)] == ["left"] * 5
    assert (final(seen.observation), closed(seen.observation)) == ("done", "settled")


def test_a_worker_is_asked_to_leave_a_while_after() -> None:
    """Not where it is gone by then: that has not fired."""
    leave = Interruption("leave", at("a", "received"), ns=7 * MS)
    held = Interruption("delay", at("a", "applied"), ns=50 * MS)
    seen = watch(CHAIN, leave, held)
    (fired,) = events(seen.observation, Fired, label="leave@a#1.received~7000000ns")
    assert (fired.at_ns - events(seen.observation, Received)[0].at_ns) // MS == 7
    gone = watch(CHAIN, leave, Interruption("kill", at("a", "applied")))
    assert gone.observation.unfired == (leave.label,)


def test_the_other_worker_is_asked_to_leave() -> None:
    """Where there is one beside it: the one that calls stays."""
    plan = Plan(Seq("main", (Call("a", "ledger"), Call("b", "ledger"), Wait("w", "never", 400 * MS))))
    leave = Interruption("leave", at("b", "received"), arg="other")
    held = Interruption("delay", at("a", "applied"), ns=50 * MS)
    silence = Interruption("late-signal", Site("waiting", "w"))
    seen = watch(plan, Interruption("second", at("a", "received")), held, leave, silence)
    (death,) = events(seen.observation, Died)
    caller = events(seen.observation, Received, op="b")[0].incarnation
    assert (death.cause, {death.incarnation, caller}) == ("left", {1, 2})
    assert watch(CHAIN, leave).observation.unfired == (leave.label,)


def test_who_stays_is_killed_after_a_while() -> None:
    """As supervisors do; the run is not stuck meanwhile."""
    seen = watch(NIGHT, Interruption("leave", at("a", "received")), habits=Habits(when_told_to_leave="stays"))
    (death,) = events(seen.observation, Died)
    (fired,) = events(seen.observation, Fired)
    assert death.cause == "killed"
    assert death.at_ns - fired.at_ns >= BOUNDS.settle_ns
    assert (final(seen.observation), closed(seen.observation)) == ("done", "settled")


def test_who_dies_of_the_request_has_said_what_is_not_so() -> None:
    """Its manifest says that it can be asked to leave: that is the adapter's fault, and nothing is judged."""
    with pytest.raises(SimkitError, match="leave-unheard"):
        watch(CHAIN, Interruption("leave", at("a", "received")), habits=Habits(when_told_to_leave="dies"))
