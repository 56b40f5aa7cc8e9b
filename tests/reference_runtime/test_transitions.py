"""Transitions: the table is the law, and the database enforces it."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from reference_runtime import Store
from reference_runtime.model import ACCEPTED, TRANSITIONS, Move, State, mermaid, sources, target
from reference_runtime.rows import Operation
from tests.runtime_rig import call, plan


def _in_state(store: Store, state: str) -> Operation:
    store.submit("t", plan(call("a")))
    store.db.execute("UPDATE operation SET state = ?", (state,))
    return store._operation("t.1", "a")


@pytest.mark.parametrize("state", get_args(State))
@pytest.mark.parametrize("move", get_args(Move))
def test_a_move_happens_exactly_where_the_table_lists_it(tmp_path, state, move):
    """Of every pair of state and move, the listed ones change the row and all others change nothing."""
    store = Store.open(str(tmp_path / "s.db"))
    op = _in_state(store, state)
    moved = store._move(op, move, op.generation, op.version)
    after = store._operation("t.1", "a")
    assert moved == ((state, move) in TRANSITIONS)
    assert after.state == (TRANSITIONS[state, move] if moved else state)
    assert after.version == op.version + moved


@pytest.mark.parametrize(("generation", "version"), [(1, 0), (0, 1), (7, 7)])
def test_a_stale_word_changes_nothing(tmp_path, generation, version):
    """A move under another generation or another version than the row's is refused, legal as it may be."""
    store = Store.open(str(tmp_path / "s.db"))
    op = _in_state(store, "dispatched")
    assert not store._move(op, "accept", generation, version, '{"nonce":"x"}')
    assert store._operation("t.1", "a") == op


def test_nothing_leaves_an_end():
    """Succeeded, failed, reconciled and skipped are ends; of an unresolved one only somebody's word is taken."""
    assert {state for state, _ in TRANSITIONS} == {"planned", "dispatched", "unknown", "unresolved"}
    assert {move for state, move in TRANSITIONS if state == "unresolved"} == {"notice", "disown"}
    assert set(TRANSITIONS.values()) >= ACCEPTED


def test_the_documented_diagram_is_the_table():
    """The page about the runtime shows exactly the transitions of the table."""
    page = Path(__file__).parents[2] / "docs" / "runtime.md"
    assert f"```mermaid\n{mermaid()}```\n" in page.read_text(encoding="utf-8")


def test_every_move_has_one_target():
    """Wherever a move is legal it leads to the same state, so that its target is a function of the move."""
    for move in get_args(Move):
        assert {TRANSITIONS[state, move] for state in sources(move)} == {target(move)}
