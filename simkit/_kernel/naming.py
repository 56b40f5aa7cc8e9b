"""Names that count from the beginning in each run: those that `threading` and trio make up for threads."""

from __future__ import annotations

import functools
import itertools
import threading
from collections.abc import Callable, Iterator
from typing import Any

from trio import _threads

__all__ = ["Numbers", "stand_in"]


class Numbers:
    """What one run numbers its threads by."""

    def __init__(self) -> None:
        self.made = itertools.count(1)  # objects of `threading.Thread`
        self.placeholders = itertools.count()  # those that hold a token of a limiter


class _Placeholders:
    """Stands in for the counter of `trio._threads`, by which who holds a token of a limiter is named."""

    def __init__(self, real: Iterator[int], numbers: Callable[[], Numbers | None]) -> None:
        self._real = real
        self._numbers = numbers

    def __next__(self) -> int:
        numbers = self._numbers()
        return next(self._real if numbers is None else numbers.placeholders)


def _newname(
    real: Callable[[str], str], numbers: Callable[[], Numbers | None], own: Callable[[], str | None], template: str
) -> str:
    here = numbers()
    if here is None:
        return real(template)
    name = own() if template.startswith("Dummy") else None  # of a thread that `threading` did not start
    return template % next(here.made) if name is None else name


def stand_in(numbers: Callable[[], Numbers | None], own: Callable[[], str | None]) -> None:
    """From now on ask `numbers` for those of the calling thread's run, None outside of one; and `own` for its own name."""
    names: dict[str, Any] = vars(threading)
    names["_newname"] = functools.partial(_newname, names["_newname"], numbers, own)
    names = vars(_threads)
    names["_thread_counter"] = _Placeholders(names["_thread_counter"], numbers)
