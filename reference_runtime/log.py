"""Logs: one JSON object a line, of events and ids and never of contents.

`{"time": "2026-01-01T12:00:00.000000Z", "event": "reported", "task": "t", "operation": "a", "report": "succeeded"}`
"""

from __future__ import annotations

import datetime
import json
import sys
import time
from collections.abc import Callable

NS = 1_000_000_000


class Log:
    """Writes events with `write`, which takes a whole line; without one, nothing is written."""

    def __init__(self, write: Callable[[str], object] | None = None) -> None:
        self._write = write

    def __call__(self, event: str, **ids: object) -> None:
        """Tell an event: its name in kebab-case, and the ids it is about."""
        if self._write is not None:
            seconds, ns = divmod(time.time_ns(), NS)
            stamp = datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S")
            self._write(json.dumps({"time": f"{stamp}.{ns // 1000:06}Z", "event": event, **ids}) + "\n")


OFF = Log()


def to_standard_error() -> Log:
    """A log on standard error, each line as soon as it is told."""

    def write(line: str) -> None:
        sys.stderr.write(line)
        sys.stderr.flush()

    return Log(write)
