"""The saboteur: carries out the interruptions of one scenario, each at its site, and records that it did.

What finds nobody to strike (a unit dead already, a reply that will never be sent) is given back to the injector: it has not
fired, and the run says so.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING

from scenarios.history import Fired
from simkit.services import Fault

if TYPE_CHECKING:
    import trio

    from conformance.client import Client
    from conformance.crew import Crew
    from conformance.headway import Headway
    from conformance.injector import Injector
    from conformance.recorder import Recorder
    from conformance.world import Patience, Subject, Unit, World
    from scenarios.interruption import Interruption
    from scenarios.plan import Plan, Wait
    from simkit.services import Request


class Saboteur:
    def __init__(
        self,
        world: World,
        subject: Subject,
        plan: Plan,
        injector: Injector,
        recorder: Recorder,
        crew: Crew,
        client: Client,
        headway: Headway,
        patience: Patience,
    ) -> None:
        self._world, self._bounds, self._plan = world, subject.bounds, plan
        self._injector, self._recorder, self._crew, self._client = injector, recorder, crew, client
        self._headway, self._patience = headway, patience
        self._nursery: trio.Nursery | None = None
        self._loose = 0  # stale workers that may still do harm

    @property
    def finished(self) -> bool:
        """Nothing strikes any more, and nothing that struck is still under way."""
        return self._injector.idle and not self._loose

    @property
    def someone_is_loose(self) -> bool:
        return self._loose > 0

    # -- sites -------------------------------------------------------------------------------------------------------

    def begin(self, nursery: trio.Nursery) -> None:
        """Lie in wait at storage boundaries, before anything of the target runs."""
        self._nursery = nursery
        self._watch_boundaries(self._injector.armed)

    def start_asked(self) -> None:
        """The start is asked now: this is what times count from."""
        self._watch_times(self._injector.armed)

    def target_is_back(self) -> None:
        """A unit was started again: what was to follow may strike from here on."""
        following = self._injector.target_is_back()
        self._watch_boundaries(following)
        self._watch_times(following)

    def loses_start(self) -> bool:
        """Throw away the acknowledgement that has just come?"""
        hits = self._injector.at("ack", verb="start", action="lose-ack")
        for one in hits:
            self._note(one)
        return bool(hits)

    async def after_start(self) -> None:
        """The start was acknowledged."""
        for wait in self._plan.waits():
            if not self._headway.calls_before(wait):
                await self._signal_early(wait)
        await self._strike_all(self._injector.at("ack", verb="start"))

    async def after_signal(self, wait: Wait) -> None:
        """The signal of `wait` was acknowledged."""
        for one in self._injector.at("ack", verb="signal", op=wait.id):
            if one.action == "repeat":
                self._note(one)
                await self._client.signal(wait)
            else:
                await self._strike(one)

    async def at(self, where: str, op: str | None = None) -> bool:
        """Strike what belongs to site `waiting` or `end`; whether there was anything."""
        hits = self._injector.at(where, op=op)
        await self._strike_all(hits)
        return bool(hits)

    async def gate(self, call: int, request: Request, nth: int, barrier: str) -> Fault | None:
        """Called by the services at each barrier of each call; the fault to inject, if any."""
        if request.lookup or self._injector.idle:
            return None
        caller = self._headway.caller(call)
        for wait in self._plan.waits():
            if request.op in self._headway.calls_before(wait):
                # The call is held meanwhile, so that the wait that needs its answer cannot have begun.
                await self._signal_early(wait)
        return await self._strike_all(self._injector.at_barrier(request.op, nth, barrier), caller)

    # -- strikes -----------------------------------------------------------------------------------------------------

    async def _strike_all(self, hits: Iterable[Interruption], caller: int | None = None) -> Fault | None:
        """Strike one after the other. One request suffers one fault, and a caller that is gone outdoes every other."""
        fault: Fault | None = None
        for one in hits:
            if fault is not None and _is_of_reply(one):
                self._injector.miss(one)
                continue
            fault = await self._strike(one, caller) or fault
        return fault

    async def _strike(self, one: Interruption, caller: int | None = None) -> Fault | None:
        match one.action:
            case "kill" | "power":
                return await self._kill(one, caller)
            case "pause":
                await self._pause(one, caller)
            case "repeat":
                self._note(one)
                self._soon(self._repeat_start)
            case "drop" | "reset" | "delay" | "error-before" | "error-after":
                self._note(one)
                return Fault(one.action, one.ns)
            case "lose-ack" | "early":
                self._injector.miss(one)  # no acknowledgement and no wait of this plan is here
        return None

    def _note(self, one: Interruption) -> None:
        self._recorder.add(Fired(self._world.now_ns(), one.label))
        self._patience.disturb()

    async def _kill(self, one: Interruption, caller: int | None) -> Fault | None:
        unit = self._target(one, caller)
        if unit is None or not self._crew.lives(unit):
            self._injector.miss(one)
            return None
        self._note(one)
        await self._crew.kill(unit, power=one.action == "power", state=one.state)
        return Fault("gone", 0) if unit.incarnation == caller else None

    def _target(self, one: Interruption, caller: int | None) -> Unit | None:
        """The unit to strike: the caller itself where a worker is meant and one is known, else the named unit."""
        if one.site.unit == self._crew.worker_name and caller is not None:
            return self._crew.numbered(caller)
        return self._crew.named(one.site.unit)

    async def _pause(self, one: Interruption, caller: int | None) -> None:
        unit = self._target(one, caller)
        if unit is None or unit is not self._crew.worker or not self._crew.lives(unit):
            self._injector.miss(one)
            return
        self._note(one)
        await self._crew.pause(unit)
        self._client.give_up(unit)
        self._loose += 1
        self._soon(self._let_go, unit, one.ns)

    async def _let_go(self, unit: Unit, ns: int) -> None:
        """Continue a paused worker after `ns`, and give it time to do harm before the run counts as settled."""
        await self._world.sleep_ns(ns)
        await self._crew.let_go(unit)
        self._patience.disturb()
        await self._world.sleep_ns(self._bounds.grace_ns)
        self._patience.disturb()
        self._loose -= 1

    async def _repeat_start(self) -> None:
        """Ask start again, as a client that was not sure; of the next worker when there is none right now."""
        while self._crew.worker is None:
            await self._world.sleep_ns(self._bounds.poll_ns)
        await self._client.start()

    async def _signal_early(self, wait: Wait) -> None:
        for one in self._injector.at("ack", verb="start", op=wait.id):
            self._note(one)
            if self._headway.signalled(wait, (await self._client.signal(wait)).outcome):
                self._patience.disturb()
                await self.after_signal(wait)

    def _watch_boundaries(self, armed: Iterable[Interruption]) -> None:
        for one in armed:
            if one.site.where == "boundary":
                self._world.watch_boundary(one.site.unit, one.site.nth, lambda one=one: self._strike_now(one))  # type: ignore[misc]

    def _watch_times(self, armed: Iterable[Interruption]) -> None:
        for one in armed:
            if one.site.where == "time":
                self._soon(self._strike_at, one)

    async def _strike_at(self, one: Interruption) -> None:
        await self._world.sleep_ns(one.site.ns)
        if self._injector.take(one):
            await self._strike(one)

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
        raise RuntimeError("killing a simulated unit may not wait")

    def _soon(self, work: Callable[..., Awaitable[object]], *args: object) -> None:
        assert self._nursery is not None
        self._nursery.start_soon(work, *args)


def _is_of_reply(one: Interruption) -> bool:
    return one.action in {"drop", "reset", "delay", "error-before", "error-after"}
