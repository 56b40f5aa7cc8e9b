"""The generator behind the functions of `random`, which all code of a process shares: put aside for a run, and back.

Its state is a block of memory in the object, copied as such: `getstate` makes 625 Python integers of it, and `setstate`
reads them, for each of which an empty run would have to wait longer than for the loop. Where that block is not found where
expected, these two do it.
"""

from __future__ import annotations

import _random
import ctypes
import functools
import random
from collections.abc import Callable
from typing import Any

#: An int that counts, and the 624 words of the Mersenne Twister.
_BYTES = 4 + 624 * 4
_START = object.__basicsize__
_shared: random.Random = random._inst  # noqa: SLF001  # there is no other way to it
_seed = _random.Random.seed
#: The state that was put aside: there is one run at a time.
_aside = ctypes.create_string_buffer(_BYTES)


def seed(noise_seed: int) -> Callable[[], None]:
    """Seed the shared generator with the first 64 bits of one that has this seed; returns what puts its state back."""
    back = _saved_bytes() if _is_block else _saved_tuple()
    _seed(_shared, noise_seed)
    _seed(_shared, _shared.getrandbits(64))
    _shared.gauss_next = None  # type: ignore[attr-defined]
    return back


def _saved_bytes() -> Callable[[], None]:
    ctypes.memmove(_aside, id(_shared) + _START, _BYTES)
    return functools.partial(_put_back, _shared.gauss_next)  # type: ignore[attr-defined]


def _put_back(gauss_next: float | None) -> None:
    ctypes.memmove(id(_shared) + _START, _aside, _BYTES)
    _shared.gauss_next = gauss_next  # type: ignore[attr-defined]


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
