"""The whole catalogue and the reported faults as data: complete, in order, and at one with the judges."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from scenarios.faults import FAULTS, learnt_by
from scenarios.obligations import OBLIGATIONS
from scenarios.obligations.catalogue import CATALOGUE
from scenarios.obligations.groups import GROUPS, place

#: How many promises each group has.
SIZES = {
    "DUR": 14, "JRN": 9, "OWN": 10, "EFF": 12, "RTY": 6, "CMP": 5, "SCH": 12, "BUD": 8, "DLN": 3, "CAN": 8, "SIG": 6,
    "APR": 7, "ART": 6, "CPL": 4, "STA": 5, "VER": 5, "CHI": 3,
}  # fmt: skip


def test_the_catalogue_has_every_number_of_every_group_in_order() -> None:
    """No promise is missing, and none is there twice."""
    assert list(CATALOGUE) == [f"{group}-{number}" for group in GROUPS for number in range(1, SIZES[group] + 1)]


@pytest.mark.parametrize("one", CATALOGUE.values(), ids=lambda one: one.id)
def test_a_promise_is_one_sentence(one: object) -> None:
    """It begins in upper case and ends with a full stop, and has no other."""
    promise = CATALOGUE[one.id].promise  # type: ignore[attr-defined]
    assert re.fullmatch(r"[A-Z][^.]*[^. ]\.", promise)


def test_ids_sort_by_group_and_number() -> None:
    """Ten comes after nine, and what is no id has no place."""
    assert sorted(["SCH-1", "OWN-10", "OWN-9", "DUR-2"], key=place) == ["DUR-2", "OWN-9", "OWN-10", "SCH-1"]
    with pytest.raises(ValueError, match="XYZ"):
        place("XYZ-1")


@pytest.mark.parametrize("id_", OBLIGATIONS)
def test_a_judge_is_of_a_promise_of_the_catalogue(id_: str) -> None:
    """With the catalogue's level, kind and profile, learnt from the faults that name it."""
    one, promise = OBLIGATIONS[id_], CATALOGUE[id_]
    assert (one.level, one.kind, one.profile) == (promise.level, promise.kind, promise.profile)
    assert sorted(one.learnt_from) == list(learnt_by(id_))


def test_every_fault_is_there_with_obligations_that_exist() -> None:
    """F01 to F57, each told in a sentence of its own and caught by at least one promise."""
    assert list(FAULTS) == [f"F{number:02}" for number in range(1, 58)]
    assert len({one.kind for one in FAULTS.values()}) == len(FAULTS)
    for one in FAULTS.values():
        assert one.obligations
        assert set(one.obligations) <= set(CATALOGUE)
        assert re.fullmatch(r"[A-Z].*\.", one.kind)


@pytest.mark.repository
def test_the_page_of_reported_faults_is_current() -> None:
    """docs/reported-faults.md is what the registries say; `python docs/generate.py` writes it anew."""
    docs = Path(__file__).parents[2] / "docs"
    generate = runpy.run_path(str(docs / "generate.py"))
    page = (docs / "reported-faults.md").read_text(encoding="utf-8")
    assert generate["reported_page"]() == page
    assert [f"| {number} |" in page for number in FAULTS] == [True] * len(FAULTS)
