"""Strikes at units and at replies: killed, asked to leave, stopped, kept down; lost, late and false answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from scenarios.history import Down, Received
from simkit.services import Fault

if TYPE_CHECKING:
    from conformance.sabotage.scene import Passing, Scene
    from conformance.world import Unit
    from scenarios.interruption import Interruption
    from simkit.services import FaultKind, Request


async def kill(scene: Scene, one: Interruption, passing: Passing | None) -> Fault | None:
    """Kill a unit, or cut the power of its machine; with a time it stays down for so long."""
    unit = scene.target(one, passing)
    if unit is None:
        scene.miss(one)
        return None
    scene.note(one)
    return await take_down(scene, unit, one, passing)


async def take_down(scene: Scene, unit: Unit, one: Interruption, passing: Passing | None) -> Fault | None:
    """Kill `unit`, and keep it down where the interruption says so; its own call ends with it."""
    if one.ns > 0:
        scene.crew.keep_down(unit.name)
    await scene.crew.kill(unit, power=one.action == "power", state=one.state)
    if one.ns > 0:
        scene.recorder.add(Down(scene.world.now_ns(), unit.name, one.ns))
        scene.soon(_come_back, scene, unit.name, one.ns)
    return Fault("gone") if passing is not None and unit.incarnation == passing.caller else None


async def _come_back(scene: Scene, name: str, ns: int) -> None:
    with scene.patience.held():
        await scene.world.sleep_ns(ns)
        scene.crew.bring_back(name)


async def leave(scene: Scene, one: Interruption, passing: Passing | None) -> Fault | None:
    """Ask a worker to leave, now or after a while, or the other one beside it; the request it may be at goes on."""
    unit = scene.target(one, passing)
    if one.arg == "other" and unit is not None:
        unit = scene.crew.beside(unit)
    if unit is None:
        scene.miss(one)
    elif one.ns > 0:
        scene.soon(_leave_later, scene, unit, one)
    else:
        _ask_to_leave(scene, unit, one)
    return None


async def _leave_later(scene: Scene, unit: Unit, one: Interruption) -> None:
    await scene.world.sleep_ns(one.ns)
    if scene.crew.lives(unit):
        _ask_to_leave(scene, unit, one)
    else:
        scene.miss(one)


def _ask_to_leave(scene: Scene, unit: Unit, one: Interruption) -> None:
    scene.note(one)
    scene.crew.ask_to_leave(unit)
    scene.soon(_see_off, scene, unit)


async def _see_off(scene: Scene, unit: Unit) -> None:
    """Until a worker has left; whoever takes longer than a run may take to settle is killed, as supervisors do."""
    until_ns = scene.world.now_ns() + scene.subject.bounds.settle_ns
    with scene.patience.held():
        while not await scene.crew.has_left(unit):
            if scene.world.now_ns() >= until_ns:
                await scene.crew.kill(unit)
                return
            await scene.world.sleep_ns(scene.subject.bounds.poll_ns)


async def pause(scene: Scene, one: Interruption, passing: Passing | None) -> Fault | None:
    """Stop the worker, let a successor be started, and continue the first one after its time."""
    unit = scene.target(one, passing)
    if unit is None or unit is not scene.crew.worker:
        scene.miss(one)
        return None
    scene.note(one)
    await scene.crew.pause(unit)
    scene.client.give_up(unit)
    scene.soon(_let_go, scene, unit, one.ns)
    return None


async def _let_go(scene: Scene, unit: Unit, ns: int) -> None:
    """Continue a paused worker after `ns`, and give it time to do harm before the run counts as settled.

    Where its successor takes longer than that to come up, as a real process may, it is first given time to take over.
    """
    begun = len(scene.recorder.events)
    await scene.world.sleep_ns(ns)
    if scene.crew.worker is None:
        while scene.patience.within(1) and not _has_taken_over(scene, unit, begun):
            await scene.world.sleep_ns(scene.subject.bounds.poll_ns)
    await scene.crew.let_go(unit)
    scene.patience.disturb()
    await scene.world.sleep_ns(scene.subject.bounds.grace_ns)
    scene.patience.disturb()


def _has_taken_over(scene: Scene, unit: Unit, since: int) -> bool:
    """Whether another worker has asked for anything since."""
    later = scene.recorder.events[since:]
    return any(isinstance(event, Received) and event.incarnation != unit.incarnation for event in later)


#: Faults of one request, which suffers one of them at most, by action.
FAULTS: Mapping[str, FaultKind] = {
    "drop": "drop",
    "reset": "reset",
    "delay": "delay",
    "error-before": "error-before",
    "error-after": "error-after",
    "expire": "drop",
}


async def reply(scene: Scene, one: Interruption, passing: Passing | None) -> Fault | None:
    """A fault of the request at whose barrier this is; one that expires takes the answer saved for its key along."""
    if passing is None or (one.action == "expire" and not _expire(scene, passing.request)):
        scene.miss(one)
        return None
    scene.note(one)
    return Fault(FAULTS[one.action], one.ns)


def _expire(scene: Scene, request: Request) -> bool:
    """Let a service forget what it keeps of an executed request: whether there was anything."""
    return scene.outside.services.forget_key(request.service, request.key or request.reference)
