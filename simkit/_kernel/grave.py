"""Free dead coroutines without running any of their code: no `finally`, no `except`, no warnings.

Dropping a suspended coroutine makes CPython throw GeneratorExit into it, which would unwind the dead. It does so at most
once per object, and remembers in the object's collector header that it did. `lay_to_rest` sets that mark beforehand on
every suspended frame that only the dead can reach: their await chains and the generators behind their `with` blocks.
On an interpreter where the mark is not found where expected, the dead are kept for ever instead.
"""

from __future__ import annotations

import collections
import contextlib
import ctypes
import functools
import gc
import sys
import types
from collections.abc import Iterable

_FRAMES = (types.CoroutineType, types.GeneratorType, types.AsyncGeneratorType)
_MANAGERS = (
    contextlib._GeneratorContextManager,
    contextlib._AsyncGeneratorContextManager,
    contextlib.ExitStack,
    contextlib.AsyncExitStack,
)
#: What has but one thing behind it that could be of the dead: whose method it is.
_PASSED = (types.MethodType,)
#: Followed only when reached from an exit stack.
_STACKS = (collections.deque, tuple)
_AWAITABLES = {"async_generator_asend", "async_generator_athrow", "coroutine_wrapper", "anext_awaitable"}
_VISITS_MAX = 100_000
_WORD_BYTES = ctypes.sizeof(ctypes.c_size_t)
_FINALIZED = 1
_kept_for_ever: list[object] = []


def lay_to_rest(dead: Iterable[object]) -> None:
    """Make sure that no code of `dead` (coroutines) ever runs again; the caller may then drop them."""
    if not _can_mark():
        _kept_for_ever.extend(dead)
        return
    todo = list(dead)
    seen: set[int] = set()
    visits = 0
    while todo and visits < _VISITS_MAX:
        one = todo.pop()
        visits += 1
        if type(one) in _FRAMES and not gc.is_finalized(one):
            _mark(one)  # which also says that it was seen; `id` is heard by the guard, as a C extension's calls are
        elif type(one) in _PASSED:  # every way back to one of these goes by one of the others
            pass
        elif id(one) in seen:
            continue
        else:
            seen.add(id(one))
        todo.extend(_reachable(one))
    _kept_for_ever.extend(todo)


def _reachable(one: object) -> list[object]:
    """What `one` keeps and nobody else does, as far as that is plain."""
    kind = _kinds[type(one)]
    if kind == "frame":
        return [found for found in gc.get_referents(one) if _kinds[type(found)]]
    if kind == "manager":
        return [found for found in vars(one).values() if _kinds[type(found)] or type(found) in _STACKS]
    if isinstance(one, _STACKS):
        return [found for found in one if _kinds[type(found)] or type(found) in _STACKS]
    return []


class _Kinds(dict[type, str]):
    """How instances of a type are followed; not at all when empty. By type, as this is asked of all that the dead hold."""

    def __missing__(self, kind: type) -> str:
        frame = kind in _FRAMES or kind is types.MethodType or kind.__name__ in _AWAITABLES
        self[kind] = found = "frame" if frame else "manager" if issubclass(kind, _MANAGERS) else ""
        return found


_kinds = _Kinds()


#: A pointer, and the word in which it has where it points to: to make one for each object costs ten times as much.
_word = ctypes.pointer(ctypes.c_size_t())
_points_to = ctypes.c_size_t.from_buffer(_word)


def _mark(one: object) -> None:
    _aim(one)[0] |= _FINALIZED


def _aim(one: object) -> ctypes._Pointer[ctypes.c_size_t]:
    """Points to the second word of the collector's header, which lies right before the object."""
    _points_to.value = id(one) - _WORD_BYTES
    return _word


@functools.cache
def _can_mark() -> bool:
    """Whether the mark is where it has been since CPython 3.9: tried on a generator that would tell."""
    if sys.implementation.name != "cpython" or not getattr(sys, "_is_gil_enabled", lambda: True)():
        return False
    told: list[str] = []
    probe = _probe(told)
    next(probe)
    if _aim(probe)[0] & _FINALIZED or gc.is_finalized(probe):
        return False
    _mark(probe)
    marked = gc.is_finalized(probe)
    del probe
    return marked and not told


def _probe(told: list[str]) -> types.GeneratorType[None, None, None]:  # type: ignore[misc]
    try:
        yield
    finally:
        told.append("unwound")
