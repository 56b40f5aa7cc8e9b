"""Whereabouts: where in its author's code a workflow function awaits something, or came upon an error, in words."""

from __future__ import annotations

import sys
from functools import lru_cache
from itertools import islice
from pathlib import Path
from traceback import walk_tb
from types import CodeType, FrameType
from typing import Any, TypeAlias

#: Frames that are not this package's, the outermost first, each with its line.
Frames: TypeAlias = list[tuple[FrameType, int]]
_OWN = __name__.partition(".")[0]
_HERE = Path(__file__).parent


def frames_of(error: BaseException) -> Frames:
    """The way to an error."""
    return [(frame, line) for frame, line in walk_tb(error.__traceback__) if _package(frame) != _OWN]


def foreign(coroutine: Any, asked: object) -> str:
    """What is awaited, and on which line: the first thing in the chain of awaits that is of another package."""
    own, where, one = "", "", coroutine
    while (frame := getattr(one, "cr_frame", None) or getattr(one, "gi_frame", None)) is not None:
        module = str(frame.f_globals.get("__name__", ""))
        own = own or module.partition(".")[0]
        if module.partition(".")[0] != own:
            return f"{where} awaits {module}.{one.__qualname__}"
        where = f"{frame.f_code.co_filename}:{frame.f_lineno}"
        one = getattr(one, "cr_await", None) or getattr(one, "gi_yieldfrom", None)
    return f"{where} awaits {type(asked).__module__}.{type(asked).__qualname__}"


def awaited(frames: Frames) -> str:
    """What was awaited, and on which line, as far as an error tells: the first frame that is of another package."""
    own = [_package(frame) == _package(frames[0][0]) for frame, _ in frames]
    first = own.index(False) if False in own else len(frames)
    frame, line = frames[first - 1]
    what = "what needs an event loop"
    if first < len(frames):
        strange = frames[first][0]
        what = f"{strange.f_globals.get('__name__', '')}.{strange.f_code.co_qualname}"
    return f"{frame.f_code.co_filename}:{line} awaits {what}"


def lacks_a_loop(error: BaseException, frames: Frames) -> bool:
    """Whether an error is how asyncio says that it does not run; some of its parts just trip over the loop that is missing."""
    if not frames or not isinstance(error, RuntimeError | AttributeError):
        return False
    return text_of(error) == "no running event loop" or _package(frames[-1][0]) == "asyncio"


def text_of(error: BaseException) -> str:
    """What an error says; its class may be the user's, and say it by raising another one, which ends nothing then."""
    try:
        return str(error)
    except KeyboardInterrupt:
        raise
    except BaseException as another:  # noqa: BLE001 - also what would end the process
        return f"(its text raised {type(another).__name__})"


def reason_of(error: BaseException) -> str | None:
    """The `reason` that an error carries itself, if that was meant for a reader."""
    if isinstance(error, UnicodeError | OSError):
        return None
    try:
        reason = getattr(error, "reason", None)
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001 - a property of the user's; the error has its text all the same
        return None
    return reason if isinstance(reason, str) else None


def said(error: BaseException, frames: Frames) -> str:
    """An error as a reason, with the innermost line that is neither Python's own nor this package's."""
    return f"raised: {type(error).__name__}: {text_of(error)}{place(frames)}"


def place(frames: Frames) -> str:
    """The innermost line of them that is not Python's own, as ` (FILE:LINE)`; empty where there is none."""
    users = [one for one in frames if _package(one[0]) not in sys.stdlib_module_names]
    return f" ({Path(users[-1][0].f_code.co_filename).name}:{users[-1][1]})" if users else ""


def caller(depth: int) -> tuple[CodeType, int]:
    """The instruction that runs in the code that called, so many calls away. Its line is not looked for yet: that takes longer
    than to run most of them.
    """
    frame = sys._getframe(depth + 1)  # noqa: SLF001 - `inspect` would read files
    return frame.f_code, frame.f_lasti


def line_of(site: tuple[CodeType, int] | None) -> str:
    """An instruction as `FILE:LINE`; empty where it is this package's own, or none."""
    return "" if site is None else _line_of(site[0].co_filename, *site)


@lru_cache(maxsize=1024)
def _line_of(filename: str, code: CodeType, instruction: int) -> str:
    """As above; code that is the same in two files is the same to the cache but for its name."""
    path = Path(filename)
    line = next(islice(code.co_positions(), instruction // 2, None))[0]
    return "" if path.parent == _HERE else f"{path.name}:{line}"


def beside(site: tuple[CodeType, int] | None) -> str:
    """An instruction as ` (FILE:LINE)`, as `place` gives it."""
    return f" ({line})" if (line := line_of(site)) else ""


def beginning(function: object) -> str:
    """Where a function, or a coroutine, begins that is written in Python, as ` (FILE:LINE)`; empty for anything else."""
    inner = getattr(function, "func", function)
    code = getattr(inner, "cr_code", None) or getattr(inner, "__code__", None)
    return f" ({Path(code.co_filename).name}:{code.co_firstlineno})" if isinstance(code, CodeType) else ""


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]
