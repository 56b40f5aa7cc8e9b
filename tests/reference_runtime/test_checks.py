"""Completion checks: success needs a passing verdict on what is current at the end, and every other end has its name."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from reference_runtime import Policy, Store, views
from reference_runtime.checks import CHECK_TRIES
from reference_runtime.model import Json
from tests.runtime_plans import artifact, check, claim, settle, work_off
from tests.runtime_rig import call, par, plan, seq, states

POLICY = Policy(backoff_ns_min=2, backoff_ns_max=2, deaths_max=1000, landing_ns=0)


@pytest.fixture
def store(tmp_path):
    return Store.open(str(tmp_path / "s.db"), policy=POLICY)


def shown(store: Store) -> Json:
    return views.status(store, "t")


def verdicts(store: Store) -> list[tuple[str, str, int, str]]:
    rows = views.journal(store, "t")["verdicts"]
    return [(row["operation"], row["checker"], row["version"], row["outcome"]) for row in rows]


def test_a_check_is_about_the_current_version(store):
    """Name, version and digest go out with the request, and the verdict on them survives a restart."""
    store.submit("t", plan(artifact("a"), artifact("b"), check("c", "a")))
    for _ in range(2):
        settle(store, claim(store)[0])
    (ticket,) = claim(store)
    entry = next(row for row in store.artifacts("t")["artifacts"] if row["state"] == "accepted")
    assert ticket.fields == {"subject": "report", "version": 2, "digest": entry["digest"]}
    assert shown(store)["phase"] == "checking"
    settle(store, ticket)
    path = store.db.filename
    store.close()
    store = Store.open(path, policy=POLICY)
    assert (shown(store)["state"], verdicts(store)) == ("done", [("c", "checker", 2, "passed")])


def test_a_check_that_failed_fails_the_run(store):
    """A verdict of failed is a definite no."""
    store.submit("t", plan(artifact("a"), check("c", "a"), call("b")))
    settle(store, claim(store)[0])
    settle(store, claim(store)[0], outcome="failed")
    assert (shown(store)["state"], states(shown(store))) == (
        "failed",
        {"a": "succeeded", "c": "failed", "b": "planned"},
    )
    assert shown(store)["reason"] == "check-failed: c failed"


@pytest.mark.parametrize("outcome", ["unavailable", "timeout"])
def test_a_checker_that_cannot_say_is_asked_again_a_few_times(store, outcome):
    """Then the run is blocked, with the very reason; nothing lets it through."""
    store.submit("t", plan(artifact("a"), check("c", "a")))
    settle(store, claim(store)[0])
    for _ in range(CHECK_TRIES):
        settle(store, claim(store)[0], outcome=outcome)
    assert claim(store) == []
    assert (shown(store)["state"], shown(store)["reason"]) == ("blocked", f"check-{outcome}: c")
    store.signal("t", "late", "go", {"nonce": "late"})
    assert (shown(store)["state"], shown(store)["reason"]) == ("blocked", f"check-{outcome}: c"), "an end stays"
    assert [row[-1] for row in verdicts(store)] == [outcome] * CHECK_TRIES


def test_a_checker_that_recovers_lets_success_through(store):
    """What counts is the last verdict."""
    store.submit("t", plan(artifact("a"), check("c", "a")))
    for outcome in ("passed", "unavailable", "timeout", "passed"):
        settle(store, claim(store)[0], outcome=outcome)
    assert shown(store)["state"] == "done"


def test_a_checker_that_is_never_heard_of_is_a_timeout(store):
    """Lost answers are no verdicts; they are bounded like the checker's own timeouts."""
    store.submit("t", plan(artifact("a"), check("c", "a")))
    settle(store, claim(store)[0])
    for _ in range(CHECK_TRIES):
        settle(store, claim(store)[0], "unknown")
    assert (shown(store)["state"], shown(store)["reason"]) == ("blocked", "check-timeout: c")


def test_a_skipped_check_does_not_let_success_through(store):
    """It is not asked again, and the run is blocked over it."""
    store.submit("t", plan(artifact("a"), check("c", "a")))
    settle(store, claim(store)[0])
    settle(store, claim(store)[0], outcome="skipped")
    assert (claim(store), shown(store)["state"], shown(store)["reason"]) == ([], "blocked", "check-skipped: c")


@pytest.mark.parametrize("outcome", ["failed", "unavailable", "timeout", "skipped"])
def test_a_check_that_is_not_required_stops_nothing(store, outcome):
    """Its verdict is kept, whatever it is."""
    store.submit("t", plan(artifact("a"), check("c", "a", required=False)))
    settle(store, claim(store)[0])
    settle(store, claim(store)[0], outcome=outcome)
    assert (shown(store)["state"], verdicts(store)) == ("done", [("c", "checker", 1, outcome)])


@pytest.mark.parametrize("wrong", [{"version": 7}, {"digest": "00"}, {"subject": "other"}, {"outcome": "splendid"}])
def test_an_answer_about_something_else_is_no_verdict(store, wrong):
    """It is asked again."""
    store.submit("t", plan(artifact("a"), check("c", "a")))
    settle(store, claim(store)[0])
    settle(store, claim(store)[0], **wrong)
    assert (verdicts(store), shown(store)["state"]) == ([("c", "checker", 1, "")], "running")
    assert work_off(store) == ["t:c"]


def test_a_stale_word_is_no_verdict(store):
    """The verdict of a worker that lost its lease changes nothing of the one that is asked for now."""
    store.submit("t", plan(artifact("a"), check("c", "a")))
    settle(store, claim(store)[0])
    (stale,) = claim(store)
    store.reclaim(stale.generation)
    (current,) = claim(store)
    settle(store, stale)
    assert [row[-1] for row in verdicts(store)] == ["", ""]
    settle(store, current, outcome="failed")
    assert shown(store)["state"] == "failed"


def test_an_artifact_replaced_during_its_check(store):
    """A passing verdict on the older version is not enough: the newer one is checked before the run is done."""
    store.submit("t", plan(artifact("a"), par(check("c", "a"), artifact("b"))))
    settle(store, claim(store)[0])
    c, b = sorted(claim(store, 2), key=lambda ticket: -ord(ticket.operation[0]))
    settle(store, b)
    settle(store, c)
    assert (shown(store)["state"], shown(store)["phase"]) == ("running", "checking")
    assert states(shown(store)) == {"a": "succeeded", "c": "succeeded", "b": "succeeded"}
    (again,) = claim(store)
    assert (again.operation, again.fields["version"]) == ("c~2", 2)
    settle(store, again)
    assert (shown(store)["state"], [row[2] for row in verdicts(store)]) == ("done", [1, 2])


def test_a_newer_version_that_fails_its_check_fails_the_run(store):
    """The older verdict does not help it."""
    store.submit("t", plan(artifact("a"), check("c", "a"), artifact("b")))
    for _ in range(3):
        settle(store, claim(store)[0])
    settle(store, claim(store)[0], outcome="failed")
    assert (shown(store)["state"], shown(store)["reason"]) == ("failed", "check-failed: c~2 failed")


def test_checks_that_are_overtaken_again_and_again_end(store):
    """They are made anew a bounded number of times; then the run is blocked and says that the last verdict is stale."""
    names = [f"b{n}" for n in range(CHECK_TRIES + 1)]
    store.submit("t", plan(artifact("a"), check("c", "a"), *(artifact(name) for name in names)))
    order = []
    for _ in range(40):
        tickets = sorted(claim(store, 1), key=lambda ticket: ticket.operation)
        if not tickets:
            break
        order.append(tickets[0].operation)
        settle(store, tickets[0])
    assert len([one for one in order if one.startswith("c")]) <= CHECK_TRIES
    state, reason = shown(store)["state"], shown(store)["reason"]
    assert (state, reason) == ("done", "completed") or (
        state == "blocked" and reason.startswith("check-stale: c passed")
    )


def test_nothing_is_checked_anew_in_a_run_that_is_ending(store):
    """After a failure or a stop a newer version makes no further check."""
    store.submit("t", plan(artifact("a"), check("c", "a"), par(call("x"), artifact("b"))))
    settle(store, claim(store)[0])
    settle(store, claim(store)[0])
    x, b = sorted(claim(store, 2), key=lambda ticket: -ord(ticket.operation[0]))
    settle(store, x, "failed")
    settle(store, b)
    assert (claim(store), shown(store)["state"]) == ([], "failed")


OUTCOMES = ["passed", "failed", "unavailable", "timeout", "skipped"]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(OUTCOMES), st.booleans()), max_size=15))
def test_success_always_has_a_passing_verdict_on_the_current_version(steps):
    """Whatever the order of uploads, verdicts and losses: done means passed, on what is current; and every run ends."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store.open(str(Path(folder) / "s.db"), policy=POLICY)
        left = seq(artifact("a"), check("c", "a"), id_="left")
        store.submit(
            "t", plan(par(left, artifact("b"), artifact("d", "other"), seq(call("x"), artifact("e"), id_="r")))
        )
        held = claim(store, 3)
        for number, outcome, is_lost in itertools.chain(steps, [(0, "passed", False)] * 30):
            held += claim(store, 3)
            if not held:
                break
            ticket = held.pop(number % len(held))
            if is_lost:
                store.reclaim(ticket.generation)
            else:
                settle(store, ticket, **({"outcome": outcome} if ticket.tool == "checker" else {}))
        status = shown(store)
        assert status["state"] in ("done", "failed", "blocked")
        if status["state"] == "done":
            current = store.current_version("t", "report")
            assert ("passed", *current) in store._rows("SELECT outcome, version, digest FROM verdict")
        else:
            assert status["reason"].startswith("check-")
        store.close()
