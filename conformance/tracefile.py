"""A trace on its way out: JSON lines to a file or to standard output, each batch handed to the system as it comes.

A disk that is full must not change the run that is being traced: what cannot be written is noted, and told in the end.
"""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import attrs

from simkit.errors import Problem, SimkitError

if TYPE_CHECKING:
    from collections.abc import Iterator

STANDARD_OUTPUT = "-"


@attrs.define
class TraceFile:
    """A sink for `simkit.replay`."""

    file: TextIO
    error: OSError | None = None

    def write(self, text: str, /) -> None:
        """Write some lines, unless an earlier one could not be written."""
        if self.error is not None:
            return
        try:
            self.file.write(text)
            self.file.flush()
        except OSError as error:
            self.error = error


@contextlib.contextmanager
def tracing(path: str | None) -> Iterator[TraceFile | None]:
    """The sink for `--trace path`; None for none. Raises `SimkitError` when it cannot be opened, or took not all of it."""
    if path is None:
        yield None
        return
    with contextlib.ExitStack() as stack:
        if path == STANDARD_OUTPUT:
            file: TextIO = sys.stdout
        else:
            try:
                file = stack.enter_context(Path(path).open("w", encoding="utf-8"))
            except OSError as error:
                raise _unusable(path, error) from error
        sink = TraceFile(file)
        yield sink
    if sink.error is not None:
        what = f"the trace could not be written whole: {sink.error.strerror or sink.error}"
        hint = "free some space, or send it elsewhere; the replay itself was not disturbed"
        raise SimkitError(Problem("trace-lost", what, f"--trace {path}", "a place that takes it", hint))


def _unusable(path: str, error: OSError) -> SimkitError:
    what = f"the trace cannot be written there: {error.strerror or error}"
    hint = "name a file in a folder that exists, or - for standard output"
    return SimkitError(Problem("file-unusable", what, f"--trace {path}", "a file that can be written", hint))
