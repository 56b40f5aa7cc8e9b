"""What of a plan can be left out or made less: its leaves as they are written, and the options, scripts and numbers of each.

A group with nothing in it to work is left out as a whole, and counts as a leaf here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import attrs

from scenarios.operation import (
    Approve,
    Artifact,
    Branch,
    Call,
    Check,
    Child,
    Compensate,
    Loop,
    Model,
    Op,
    Par,
    Race,
    Seq,
)
from scenarios.unrolling import walk

T = TypeVar("T")
GROUPS = (Seq, Par, Race, Branch, Loop)
#: Numbers are tried at the powers of this, below what is written.
_STEP = 8


def is_empty(op: Op) -> bool:
    return isinstance(op, GROUPS) and not op.children


def is_leaf(op: Op) -> bool:
    """Is this left out as a whole? So is a group without anything to work."""
    return not isinstance(op, GROUPS) or not holds_work(op)


def holds_work(op: Op) -> bool:
    return any(not isinstance(one, GROUPS) for one in walk(op))


def leaves_of(op: Op) -> Iterator[Op]:
    """What can be left out of an operation by itself. The empty way of a branch cannot, as a branch has two."""
    if is_leaf(op):
        yield op
        return
    assert isinstance(op, GROUPS)
    for child in op.children:
        if not (isinstance(op, Branch) and is_empty(child)):
            yield from leaves_of(child)


def working_of(root: Op) -> tuple[Op, ...]:
    """The leaves that are work. An empty way of a branch is a leaf of its own once the branch is no more, and is none."""
    leaves = tuple(leaves_of(root))
    return tuple(op for op in leaves if not isinstance(op, Seq | Par)) or leaves


def first_of(root: Op) -> Op:
    """What a run is left with, when all is left out of it."""
    leaves = working_of(root)
    alone = [op for op in leaves if not isinstance(op, Approve | Check | Compensate)]
    return next((op for op in alone if isinstance(op, Call)), (alone or leaves)[0])


def alone(root: Op) -> Op:
    """The first operation, by itself."""
    match op := first_of(root):
        case Call() | Model() | Artifact():
            return attrs.evolve(op, carries=())
        case Child():
            return attrs.evolve(op, root=alone(op.root))
        case _:
            return op


def has_end(op: Op) -> bool:
    """Is there anything in it that a race can wait for?"""
    return any(not isinstance(one, Seq | Par | Loop | Compensate) or _repeats(one) for one in walk(op))


def _repeats(op: Op) -> bool:
    return isinstance(op, Loop) and op.times > 1


def restemmed(op: Op, stem: str) -> Op:
    if not isinstance(op, GROUPS):
        return op
    return attrs.evolve(op, id=stem + op.id, children=tuple(restemmed(child, stem) for child in op.children))


# --- details ----------------------------------------------------------------------------------------------------------


def or_none(value: T | None) -> tuple[T | None, ...]:
    return (None,) if value is None else (None, value)


def _beginnings(value: tuple[T, ...]) -> tuple[tuple[T, ...], ...]:
    return tuple(value[:length] for length in range(len(value) + 1))


def _flag(value: bool) -> tuple[bool, ...]:
    return (False, True) if value else (False,)


#: What there is besides the operation itself, and what it is tried at, the plainest first.
_OPTIONS: Mapping[str, Callable[[Any], tuple[Any, ...]]] = {
    "tries": or_none, "elapsed_ns": or_none, "secret": or_none, "timeout_ns": or_none, "validity_ns": or_none,
    "uses": or_none, "share": or_none, "tolerate": _flag, "detached": _flag, "script": _beginnings, "lookups": _beginnings,
    "ns": lambda value: numbers(0, value), "size": lambda value: numbers(0, value), "parts": lambda value: numbers(1, value),
    "tokens": lambda value: numbers(1, value),
}  # fmt: skip


def options_of(op: Op) -> Iterator[tuple[str, tuple[Any, ...]]]:
    for field in attrs.fields(type(op)):
        if field.name in _OPTIONS:
            yield field.name, _OPTIONS[field.name](getattr(op, field.name))
        elif field.name == "params":
            yield "params", _sizes(op.params)  # type: ignore[union-attr]


def _sizes(params: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """Parameters with a shorter answer, or without what makes the request one that cannot be sent."""
    plain = {name: value for name, value in params.items() if name not in {"answer_bytes", "poison"}}
    if len(plain) == len(params):
        return (params,)
    size = params.get("answer_bytes")
    shorter = numbers(1, size)[:-1] if isinstance(size, int) and size > 1 and "poison" not in params else ()
    return (plain, *({**plain, "answer_bytes": one} for one in shorter), params)


def numbers(least: int, value: int) -> tuple[int, ...]:
    """What a number is tried at, the smallest first and `value` last."""
    if value <= least:
        return (value,)
    between = (_STEP**n for n in range(value.bit_length()))
    return (least, *(one for one in between if least < one < value), value)
