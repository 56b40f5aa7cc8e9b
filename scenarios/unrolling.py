"""A tree of operations laid out flat: its leaves in order, what each waits for, and what each one's turn depends on.

Loops are unrolled into copies of their body, and the plans of children are taken in under `<child>/<id>`. What a layout
says about order is in its edges: `a → b` says that b may begin once a is accepted *or skipped*; only at the `Choice` of a
race is one of its children enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs

from scenarios.operation import (
    Approve,
    Artifact,
    Branch,
    Call,
    Check,
    Child,
    Choice,
    Compensate,
    Guard,
    Leaf,
    Loop,
    Model,
    Op,
    Par,
    Race,
    Seq,
)

LEAVES_MAX = 10_000
EDGES_MAX = 100_000


class PlanError(ValueError):
    """A plan that cannot be: says which operation, what was found and what was expected."""


@attrs.define
class Layout:
    """What a tree comes to. `inner` maps what is taken in from children to (path of the child, id there)."""

    leaves: dict[str, Leaf] = attrs.field(factory=dict)
    edges: list[tuple[str, str]] = attrs.field(factory=list)
    guards: dict[str, tuple[Guard, ...]] = attrs.field(factory=dict)
    inner: dict[str, tuple[str, str]] = attrs.field(factory=dict)

    def add(self, leaf: Leaf, before: list[str], guards: tuple[Guard, ...]) -> list[str]:
        if leaf.id in self.leaves:
            raise PlanError(f"operation id {leaf.id!r} is used twice once loops are unrolled; choose another")
        self.leaves[leaf.id] = leaf
        self.guards[leaf.id] = guards
        if not isinstance(leaf, Compensate):
            self.edges.extend((earlier, leaf.id) for earlier in before)
        if len(self.leaves) > LEAVES_MAX or len(self.edges) > EDGES_MAX:
            raise PlanError(
                f"operation {leaf.id!r}: a plan has at most {LEAVES_MAX} leaves and {EDGES_MAX} dependencies"
            )
        return before if isinstance(leaf, Compensate) else [leaf.id]


def lay_out(root: Op) -> Layout:
    """The layout of a plan's root. Raises `PlanError` when it grows too large or ids meet."""
    layout = Layout()
    _lay(layout, root, [], ())
    return layout


def walk(op: Op) -> Iterator[Op]:
    """An operation and everything in it, parents before children, in written order; children's plans are their own."""
    yield op
    if isinstance(op, Seq | Par | Race | Branch | Loop):
        for child in op.children:
            yield from walk(child)


def _lay(layout: Layout, op: Op, before: list[str], guards: tuple[Guard, ...]) -> list[str]:
    """Lay out `op`, which begins after `before`; return the leaves whose end is the end of `op`."""
    match op:
        case Seq():
            for child in op.children:
                before = _lay(layout, child, before, guards)
            return before
        case Par():
            ends = [end for child in op.children for end in _lay(layout, child, before, guards)]
            return list(dict.fromkeys(ends)) or before
        case Race():
            return _lay_race(layout, op, before, guards)
        case Branch():
            return _lay_branch(layout, op, before, guards)
        case Loop():
            return _lay_loop(layout, op, before, guards)
        case Child():
            return _lay_child(layout, op, before, guards)
        case _:
            return layout.add(op, before, guards)


def _lay_race(layout: Layout, op: Race, before: list[str], guards: tuple[Guard, ...]) -> list[str]:
    ends: list[str] = []
    for number, child in enumerate(op.children):
        last = _lay(layout, child, before, (*guards, Guard(op.id, "race", number)))
        if last == before:
            raise PlanError(
                f"race {op.id!r}: its child {child.id!r} has nothing to work at; each needs a leaf that ends"
            )
        ends += last
    return layout.add(Choice(op.id, "race"), list(dict.fromkeys(ends)), guards)


def _lay_branch(layout: Layout, op: Branch, before: list[str], guards: tuple[Guard, ...]) -> list[str]:
    after = layout.add(Choice(op.id, "branch", op.on), before, guards)
    ends = [
        end
        for number, child in enumerate(op.children)
        for end in _lay(layout, child, after, (*guards, Guard(op.id, "branch", number)))
    ]
    return list(dict.fromkeys(ends)) or after


def _lay_loop(layout: Layout, op: Loop, before: list[str], guards: tuple[Guard, ...]) -> list[str]:
    names = {inner.id for child in op.children for inner in walk(child)}
    for number in range(1, op.times + 1):
        if number > 1:
            again = f"{op.id}@{number}"
            before = layout.add(Choice(again, "loop", f"{op.on}@{number - 1}"), before, guards)
            guards = (*guards, Guard(again, "loop", 1))
        for child in op.children:
            copy = renamed(child, lambda name, number=number: f"{name}@{number}" if name in names else name)  # type: ignore[misc]
            before = _lay(layout, copy, before, guards)
    return before


def _lay_child(layout: Layout, op: Child, before: list[str], guards: tuple[Guard, ...]) -> list[str]:
    within = (*guards, Guard(op.id, "detached", 0)) if op.detached else guards
    known = set(layout.leaves)
    ends = _lay(layout, renamed(op.root, lambda name: f"{op.id}/{name}"), before, within)
    for name in layout.leaves:
        if name not in known:
            # A child of this child has told its own already.
            layout.inner.setdefault(name, (op.id, name.removeprefix(f"{op.id}/")))
    return layout.add(op, before if op.detached else ends, guards)


def renamed(op: Op, name: Callable[[str], str]) -> Op:
    """The same tree with other ids, in references too. Plans of children keep theirs, as they are read by themselves."""
    match op:
        case Seq() | Par() | Race():
            return attrs.evolve(op, id=name(op.id), children=tuple(renamed(child, name) for child in op.children))
        case Branch() | Loop():
            children = tuple(renamed(child, name) for child in op.children)
            return attrs.evolve(op, id=name(op.id), on=name(op.on), children=children)
        case Call() | Model() | Artifact():
            return attrs.evolve(op, id=name(op.id), carries=tuple(name(one) for one in op.carries))
        case Approve() | Check() | Compensate():
            return attrs.evolve(op, id=name(op.id), of=name(op.of))
        case _:
            return attrs.evolve(op, id=name(op.id))
