"""Coroutines that were made and never awaited, such as a `trio.sleep(1)` without `await`: what they stand for does not happen.

Python tells of one by a warning, as it is thrown away; a run that hears of one is not the run that its author means.
"""

from __future__ import annotations

import contextlib
import inspect
import warnings
from collections.abc import Iterator
from typing import TextIO

from simkit.errors import ExitCode, Problem, SimkitError

_WORDS = r"coroutine '.*' was never awaited"


class NeverAwaitedError(SimkitError):
    """The program made a coroutine and threw it away."""


@contextlib.contextmanager
def refused() -> Iterator[None]:
    """Raise NeverAwaitedError at the end of the block for the first coroutine that was thrown away in it; other warnings go
    their way.
    """
    found: list[NeverAwaitedError] = []
    with warnings.catch_warnings():
        warnings.filterwarnings("always", _WORDS, RuntimeWarning)
        show = warnings.showwarning

        def note(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            words = str(message).partition("\n")[0]
            if issubclass(category, RuntimeWarning) and words.endswith("was never awaited"):
                found.append(_error(words, f"{filename}:{lineno}", _function(filename, lineno)))
            else:
                show(message, category, filename, lineno, file, line)

        warnings.showwarning = note
        yield
    if found:
        raise found[0]


def _function(filename: str, lineno: int) -> str:
    """The function that is at this line right now."""
    frame = inspect.currentframe()
    while frame is not None and (frame.f_code.co_filename, frame.f_lineno) != (filename, lineno):
        frame = frame.f_back
    return "" if frame is None else f" in {frame.f_code.co_qualname}"


def _error(words: str, place: str, function: str) -> NeverAwaitedError:
    return NeverAwaitedError(
        Problem(
            "never-awaited",
            f"{words}, so that nothing of it has happened",
            f"{place}{function}",
            "`await` before the call",
            "a function that is handed to start_soon or Host.start is not called there: start_soon(fn, argument)",
            ExitCode.VIOLATION,
        )
    )
