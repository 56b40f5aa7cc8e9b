"""Naming: the ids of what a workflow asks for, and what may be one."""

from __future__ import annotations

import json
from typing import Any

from reference_runtime.commands import DRAW, Ask, Command
from reference_runtime.ids import fault_of, fault_of_operation
from reference_runtime.model import Json, canonical, digest


def slot_of(command: Command) -> tuple[str, int | str]:
    """Where a command is looked for in history: its place, or for a draw its id."""
    return (command.branch, command.id if command.kind == DRAW else command.sequence)


def fault_of_ask(ask: Ask[Any]) -> str | None:
    """What is wrong with the id that an operation is given, or with the name that one is made of."""
    given = str(ask.name if ask.id is None else ask.id)
    if "~" in given:
        fault: str | None = "has a ~ in it; that is kept for operations the runtime makes itself"
    elif ask.leaf["op"] == DRAW:  # nobody is sent it
        fault = fault_of(given)
    else:
        fault = fault_of_operation(given, is_child=ask.leaf["op"] == "child")
    if fault is None:
        return None
    if ask.id is not None:
        return f"operation id {given!r:.80} {fault}"
    return f"name {given!r:.80} {fault}; give the operation an id of its own by id="


def command_of(leaf: Json) -> Command:
    """A leaf as a command that nobody has issued; what it says is what it says now."""
    return Command("", 0, str(leaf.get("op")), str(leaf.get("id")), digest(leaf), json.loads(canonical(leaf)))


def named(leaf: Json, id_: str, prefix: str) -> Json:
    """A leaf with its id; other operations it speaks of are those of the same history."""
    one = {**leaf, "id": id_}
    if prefix and "of" in leaf:
        one["of"] = prefix + leaf["of"]
    if prefix and leaf.get("carries"):
        one["carries"] = [prefix + name for name in leaf["carries"]]
    if prefix and "action" in leaf:
        one["action"] = named(leaf["action"], prefix + leaf["action"]["id"], prefix)
    return one
