"""A harness that carries nothing out: it says yes to whatever is asked, shows what it is told to, and never calls a service."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs
import trio

from conformance import targets
from conformance.control import Answer
from conformance.driver import Observation, observe
from conformance.subject import subject_of
from conformance.world import Born, Unit, unheard
from scenarios.history import TERMINAL, OperationStatus, Status
from scenarios.interruption import Scenario
from scenarios.plan import Plan
from simkit.tape import Tape
from simkit.world import Limits, run
from tests.conformance.driver_rig import BOUNDS, Habits, ToyControl, ToyUnit, ToyWorld

#: What it answers to commands.
_YES: Mapping[str, Mapping[str, Any]] = {
    "signal": {"disposition": "buffered"},
    "decide": {"disposition": "approved"},
    "cancel": {"disposition": "accepted"},
    "pause": {"disposition": "accepted"},
    "unpause": {"disposition": "accepted"},
}


def _all(plan: Plan, state: str) -> tuple[OperationStatus, ...]:
    return tuple(OperationStatus(leaf.id, state, ready=True) for leaf in plan.leaves())  # type: ignore[arg-type]


def _status(state: str, operations: str = "") -> Callable[[Plan, int], Status]:
    """Always this state, with every operation of the plan in that one; a version that grows."""

    def shown(plan: Plan, version: int) -> Status:
        over = state in TERMINAL and state != "done"
        return Status(
            state,  # type: ignore[arg-type]
            result={} if state == "done" else None,
            error="no: no" if over else None,
            attempt="t1",
            execution="e1",
            version=version,
            operations=_all(plan, operations) if operations else (),
            reason="no: no" if over else None,
            cancel="quiescent" if state == "cancelled" else None,
        )

    return shown


#: What it may show of a run, whatever it is.
SHOWN: Mapping[str, Callable[[Plan, int], Status]] = {
    "done": _status("done"),
    "done, all accepted": _status("done", "succeeded"),
    "failed": _status("failed"),
    "failed, all planned": _status("failed", "planned"),
    "cancelled": _status("cancelled", "skipped"),
    "blocked": _status("blocked", "unresolved"),
    "running": _status("running", "planned"),
    "waiting": _status("waiting", "planned"),
}


class _IdleWorld(ToyWorld):
    def __init__(self, show: Callable[[Plan, int], Status], plan: Plan, nursery: trio.Nursery) -> None:
        super().__init__(Habits(), nursery)
        self.show, self.plan, self.looks = show, plan, 0

    async def launch(
        self, unit: str, incarnation: int, *, code: str = "", forget: str = "", born: Born = unheard
    ) -> Unit:
        await self.begin_launch(born)
        fresh = _IdleUnit(self, unit, incarnation)
        self.units.append(fresh)
        return fresh


class _IdleUnit(ToyUnit):
    def __init__(self, world: _IdleWorld, name: str, incarnation: int) -> None:
        super().__init__(world, name, incarnation)
        self.control = _Yes(self) if name == "worker" else None


class _Yes(ToyControl):
    world: _IdleWorld

    def _answer(self, verb: str, fields: dict[str, Any]) -> Answer:
        self.world.cross("worker")
        if verb != "status":
            return Answer("ok", ok={**_YES.get(verb, {}), **_told(verb, self.world.plan)})
        self.world.looks += 1
        return Answer("ok", status=self.world.show(self.world.plan, self.world.looks))


def _told(verb: str, plan: Plan) -> Mapping[str, Any]:
    """What it tells of itself: of every operation that it was planned, and carried out."""
    ids = [leaf.id for leaf in plan.leaves()]
    match verb:
        case "events":
            events = [
                {"cursor": n, "kind": "succeeded", "operation": id_, "version": n} for n, id_ in enumerate(ids, 1)
            ]
            return {"events": events, "next": len(events), "control": []}
        case "artifacts":
            return {"artifacts": []}
        case "journal":
            moves = [
                {"sequence": n, "operation": id_, "from": "planned", "to": "succeeded", "move": "accept"}
                for n, id_ in enumerate(ids, 1)
            ]
            return {"transitions": moves, "invocations": [], "rejected": [], "audit": [], "verdicts": [], "history": []}
        case _:
            return {}


def watch_idle(scenario: Scenario, show: Callable[[Plan, int], Status]) -> Observation:
    """One run of it in virtual time, declared to be all that the reference runtime is."""
    subject = attrs.evolve(subject_of(targets.parse("reference").manifest), bounds=BOUNDS)

    async def main(_world: object) -> Observation:
        async with trio.open_nursery() as nursery:
            seen = await observe(_IdleWorld(show, scenario.plan, nursery), subject, scenario, "r")
            nursery.cancel_scope.cancel()
        return seen

    return run(main, tape=Tape.from_seed(0), limits=Limits(steps=100_000)).unwrap()
