"""Retries: what is tried again, what is asked about, what ends and why; and how long is waited in between."""

from __future__ import annotations

import random
from typing import get_args

import attrs
import hypothesis.strategies as st
import pytest
from hypothesis import given

from reference_runtime.model import Policy, Remedy, Semantics
from reference_runtime.retries import WITHOUT_EFFECT, Limits, Past, backoff_ns, decide, limits_of

LIMITS = Limits(tries=3, lookups=2, deaths=2, elapsed_ns=1000, key_lifetime_ns=500)
FRESH = Past("keyed", tries=1, first_ns=100)

pasts = st.builds(
    Past,
    semantics=st.sampled_from(get_args(Semantics)),
    tries=st.integers(0, 5),
    deaths=st.integers(0, 4),
    lookups=st.integers(0, 4),
    first_ns=st.one_of(st.none(), st.integers(0, 2000)),
    in_doubt=st.booleans(),
)


@pytest.mark.parametrize(
    ("past", "at_ns", "said"),
    [
        (FRESH, 100, ("repeat", "")),
        (attrs.evolve(FRESH, tries=2), 1100, ("repeat", "")),
        (attrs.evolve(FRESH, tries=3), 100, ("exhaust", "retries-exhausted")),
        (attrs.evolve(FRESH, tries=3, in_doubt=True), 100, ("give_up", "retries-exhausted")),
        (FRESH, 1101, ("exhaust", "time-exhausted")),
        (attrs.evolve(FRESH, in_doubt=True), 599, ("repeat", "")),
        (attrs.evolve(FRESH, in_doubt=True), 600, ("give_up", "key-expired")),
        (attrs.evolve(FRESH, in_doubt=True, semantics="fenced"), 600, ("give_up", "key-expired")),
        (attrs.evolve(FRESH, in_doubt=True, semantics="read"), 600, ("repeat", "")),
        (FRESH, 600, ("repeat", "")),  # nothing of it happened: an empty key may be used anew
        (attrs.evolve(FRESH, deaths=1), 100, ("repeat", "")),
        (attrs.evolve(FRESH, deaths=2), 100, ("exhaust", "poison")),
        (attrs.evolve(FRESH, deaths=2, in_doubt=True), 100, ("give_up", "poison")),
        (attrs.evolve(FRESH, deaths=2, in_doubt=True, semantics="read"), 100, ("exhaust", "poison")),
    ],
)
def test_a_repeat_within_its_limits(past, at_ns, said):
    """Each limit ends a repeat exactly where it is reached, and what may have happened is not called failed."""
    assert decide("repeat", past, LIMITS, at_ns) == said


def test_a_question_is_bounded_by_questions_alone():
    """However often it was called and whoever died over it, what became of it may be asked; but not for ever."""
    past = Past("lookup", tries=99, deaths=99, lookups=1, first_ns=0, in_doubt=True)
    assert decide("lookup", past, LIMITS, 10**9) == ("lookup", "")
    assert decide("lookup", attrs.evolve(past, lookups=2), LIMITS, 0) == ("give_up", "lookups-exhausted")


@given(remedy=st.sampled_from(get_args(Remedy)), past=pasts, at_ns=st.integers(0, 4000))
def test_every_end_has_a_reason_and_none_is_a_lie(remedy, past, at_ns):
    """A verdict that goes on has no reason, one that ends has one; a doubtful effect never fails."""
    verdict, reason = decide(remedy, past, LIMITS, at_ns)
    assert (verdict in ("repeat", "lookup")) == (not reason)
    if verdict == "exhaust" and past.in_doubt:
        assert past.semantics in WITHOUT_EFFECT
        assert reason == "poison"
    if verdict == "repeat":
        assert past.tries < LIMITS.tries
        assert past.deaths < LIMITS.deaths


@given(past=pasts, at_ns=st.integers(0, 2000), later=st.integers(0, 2000))
def test_what_has_ended_stays_ended(past, at_ns, later):
    """More tries, more deaths and more time never make a repeat possible again."""
    worse = attrs.evolve(past, tries=past.tries + 1, deaths=past.deaths + 1)
    if decide("repeat", past, LIMITS, at_ns)[0] != "repeat":
        assert decide("repeat", worse, LIMITS, at_ns + later)[0] != "repeat"


def test_a_plan_can_only_tighten_the_number_of_tries():
    """What a plan asks for is taken when it is less than the policy allows."""
    policy = Policy(tries_max=5)
    assert limits_of(policy, None, None).tries == 5
    assert (limits_of(policy, 3, 7).tries, limits_of(policy, 3, 7).elapsed_ns) == (3, 7)
    assert limits_of(policy, 50, None).tries == 5


@given(tries=st.integers(1, 100), seed=st.integers(0, 99))
def test_backoff_stays_within_its_bounds(tries, seed):
    """Never under half of what the doubling gives, never over it, and never over the most."""
    policy = Policy(backoff_ns_min=100, backoff_ns_max=1000)
    ceiling = min(100 << min(tries - 1, 30), 1000)
    assert ceiling // 2 <= backoff_ns(tries, policy, random.Random(seed)) <= ceiling


@given(seed=st.integers(0, 99), asked=st.integers(1, 5000))
def test_what_the_receiver_asks_for_is_waited_out(seed, asked):
    """Retry-After is a lower bound, up to the policy's most, with some chance on top of it."""
    policy = Policy(backoff_ns_min=100, backoff_ns_max=1000, retry_after_ns_max=3000)
    waited = backoff_ns(1, policy, random.Random(seed), asked)
    assert min(asked, 3000) + 50 <= waited <= min(asked, 3000) + 100


def test_those_who_were_told_the_same_do_not_come_back_together():
    """Chance spreads both kinds of delay."""
    policy, rng = Policy(), random.Random(1)
    for retry_after_ns in (0, 10**9):
        assert len({backoff_ns(3, policy, rng, retry_after_ns) for _ in range(20)}) > 10
