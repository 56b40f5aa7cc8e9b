"""A plan pared down: what is left when operations, groups and details of it are left out, whatever goes with what.

Everything that can be left out is asked of one function, `take`, under a label and a key: an operation (`OPERATION`), the order
or decision that a group is (`GROUP`: without it, its body is worked in sequence), a detail of an operation (`DETAIL`: an
option, the length of a script, a number). Keys of what a child does have the path of the child before them.

What is left always is a plan that can be run. What cannot stand alone goes with what it stands on: an approval with its call,
the decision of a branch with the answer that decides it, the rounds of a loop with the answer that repeats it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import attrs

from conformance.reducible import (
    GROUPS,
    alone,
    first_of,
    has_end,
    holds_work,
    is_empty,
    is_leaf,
    leaves_of,
    numbers,
    options_of,
    or_none,
    restemmed,
    working_of,
)
from scenarios.operation import (
    Approve,
    Artifact,
    Branch,
    Call,
    Check,
    Child,
    Choice,
    Compensate,
    Group,
    Leaf,
    Loop,
    Model,
    Op,
    Par,
    Race,
    Seq,
)
from scenarios.plan import Plan, PlanError
from scenarios.unrolling import Layout, lay_out, walk

T = TypeVar("T")

#: Labels of the streams that these choices are made on.
OPERATION, GROUP, DETAIL = "operation", "group", "detail"
#: `take(label, key, n)` is a number below `n`; the highest keeps everything as it is written.
Take = Callable[[str, str, int], int]


@attrs.frozen
class Pared:
    """A plan that is left, and what became of the leaves of the whole: their names in it, None for those that are gone."""

    plan: Plan
    names: Mapping[str, str | None]


def pare(plan: Plan, take: Take) -> Pared:
    """What `take` keeps of a plan: at least one operation."""
    return _Paring(plan, take).made()


@attrs.frozen
class _Scope:
    """Where operations are read: the run itself, or a child, whose operations may be taken into their owner."""

    path: str = ""  # of the child, with a slash
    stem: str = ""  # before ids of operations that were taken in
    refs: Mapping[str, str | None] = attrs.field(factory=dict)

    def ref(self, name: str) -> str:
        """A reference as it is now. One to what is gone stays, and is mended."""
        return self.refs.get(name) or name


@attrs.frozen
class _Place:
    """Where a trace is: how leaves are called in the whole plan and in what is left; `gone` for nothing left here."""

    path: str = ""
    old_at: str = ""
    old_suffix: str = ""
    new_at: str = ""
    stem: str = ""
    new_suffix: str = ""
    gone: bool = False

    def old(self, op: Op) -> str:
        return f"{self.old_at}{op.id}{self.old_suffix}"

    def new(self, op: Op) -> str:
        return f"{self.new_at}{self.stem}{op.id}{self.new_suffix}"


class _Paring:
    """Builds what is left, looks what of it hangs in the air, and builds again without that, until nothing does."""

    def __init__(self, plan: Plan, take: Take) -> None:
        self._plan, self._take = plan, take
        self._told: dict[tuple[str, str], int] = {}
        self._forced: set[str] = set()  # kept, as nothing else is
        self._lost: set[str] = set()  # of no use without what is gone
        self._loosened: set[str] = set()  # groups that cannot be what they were
        self._unread: set[tuple[str, str]] = (
            set()
        )  # carried answers that nobody gives any more, by who would carry them
        self._flat = False
        self._built: dict[str, Op] = {}  # leaves by path

    def made(self) -> Pared:
        while True:
            self._enter(self._plan.root, "")
            try:
                root = self._root(self._plan.root, _Scope(refs=self._refs(self._plan.root, "")))
                if not self._mended(lay_out(root)):
                    plan = attrs.evolve(self._plan, root=root, **self._limits())
                    return Pared(plan, {old: new for old, new, _ in self._trace(self._plan.root, _Place())})
            except PlanError:  # with a group less, its neighbours meet: too many dependencies, or two ids that are one
                if self._flat:
                    return self._single()
                self._flat = True

    def _single(self) -> Pared:
        root = alone(self._plan.root)
        name = first_of(self._plan.root).id
        return Pared(
            attrs.evolve(self._plan, root=root),
            {leaf.id: name if leaf.id == name else None for leaf in self._plan.leaves()},
        )

    def _limits(self) -> dict[str, Any]:
        """What is said of the whole plan."""
        return {
            name: self._detail("plan", name, or_none(getattr(self._plan, name)))
            for name in ("allowance", "deadline_ns", "code")
        }

    # --- decisions ------------------------------------------------------------------------------------------------

    def _ask(self, label: str, key: str, n: int) -> int:
        """Ask once; what a choice is not asked for keeps nothing."""
        if (label, key) not in self._told:
            self._told[label, key] = self._take(label, key, n)
        return self._told[label, key]

    def _detail(self, path: str, field: str, options: tuple[T, ...]) -> T:
        return options[0] if len(options) == 1 else options[self._ask(DETAIL, f"{path}.{field}", len(options))]

    def _has(self, path: str) -> bool:
        return path in self._forced or (path not in self._lost and self._ask(OPERATION, path, 2) == 1)

    def _is_loose(self, path: str) -> bool:
        """Is a group no more than what it holds?"""
        return path in self._loosened or self._flat or self._ask(GROUP, path, 2) == 0

    def _is_dissolved(self, op: Op, path: str) -> bool:
        return not is_leaf(op) and self._is_loose(path)

    def _is_taken_in(self, path: str) -> bool:
        """Does the owner work what its child did?"""
        return not self._flat and self._ask(GROUP, path, 2) == 0

    def _lives(self, op: Op, path: str) -> bool:
        return any(self._has(path + leaf.id) for leaf in leaves_of(op))

    def _times(self, op: Loop, path: str) -> int:
        return op.times if is_leaf(op) else self._detail(path, "times", numbers(1, op.times))

    # --- building -------------------------------------------------------------------------------------------------

    def _enter(self, root: Op, path: str) -> None:
        """See to it that some work is left of a run."""
        working = working_of(root)
        if len(working) == 1 or not any(self._has(path + leaf.id) for leaf in working):
            self._forced.add(path + first_of(root).id)

    def _root(self, root: Op, scope: _Scope) -> Op:
        parts = self._run(root, scope)
        if isinstance(root, Seq) and holds_work(root):
            return Seq(scope.stem + root.id, parts)
        return parts[0] if len(parts) == 1 else Seq(scope.stem + root.id, parts)

    def _run(self, root: Op, scope: _Scope) -> tuple[Op, ...]:
        """What is left of a run, in sequence. The sequence that a run mostly is counts for no group."""
        if isinstance(root, Seq) and holds_work(root):
            return self._sequence(root.children, scope)
        return self._parts(root, scope, in_sequence=True)

    def _sequence(self, children: tuple[Op, ...], scope: _Scope) -> tuple[Op, ...]:
        return tuple(part for child in children for part in self._parts(child, scope, in_sequence=True))

    def _parts(self, op: Op, scope: _Scope, *, in_sequence: bool) -> tuple[Op, ...]:
        """What is left of an operation, to be worked in sequence."""
        path = scope.path + op.id
        if is_leaf(op):
            return self._leaf(op, path, scope) if self._has(path) else ()
        if not self._lives(op, scope.path):
            return ()
        if isinstance(op, Seq):
            parts = self._sequence(op.children, scope)
            dissolves = in_sequence or len(parts) < 2
            return parts if not parts or (dissolves and self._is_loose(path)) else (Seq(scope.stem + op.id, parts),)
        assert isinstance(op, GROUPS)
        if self._is_loose(path):
            return self._sequence(op.children, scope)
        left = self._group(op, path, scope)
        return () if left is None else (left,)

    def _group(self, op: Group, path: str, scope: _Scope) -> Op | None:
        """A group as what it is, with what is left of its children."""
        id_ = scope.stem + op.id
        match op:
            case Loop():
                body = self._sequence(op.children, scope)
                return (
                    attrs.evolve(op, id=id_, on=scope.stem + op.on, children=body, times=self._times(op, path))
                    if body
                    else None
                )
            case Branch():
                arms = [self._arm(child, scope) for child in op.children]
                if not any(arms):
                    return None
                whole = tuple(
                    arm or Seq(scope.stem + child.id, ()) for arm, child in zip(arms, op.children, strict=True)
                )
                return attrs.evolve(op, id=id_, on=scope.ref(op.on), children=whole)
            case _:
                children = [arm for child in op.children if (arm := self._arm(child, scope)) is not None]
                left = tuple(arm for arm in children if not isinstance(op, Race) or has_end(arm))
                return attrs.evolve(op, id=id_, children=left) if left else None

    def _arm(self, child: Op, scope: _Scope) -> Op | None:
        """One operation for what is left of a child of a group whose children are not in sequence."""
        if is_empty(child):
            return attrs.evolve(child, id=scope.stem + child.id)
        parts = self._parts(child, scope, in_sequence=False)
        return (parts[0] if len(parts) == 1 else Seq(scope.stem + child.id, parts)) if parts else None

    def _leaf(self, op: Op, path: str, scope: _Scope) -> tuple[Op, ...]:
        stem = scope.stem
        if isinstance(op, GROUPS):  # one that holds nothing to work
            return (restemmed(op, stem),)
        if isinstance(op, Child):
            if self._is_taken_in(path):
                inner = f"{stem}{op.id}."
                return self._run(op.root, _Scope(f"{path}/", inner, self._refs(op.root, f"{path}/", inner)))
            root = self._root(op.root, _Scope(f"{path}/", refs=self._refs(op.root, f"{path}/")))
            self._built[path] = attrs.evolve(op, root=root, id=stem + op.id, **self._details(op, path))
            return (self._built[path],)
        said = self._references(op, path, scope) | self._details(op, path)
        left = attrs.evolve(op, id=stem + op.id, **said)
        self._built[path] = left
        return (left,)

    def _references(self, op: Op, path: str, scope: _Scope) -> dict[str, Any]:
        """What an operation says of others, as they are called now."""
        match op:
            case Approve() | Check() | Compensate():
                return {"of": scope.ref(op.of)}
            case Call() | Model() | Artifact():
                carries = tuple(name for one in op.carries if (path, name := scope.ref(one)) not in self._unread)
                return {"carries": self._detail(path, "carries", ((), carries) if carries else ((),))}
            case _:
                return {}

    def _details(self, op: Op, path: str) -> dict[str, Any]:
        return {field: self._detail(path, field, options) for field, options in options_of(op)}

    # --- names ----------------------------------------------------------------------------------------------------

    def _refs(self, root: Op, path: str, stem: str = "") -> dict[str, str | None]:
        """How what a run's operations say of each other is called now."""
        found = {old: new for old, new, _ in self._trace(root, _Place(path, stem=stem))}
        return found | {op.id: stem + op.id for op in walk(root)}

    def _trace(self, op: Op, at: _Place) -> Iterator[tuple[str, str | None, str]]:
        """Every leaf once loops are unrolled: its name in the whole plan, its name in what is left, and its path."""
        path = at.path + op.id
        if is_empty(op):
            return
        if not at.gone and not self._lives(op, at.path):
            at = attrs.evolve(at, gone=True)
        match op:
            case Loop():
                yield from self._trace_loop(op, at)
            case Branch() | Race():
                yield at.old(op), None if at.gone or self._is_dissolved(op, path) else at.new(op), path
                for child in op.children:
                    yield from self._trace(child, at)
            case Seq() | Par():
                for child in op.children:
                    yield from self._trace(child, at)
            case Child():
                yield from self._trace_child(op, at)
            case _:
                yield at.old(op), None if at.gone else at.new(op), path

    def _trace_loop(self, op: Loop, at: _Place) -> Iterator[tuple[str, str | None, str]]:
        path = at.path + op.id
        loose = not at.gone and self._is_dissolved(op, path)
        times = 0 if at.gone else 1 if loose else self._times(op, path)
        for number in range(1, op.times + 1):
            mark = f"@{number}"
            gone = number > times
            if number > 1:
                yield at.old(op) + mark, None if gone else at.new(op) + mark, path
            suffix = at.new_suffix if loose else at.new_suffix + mark
            there = attrs.evolve(at, old_suffix=at.old_suffix + mark, new_suffix=suffix, gone=gone)
            for child in op.children:
                yield from self._trace(child, there)

    def _trace_child(self, op: Child, at: _Place) -> Iterator[tuple[str, str | None, str]]:
        path = at.path + op.id
        if not at.gone:
            self._enter(op.root, f"{path}/")
        taken_in = not at.gone and self._is_taken_in(path)
        yield at.old(op), None if at.gone or taken_in else at.new(op), path
        inside = attrs.evolve(at, path=f"{path}/", old_at=f"{at.old(op)}/", old_suffix="")
        if taken_in:
            yield from self._trace(op.root, attrs.evolve(inside, stem=f"{at.stem}{op.id}."))
        else:
            yield from self._trace(op.root, attrs.evolve(inside, new_at=f"{at.new(op)}/", stem="", new_suffix=""))

    # --- mending --------------------------------------------------------------------------------------------------

    def _mended(self, layout: Layout) -> bool:
        """Note what hangs in the air; was there anything?"""
        import networkx as nx

        before = len(self._lost), len(self._loosened), len(self._unread)
        graph: nx.DiGraph[str] = nx.DiGraph(layout.edges)
        graph.add_nodes_from(layout.leaves)
        paths = {new: path for _, new, path in self._trace(self._plan.root, _Place()) if new is not None}
        undone: set[str] = set()
        for leaf in layout.leaves.values():
            if isinstance(leaf, Call | Model | Artifact | Choice | Check | Approve | Compensate):
                self._mend(leaf, paths[leaf.id], layout.leaves, graph, undone)
        return before != (len(self._lost), len(self._loosened), len(self._unread))

    def _mend(self, leaf: Leaf, path: str, leaves: Mapping[str, Leaf], graph: Any, undone: set[str]) -> None:
        import networkx as nx

        match leaf:
            case Call() | Model() | Artifact():
                earlier = nx.ancestors(graph, leaf.id) if leaf.carries else set()
                written = self._built[path].carries  # type: ignore[union-attr]
                self._unread |= {
                    (path, name) for name, one in zip(written, leaf.carries, strict=True) if one not in earlier
                }
            case Choice():
                if leaf.on is not None and leaf.on not in nx.ancestors(graph, leaf.id):
                    self._loosened.add(path)
                    self._lost.add(path)  # where it holds nothing to work, and goes as a whole
            case Check():
                if leaf.of not in nx.ancestors(graph, leaf.id) or not isinstance(leaves[leaf.of], Artifact):
                    self._lost.add(path)
            case Approve():
                if not isinstance(leaves.get(leaf.of), Call | Model) or leaf.id not in nx.ancestors(graph, leaf.of):
                    self._lost.add(path)
            case Compensate():
                if not isinstance(leaves.get(leaf.of), Call) or leaf.of in undone:
                    self._lost.add(path)
                undone.add(leaf.of)
