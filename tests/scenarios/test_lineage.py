"""Lineage: where each answer went."""

from __future__ import annotations

from scenarios.index import look
from scenarios.lineage import fork, uses
from tests.scenarios.build import Story, plan

CHAIN = plan("a reader", "b ledger a", "c ledger b")


def test_only_the_used_answer_has_uses() -> None:
    """An answer nobody handed on or showed has none, and forks nothing."""
    facts = look(Story(CHAIN).up().start().call("a").crash().call("a").call("b").done().history())
    assert [(use.nonce, use.where) for use in uses(facts, "a")] == [
        ("a2", "handed on by 'b'"),
        ("a2", "shown as accepted"),
    ]
    assert fork(facts, "a") is None


def test_a_fork_names_both_uses() -> None:
    """Two answers of one operation in use are a fork, told by the first use of each."""
    story = Story(CHAIN).up().start().call("a").call("a").call("b", carries={"a": "a1"}).done()
    split = fork(look(story.history()), "a")
    assert split is not None
    assert [(use.nonce, use.by) for use in split] == [("a1", "request"), ("a2", "status")]


def test_facts_are_derived_once() -> None:
    """All judges of one history share its facts; another history gets its own."""
    history = Story(CHAIN).up().history()
    assert look(history) is look(history)
    other = Story(CHAIN).up().start().history()
    assert len(look(other).asks) == 1
    assert look(history).asks == ()
