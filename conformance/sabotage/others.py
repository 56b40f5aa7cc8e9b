"""Runs beside the one that is judged: a crowd of small ones, and children that outlive their parent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance import questions
from scenarios.history import TERMINAL
from scenarios.plan import Call, Plan

if TYPE_CHECKING:
    from collections.abc import Iterable

    from conformance.sabotage.scene import Passing, Scene
    from scenarios.interruption import Interruption
    from simkit.services import Fault

#: The most runs of a crowd.
CROWD_MAX = 2_000
#: Slow enough for all of a small crowd to be there at once.
PLAN = Plan(Call("alone", "ledger", script=("slow",)))


def crowd_of(run: str, count: int) -> tuple[str, ...]:
    """The names of a crowd beside `run`."""
    return tuple(f"{run}-crowd-{number}" for number in range(1, count + 1))


async def crowd(scene: Scene, one: Interruption, _passing: Passing | None) -> Fault | None:
    """Start as many other runs as `arg` says, and follow them to their end."""
    count = int(one.arg) if one.arg is not None and one.arg.isdecimal() else 0
    if not 0 < count <= CROWD_MAX:
        scene.miss(one)
        return None
    scene.note(one)
    runs = crowd_of(scene.run, count)
    scene.beside_runs.update(runs)
    scene.soon(_crowd, scene, runs)
    return None


async def _crowd(scene: Scene, runs: tuple[str, ...]) -> None:
    waiting = list(runs)
    while waiting and scene.patience.within(1):
        question = questions.start(waiting[0], PLAN)
        if (await scene.client.ask(question)).outcome == "indefinite":
            await scene.world.sleep_ns(scene.subject.bounds.poll_ns)
        else:
            del waiting[0]
            scene.patience.disturb()
    await follow(scene, runs)


async def follow(scene: Scene, runs: Iterable[str]) -> None:
    """Ask for the status of each until it has ended, or there is none of that name: what would have started it has ended
    without. The time a run has to settle counts from the latest end of one.
    """
    left = list(runs)
    while left and scene.patience.within(1):
        for run in list(left):
            status = (await scene.client.status(run)).status
            if status is not None and (status.state in TERMINAL or status.state == "unknown"):
                left.remove(run)
                scene.patience.disturb()
            elif status is None:
                break  # nobody is there to ask
        if left:
            await scene.world.sleep_ns(scene.subject.bounds.poll_ns)
