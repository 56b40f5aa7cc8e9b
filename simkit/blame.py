"""Which line of the program a failure is laid to. By it failures are told apart, and called in headlines.

An exception is often raised below the program: in the kit, which refuses a call or finds a deadlock, in trio, in the standard
library. All such failures have one innermost line, though they are different mistakes of different lines.
"""

from __future__ import annotations

import os
import re
import sysconfig
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, TracebackType

import attrs
import outcome
import trio

from simkit.errors import SimkitError

__all__ = ["Place", "is_of_program", "places_of"]

KIT = str(Path(__file__).parent) + os.sep
_LIBRARY = sysconfig.get_path("stdlib") + os.sep
_BELOW = (KIT, str(Path(trio.__file__).parent) + os.sep, str(Path(outcome.__file__).parent) + os.sep, "<frozen ")
#: As a `Problem.where` tells places: "/path/bank.py:12 in pay", with what it went through, if that is told.
_PLACE = re.compile(r"(?P<filename>[^:\n]+\.py):(?P<lineno>\d+)(?: in (?P<name>[^\s,]+))?(?:, through .*)?")


@attrs.frozen(order=True)
class Place:
    """A line of code."""

    filename: str
    lineno: int
    name: str = ""  # of its function


def places_of(error: BaseException) -> tuple[Place, ...]:
    """The lines of the program that a failure is laid to: one, or where the tasks of a deadlock wait, or none.

    Of a traceback it is the last frame outside the kit, trio and the standard library that does not hide itself
    (`__tracebackhide__`); the innermost when there is none. A `SimkitError` may tell the place itself.
    """
    waiting: tuple[str, ...] = getattr(error, "places", ())
    told = waiting if isinstance(error, SimkitError) else ()
    if isinstance(error, SimkitError) and not told:
        told = (error.problem.where,)
    found = sorted({place for text in told for place in _parsed(text) if not _is_below(place.filename)})
    return tuple(found) or _of_traceback(error.__traceback__)


def is_of_program(code: CodeType) -> bool:
    """Whether it is outside the kit, trio and the standard library, and does not hide itself."""
    return not _is_below(code.co_filename) and "__tracebackhide__" not in code.co_varnames


def _of_traceback(raised: TracebackType | None) -> tuple[Place, ...]:
    innermost = own = None
    for frame, line in traceback.walk_tb(raised):
        code = frame.f_code
        innermost = Place(code.co_filename, line, code.co_name)
        if is_of_program(code):
            own = innermost
    blamed = own or innermost
    return () if blamed is None else (blamed,)


def _parsed(text: str) -> Iterator[Place]:
    match = _PLACE.fullmatch(text)
    if match is not None:
        yield Place(match["filename"], int(match["lineno"]), match["name"] or "")


def _is_below(filename: str) -> bool:
    if filename.startswith(_BELOW):
        return True
    return filename.startswith(_LIBRARY) and not filename.startswith(f"{_LIBRARY}site-packages")
