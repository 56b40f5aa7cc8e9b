"""Endings: what an error that a workflow's function ends with is taken for."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from reference_runtime.commands import Misuse, Raised
from reference_runtime.misuse import WrongUse, is_no_awaitable
from reference_runtime.whereabouts import awaited, frames_of, lacks_a_loop, place, reason_of, said, text_of

CONTEXT_ONLY = "a workflow may await operations of its context only"


def ended_by(error: BaseException) -> Raised | Misuse:
    """How a function ends with an error: it fails its task, unless the code is at fault, which misused its context, or awaited
    what is none of that.
    """
    frames = frames_of(error)
    text = text_of(error)
    if isinstance(error, WrongUse):
        return Misuse(f"{text}{place(frames)}")
    if is_no_awaitable(error, text):
        return Misuse(f"{CONTEXT_ONLY}, each of them called; {text}{place(frames)}")
    if lacks_a_loop(error, frames):
        return Misuse(f"{CONTEXT_ONLY}; {awaited(frames)} ({type(error).__name__}: {text})")
    if (reason := reason_of(error)) is not None:
        return Raised(reason)
    return Raised(said(error, frames), "".join(traceback.format_tb(error.__traceback__)))


@contextmanager
def whatever_it_raises() -> Iterator[None]:
    """For a function that is let go: what it has to say to that is of no interest."""
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001, S110 - as above
        pass
