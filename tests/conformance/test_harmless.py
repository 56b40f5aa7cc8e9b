"""What an adapter, a target or a file says is told on a screen, and does nothing to it."""

from __future__ import annotations

import io
import json
from typing import get_args

import attrs
import pytest

from conformance import events as e
from conformance import reporters
from conformance.reporters.progress import shower
from simkit.errors import ExitCode, Problem
from tests.report_samples import verdicts, violation

#: Clears the screen, sets the title, rings, turns the writing round, and goes red by the escape that is one character.
ROGUE = "\x1b[2J\x1b]0;owned\x07\r\u202e\x9b31m\x00"
PLAIN = r"\x1b[2J\x1b]0;owned\x07\r\u202e\x9b31m\x00"


def rogue_events() -> tuple[e.Event, ...]:
    """Foreign text in every kind of place: in problems, verdicts, tables, mappings."""
    return (
        e.CampaignBegan(ROGUE, "run", "process", options={"config": ROGUE}),
        e.Progress(1, 2, ROGUE),
        e.Trouble(Problem("start-refused", ROGUE, ROGUE, ROGUE, ROGUE, ExitCode.TARGET)),
        e.Noted(ROGUE),
        e.Listed("cases", ROGUE, ROGUE, {ROGUE: ROGUE}),
        e.Explained("case", ROGUE, ROGUE, {ROGUE: ROGUE}),
        e.RunShown(ROGUE, (e.Row(1, ROGUE, ROGUE, evidence=True),)),
        e.Checked(ROGUE, ok=False, detail=ROGUE, hint=ROGUE),
        violation(sentence=ROGUE, table=(e.Row(1, "kit", ROGUE), e.Row(2, ROGUE, "asks")), where=ROGUE),
        *(attrs.evolve(one, verdict=attrs.evolve(one.verdict, reason=ROGUE)) for one in verdicts()),
        e.Certified(ROGUE, "0", ROGUE, (ROGUE,), {ROGUE: ROGUE}),
        e.CampaignEnded({"runs": 1}, 1.0, 1.0, ExitCode.TARGET, ROGUE),
    )


@pytest.mark.parametrize("kind", get_args(reporters.Format))
def test_foreign_text_is_harmless_in_every_format(kind: reporters.Format, monkeypatch: pytest.MonkeyPatch) -> None:
    """On both streams nothing but what can be printed, and it is still seen what was said."""
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.setenv("COLUMNS", "400")
    out, err = io.StringIO(), io.StringIO()
    reporter = reporters.make(kind, out, err)
    for event in rogue_events():
        reporter.show(event)
    reporter.close()
    told = out.getvalue() + err.getvalue()
    assert {char for char in told if not char.isprintable()} == {"\n"}
    if kind == "json":
        said = [json.loads(line) for line in out.getvalue().splitlines()]
        assert said == [json.loads(json.dumps(e.to_json(one))) for one in rogue_events() if type(one) is not e.Progress]
    else:
        assert told.count(PLAIN) > len(rogue_events())


def test_a_problem_that_is_told_anywhere_is_harmless() -> None:
    """Also where no report is: before a session, in a test's failure."""
    assert str(Problem("code", ROGUE, "here\nthere")) == f"error[code]: {PLAIN}\n  where:    here\nthere"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_brackets_in_news_are_no_markup_of_the_bar() -> None:
    """What an installer says in brackets is shown; a closing one is no error."""
    stream = Terminal()
    live = shower(stream, {"TERM": "xterm"})
    live.show(e.Installing("[notice] building x[/y]"))
    live.pause()
    assert "[notice] building x[/y]" in stream.getvalue()
