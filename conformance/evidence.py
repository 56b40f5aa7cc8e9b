"""What is kept of a run that somebody will want to look at: it violated something, could not be judged, was slow or stuck.

A folder with `history.json` (everything an observer saw), `table.txt` (the same as a space-time table), the error output
of every unit as `<unit>-<incarnation>.log`, and `by-hand.txt`, how to start the units without the kit. All of it bounded.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from conformance.reporters import plain, spacetime

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from scenarios.history import History

#: Of a log its end is kept, and of a run its first logs.
LOG_BYTES_MAX = 256 * 1024
LOGS_MAX = 20
HISTORY_BYTES_MAX = 8 * 1024 * 1024
ROWS_MAX = 20_000
BY_HAND = "by-hand.txt"


def logs(folder: Path) -> dict[str, bytes]:
    """The logs in the folder of a run on real processes, and how its units were started."""
    names = sorted(path for path in folder.glob("*.log") if path.is_file())[:LOGS_MAX]
    return {path.name: _end(path) for path in (*names, folder / BY_HAND) if path.is_file()}


def files(history: History | None, logs: Mapping[str, bytes]) -> dict[str, bytes]:
    """Everything to keep of one run, by file name."""
    if history is None or not history.events:
        return dict(logs)
    text = json.dumps(history.to_json(), indent=1, ensure_ascii=False).encode()
    kept = {"history.json": text} if len(text) <= HISTORY_BYTES_MAX else {}
    table = plain.spacetime(spacetime.whole(history)[:ROWS_MAX])
    return {**kept, "table.txt": "".join(f"{line}\n" for line in table).encode(), **logs}


def _end(path: Path) -> bytes:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - LOG_BYTES_MAX))
        return file.read(LOG_BYTES_MAX)
