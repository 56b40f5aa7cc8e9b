"""The report for people at a terminal: colours and tables by rich, the words of `wording`; colour never says anything alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from rich.console import Console
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from conformance import events as e
from conformance.reporters import plain, wording
from conformance.reporters import spacetime as st
from conformance.reporters.progress import shower
from conformance.tally import Tally

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

#: A lane needs this many columns; with less to share, the table becomes a list.
_LANE_WIDTH_MIN = 14
_ANSWER_STYLES = {
    "reproduced": "red",
    "different": "red",
    "diverged": "yellow",
    "fixed": "green",
    "clean": "green",
    "stopped": "cyan",
    "inconclusive": "yellow",
}


class _Console(Console):
    """Rich ends the process when a reader goes away; a campaign has more to do than to be read."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


class Pretty:
    def __init__(self, out: TextIO, err: TextIO) -> None:
        self._console = _Console(file=out, highlight=False, markup=False, emoji=False)
        self._errors = _Console(file=err, highlight=False, markup=False, emoji=False)
        self._progress = shower(err)
        self._tally = Tally()
        self._observed = False
        self._listing = ""
        self._told = False  # something was explained already

    def show(self, event: e.Event) -> None:
        if isinstance(event, e.Progress | e.Installing):
            self._progress.show(event)
            return
        first = self._tally.add(event)
        if not first or isinstance(event, wording.SILENT):
            return
        self._progress.pause()
        match event:
            case e.CampaignBegan():
                self._errors.print(Text(wording.began(event), "bold"), soft_wrap=True)
            case e.Trouble():
                self._trouble(event)
            case e.ViolationFound():
                self._failure(event)
            case e.Certified():
                self._table()
                self._console.print()
                self._labelled(wording.certified(event))
            case e.Replayed():
                self._replayed(event)
            case e.MutantJudged():
                self._console.print(
                    Text(plain.mutant(event), "" if event.outcome == "caught" else "bold red"), soft_wrap=True
                )
            case e.Checked():
                self._checked(event)
            case e.Listed():
                self._listed(event)
            case e.ObligationListed():
                self._obligation(event)
            case e.Explained():
                self._explained(event)
            case e.RunShown():
                self._console.print(Text(f"\n{wording.run(event.scenario, event.seed)}\n", "bold"))
                self._console.print(_spacetime(event.table, self._console.width))
            case e.Noted():
                self._console.print(Text(event.text))
            case e.CampaignEnded():
                self._table()
                self._observations()
                self._ended(event)

    def _table(self) -> None:
        """The verdict table, once: with its certificate, or at the end of a command that makes none."""
        if self._tally.verdicts:
            self._console.print()
            self._console.print(_verdicts(self._tally))
            self._console.print()
            for line in wording.legend(self._tally):
                self._console.print(Text(line, "dim"))
            self._tally.verdicts.clear()
            self._observations()

    def _observations(self) -> None:
        """What was broken though nobody claims it, once: under the table, or at the end where there is none."""
        if not self._observed and (lines := wording.observations(self._tally)):
            self._observed = True
            self._console.print()
            for line in lines:
                self._whole(line)

    def _failure(self, event: e.ViolationFound) -> None:
        print_ = self._console.print
        if not event.claimed:
            return
        before = self._tally.before(event)
        if lines := wording.also(event, before):
            print_()
            for n, line in enumerate(lines):
                self._whole(line, "" if n else "bold red")
            return
        print_()
        print_(Rule(Text(f"FAIL {wording.heading(event)}", "bold red"), align="left", style="red"))
        print_(Text(event.sentence))
        if event.table:
            print_()
            print_(_spacetime(event.table, self._console.width))
        print_()
        self._labelled(wording.facts(event))
        print_()
        for line in wording.replays(event):
            self._whole(line, "bold")

    def _replayed(self, event: e.Replayed) -> None:
        (answer, meaning), *rest = wording.replayed(event)
        self._console.print(Text.assemble((answer, f"bold {_ANSWER_STYLES[event.answer]}"), ": ", meaning))
        self._labelled(rest)

    def _checked(self, event: e.Checked) -> None:
        state, *more = plain.checked(event)
        self._console.print(Text(state, "bold yellow" if event.skipped else "" if event.ok else "bold red"))
        for line in more:
            self._console.print(Text(line))

    def _listed(self, event: e.Listed) -> None:
        if event.kind != self._listing:
            if self._listing:
                self._console.print()
            self._console.print(Text(event.kind, "bold"))
        self._listing = event.kind
        for line in plain.listed(event):
            self._whole(line)

    def _obligation(self, event: e.ObligationListed) -> None:
        if self._listing != "obligations":
            if self._listing:
                self._console.print()
            for line in plain.obligations_heading():
                self._whole(line, "bold")
        self._listing = "obligations"
        self._whole(plain.obligation(event), "dim" if event.judge is None else "")

    def _explained(self, event: e.Explained) -> None:
        if self._told:
            self._console.print()
        self._told = True
        self._console.print(Text.assemble((event.id, "bold"), f" · {event.title}"))
        self._console.print(Text(f"({event.kind})", "dim"))
        for title, text in event.sections.items():
            self._console.print()
            self._console.print(Text(title, "bold"))
            self._console.print(Padding(Text(text), (0, 0, 0, 2)))

    def _ended(self, event: e.CampaignEnded) -> None:
        if self._tally.began:
            self._console.print()
        *lines, last = [*wording.repeats(self._tally), *wording.ended(event)]
        for line in lines:
            self._console.print(Text(line))
        self._console.print(Text(last, "bold green" if event.exit_code == 0 else "bold"), soft_wrap=True)

    def _trouble(self, event: e.Trouble) -> None:
        head, *rest = str(event.problem).split("\n")
        self._errors.print(Text(head, "bold red"), soft_wrap=True)
        for line in rest:
            self._errors.print(Text(line), soft_wrap=True)

    def _labelled(self, rows: Sequence[tuple[str, str]]) -> None:
        grid = Table.grid(padding=(0, 2))
        grid.add_column(style="bold", no_wrap=True)
        grid.add_column(overflow="fold")
        for label, text in rows:
            grid.add_row(label, Text(text))
        self._console.print(Padding(grid, (0, 0, 0, 2)))

    def _whole(self, line: str, style: str = "") -> None:
        """A line to be copied: never wrapped, never cut."""
        self._console.print(Text(line, style), soft_wrap=True)

    def close(self) -> None:
        self._progress.pause()


def _verdicts(tally: Tally) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in wording.COLUMNS:
        table.add_column(title, overflow="fold", justify="right" if title == "exercised" else "left")
    for event in wording.rows(tally):
        name, outcome, exercised, remark = wording.cells(event)
        table.add_row(name, Text(outcome, wording.style(event.verdict.outcome)), exercised, remark)
    return table


def _spacetime(rows: Sequence[e.Row], width: int) -> RenderableType:
    lanes = st.lanes(rows)
    if width < 16 + _LANE_WIDTH_MIN * len(lanes):
        return Text("\n".join(plain.spacetime(rows)))
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 1))
    table.add_column("")
    table.add_column("time", justify="right", no_wrap=True, style="dim")
    for lane in lanes:
        table.add_column(lane, ratio=1, overflow="fold")
    for row in rows:
        if not row.lane:
            table.add_row("", "", Text(row.text, "dim"))
            continue
        cells = [Text(row.text, "bold" if row.evidence else "") if lane == row.lane else "" for lane in lanes]
        table.add_row(Text(">" if row.evidence else ""), wording.time(row.at_ns), *cells)
    return table
