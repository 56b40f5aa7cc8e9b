"""The generator behind the functions of `random`, which all code of a process shares: put aside for a run, and back.

Its state is a block of memory in the object, copied as such: `getstate` makes 625 Python integers of it, and `setstate`
reads them, for each of which an empty run would have to wait longer than for the loop. Where that block is not found where
expected, these two do it.
"""

from __future__ import annotations

import _random
import ctypes
import random
from collections.abc import Callable
from typing import Any

#: An int that counts, and the 624 words of the Mersenne Twister.
_BYTES = 4 + 624 * 4
_START = object.__basicsize__
_shared: random.Random = random._inst  # noqa: SLF001  # there is no other way to it
_seed = _random.Random.seed


def seed(number: int) -> Callable[[], None]:
    """Seed the shared generator as `random.seed(number)` does; returns what puts its state back."""
    back = _saved_bytes() if _is_block else _saved_tuple()
    _seed(_shared, number)
    _shared.gauss_next = None  # type: ignore[attr-defined]
    return back


def _saved_bytes() -> Callable[[], None]:
    block = ctypes.string_at(id(_shared) + _START, _BYTES)
    gauss_next = _shared.gauss_next  # type: ignore[attr-defined]

    def back() -> None:
        ctypes.memmove(id(_shared) + _START, block, _BYTES)
        _shared.gauss_next = gauss_next  # type: ignore[attr-defined]

    return back


def _saved_tuple() -> Callable[[], None]:
    before: Any = _shared.getstate()
    return lambda: _shared.setstate(before)


def _probe() -> bool:
    """Whether the state lies where expected: tried on two generators of which one becomes the other."""
    if not _START + _BYTES <= _random.Random.__basicsize__ <= _START + _BYTES + 8:
        return False
    one, other = random.Random(1), random.Random(2)  # nobody's secrets
    one.random()
    ctypes.memmove(id(other) + _START, id(one) + _START, _BYTES)
    return one.getstate() == other.getstate() and one.random() == other.random()


_is_block = _probe()
