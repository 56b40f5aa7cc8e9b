"""Signals sent out of their time are strikes like others: when they come is told, and what is to follow them follows."""

from __future__ import annotations

import pytest

from scenarios.history import Asked
from scenarios.interruption import Interruption, Site
from scenarios.plan import Call, Plan, Seq, Wait
from tests.conformance.driver_rig import MS
from tests.conformance.seen_rig import closed, events
from tests.conformance.verbs_rig import watch

TIMED = Plan(Seq("main", (Wait("w", "go", 200 * MS), Call("a", "ledger"))))
GATED = Plan(Seq("main", (Call("a", "ledger"), Wait("w", "go"), Call("b", "ledger", {}, ("w",)))))


@pytest.mark.parametrize("ns", [0, 300 * MS])
def test_a_silence_lasts_as_long_as_it_is_to(ns: int) -> None:
    """The time of the wait, and so much more."""
    seen = watch(TIMED, Interruption("late-signal", Site("waiting", "w"), ns=ns))
    (signal,) = events(seen.observation, Asked, verb="signal")
    assert 200 * MS + ns <= signal.at_ns < 300 * MS + ns
    assert closed(seen.observation) == "settled"


@pytest.mark.parametrize(
    ("plan", "first"),
    [
        (TIMED, Interruption("late-signal", Site("waiting", "w"))),
        (GATED, Interruption("early", Site("ack", "w", verb="start"))),
    ],
)
def test_what_follows_a_signal_out_of_time_strikes(plan: Plan, first: Interruption) -> None:
    """It took nothing down, so there is nobody to wait for."""
    chain = Interruption(first.action, first.site, then=Interruption("unmatched", Site("end")))
    seen = watch(plan, chain)
    assert seen.observation.unfired == ()
    assert [one.name for one in events(seen.observation, Asked, verb="signal")] == ["go", "nobody"]


def test_a_signal_given_twice_is_one_signal() -> None:
    """Whoever gives the same command once more says the same: another payload under its id would be another mistake."""
    late = Interruption("late-signal", Site("end"))
    seen = watch(GATED, late, late)
    sent = [one for one in events(seen.observation, Asked, verb="signal") if one.id and "late" in one.id]
    assert len(sent) == 2
    assert len({(one.id, one.nonce) for one in sent}) == 1
