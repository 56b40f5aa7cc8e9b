"""The driver: one run of one scenario on one target, in either world; what comes out is a history.

The client (`conformance.client`) asks, the operator (`conformance.crew`) restarts what died, the saboteur
(`conformance.saboteur`) interrupts; the driver tells them when. The worlds differ only in how a unit is launched, killed
and paused, and in what time is; see `conformance.world`.

A run goes: boot → start until acknowledged → watch until settled, and meanwhile signal what is waited for, decide what is to
be approved, and follow what the run has started beside itself → a last look. Every wait is bounded: a run must settle within
`Bounds.settle_ns` after the last disturbance, is watched for four times that before it counts as stuck, and a start that is
never acknowledged ends the run too. While a run is kept from going on (halted, its unit kept down, its decision held back),
no time counts.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Literal

import attrs
import trio

from conformance import shown as showing
from conformance.client import Client
from conformance.crew import Crew
from conformance.headway import Headway
from conformance.injector import Injector
from conformance.looks import Looks, secrets_of
from conformance.recorder import Recorder, canonical
from conformance.sabotage import others
from conformance.sabotage.scene import Scene
from conformance.saboteur import Saboteur
from conformance.world import Pace, Patience
from scenarios.history import STORM, TERMINAL, Closed, Died, Fired, History, Quiet, Status
from scenarios.plan import Approve, Artifact, Call, Check, Compensate, Model
from simkit.errors import ExitCode, Problem, SimkitError
from simkit.services import KEY_LIFETIME_NS, Outside

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

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
        self._recorder = Recorder(run, world.now_ns)
        self._patience = Patience(subject.bounds, world.spent_ns)
        self._headway = Headway(self._plan, self._recorder, world.now_ns)
        self._crew = Crew(world, subject, self._recorder, self._patience)
        self._crew.code = self._plan.code or ""
        self._client = Client(world, subject, self._plan, run, self._recorder, self._crew)
        self.outside = Outside(
            nonce=world.nonce,
            recorder=self._recorder,
            now_ns=world.now_ns,
            key_lifetime_ns=subject.declared.key_lifetime_ns or KEY_LIFETIME_NS,
        )
        self._scene = Scene(
            world,
            subject,
            self._plan,
            run,
            self._injector,
            self._recorder,
            self._crew,
            self._client,
            self._headway,
            self._patience,
            self.outside,
        )
        self.saboteur = Saboteur(self._scene)
        self._looks = Looks(self._scene)
        names = secrets_of(self._plan.calls())
        self._secrets = self._recorder.secrets = world.entrust(names) if names else {}
        self._is_started = self._is_quiet = self._is_followed = False
        self._is_prompt: bool | None = None  # whether the run had ended in time when it was first seen to have ended
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
        reason = await self._watch() if await self._begin() else self._given_up()
        if not self._is_quiet:
            self._recorder.add(Quiet(self._world.now_ns()))
        await self._looks.last(self._secrets, has_stopped=reason == "stopped")
        self._recorder.add(Closed(self._world.now_ns(), reason))

    async def gate(self, call: int, request: Request, nth: int, barrier: str) -> Fault | None:
        """Called by the services at each barrier of each call: is it one of the plan at all, and is there a fault to inject?"""
        if request.run in self._scene.beside_runs:
            return None
        run, op = canonical(self._run, request)
        if run != self._run or not isinstance(self._plan.leaf(op), _CALLING):
            raise SimkitError(self._stray(request))
        return await self.saboteur.gate(call, request, op, nth, barrier)

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
            if self._crew.has_stopped:
                return False
            answer = await self._client.start()
            asked += 1
            if answer.outcome == "error":
                if asked == 1:  # nothing was disturbed, and nothing can be judged
                    raise SimkitError(self._refused(answer))
                return False
            if answer.outcome == "ok":
                self._is_started = True
                await self.saboteur.after_start()
                return True
            if self._start_fails(answer):
                raise SimkitError(self._failed_start(answer, asked))
            await self._world.sleep_ns(self._subject.bounds.poll_ns)
        return False

    def _refused(self, answer: Answer) -> Problem:
        return Problem(
            "start-refused",
            f"{self._subject.name} definitely refused the start of a run: {answer.detail or '(no message)'}",
            f"verb start; the plan has {', '.join(sorted(self._plan.kinds()))}",
            "an acknowledgement: the manifest says that it can interpret such plans",
            _hint(answer, "name under [operations] only what it can, and start from an empty state folder"),
            ExitCode.TARGET,
        )

    def _start_fails(self, answer: Answer) -> bool:
        """Is it the adapter's own error that keeps the run from beginning? Nothing has struck it that could excuse that."""
        struck = self._injector.fired or any(isinstance(one, Died) for one in self._recorder.events)
        return answer.told and not struck and not self._world.stormy and not self._patience.within(1)

    def _failed_start(self, answer: Answer, asked: int) -> Problem:
        return Problem(
            "start-fails",
            f"{self._subject.name} answered start with an error every time it was asked ({asked} times in "
            f"{self._subject.bounds.settle_ns / 1e9:g} s), lately: {answer.detail or '(no message)'}; "
            f"the worker's last words:\n    {self._last_words()}",
            f"verb start; the plan has {', '.join(sorted(self._plan.kinds()))}",
            "an acknowledgement, at least where nothing is disturbed",
            "an exception inside the adapter ends here: its traceback is among the last words",
            ExitCode.TARGET,
        )

    def _last_words(self) -> str:
        worker = self._crew.worker
        return "\n    ".join((worker.last_words() if worker else "").splitlines()) or "(none)"

    def _given_up(self) -> Literal["bound", "stopped"]:
        return "stopped" if self._crew.has_stopped else "bound"

    async def _watch(self) -> Literal["settled", "slow", "bound", "stopped"]:
        pace = Pace(self._subject.bounds)
        while self._patience.within(4):
            await self._ensure_up()
            if self._crew.has_stopped:
                return "stopped"
            self._maybe_quiet()
            if self._crew.is_down(self._crew.worker_name) and not self._crew.lives(self._crew.worker):
                await self._world.sleep_ns(self._subject.bounds.poll_ns)  # there is nobody to ask
                continue
            answer = await self._client.status()
            status = answer.status
            if status is None:
                if self._is_failing():
                    return self._failed(answer)
            elif await self._react(status):
                return "settled" if self._is_prompt else "slow"
            if status is not None and status.state == "unknown" and self._is_quiet and not self._patience.within(1):
                return "bound"  # forgotten work does not come back by waiting longer
            told = status and (status.state, status.version, status.on)
            await self._world.sleep_ns(pace.after((told, self._scene.noted)))
        return "bound"

    def _is_failing(self) -> bool:
        """Has the target answered nothing but errors, until long after the last disturbance?"""
        settle_ns = self._subject.bounds.settle_ns
        return not self._patience.within(1) and self._world.now_ns() - self._shown_ns >= settle_ns

    def _failed(self, answer: Answer) -> Literal["stopped"]:
        """By errors alone nothing can be judged; over damaged storage they are the right answer."""
        if self._crew.is_damaged:
            return "stopped"
        raise SimkitError(
            Problem(
                "status-fails",
                f"{self._subject.name} has answered every status with an error for {self._subject.bounds.settle_ns / 1e9:g} s, "
                f"lately: {answer.detail or '(no message)'}; the worker's last words:\n    {self._last_words()}",
                f"verb status of run {self._run!r}",
                "a status, at least once the worker has come up and nothing disturbs it",
                _hint(answer, "an exception inside the adapter ends here: its traceback is among the last words"),
                ExitCode.TARGET,
            )
        )

    def _plainly_answered(self, status: Status) -> Collection[str]:
        """What the target was answered, where the run is over and nothing has struck that may have made it forget."""
        if status.state != "done" or self._injector.fired or self._world.stormy:
            return ()
        return self._headway.answered()

    async def _react(self, status: Status) -> bool:
        """Do what this status calls for; True when the run has settled."""
        self._shown_ns = self._world.now_ns()
        showing.check(self._subject.name, self._run, self._plan, status, self._plainly_answered(status))
        self._headway.shown(status)
        if status.state in TERMINAL and not self._awaits_code(status):
            return await self._has_settled()
        self._is_prompt = None
        await self._looks.after_strikes()
        for sleep in self._plan.sleeps():
            if self._headway.is_running(sleep) and await self.saboteur.at("waiting", sleep.id):
                return False
        for approve in self.saboteur.decisions.pending(status):
            if await self.saboteur.at("waiting", approve, status):
                return False
        if await self.saboteur.decisions.attend(status):
            return False
        await self._signal(status)
        for child in self._children_that_wait:
            if (shown := (await self._client.status(f"{self._run}/{child}")).status) is not None:
                await self._signal(shown)
        return False

    async def _signal(self, status: Status) -> None:
        """Send the signal that is waited for, if there is any."""
        if status.state != "waiting" or self._plan_has_approval(status.on):
            return
        if (wait := self._headway.awaited(status.on)) is not None and not await self.saboteur.at("waiting", wait.id):
            await self.saboteur.signal(wait)

    def _plan_has_approval(self, on: str | None) -> bool:
        return on is not None and isinstance(self._plan.leaf(on), Approve)

    def _awaits_code(self, status: Status) -> bool:
        """Is the run blocked for want of code that fits, and may the news of a worker that has it be on its way still?"""
        is_blocked = status.state == "blocked" and (status.reason or "").startswith(_CODE_REASONS)
        return is_blocked and self._patience.rested_ns() < _NEWS_GRACES * self._subject.bounds.grace_ns

    async def _has_settled(self) -> bool:
        """The run has ended: whether nothing is left that could still happen to it, or that it has left behind."""
        if self._is_prompt is None:
            self._is_prompt = self._patience.within(1)
        if await self.saboteur.at("end"):
            return False
        if not self._is_followed:
            self._is_followed = True
            detached = [f"{self._run}/{child.id}" for child in self._plan.children() if child.detached]
            if detached:
                self._scene.soon(others.follow, self._scene, detached)
        return not self.saboteur.someone_is_loose

    @functools.cached_property
    def _children_that_wait(self) -> tuple[str, ...]:
        """Paths of the children whose plans wait for signals."""
        inner = self._plan.operations_of_children()
        return tuple(dict.fromkeys(inner[wait.id][0] for wait in self._plan.waits() if wait.id in inner))

    def _maybe_quiet(self) -> None:
        if not self._is_quiet and self.saboteur.finished and not self._world.stormy:
            self._is_quiet = True
            self._recorder.add(Quiet(self._world.now_ns()))


def _hint(answer: Answer, otherwise: str) -> str:
    """What to do about an error, in the helper's own words for a verb that the adapter's class has no method for."""
    if "has no method `" not in answer.detail:
        return otherwise
    return "write it in the class that is given to `serve`; docs/contract.md says what it answers"


#: Why a run is blocked that goes on by itself once a worker with other code comes, and how many times the grace that may take.
_CODE_REASONS = ("code-incompatible", "diverged")
_NEWS_GRACES = 4

#: Operations that send requests of their own; an approval's are its look-ups at the desk.
_CALLING = (Call, Model, Compensate, Artifact, Check, Approve)
