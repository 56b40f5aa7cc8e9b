"""For GitHub Actions: the plain report, annotations as workflow commands, and a Markdown step summary.

The syntax is that of "Workflow commands for GitHub Actions": `::error title=…::message`, with `%`, CR and LF escaped
everywhere and `:` and `,` in properties besides.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from conformance import events as e
from conformance.files import telling
from conformance.reporters import wording
from conformance.reporters.plain import Plain
from conformance.tally import Tally
from simkit.errors import SimkitError

if TYPE_CHECKING:
    from collections.abc import Sequence

#: GitHub shows no more than this many annotations of a kind for a step; what is above it is only in the log.
ANNOTATIONS_MAX = 10


class GitHub:
    def __init__(self, out: TextIO, err: TextIO) -> None:
        self._out, self._err = out, err
        self._plain = Plain(out, err)
        self._tally = Tally()
        self._annotations = 0

    def show(self, event: e.Event) -> None:
        first = self._tally.add(event)
        self._plain.show(event)
        if (command := annotation(event)) and first:
            self._annotate(command)
        if isinstance(event, e.CampaignEnded):
            self._summarise(event)

    def _annotate(self, command: str) -> None:
        self._annotations += 1
        if self._annotations <= ANNOTATIONS_MAX:
            self._out.write(command + "\n")
        elif self._annotations == ANNOTATIONS_MAX + 1:
            self._out.write("::notice::more findings than annotations: the rest is in the log\n")

    def _summarise(self, event: e.CampaignEnded) -> None:
        path = os.environ.get("GITHUB_STEP_SUMMARY")
        if not path:
            return
        try:
            with telling(Path(path)), Path(path).open("a", encoding="utf-8") as file:
                file.write(summary(self._tally, event))
        except SimkitError as error:
            self._err.write(f"{error}\n")

    def close(self) -> None:
        self._plain.close()


def annotation(event: e.Event) -> str | None:
    """The workflow command for an event, if it deserves one."""
    match event:
        case e.ViolationFound():
            level = "error" if event.claimed else "notice"
            text = "\n".join([event.sentence, *(f"{k}: {v}" for k, v in wording.facts(event)), *wording.replays(event)])
            return _command(level, wording.heading(event), text)
        case e.Trouble():
            return _command("error", event.problem.code, str(event.problem))
        case e.Checked(ok=False):
            return _command("error", event.name, event.detail)
        case e.Checked(skipped=True):
            return _command("warning", event.name, event.detail)
        case e.VerdictReached() if event.verdict.outcome in {"inconclusive", "error"}:
            level = "warning" if event.verdict.outcome == "inconclusive" else "error"
            return _command(level, f"{event.verdict.obligation} {event.verdict.outcome}", event.verdict.reason)
    return None


def _command(level: str, title: str, message: str) -> str:
    return f"::{level} title={_property(title)}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def summary(tally: Tally, event: e.CampaignEnded) -> str:
    """The step summary in Markdown."""
    lines = [f"### simkit: {wording.began(tally.began)}" if tally.began else "### simkit", ""]
    if tally.verdicts:
        lines += _table([wording.COLUMNS, ("---",) * 4, *(wording.cells(one) for one in wording.rows(tally))])
        lines += [line for left in wording.legend(tally)[1:] for line in (left, "")]
    for violation in tally.first.values():
        if violation.claimed:
            lines += [f"**{wording.heading(violation)}**: {violation.sentence}", ""]
            lines += ["```sh", *wording.replays(violation), "```", ""]
    lines += [*wording.repeats(tally), *wording.ended(event), ""]
    return "\n".join(lines)


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    return [*("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows), ""]
