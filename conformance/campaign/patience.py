"""Ctrl-C while trio runs: whatever a signal handler raises becomes a cancellation, so that every block is left in order.

An exception out of a signal handler strikes wherever the program is, trio's own machinery included, and leaves processes
and files behind. Inside `interruptible` it cancels the scope instead, and is raised when that has been carried out.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Final

import trio

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Leave the block in order when one of `SIGNALS` raises KeyboardInterrupt, then raise it. For the main thread."""
    token, interrupted = trio.lowlevel.current_trio_token(), False
    before = {number: handler for number in SIGNALS if callable(handler := signal.getsignal(number))}

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal interrupted
        try:
            before[signal.Signals(number)](number, frame)
        except KeyboardInterrupt:
            interrupted = True
            token.run_sync_soon(scope.cancel)

    with trio.CancelScope() as scope, _handling(list(before), handle):
        yield
    if interrupted:
        raise KeyboardInterrupt


@contextlib.contextmanager
def _handling(numbers: list[signal.Signals], handle: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    before = {number: signal.signal(number, handle) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
