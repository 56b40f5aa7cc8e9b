"""Limits in the store: tries, deaths, questions, time and keys are counted across restarts, once each; ends have reasons."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from reference_runtime import Store, views
from reference_runtime.intents import request_digest
from reference_runtime.model import NOT_BEGUN, Facts, Grant, Policy, Rejected, Ticket
from reference_runtime.ownership import SUSPECT_DEATHS
from simkit.services import Request
from tests.runtime_rig import MS, call, finish, intended, par, plan, states, take, under

POLICY = Policy(tries_max=4, lookups_max=2, deaths_max=2, key_lifetime_ns=1000 * MS, backoff_ns_min=2, backoff_ns_max=2)


class Clock:
    """A wall clock that stands unless it is moved; each reading is a microsecond later, so that what is due comes up."""

    def __init__(self) -> None:
        self.ns = 10**18

    def read(self) -> int:
        self.ns += 1000
        return self.ns


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr("time.time_ns", clock.read)
    return clock


@pytest.fixture
def store(tmp_path, clock):
    return Store.open(str(tmp_path / "s.db"), policy=POLICY)


def again(store: Store) -> Store:
    """The same file after the process is gone."""
    path = store.db.filename
    store.close()
    return Store.open(path, policy=POLICY)


def ended(store: Store) -> tuple[str, str]:
    """State of the operation `a`, and the code of its reason."""
    state, reason = store._rows("SELECT state, reason FROM operation WHERE id = 'a'")[0]
    return state, reason.partition(":")[0]


def submitted(store: Store, service: str = "ledger", **limits: object) -> None:
    store.submit("t", plan(call("a", service) | limits))


@pytest.mark.parametrize("report", ["unknown", "busy", "unsent"])
def test_a_plan_limits_the_tries_of_an_operation(store, report):
    """After the last try: unresolved when something may have happened, failed when nothing can have."""
    submitted(store, tries=2)
    for _ in range(2):
        finish(store, report)
        store = again(store)
    assert ended(store) == ("unresolved" if report == "unknown" else "failed", "retries-exhausted")
    assert store.claim("w", [], 1) == []


def test_doubt_outlasts_a_later_no(store):
    """A busy receiver says nothing of the call before, whose outcome nobody knows."""
    submitted(store, tries=2)
    finish(store, "unknown")
    finish(store, "busy")
    assert ended(store) == ("unresolved", "retries-exhausted")


def test_what_was_never_begun_is_no_try(store):
    """A holder whose lease had run out sent nothing, and says so: tries and time are as they were before."""
    submitted(store, tries=1, elapsed_ns=50 * MS)
    for _ in range(3):
        grant, ticket = take(store)
        assert ticket.invocation == 1
        assert store.settle(grant, "unsent", None, "", Facts(reason=NOT_BEGUN)) is None
        assert store._rows("SELECT tries, first_ns, state FROM operation") == [(0, None, "unknown")]
        store = again(store)
    finish(store, "succeeded", "n")
    assert states(views.status(store, "t")) == {"a": "succeeded"}


def test_a_question_that_was_never_asked_is_none(store):
    """Nor does it count in the search."""
    submitted(store, "registry")
    finish(store, "unknown")
    for _ in range(3):
        grant, ticket = take(store)
        assert ticket.action == "lookup"
        assert store.settle(grant, "unsent", None, "", Facts(reason=NOT_BEGUN)) is None
    assert store._rows("SELECT tries FROM reconcile") == [(0,)]


def test_time_is_counted_from_the_first_try(store, clock):
    """What became due too late while nobody claimed it is ended instead of being called, also after a restart."""
    submitted(store, elapsed_ns=50 * MS)
    finish(store, "busy")
    clock.ns += 60 * MS
    store = again(store)
    assert store.claim("w", [], 1) == []
    assert ended(store) == ("failed", "time-exhausted")
    assert views.status(store, "t")["state"] == "failed"


@pytest.mark.parametrize(("report", "state"), [("unknown", "unresolved"), ("busy", "dispatched")])
def test_a_key_is_not_used_after_its_lifetime(store, clock, report, state):
    """The receiver may have forgotten the key and would carry the call out anew; harmless where nothing was carried out."""
    submitted(store)
    finish(store, report)
    clock.ns += 1001 * MS
    store.claim("w", [], 1)
    assert states(views.status(store, "t")) == {"a": state}
    assert report == "busy" or ended(store) == ("unresolved", "key-expired")


@pytest.mark.parametrize(("service", "state"), [("ledger", "unresolved"), ("reader", "failed")])
def test_work_that_kills_its_workers_is_ended(store, service, state):
    """Each worker that dies over it counts once, however often its death is noticed, and uses up one try."""
    submitted(store, service)
    for death in (1, 2):
        grant, ticket = take(store)
        assert ticket.invocation == death
        for _ in range(3):
            store.reclaim(grant.generation)
        store = again(store)
        assert store._rows("SELECT deaths, tries FROM operation") == [(death, death)]
    assert ended(store) == (state, "poison")


@pytest.fixture
def patient(clock, tmp_path):
    """A store that lets more than two workers die over an operation."""
    opened = Store.open(str(tmp_path / "patient.db"), policy=attrs.evolve(POLICY, deaths_max=5))
    yield opened
    opened.close()


def test_what_kills_its_workers_takes_no_neighbour_along(patient):
    """All that a dead worker had in hand counts its death; from the second on each of it is given out apart from the others."""
    store = patient
    names = [f"s{number}" for number in range(8)]
    store.submit("t", plan(par(*map(call, names))))
    for _ in range(20):
        execution = store.new_execution("w")
        held = dict[str, Ticket]()
        while leases := store.claim(execution, [one.generation for one in held.values()], len(names) - len(held)):
            held |= {one.operation: one for one in (intended(store, lease) for lease in leases)}
        assert sum(store._operation("t.1", name).deaths >= SUSPECT_DEATHS for name in held) <= 1
        if "s3" in held:
            for ticket in held.values():
                store.reclaim(ticket.generation)
        else:
            for ticket in held.values():
                store.settle(under(ticket), "succeeded", {"nonce": "n"}, "")
    assert states(views.status(store, "t")) == {name: "unresolved" if name == "s3" else "succeeded" for name in names}


def test_a_suspect_waits_for_no_other_work(patient):
    """Only other suspects keep it waiting, and it keeps nothing waiting but these."""
    store = patient
    store.submit("t", plan(par(call("a"), call("b"))))
    for _ in range(SUSPECT_DEATHS):
        for lease in store.claim("w#1", [], 2):
            store.reclaim(lease.generation)
    store.submit("u", plan(par(call("c"), call("d"))))
    held = [lease.operation for _ in range(4) for lease in store.claim("w#2", [one for one, _ in store.leases()], 1)]
    assert held == ["a", "c", "d"]
    assert store.next_work_ns("w#2") is None
    assert [lease.operation for lease in store.claim("w#3", [], 4)] == ["b"]


def test_a_lost_lease_without_an_intent_is_no_death(store):
    """Who was granted a blind call and fell silent before saying that it would make it has not died over it."""
    submitted(store, "mailer")
    for _ in range(3):
        (grant,) = store.claim("w", [], 1)
        store.reclaim(grant.generation)
    assert store._rows("SELECT deaths, tries FROM operation") == [(0, 0)]


def test_questions_are_counted_apart_and_end(store):
    """A search has an id, tries and an end of its own; the call's tries stay what they were."""
    submitted(store, "registry")
    finish(store, "unknown")
    for _ in range(2):
        assert take(store)[1].action == "lookup"
        store.reclaim(store.leases()[0][0])
        store = again(store)
    assert ended(store) == ("unresolved", "lookups-exhausted")
    assert store._rows("SELECT id, tries, result FROM reconcile") == [("t.1:a?1", 2, "unresolved")]
    assert store._rows("SELECT tries FROM operation") == [(1,)]


def test_every_search_begins_anew(store):
    """A search that found nothing is over; the next unknown outcome opens the next one."""
    submitted(store, "registry")
    for _ in range(2):
        finish(store, "unknown")
        finish(store, "missing")
    finish(store, "unknown")
    finish(store, "found")
    assert store._rows("SELECT id, tries, result FROM reconcile ORDER BY id") == [
        ("t.1:a?1", 1, "missing"),
        ("t.1:a?2", 1, "missing"),
        ("t.1:a?3", 1, "found"),
    ]
    assert states(views.status(store, "t")) == {"a": "reconciled"}


def test_what_was_not_found_may_be_said_to_have_failed(store):
    """After a search that found nothing there is no doubt left."""
    submitted(store, "registry", tries=1)
    finish(store, "unknown")
    finish(store, "missing")
    assert ended(store) == ("failed", "retries-exhausted")


def test_the_receivers_wish_is_kept(store, clock):
    """Not before the time it asked for; the receiver's own id is on record."""
    submitted(store)
    grant, _ = take(store)
    store.settle(grant, "busy", None, "429", Facts(external="req-1", retry_after_ns=70 * MS))
    assert store._rows("SELECT external FROM invocation") == [("req-1",)]
    clock.ns += 69 * MS
    assert store.claim("w", [], 1) == []
    clock.ns += 2 * MS
    assert len(store.claim("w", [], 1)) == 1


# -- one transaction a step


def test_a_report_brings_the_next_operation(store):
    """Settling and leasing are one transaction, and asking again gives the same answer and nothing more."""
    store.submit("t", plan(call("a"), par(call("b"), call("c"))))
    grant, _ = take(store)
    report = (grant, "succeeded", {"nonce": "n"}, "")
    rejected, leases = store.turn(*report, execution="w", limit=1)  # type: ignore[arg-type]
    assert (rejected, [one.operation for one in leases]) == (None, ["b"])
    assert isinstance(leases[0], Ticket)
    assert store.turn(*report, execution="w", limit=1) == (None, leases)  # type: ignore[arg-type]
    assert [one.operation for one in store.claim("w", [], 5)] == ["c"]
    assert store._value("SELECT count(*) FROM invocation") == 3


def test_a_stale_report_brings_nothing(store):
    """Whoever lost its lease is refused, and gets no work with it."""
    store.submit("t", plan(call("a"), call("b")))
    grant, _ = take(store)
    store.reclaim(grant.generation)
    rejected, leases = store.turn(grant, "succeeded", {"nonce": "n"}, "", execution="w", limit=1)
    assert isinstance(rejected, Rejected)
    assert leases == []


def test_a_blind_call_is_never_dispatched_with_its_lease(store):
    """A report may bring the grant; the intent waits until its holder asks for it."""
    store.submit("t", plan(call("a"), call("b", "mailer")))
    grant, _ = take(store)
    _, (lease,) = store.turn(grant, "succeeded", {"nonce": "n"}, "", execution="w", limit=1)
    assert isinstance(lease, Grant)
    assert states(views.status(store, "t"))["b"] == "planned"
    assert isinstance(intended(store, lease), Ticket)


@pytest.mark.parametrize("service", ["ledger", "mailer"])
def test_what_is_handed_back_costs_no_try(store, service):
    """Another worker may take it at once, and its count is as if nobody had had it."""
    submitted(store, service, tries=1)
    (lease,) = store.claim("v", [], 1)
    assert store.hand_back("w") == []
    assert store.hand_back("v") == [lease.generation]
    assert isinstance(store.settle(under(lease), "succeeded", {"nonce": "n"}, ""), Rejected)  # type: ignore[arg-type]
    assert finish(store) is None
    assert store._rows("SELECT state, tries FROM operation") == [("succeeded", 1)]


def test_a_fenced_receiver_gets_the_current_token(store):
    """Each takeover has a later token than the one before."""
    submitted(store, "fenced")
    first, one = take(store)
    store.reclaim(first.generation)
    second, two = take(store)
    assert (one.fields["token"], two.fields["token"]) == (first.generation, second.generation)
    assert two.fields["token"] > one.fields["token"]
    assert one.key == two.key


@pytest.mark.parametrize("about", [{}, {"subject": "s", "version": 2, "digest": "d"}])
def test_a_request_is_fingerprinted_as_its_receiver_does(about):
    """So that a journal and what arrived can be laid side by side."""
    asked: dict[str, Any] = {"params": {"b": 1, "a": "\N{EURO SIGN}"}, "carries": {"x": "n"}}
    received = Request(service="checker", run="r", op="a", **asked, **about)
    assert request_digest({**asked, "script": ["ok"], **about}) == received.fingerprint()
