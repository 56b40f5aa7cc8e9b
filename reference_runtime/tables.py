"""Tables: what the store shows, as lines that people read. Pure: each takes an answer as its verb gives it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reference_runtime.model import Json

#: The most characters that are shown of one thing in a table of many columns.
CELL_MAX = 60
_TASKS = ("task", "state", "phase", "on", "approvals", "reason")
_OPERATIONS = ("id", "state", "tries", "nonce", "detail")
_ASKED = ("operation", "of", "state")


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A header and a line for each row, every column as wide as it has to be; a terminal may be shown all of it."""
    cells = [tuple(columns), *(tuple(map(printed, row)) for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(columns))]
    return ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in cells]


def printed(text: str) -> str:
    """A text as a terminal may be shown it, whatever some worker or receiver calls itself."""
    return text if text.isprintable() else ascii(text)[1:-1]


def tasks(found: Sequence[Json]) -> list[str]:
    """The tasks of an answer of `tasks`."""
    return _picked(_TASKS, found)


def status(task: str, standing: Json) -> list[str]:
    """How a task stands: it in a line, why and what to do where there is something to say, and all of its operations."""
    on = f", on {standing['on']}" if standing["on"] else ""
    lines = [f"{printed(task)}: {standing['state']}{printed(on)} ({standing['phase']})"]
    said = ("reason", "missing", "remedy")
    lines += [f"{name}: {printed(standing[name])}" for name in said if standing.get(name)]
    if standing["result"] is not None:
        lines.append(f"result: {printed(_cell(standing['result']))}")
    for columns, rows in ((_ASKED, standing["approvals"]), (_OPERATIONS, standing["operations"])):
        if rows:
            lines += ["", *_picked(columns, rows)]
    return lines


def journal(told: Mapping[str, Sequence[Json]]) -> list[str]:
    """A journal, part by part, each a table under its name; what is empty all over is left out."""
    lines: list[str] = []
    for name, rows in told.items():
        columns = [one for one in (rows[0] if rows else ()) if any(row[one] not in (None, "", "{}") for row in rows)]
        if columns:
            lines += [*([""] if lines else []), f"{name}:", *_picked(columns, rows)]
    return lines


def _picked(columns: Sequence[str], rows: Sequence[Json]) -> list[str]:
    return table([one.upper() for one in columns], [[_cut(_cell(row[one])) for one in columns] for row in rows])


def _cell(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "-"
    return "-" if value in (None, "") else str(value)


def _cut(text: str) -> str:
    return text if len(text) <= CELL_MAX else f"{text[: CELL_MAX - 1]}…"
