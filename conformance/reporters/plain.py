"""The plain report: text without colours or boxes, the same on every terminal, in a file and in a log."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from conformance import events as e
from conformance.reporters import wording
from conformance.reporters.progress import shower
from conformance.tally import Tally

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Plain:
    def __init__(self, out: TextIO, err: TextIO) -> None:
        self._out, self._err = out, err
        self._progress = shower(err)
        self._tally = Tally()
        self._observed = False
        self._listing: tuple[str, ...] = ()
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
                self._err.write(wording.began(event) + "\n")
            case e.ViolationFound():
                if event.claimed:
                    self._say(failure(event, self._tally.before(event)))
            case e.RunShown():
                self._say(shown(event))
            case e.Noted():
                self._say([event.text])
            case e.Trouble():
                self._err.write(f"{event.problem}\n")
            case e.Certified():
                self._table()
                self._say(["", *labelled(wording.certified(event))])
            case e.Replayed():
                self._say(labelled(wording.replayed(event)))
            case e.MutantJudged():
                self._say([mutant(event)])
            case e.Checked():
                self._say(checked(event))
            case e.Listed():
                self._say(self._listed(event))
            case e.ObligationListed():
                self._say(self._obligation(event))
            case e.Explained():
                self._say([*([""] if self._told else []), *explained(event)])
                self._told = True
            case e.CampaignEnded():
                self._table()
                self._observations()
                self._say(self._ended(event))

    def _table(self) -> None:
        """The verdict table, once: with its certificate, or at the end of a command that makes none."""
        if self._tally.verdicts:
            self._say(["", *table(self._tally), "", *wording.legend(self._tally)])
            self._tally.verdicts.clear()
            self._observations()

    def _observations(self) -> None:
        """What was broken though nobody claims it, once: under the table, or at the end where there is none."""
        if not self._observed and (lines := wording.observations(self._tally)):
            self._observed = True
            self._say(["", *lines])

    def _ended(self, event: e.CampaignEnded) -> list[str]:
        lines = wording.repeats(self._tally)
        return [*([""] if self._tally.began else []), *lines, *wording.ended(event)]

    def _listed(self, event: e.Listed) -> list[str]:
        heading = [] if self._listing == (event.kind,) else [*([""] if self._listing else []), event.kind]
        self._listing = (event.kind,)
        return [*heading, *listed(event)]

    def _obligation(self, event: e.ObligationListed) -> list[str]:
        heading = (
            [] if self._listing == ("obligations",) else [*([""] if self._listing else []), *obligations_heading()]
        )
        self._listing = ("obligations",)
        return [*heading, obligation(event)]

    def _say(self, lines: Iterable[str]) -> None:
        self._out.write("".join(f"{line}\n" for line in lines))
        self._out.flush()

    def close(self) -> None:
        self._progress.pause()


def failure(event: e.ViolationFound, before: e.ViolationFound | None = None) -> list[str]:
    """The failure block of a claimed promise. `before` was told of the same run: its table is not shown again."""
    if lines := wording.also(event, before):
        return ["", *lines]
    table_lines = spacetime(event.table)
    return [
        "",
        f"FAIL {wording.heading(event)}",
        event.sentence,
        *(["", *table_lines] if table_lines else []),
        "",
        *labelled(wording.facts(event)),
        "",
        *wording.replays(event),
    ]


def shown(event: e.RunShown) -> list[str]:
    """A whole run."""
    return ["", wording.run(event.scenario, event.seed), "", *spacetime(event.table)]


def spacetime(rows: Sequence[e.Row]) -> list[str]:
    """The space-time table as one line a row; `>` marks the proof."""
    times = [wording.time(row.at_ns) if row.lane else "" for row in rows]
    time_width = max(map(len, times), default=0)
    lane_width = max((len(row.lane) for row in rows), default=0)
    return [
        f"  {'>' if row.evidence else ' '} {at:>{time_width}}  {row.lane:<{lane_width}}  {row.text}".rstrip()
        for row, at in zip(rows, times, strict=True)
    ]


def table(tally: Tally) -> list[str]:
    """The verdict table in aligned columns."""
    rows = [wording.COLUMNS, *(wording.cells(event) for event in wording.rows(tally))]
    widths = [max(len(row[column]) for row in rows) for column in range(len(wording.COLUMNS))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def labelled(rows: Sequence[tuple[str, str]]) -> list[str]:
    """Lines of a label and its text, texts aligned."""
    width = max((len(label) for label, _ in rows), default=0)
    return [f"  {label:<{width}}  {text}" for label, text in rows]


def checked(event: e.Checked) -> list[str]:
    state = "skip" if event.skipped else "ok" if event.ok else "FAIL"
    line = f"{state:<4}  {event.name}" + (f": {event.detail}" if event.detail else "")
    return [line, *([f"      hint: {event.hint}"] if event.hint and (event.skipped or not event.ok) else [])]


#: Columns of the table of obligations but for the last one, the promise.
_OBLIGATION_WIDTHS = (6, 6, 8, 9, 8, 7)


def obligations_heading() -> list[str]:
    """What stands above the table of obligations."""
    note = f"obligations ({wording.UNJUDGED})"
    return [note, _columns(wording.OBLIGATION_COLUMNS, _OBLIGATION_WIDTHS)]


def obligation(event: e.ObligationListed) -> str:
    """One row of that table."""
    return _columns(wording.obligation(event), _OBLIGATION_WIDTHS)


def _columns(cells: Sequence[str], widths: Sequence[int]) -> str:
    *aligned, last = cells
    return "  ".join(["", *(cell.ljust(width) for cell, width in zip(aligned, widths, strict=True)), last])


#: Columns of a mutant's name, its obligation and what became of it; wider names push the rest to the right.
_MUTANT_WIDTHS = (32, 6, 17)


def mutant(event: e.MutantJudged) -> str:
    """One row of the matrix, aligned with the others though it is printed before they are known."""
    return _columns(wording.mutant(event), _MUTANT_WIDTHS)


def listed(event: e.Listed) -> list[str]:
    fields = "".join(f" · {name} {value}" for name, value in event.fields.items() if value)
    return [f"  {event.id}  {event.title}{fields}".rstrip()]


def explained(event: e.Explained) -> list[str]:
    lines = [f"{event.id} · {event.title}", f"({event.kind})"]
    for title, text in event.sections.items():
        lines += ["", title, *(f"  {line}" for line in text.splitlines())]
    return lines
