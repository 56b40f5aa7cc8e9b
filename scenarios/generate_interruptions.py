"""Interruptions drawn for a plan, from the same sources of choice as plans (see `scenarios.generate`)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TypeVar

import attrs

from scenarios.generate import Choose
from scenarios.interruption import BASIC_VERBS, Action, Barrier, Interruption, Site, fits
from scenarios.plan import SEMANTICS, Approve, Compensate, Plan, Sleep, Wait

T = TypeVar("T")

_BARRIERS: tuple[Barrier, ...] = ("received", "applied", "replied")
#: Faults a drawn scenario may use, by where they strike. The `simulated` ones need a simulated disk.
_BARRIER_ACTIONS: tuple[Action, ...] = ("kill", "drop", "reset", "error-after", "error-before", "delay", "pause")
_SLOW_NS = (30_000_000, 400_000_000)
_HALT_NS = 400_000_000
_JUMPS_NS = (3_600_000_000_000, -3_600_000_000_000)
#: After a reply: about when the worker is given what its report has released.
_GIVEN_NS = 2_000_000
_PAUSE_NS = (800_000_000, 100_000_000, 1_500_000_000)


def draw_interruptions(
    choose: Choose,
    plan: Plan,
    *,
    units: Sequence[str] = ("worker",),
    simulated: bool = False,
    workers: bool = True,
    count_max: int = 3,
    verbs: Collection[str] = BASIC_VERBS,
) -> tuple[Interruption, ...]:
    """Up to `count_max` independent interruptions of `plan`; each may be followed by a second crash in recovery.

    `workers`: two may share one store, so that one may be paused and replaced. `verbs`: what the target can be asked; runs are
    cancelled, paused, steered and so on only where it can.
    """
    target = _Target(tuple(units), simulated, workers, tuple(verbs))
    total = choose("faults.count", count_max + 1)
    return tuple(_draw_one(choose, plan, f"fault{n}", target) for n in range(total))


@attrs.frozen
class _Target:
    units: tuple[str, ...]
    simulated: bool
    workers: bool
    verbs: tuple[str, ...]

    def fits(self, one: Interruption) -> bool:
        return fits(one, verbs=self.verbs, units=self.units, simulated=self.simulated, workers=self.workers)

    @property
    def is_rich(self) -> bool:
        """Can it be asked more than the basic questions?"""
        return not set(self.verbs) <= set(BASIC_VERBS)


def _draw_one(choose: Choose, plan: Plan, label: str, target: _Target) -> Interruption:
    unit = target.units[choose(f"{label}.unit", len(target.units))]
    simulated = target.simulated
    families = ("barrier", "ask", "waiting", "time", "end", "boundary", "command")
    weights = (0, 0, 0, 0, 1, 2, 3, 4) + ((5, 5, 5, 5) if simulated else ()) + ((6, 6, 6) if target.is_rich else ())
    family = families[weights[choose(f"{label}.family", len(weights))]]
    held = [op.id for op in plan.leaves() if isinstance(op, Wait | Sleep | Approve) and not plan.guards(op.id)]
    match family:
        case "barrier":
            first = _at_barrier(choose, plan, label, unit, simulated, target.workers)
        case "ask":
            first = _at_ask(choose, plan, label, unit, simulated)
        case "waiting" if held:
            site = Site("waiting", _one(choose, f"{label}.held", held), unit=unit)
            first = Interruption(_crash(choose, label, simulated), site)
        case "boundary":
            site = Site("boundary", nth=1 + choose(f"{label}.nth", 120), unit=unit)
            first = Interruption(_crash(choose, label, simulated), site)
        case "command":
            options = [one for one in _commands(plan, held) if target.fits(one)]
            action = _one(choose, f"{label}.command", list(dict.fromkeys(one.action for one in options)))
            first = _one(choose, f"{label}.command.at", [one for one in options if one.action == action])
        case "end":
            first = Interruption(_crash(choose, label, simulated), Site("end", unit=unit))
        case _:
            site = Site("time", ns=1_000_000 * choose(f"{label}.at", 400), unit=unit)
            first = Interruption(_crash(choose, label, simulated), site)
    if first.action in {"kill", "power"} and choose(f"{label}.again", 4) == 3:
        again = Site("barrier", None, 1, _one(choose, f"{label}.again.barrier", _BARRIERS), unit=unit)
        return attrs.evolve(first, then=Interruption("kill", again))
    return first


def _commands(plan: Plan, held: Sequence[str]) -> list[Interruption]:
    """What the kit may ask, or do beside killing, while `plan` goes on; the plainest first."""
    start = Site("ack", verb="start")
    sites = [start, *(Site("waiting", op) for op in held)]
    certain = [call.id for call in plan.calls() if plan.is_owed(call.id)]
    sites += [Site("barrier", call, 1, "applied") for call in certain]
    found = [Interruption("cancel", site) for site in sites]
    found += [Interruption("halt", site, ns=_HALT_NS) for site in sites]
    for approve in plan.approvals():
        at = Site("waiting", approve.id)
        found += [Interruption(action, at) for action in ("deny", "forge", "cross")]
        found += [Interruption("revoke", at, ns=_HALT_NS), Interruption("stale-decision", at, target=approve.of)]
        found += [Interruption("late-decision", at)] if approve.validity_ns is not None else []
    later = [(op, call) for op in held for call in certain if op in plan.certain()[call]]
    found += [Interruption("steer", Site("waiting", op), target=call) for op, call in later]
    found += [Interruption("misuse", start), Interruption("crowd", start, arg="4"), Interruption("unmatched", start)]
    found += [Interruption("kill", Site("barrier", call, 1, "applied"), ns=_HALT_NS) for call in certain]
    found += [Interruption("leave", site) for site in sites]
    found += [Interruption("leave", Site("barrier", call, 1, "replied"), ns=_GIVEN_NS) for call in certain]
    found += [Interruption("second", Site("barrier", call, 1, "received")) for call in certain]
    found += [Interruption("jump", start, ns=ns) for ns in _JUMPS_NS]
    found += [Interruption("full", Site("barrier", call, 1, "received"), ns=_HALT_NS) for call in certain]
    found += [Interruption("eio", Site("boundary", nth=nth)) for nth in (5, 20, 60)]
    found += [Interruption("late-signal", Site("end"))] if plan.waits() else []
    blind = [call.id for call in plan.calls() if call.id in certain and SEMANTICS[call.service] == "blind"]
    found += [_heard_of_late(call) for call in blind]
    return found


def _heard_of_late(call: str) -> Interruption:
    """The reply is lost, and there is word of the effect when the run has ended over it."""
    word = Interruption("notice", Site("end"), target=call)
    return Interruption("drop", Site("barrier", call, 1, "applied"), then=word)


def _at_barrier(choose: Choose, plan: Plan, label: str, unit: str, simulated: bool, workers: bool) -> Interruption:
    sent = [call.id for call in plan.calls() if not isinstance(call, Compensate)]
    call = _one(choose, f"{label}.call", sent or ["none"])
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
