"""Plans as the runtime reads them: a JSON tree in, a flat list of steps with their dependencies out.

`{"version": 1, "root": {"op": "seq", "id": "r", "children": [{"op": "call", "id": "a", "service": "ledger", …}, …]}}`

Only leaves are operations; groups are spelt out as dependencies between them, so that what may run next is a question about
rows and never about a position in a tree. `seq` and `par` leave nothing behind; a `branch` and a `race` leave one operation
each that the store itself decides (their arms are *guarded* by it); a `loop` is written out, copy by copy, with a branch
before every copy but the first. A `compensate` leaf stands outside the order altogether.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

import attrs

from reference_runtime.ids import fault_of
from reference_runtime.leaves import (
    COUNT_MAX,
    READERS,
    SEMANTICS,
    PlanError,
    Step,
    Tools,
    count,
    field,
    read_leaf,
    wrong,
)
from reference_runtime.model import AMOUNT_MAX, Json, approval_digest

__all__ = ["SEMANTICS", "PlanError", "Step", "Terms", "approval_digest", "parse", "terms"]

OPERATIONS_MAX = 10_000
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


def parse(data: object, semantics: Tools = SEMANTICS, *, depth: int = 0) -> tuple[Step, ...]:
    """The steps of a plan, in written order; the plans of its children are read too. Raises `PlanError`.

    `depth` says how many parents the plan has.
    """
    if depth > CHILDREN_DEEP_MAX:
        raise PlanError(f"children have children {depth} deep; at most {CHILDREN_DEEP_MAX}")
    plan = _checked(data)
    terms(plan)
    reader = _Reader(semantics)
    reader.read(plan["root"], (), (), 0)
    _bind_approvals(reader.steps)
    before = _Before(reader.steps)
    for step in reader.steps.values():
        _check_references(reader.steps, before, step)
        if step.kind == "child":
            parse(step.more["plan"], semantics, depth=depth + 1)
            check_share(step)
    return tuple(reader.steps.values())


def check_share(child: Step) -> None:
    """Refuse what cannot be set aside for a child. Raises `PlanError`."""
    _check_amounts(child.more.get("share") or {}, ALLOWANCES, f"share of {child.id!r}")


def terms(data: object) -> Terms:
    """What a plan says about its task as a whole. Raises `PlanError`."""
    plan = {"op": "plan", "id": "", **_checked(data)}
    if unknown := [name for name in plan if name not in (*TOP_LEVEL, "op", "id")]:
        raise PlanError(f"a plan has no {', '.join(unknown)}; it has {', '.join(TOP_LEVEL)}")
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
    """Walks the tree once, collecting steps; `read` returns the steps whose end is the end of what was read."""

    def __init__(self, semantics: Tools) -> None:
        self.semantics = semantics
        self.steps: dict[str, Step] = {}
        self.ids: set[str] = set()
        self.edges = 0
        self.groups: Mapping[str, Callable[[Json, tuple[str, ...], Guards, int], tuple[str, ...]]] = {
            "seq": self._seq,
            "par": self._par,
            "race": self._race,
            "branch": self._branch,
            "loop": self._loop,
        }

    def read(self, data: object, before: tuple[str, ...], guards: Guards, depth: int) -> tuple[str, ...]:
        kind, one = self._head(data, depth)
        if kind in self.groups:
            return self.groups[kind](one, before, guards, depth + 1)
        step = read_leaf(kind, one, self.semantics)
        if kind == "compensate":
            self._add(step, (), guards)
            return before
        return self._add(step, before, guards)

    def _seq(self, data: Json, before: tuple[str, ...], guards: Guards, depth: int) -> tuple[str, ...]:
        for child in _children(data):
            before = self.read(child, before, guards, depth)
        return before

    def _par(self, data: Json, before: tuple[str, ...], guards: Guards, depth: int) -> tuple[str, ...]:
        ends = [end for child in _children(data) for end in self.read(child, before, guards, depth)]
        return tuple(dict.fromkeys(ends)) or before

    def _race(self, data: Json, before: tuple[str, ...], guards: Guards, depth: int) -> tuple[str, ...]:
        ends = []
        for number, child in enumerate(_children(data)):
            ends.append(self.read(child, before, (*guards, (data["id"], str(number))), depth))
            if set(ends[-1]) <= set(before):
                raise wrong(data, f"child {number} has no operation in it, so it would win before anything began")
        if not ends:
            return before
        return self._add(Step(data["id"], "race", ends=tuple(ends)), before, guards)

    def _branch(self, data: Json, before: tuple[str, ...], guards: Guards, depth: int) -> tuple[str, ...]:
        children = _children(data)
        if len(children) != 2:
            raise wrong(data, f"{len(children)} children; expected two, A and B")
        gate = self._add(Step(data["id"], "branch", subject=field(data, "on", str)), before, guards)
        arms = zip("AB", children, strict=True)
        ends = [end for arm, child in arms for end in self.read(child, gate, (*guards, (data["id"], arm)), depth)]
        return tuple(dict.fromkeys(ends))

    def _loop(self, data: Json, before: tuple[str, ...], guards: Guards, depth: int) -> tuple[str, ...]:
        body, on = _children(data), field(data, "on", str)
        inside = set(_ids(body))
        if on not in inside:
            raise wrong(data, f"on is {on!r}; expected an operation of its body")
        guarded = guards  # by the last gate only, which the one before it guards: else a loop grows with its square
        for turn in range(1, count(data, "times", 1) + 1):
            if turn > 1:
                gate = f"{data['id']}@{turn}"
                self._admit(gate, depth)
                before = self._add(Step(gate, "branch", subject=_copied(on, turn - 1, inside)), before, guarded)
                guarded = (*guards, (gate, "B"))
            for child in body:
                before = self.read(_copy(child, turn, inside), before, guarded, depth)
        return before

    def _add(self, step: Step, before: tuple[str, ...], guards: Guards) -> tuple[str, ...]:
        self.edges += len(before) + len(guards)
        if self.edges > EDGES_MAX:
            raise PlanError(f"the plan has more than {EDGES_MAX} dependencies; put a step between its wide branches")
        self.steps[step.id] = attrs.evolve(step, needs=before, guards=guards)
        return (step.id,)

    def _head(self, data: object, depth: int) -> tuple[str, Json]:
        if not isinstance(data, dict):
            raise PlanError(f"an operation is an object; got {data!r:.80}")
        kind = data.get("op")
        if not isinstance(kind, str) or (kind not in GROUPS and kind not in READERS):
            raise PlanError(f"operation {data.get('id')!r}: op {kind!r:.80}; expected {', '.join((*GROUPS, *READERS))}")
        self._admit(data.get("id"), depth)
        return kind, data

    def _admit(self, id_: object, depth: int) -> None:
        if not isinstance(id_, str) or not id_ or id_ in self.ids:
            raise PlanError(f"operation id {id_!r} is no string, empty or used twice; each needs an id of its own")
        if (fault := fault_of(id_)) is not None:
            raise PlanError(f"operation id {id_!r:.80} {fault}")
        if "~" in id_:
            raise PlanError(f"operation id {id_!r} has a ~ in it; that is kept for operations the runtime makes itself")
        if depth > DEPTH_MAX or len(self.ids) >= OPERATIONS_MAX:
            raise PlanError(
                f"operation {id_!r}: a plan is at most {DEPTH_MAX} deep, {OPERATIONS_MAX} long with all turns of loops"
            )
        self.ids.add(id_)


def _children(data: Json) -> list[object]:
    children: list[object] = field(data, "children", list)
    return children


def _ids(children: Iterable[object]) -> Iterable[str]:
    """The ids in a body, groups included; what is malformed is found when it is read."""
    for child in children:
        if isinstance(child, dict):
            yield str(child.get("id"))
            if isinstance(child.get("children"), list):
                yield from _ids(child["children"])


def _copied(name: str, turn: int, inside: set[str]) -> str:
    """What an operation is called in a copy of the body; a name from outside of it stays what it is."""
    return f"{name}@{turn}" if name in inside else name


def _copy(data: object, turn: int, inside: set[str]) -> object:
    """One copy of a piece of a loop's body: its ids, and its references to the body, are those of that copy."""
    if not isinstance(data, dict):
        return data
    copy = dict(data)
    for name in ("id", "on", "of"):
        if isinstance(copy.get(name), str):
            copy[name] = _copied(copy[name], turn, inside)
    if isinstance(copy.get("carries"), list):
        copy["carries"] = [_copied(one, turn, inside) if isinstance(one, str) else one for one in copy["carries"]]
    if isinstance(copy.get("children"), list):
        copy["children"] = [_copy(child, turn, inside) for child in copy["children"]]
    return copy


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
        raise PlanError(f"{step.kind} {step.id!r} carries {lost}, which the plan does not finish before it")
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
