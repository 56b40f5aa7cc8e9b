"""JSON lines on standard output, one event a line, in the schema that ships with the kit. Progress goes to standard error."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TextIO

from conformance.events import Installing, Progress, Trouble, to_json
from conformance.reporters.progress import shower

if TYPE_CHECKING:
    from conformance.events import Event


class JsonLines:
    def __init__(self, out: TextIO, err: TextIO) -> None:
        self._out, self._err = out, err
        self._progress = shower(err)

    def show(self, event: Event) -> None:
        if isinstance(event, Progress | Installing):
            self._progress.show(event)
            return
        self._progress.pause()
        readable = (self._out.encoding or "utf-8").lower().startswith("utf")
        line = json.dumps(to_json(event), ensure_ascii=not readable)
        # JSON escapes what ASCII has of control characters; with those beyond it the line is written in ASCII.
        self._out.write((line if line.isprintable() else json.dumps(to_json(event))) + "\n")
        self._out.flush()
        if isinstance(event, Trouble):
            self._err.write(f"{event.problem}\n")

    def close(self) -> None:
        self._progress.pause()
