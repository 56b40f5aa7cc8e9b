"""What trio does at every timeout and every socket call, without a generator each: same effects, fewer frames.

`taken()` swaps two of trio's context managers while the fast loop runs: the one around entering and leaving a cancel
scope, and the one that turns errors of a socket into errors of a stream. Only for reviewed versions of trio.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator

import trio
from trio import _highlevel_socket
from trio._core._run import GLOBAL_RUN_CONTEXT, CancelScope


class _Deadline:
    """`CancelScope._might_change_registered_deadline`: on leaving, the timers learn when the scope is due now."""

    __slots__ = ("_scope",)

    def __init__(self, scope: CancelScope) -> None:
        self._scope = scope

    def __enter__(self) -> None:
        """Nothing has changed yet."""

    def __exit__(self, *_: object) -> None:
        scope = self._scope
        old = scope._registered_deadline
        new = math.inf if scope._cancel_status is None or scope._cancel_called else scope._deadline
        if old != new:
            scope._registered_deadline = new
            deadlines = GLOBAL_RUN_CONTEXT.runner.deadlines
            if old != math.inf:
                deadlines.remove(old, scope)
            if new != math.inf:
                deadlines.add(new, scope)


class _Translation:
    """`_translate_socket_errors_to_stream_errors`."""

    __slots__ = ()

    def __enter__(self) -> None:
        """Nothing to set up."""

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if not isinstance(error, OSError):
            return
        if error.errno in _highlevel_socket._closed_stream_errnos:
            raise trio.ClosedResourceError("this socket was already closed") from None
        raise trio.BrokenResourceError(f"socket connection broken: {error}") from error


_TRANSLATION = _Translation()


def _deadline(scope: CancelScope) -> _Deadline:
    return _Deadline(scope)


def _translation() -> _Translation:
    return _TRANSLATION


@contextlib.contextmanager
def taken() -> Iterator[None]:
    """Take the shortcuts in this block."""
    deadline = CancelScope._might_change_registered_deadline
    translation = _highlevel_socket._translate_socket_errors_to_stream_errors
    CancelScope._might_change_registered_deadline = _deadline  # type: ignore[assignment, method-assign]
    _highlevel_socket._translate_socket_errors_to_stream_errors = _translation  # type: ignore[assignment]
    try:
        yield
    finally:
        CancelScope._might_change_registered_deadline = deadline  # type: ignore[method-assign]
        _highlevel_socket._translate_socket_errors_to_stream_errors = translation
