"""Histories that are right, edited: what leaves one right is let pass by every judge, and what makes it wrong is blamed."""

from __future__ import annotations

import random

import pytest

from scenarios.obligations import OBLIGATIONS
from scenarios.rules import judge_all
from tests.scenarios.edits import RIGHT, WRONG
from tests.scenarios.examples import Example, collected

PASSED = [one for one in collected() if one.anomaly is None and not one.but]
#: So many histories are tried of each edit, always the same ones.
TRIED = 60
#: An edit that fits fewer histories than this shows nothing.
FITS_MIN = 3


def drawn(name: str) -> list[Example]:
    return random.Random(name).sample(PASSED, TRIED)


@pytest.mark.parametrize("name", RIGHT)
def test_who_shows_less_or_names_it_otherwise_is_not_blamed(name: str) -> None:
    """A history that is right stays so."""
    edited = {example.name: RIGHT[name](example.history) for example in drawn(name)}
    blamed = {
        title: [id_ for id_, one in judge_all(history).items() if one.violations] for title, history in edited.items()
    }
    assert {title: ids for title, ids in blamed.items() if ids} == {}


@pytest.mark.parametrize("name", WRONG)
def test_what_was_made_wrong_is_blamed(name: str) -> None:
    """Wherever an edit fits, the obligation that it breaks is blamed, and it fits often enough to mean something."""
    breaks, edit = WRONG[name]
    edited = {example.name: edit(example.history) for example in PASSED}
    wrong = {title: history for title, history in edited.items() if history is not None}
    assert len(wrong) >= FITS_MIN
    assert [title for title, history in wrong.items() if not OBLIGATIONS[breaks].judge(history).violations] == []
