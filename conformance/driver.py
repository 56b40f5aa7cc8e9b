"""The driver: one run of one scenario on one target, in either world; what comes out is a history.

The client (`conformance.client`) asks, the operator (`conformance.crew`) restarts what died, the saboteur
(`conformance.saboteur`) interrupts; the driver tells them when. The worlds differ only in how a unit is launched, killed
and paused, and in what time is; see `conformance.world`.

A run goes: boot → start until acknowledged → watch until settled. Every wait is bounded: a run must settle within
`Bounds.settle_ns` after the last disturbance, is watched for four times that before it counts as stuck, and a start that is
never acknowledged ends the run too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import attrs
import trio

from conformance.client import Client
from conformance.crew import Crew
from conformance.headway import Headway
from conformance.injector import Injector
from conformance.recorder import Recorder
from conformance.saboteur import Saboteur
from conformance.world import Patience
from scenarios.history import STORM, TERMINAL, Closed, Fired, History, Quiet, Status
from scenarios.plan import Call
from simkit.errors import ExitCode, Problem, SimkitError
from simkit.services import Outside

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.control import Answer
    from conformance.world import Subject, World
    from scenarios.interruption import Scenario
    from simkit.services import Fault, Request


@attrs.frozen
class Observation:
    """What one run gave: the history, and the interruptions that struck and that never did."""

    history: History
    fired: tuple[str, ...]
    unfired: tuple[str, ...]


async def observe(
    world: World,
    subject: Subject,
    scenario: Scenario,
    run: str,
    *,
    witness: Callable[[History], object] = bool,
) -> Observation:
    """Run `scenario` on the target in `world`. Raises `SimkitError` when kit or adapter broke the protocol; `witness` is
    given what had been seen until then.
    """
    driver = _Driver(world, subject, scenario, run)
    try:
        async with world.serving(driver.outside, driver.gate), trio.open_nursery() as nursery:
            await driver.drive(nursery)
            nursery.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        witness(driver.observation().history)
        raise the_problem(group) from group
    return driver.observation()


def the_problem(group: BaseExceptionGroup[BaseException]) -> BaseException:
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
        self._world, self._subject, self._plan, self._run = world, subject, scenario.plan, run
        self._injector = Injector(scenario.interruptions)
        self._recorder = Recorder(world.now_ns)
        self._patience = Patience(subject.bounds, world.now_ns)
        self._headway = Headway(self._plan, self._recorder, world.now_ns)
        self._crew = Crew(world, subject, self._recorder, self._patience)
        self._client = Client(world, subject, self._plan, run, self._recorder, self._crew)
        self.outside = Outside(nonce=world.nonce, recorder=self._recorder, now_ns=world.now_ns)
        self.saboteur = Saboteur(
            world,
            subject,
            self._plan,
            self._injector,
            self._recorder,
            self._crew,
            self._client,
            self._headway,
            self._patience,
        )
        self._is_started = self._is_quiet = False
        self._was_stormy = False
        self._shown_ns = 0  # when a status was last answered as one

    def observation(self) -> Observation:
        history = self._recorder.history(self._run, self._plan, self._subject.declared)
        fired = tuple(one.label for one in self._injector.fired)
        return Observation(history, fired, tuple(one.label for one in self._injector.unfired()))

    async def drive(self, nursery: trio.Nursery) -> None:
        self.saboteur.begin(nursery)
        if self._world.stormy:
            self._recorder.add(Fired(self._world.now_ns(), STORM))
        await self._ensure_up()
        self._patience.disturb()
        self._headway.started_ns = self._world.now_ns()
        self.saboteur.start_asked()
        self._shown_ns = self._world.now_ns()
        reason = await self._watch() if await self._begin() else "bound"
        if not self._is_quiet:
            self._recorder.add(Quiet(self._world.now_ns()))
        self._recorder.add(Closed(self._world.now_ns(), reason))

    async def gate(self, call: int, request: Request, nth: int, barrier: str) -> Fault | None:
        """Called by the services at each barrier of each call: is it one of the plan at all, and is there a fault to inject?"""
        if request.run != self._run or not isinstance(self._plan.leaf(request.op), Call):
            raise SimkitError(self._stray(request))
        return await self.saboteur.gate(call, request, nth, barrier)

    def _stray(self, request: Request) -> Problem:
        return Problem(
            "stray-call",
            f"{self._subject.name} called {request.service} for operation {request.op!r} of run {request.run!r}",
            f"service {request.service}",
            f"run {self._run!r} and one of {', '.join(op.id for op in self._plan.calls())}",
            "an adapter calls for the run it was started with, by the ids of the plan's calls",
            ExitCode.TARGET,
        )

    async def _ensure_up(self) -> None:
        """Restart what is down, and ask the target to resume where that is the caller's part."""
        if self._world.stormy or self._was_stormy:
            self._was_stormy = self._world.stormy
            self._patience.disturb()  # time counts from the last fault
        started = await self._crew.ensure_up()
        if started:
            self.saboteur.target_is_back()
        if self._is_started and self._subject.resumes_on_request and self._crew.worker_name in started:
            await self._client.resume()

    async def _begin(self) -> bool:
        """Ask start until it is acknowledged; False when a repeated one is refused or the bound is met."""
        asked = 0
        while self._patience.within(4):
            await self._ensure_up()
            answer = await self._client.start(self.saboteur.loses_start)
            asked += 1
            if answer.outcome == "error":
                if asked == 1:  # nothing was disturbed, and nothing can be judged
                    raise SimkitError(self._refused(answer))
                return False
            if answer.outcome == "ok":
                self._is_started = True
                await self.saboteur.after_start()
                return True
            await self._world.sleep_ns(self._subject.bounds.poll_ns)
        return False

    def _refused(self, answer: Answer) -> Problem:
        return Problem(
            "start-refused",
            f"{self._subject.name} definitely refused the start of a run: {answer.detail or '(no message)'}",
            f"verb start; the plan has {', '.join(sorted(self._plan.kinds()))}",
            "an acknowledgement: the manifest says that it can interpret such plans",
            "name under [operations] only what it can, and start from an empty state folder",
            ExitCode.TARGET,
        )

    async def _watch(self) -> Literal["settled", "slow", "bound"]:
        while self._patience.within(4):
            await self._ensure_up()
            self._maybe_quiet()
            answer = await self._client.status()
            status = answer.status
            if status is None:
                self._check_failing(answer)
            elif await self._react(status):
                return "settled" if self._patience.within(1) else "slow"
            if status is not None and status.state == "unknown" and self._is_quiet and not self._patience.within(1):
                return "bound"  # forgotten work does not come back by waiting longer
            await self._world.sleep_ns(self._subject.bounds.poll_ns)
        return "bound"

    def _check_failing(self, answer: Answer) -> None:
        """An adapter that answers nothing but errors, long after the last disturbance, cannot be judged by."""
        if self._patience.within(1) or self._world.now_ns() - self._shown_ns < self._subject.bounds.settle_ns:
            return
        worker = self._crew.worker
        words = "\n    ".join((worker.last_words() if worker else "").splitlines()) or "(none)"
        raise SimkitError(
            Problem(
                "status-fails",
                f"{self._subject.name} has answered every status with an error for {self._subject.bounds.settle_ns / 1e9:g} s, "
                f"lately: {answer.detail or '(no message)'}; the worker's last words:\n    {words}",
                f"verb status of run {self._run!r}",
                "a status, at least once the worker has come up and nothing disturbs it",
                "an exception inside the adapter ends here: its traceback is among the last words",
                ExitCode.TARGET,
            )
        )

    def _check_wait(self, status: Status) -> None:
        names = {wait.signal for wait in self._plan.waits()}
        if status.state == "waiting" and status.on is not None and status.on not in names:
            raise SimkitError(
                Problem(
                    "wrong-wait",
                    f"{self._subject.name} shows the run waiting on {status.on!r}, which is no signal of its plan",
                    f"verb status of run {self._run!r}: on",
                    f"the name of a signal ({', '.join(sorted(names)) or 'this plan has none'}), or nothing for a timer",
                    "`on` is the wait's signal, not the wait's id",
                    ExitCode.TARGET,
                )
            )

    async def _react(self, status: Status) -> bool:
        """Do what this status calls for; True when the run has settled."""
        self._shown_ns = self._world.now_ns()
        self._check_wait(status)
        if status.state in TERMINAL:
            return not await self.saboteur.at("end") and not self.saboteur.someone_is_loose
        for sleep in self._plan.sleeps():
            if self._headway.is_running(sleep) and await self.saboteur.at("waiting", sleep.id):
                return False
        if status.state == "waiting" and (wait := self._headway.awaited(status.on)) is not None:
            if await self.saboteur.at("waiting", wait.id):
                return False
            if self._headway.signalled(wait, (await self._client.signal(wait)).outcome):
                self._patience.disturb()
                await self.saboteur.after_signal(wait)
        return False

    def _maybe_quiet(self) -> None:
        if not self._is_quiet and self.saboteur.finished and not self._world.stormy:
            self._is_quiet = True
            self._recorder.add(Quiet(self._world.now_ns()))
