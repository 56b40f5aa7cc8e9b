"""The store: what is admitted, owned, accepted and woken, transaction by transaction, on a real file."""

from __future__ import annotations

import random

import apsw
import pytest

from reference_runtime import Refusal, Store, StoreError, views
from reference_runtime.model import Grant, Policy, Rejected, Ticket
from reference_runtime.schema import PRAGMAS, SCHEMA_VERSION
from tests.runtime_rig import EAGER, MS, call, finish, intended, par, plan, seq, sleep, states, take, under, wait


@pytest.fixture
def store(tmp_path):
    return Store.open(str(tmp_path / "s.db"), policy=Policy(backoff_ns_min=2, backoff_ns_max=2))


def again(store: Store) -> Store:
    """The same file after the process is gone."""
    path = store.db.filename
    store.close()
    return Store.open(path, policy=EAGER)


# -- the file


def test_settings_are_what_was_asked_for(store):
    """WAL, synchronous=FULL and the exclusive lock are on, as SQLite itself says."""
    assert {name: store.db.pragma(name) for name in PRAGMAS} == {name: want for name, (_, want) in PRAGMAS.items()}


def test_a_second_owner_is_refused(store):
    """Two servers never share a file: the second one is told so."""
    with pytest.raises(StoreError, match="store-owned"):
        Store.open(store.db.filename)


def test_other_files_are_refused(tmp_path):
    """A store of a newer version, a file that is none and a folder that is not there are each refused by name."""
    newer, none = tmp_path / "newer.db", tmp_path / "none.db"
    apsw.Connection(str(newer)).execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    none.write_bytes(b"not a database, and long enough to be sure" * 30)
    for path, code in ((newer, "store-newer"), (none, "store-foreign"), (tmp_path / "no" / "s.db", "store-missing")):
        with pytest.raises(StoreError, match=code):
            Store.open(str(path))


def test_a_setting_that_did_not_take_is_told(tmp_path):
    """SQLite falls back silently to another journal; the store does not."""
    with pytest.raises(StoreError, match="store-settings"):
        Store.open(":memory:")


def test_what_could_not_be_committed_takes_nothing_in(store, monkeypatch):
    """What is done after it would be a part of it: told, and undone as the file is closed."""

    def fail() -> None:
        raise apsw.IOError("no")

    with monkeypatch.context() as broken:
        broken.setattr(store, "_commit_transaction", fail)
        with pytest.raises(apsw.IOError):
            store.submit("t", plan(call("a")))
    store.submit("u", plan(call("a")))
    store = again(store)
    assert [views.status(store, task)["state"] for task in ("t", "u")] == ["unknown", "running"]


# -- admission


def test_a_submit_repeated_is_the_same_task(store):
    """The same plan under the same id gives the same receipt, before and after a restart, and one task."""
    first = store.submit("t", plan(call("a")))
    assert store.submit("t", plan(call("a"))) == first
    store = again(store)
    assert store.submit("t", plan(call("a"))) == first
    assert store._value("SELECT count(*) FROM attempt") == 1


def test_another_plan_under_a_known_id_is_refused(store):
    """An id stands for one payload for ever."""
    store.submit("t", plan(call("a")))
    with pytest.raises(Refusal, match="conflict"):
        store.submit("t", plan(call("a", amount=2)))


def test_an_empty_plan_is_done(store):
    """A task without operations has succeeded."""
    store.submit("t", plan())
    assert views.status(store, "t")["state"] == "done"


def test_a_refused_plan_leaves_no_trace(store):
    """A plan that cannot be admits nothing."""
    with pytest.raises(Refusal):
        store.submit("t", plan(call("a", "fax")))
    assert views.status(store, "t") == {"state": "unknown"}


# -- order and results


def test_an_operation_opens_with_the_acceptance_it_waits_for(store):
    """Nothing is claimable before all it depends on is accepted, and it is claimable at once then."""
    store.submit("t", plan(par(call("a"), call("b")), call("c", carries=("a", "b"))))
    grants = store.claim("w", [], 9)
    assert [grant.operation for grant in grants] == ["a", "b"]
    for grant in grants:
        assert store.claim("w", [1, 2], 9) == []
        ticket = intended(store, grant)
        assert store.settle(under(ticket), "succeeded", {"nonce": f"n-{grant.operation}"}, "") is None
    assert take(store)[1].carries == {"a": "n-a", "b": "n-b"}


def test_the_result_is_every_accepted_nonce(store):
    """A finished task shows what each leaf came to; a sleep comes to nothing."""
    store.submit("t", plan(call("a"), wait("w", "go"), sleep("s", 0)))
    finish(store)
    store.signal("t", "1", "go", {"nonce": "n-w"})
    store.fire_timers()
    assert views.status(store, "t")["result"] == {"a": "n-a", "w": "n-w"}


def test_a_repeat_says_what_the_first_invocation_said(store):
    """Key, parameters and carried answers are fixed with the first intent and outlive a restart."""
    store.submit("t", plan(call("a"), call("b", carries=("a",), amount=7)))
    finish(store)
    grant, first = take(store)
    store.settle(grant, "unknown", None, "reset")
    store = again(store)
    _, second = take(store)
    assert second.generation > first.generation
    assert (first.key, first.params, first.carries) == (second.key, second.params, second.carries)
    assert (second.carries, second.params, second.invocation) == ({"a": "n-a"}, {"amount": 7}, 2)


def test_equal_parameters_are_not_equal_operations(store):
    """Two operations that say the same have keys of their own."""
    store.submit("t", plan(par(call("a", x=1), call("b", x=1))))
    keys = [intended(store, lease).key for lease in store.claim("w", [], 2)]
    assert len(set(keys)) == 2


# -- ownership


def test_generations_never_repeat(store):
    """Not after acceptance, nor after a lease is taken back, nor after a restart."""
    store.submit("t", plan(call("a"), call("b")))
    seen = []
    for _ in range(3):
        (grant,) = store.claim("w", [], 1)
        seen.append(grant.generation)
        store.reclaim(grant.generation)
        store = again(store)
    assert seen == sorted(set(seen))


@pytest.mark.parametrize("service", ["ledger", "mailer"])
def test_a_lease_that_got_lost_is_given_again(store, service):
    """A worker that does not know of a lease it owns gets it once more, under the same generation; nobody else does."""
    store.submit("t", plan(call("a", service)))
    lost = store.claim("w", [], 1)
    assert store.claim("other", [], 1) == []
    assert store.claim("w", [], 1) == lost
    assert store.claim("w", [lost[0].generation], 1) == []


def test_an_intent_asked_for_again_is_the_same_intent(store):
    """A dispatch whose acknowledgement was lost makes no second invocation."""
    store.submit("t", plan(call("a", "mailer")))
    (grant,) = store.claim("w", [], 1)
    assert isinstance(grant, Grant)
    assert store.dispatch(grant) == store.dispatch(grant)
    assert store._value("SELECT count(*) FROM invocation") == 1


def test_a_late_result_of_an_older_generation_is_kept_apart(store):
    """When the work was given to another, the first holder's word changes nothing and is kept as evidence."""
    store.submit("t", plan(call("a")))
    stale, _ = take(store)
    store.reclaim(stale.generation)
    current, _ = take(store)
    assert isinstance(store.settle(stale, "succeeded", {"nonce": "old"}, ""), Rejected)
    assert store.settle(current, "succeeded", {"nonce": "new"}, "") is None
    assert isinstance(store.settle(stale, "succeeded", {"nonce": "old"}, ""), Rejected)
    assert views.status(store, "t")["result"] == {"a": "new"}
    assert [row["generation"] for row in views.journal(store, "t")["rejected"]] == [stale.generation] * 2
    assert isinstance(store.settle(stale, "unknown", None, "no answer"), Rejected), (
        "as was assumed, but it is its own word"
    )
    assert [row["report"] for row in views.journal(store, "t")["rejected"]][-1] == "unknown"


def test_a_lease_taken_back_before_the_intent_dispatches_nothing(store):
    """Without an intent the operation is simply planned again, and the old grant is worth nothing."""
    store.submit("t", plan(call("a", "mailer")))
    (grant,) = store.claim("w", [], 1)
    store.reclaim(grant.generation)
    store.reclaim(grant.generation)
    assert isinstance(grant, Grant)
    assert isinstance(store.dispatch(grant), Rejected)
    assert states(views.status(store, "t")) == {"a": "planned"}
    assert len(store.claim("w2", [], 1)) == 1


def test_a_lease_says_nothing_of_another_operation(store):
    """Who shows the lease of one operation for another one, done or not yet due, changes neither of the two."""
    store.submit("t", plan(call("a"), par(call("b", "mailer"), seq(wait("w", "never"), call("c")))))
    finish(store)
    (grant,) = store.claim("w", [], 1)
    before = states(views.status(store, "t"))
    for operation in ("a", "c", "w"):
        wrong = Grant("t.1", operation, grant.generation, grant.version)
        assert isinstance(store.dispatch(wrong), Rejected)
    assert states(views.status(store, "t")) == before
    assert store.claim("w2", [], 9) == []
    assert isinstance(grant, Grant)
    assert isinstance(store.dispatch(grant), Ticket)


def test_an_unknown_grant_is_refused(store):
    """A grant for something that does not exist is a definite no."""
    with pytest.raises(Refusal, match="unknown-operation"):
        store.settle(Grant("t.1", "a", 1, 1), "succeeded", {"nonce": "x"}, "")


# -- acceptance


def test_a_report_repeated_counts_once(store):
    """The same report under the same lease is acknowledged again and changes nothing."""
    store.submit("t", plan(call("a"), call("b")))
    grant, _ = take(store)
    for _ in range(2):
        assert store.settle(grant, "succeeded", {"nonce": "x"}, "") is None
    assert isinstance(store.settle(grant, "succeeded", {"nonce": "other"}, ""), Rejected)
    assert store.accepted_answers("t.1", ["a", "b"]) == {"a": "x"}


@pytest.mark.parametrize(
    ("service", "state", "action"),
    [
        ("ledger", "unknown", "call"),
        ("reader", "unknown", "call"),
        ("registry", "unknown", "lookup"),
        ("mailer", "unresolved", None),
    ],
)
@pytest.mark.parametrize("silent", [False, True])
def test_an_unknown_outcome_is_treated_by_the_receivers_contract(store, service, state, action, silent):
    """Keyed and read: repeat; lookup: ask first; blind: leave it. The same whether reported or inferred from silence."""
    store.submit("t", plan(call("a", service)))
    grant, _ = take(store)
    if silent:
        store.reclaim(grant.generation)
    else:
        store.settle(grant, "unknown", None, "timeout")
    assert states(views.status(store, "t")) == {"a": state}
    if action is None:
        assert store.claim("w", [], 1) == []
    else:
        assert take(store)[1].action == action


@pytest.mark.parametrize("report", ["busy", "unsent"])
@pytest.mark.parametrize("service", ["ledger", "registry", "mailer", "reader"])
def test_what_was_not_executed_is_asked_for_again(store, service, report):
    """Busy and unsent say that nothing was executed: any receiver may be asked again, with the same key."""
    store.submit("t", plan(call("a", service)))
    grant, first = take(store)
    store.settle(grant, report, None, "")
    _, second = take(store)
    assert (second.action, second.key) == ("call", first.key)


def test_what_the_lookup_finds_is_accepted(store):
    """A found effect is the operation's answer: reconciled, and never repeated."""
    store.submit("t", plan(call("a", "registry")))
    finish(store, "unknown")
    finish(store, "found", "seen")
    assert states(views.status(store, "t")) == {"a": "reconciled"}
    assert views.status(store, "t")["result"] == {"a": "seen"}


def test_what_the_lookup_does_not_find_is_repeated(store):
    """Missing means that it did not happen; a look-up that stays unanswered means nothing and is asked again."""
    store.submit("t", plan(call("a", "registry")))
    finish(store, "unknown")
    finish(store, "unsent")
    finish(store, "unknown")
    finish(store, "missing")
    assert take(store)[1].action == "call"


def test_the_number_of_tries_is_bounded_across_restarts(tmp_path):
    """After the last try an unknown outcome is left unresolved, however often the process died in between."""
    store = Store.open(str(tmp_path / "s.db"), policy=Policy(tries_max=3, backoff_ns_min=2, backoff_ns_max=2))
    store.submit("t", plan(call("a")))
    for _ in range(3):
        finish(store, "unknown")
        store.close()
        store = Store.open(str(tmp_path / "s.db"), policy=Policy(tries_max=3, backoff_ns_min=2, backoff_ns_max=2))
    assert views.status(store, "t")["state"] == "blocked"


def test_backoff_grows_to_its_limit(tmp_path):
    """Delays double up to the most, each with half of it left to chance."""
    store = Store(apsw.Connection(":memory:"), Policy(backoff_ns_min=100, backoff_ns_max=1000), random.Random(1))
    for tries, ceiling in ((1, 100), (2, 200), (4, 800), (5, 1000), (500, 1000)):
        drawn = {store.backoff_ns(tries) for _ in range(50)}
        assert len(drawn) > 1
        assert all(ceiling // 2 <= one <= ceiling for one in drawn)


# -- ends


def test_unresolved_is_not_failed(store):
    """An attempt may end with an effect nobody could establish; it says so, and the operation stays visible."""
    store.submit("t", plan(par(call("m", "mailer"), call("a")), call("z")))
    grants = store.claim("w", [], 2)
    for grant, report in zip(grants, ("unknown", "succeeded"), strict=True):
        ticket = intended(store, grant)
        store.settle(under(ticket), report, {"nonce": "x"} if report == "succeeded" else None, "lost")  # type: ignore[arg-type]
    status = views.status(again(store), "t")
    assert status["state"] == "blocked"
    assert states(status) == {"m": "unresolved", "a": "succeeded", "z": "planned"}
    assert "m unresolved" in status["error"]


def test_after_a_failure_nothing_new_begins(store):
    """A definite no ends the attempt; what was granted but not dispatched, waits and timers go no further."""
    store.submit("t", plan(par(call("a"), call("b", "mailer"), wait("w", "go"), sleep("s", 0)), call("z")))
    first, second = store.claim("w", [], 2)
    store.settle(under(intended(store, first)), "failed", None, "400: no")
    assert isinstance(second, Grant)
    assert isinstance(store.dispatch(second), Rejected)
    assert store.fire_timers() == 0
    assert store.signal("t", "1", "go", {"nonce": "x"})["disposition"] == "late"
    status = views.status(store, "t")
    assert (status["state"], status["error"]) == ("failed", "rejected: a failed: 400: no")


def test_what_was_dispatched_before_a_failure_is_followed_to_its_end(store):
    """A failed attempt is over only once no effect of it is still open."""
    store.submit("t", plan(par(call("a"), call("b", "registry"))))
    first, second = store.claim("w", [], 2)
    one, two = intended(store, first), intended(store, second)
    store.settle(under(one), "failed", None, "400")
    store.settle(under(two), "unknown", None, "reset")
    assert views.status(store, "t")["state"] == "running"
    finish(store, "found")
    assert views.status(store, "t")["state"] == "failed"
    assert states(views.status(store, "t")) == {"a": "failed", "b": "reconciled"}


# -- waking


def test_a_signal_before_its_wait_is_kept(store):
    """An early signal is buffered, outlives a restart, and releases the wait when it opens."""
    store.submit("t", plan(call("a"), wait("w", "go")))
    assert store.signal("t", "1", "go", {"nonce": "n"})["disposition"] == "buffered"
    store = again(store)
    finish(store)
    assert views.status(store, "t")["result"] == {"a": "n-a", "w": "n"}
    assert store.signal("t", "1", "go", {"nonce": "n"}) == {"id": "1", "disposition": "released", "consumer": "t.1:w"}


def test_one_signal_releases_one_wait_in_order(store):
    """Signals of one name go to the waits of that name one by one; a repeat of an id is no further signal."""
    store.submit("t", plan(wait("v", "go"), wait("w", "go")))
    for _ in range(3):
        store.signal("t", "1", "go", {"nonce": "first"})
    assert states(views.status(store, "t")) == {"v": "succeeded", "w": "planned"}
    store.signal("t", "x", "other", {"nonce": "no"})
    store.signal("t", "2", "go", {"nonce": "second"})
    assert views.status(store, "t")["result"] == {"v": "first", "w": "second"}


def test_a_signals_id_stands_for_one_signal(store):
    """Another name or payload under a known id is refused, and so is a signal to nobody."""
    store.submit("t", plan(wait("w", "go")))
    store.signal("t", "1", "go", {"nonce": "n"})
    for name, payload in (("stop", {"nonce": "n"}), ("go", {"nonce": "m"})):
        with pytest.raises(Refusal, match=r"conflict: signal '1' .*; one more signal has an id of its own \(`--id`\)"):
            store.signal("t", "1", name, payload)
    with pytest.raises(Refusal, match="unknown-task"):
        store.signal("nobody", "1", "go", {})


def test_a_timer_keeps_its_hour_and_fires_once(store, monkeypatch):
    """Not a nanosecond early by the wall clock, neither forgotten nor renewed by a restart, and never twice."""
    now_ns = 1_000_000 * MS
    monkeypatch.setattr("time.time_ns", lambda: now_ns)
    store.submit("t", plan(sleep("s", 500)))
    now_ns += 499
    store = again(store)
    assert store.fire_timers() == 0
    assert views.status(store, "t")["state"] == "waiting"
    now_ns += 1
    assert store.fire_timers() == 1
    assert store.fire_timers() == 0
    assert views.status(store, "t")["state"] == "done"


def test_waiting_shows_what_for(store):
    """A task that waits names the signal; one that only sleeps names none."""
    store.submit("t", plan(wait("w", "go"), sleep("s", 10**15)))
    assert views.status(store, "t")["on"] == "go"
    store.signal("t", "1", "go", {"nonce": "n"})
    assert (views.status(store, "t")["state"], views.status(store, "t")["on"]) == ("waiting", None)


def test_versions_only_grow(store):
    """Every change of a task is a later version of it, also over a restart."""
    store.submit("t", plan(call("a"), wait("w", "go")))
    versions = [views.status(store, "t")["version"]]
    finish(store, "unknown")
    versions.append(views.status(store, "t")["version"])
    store = again(store)
    finish(store)
    versions.append(views.status(store, "t")["version"])
    store.signal("t", "1", "go", {"nonce": "n"})
    versions.append(views.status(store, "t")["version"])
    assert versions == sorted(set(versions))


@pytest.mark.parametrize("report", ["missing", "found"])
def test_a_call_cannot_report_what_only_a_lookup_can(store, report):
    """`missing` said of a call would permit repeating a blind effect; the table has no such transition."""
    store.submit("t", plan(call("a", "mailer")))
    grant, _ = take(store)
    answer = {"nonce": "n"} if report == "found" else None
    assert isinstance(store.settle(grant, report, answer, ""), Rejected)
    assert states(views.status(store, "t")) == {"a": "dispatched"}


def test_a_disk_that_is_full_in_the_midst_of_a_transaction_is_told_as_such(store):
    """SQLite undoes it by itself; what is told is why, and what was acknowledged before is there."""
    store.submit("t", plan(call("a")))
    store.db.pragma("max_page_count", store.db.pragma("page_count"))
    with pytest.raises(apsw.FullError):
        store.submit("u", plan(call("a", text="x" * 100_000)))
    assert [views.status(store, task)["state"] for task in ("t", "u")] == ["running", "unknown"]
