"""Whatever a report prints as a word, not as an id, can be explained: from what the registries have."""

from __future__ import annotations

import re
from typing import Any

import pytest

from conformance import cli
from conformance import events as e
from conformance.cli import explain
from scenarios.obligations import ANOMALIES, OBLIGATIONS


def of_kind(kind: str, word: str) -> e.Explained:
    """The one meaning of this kind."""
    (found,) = (one for one in explain.explain(word) if one.kind == kind)
    return found


@pytest.mark.parametrize("name", ANOMALIES)
def test_an_anomaly_names_the_obligations_that_use_it(name: str) -> None:
    """Its meaning, and those and no others."""
    sections = of_kind("anomaly", name).sections
    assert sections["what it means"] == ANOMALIES[name]
    told = [line.partition(" ")[0] for line in sections["found by"].splitlines()]
    assert told == [id_ for id_, one in OBLIGATIONS.items() if name in one.anomalies]


@pytest.mark.parametrize(("word", "kinds"), [("stuck", ["anomaly", "fault"])])
@pytest.mark.parametrize("form", ["plain", "pretty"])
@pytest.mark.usefixtures("own_folder")
def test_a_word_of_two_meanings_is_told_with_both(word: str, kinds: list[str], form: str, capsys: Any) -> None:
    """One after the other, with a blank line between them."""
    assert cli.main(["explain", word, "--format", form]) == 0
    out = capsys.readouterr().out
    assert re.findall(r"^\((.*)\)$", out, re.MULTILINE) == kinds
    assert f"\n\n{word} · " in out
