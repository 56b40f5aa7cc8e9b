"""What a status tells: the phase, the reason, what it waits for, what it spent; one snapshot, at a bounded cost."""

from __future__ import annotations

import pytest

from reference_runtime import Policy, Store, views
from reference_runtime.events import events
from reference_runtime.model import Json
from tests.runtime_plans import artifact, check, child, claim, settle, wanting, work_off
from tests.runtime_rig import call, par, plan, wait

POLICY = Policy(backoff_ns_min=2, backoff_ns_max=2)


@pytest.fixture
def store(tmp_path):
    return Store.open(str(tmp_path / "s.db"), policy=POLICY)


def shown(store: Store) -> Json:
    return views.status(store, "t")


def test_the_way_of_a_task(store):
    """Admitted, running, waiting, paused, checking, ended: the phase follows, and so does what is waited for."""
    store.submit("t", plan(call("a"), wait("w", "go"), call("b"), artifact("r"), check("c", "r")))
    seen = [(shown(store)["phase"], shown(store)["dependency"])]
    settle(store, claim(store)[0])
    seen.append((shown(store)["phase"], shown(store)["dependency"]))
    store.signal("t", "1", "go", {"nonce": "n"})
    (b,) = claim(store)
    seen.append((shown(store)["phase"], shown(store)["dependency"]))
    store.pause("t", "p")
    seen.append((shown(store)["phase"], shown(store)["dependency"]))
    store.unpause("t", "u")
    settle(store, b)
    settle(store, claim(store)[0])
    seen.append((shown(store)["phase"], shown(store)["dependency"]))
    work_off(store)
    seen.append((shown(store)["phase"], shown(store)["dependency"]))
    assert seen == [
        ("admitted", "a"),
        ("waiting", "w"),
        ("running", "b"),
        ("paused", "b"),
        ("checking", "c"),
        ("ended", None),
    ]


@pytest.mark.parametrize(
    ("report", "service", "state", "reason"),
    [
        ("succeeded", "ledger", "done", "completed"),
        ("failed", "ledger", "failed", "rejected: a failed: failed"),
        (
            "unknown",
            "mailer",
            "blocked",
            "outcome-unknown: a unresolved: outcome-unknown: unknown after 1 tries; what is unresolved may have happened",
        ),
    ],
)
def test_every_end_has_its_reason(store, report, service, state, reason):
    """A code in kebab-case, and what is known of it; none before the end."""
    store.submit("t", plan(call("a", service)))
    assert shown(store)["reason"] is None
    settle(store, claim(store)[0], report)
    assert (shown(store)["state"], shown(store)["reason"]) == (state, reason)


def test_operations_say_whether_they_may_move(store):
    """Ready: its turn has come. None once it is over. Tries count invocations, the detail is the last reason."""
    store.submit("t", plan(call("a"), call("b")))
    settle(store, claim(store)[0], "unknown")
    first, second = shown(store)["operations"]
    assert first == {
        "id": "a",
        "state": "unknown",
        "nonce": None,
        "ready": True,
        "tries": 1,
        "detail": "outcome-unknown: unknown",
    }
    assert (second["ready"], second["tries"], second["detail"]) == (False, 0, None)
    work_off(store)
    assert [one["ready"] for one in shown(store)["operations"]] == [None, None]


def test_signals_have_their_disposition(store):
    """Released, buffered or late, by the signal's id."""
    store.submit("t", plan(wait("w", "go")))
    store.signal("t", "early", "other", {"nonce": "x"})
    assert shown(store)["signals"] == {"early": "buffered"}
    store.signal("t", "1", "go", {"nonce": "n"})
    store.signal("t", "2", "go", {"nonce": "n"})
    assert shown(store)["signals"] == {
        one: store.signal("t", one, name, {"nonce": nonce})["disposition"]
        for one, name, nonce in (("early", "other", "x"), ("1", "go", "n"), ("2", "go", "n"))
    }


def test_prepared_is_not_delivered(store):
    """A result is there when its run ends, and delivered when it was handed over, once, with a new version."""
    store.submit("t", plan(call("a")))
    assert shown(store)["delivered"] is None
    work_off(store)
    before = shown(store)
    assert before["delivered"] is False
    assert [store.deliver("t"), store.deliver("t")] == [True, False]
    assert (shown(store)["delivered"], shown(store)["version"]) == (True, before["version"] + 1)
    assert [row["state"] for row in views.journal(store, "t")["deliveries"]] == ["delivered"]


def test_a_task_without_more_says_so(store):
    """Empty lists and nulls, not missing fields."""
    store.submit("t", plan(call("a")))
    assert {name: shown(store)[name] for name in ("usage", "children", "approvals", "signals", "cancel", "paused")} == {
        "usage": None,
        "children": [],
        "approvals": [],
        "signals": {},
        "cancel": None,
        "paused": False,
    }


def test_reading_changes_nothing(store):
    """Statuses, journals and events of a busy task are the same however often they are read."""
    work = plan(par(child("k", call("x"), share={"calls": 1}), artifact("r"), call("a")))
    store.submit("t", wanting(work, allowance={"calls": 5}))
    claim(store, 2)
    changes = store.db.total_changes()
    first = (shown(store), views.journal(store, "t"), store.artifacts("t"))
    assert (shown(store), views.journal(store, "t"), store.artifacts("t")) == first
    assert store.db.total_changes() == changes


def test_what_a_view_costs_is_bounded_by_its_task(store):
    """No statement of a status, a journal or an event cursor scans the rows of other tasks."""
    store.submit("t", wanting(plan(child("k", call("x")), artifact("r")), allowance={"calls": 5}))
    asked: list[tuple[str, object]] = []

    def note(_: object, sql: str, bindings: object) -> bool:
        asked.append((sql, bindings))
        return True

    store.db.exec_trace = note
    shown(store), views.journal(store, "t"), store.artifacts("t"), events(store, "t", 0)
    store.db.exec_trace = None
    assert len(asked) > 15
    for sql, bindings in asked:
        steps = store.db.execute(f"EXPLAIN QUERY PLAN {sql}", bindings).fetchall()  # type: ignore[arg-type]
        scans = {str(row[3]).split()[1] for row in steps if str(row[3]).startswith("SCAN")}
        assert scans <= {"CONSTANT", "line"} or "OVER (PARTITION" in sql, (sql, steps)
