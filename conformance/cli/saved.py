"""What is known of a saved case without running it: what fails, of what it is, and the line that runs it again.

A case is of a target, which `simkit run` and `certify` save; of a test, which pytest saves and has to run again; or of a
program, which `simkit.search` found and whoever has the program replays.
"""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING

from conformance import events as e
from conformance import invocation

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from simkit.case import Case

#: Choices that are named at most.
_CHOICES_MAX = 12


def findings(case: Case) -> str:
    """Everything that was found in the run, what names it first; empty of a run that passed."""
    expect = case.expect or {}
    if kind := _own_kind(case):
        return f"the {kind} fails: {expect['anomaly']}" if expect.get("anomaly") else ""
    every = expect.get("all")
    if isinstance(every, list) and every:
        return ", ".join(map(str, every))
    return _headline(case)


def subject(case: Case) -> str:
    """Of what it is, with its mutant: a target, `pytest` and the test, or the program."""
    target = case.target
    words = [str(target.get("target") or target.get("name") or target.get("program") or ""), _test(case)]
    return " ".join(word for word in (*words, str(target.get("mutant") or "")) if word)


def seed(case: Case) -> str:
    """As it was asked for: that of a test may stand for a world with another one."""
    told = case.options.get("run", case.seed)
    return "" if told is None else str(told)


def again(case: Case) -> str:
    """The line that runs it again."""
    if test := _test(case):
        return shlex.join(["pytest", test, "--simkit-replay", case.id])
    if "program" in case.target:
        return "simkit.replay(case, program), in Python"
    return invocation.line("replay", case.id)


def explained(path: Path, case: Case) -> e.Explained:
    """What was found out when it was saved; nothing is run for it."""
    own = _own_kind(case)
    sections = dict(_of_test(case) if own else _of_target(path, case)) | {"again": again(case)}
    title = (findings(case) if own else _headline(case)) or "a run that passed"
    return e.Explained("case", case.id, title, {name: text for name, text in sections.items() if text})


def _of_target(path: Path, case: Case) -> Iterator[tuple[str, str]]:
    mutant = case.target.get("mutant")
    yield "shows", findings(case) or "nothing that it should not"
    yield (
        "target",
        f"{case.target.get('target', '?')}{f' with mutant {mutant}' if mutant else ''}, in the {case.world} world",
    )
    yield "run", f"{case.scenario.get('name', '?')}: {', '.join(_struck(case)) or 'no interruption'}"
    yield "decides", str(case.options.get("decides", ""))
    yield "shrunk", str(case.options.get("shrunk", ""))
    yield "space-time table", _table_beside(path)


def _of_test(case: Case) -> Iterator[tuple[str, str]]:
    """Its picture is not saved with it: a replay draws it, and tells why."""
    strategy = case.options.get("strategy")
    arguments = case.scenario.get("arguments")
    choices = [f"{label}/{key}#{nth} = {value}" for (label, key, nth), value in sorted(case.departures.items())]
    more = len(choices) - _CHOICES_MAX
    yield _own_kind(case), _test(case) or str(case.target.get("program", ""))
    yield "run", f"seed {seed(case)}{f', by strategy {strategy}' if strategy else ''}"
    yield "arguments", json.dumps(arguments, ensure_ascii=False) if arguments else ""
    yield (
        "faults and choices",
        "\n".join([*choices[:_CHOICES_MAX], *([f"… and {more} more"] if more > 0 else [])])
        or ("none: it fails by default" if case.options.get("by_default") else "none, beside the order of its tasks"),
    )
    if _test(case):
        yield "why", "the replay tells it, and draws the space-time table"


def _own_kind(case: Case) -> str:
    """What it is a case of, where that is no target."""
    return "test" if _test(case) else "program" if "program" in case.target else ""


def _test(case: Case) -> str:
    found = case.target.get("test")
    return found if isinstance(found, str) else ""


def _headline(case: Case) -> str:
    expect = case.expect or {}
    return " ".join(str(expect.get(key) or "") for key in ("obligation", "anomaly")).strip()


def _struck(case: Case) -> list[str]:
    """The interruptions of its scenario; what cannot be read is left out, a replay tells."""
    from scenarios.interruption import Interruption

    try:
        return [Interruption.from_json(one).label for one in case.scenario.get("interruptions", ())]
    except (KeyError, TypeError, ValueError, AttributeError):
        return []


def _table_beside(path: Path) -> str:
    try:
        return (path.with_suffix(".run") / "spacetime.txt").read_text(encoding="utf-8").rstrip()
    except (OSError, UnicodeDecodeError):
        return ""
