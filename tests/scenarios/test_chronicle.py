"""What judges read of a journal: whose rows they are, which ways there are, and what is in nobody's words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reference_runtime.model import TRANSITIONS
from scenarios.bodies import Invocation, Journal, Transition, journal_of
from scenarios.chronicle import LEGAL, STATES, by_leaf, chains, deeds, is_own, leaf_of
from scenarios.index import look
from scenarios.plan import Child
from tests.scenarios.build import Story, leaf, plan


def test_the_ways_are_those_of_the_reference_runtime() -> None:
    """Whatever moves an operation there; but for a person's word that it never happened, which no scenario gives."""
    assert {(state, to) for (state, move), to in TRANSITIONS.items() if move != "disown"} == LEGAL


@pytest.mark.repository
def test_the_ways_are_told_in_the_contract() -> None:
    """Each of them, and no other."""
    page = (Path(__file__).parents[2] / "docs/contract.md").read_text(encoding="utf-8")
    table = page.partition("| `from` | `to` |\n|---|---|\n")[2].partition("\n\n")[0]
    rows = [re.findall(r"`(\w+)`", row) for row in table.splitlines()]
    assert {(state, to) for state, *ways in rows for to in ways} == LEGAL
    assert {state for way in LEGAL for state in way} == STATES


def test_what_a_harness_made_counts_as_the_plans() -> None:
    """Under the id that services are told."""
    rows = [Invocation(1, "c"), Invocation(2, "d"), Invocation(3, "c~2")]
    assert by_leaf(rows) == {"c": [rows[0], rows[2]], "d": [rows[1]]}
    assert [leaf_of("a~sweep"), leaf_of("a")] == ["a", "a"]


def test_chains_go_by_their_numbers_and_leave_out_what_is_not_understood() -> None:
    """Each operation by itself, whole or not at all."""
    lost, sent = Transition(5, "a", "dispatched", "unknown"), Transition(2, "a", "planned", "dispatched")
    odd = [Transition(3, "b", "planned", "queued"), Transition(4, "b", "queued", "dispatched")]
    assert chains(Journal((lost, sent, *odd))) == {"a": (sent, lost)}


def test_a_journal_tells_which_lists_it_keeps() -> None:
    """An empty list is one, what is no list is none, and which there are makes no difference to what they hold."""
    kept = journal_of({"transitions": [], "audit": [{"sequence": 1}], "rejected": 5})
    assert kept.tells == {"transitions", "audit"}
    assert journal_of({"transitions": []}) == journal_of(None)


def test_deeds_are_the_runs_own_requests() -> None:
    """Not its questions, not what it asked a desk, and not what its children sent."""
    made = plan("a ledger", "k approve b", "b registry a", Child("kid", leaf("x ledger")))
    story = Story(made).up().start().call("a").decide("k").desk("k").call("b").look_up("b", "found").call("kid/x")
    facts = look(story.history())
    everything = deeds(facts, len(story.events))
    assert {op: len(requests) for op, requests in everything.items()} == {"a": 1, "b": 1}
    assert deeds(facts, everything["a"][0].at) == {}
    assert not is_own("kid/x")
