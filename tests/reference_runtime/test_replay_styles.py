"""Both styles of writing work: any plan ends the same way as explicit state and as history replay, over the same operations."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference_runtime import Store, runner, views
from reference_runtime.documents import replayed
from reference_runtime.interpreter import INTERPRETER
from reference_runtime.model import Grant, Json, Policy, Ticket
from scenarios.generate import ALL_OPERATIONS
from scenarios.strategies import plans
from tests.runtime_plans import answer_to
from tests.runtime_rig import under

POLICY = Policy(backoff_ns_min=0, backoff_ns_max=1)
ROUNDS_MAX = 500
ENDS = ("done", "failed", "blocked", "cancelled")


class Clock:
    """A wall clock that goes on by a microsecond each time it is read."""

    def __init__(self) -> None:
        self.now_ns = 10**18

    def __call__(self) -> int:
        self.now_ns += 1000
        return self.now_ns


class Even(Store):
    """A store whose draws are the same for both styles."""

    def draw(self, kind: str) -> str:
        return f"{kind}-0"


def _turns(store: Store) -> bool:
    """Run every turn that is due, each from nothing; whether there was any."""
    turns = store.claim_turns("w", {INTERPRETER.name: "1"}, (), 8)
    for turn in turns:
        commands, told, _ = store.history(turn)
        said = {"task": turn.task, "input": json.loads(turn.input), "segment": 1, "commands": commands}
        warm = runner.begin(INTERPRETER, said)
        report = runner.advance(warm, told)
        warm.replay.close()
        assert report["trouble"] == ""
        rejected, following = store.take_turn(turn, "1", report["commands"], report["end"], "w")
        assert rejected is None
        if following is not None:
            store.reclaim(following.generation)
    return bool(turns)


def _work(store: Store, refused: frozenset[str]) -> bool:
    """Carry out the next operation; whether there was one."""
    for lease in store.claim("w", (), 1):
        ticket = lease
        if isinstance(lease, Grant):
            granted = dict.fromkeys(lease.authority, True)
            dispatched = store.dispatch(
                Grant(lease.attempt, lease.operation, lease.generation, lease.version, granted=granted)
            )
            assert isinstance(dispatched, Ticket)
            ticket = dispatched
        assert isinstance(ticket, Ticket)
        if ticket.operation in refused:
            assert store.settle(under(ticket), "failed", None, "refused") is None
        else:
            assert store.settle(under(ticket), "succeeded", answer_to(ticket), "") is None
        return True
    return False


def _wake(store: Store, task: str) -> bool:
    """Give the first thing that waits what it waits for: a decision or a signal; whether anything waited."""
    for one in views.status(store, task).get("approvals", ()):
        if one["state"] == "pending" and not store.is_stopped(f"{task}.1"):
            store.decide(task, one["operation"], "approve", one["digest"], "alice", f"d:{one['operation']}", "yes")
            return True
    row = store._row(
        "SELECT a.task, o.id, o.signal FROM operation o JOIN attempt a ON a.id = o.attempt WHERE o.state = 'planned'"
        " AND o.opened_ns IS NOT NULL AND o.kind = 'wait' ORDER BY o.attempt, o.position"
    )
    if row is not None:
        store.signal(row[0], f"s:{row[1]}", row[2], {"nonce": f"signal-{row[1]}"})
    return row is not None


def _wait(store: Store, clock: Clock) -> bool:
    """Let the time pass until something is due; whether anything will be."""
    due = [at_ns for at_ns in (store.next_timer_ns(), store.next_work_ns()) if at_ns is not None]
    clock.now_ns = max(clock.now_ns, *due) if due else clock.now_ns
    return bool(due) and bool(store.fire_timers() or store.runnable(clock.now_ns, 1))


def _carry_out(document: Json, refused: frozenset[str]) -> Json:
    """One document from its admission to its end; the status then."""
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder, mock.patch("time.time_ns", clock):
        store = Even.open(str(Path(folder) / "s.db"), policy=POLICY)
        store.submit("t", document)
        for _ in range(ROUNDS_MAX):
            if _turns(store) or _work(store, refused) or _wake(store, "t") or _wait(store, clock):
                continue
            status = views.status(store, "t")
            assert status["state"] in ENDS, status
            store.close()
            return status
    raise AssertionError(f"it is still going on after {ROUNDS_MAX} rounds")


def _shown(status: Json) -> Any:
    """What must be the same, whatever the style."""
    states = {one["id"]: one["state"] for one in status["operations"]}
    return status["state"], status["result"], status["reason"], states


def _names(status: Json) -> Any:
    """What must be the same though something hangs on who is first: the operations that are shown."""
    return [one["id"] for one in status["operations"]]


def _hangs_on_order(data: Json, refused: Collection[str]) -> bool:
    """Whether the end of a plan hangs on who is first: in a race, or when a child draws on the same allowance, or is stopped
    as another operation is refused.
    """
    text = json.dumps(data)
    return '"op": "race"' in text or (("allowance" in data or bool(refused)) and '"op": "child"' in text)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(made=plans(ALL_OPERATIONS), refused=st.frozensets(st.integers(1, 9).map(lambda n: f"c{n}"), max_size=1))
def test_both_styles_end_the_same_way(made, refused):
    """State, result, reason and the end of every operation are those of the plan, whichever style carries it out; where who
    is first decides, the run ends with the same operations shown.
    """
    data = made.to_json()
    compared = _names if _hangs_on_order(data, refused) else _shown
    assert compared(_carry_out(replayed(data), refused)) == compared(_carry_out(data, refused))
