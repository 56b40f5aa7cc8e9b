"""asyncio's functions where no loop of asyncio runs, and trio's where one does: what their errors do not say.

Both libraries tell of it in words that only those know who have read their source, so the run adds a note.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

__all__ = ["annotate"]

_NO_LOOP = (
    "simkit: this is a trio task, which has no event loop of asyncio: `await simkit.aio.run(main)` runs an asyncio program "
    "there, and trio.sleep(…) waits in a trio task"
)
_BAD_YIELD = (
    "simkit: this is an asyncio task, which cannot wait for trio's functions: `await simkit.aio.in_trio(fn, *args)` calls "
    "one, and asyncio.sleep(…) waits in an asyncio task"
)


def annotate(errors: Iterable[BaseException | None]) -> None:
    """Add a note to each of `errors`, and of those in groups, that comes from mixing the two; never the same one twice."""
    for error in errors:
        for one in _leaves(error):
            note = _note(one)
            if note and note not in getattr(one, "__notes__", ()):
                one.add_note(note)


def _leaves(error: BaseException | None) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for one in error.exceptions:
            yield from _leaves(one)
    elif error is not None:
        yield error


def _note(error: BaseException) -> str:
    if type(error) is RuntimeError:
        said = error.args[0] if error.args else None
        if said == "no running event loop":
            return _NO_LOOP
        if isinstance(said, str) and said.startswith("Task got bad yield: "):
            return _BAD_YIELD
    if type(error) is AttributeError and error.obj is None and _raised_by(error).startswith("asyncio."):
        return _NO_LOOP  # asyncio's locks and queues ask for the loop, and take what they get
    return ""


def _raised_by(error: BaseException) -> str:
    """The module of the innermost frame."""
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    return "" if at is None else str(at.tb_frame.f_globals.get("__name__", ""))
