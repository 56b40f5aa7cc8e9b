"""Signals that ask a command to end, from its first instant to its last.

    SIGNALS          Ctrl-C, the end of a service, the end of the terminal
    taken(handler)   while inside they go to `handler`; what somebody set to be ignored, as `nohup` does, stays so
    deferred()       while inside the first does nothing, for the little that is left to say takes no time; the second raises

Nothing heavy is imported here: until a command listens for itself, which it does once everything is loaded, a signal ends it
by the exit code of an interrupted one, and without a traceback.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final, TypeAlias

Handler: TypeAlias = Callable[[int, FrameType | None], None]

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def taken(handler: Handler) -> Iterator[None]:
    """Take the signals while inside. For the main thread."""
    before = {number: signal.signal(number, handler) for number in SIGNALS if not _is_muted(number)}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


@contextmanager
def deferred() -> Iterator[None]:
    """Heed only the second of them while inside: whoever takes what is said may be stuck."""
    is_impatient = False

    def bear(number: int, frame: FrameType | None) -> None:
        nonlocal is_impatient
        if is_impatient:
            raises(number, frame)
        is_impatient = True

    with taken(bear):
        yield


def raises(_number: int, _frame: FrameType | None) -> None:
    """A handler that ends what runs."""
    raise KeyboardInterrupt


def _is_muted(number: signal.Signals) -> bool:
    """Only of a hangup it is a wish: shells let whatever they start in the background ignore Ctrl-C."""
    return number is signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN
