"""Plans and interruptions drawn from any source of choice: a tape in simulation, Hypothesis in a property test.

A source is `choose(label, n) -> int` with `0 <= int < n`; 0 is the plainest alternative, so that a source which answers 0
everywhere draws the smallest plan. Labels name what is chosen and stay stable, so removing one choice shifts no other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

import attrs

from scenarios.interruption import Action, Barrier, Interruption, Site
from scenarios.plan import Call, Op, Par, Plan, Seq, Sleep, Wait

Choose = Callable[[str, int], int]
T = TypeVar("T")

ALL_OPERATIONS = frozenset({"seq", "par", "call", "wait", "sleep"})
#: Scripts a drawn `flaky` call may follow. All end well; definite refusals are drawn by scenarios of their own.
_BARRIERS: tuple[Barrier, ...] = ("received", "applied", "replied")
SCRIPTS = (
    (),
    ("error-before",),
    ("error-after",),
    ("reset-before",),
    ("reset-after",),
    ("error-after", "reset-before"),
)
SLEEPS_NS = (20_000_000, 60_000_000, 250_000_000)
SIGNALS = ("go", "approve")


@attrs.frozen
class Sizes:
    """Limits of a drawn plan."""

    leaves_max: int = 7
    depth_max: int = 3
    waits_max: int = 2


def draw_plan(choose: Choose, supported: Collection[str] = ALL_OPERATIONS, sizes: Sizes = Sizes()) -> Plan:
    """A plan of two to `leaves_max` leaves, using only operations in `supported` (`call` always)."""
    return Plan(_Drawer(choose, frozenset(supported), sizes).draw())


class _Drawer:
    """Draws leaves in written order, keeping which earlier leaves a call may carry."""

    def __init__(self, choose: Choose, supported: frozenset[str], sizes: Sizes) -> None:
        self.choose, self.supported, self.sizes = choose, supported, sizes
        self.count = 0
        self.waits = 0

    def draw(self) -> Op:
        leaves = 2 + self.choose("plan.leaves", self.sizes.leaves_max - 1)
        return self._group("seq", leaves, 1, [])[0]

    def _group(self, kind: str, leaves: int, depth: int, before: list[str]) -> tuple[Op, list[str]]:
        """A group of `leaves` leaves that begins after `before`; also the answers visible after it."""
        name = f"{kind[0]}{self.count}d{depth}"
        children: list[Op] = []
        seen, made = list(before), []
        left = leaves
        while left:
            width = self._width(left, depth)
            inner = "par" if kind == "seq" else "seq"
            child, answers = (
                self._group(inner, width, depth + 1, seen)
                if width > 1
                else (leaf := self._leaf(seen), self._answers(leaf))
            )
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

    @staticmethod
    def _answers(leaf: Op) -> list[str]:
        return [] if isinstance(leaf, Sleep) else [leaf.id]

    def _leaf(self, before: Sequence[str]) -> Op:
        self.count += 1
        n = self.count
        kind = self.choose(f"plan.leaf{n}", 10)
        if kind == 9 and "sleep" in self.supported:
            return Sleep(f"s{n}", SLEEPS_NS[self.choose(f"plan.sleep{n}", len(SLEEPS_NS))])
        if kind >= 7 and "wait" in self.supported and self.waits < self.sizes.waits_max:
            self.waits += 1
            return Wait(f"w{n}", SIGNALS[self.choose(f"plan.signal{n}", len(SIGNALS))])
        service = ("ledger", "registry", "mailer", "reader", "flaky")[self.choose(f"plan.service{n}", 5)]
        script = SCRIPTS[self.choose(f"plan.script{n}", len(SCRIPTS))] if service == "flaky" else ()
        # Few distinct parameters on purpose: equal parameters side by side are a case of their own (DUR-9).
        params = {"amount": 1 + self.choose(f"plan.params{n}", 3)}
        carries = tuple(name for name in before[-3:] if self.choose(f"plan.carry{n}.{name}", 4) < 3)
        return Call(f"c{n}", service, params, carries, script)


#: Faults a drawn scenario may use, by where they strike. The `simulated` ones need a simulated disk.
_BARRIER_ACTIONS: tuple[Action, ...] = ("kill", "drop", "reset", "error-after", "error-before", "delay", "pause")
_SLOW_NS = (30_000_000, 400_000_000)
_PAUSE_NS = (800_000_000, 100_000_000, 1_500_000_000)


def draw_interruptions(
    choose: Choose,
    plan: Plan,
    *,
    units: Sequence[str] = ("worker",),
    simulated: bool = False,
    workers: bool = True,
    count_max: int = 3,
) -> tuple[Interruption, ...]:
    """Up to `count_max` independent interruptions of `plan`; each may be followed by a second crash in recovery.

    `workers`: two may share one store, so that one may be paused and replaced.
    """
    total = choose("faults.count", count_max + 1)
    return tuple(_draw_one(choose, plan, f"fault{n}", units, simulated, workers) for n in range(total))


def _draw_one(
    choose: Choose, plan: Plan, label: str, units: Sequence[str], simulated: bool, workers: bool
) -> Interruption:
    unit = units[choose(f"{label}.unit", len(units))]
    families = ("barrier", "ask", "waiting", "time", "end") + (("boundary",) if simulated else ())
    weights = (0, 0, 0, 0, 1, 2, 3, 4) + ((5, 5, 5, 5) if simulated else ())
    family = families[weights[choose(f"{label}.family", len(weights))]]
    match family:
        case "barrier":
            first = _at_barrier(choose, plan, label, unit, simulated, workers)
        case "ask":
            first = _at_ask(choose, plan, label, unit, simulated)
        case "waiting" if plan.waits() or plan.sleeps():
            held = [op.id for op in plan.leaves() if isinstance(op, Wait | Sleep)]
            first = Interruption(
                _crash(choose, label, simulated), Site("waiting", _one(choose, f"{label}.held", held), unit=unit)
            )
        case "boundary":
            first = Interruption(
                _crash(choose, label, simulated), Site("boundary", nth=1 + choose(f"{label}.nth", 120), unit=unit)
            )
        case "end":
            first = Interruption(_crash(choose, label, simulated), Site("end", unit=unit))
        case _:
            first = Interruption(
                _crash(choose, label, simulated), Site("time", ns=1_000_000 * choose(f"{label}.at", 400), unit=unit)
            )
    if first.action in {"kill", "power"} and choose(f"{label}.again", 4) == 3:
        again = Site("barrier", None, 1, _one(choose, f"{label}.again.barrier", _BARRIERS), unit=unit)
        return attrs.evolve(first, then=Interruption("kill", again))
    return first


def _at_barrier(choose: Choose, plan: Plan, label: str, unit: str, simulated: bool, workers: bool) -> Interruption:
    call = _one(choose, f"{label}.call", [call.id for call in plan.calls()] or ["none"])
    action = _one(choose, f"{label}.action", [one for one in _BARRIER_ACTIONS if workers or one != "pause"])
    barrier = _one(choose, f"{label}.barrier", _BARRIERS)
    site = Site("barrier", call, 1 + choose(f"{label}.nth", 2), barrier, unit=unit)
    if action == "kill":
        return Interruption(_crash(choose, label, simulated), site)
    site = attrs.evolve(site, unit="worker")
    if action == "error-before":
        return Interruption(action, attrs.evolve(site, barrier="received"))
    if action == "pause":
        return Interruption(action, site, ns=_one(choose, f"{label}.ns", _PAUSE_NS))
    if site.barrier == "replied":
        site = attrs.evolve(site, barrier="applied")
    if action == "delay":
        return Interruption(action, attrs.evolve(site, barrier="applied"), ns=_one(choose, f"{label}.ns", _SLOW_NS))
    if action == "error-after":
        return Interruption(action, attrs.evolve(site, barrier="applied"))
    return Interruption(action, site)


def _at_ask(choose: Choose, plan: Plan, label: str, unit: str, simulated: bool) -> Interruption:
    crash = Interruption(_crash(choose, label, simulated), Site("ack", verb="start", unit=unit))
    options = [crash, Interruption("lose-ack", Site("ack", verb="start"))]
    if plan.calls():
        options.append(Interruption("repeat", Site("barrier", plan.calls()[0].id, 1, "received", verb="start")))
    for wait in plan.waits():
        options += [
            Interruption("early", Site("ack", wait.id, verb="start")),
            Interruption("repeat", Site("ack", wait.id, verb="signal")),
            Interruption(crash.action, Site("ack", wait.id, verb="signal", unit=unit)),
        ]
    return _one(choose, f"{label}.ask", options)


def _crash(choose: Choose, label: str, simulated: bool) -> Action:
    return "power" if simulated and choose(f"{label}.power", 2) else "kill"


def _one(choose: Choose, label: str, options: Sequence[T]) -> T:
    return options[choose(label, len(options))]
