"""The saboteur: carries out the interruptions of one scenario, each at its site, and records that it did.

What finds nobody to strike (a unit dead already, a reply that will never be sent) is given back to the injector: it has not
fired, and the run says so. What each interruption does is told in `conformance.sabotage`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from conformance.sabotage import commands, machines, others, strikes
from conformance.sabotage.decisions import ACTIONS, Decisions
from conformance.sabotage.scene import Passing, Scene
from scenarios.history import TERMINAL
from scenarios.interruption import VERBS_OF
from simkit.services import Fault

if TYPE_CHECKING:
    import trio

    from conformance.control import Answer
    from conformance.questions import Question
    from scenarios.history import Status
    from scenarios.interruption import Interruption
    from scenarios.plan import Wait
    from simkit.services import Request

_Strike: TypeAlias = Callable[[Scene, "Interruption", "Passing | None"], Coroutine[Any, Any, Fault | None]]

_STRIKES: Final[Mapping[str, _Strike]] = {
    "kill": strikes.kill,
    "power": strikes.kill,
    "leave": strikes.leave,
    "pause": strikes.pause,
    **dict.fromkeys(strikes.FAULTS, strikes.reply),
    "forget": machines.forget,
    "deploy": machines.deploy,
    "second": machines.second,
    "jump": machines.jump,
    "full": machines.full,
    "flip": machines.flip,
    "wipe": machines.wipe,
    "cancel": commands.cancel,
    "halt": commands.halt,
    "steer": commands.steer,
    "unmatched": commands.unmatched,
    "late-signal": commands.late_signal,
    "misuse": commands.misuse,
    "notice": commands.notice,
    "repeat": commands.repeat,
    "crowd": others.crowd,
}
#: What takes a unit down: what is to follow waits until it is back.
_DEADLY: Final = frozenset({"kill", "power", "leave", "pause", "forget", "deploy", "flip", "wipe"})


class Saboteur:
    """Strikes at one run. `decisions` are the approvals of the run, which interruptions may twist."""

    def __init__(self, scene: Scene) -> None:
        self._scene, self._injector = scene, scene.injector
        self.decisions = Decisions(scene)
        self._withheld: set[str] = set()
        scene.acknowledged = self._acknowledged
        scene.client.loses = self._loses

    @property
    def finished(self) -> bool:
        """Nothing strikes any more, and nothing that struck is still under way."""
        return self._injector.idle and not self._scene.loose

    @property
    def someone_is_loose(self) -> bool:
        return self._scene.loose > 0

    # -- sites -------------------------------------------------------------------------------------------------------

    def begin(self, nursery: trio.Nursery) -> None:
        """Lie in wait at storage boundaries, before anything of the target runs."""
        self._scene.nursery = nursery
        self._watch_boundaries(self._injector.armed)

    def start_asked(self) -> None:
        """The start is asked now: this is what times count from."""
        self._watch_times(self._injector.armed)

    def target_is_back(self) -> None:
        """A unit was started again: what was to follow may strike from here on."""
        self._watch(self._injector.target_is_back())

    def _loses(self, question: Question, answer: Answer) -> bool:
        """Throw away the acknowledgement, or the status that hands the result over, that has just come?"""
        hits = self._injector.at("ack", verb=question.verb, op=question.about, action="lose-ack")
        if answer.status is not None and answer.status.state in TERMINAL and question.run == self._scene.run:
            hits += self._injector.at("end", action="lose-ack")
        for one in hits:
            self._scene.note(one)
            self._follow(one)
        return bool(hits)

    async def after_start(self) -> None:
        """The start was acknowledged."""
        for wait in self._scene.plan.waits():
            if not self._scene.headway.calls_before(wait):
                await self._signal_early(wait)
        await self._strike_all(self._injector.at("ack", verb="start"))

    async def signal(self, wait: Wait) -> None:
        """Send the signal of `wait`, unless it is to come when the wait has ended."""
        if wait.id in self._withheld:
            return
        scene = self._scene
        if scene.headway.signalled(wait, (await scene.client.signal(wait)).outcome):
            scene.patience.disturb()
            await self._strike_all(self._injector.at("ack", verb="signal", op=wait.id))

    async def _acknowledged(self, question: Question, answer: Answer) -> None:
        """The target has taken a command that is neither a start nor a wait's signal."""
        if answer.outcome == "ok":
            await self._strike_all(self._injector.at("ack", verb=question.verb, op=question.about))

    async def at(self, where: str, op: str | None = None, status: Status | None = None) -> bool:
        """Strike what belongs to site `waiting` or `end`; whether there was anything."""
        hits = self._injector.at(where, op=op)
        for one in hits:
            if status is not None and where == "waiting" and one.action in ACTIONS:
                await self.decisions.twist(one, status)
                self._follow(one)
            elif where == "waiting" and one.action == "late-signal":
                self._withhold(one)
            else:
                await self._strike(one)
        return bool(hits)

    async def gate(self, call: int, request: Request, op: str, nth: int, barrier: str) -> Fault | None:
        """Called by the services at each barrier of each call of operation `op`; the fault to inject, if any."""
        if request.lookup:
            return await self._at_desk(call, request, op, nth, barrier) if request.service == "desk" else None
        if self._injector.idle:
            return None
        scene = self._scene
        passing = Passing(request, scene.headway.caller(call))
        for wait in scene.plan.waits():
            if op in scene.headway.calls_before(wait):
                # The call is held meanwhile, so that the wait that needs its answer cannot have begun.
                await self._signal_early(wait)
        return await self._strike_all(self._injector.at_barrier(op, nth, barrier), passing)

    async def _at_desk(self, call: int, request: Request, op: str, nth: int, barrier: str) -> Fault | None:
        """The desk is asked for an approver's authority: whoever asks has claimed what was approved."""
        if barrier == "received":
            await self.decisions.at_desk(request)
        passing = Passing(request, self._scene.headway.caller(call))
        return await self._strike_all(self._injector.at_desk(op, nth, barrier), passing)

    # -- strikes -----------------------------------------------------------------------------------------------------

    async def _strike_all(self, hits: Iterable[Interruption], passing: Passing | None = None) -> Fault | None:
        """Strike one after the other. One request suffers one fault, and a caller that is gone outdoes every other."""
        fault: Fault | None = None
        for one in hits:
            if fault is not None and one.action in strikes.FAULTS:
                self._scene.miss(one)
                continue
            fault = await self._strike(one, passing) or fault
        return fault

    async def _strike(self, one: Interruption, passing: Passing | None = None) -> Fault | None:
        strike = _STRIKES.get(one.action)
        is_known = self._scene.has(*VERBS_OF.get(one.action, ()))
        if strike is None or not is_known:  # no acknowledgement, no wait and no approval of this plan is here
            self._scene.miss(one)
            return None
        fault = await strike(self._scene, one, passing)
        self._follow(one)
        return fault

    def _follow(self, one: Interruption) -> None:
        """What took nothing down leaves nobody to come back: what was to follow it may strike at once."""
        if one.action not in _DEADLY:
            self._watch(self._injector.follow(one))

    async def _signal_early(self, wait: Wait) -> None:
        for one in self._injector.at("ack", verb="start", op=wait.id):
            self._scene.note(one)
            await self.signal(wait)
            self._follow(one)

    def _withhold(self, one: Interruption) -> None:
        """Send the signal of a wait only once the time of the wait is over."""
        wait = next((wait for wait in self._scene.plan.waits() if wait.id == one.site.op), None)
        if wait is None or wait.timeout_ns is None:
            self._scene.miss(one)
            return
        self._withheld.add(wait.id)
        self._scene.soon(self._signal_late, one, wait, wait.timeout_ns + one.ns)

    async def _signal_late(self, one: Interruption, wait: Wait, ns: int) -> None:
        scene = self._scene
        with scene.patience.held():
            await scene.world.sleep_ns(ns + scene.subject.bounds.poll_ns)
        scene.note(one)
        self._withheld.discard(wait.id)
        await self.signal(wait)
        self._follow(one)

    def _watch(self, armed: Iterable[Interruption]) -> None:
        self._watch_boundaries(armed)
        self._watch_times(armed)

    def _watch_boundaries(self, armed: Iterable[Interruption]) -> None:
        for one in armed:
            site = one.site
            if site.where == "boundary" and one.action == "eio":
                strike = functools.partial(self._fail_now, one)
                self._scene.world.fail_once(site.unit, site.nth, strike, kind=one.arg)
            elif site.where == "boundary":
                self._scene.world.watch_boundary(site.unit, site.nth, lambda one=one: self._strike_now(one))  # type: ignore[misc]

    def _watch_times(self, armed: Iterable[Interruption]) -> None:
        for one in armed:
            if one.site.where == "time":
                self._scene.beside(self._strike_at, one)

    async def _strike_at(self, one: Interruption) -> None:
        await self._scene.world.sleep_ns(one.site.ns)
        if self._injector.take(one):
            await self._strike(one)

    def _fail_now(self, one: Interruption) -> bool:
        """Whether the operation at this boundary is to fail."""
        if not self._injector.take(one):
            return False
        self._scene.note(one)
        self._follow(one)
        return True

    def _strike_now(self, one: Interruption) -> None:
        """A boundary strikes inside the target's own step, where nothing may be awaited."""
        if not self._injector.take(one):
            return
        coroutine = self._strike(one)
        try:
            coroutine.send(None)
        except StopIteration:
            return
        coroutine.close()
        raise RuntimeError(f"{one.action} may not wait at a boundary of a simulated unit")
