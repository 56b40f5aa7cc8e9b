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
#: The states of the last seeds: searches, replays and shrinks run one world again and again, and seeding takes as long as
#: all else that an empty run does.
_KEPT_MAX = 64
_kept: dict[int, bytes] = {}


def seed(noise_seed: int) -> Callable[[], None]:
    """Seed the shared generator with the first 64 bits of one that has this seed; returns what puts its state back."""
    back = functools.partial(_put_back, bytes(_block), _shared.gauss_next) if _is_block else _saved_tuple()  # type: ignore[attr-defined]
    _seed(_shared, noise_seed)
    _seed(_shared, _shared.getrandbits(64))
    _shared.gauss_next = None  # type: ignore[attr-defined]
    return back


def seed_for(entropy: int, noise_seed: Callable[[], int]) -> Callable[[], None]:
    """As `seed(noise_seed())`, where that depends on nothing but `entropy`; a copy of what it was when still known."""
    state = _kept.get(entropy) if _is_block else None
    if state is None:
        back = seed(noise_seed())
        if _is_block:
            if len(_kept) >= _KEPT_MAX:
                del _kept[next(iter(_kept))]
            _kept[entropy] = bytes(_block)
        return back
    back = functools.partial(_put_back, bytes(_block), _shared.gauss_next)  # type: ignore[attr-defined]
    _block[:] = state
    _shared.gauss_next = None  # type: ignore[attr-defined]
    return back


def _put_back(state: bytes, gauss_next: float | None) -> None:
    _block[:] = state
    _shared.gauss_next = gauss_next  # type: ignore[attr-defined]


def _saved_tuple() -> Callable[[], None]:
    before: Any = _shared.getstate()
    return lambda: _shared.setstate(before)


def _view(generator: random.Random) -> memoryview:
    """The state of `generator`, which must outlive this."""
    return memoryview((ctypes.c_ubyte * _BYTES).from_address(id(generator) + _START)).cast("B")


def _probe() -> bool:
    """Whether the state lies where expected: tried on two generators of which one becomes the other."""
    if not _START + _BYTES <= _random.Random.__basicsize__ <= _START + _BYTES + 8:
        return False
    one, other = random.Random(1), random.Random(2)  # nobody's secrets
    one.random()
    _view(other)[:] = _view(one)
    return one.getstate() == other.getstate() and one.random() == other.random()


_is_block = _probe()
#: The state of the shared generator, which lives as long as `random`.
_block = _view(_shared) if _is_block else memoryview(b"")
