"""What `simkit cases` and `simkit explain` say of cases that are none of a target: those of a test, and of a program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from conformance import cli
from simkit.case import Case

STORE = Path(".simkit/cases")
WHAT = "AssertionError at test_counter.py:test_counter"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def of_a_test(**fields: Any) -> Case:
    """As the plugin of pytest saves it."""
    case = Case(
        world="simulated",
        target={"name": "pytest", "test": "test_counter.py::test_counter[a b]"},
        scenario={"arguments": {"size": 3}},
        seed=7,
        options={"steps": 9, "strategy": "random", "run": 4, **fields.pop("options", {})},
        expect={"obligation": "the test passes", "anomaly": WHAT},
        **fields,
    )
    case.save(STORE)
    return case


def explained(case: Case, capsys: Any) -> str:
    assert cli.main(["explain", case.id]) == 0
    return str(capsys.readouterr().out)


def test_the_case_of_a_test_says_that_it_fails_and_how_to_see_it(capsys: Any) -> None:
    """With what it fails, which test it is, what was drawn, and the line that pytest runs."""
    case = of_a_test(departures={("load", "slow", 0): 1})
    out = explained(case, capsys)
    assert out.startswith(f"{case.id} · the test fails: {WHAT}\n(case)\n")
    assert "\ntest\n  test_counter.py::test_counter[a b]\n" in out
    assert "\nrun\n  seed 4, by strategy random\n" in out
    assert '\narguments\n  {"size": 3}\n' in out
    assert "\nfaults and choices\n  load/slow#0 = 1\n" in out
    assert f"\nagain\n  pytest 'test_counter.py::test_counter[a b]' --simkit-replay {case.id}\n" in out
    assert not any(word in out for word in ("passes", "nothing that it should not", "?", "simkit replay"))


def test_many_choices_are_counted(capsys: Any) -> None:
    """Nobody reads hundreds of them; of a mistake that needs none this is said."""
    out = explained(of_a_test(departures={("load", "slow", nth): 1 for nth in range(40)}), capsys)
    assert out.count("load/slow#") == 12
    assert "… and 28 more" in out
    assert "\nfaults and choices\n  none: it fails by default\n" in explained(
        of_a_test(options={"by_default": True}), capsys
    )


def test_the_case_of_a_test_is_listed_as_a_failure(capsys: Any) -> None:
    """With the test's name, and the seed that pytest told."""
    case = of_a_test()
    assert cli.main(["cases"]) == 0
    assert capsys.readouterr().out == (
        f"cases\n  {case.id}  the test fails: {WHAT} · target pytest test_counter.py::test_counter[a b]"
        " · world simulated · seed 4\n"
    )


def test_the_case_of_a_program_names_it(capsys: Any) -> None:
    """`simkit.search` found it; who has the program replays it."""
    case = Case(
        world="simulated",
        target={"program": "flips:flip"},
        scenario={},
        seed=2,
        options={"strategy": "random", "search_seed": 0},
        expect={"obligation": "program", "anomaly": "ValueError"},
    )
    case.save(STORE)
    out = explained(case, capsys)
    assert out.startswith(f"{case.id} · the program fails: ValueError\n")
    assert "\nprogram\n  flips:flip\n" in out
    assert "\nagain\n  simkit.replay(case, program), in Python\n" in out
    assert cli.main(["cases"]) == 0
    assert "the program fails: ValueError · target flips:flip · " in capsys.readouterr().out
