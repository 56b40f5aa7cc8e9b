"""A memo of one: what was worked out last about a value that cannot be hashed, kept by its identity.

Every judge asks for the same things about the same history, one judge after the other.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeVar

S = TypeVar("S")
T = TypeVar("T")


def latest(fn: Callable[[S], T]) -> Callable[[S], T]:
    """`fn`, a pure function of one immutable value, that is carried out once for as long as it is asked about the same one."""
    kept: tuple[S, T] | None = None

    @functools.wraps(fn)
    def remembered(value: S) -> T:
        nonlocal kept
        if kept is None or kept[0] is not value:
            kept = (value, fn(value))
        return kept[1]

    return remembered
