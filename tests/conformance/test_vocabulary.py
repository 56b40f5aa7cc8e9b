"""Whatever a report prints as a word, not as an id, can be explained: from what the registries have."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

import pytest

from conformance import cli
from conformance import events as e
from conformance.cli import explain, vocabulary
from conformance.cli.app import _REPLAY_CODES
from conformance.reporters import wording
from scenarios.catalogue import STORIES, TIERS, scenarios_of
from scenarios.obligations import ANOMALIES, OBLIGATIONS
from scenarios.obligations.catalogue import CATALOGUE
from scenarios.obligations.groups import GROUPS
from scenarios.operation import SEMANTICS, Child
from scenarios.requirements import DRAFTS, REQUIREMENT_SETS
from scenarios.unrolling import walk
from scenarios.verdict import Outcome

SETS = {**REQUIREMENT_SETS, **DRAFTS}
WORDS = {
    "anomaly": [*ANOMALIES],
    "group": [*GROUPS],
    "verdict": [*get_args(Outcome)],
    "tier": [*TIERS],
    "requirement set": [*SETS],
    "service": [*SEMANTICS],
    "answer": ["reproduced", "fixed", "nothing violated", "different failure", "diverged", "stopped", "inconclusive"],
    "term": ["interruption", "fault", "scenario", "story", "seed", "case", "mutant"],
    "story": [*STORIES],
}


def children(name: str) -> list[Child]:
    """The children that a story's plan names itself and that have none of their own."""
    found = [one for one in STORIES[name].plan.operations() if isinstance(one, Child)]
    return [one for one in found if not any(isinstance(inner, Child) for inner in walk(one.root))]


def of_kind(kind: str, word: str) -> e.Explained:
    """The one meaning of this kind."""
    (found,) = (one for one in explain.explain(word) if one.kind == kind)
    return found


@pytest.mark.parametrize(("kind", "word"), [(kind, word) for kind, words in WORDS.items() for word in words])
def test_every_word_is_explained(kind: str, word: str) -> None:
    """Each once under its kind, with something to read in every section."""
    found = of_kind(kind, word)
    assert found.id == word
    assert found.sections
    assert all(found.sections.values())


@pytest.mark.parametrize("answer", get_args(e.Answer))
def test_every_answer_of_a_replay_is_explained_as_it_is_printed_and_as_it_is_written(answer: e.Answer) -> None:
    """With the exit code that it has: on the screen it is `different failure`, in JSON `different`."""
    printed = wording.replayed(e.Replayed(answer, "chain/undisturbed"))[0][0]
    assert of_kind("answer", answer) == of_kind("answer", printed)
    assert of_kind("answer", answer).sections["exit code"].startswith(str(int(_REPLAY_CODES[answer])))


@pytest.mark.parametrize(("wanted", "near"), [("amnesi", "amnesia"), ("inconclusiv", "inconclusive"), ("tuor", "tour")])
@pytest.mark.usefixtures("own_folder")
def test_a_slip_of_the_keyboard_gets_the_word_that_was_meant(wanted: str, near: str, capsys: Any) -> None:
    """And is wrong usage."""
    assert cli.main(["explain", wanted]) == 2
    assert f"did you mean {near}" in capsys.readouterr().err


@pytest.mark.parametrize("wanted", ["\N{SUPERSCRIPT TWO}", "1" * 5_000, "4"])
@pytest.mark.usefixtures("own_folder")
def test_numbers_that_are_no_exit_code_are_wrong_usage(wanted: str, capsys: Any) -> None:
    """Whatever they are written with, and however long."""
    assert cli.main(["explain", wanted]) == (0 if wanted == "4" else 2)
    assert "exit code" in "".join(capsys.readouterr())


@pytest.mark.usefixtures("own_folder")
def test_explain_alone_lists_the_words_by_kind(capsys: Any) -> None:
    """All but the stories, which `list` names."""
    assert cli.main(["explain", "--format", "plain"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for kind in WORDS.keys() - {"story"}:
        assert all(any(line.startswith(f"  {word}  ") for line in lines) for word in WORDS[kind]), kind


@pytest.mark.parametrize("name", ANOMALIES)
def test_an_anomaly_names_the_obligations_that_use_it(name: str) -> None:
    """Its meaning, and those and no others."""
    sections = of_kind("anomaly", name).sections
    assert sections["what it means"] == ANOMALIES[name]
    told = [line.partition(" ")[0] for line in sections["found by"].splitlines()]
    assert told == [id_ for id_, one in OBLIGATIONS.items() if name in one.anomalies]


@pytest.mark.parametrize(("word", "kinds"), [("stuck", ["anomaly", "fault"]), ("full", ["tier", "interruption"])])
@pytest.mark.parametrize("form", ["plain", "pretty"])
@pytest.mark.usefixtures("own_folder")
def test_a_word_of_two_meanings_is_told_with_both(word: str, kinds: list[str], form: str, capsys: Any) -> None:
    """One after the other, with a blank line between them."""
    assert cli.main(["explain", word, "--format", form]) == 0
    out = capsys.readouterr().out
    assert re.findall(r"^\((.*)\)$", out, re.MULTILINE) == kinds
    assert f"\n\n{word} · " in out


@pytest.mark.parametrize("name", GROUPS)
def test_a_group_names_its_obligations(name: str) -> None:
    """Judged or not, in small letters too."""
    told = [line.partition(" ")[0] for line in of_kind("group", name.lower()).sections["obligations"].splitlines()]
    assert told == [id_ for id_ in CATALOGUE if id_.startswith(f"{name}-")]


@pytest.mark.parametrize("name", ["tour", "chain"])
def test_a_story_is_told_with_its_plan_and_its_scenarios(name: str) -> None:
    """Every operation is a line of it."""
    sections = of_kind("story", name).sections
    assert sections["story"] == STORIES[name].story
    told = [line.split()[1] for line in sections["plan"].splitlines()]
    assert told == [one.id for one in STORIES[name].plan.operations()]
    assert sections["scenarios"].startswith(f"{sum(1 for _ in scenarios_of(name, workers=True))}; ")


@pytest.mark.parametrize(("name", "child"), [(name, one) for name in STORIES for one in children(name)])
def test_what_is_inside_a_child_is_told_too(name: str, child: Child) -> None:
    """A child is a run of its own, and its work is the story's."""
    told = [line.split()[1] for line in of_kind("story", name).sections["plan"].splitlines()]
    inside = [one.id for one in walk(child.root)]
    at = told.index(child.id) + 1
    assert told[at : at + len(inside)] == inside


@pytest.mark.parametrize("name", SETS)
def test_a_requirement_set_is_told_by_what_it_demands(name: str) -> None:
    """So many that decide and so many that do not; a draft is called one."""
    sections = of_kind("requirement set", name).sections
    numbers = [int(number) for number in re.findall(r"\d+", sections["demands"])]
    assert sum(numbers) == len(SETS[name].ids)
    assert sections["state"].startswith("a draft" if SETS[name].draft else "published")
    assert sections["digest"] == SETS[name].digest


@pytest.mark.repository
def test_services_are_told_as_the_contract_has_them() -> None:
    """One wording in both places."""
    text = (Path(cli.__file__).parents[2] / "docs" / "contract.md").read_text(encoding="utf-8")
    table = text.partition("## Services\n")[2].partition("\n## ")[0].partition("Each request")[0]
    assert dict(re.findall(r"^\| `([a-z]+)` \| ([^|]+) \|$", table, re.MULTILINE)) == vocabulary.SERVICES
