"""The space-time table of a simulated run in the terms of scenarios: interruptions are faults, marked where they decide.

What a drawing of a run knows is tasks, processes and choices of the world. Here it learns what was done to the world on
purpose, which `World.fires` tells beside the trace as a note, and that the kit's channel to a worker carries messages.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Final

import attrs

from conformance.reduction import DETAIL, INTERRUPTION
from simkit.explanation import Explanation
from simkit.spacetime import Row, Table, as_text

#: Under the table: what its signs mean, as far as no heading says it.
LEGEND: Final = """\
  > decides · ! a fault, or a choice that is no default · ■ a change of a disk · X is killed, or the run fails
  ●──▶ a message, with a number where it is long on its way · ┬ ┴ a process starts, ends · ◇ a named point · ◆ a rule
  event: what `simkit replay CASE --until N` stops before"""
#: What strikes a process or a machine; it has a row of its own beside that of the interruption.
_STRIKES = ("kill@", "power@", "pause@")
#: Labels of the choices that keep an interruption, or how long or large it is.
_OF_SCENARIO = (INTERRUPTION, DETAIL)
_CONTROL = re.compile(r"wire (\S+)>(\S+) (\d+)")


def pictured(table: Table, why: Explanation) -> Table:
    """The table with rows for what they are, and marks on the interruptions that decide."""
    sites = [cause.site for cause in why.causes]
    keys = [
        key if label == INTERRUPTION else key.rpartition(".")[0] for label, key, _ in sites if label in _OF_SCENARIO
    ]
    labels = [row.text for row in table.rows if row.kind == "note"]
    deciding = {label for key in keys for label in _called(key, labels)}
    return attrs.evolve(table, rows=tuple(_rows(table.rows, deciding)))


def _called(key: str, labels: Sequence[str]) -> Sequence[str]:
    """The interruptions that struck under this name; of one whose crowd or operation was made small, the only one alike."""
    if exact := [one for one in labels if one == key or one.startswith(f"{key}+")]:
        return exact
    alike = [one for one in labels if one.partition("@")[0] == key.partition("@")[0]]
    return alike if len(alike) == 1 else []


def drawn(table: Table) -> str:
    """As text, with the numbers by which a replay is stopped, and what the signs mean."""
    return f"{as_text(table, with_events=True)}\n\n{LEGEND}\n"


def _rows(rows: Collection[Row], deciding: Collection[str]) -> Iterator[Row]:
    struck_ns: int | None = None  # when an interruption that decides struck something that is still to be told
    for row in rows:
        if row.kind == "note":
            decides = row.text in deciding
            struck_ns = row.at_ns if decides and row.text.startswith(_STRIKES) else struck_ns
            yield attrs.evolve(row, kind="fault", decides=decides)
        elif control := _CONTROL.fullmatch(row.text) if row.kind == "fault" else None:
            yield attrs.evolve(row, kind="send", text=f"control, {control[1]} to {control[2]}: {control[3]} bytes")
        elif row.kind in {"death", "fault", "pause"} and row.at_ns == struck_ns:
            struck_ns = None
            yield attrs.evolve(row, decides=True)
        else:
            yield row
