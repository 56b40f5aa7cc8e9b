"""The injector: each interruption strikes once, at its site, and what never struck is named."""

from __future__ import annotations

from conformance.injector import POISON_MAX, Injector
from scenarios.interruption import Interruption, Site

KILL = Interruption("kill", Site("barrier", "a", 2, "applied"))
AGAIN = Interruption("kill", Site("barrier", None, 2, "received"))


def test_it_strikes_at_its_site_and_only_once() -> None:
    """Another request, another barrier or another call are not the site."""
    injector = Injector([KILL])
    assert injector.at_barrier("a", 1, "applied") == []
    assert injector.at_barrier("a", 2, "received") == []
    assert injector.at_barrier("b", 2, "applied") == []
    assert injector.at_barrier("a", 2, "applied") == [KILL]
    assert injector.at_barrier("a", 2, "applied") == []
    assert injector.idle
    assert injector.unfired() == ()


def test_what_follows_is_armed_only_once_the_target_is_back() -> None:
    """A second crash in recovery counts requests from the restart, of any call."""
    both = Interruption("kill", Site("barrier", "a", 1, "applied"), then=AGAIN)
    injector = Injector([both])
    assert injector.at_barrier("a", 1, "applied") == [both]
    assert injector.at_barrier("b", 1, "received") == []
    assert not injector.idle
    injector.target_is_back()
    assert injector.at_barrier("x", 7, "received") == []
    assert injector.at_barrier("y", 1, "received") == [AGAIN]
    assert injector.unfired() == ()


def test_what_never_struck_is_named() -> None:
    """Also the follower of something that never struck."""
    both = Interruption("kill", Site("barrier", "a", 1, "applied"), then=AGAIN)
    assert Injector([both, KILL]).unfired() == (both, AGAIN, KILL)


def test_asks_and_states_are_matched_by_operation() -> None:
    """A repeated signal of one wait is not the repeated signal of another, nor a kill after the start."""
    repeat = Interruption("repeat", Site("ack", "w", verb="signal"))
    kill = Interruption("kill", Site("ack", verb="start"))
    injector = Injector([repeat, kill])
    assert injector.at("ack", verb="start", op="w") == []
    assert injector.at("ack", verb="start") == [kill]
    assert injector.at("ack", verb="signal", op="v") == []
    assert injector.at("ack", verb="signal", op="w") == [repeat]


def test_what_missed_has_not_fired_and_leads_to_nothing() -> None:
    """It is named with its follower, and neither is armed again."""
    both = Interruption("kill", Site("barrier", "a", 1, "applied"), then=AGAIN)
    injector = Injector([both])
    injector.miss(*injector.at_barrier("a", 1, "applied"))
    assert injector.unfired() == (both, AGAIN)
    assert injector.target_is_back() == ()
    assert injector.idle


def test_equal_interruptions_count_their_requests_apart() -> None:
    """Two that wait for the second request of any call both strike at the second."""
    injector = Injector([AGAIN, Interruption("kill", Site("barrier", None, 2, "received"))])
    assert injector.at_barrier("x", 1, "received") == []
    assert injector.at_barrier("y", 1, "received") == [AGAIN, AGAIN]


def test_poison_strikes_at_every_request_and_counts_as_one() -> None:
    """A dozen times at most; only then is nothing left that could strike, and missing it later does not undo it."""
    poison = Interruption("kill", Site("barrier", "a", 0, "applied"))
    injector = Injector([poison])
    for nth in range(1, POISON_MAX + 1):
        assert not injector.idle
        assert injector.at_barrier("a", nth, "applied") == [poison]
    assert injector.at_barrier("a", POISON_MAX + 1, "applied") == []
    assert injector.idle
    assert injector.fired == [poison]


def test_what_follows_something_harmless_is_armed_at_once() -> None:
    """And what misses after all takes it along."""
    both = Interruption("cancel", Site("end"), then=AGAIN)
    injector = Injector([both])
    injector.at("end")
    assert injector.follow(both) == (AGAIN,)
    assert injector.follow(both) == ()
    assert injector.armed == (AGAIN,)
    injector.miss(both)
    assert injector.idle
    assert injector.unfired() == (both, AGAIN)


def test_the_desk_is_a_site_of_its_own() -> None:
    """It is struck where the approval is named; requests there are none of those that are counted for any call."""
    named = Interruption("steer", Site("barrier", "ok", 1, "received"), target="a")
    anywhere = Interruption("kill", Site("barrier", None, 1, "received"))
    injector = Injector([named, anywhere])
    assert injector.at_desk("other", 1, "received") == []
    assert injector.at_desk("ok", 1, "received") == [named]
    assert injector.at_barrier("a", 1, "received") == [anywhere]
