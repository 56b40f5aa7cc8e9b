"""Clocks that are set: noticed, and then everything that was due stays as far off as it was."""

from __future__ import annotations

import time

import pytest
import trio

from reference_runtime import Client, Server, Store, views
from reference_runtime.clock import STEP_NS, Steps
from tests.runtime_plans import artifact, wanting
from tests.runtime_rig import MS, approve, call, in_hand, par, plan, settle, sleep, states, wait

HOUR_NS = 3_600_000_000_000


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Wall clock and real time, in hand, in nanoseconds."""
    now = [10**15, 10**9]
    monkeypatch.setattr("time.time_ns", lambda: now[0])
    monkeypatch.setattr("time.clock_gettime_ns", lambda _clock: now[1])
    return now


def test_a_clock_that_goes_on_makes_no_step(clocks: list[int]) -> None:
    """However much time passes; and a slow drift is one only once it has come to something."""
    steps = Steps()
    for _ in range(3):
        clocks[:] = [clocks[0] + HOUR_NS + STEP_NS // 2 - 1, clocks[1] + HOUR_NS]
        found = steps.step_ns()
        assert found == 0 or abs(found) >= STEP_NS
    clocks[0] += STEP_NS
    assert steps.step_ns() >= STEP_NS


@pytest.mark.parametrize("step_ns", [HOUR_NS, -HOUR_NS])
def test_a_clock_that_is_set_makes_one_step(clocks: list[int], step_ns: int) -> None:
    """It is told once, and what comes later counts from there."""
    steps = Steps()
    clocks[0] += step_ns
    assert steps.step_ns() == step_ns
    assert steps.step_ns() == 0
    clocks[0] -= step_ns
    assert steps.step_ns() == -step_ns


@pytest.mark.parametrize("step_ns", [HOUR_NS, -HOUR_NS])
def test_what_is_due_stays_as_far_off(store: Store, clocks: list[int], step_ns: int) -> None:
    """A timer, work that is to be tried again, the time left to a run and to a decision."""
    limited = {**call("b"), "elapsed_ns": HOUR_NS // 2}
    store.submit("t", wanting(plan(call("a"), sleep("s", 100), limited), deadline_ns=1000))
    store.submit("u", plan(approve("ok", "pay", validity_ns=500), call("pay")))
    settle(store, in_hand(store)["a"])
    clocks[0] += step_ns
    store.set_hours(step_ns)
    assert store.fire_timers() == 0
    clocks[0] += 99
    assert store.fire_timers() == 0
    clocks[0] += 1
    assert store.fire_timers() == 1
    ticket = in_hand(store)["b"]
    assert ticket.fields["remaining_ns"] == 900
    clocks[0] += step_ns
    store.set_hours(step_ns)
    settle(store, ticket, "busy")
    assert states(views.status(store, "t"))["b"] == "unknown"
    assert [one["state"] for one in views.status(store, "u")["approvals"]] == ["pending"]


@pytest.mark.parametrize("step_ns", [HOUR_NS, -HOUR_NS])
def test_what_may_be_on_its_way_has_as_long_to_land(store: Store, clocks: list[int], step_ns: int) -> None:
    """A sweep comes when what was sent must have landed: no sooner, no later, for a clock that was set before."""
    once = {**artifact("a"), "tries": 1}
    store.submit("t", plan(par(once, wait("w", "go"))))
    settle(store, in_hand(store)["a"], "unknown")
    clocks[0] += step_ns
    store.set_hours(step_ns)
    store.signal("t", "s", "go", {"nonce": "n"})
    clocks[0] += store.policy.landing_ns - 1
    assert in_hand(store) == {}
    clocks[0] += 1
    assert list(in_hand(store)) == ["a~sweep"]


def test_a_clock_set_back_while_no_server_was_up_is_told_by_what_had_begun(store: Store, clocks: list[int]) -> None:
    """What is due is as far off as it was when the work that tells it began; who looks again finds nothing to mend."""
    store.submit("t", plan(sleep("s", 100)))
    clocks[0] += 40 - HOUR_NS
    assert store.mend_hours() == HOUR_NS - 40
    assert store.mend_hours() == 0
    clocks[0] += 99
    assert store.fire_timers() == 0
    clocks[0] += 1
    assert store.fire_timers() == 1


def test_a_clock_that_was_seen_to_be_set_is_not_mended_again(store: Store, clocks: list[int]) -> None:
    """Nor is one that went on while no server was up, or that was set by too little to be told."""
    store.submit("t", plan(sleep("s", 100)))
    clocks[0] -= HOUR_NS
    store.set_hours(-HOUR_NS)
    assert store.mend_hours() == 0
    clocks[0] += 2 * HOUR_NS
    assert store.mend_hours() == 0
    clocks[0] -= 2 * HOUR_NS + STEP_NS // 2
    assert store.mend_hours() == 0


def test_work_that_is_over_tells_nothing_of_the_clock(store: Store, clocks: list[int]) -> None:
    """Whatever was done before it was set back."""
    store.submit("t", plan(call("a")))
    settle(store, in_hand(store)["a"])
    clocks[0] -= HOUR_NS
    assert store.mend_hours() == 0


@pytest.mark.parametrize("step_ns", [HOUR_NS, -HOUR_NS])
def test_a_server_notices(store: Store, monkeypatch: pytest.MonkeyPatch, step_ns: int) -> None:
    """The clock is set while a timer runs, which then takes neither an hour nor no time at all."""
    ahead = [0]
    read = time.time_ns
    monkeypatch.setattr("time.time_ns", lambda: read() + ahead[0])

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            (listener,) = await nursery.start(Server(store).serve, "127.0.0.1", 0)
            async with Client(*listener.socket.getsockname()) as client:
                began = trio.current_time()
                await client.submit("t", plan(sleep("s", 50 * MS)))
                ahead[0] = step_ns
                with trio.fail_after(10):
                    while (await client.status("t"))["state"] != "done":
                        await trio.lowlevel.checkpoint()
                assert trio.current_time() - began >= 0.05
            nursery.cancel_scope.cancel()

    trio.run(main)
