"""Plans as the runtime reads them: a JSON tree in, a flat list of steps with their dependencies out.

`{"version": 1, "root": {"op": "seq", "id": "r", "children": [{"op": "call", "id": "a", "service": "ledger", …}, …]}}`

Only leaves are operations; groups are spelt out as dependencies between them, so that what may run next is a question about
rows and never about a position in a tree. `seq` and `par` leave nothing behind; a `branch` and a `race` leave one operation
each that the store itself decides (their arms are *guarded* by it); a `loop` is written out, turn by turn, with a branch
before every turn but the first. A `compensate` leaf stands outside the order altogether.

Four hundred bytes can be written that come to millions of operations. So what a plan comes to is counted while it is read,
children and all, and the reading ends where a limit does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeAlias

import attrs

from reference_runtime.guessing import meant
from reference_runtime.ids import fault_of
from reference_runtime.leaves import (
    COUNT_MAX,
    READERS,
    PlanError,
    Step,
    Tools,
    count,
    field,
    read_leaf,
    wrong,
)
from reference_runtime.model import AMOUNT_MAX, Json, Refusal, approval_digest, canonical
from reference_runtime.promises import KNOWN

__all__ = ["PlanError", "Step", "Terms", "approval_digest", "parse", "read_again", "terms"]

#: With all turns of loops, and all that children have.
OPERATIONS_MAX = 10_000
#: The most bytes of all these operations together, as they are stored.
STORED_MAX = 16 * 1024 * 1024
EDGES_MAX = 100_000
DEPTH_MAX = 100
CHILDREN_DEEP_MAX = 10
GROUPS = ("seq", "par", "race", "branch", "loop")
TOP_LEVEL = ("version", "root", "allowance", "deadline_ns", "code")
ALLOWANCES = ("calls", "tokens", "elapsed_ns", "concurrency")
RESERVES = ("calls", "tokens")

Guards: TypeAlias = tuple[tuple[str, str], ...]


@attrs.frozen
class Terms:
    """What holds for a whole task: the allowance as JSON (empty: unlimited), the time it may take, the code it needs."""

    allowance: Mapping[str, Any] = attrs.field(factory=dict)
    deadline_ns: int | None = None
    code: str | None = None


@attrs.define
class _Sum:
    """What a plan and its children come to, as far as they were read."""

    operations: int = 0
    stored: int = 0  # bytes


def parse(data: object, tools: Tools = KNOWN) -> tuple[Step, ...]:
    """The steps of a plan that calls these tools, in written order; the plans of its children are read too. Raises `PlanError`,
    or `Refusal` with `too-large` for one that comes to more than `STORED_MAX`.
    """
    return _parse(data, tools, _Sum(), 0)


def read_again(data: object, tools: Tools = KNOWN) -> tuple[Step, ...]:
    """The steps of a plan that was admitted, by itself or in that of a parent; limits are for what is new."""
    return _parse(data, tools, None, 0)


def _parse(data: object, tools: Tools, total: _Sum | None, depth: int) -> tuple[Step, ...]:
    """`total` takes what the plan comes to, None for one that was admitted; `depth` says how many parents it has."""
    if depth > CHILDREN_DEEP_MAX:
        raise PlanError(f"children have children {depth} deep; at most {CHILDREN_DEEP_MAX}")
    plan = _checked(data)
    terms(plan)
    reader = _Reader(tools, total, [] if total is None else _written(plan["root"]))
    reader.read(plan["root"], (), (), 0)
    _bind_approvals(reader.steps)
    before = _Before(reader.steps)
    for step in reader.steps.values():
        _check_references(reader.steps, before, step)
        if step.kind == "child" and total is not None:
            _parse(step.more["plan"], tools, total, depth + 1)
            check_share(step)
    return tuple(reader.steps.values())


def check_share(child: Step) -> None:
    """Refuse what cannot be set aside for a child. Raises `PlanError`."""
    _check_amounts(child.more.get("share") or {}, ALLOWANCES, f"share of {child.id!r}")


def terms(data: object, workflow: str | None = None) -> Terms:
    """What a plan, or the document of a `workflow`, says about its task as a whole. Raises `PlanError`."""
    named = {"op": "plan"} if workflow is None else {"op": "workflow", "id": workflow}
    plan = {**named, **_checked(data)}
    if unknown := [name for name in plan if name not in (*TOP_LEVEL, "op", "id")]:
        raise PlanError(
            f"a plan has no {', '.join(unknown)}; it has {', '.join(TOP_LEVEL)}{meant(unknown[0], TOP_LEVEL)}"
        )
    allowance = field(plan, "allowance", dict, {})
    _check_amounts(allowance, ALLOWANCES, "allowance")
    _check_amounts(allowance.get("reserve") or {}, RESERVES, "allowance reserve")
    deadline = None if plan.get("deadline_ns") is None else count(plan, "deadline_ns", 0)
    return Terms(allowance, deadline, None if plan.get("code") is None else field(plan, "code", str))


def is_first_version(version: object) -> bool:
    """Whether a document is of the version there is: the number, and neither yes nor 1.0, which Python takes for the same."""
    return type(version) is int and version == 1


def _checked(data: object) -> Json:
    if not isinstance(data, dict) or not is_first_version(data.get("version")) or "root" not in data:
        raise PlanError(f"a plan is an object with version 1 and a root; got {data!r:.120}")
    return data


def _check_amounts(amounts: Json, known: tuple[str, ...], what: str) -> None:
    for name, amount in amounts.items():
        if name == "reserve" and what == "allowance" and isinstance(amount, dict):
            continue
        most = COUNT_MAX if name == "elapsed_ns" else AMOUNT_MAX
        is_whole = isinstance(amount, int) and not isinstance(amount, bool) and 0 <= amount <= most
        if name not in known or not is_whole:
            expected = f"a whole number of {', '.join(known)}, at most {most}"
            raise PlanError(f"{what} {name!r:.80} is {amount!r:.80}; expected {expected}")


class _Reader:
    """Walks the tree once, collecting steps; `read` returns the steps whose end is the end of what was read.

    `written`: the ids in the tree, as they are written.
    """

    def __init__(self, tools: Tools, total: _Sum | None, written: Sequence[str]) -> None:
        self.tools = tools
        self.total = total
        self.stems = {_stem(name) for name in written}
        self.names: dict[str, str] = {}  # what the operations of the loops around are called in the turn that is read
        self.steps: dict[str, Step] = {}
        self.ids: set[str] = set()
        self.edges = 0
        self.groups: Mapping[str, Callable[[Json, str, tuple[str, ...], Guards, int], tuple[str, ...]]] = {
            "seq": self._seq,
            "par": self._par,
            "race": self._race,
            "branch": self._branch,
            "loop": self._loop,
        }

    def read(self, data: object, before: tuple[str, ...], guards: Guards, depth: int) -> tuple[str, ...]:
        kind, one, name = self._head(data, depth)
        if kind in self.groups:
            return self.groups[kind](one, name, before, guards, depth + 1)
        step = self._leaf(kind, one, name)
        if kind == "compensate":
            self._add(step, (), guards)
            return before
        return self._add(step, before, guards)

    def _leaf(self, kind: str, data: Json, name: str) -> Step:
        step = read_leaf(kind, data, self.tools)
        if self.total is not None:
            self._check_carries(step)
        if not self.names:
            return step
        subject = None if step.subject is None else self._named(step.subject)
        return attrs.evolve(step, id=name, subject=subject, carries=tuple(map(self._named, step.carries)))

    def _seq(self, data: Json, _: str, before: tuple[str, ...], guards: Guards, depth: int) -> tuple[str, ...]:
        for child in _children(data):
            before = self.read(child, before, guards, depth)
        return before

    def _par(self, data: Json, _: str, before: tuple[str, ...], guards: Guards, depth: int) -> tuple[str, ...]:
        ends: dict[str, None] = {}
        is_new = is_passed = False
        for child in _children(data):
            end = self.read(child, before, guards, depth)
            if end is not before or not is_passed:  # thousands of empty branches hand on the same thousands of ends
                ends.update(dict.fromkeys(end))
            is_new, is_passed = is_new or end is not before, is_passed or end is before
        return tuple(ends) if is_new else before

    def _race(self, data: Json, name: str, before: tuple[str, ...], guards: Guards, depth: int) -> tuple[str, ...]:
        ends = []
        for number, child in enumerate(_children(data)):
            ends.append(self.read(child, before, (*guards, (name, str(number))), depth))
            if set(ends[-1]) <= set(before):
                raise wrong(data, f"child {number} has no operation in it, so it would win before anything began")
        if not ends:
            return before
        return self._add(Step(name, "race", ends=tuple(ends)), before, guards)

    def _branch(self, data: Json, name: str, before: tuple[str, ...], guards: Guards, depth: int) -> tuple[str, ...]:
        children = _children(data)
        if len(children) != 2:
            raise wrong(data, f"{len(children)} children; expected two, A and B")
        gate = self._add(Step(name, "branch", subject=self._named(field(data, "on", str))), before, guards)
        arms = zip("AB", children, strict=True)
        ends = [end for arm, child in arms for end in self.read(child, gate, (*guards, (name, arm)), depth)]
        return tuple(dict.fromkeys(ends))

    def _loop(self, data: Json, name: str, before: tuple[str, ...], guards: Guards, depth: int) -> tuple[str, ...]:
        body, on = _children(data), field(data, "on", str)
        outside = {one: self._named(one) for one in _ids(body)}
        if on not in outside:
            raise wrong(data, f"on is {on!r}; expected an operation of its body")
        guarded = guards  # by the last gate only, which the one before it guards: else a loop grows with its square
        for turn in range(1, count(data, "times", 1) + 1):
            if turn > 1:
                gate = f"{name}@{turn}"
                self._admit(gate, depth)
                before = self._add(Step(gate, "branch", subject=self._named(on)), before, guarded)
                guarded = (*guards, (gate, "B"))
            self.names.update((one, f"{called}@{turn}") for one, called in outside.items())
            for child in body:
                before = self.read(child, before, guarded, depth)
        self.names.update(outside)
        return before

    def _named(self, name: str) -> str:
        """What an operation of this name is called in the turns that are read; one from outside of them stays what it is."""
        return self.names.get(name, name)

    def _add(self, step: Step, before: tuple[str, ...], guards: Guards) -> tuple[str, ...]:
        self.edges += len(before) + len(guards)
        if self.edges > EDGES_MAX:
            raise PlanError(f"the plan has more than {EDGES_MAX} dependencies; put a step between its wide branches")
        if self.total is not None:
            self.total.stored += len(canonical(step.spec).encode())
            if self.total.stored > STORED_MAX:
                raise Refusal(
                    "too-large",
                    f"the operations of the plan, with all turns of loops and what children have, take {self.total.stored}"
                    f" bytes as far as {step.id!r}; at most {STORED_MAX}",
                )
        self.steps[step.id] = attrs.evolve(step, needs=before, guards=guards)
        return (step.id,)

    def _check_carries(self, step: Step) -> None:
        """Refuse what no plan of these ids can carry, before it is written out for every turn. Raises `PlanError`."""
        if len(set(step.carries)) < len(step.carries):
            twice = next(name for name, times in Counter(step.carries).items() if times > 1)
            raise PlanError(f"{step.kind} {step.id!r} carries {twice!r:.80} twice")
        if lost := [name for name in step.carries if _stem(name) not in self.stems]:
            raise _lost(step, lost)

    def _head(self, data: object, depth: int) -> tuple[str, Json, str]:
        if not isinstance(data, dict):
            raise PlanError(f"an operation is an object; got {data!r:.80}")
        kind, id_ = data.get("op"), data.get("id")
        if not isinstance(kind, str) or (kind not in GROUPS and kind not in READERS):
            kinds = (*GROUPS, *READERS)
            raise PlanError(
                f"operation {id_!r:.80}: op {kind!r:.80}; expected {', '.join(kinds)}{meant(str(kind), kinds)}"
            )
        return kind, data, self._admit(self._named(id_) if isinstance(id_, str) else id_, depth)

    def _admit(self, id_: object, depth: int) -> str:
        if not isinstance(id_, str):
            raise PlanError(f"operation id {id_!r:.80} is no string; each operation needs an id of its own")
        if id_ in self.ids:
            raise PlanError(f"operation id {id_!r:.80} is used twice; each operation needs an id of its own")
        if (fault := fault_of(id_)) is not None:
            raise PlanError(f"operation id {id_!r:.80} {fault}")
        if "~" in id_:
            raise PlanError(f"operation id {id_!r} has a ~ in it; that is kept for operations the runtime makes itself")
        if depth > DEPTH_MAX:
            raise _too_long(id_)
        if self.total is not None:
            if self.total.operations >= OPERATIONS_MAX:
                raise _too_long(id_)
            self.total.operations += 1
        self.ids.add(id_)
        return id_


def _children(data: Json) -> list[object]:
    children: list[object] = field(data, "children", list)
    return children


def _written(root: object) -> list[str]:
    """The ids in a plan, each turn of a loop not yet counted. Raises `PlanError` where these are too many."""
    ids = list(islice(_ids([root]), OPERATIONS_MAX + 1))
    if len(ids) > OPERATIONS_MAX:
        raise _too_long(ids[-1])
    return ids


def _ids(body: Sequence[object]) -> Iterator[str]:
    """The ids in a body as it is written, groups included; what is malformed is found when it is read."""
    todo = [*body]
    for one in todo:  # which grows meanwhile
        if isinstance(one, dict) and isinstance(one.get("id"), str):
            yield one["id"]
            if one.get("op") in GROUPS and isinstance(one.get("children"), list):
                todo += one["children"]


def _stem(name: str) -> str:
    """What all turns of an operation have in common."""
    return name.partition("@")[0]


def _too_long(id_: str) -> PlanError:
    most = f"{OPERATIONS_MAX} long with all turns of loops and what children have"
    return PlanError(f"operation {id_!r:.80}: a plan is at most {DEPTH_MAX} deep, {most}")


def _lost(step: Step, names: Sequence[str]) -> PlanError:
    return PlanError(
        f"{step.kind} {step.id!r} carries {names!r:.200}, which are not finished before it, if they are there"
    )


def _bind_approvals(steps: dict[str, Step]) -> None:
    """Make every operation that needs an approval wait for it; where approvals wait for each other, `_Before` finds out."""
    before = _Before(steps)
    for step in list(steps.values()):
        if step.kind != "approve":
            continue
        gated = _target(steps, step, ("call", "model"))
        if before.precedes(gated.id, step):
            raise PlanError(f"approve {step.id!r}: of is {gated.id!r}, which stands before it; expected a later call")
        if apart := [gate for gate, _ in set(step.guards) - set(gated.guards)]:  # it may be skipped, and never be asked
            raise PlanError(
                f"approve {step.id!r} depends on which way {min(apart)!r} goes, and {gated.id!r} does not;"
                " expected both in one arm, turn or child of it, or the approve outside of it"
            )
        if not before.precedes(step.id, gated):
            steps[gated.id] = attrs.evolve(gated, needs=(*gated.needs, step.id))


def _check_references(steps: Mapping[str, Step], before: _Before, step: Step) -> None:
    if lost := [name for name in step.carries if not before.precedes(name, step)]:
        raise _lost(step, lost)
    if step.kind == "branch" and not before.precedes(step.subject or "", step):
        raise PlanError(f"branch {step.id!r}: on is {step.subject!r}; expected an operation that ends before it")
    if step.kind == "compensate":
        _target(steps, step, ("call",))
    if step.kind == "check" and not before.precedes(_target(steps, step, ("artifact",)).id, step):
        raise PlanError(f"check {step.id!r}: of is {step.subject!r}; expected an artifact that ends before it")


def _target(steps: Mapping[str, Step], step: Step, kinds: tuple[str, ...]) -> Step:
    """The operation that a step is about. Raises `PlanError` when there is none of these kinds."""
    found = steps.get(step.subject or "")
    if found is None or found.kind not in kinds:
        what = "no operation" if found is None else f"a {found.kind}"
        raise PlanError(f"{step.kind} {step.id!r}: of is {step.subject!r}, {what}; expected a {' or '.join(kinds)}")
    return found


class _Before:
    """What stands before each step, as a set of bits: a plan may carry from thousands of steps to thousands of others.

    Raises `PlanError` for a step that stands before itself.
    """

    def __init__(self, steps: Mapping[str, Step]) -> None:
        self._bits = {name: 1 << number for number, name in enumerate(steps)}
        self._known: dict[str, int] = {}
        for name in steps:
            self._walk(steps, name)

    def precedes(self, name: str, step: Step) -> bool:
        """Whether `name` is among everything `step` waits for, directly or not; of a race, among what it may wait for."""
        return bool(self._bits.get(name, 0) & self._known[step.id])

    def _walk(self, steps: Mapping[str, Step], name: str) -> None:
        todo, begun = [name], set[str]()
        while todo:
            if todo[-1] in self._known:
                todo.pop()
                continue
            needs = _needs(steps[todo[-1]])
            if unknown := [need for need in needs if need not in self._known]:
                if todo[-1] in begun:
                    raise PlanError(
                        f"operation {todo[-1]!r} waits for itself, by approvals that wait for each other's calls"
                    )
                begun.add(todo[-1])
                todo += unknown
                continue
            one = todo.pop()
            self._known[one] = 0
            for need in needs:
                self._known[one] |= self._bits[need] | self._known[need]


def _needs(step: Step) -> tuple[str, ...]:
    return (*step.needs, *(end for ends in step.ends for end in ends))
