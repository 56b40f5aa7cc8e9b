"""Ready models: register, compare-and-set register, key-value store, set, queue, lock.

Each function's docstring lists the operations, with their arguments and answers. Of an operation that the model does not
know, `check` says which it is.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from simkit.checking.model import REFUSED, UNKNOWN, WHOLE, Asked, Model

_REGISTER = {"read": "", "write": "value"}
_STORE = {"get": "key", "put": "key value", "append": "key more", "cas": "key expected value", "delete": "key"}


def register(initial: Any = None) -> Model:
    """One value: `("read",)` → the value; `("write", value)`."""
    return Model("register", initial, _register, reads=_reads("read"), operations=_REGISTER)


def cas_register(initial: Any = None) -> Model:
    """A register with `("cas", expected, value)` → whether it was the expected one, and so was replaced."""
    operations = {**_REGISTER, "cas": "expected value"}
    return Model("compare-and-set register", initial, _register, reads=_reads("read"), operations=operations)


def key_value(missing: Any = None) -> Model:
    """A store of values by key, each key a part of its own.

    `("get", key)` → the value, or `missing`; `("put", key, value)`; `("append", key, more)`, which puts `more` where there
    is no value; `("cas", key, expected, value)` → whether it was replaced; `("delete", key)`.
    """

    def step(state: Any, asked: Asked, answer: Any) -> Any:
        if asked[0] == "append":
            return asked[2] if state == missing else state + asked[2]
        if asked[0] == "delete":
            return missing
        return _value(asked[0], state, asked[2:], answer)

    def within(state: Any, asked: Asked, answer: Any) -> bool:
        if asked[0] != "get" or not isinstance(state, str | bytes | tuple) or type(answer) is not type(state):
            return True
        return answer[: len(state)] == state

    return Model("key-value store", missing, step, _second, _reads("get"), _appends, within, _STORE)


def set_() -> Model:
    """A set, each element a part of its own unless the whole is read.

    `("add", element)` → whether it was new, or None; `("remove", element)` → whether it was there, or None;
    `("contains", element)` → whether it is there; `("read",)` → all elements, as any iterable.
    """
    operations = {"add": "element", "remove": "element", "contains": "element", "read": ""}
    return Model("set", frozenset(), _set, _element, _reads("contains", "read"), operations=operations)


def queue(empty: Any = None) -> Model:
    """First in, first out: `("enqueue", element)`; `("dequeue",)` → the element, or `empty` when there is none."""

    def step(state: tuple[Any, ...], asked: Asked, answer: Any) -> Any:
        if asked[0] == "enqueue":
            return (*state, asked[1])
        if answer is not UNKNOWN and answer != (state[0] if state else empty):
            return REFUSED
        return state[1:]

    return Model("queue", (), step, operations={"enqueue": "element", "dequeue": ""})


def lock() -> Model:
    """A lock: `("acquire", owner)` → False when somebody had it (a try), else anything; `("release", owner)`."""
    return Model("lock", None, _lock, operations={"acquire": "owner", "release": "owner"})


def _register(state: Any, asked: Asked, answer: Any) -> Any:
    return _value(asked[0], state, asked[1:], answer)


def _value(name: str, state: Any, arguments: Asked, answer: Any) -> Any:
    """What one value does."""
    if name in {"read", "get"}:
        return state if answer is UNKNOWN or answer == state else REFUSED
    if name in {"write", "put"}:
        return arguments[0]
    same = state == arguments[0]
    if answer is not UNKNOWN and bool(answer) != same:
        return REFUSED
    return arguments[1] if same else state


def _set(state: frozenset[Any], asked: Asked, answer: Any) -> Any:
    if asked[0] == "read":
        return state if answer is UNKNOWN or frozenset(answer) == state else REFUSED
    element = asked[1]
    there = element in state
    if asked[0] == "contains":
        return state if answer is UNKNOWN or bool(answer) == there else REFUSED
    if asked[0] == "add":
        return state | {element} if _told_nothing(answer) or bool(answer) != there else REFUSED
    return state - {element} if _told_nothing(answer) or bool(answer) == there else REFUSED


def _told_nothing(answer: Any) -> bool:
    return answer is UNKNOWN or answer is None


def _lock(state: Any, asked: Asked, answer: Any) -> Any:
    name, owner = asked
    if name == "release":
        return None if state == owner else REFUSED
    if state is None:
        return REFUSED if answer is False else owner
    return state if answer is False or answer is UNKNOWN else REFUSED


def _appends(asked: Asked) -> bool:
    return bool(asked[0] == "append")


def _second(asked: Asked) -> Hashable:
    key: Hashable = asked[1]
    return key


def _element(asked: Asked) -> Hashable:
    return WHOLE if asked[0] == "read" else asked[1]


def _reads(*names: str) -> Callable[[Asked, Any], bool]:
    """Reads are known by name; and a compare-and-set that did not replace, by its answer."""
    return lambda asked, answer: asked[0] in names or (asked[0] == "cas" and answer is False)
