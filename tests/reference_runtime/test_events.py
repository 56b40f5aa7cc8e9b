"""Event cursors: dense, the same for ever, without a gap wherever a reader comes back."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from reference_runtime import Policy, Refusal, Store, views
from reference_runtime.events import PAGE, events, frames
from reference_runtime.model import TRANSITIONS, Json
from tests.runtime_plans import child, claim, settle, work_off
from tests.runtime_rig import call, par, plan, wait

POLICY = Policy(backoff_ns_min=2, backoff_ns_max=2)


@pytest.fixture
def store(tmp_path):
    return Store.open(str(tmp_path / "s.db"), policy=POLICY)


def kinds(answer: Json) -> list[tuple[str, str | None]]:
    return [(event["kind"], event["operation"]) for event in answer["events"]]


def frames_of(answer: Json) -> list[str]:
    return [frame["kind"] for frame in answer["control"]]


def test_everything_that_happens_is_an_event(store):
    """From the admission to the end, in the order in which it was committed, under cursors from one on."""
    store.submit("t", plan(call("a"), wait("w", "go")))
    settle(store, claim(store)[0], "unknown")
    work_off(store)
    store.signal("t", "1", "go", {"nonce": "n"})
    answer = events(store, "t", 0)
    assert kinds(answer) == [
        ("admitted", None),
        ("dispatched", "a"),
        ("unknown", "a"),
        ("dispatched", "a"),
        ("succeeded", "a"),
        ("succeeded", "w"),
        ("succeeded", None),
    ]
    assert [event["cursor"] for event in answer["events"]] == [1, 2, 3, 4, 5, 6, 7]
    assert (answer["next"], frames_of(answer)) == (7, ["end"])


def test_a_refused_word_is_no_event(store):
    """What changed nothing is told nowhere."""
    store.submit("t", plan(call("a")))
    (stale,) = claim(store)
    store.reclaim(stale.generation)
    before = events(store, "t", 0)
    settle(store, stale)
    assert events(store, "t", 0) == before


def test_cursors_are_each_tasks_own(store):
    """What happens to one task moves no other's."""
    store.submit("t", plan(call("a")))
    store.submit("u", plan(child("k", call("x"))))
    work_off(store)
    for task in ("t", "u", "u/k"):
        found = events(store, task, 0)["events"]
        assert [event["cursor"] for event in found] == list(range(1, len(found) + 1))


def test_an_event_names_the_first_version_that_shows_it(store):
    """A status of that version or a later one shows it, an earlier one does not."""
    store.submit("t", plan(call("a")))
    before = views.status(store, "t")["version"]
    settle(store, claim(store)[0], "unknown")
    after = views.status(store, "t")["version"]
    versions = [event["version"] for event in events(store, "t", 1)["events"]]
    assert all(before < version <= after for version in versions)


def test_control_frames_move_no_cursor(store):
    """A reader who has everything is told so, and comes back with the cursor it has."""
    store.submit("t", plan(wait("w", "go")))
    answer = events(store, "t", 1)
    assert (answer["events"], answer["next"], frames_of(answer)) == ([], 1, ["heartbeat", "idle"])
    assert frames(None, "running", is_read=True) == ["heartbeat"]
    assert frames("failed", "terminal", is_read=False) == ["heartbeat"]


@pytest.mark.parametrize("after", [-1, 2, 10**9])
def test_a_cursor_from_nowhere_is_refused(store, after):
    """A reader that knows more than the store is told so: what it saw is not there any more."""
    store.submit("t", plan(call("a")))
    with pytest.raises(Refusal, match="bad-cursor"):
        events(store, "t", after)


def test_an_unknown_task_has_no_events(store):
    """It is a definite no."""
    with pytest.raises(Refusal, match="unknown-task"):
        events(store, "t", 0)


def test_long_histories_come_in_pages(store):
    """No answer holds more than a page, and the pages are the whole."""
    store.submit("t", plan(par(*(call(f"c{n}") for n in range(PAGE)))))
    work_off(store, 2 * PAGE)
    found: list[Json] = []
    while True:
        answer = events(store, "t", len(found))
        assert len(answer["events"]) <= PAGE
        found += answer["events"]
        if frames_of(answer) == ["end"]:
            break
    assert [event["cursor"] for event in found] == list(range(1, 2 * PAGE + 3))


@settings(max_examples=25, deadline=None)
@given(
    steps=st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from(["succeeded", "failed", "unknown", "busy", "silence", "restart"])),
        max_size=15,
    ),
    reads=st.lists(st.integers(0, 60), max_size=5),
)
def test_coming_back_leaves_no_gap_and_repeats_are_the_same(steps, reads):
    """Whatever happens in between: the history only grows at its end, and every suffix of it can be read."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store.open(str(Path(folder) / "s.db"), policy=POLICY)
        store.submit("t", plan(par(call("a"), call("b", "registry"), wait("w", "go")), call("c")))
        seen: list[Json] = []
        held = claim(store, 3)
        for number, step in steps:
            if step == "restart":
                store.close()
                store = Store.open(str(Path(folder) / "s.db"), policy=POLICY)
            elif held:
                ticket = held.pop(number % len(held))
                if step == "silence":
                    store.reclaim(ticket.generation)
                else:
                    settle(store, ticket, step)  # type: ignore[arg-type]
            held += claim(store, 3)
            answer = events(store, "t", len(seen))
            seen += answer["events"]
            assert (answer["next"], [event["cursor"] for event in seen]) == (len(seen), list(range(1, len(seen) + 1)))
        seen += events(store, "t", len(seen))["events"]
        for after in reads:
            if after <= len(seen):
                assert events(store, "t", after)["events"] == seen[after:]
        store.close()


def test_every_transition_is_in_the_journal(store):
    """From, to, move, reason and generation of each; and each is one that the table allows."""
    store.submit("t", plan(par(call("a", "registry"), call("b", "mailer")), call("c")))
    for report in ("unknown", "unknown", "found"):
        for ticket in claim(store, 1):
            settle(store, ticket, report)  # type: ignore[arg-type]
    rows = views.journal(store, "t")["transitions"]
    assert all(TRANSITIONS[row["from"], row["move"]] == row["to"] for row in rows)
    assert [row["sequence"] for row in rows] == sorted({row["sequence"] for row in rows})
    for operation in ("a", "b"):
        path = [row for row in rows if row["operation"] == operation]
        assert path[0]["from"] == "planned"
        assert all(one["to"] == other["from"] for one, other in itertools.pairwise(path))
        assert all(row["generation"] > 0 for row in path)
    assert all(row["reason"] for row in rows if row["move"] in ("lose", "give_up"))


def test_what_is_sent_again_or_undone_says_why(store):
    """A repeat, a question, its answer and a compensation have reasons; what simply has its turn has none."""
    undo = {"op": "compensate", "id": "u", "of": "a", "service": "ledger", "params": {}}
    store.submit("t", plan(call("a"), call("b", "registry"), undo, {"op": "fail", "id": "f", "reason": "enough"}))
    for report in ("unknown", "succeeded", "unknown", "found", "succeeded"):
        settle(store, claim(store, 1)[0], report)  # type: ignore[arg-type]
    rows, sent = views.journal(store, "t")["transitions"], ("dispatch", "look_up", "find")
    assert [(row["operation"], row["to"], row["reason"]) for row in rows if row["move"] in sent] == [
        ("a", "dispatched", None),
        ("a", "dispatched", "repeat: outcome-unknown: unknown"),
        ("b", "dispatched", None),
        ("b", "unknown", "look-up: outcome-unknown: unknown"),
        ("b", "reconciled", "found: the receiver knows the effect"),
        ("u", "dispatched", "compensation: planned-failure: f: enough"),
    ]
