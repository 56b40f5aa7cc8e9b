"""The driver: one run of one scenario on one target, in either world; what comes out is a history.

It plays the client (start, status, signal, resume), the operator (restarts what died) and the saboteur (interruptions).
The worlds differ only in how a unit is launched, killed and paused, and in what time is; see `conformance.world`.

A run goes: boot → start until acknowledged → watch until settled. Every wait is bounded: a run must settle within
`Bounds.settle_ns` after the last disturbance, is watched for four times that before it counts as stuck, and a start that is
never acknowledged ends the run too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import attrs
import networkx as nx
import trio

from conformance.injector import Injector
from conformance.recorder import Recorder
from scenarios.history import (
    TERMINAL,
    Closed,
    Died,
    Fired,
    History,
    Paused,
    Quiet,
    Received,
    Replied,
    Resumed,
    Started,
    Status,
)
from scenarios.plan import Call, Sleep, Wait
from simkit.errors import ExitCode, Problem, SimkitError
from simkit.services import Fault, Outside

if TYPE_CHECKING:
    from conformance.control import Answer
    from conformance.world import Subject, Unit, World
    from scenarios.interruption import Interruption, Scenario
    from simkit.services import Request

#: A target that dies by itself more often than this in one run cannot be judged.
EXITS_MAX = 3
#: How long a worker that closed its channel may take to be dead.
EXIT_NS = 2_000_000_000


@attrs.frozen
class Observation:
    """What one run gave: the history, and the interruptions that never struck."""

    history: History
    fired: tuple[str, ...]
    unfired: tuple[str, ...]


async def observe(world: World, subject: Subject, scenario: Scenario, run: str) -> Observation:
    """Run `scenario` on the target in `world`. Raises `SimkitError` when kit or adapter broke the protocol."""
    driver = _Driver(world, subject, scenario, run)
    try:
        async with world.serving(driver.outside, driver.gate), trio.open_nursery() as nursery:
            await driver.drive(nursery)
            nursery.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        raise _the_problem(group) from group
    return driver.observation()


def _the_problem(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """A run fails with one problem: the first one, when there is nothing else in the group."""
    problems, other = group.split(SimkitError)
    if problems is None or other is not None:
        return group
    found: BaseException = problems
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found


class _Driver:
    def __init__(self, world: World, subject: Subject, scenario: Scenario, run: str) -> None:
        self.world, self.subject, self.plan, self.run = world, subject, scenario.plan, run
        self.bounds = subject.bounds
        self.injector = Injector(scenario.interruptions)
        self.recorder = Recorder(world.now_ns)
        self.outside = Outside(nonce=world.nonce, recorder=self.recorder, now_ns=world.now_ns)
        self.units: dict[str, Unit] = {}
        self.others: list[Unit] = []  # stale workers, paused or let go
        self.doomed: set[int] = set()  # incarnations the kit has begun to kill
        self.launched = self.exits = self.loose = 0
        self.started = self.quiet = self.ack_lost = False
        self.disturbed_ns = self.started_ns = 0
        self.sent: set[str] = set()  # waits whose signal was acknowledged
        self.nonces: dict[str, str] = {}
        self.dependencies = self.plan.dependencies()
        self.answered_ns: dict[str, int] = {}  # call id → when its first usable answer left
        self.callers: dict[int, tuple[str, int]] = {}  # call → (op, incarnation)
        self.seen = 0

    def observation(self) -> Observation:
        history = self.recorder.history(self.run, self.plan, self.subject.declared)
        fired = tuple(one.label for one in self.injector.fired)
        return Observation(history, fired, tuple(one.label for one in self.injector.unfired()))

    # -- the course of a run -----------------------------------------------------------------------------------------

    async def drive(self, nursery: trio.Nursery) -> None:
        self.nursery = nursery
        self._arm_boundaries()
        await self._ensure_up()
        self.disturbed_ns = self.started_ns = self.world.now_ns()
        self._arm_times()
        reason = await self._watch() if await self._begin() else "bound"
        if not self.quiet:
            self.recorder.add(Quiet(self.world.now_ns()))
        self.recorder.add(Closed(self.world.now_ns(), reason))

    async def _begin(self) -> bool:
        """Ask start until it is acknowledged; False when the target refuses or the bound is met."""
        while self._within(4):
            await self._ensure_up()
            answer = await self._start()
            if answer is None or answer.outcome == "indefinite":
                await self.world.sleep_ns(self.bounds.poll_ns)
                continue
            if answer.outcome == "error":
                return False
            if self.ack_lost:
                continue
            self.started = True
            await self._after_start()
            return True
        return False

    async def _watch(self) -> Literal["settled", "slow", "bound"]:
        while self._within(4):
            await self._ensure_up()
            self._maybe_quiet()
            status = await self._status()
            if status is not None and await self._react(status):
                return "settled" if self._within(1) else "slow"
            if status is not None and status.state == "unknown" and self.quiet and not self._within(1):
                return "bound"  # forgotten work does not come back by waiting longer
            await self.world.sleep_ns(self.bounds.poll_ns)
        return "bound"

    async def _react(self, status: Status) -> bool:
        """Do what this status calls for; True when the run has settled."""
        if status.state in TERMINAL:
            if hits := self.injector.at("end"):
                for one in hits:
                    await self._strike(one)
                return False
            return not self.loose
        for sleep in self.plan.sleeps():
            if self._is_running(sleep):
                for one in self.injector.at("waiting", op=sleep.id):
                    await self._strike(one)
                    return False
        if status.state == "waiting" and (wait := self._awaited(status.on)) is not None:
            if hits := self.injector.at("waiting", op=wait.id):
                for one in hits:
                    await self._strike(one)
                return False
            await self._signal(wait)
        return False

    def _within(self, times: int) -> bool:
        return self.world.now_ns() - self.disturbed_ns <= times * self.bounds.settle_ns

    def _disturb(self) -> None:
        self.disturbed_ns = self.world.now_ns()

    def _maybe_quiet(self) -> None:
        if not self.quiet and self.injector.idle and not self.loose:
            self.quiet = True
            self.recorder.add(Quiet(self.world.now_ns()))

    # -- what the plan is waiting for ---------------------------------------------------------------------------------

    def _look(self) -> None:
        """Bring `answered_ns` up to date with what the services have recorded."""
        for event in self.recorder.events[self.seen :]:
            if isinstance(event, Received):
                self.callers[event.call] = (event.op, event.incarnation)
            elif isinstance(event, Replied) and event.nonce is not None and event.delivery == "sent":
                self.answered_ns.setdefault(self.callers[event.call][0], event.at_ns)
        self.seen = len(self.recorder.events)

    def _awaited(self, signal: str | None) -> Wait | None:
        """The wait to signal next: of this name, not signalled yet, with everything before it visibly done."""
        for wait in self.plan.waits():
            if wait.id not in self.sent and signal in {None, wait.signal} and self._began(wait.id):
                return wait
        return None

    def _began(self, leaf: str) -> bool:
        self._look()
        return all(self._is_done(before) for before in self.dependencies.predecessors(leaf))

    def _is_done(self, leaf: str) -> bool:
        """As far as the outside can tell; of a sleep it can tell only that it began."""
        match self.plan.leaf(leaf):
            case Call():
                return leaf in self.answered_ns
            case Wait():
                return leaf in self.sent
            case _:
                return self._began(leaf)

    def _is_running(self, sleep: Sleep) -> bool:
        """A third of the time has passed since everything before it was answered."""
        if not self._began(sleep.id):
            return False
        begun = [self.answered_ns.get(before, self.started_ns) for before in self.dependencies.predecessors(sleep.id)]
        return self.world.now_ns() - max(begun, default=self.started_ns) >= sleep.ns // 3

    # -- asking ------------------------------------------------------------------------------------------------------

    async def _start(self) -> Answer | None:
        number = self.recorder.ask("start", self.run, self._worker().incarnation, id=self.run)
        answer = await self._ask("start", run=self.run, plan=self.plan.to_json(), key=self.run)
        self.ack_lost = False
        if answer is not None and answer.outcome == "ok":
            for one in self._take_ack("start", "lose-ack"):
                self.recorder.add(Fired(self.world.now_ns(), one.label))
                self.ack_lost = True
        if self.ack_lost:
            self.recorder.answer(number, "indefinite", "the kit threw the acknowledgement away")
        else:
            self._record(number, answer)
        return answer

    async def _after_start(self) -> None:
        for wait in self.plan.waits():
            if not self._calls_before(wait):
                await self._signal_early(wait)
        for one in self.injector.at("ack", verb="start"):
            await self._strike(one)

    def _calls_before(self, wait: Wait) -> set[str]:
        return {op for op in nx.ancestors(self.dependencies, wait.id) if isinstance(self.plan.leaf(op), Call)}

    async def _signal_early(self, wait: Wait) -> None:
        for one in self.injector.at("ack", verb="start", op=wait.id):
            self.recorder.add(Fired(self.world.now_ns(), one.label))
            await self._signal(wait)

    async def _repeat_start(self) -> None:
        """Ask start again, as a client that was not sure; of the next worker when there is none right now."""
        while self._worker_name not in self.units:
            await self.world.sleep_ns(self.bounds.poll_ns)
        number = self.recorder.ask("start", self.run, self._worker().incarnation, id=self.run)
        self._record(number, await self._ask("start", run=self.run, plan=self.plan.to_json(), key=self.run))

    async def _signal(self, wait: Wait) -> None:
        if await self._send_signal(wait) != "ok":
            return
        self.sent.add(wait.id)
        self._disturb()
        for one in self.injector.at("ack", verb="signal", op=wait.id):
            if one.action == "repeat":
                self.recorder.add(Fired(self.world.now_ns(), one.label))
                await self._send_signal(wait)
            else:
                await self._strike(one)

    async def _send_signal(self, wait: Wait) -> str:
        nonce = self.nonces.setdefault(wait.id, self.world.nonce())
        command = f"{self.run}:{wait.id}"
        number = self.recorder.ask(
            "signal", self.run, self._worker().incarnation, id=command, name=wait.signal, nonce=nonce
        )
        answer = await self._ask("signal", run=self.run, name=wait.signal, payload={"nonce": nonce}, id=command)
        self._record(number, answer)
        return "indefinite" if answer is None else answer.outcome

    async def _status(self) -> Status | None:
        number = self.recorder.ask("status", self.run, self._worker().incarnation)
        answer = await self._ask("status", run=self.run)
        self._record(number, answer)
        return None if answer is None else answer.status

    async def _ask(self, verb: str, **fields: object) -> Answer | None:
        """The worker's answer, or None when it died over the question."""
        unit = self._worker()
        assert unit.control is not None
        try:
            return await unit.control.ask(verb, self.bounds.ask_ns, **fields)
        except SimkitError as error:
            if unit in self.others or await self._is_gone(unit, error):
                return None
            raise

    async def _is_gone(self, unit: Unit, error: SimkitError) -> bool:
        """Did the question fail because the worker died over it? Its end of the channel closes a moment before it is dead."""
        if error.problem.code != "adapter-gone":
            return not unit.alive
        until_ns = self.world.now_ns() + EXIT_NS
        while unit.alive and unit.incarnation not in self.doomed and self.world.now_ns() < until_ns:
            await self.world.sleep_ns(self.bounds.poll_ns)
        return not unit.alive or unit.incarnation in self.doomed

    def _record(self, number: int, answer: Answer | None) -> None:
        if answer is None:
            self.recorder.answer(number, "indefinite", "the worker died before it answered")
        else:
            self.recorder.answer(number, answer.outcome, answer.detail, answer.status)

    # -- units -------------------------------------------------------------------------------------------------------

    @property
    def _worker_name(self) -> str:
        return self.subject.units[-1]

    def _worker(self) -> Unit:
        return self.units[self._worker_name]

    async def _ensure_up(self) -> None:
        """Restart whatever is down, in launch order; ask the target to resume where that is the caller's part."""
        for name in self.subject.units:
            unit = self.units.get(name)
            if unit is not None and unit.alive:
                continue
            if unit is not None:
                self._note_exit(unit)
            self.launched += 1
            self.units[name] = fresh = await self.world.launch(name, self.launched)
            self.recorder.add(Started(self.world.now_ns(), fresh.incarnation, name))
            self._disturb()
            if unit is not None:
                self.injector.target_is_back()
            if name == self._worker_name and self.started and self.subject.resumes_on_request:
                await self._resume()

    async def _resume(self) -> None:
        number = self.recorder.ask("resume", self.run, self._worker().incarnation)
        self._record(number, await self._ask("resume", run=self.run))

    def _note_exit(self, unit: Unit) -> None:
        """Record a death the kit did not cause; too many of them make the target unjudgeable."""
        if any(isinstance(event, Died) and event.incarnation == unit.incarnation for event in self.recorder.events):
            return
        self.exits += 1
        self.recorder.add(Died(self.world.now_ns(), unit.incarnation, unit.name, "exited"))
        if self.exits > EXITS_MAX:
            raise SimkitError(
                Problem(
                    "worker-keeps-dying",
                    f"unit {unit.name} of {self.subject.name} ended by itself {self.exits} times in one run",
                    f"incarnation {unit.incarnation}; its last words: {unit.last_words() or '(none)'}",
                    "a unit that runs until it is killed",
                    "run the adapter by hand and read its error output",
                    ExitCode.TARGET,
                )
            )

    # -- interruptions -----------------------------------------------------------------------------------------------

    def _take_ack(self, verb: str, action: str) -> list[Interruption]:
        return [
            one
            for one in self.injector.armed
            if one.site.where == "ack" and one.site.verb == verb and one.action == action and self.injector.take(one)
        ]

    async def gate(self, call: int, request: Request, nth: int, barrier: str) -> Fault | None:
        """Called by the services at each barrier of each call; the fault to inject, if any."""
        if request.lookup or self.injector.idle:
            return None
        self._look()
        fault: Fault | None = None
        caller = self.callers[call][1]
        for wait in self.plan.waits():
            if request.op in self._calls_before(wait):
                # The call is held meanwhile, so that the wait that needs its answer cannot have begun.
                await self._signal_early(wait)
        for one in self.injector.at_barrier(request.op, nth, barrier):
            fault = await self._strike(one, caller) or fault
        return fault

    async def _strike(self, one: Interruption, caller: int | None = None) -> Fault | None:
        self.recorder.add(Fired(self.world.now_ns(), one.label))
        self._disturb()
        match one.action:
            case "kill" | "power":
                return await self._kill(one, caller)
            case "pause":
                await self._pause(one, caller)
            case "repeat":
                self.nursery.start_soon(self._repeat_start)
            case "drop" | "reset" | "delay" | "error-before" | "error-after":
                return Fault(one.action, one.ns)
            case "lose-ack" | "early":
                pass
        return None

    async def _kill(self, one: Interruption, caller: int | None) -> Fault | None:
        unit = self._target(one, caller)
        if unit is None or not unit.alive:
            return None
        self.doomed.add(unit.incarnation)
        await unit.kill(power=one.action == "power")
        self.recorder.add(
            Died(self.world.now_ns(), unit.incarnation, unit.name, "power" if one.action == "power" else "killed")
        )
        return Fault("gone", 0) if unit.incarnation == caller else None

    def _target(self, one: Interruption, caller: int | None) -> Unit | None:
        """The unit to strike: the caller itself where a worker is meant and one is known, else the named unit."""
        if one.site.unit == self._worker_name and caller is not None:
            everyone = [*self.units.values(), *self.others]
            return next((unit for unit in everyone if unit.incarnation == caller), None)
        return self.units.get(one.site.unit)

    async def _pause(self, one: Interruption, caller: int | None) -> None:
        unit = self._target(one, caller)
        if unit is None or not unit.alive or unit is not self._worker():
            return
        await unit.pause()
        self.recorder.add(Paused(self.world.now_ns(), unit.incarnation))
        self.others.append(unit)
        del self.units[unit.name]
        self.loose += 1
        self.nursery.start_soon(self._let_go, unit, one.ns)

    async def _let_go(self, unit: Unit, ns: int) -> None:
        """Continue a paused worker after `ns`, and give it time to do harm before the run counts as settled."""
        await self.world.sleep_ns(ns)
        if unit.alive:
            await unit.resume()
            self.recorder.add(Resumed(self.world.now_ns(), unit.incarnation))
        self._disturb()
        await self.world.sleep_ns(self.bounds.grace_ns)
        self._disturb()
        self.loose -= 1

    def _arm_boundaries(self) -> None:
        for one in self.injector.armed:
            if one.site.where == "boundary":
                self.world.watch_boundary(one.site.unit, one.site.nth, lambda one=one: self._strike_now(one))  # type: ignore[misc]

    def _arm_times(self) -> None:
        for one in self.injector.armed:
            if one.site.where == "time":
                self.nursery.start_soon(self._strike_at, one)

    async def _strike_at(self, one: Interruption) -> None:
        await self.world.sleep_ns(one.site.ns)
        if self.injector.take(one):
            await self._strike(one)

    def _strike_now(self, one: Interruption) -> None:
        """A boundary strikes inside the target's own step, where nothing may be awaited."""
        unit = self.units.get(one.site.unit)
        if unit is None or not unit.alive or not self.injector.take(one):
            return
        coroutine = self._strike(one)
        try:
            coroutine.send(None)
        except StopIteration:
            return
        coroutine.close()
        raise RuntimeError("killing a simulated unit may not wait")
