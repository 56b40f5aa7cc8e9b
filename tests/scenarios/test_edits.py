"""Histories that are right, edited: what leaves one right is let pass by every judge, and what makes it wrong is blamed."""

from __future__ import annotations

import zlib

import pytest

from scenarios.obligations import OBLIGATIONS
from scenarios.rules import judge_all
from tests.scenarios.edits import RIGHT, WRONG
from tests.scenarios.examples import Example, collected

PASSED = [one for one in collected() if one.anomaly is None and not one.but]
#: One history out of so many is tried with each edit; which ones hangs on their names, and on no others.
ONE_OF = 12
#: Where what an edit leaves out is how a harness says what these obligations ask of it: without a word it may well be blamed.
SAID_BY = {
    "statuses have no usage": {"BUD-8"},
    "statuses have no approvals": {"APR-3"},
    "every other status is lost on its way": {"APR-3"},
    "no status lists any operation": {"CAN-2", "CAN-6", "DUR-9", "EFF-8", "EFF-11"},
}
#: An edit that fits fewer histories than this shows nothing.
FITS_MIN = 3


def drawn(name: str) -> list[Example]:
    return [one for one in PASSED if zlib.crc32(f"{name}: {one.name}".encode()) % ONE_OF == 0]


@pytest.mark.parametrize("name", RIGHT)
def test_who_shows_less_or_names_it_otherwise_is_not_blamed(name: str) -> None:
    """A history that is right stays so."""
    edited = {example.name: RIGHT[name](example.history) for example in drawn(name)}
    assert len(edited) > FITS_MIN
    blamed = {
        title: {id_ for id_, one in judge_all(history).items() if one.violations} - SAID_BY.get(name, set())
        for title, history in edited.items()
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
