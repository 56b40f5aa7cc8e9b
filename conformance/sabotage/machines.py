"""Strikes at what a unit stands on: its clock, its disk, what it has stored, its code, and another one beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.sabotage.strikes import take_down

if TYPE_CHECKING:
    from conformance.sabotage.scene import Passing, Scene
    from conformance.world import Unit
    from scenarios.interruption import Interruption
    from simkit.services import Fault


async def forget(scene: Scene, one: Interruption, passing: Passing | None) -> Fault | None:
    """Kill a unit, whose next launch deletes the audit trail."""
    unit = scene.target(one, passing)
    if unit is None:
        scene.miss(one)
        return None
    scene.note(one)
    scene.crew.forget(unit.name, "audit")
    return await take_down(scene, unit, one, passing)


async def deploy(scene: Scene, one: Interruption, passing: Passing | None) -> Fault | None:
    """Kill a unit; from the next launch on it runs another version of the code. Another unit than the worker, which may refuse
    what it finds, is given its own version back after a while.
    """
    unit = scene.target(one, passing)
    if unit is None or one.arg is None:
        scene.miss(one)
        return None
    scene.note(one)
    scene.crew.deploy(unit.name, one.arg)
    if unit.name == scene.crew.worker_name:
        scene.soon(_settle_in, scene, unit.incarnation)
        return await take_down(scene, unit, one, passing)
    await scene.crew.kill(unit)
    scene.soon(_roll_back, scene, unit.name, one.ns)
    return None


async def _settle_in(scene: Scene, before: int) -> None:
    """Give new code time to be found fit or unfit, from when its worker is up: until then an end that is shown may be that of
    the code before.
    """
    while scene.patience.within(4):
        worker = scene.crew.worker
        if worker is not None and worker.incarnation != before and scene.crew.lives(worker):
            break
        await scene.world.sleep_ns(scene.subject.bounds.poll_ns)
    await scene.world.sleep_ns(scene.subject.bounds.grace_ns)
    scene.patience.disturb()


async def _roll_back(scene: Scene, name: str, ns: int) -> None:
    with scene.patience.held(), scene.crew.excused(name):
        await scene.world.sleep_ns(ns)
        scene.crew.deploy(name, "")
        unit = scene.crew.named(name)
        if scene.crew.lives(unit) and unit is not None:
            await scene.crew.kill(unit)


async def flip(scene: Scene, one: Interruption, passing: Passing | None) -> Fault | None:
    """Kill a unit, and turn over one bit of what it has stored."""
    unit = scene.target(one, passing)
    if unit is None:
        scene.miss(one)
        return None
    scene.crew.keep_down(unit.name)  # nobody may start it before the damage is done
    try:
        fault = await take_down(scene, unit, one, passing)
        if unit.flip():
            scene.note(one)
            scene.crew.is_damaged = True
        else:
            scene.miss(one)
    finally:
        _allow(scene, unit, one)
    return fault


async def wipe(scene: Scene, one: Interruption, passing: Passing | None) -> Fault | None:
    """Kill a unit, and empty its state folder."""
    unit = scene.target(one, passing)
    if unit is None:
        scene.miss(one)
        return None
    scene.crew.keep_down(unit.name)
    try:
        scene.note(one)
        fault = await take_down(scene, unit, one, passing)
        unit.wipe()
    finally:
        _allow(scene, unit, one)
    return fault


def _allow(scene: Scene, unit: Unit, one: Interruption) -> None:
    """Let it be started again, unless the interruption keeps it down for a while anyway."""
    if one.ns == 0:
        scene.crew.bring_back(unit.name)


async def second(scene: Scene, one: Interruption, _passing: Passing | None) -> Fault | None:
    """Start another worker under the same name beside the living one; what it was started over goes on meanwhile."""
    if not scene.crew.lives(scene.crew.worker):
        scene.miss(one)
        return None
    scene.note(one)
    scene.soon(_second, scene, one.arg)
    return None


async def _second(scene: Scene, code: str | None) -> None:
    await scene.crew.second(code)
    scene.patience.disturb()
    await scene.world.sleep_ns(scene.subject.bounds.grace_ns)
    scene.patience.disturb()


async def jump(scene: Scene, one: Interruption, passing: Passing | None) -> Fault | None:
    """Set the wall clock of a unit's machine."""
    unit = scene.target(one, passing)
    if unit is not None and unit.jump(one.ns):
        scene.note(one)
    else:
        scene.miss(one)
    return None


async def full(scene: Scene, one: Interruption, passing: Passing | None) -> Fault | None:
    """Let a unit's disk be full for a while."""
    unit = scene.target(one, passing)
    if unit is None:
        scene.miss(one)
        return None
    scene.note(one)
    unit.full(True)
    scene.soon(_make_room, scene, unit, one.ns)
    return None


async def _make_room(scene: Scene, unit: Unit, ns: int) -> None:
    with scene.patience.held(), scene.crew.excused(unit.name):
        await scene.world.sleep_ns(ns)
        unit.full(False)
