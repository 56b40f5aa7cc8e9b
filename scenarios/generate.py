"""Plans drawn from any source of choice: a tape in simulation, Hypothesis in a property test.

A source is `choose(label, n) -> int` with `0 <= int < n`; 0 is the plainest alternative, so that a source which answers 0
everywhere draws the smallest plan. Labels name what is chosen and stay stable, so removing one choice shifts no other.

Calls, waits and sleeps are drawn most; of what is rarer, only what the target supports. What people have to do with (waits,
approvals) is never put where a decision of the plan may leave it out, and only what certainly has an answer is handed on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

import attrs

from scenarios.operation import OPTIONS
from scenarios.plan import (
    Allowance,
    Approve,
    Artifact,
    Branch,
    Call,
    Check,
    Child,
    Compensate,
    Fail,
    Loop,
    Model,
    Nondet,
    Op,
    Par,
    Plan,
    Race,
    Reserve,
    Seq,
    Sleep,
    Wait,
)

Choose = Callable[[str, int], int]
T = TypeVar("T")

#: What every target has been able to be asked for, from the beginning.
BASIC_OPERATIONS = frozenset({"seq", "par", "call", "wait", "sleep"})
GROUPS = ("race", "branch", "loop")
LEAVES = ("approve", "model", "child", "artifact", "nondet")
#: Everything a target may support: kinds of operation, and `OPTIONS`.
ALL_OPERATIONS = BASIC_OPERATIONS | {*GROUPS, *LEAVES, "check", "fail", "compensate", *OPTIONS}
#: Scripts a drawn `flaky` call may follow. All end well; definite refusals are drawn where they are tolerated.
SCRIPTS = (
    (),
    ("error-before",),
    ("error-after",),
    ("reset-before",),
    ("reset-after",),
    ("error-after", "reset-before"),
)
MODEL_SCRIPTS = ((), ("429",), ("error-after",), ("cut",), ("duplicate",), ("529", "reset-before"))
CHECK_SCRIPTS = ((), (), ("unavailable",), ("timeout",), ("failed",), ("skipped",))
SLEEPS_NS = (20_000_000, 60_000_000, 250_000_000)
SIGNALS = ("go", "approve")
#: Lengths of answers around the limits that buffers, rows and pages usually have.
ANSWER_BYTES = (200, 4096, 4095, 4097, 65_536, 65_535, 65_537)
TIMEOUTS_NS = (5_000_000_000, 400_000_000)
ARTIFACT_BYTES = (64, 0, 1, 4096, 65_537)
#: The name, no more, of the secret that drawn calls bring.
DRAWN_CREDENTIAL = "token"
#: Wider than a pool of workers usually is.
FAN_OUT = 18


@attrs.frozen
class Sizes:
    """Limits of a drawn plan."""

    leaves_max: int = 7
    depth_max: int = 3
    waits_max: int = 2
    approvals_max: int = 1
    children_max: int = 1


def draw_plan(choose: Choose, supported: Collection[str] = ALL_OPERATIONS, sizes: Sizes = Sizes()) -> Plan:
    """A plan of two to `leaves_max` leaves or a few more, using only operations in `supported` (`call` always)."""
    drawer = _Drawer(choose, frozenset(supported), sizes)
    root = drawer.draw()
    return Plan(root, drawer.allowance(), drawer.deadline_ns())


class _Drawer:
    """Draws leaves in written order, keeping which earlier leaves a call may carry."""

    def __init__(self, choose: Choose, supported: frozenset[str], sizes: Sizes) -> None:
        self.choose, self.supported, self.sizes = choose, supported, sizes
        self.count = self.waits = self.approvals = self.children = 0
        self.certain: list[Call] = []  # calls that always have their turn
        self.depends = 0  # how many decisions what is drawn now depends on
        self.loops = 0

    @property
    def _is_rich(self) -> bool:
        return not self.supported <= BASIC_OPERATIONS

    def draw(self) -> Op:
        leaves = 2 + self.choose("plan.leaves", self.sizes.leaves_max - 1)
        root, _ = self._group("seq", leaves, 1, [])
        assert isinstance(root, Seq)
        return attrs.evolve(root, children=(*root.children, *self._ending())) if self._is_rich else root

    def _ending(self) -> list[Op]:
        """What may come at the end: a wide fan-out, a failure, and what undoes the calls before it."""
        ending: list[Op] = []
        if "par" in self.supported and self.choose("plan.fan", 24) == 23:
            ending.append(Par("fan", tuple(Call(f"f{n}", "ledger", {"amount": n % 3}) for n in range(FAN_OUT))))
        undone = [call for call in self.certain if call.service in {"ledger", "flaky", "registry"}][:3]
        saga = "compensate" in self.supported and bool(undone) and self.choose("plan.saga", 6) == 5
        if saga:
            ending += [Compensate(f"u{call.id}", call.id, "ledger", {"undo": call.id}) for call in undone]
        if "fail" in self.supported and self.choose("plan.fail", 2 if saga else 16) == (1 if saga else 15):
            ending.append(Fail("giveup", "nothing-left-to-do"))
        return ending

    def allowance(self) -> Allowance | None:
        """Seldom one at all; sometimes too little."""
        if "allowance" not in self.supported or self.choose("plan.allowance", 8) < 7:
            return None
        calls = (40, 12, 3)[self.choose("plan.allowance.calls", 3)]
        return Allowance(calls, 2000, concurrency=2, reserve=Reserve(1, 100))

    def deadline_ns(self) -> int | None:
        if "deadline" not in self.supported or self.choose("plan.deadline", 12) < 11:
            return None
        return (60_000_000_000, 300_000_000)[self.choose("plan.deadline.ns", 2)]

    # --- groups ---------------------------------------------------------------------------------------------------

    def _group(self, kind: str, leaves: int, depth: int, before: list[str]) -> tuple[Op, list[str]]:
        """A group of `leaves` leaves that begins after `before`; also the answers visible after it."""
        name = f"{kind[0]}{self.count}d{depth}"
        children: list[Op] = []
        seen, made = list(before), []
        left = leaves
        while left:
            width = self._width(left, depth)
            child, answers = self._nested(kind, width, depth, seen) if width > 1 else self._leaf(seen)
            children.append(child)
            made += answers
            if kind == "seq":
                seen = seen + answers
            left -= width
        return (Seq(name, tuple(children)) if kind == "seq" else Par(name, tuple(children))), made

    def _width(self, left: int, depth: int) -> int:
        """How many leaves the next child takes: 1 is a leaf, more is a nested group."""
        if left < 2 or depth >= self.sizes.depth_max or "par" not in self.supported:
            return 1
        if self.choose(f"plan.nest{self.count}.{depth}", 3) < 2:
            return 1
        return 2 + self.choose(f"plan.width{self.count}.{depth}", left - 1)

    def _nested(self, kind: str, width: int, depth: int, seen: list[str]) -> tuple[Op, list[str]]:
        groups = [name for name in GROUPS if name in self.supported and (name != "branch" or seen)]
        if kind == "seq" and groups and (rare := self.choose(f"plan.group{self.count}.{depth}", 6)) >= 3:
            name = groups[rare % len(groups)]
            self.depends += 1
            try:
                return self._deciding(name, width, depth, seen)
            finally:
                self.depends -= 1
        return self._group("par" if kind == "seq" else "seq", width, depth + 1, seen)

    def _deciding(self, kind: str, width: int, depth: int, seen: list[str]) -> tuple[Op, list[str]]:
        """A race, a branch or a loop; of what it does, only the first round of a loop is certain."""
        id_ = f"{kind[0]}{kind[-1]}{self.count}d{depth}"
        if kind == "loop":
            self.loops += 1
            body, answers = self._group("seq", width, depth + 1, seen)
            self.loops -= 1
            last = Call(f"{id_}on", "reader", {"item": 1}, tuple(answers[-1:]))
            times = 2 + self.choose(f"plan.times{self.count}.{depth}", 2)
            visible = [] if self.loops else [f"{name}@1" for name in (*answers, last.id)]
            return Loop(id_, (body, last), last.id, times), visible
        one, _ = self._group("seq", width - width // 2, depth + 1, seen)
        two, _ = self._group("seq", width // 2, depth + 1, seen)
        return (Race(id_, (one, two)) if kind == "race" else Branch(id_, seen[-1], (one, two))), []

    # --- leaves ---------------------------------------------------------------------------------------------------

    def _leaf(self, before: Sequence[str]) -> tuple[Op, list[str]]:
        self.count += 1
        n = self.count
        rare = [kind for kind in LEAVES if self._may_have(kind)]
        if rare and self.choose(f"plan.rare{n}", 5) == 4:
            return self._rare(rare[self.choose(f"plan.rare{n}.kind", len(rare))], n, before)
        kind = self.choose(f"plan.leaf{n}", 10)
        if kind == 9 and "sleep" in self.supported:
            return Sleep(f"s{n}", SLEEPS_NS[self.choose(f"plan.sleep{n}", len(SLEEPS_NS))]), []
        if kind >= 7 and "wait" in self.supported and self.waits < self.sizes.waits_max and not self.depends:
            self.waits += 1
            return self._wait(n)
        call = self._call(n, before)
        if not self.depends and not call.tolerate:
            self.certain.append(call)
        return call, [] if call.tolerate else [call.id]

    def _may_have(self, kind: str) -> bool:
        limits = {
            "approve": self.approvals < self.sizes.approvals_max,
            "child": self.children < self.sizes.children_max,
        }
        if kind not in self.supported or not limits.get(kind, True):
            return False
        return not (self.depends and kind in {"approve", "child"})

    def _wait(self, n: int) -> tuple[Op, list[str]]:
        signal = SIGNALS[self.choose(f"plan.signal{n}", len(SIGNALS))]
        if "timeout" in self.supported and self.choose(f"plan.timeout{n}", 6) == 5:
            return Wait(f"w{n}", signal, TIMEOUTS_NS[self.choose(f"plan.timeout{n}.ns", 2)]), []
        return Wait(f"w{n}", signal), [f"w{n}"]

    def _call(self, n: int, before: Sequence[str]) -> Call:
        service = ("ledger", "registry", "mailer", "reader", "flaky")[self.choose(f"plan.service{n}", 5)]
        script = SCRIPTS[self.choose(f"plan.script{n}", len(SCRIPTS))] if service == "flaky" else ()
        # Few distinct parameters on purpose: equal parameters side by side are a case of their own (DUR-9).
        params = {"amount": 1 + self.choose(f"plan.params{n}", 3)}
        call = Call(f"c{n}", service, params, self._carries(n, before), script)
        return self._varied(n, call) if self._is_rich else call

    def _carries(self, n: int, before: Sequence[str]) -> tuple[str, ...]:
        return tuple(name for name in before[-3:] if self.choose(f"plan.carry{n}.{name}", 4) < 3)

    def _varied(self, n: int, call: Call) -> Call:
        """Most calls are plain; a few are limited, big, refused, secret, or asked of a receiver with fencing tokens."""
        match self.choose(f"plan.vary{n}", 24):
            case 23 if "retries" in self.supported:
                return attrs.evolve(call, tries=2 + self.choose(f"plan.tries{n}", 3))
            case 22 if "secrets" in self.supported:
                return attrs.evolve(call, secret=DRAWN_CREDENTIAL)
            case 21 if "sizes" in self.supported:
                size = ANSWER_BYTES[self.choose(f"plan.bytes{n}", len(ANSWER_BYTES))]
                return attrs.evolve(call, params={**call.params, "answer_bytes": size})
            case 20 if "tolerate" in self.supported:
                return attrs.evolve(call, service="ledger", script=("reject",), tolerate=True)
            case 19 if {"poison", "tolerate"} <= self.supported:
                return attrs.evolve(call, params={**call.params, "poison": True}, tolerate=True)
            case 18 if "retries" in self.supported and call.service == "registry":
                return attrs.evolve(call, lookups=("down", "ok"))
            case _:
                return call

    def _rare(self, kind: str, n: int, before: Sequence[str]) -> tuple[Op, list[str]]:
        match kind:
            case "approve":
                return self._approve(n, before)
            case "model":
                return self._model(n, before)
            case "child":
                return self._child(n)
            case "artifact":
                return self._artifact(n, before)
            case _:
                return Nondet(f"n{n}", ("uuid", "time", "random")[self.choose(f"plan.nondet{n}", 3)]), [f"n{n}"]

    def _approve(self, n: int, before: Sequence[str]) -> tuple[Op, list[str]]:
        """A decision, and what it is about right after it."""
        self.approvals += 1
        validity_ns = None
        if "validity" in self.supported and self.choose(f"plan.validity{n}", 4) == 3:
            validity_ns = 5_000_000_000
        call = Call(f"c{n}", "ledger", {"amount": 100}, (*self._carries(n, before), f"a{n}"))
        return Seq(f"gate{n}", (Approve(f"a{n}", call.id, validity_ns), call)), [f"a{n}", call.id]

    def _model(self, n: int, before: Sequence[str]) -> tuple[Op, list[str]]:
        script = MODEL_SCRIPTS[self.choose(f"plan.script{n}", len(MODEL_SCRIPTS))]
        tokens = (60, 200)[self.choose(f"plan.tokens{n}", 2)]
        return Model(f"m{n}", "go on", tokens, script, self._carries(n, before)), [f"m{n}"]

    def _child(self, n: int) -> tuple[Op, list[str]]:
        self.children += 1
        detached = "detached" in self.supported and self.choose(f"plan.detached{n}", 4) == 3
        first = Call("k1", "ledger", {"amount": 1})
        second = Call("k2", "flaky", {"amount": 1}, ("k1",), SCRIPTS[self.choose(f"plan.script{n}", len(SCRIPTS))])
        return Child(f"k{n}", Seq("kid", (first, second)), detached), []

    def _artifact(self, n: int, before: Sequence[str]) -> tuple[Op, list[str]]:
        """Content, mostly with a check of it right after."""
        size = ARTIFACT_BYTES[self.choose(f"plan.size{n}", len(ARTIFACT_BYTES))]
        parts = 1 + self.choose(f"plan.parts{n}", 3)
        artifact = Artifact(f"p{n}", "report", size, parts, self._carries(n, before))
        if "check" not in self.supported or self.choose(f"plan.check{n}", 3) == 2:
            return artifact, [artifact.id]
        script = CHECK_SCRIPTS[self.choose(f"plan.script{n}", len(CHECK_SCRIPTS))]
        return Seq(f"shown{n}", (artifact, Check(f"q{n}", artifact.id, script))), [artifact.id]
