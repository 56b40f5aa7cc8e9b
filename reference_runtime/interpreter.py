"""The interpreter: a workflow that carries out any plan, so that plans run in the style of history replay too.

The tree is walked as it is written: `seq` is one thing after another, `par` and `race` are the context's own, a `branch`
looks at a recorded outcome and a `loop` at one of its last copy. Operations keep the ids the plan gives them. What the plan
leaves out (the other arm, the copies of a loop that are not run) is named with the decision, so that it is shown as skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from reference_runtime import documents
from reference_runtime.commands import Outcome
from reference_runtime.model import Json, arm
from reference_runtime.workflow import Context, OperationFailed, Workflow

GROUPS = frozenset({"seq", "par", "race", "branch", "loop"})
#: Fields of a leaf or group that name other operations of the same plan.
_NAMES = ("id", "on", "of")


async def interpret(ctx: Context, plan: Json) -> None:
    """Carry out a plan, as in `plan.parse`. Raises `OperationFailed` when one of its operations fails."""
    walk = _Walk(ctx)
    await walk.learn(plan["root"])
    await walk.run(plan["root"])


async def interpret_aside(ctx: Context, plan: Json) -> None:
    """The same in a branch of its own: it asks for the same elsewhere, so that neither goes on with the other's history."""
    walk = _Walk(ctx)
    await walk.learn(plan["root"])
    await ctx.gather(walk.run(plan["root"]))


INTERPRETER = Workflow(documents.INTERPRETER, "1", interpret)


@attrs.define(eq=False)
class _Walk:
    """One plan on its way: its context, its leaves by id, and the nonces that were accepted so far."""

    ctx: Context
    leaves: dict[str, Json] = attrs.field(factory=dict)
    nonces: dict[str, str | None] = attrs.field(factory=dict)
    told: set[str] = attrs.field(factory=set)  # leaves that were asked for, or said to be left out

    async def learn(self, *nodes: Json) -> None:
        """Get to know a piece of the plan before it is run, and note how to make up for what it does."""
        for leaf in (leaf for node in nodes for leaf in _leaves(node)):
            is_known = leaf["id"] in self.leaves
            self.leaves[leaf["id"]] = leaf
            if leaf["op"] == "compensate" and not is_known:
                await self.ctx.operation(leaf, waits=False)

    async def run(self, node: Json) -> None:
        match node["op"]:
            case "seq":
                for child in node["children"]:
                    await self.run(child)
            case "par":
                await self.ctx.gather(*(self.run(child) for child in node["children"]))
            case "race":
                await self._race(node)
            case "branch":
                await self._branch(node)
            case "loop":
                await self._loop(node)
            case "compensate":
                pass  # noted at the beginning: it stands outside the order
            case _:
                await self._leaf(node)

    async def _leaf(self, leaf: Json) -> None:
        self.told.add(leaf["id"])
        said = {**leaf, "action": self.leaves[leaf["of"]]} if leaf["op"] == "approve" else leaf
        outcome: Outcome = await self.ctx.operation(said)
        if outcome.state == "failed" and not leaf.get("tolerate"):
            raise OperationFailed(leaf["id"], outcome.reason)
        self.nonces[leaf["id"]] = (outcome.answer or {}).get("nonce") if outcome.state == "succeeded" else None

    async def _race(self, node: Json) -> None:
        if not node["children"]:
            return
        await self.ctx.race(*(self.run(child) for child in node["children"]))
        await self._decide("race", node["id"], node["children"])

    async def _branch(self, node: Json) -> None:
        taken, other = node["children"] if self._arm(node["on"]) == "A" else reversed(node["children"])
        await self._decide("branch", node["id"], [other], node["on"])
        await self.run(taken)

    async def _loop(self, node: Json) -> None:
        inside = {name for child in node["children"] for name in _ids(child)}
        for turn in range(1, node["times"] + 1):
            body = [_copy(child, turn, inside) for child in node["children"]]
            if turn > 1 and not await self._goes_on(node, turn, body, inside):
                return
            await self.learn(*body)
            for child in body:
                await self.run(child)

    async def _goes_on(self, node: Json, turn: int, body: list[Json], inside: set[str]) -> bool:
        """Whether copy `turn` of a loop runs; the decision is an operation of its own, one for each copy."""
        on = f"{node['on']}@{turn - 1}"
        goes_on = self._arm(on) == "B"
        await self._decide("branch", f"{node['id']}@{turn}", [] if goes_on else body, on)
        for later in range(turn + 1, 0 if goes_on else node["times"] + 1):
            left = [_copy(child, later, inside) for child in node["children"]]
            await self._decide("branch", f"{node['id']}@{later}", left, None)
        return goes_on

    async def _decide(self, kind: str, id_: str, left: list[Json], on: str | None = None) -> None:
        """Have a decision shown, with the leaves it leaves out; `on` None: it is left out itself."""
        others = [one for child in left for one in _everything(child) if one["id"] not in self.told]
        self.told.update((id_, *(one["id"] for one in others)))
        state = "skipped" if kind == "branch" and on is None else "succeeded"
        await self.ctx.operation({"op": kind, "id": id_, "of": on, "state": state, "others": others}, waits=False)

    def _arm(self, on: str) -> str:
        return arm(self.nonces.get(on))


def _leaves(node: Json) -> Iterator[Json]:
    """The leaves of a piece of a plan as it is written: a loop's body once, under the ids of its first copy."""
    if node["op"] not in GROUPS:
        yield node
        return
    children = node["children"]
    if node["op"] == "loop":
        inside = {name for child in children for name in _ids(child)}
        children = [_copy(child, 1, inside) for child in children]
    for child in children:
        yield from _leaves(child)


def _everything(node: Json) -> Iterator[Json]:
    """The operations that a piece of a plan would become, decisions and all copies of loops included."""
    if node["op"] not in GROUPS:
        if node["op"] != "compensate":
            yield node
        return
    if node["op"] in ("branch", "race"):
        yield {"op": node["op"], "id": node["id"], "of": node.get("on")}
    inside = {name for child in node["children"] for name in _ids(child)}
    for turn in range(1, node.get("times", 1) + 1):
        if turn > 1:
            yield {"op": "branch", "id": f"{node['id']}@{turn}", "of": f"{node['on']}@{turn - 1}"}
        for child in node["children"]:
            yield from _everything(_copy(child, turn, inside) if node["op"] == "loop" else child)


def _ids(node: Json) -> Iterator[str]:
    yield node["id"]
    for child in node.get("children", ()):
        yield from _ids(child)


def _copy(node: Json, turn: int, inside: set[str]) -> Json:
    """One copy of a piece of a loop's body: its ids, and its references to the body, are those of that copy."""

    def named(name: Any) -> Any:
        return f"{name}@{turn}" if name in inside else name

    copy = {**node, **{field: named(node[field]) for field in _NAMES if field in node}}
    if "carries" in node:
        copy["carries"] = [named(name) for name in node["carries"]]
    if "children" in node:
        copy["children"] = [_copy(child, turn, inside) for child in node["children"]]
    return copy
