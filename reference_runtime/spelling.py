"""Spelling: what a plan says that nobody would read is refused as it is submitted, and not left out without a word.

A field of another name is a misspelt one, or one that this kind of operation does not have; either way the task would do
something else than was meant. Only new tasks are looked at: what was admitted before stays what it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reference_runtime.guessing import meant
from reference_runtime.ids import fault_of_operation
from reference_runtime.leaves import PlanError, wrong
from reference_runtime.model import Json

_LIMITS = ("tries", "elapsed_ns")
_TERMS = ("service", "params", "script", *_LIMITS, "secret", "lookups")
#: What each kind of operation has beside its `op` and its `id`.
FIELDS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("seq", "par", "race"), ("children",)),
    "branch": ("on", "children"),
    "loop": ("on", "times", "children"),
    "call": (*_TERMS, "carries", "tolerate"),
    "compensate": ("of", *_TERMS),
    "wait": ("signal", "timeout_ns"),
    "sleep": ("ns",),
    "approve": ("of", "validity_ns"),
    "model": ("prompt", "tokens", "uses", "carries", "script", *_LIMITS),
    "child": ("plan", "detached", "share"),
    "artifact": ("name", "size", "parts", "carries", *_LIMITS),
    "check": ("of", "script", "required"),
    "fail": ("reason",),
    "nondet": ("kind",),
}


def check_spelling(plan: Json) -> None:
    """Refuse a plan, which was read without a mistake, that says more than was read. Raises `PlanError`."""
    todo: list[Any] = [plan["root"]]
    while todo:
        one = todo.pop()
        known = FIELDS[one["op"]]
        if unknown := [name for name in one if name not in known and name not in ("op", "id")]:
            guess = meant(unknown[0], known)
            raise wrong(one, f"it has no {', '.join(unknown):.120}; it has {', '.join(known)}{guess}")
        if (fault := fault_of_operation(one["id"], is_child=one["op"] == "child")) is not None:
            raise PlanError(f"operation id {one['id']!r:.80} {fault}")
        todo += one.get("children") or ()
        if one["op"] == "child":
            todo.append(one["plan"]["root"])
