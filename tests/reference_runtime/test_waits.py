"""Waits with an end of their own: a signal or the timeout, whichever comes first, and never both."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import trio

from reference_runtime import Server, Store, embedded, views
from reference_runtime.waits import TIMERS_MAX
from tests.runtime_rig import call, finish, par, plan, sleep, states, wait

MANY = 5 * TIMERS_MAX


def timed(id_: str, signal: str, ns: int) -> dict[str, object]:
    return {**wait(id_, signal), "timeout_ns": ns}


def test_a_wait_ends_with_its_timeout(store, clock, reopened):
    """Not before it, once, without a nonce, and for that reason; a restart neither forgets nor renews it."""
    store.submit("t", plan(timed("w", "go", 500), call("a", carries=("w",))))
    clock[0] += 499
    store = reopened(store)
    assert store.fire_timers() == 0
    clock[0] += 1
    assert store.fire_timers() == 1
    shown = views.status(store, "t")["operations"][0]
    assert (shown["state"], shown["nonce"], shown["detail"]) == ("succeeded", None, "timeout")
    finish(store)
    assert views.status(store, "t")["result"] == {"a": "n-a"}


def test_a_wait_that_timed_out_takes_no_later_event(store, clock):
    """The event goes to the next live wait of its name."""
    store.submit("t", plan(timed("v", "go", 5), wait("w", "go")))
    clock[0] += 5
    store.fire_timers()
    assert store.signal("t", "1", "go", {"nonce": "n"})["consumer"] == "t.1:w"
    assert views.status(store, "t")["result"] == {"w": "n"}


def test_a_wait_crossed_by_its_event_ends_in_one_way(store, clock):
    """The signal was there first: the timer finds nothing to end, though its hour comes."""
    store.submit("t", plan(timed("w", "go", 5), wait("x", "go")))
    clock[0] += 5
    assert store.signal("t", "1", "go", {"nonce": "n"})["disposition"] == "released"
    assert store.fire_timers() == 0
    assert states(views.status(store, "t")) == {"w": "succeeded", "x": "planned"}
    assert views.status(store, "t")["operations"][0]["nonce"] == "n"


def test_an_early_signal_is_there_before_the_timer_starts_to_matter(store, clock):
    """A buffered signal releases the wait when it opens."""
    store.submit("t", plan(call("a"), timed("w", "go", 0)))
    store.signal("t", "1", "go", {"nonce": "n"})
    finish(store)
    assert views.status(store, "t")["result"] == {"a": "n-a", "w": "n"}
    assert store.fire_timers() == 0


def test_what_comes_while_a_run_is_blocked_is_kept_for_when_it_goes_on(store):
    """It is not called too late and then used after all."""
    store.submit("t", plan(call("a", "mailer"), wait("w", "go"), wait("v", "go")))
    finish(store, "unknown")
    told = [store.signal("t", "1", "go", {"nonce": "n"})["disposition"]]
    assert (views.status(store, "t")["state"], views.status(store, "t")["signals"]) == ("blocked", {"1": "buffered"})
    store.signal("t", "2", "notice", {"operation": "a", "nonce": "late"})
    told.append(store.signal("t", "1", "go", {"nonce": "n"})["disposition"])
    assert told == ["buffered", "released"]
    store.cancel("t", "stop")
    assert store.signal("t", "3", "go", {"nonce": "m"})["disposition"] == "late"
    assert views.status(store, "t")["signals"] == {"1": "released", "2": "released", "3": "late"}


def slept(store: Store) -> int:
    """How many sleeps are over."""
    return sum(one["state"] == "succeeded" for one in views.status(store, "t")["operations"])


@contextlib.contextmanager
def commits(store: Store) -> Iterator[list[None]]:
    """As many entries as there are commits inside."""
    counted: list[None] = []

    def count() -> bool:
        counted.append(None)
        return False  # let it be

    store.db.set_commit_hook(count)
    yield counted
    store.db.set_commit_hook(None)


def test_timers_that_are_due_together_fire_together(store, clock):
    """So many in one transaction, and no more: the others are as due as before, also after a crash."""
    store.submit("t", plan(par(*(sleep(f"s{number}", 5) for number in range(MANY)))))
    clock[0] += 5
    with commits(store) as counted:
        assert (store.fire_timers(), len(counted), slept(store)) == (TIMERS_MAX, 1, TIMERS_MAX)


def test_what_fired_together_is_there_after_a_crash_and_the_rest_is_due(store, clock, reopened):
    """None is lost, none fires twice, and the run ends with the last."""
    store.submit("t", plan(par(*(sleep(f"s{number}", 5) for number in range(MANY)))))
    clock[0] += 5
    fired = []
    while count := store.fire_timers():
        fired.append(count)
        store = reopened(store)
        assert slept(store) == sum(fired)
    assert sum(fired) == MANY
    assert views.status(store, "t")["state"] == "done"


def test_what_ends_much_ends_its_batch(store, clock):
    """Each of a few timers that change a thousand rows is a transaction of its own."""
    for number in range(3):
        work = plan(par(*(call(f"c{one}") for one in range(1_000))))
        store.submit(f"t{number}", {**work, "deadline_ns": 5})
    clock[0] += 5
    with commits(store) as counted:
        assert [store.fire_timers() for _ in range(4)] == [1, 1, 1, 0]
    assert len(counted) == 3
    assert views.status(store, "t2")["state"] == "failed"


def test_others_are_answered_while_timers_fire(store):
    """Who asks as thousands are due waits for some of them, and not for all."""

    async def main() -> None:
        async with embedded(Server(store)) as handle:
            await handle.submit("t", plan(par(*(sleep(f"s{number}", 0) for number in range(MANY)))))
            standing = await handle.status("t")
            assert list(states(standing).values()).count("succeeded") < MANY
            with trio.fail_after(10):
                while (await handle.status("t"))["state"] != "done":
                    await trio.lowlevel.checkpoint()

    trio.run(main)
