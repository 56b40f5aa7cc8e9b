"""A world in memory for the driver: a small durable runtime whose habits the test chooses, in virtual time.

The runtime keeps a journal that outlives its workers, calls the services one leaf after the other under stable keys, and
tries again after every unknown outcome. What it does wrong, it does because a `Habits` field says so.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

import attrs
import trio

from conformance.canaries import canary
from conformance.control import Answer
from conformance.driver import Observation, observe
from conformance.world import Born, Bounds, Sighting, Subject, Unit, unheard
from scenarios.history import Declared, OperationStatus, Status
from scenarios.interruption import Interruption, Scenario
from scenarios.plan import Call, Plan, Seq, Sleep, Wait
from simkit.errors import Problem, SimkitError
from simkit.services import Gate, Outside, Reply, Request
from simkit.tape import Tape
from simkit.world import Limits, run

MS = 1_000_000
BOUNDS = Bounds(settle_ns=1000 * MS, poll_ns=10 * MS, ask_ns=500 * MS, grace_ns=100 * MS)
CALL_TIMEOUT_S = 0.2
RETRY_S = 0.02

CHAIN = Plan(Seq("main", (Call("a", "ledger"), Call("b", "ledger", {}, ("a",)))))
GATED = Plan(Seq("main", (Call("a", "ledger"), Wait("w", "go"), Call("b", "ledger", {}, ("a", "w")))))
GATE_FIRST = Plan(Seq("main", (Wait("w", "go"), Call("a", "ledger", {}, ("w",)))))
TWO_GATES = Plan(
    Seq("main", (Wait("w", "go"), Call("a", "ledger", {}, ("w",)), Wait("v", "on"), Call("b", "ledger", {}, ("v",))))
)
NAP = Plan(Seq("main", (Call("a", "ledger"), Sleep("s", 300 * MS), Call("b", "ledger"))))


@attrs.frozen
class Habits:
    """What the runtime is like."""

    resumes_on_request: bool = False
    forgets_when_killed: bool = False
    refuses_start: bool = False
    never_acknowledges: bool = False
    never_done: bool = False
    boots_take_ns: int = 5_000_000
    exits_at_boot: int = 0  # so many workers end by themselves when they have just come up
    dies_over: str = ""  # the first question of this verb kills the worker, by itself
    end_takes_ns: int = 0  # from the last answer until the run shows as done
    garbage_over: str = ""  # a question of this verb is answered with garbage
    answers_take_ns: int = 0
    refuses_early: bool = False
    asks_too_late: bool = False  # it never opens its control channel
    shows_result: dict[str, str] | None = None  # in place of what it has
    status_fails: bool = False  # the adapter raises in its status
    names_the_wait: bool = False  # `on` is the id of the wait instead of its signal's name
    drops_signals: bool = False  # acknowledged, and gone
    reads_clocks: bool = True  # it looks at wall clocks, so that it matters when they jump
    when_told_to_leave: str = "leaves"  # once what it is at has ended; or "stays", or "dies" of it
    loses_signal_acks: bool = False  # a signal arrives, and its first answer is lost
    over_damage: str = (
        ""  # once a bit was flipped, workers "exit", "refuse" to be launched, or answer with "errors" only
    )


@attrs.define
class Journal:
    """What outlives a worker."""

    plan: Plan | None = None
    accepted: dict[str, str] = attrs.field(factory=dict)
    signals: dict[str, tuple[str, str]] = attrs.field(factory=dict)  # id → (name, nonce)
    ended: bool = False


class ToyWorld:
    """Implements `conformance.world.World`; `nursery` is where services and workers live."""

    def __init__(self, habits: Habits, nursery: trio.Nursery) -> None:
        self.habits, self.nursery = habits, nursery
        self.journal = Journal()
        self.units: list[ToyUnit] = []
        self.watches: dict[tuple[str, int], Callable[[], None]] = {}
        self.crossed: dict[str, int] = {}
        self.nonces = 0
        self.done: list[tuple[Any, ...]] = []  # what was done to machines
        self.outside: Outside | None = None
        self.gate: Gate | None = None

    #: No faults of its own.
    stormy = False

    def now_ns(self) -> int:
        return round(trio.current_time() * 1e9)

    def spent_ns(self) -> int:
        return self.now_ns()

    def nonce(self) -> str:
        self.nonces += 1
        return f"n{self.nonces}"

    async def sleep_ns(self, ns: int) -> None:
        await trio.sleep(ns / 1e9)

    @contextlib.asynccontextmanager
    async def serving(self, outside: Outside, gate: Gate) -> AsyncIterator[None]:
        self.outside, self.gate = outside, gate
        yield

    async def launch(
        self, unit: str, incarnation: int, *, code: str = "", forget: str = "", born: Born = unheard
    ) -> Unit:
        await self.begin_launch(born)
        fresh = ToyUnit(self, unit, incarnation)
        self.units.append(fresh)
        if unit == "worker":
            self.nursery.start_soon(fresh.live)
        return fresh

    async def begin_launch(self, born: Born) -> None:
        """A launch takes a while, and may be refused; until then nothing comes to be."""
        await trio.sleep(self.habits.boots_take_ns / 1e9)
        if self.minds_damage("refuse"):
            raise _problem("adapter-gone")
        born()

    def minds_damage(self, habit: str) -> bool:
        """Whether there is damage, and this is what the runtime does about it."""
        return self.habits.over_damage == habit and any(what == "flip" for what, *_ in self.done)

    def fires(self, label: str) -> None:
        """Nobody draws it."""

    def watch_boundary(self, unit: str, nth: int, strike: Callable[[], None]) -> None:
        self.watches[unit, nth] = strike

    def fail_once(self, unit: str, nth: int, strike: Callable[[], bool], *, kind: str | None = None) -> None:
        self.watches[unit, nth] = lambda: self.done.append(("eio", strike(), *([] if kind is None else [kind])))

    def entrust(self, names: Sequence[str]) -> Mapping[str, str]:
        return {name: canary(f"{self.nonce():0>24}") for name in names}

    def scan(self, secrets: Mapping[str, str]) -> Sighting:
        return Sighting(("store", "logs"))

    def cross(self, unit: str) -> None:
        """A storage boundary of `unit`."""
        self.crossed[unit] = self.crossed.get(unit, 0) + 1
        self.watches.pop((unit, self.crossed[unit]), lambda: None)()


class ToyUnit:
    """One worker or engine; only workers do anything."""

    def __init__(self, world: ToyWorld, name: str, incarnation: int) -> None:
        self.world, self.name, self.incarnation = world, name, incarnation
        self.control: Any = ToyControl(self) if name == "worker" and not world.habits.asks_too_late else None
        self.alive = True
        self.dead = trio.Event()
        self.running = trio.Event()
        self.running.set()
        self.resumed = trio.Event()
        self.scope = trio.CancelScope()
        self.is_leaving = False
        self.left_in_order = True

    async def kill(self, *, power: bool, state: str | None = None) -> None:
        assert self.alive
        if self.world.habits.forgets_when_killed:
            self.world.journal = Journal()
        self.die()

    def die(self) -> None:
        self.alive = False
        self.dead.set()
        self.running.set()  # nobody waits for the dead
        self.scope.cancel()

    def ask_to_leave(self) -> None:
        habit = self.world.habits.when_told_to_leave
        self.is_leaving = habit == "leaves"
        if habit == "dies":
            self.left_in_order = False
            self.die()

    async def leave_if_told(self) -> None:
        if self.is_leaving:
            self.die()
            await trio.lowlevel.checkpoint()  # the dead go no further

    async def bury(self) -> None:
        assert not self.alive

    async def pause(self) -> None:
        assert self.running.is_set()
        self.running = trio.Event()

    async def resume(self) -> None:
        self.running.set()

    def jump(self, ns: int) -> bool:
        self.world.done.append(("jump", self.name, ns))
        return self.world.habits.reads_clocks

    def full(self, on: bool) -> None:
        self.world.done.append(("full", self.name, on, self.world.now_ns()))

    def flip(self) -> bool:
        assert not self.alive
        self.world.done.append(("flip", self.name))
        return self.world.journal.plan is not None  # before that there is nothing to damage

    def wipe(self) -> None:
        assert not self.alive
        self.world.done.append(("wipe", self.name))

    @property
    def ending(self) -> str:
        return "exit code 7"

    def last_words(self) -> str:
        return "goodbye"

    async def live(self) -> None:
        with self.scope:
            if self.incarnation <= self.world.habits.exits_at_boot or self.world.minds_damage("exit"):
                self.die()
            if self.world.habits.resumes_on_request and self.incarnation > 1:
                await self.resumed.wait()
            while self.world.journal.plan is None:  # noqa: ASYNC110 - a store is polled, like that of any runtime
                await trio.sleep(0.001)
            await self.work(self.world.journal.plan)

    async def work(self, plan: Plan) -> None:
        for leaf in plan.leaves():
            while leaf.id not in self.world.journal.accepted:
                await self.leave_if_told()
                match leaf:
                    case Call():
                        await self.accept(leaf.id, await self.call(leaf))
                    case Wait():
                        taken = set(self.world.journal.accepted.values())
                        signals = self.world.journal.signals.values()
                        nonce = next((n for name, n in signals if name == leaf.signal and n not in taken), None)
                        await self.accept(leaf.id, nonce)
                    case Sleep():
                        await trio.sleep(leaf.ns / 1e9)
                        await self.accept(leaf.id, "")
        await trio.sleep(self.world.habits.end_takes_ns / 1e9)
        self.world.journal.ended = not self.world.habits.never_done

    async def accept(self, leaf: str, nonce: str | None) -> None:
        """Write an answer down, unless a stop or a death comes first; without one, try again a little later."""
        await self.running.wait()
        await trio.lowlevel.checkpoint()
        if nonce is None:
            await trio.sleep(RETRY_S)
            return
        self.world.cross("worker")
        await trio.lowlevel.checkpoint()  # the dead go no further
        self.world.journal.accepted.setdefault(leaf, nonce)

    async def call(self, leaf: Call) -> str | None:
        """The nonce of the answer, or None when it cannot be known."""
        carries = {name: self.world.journal.accepted[name] for name in leaf.carries}
        request = Request(leaf.service, "r", leaf.id, f"r:{leaf.id}", dict(leaf.params), carries)
        channel = ToyChannel()
        assert self.world.outside is not None
        assert self.world.gate is not None
        # In a task of the services' own: it goes on when the caller is killed inside it.
        self.world.nursery.start_soon(self.world.outside.serve, request, self.incarnation, self.world.gate, channel)
        with trio.move_on_after(CALL_TIMEOUT_S):
            await channel.answered.wait()
        return str(channel.reply.body["nonce"]) if channel.reply is not None and channel.reply.status == 200 else None


class ToyChannel:
    """The way back to one caller."""

    def __init__(self) -> None:
        self.answered = trio.Event()
        self.reply: Reply | None = None

    async def send(self, reply: Reply) -> None:
        self.reply = reply
        self.answered.set()

    async def reset(self) -> None:
        self.answered.set()

    async def drop(self) -> None:
        pass

    async def cut(self, reply: Reply) -> None:
        self.answered.set()


class ToyControl:
    """The kit's end of one worker's control channel."""

    def __init__(self, unit: ToyUnit) -> None:
        self.unit, self.world, self.habits = unit, unit.world, unit.world.habits

    async def ask(self, verb: str, timeout_ns: int, **fields: Any) -> Answer:
        if self.habits.garbage_over == verb:
            raise _problem("adapter-garbage")
        if self.habits.dies_over == verb and self.unit.incarnation == 1:
            self.unit.die()
        with trio.move_on_after(timeout_ns / 1e9):
            await self._until_running(self.habits.answers_take_ns)
            return self._answer(verb, fields)
        raise _problem("adapter-silent")

    async def _until_running(self, ns: int) -> None:
        """Wait until the worker would answer; raises when it is dead by then."""
        with trio.move_on_after(ns / 1e9):
            await self.unit.dead.wait()
        await self.unit.running.wait()
        if not self.unit.alive:
            raise _problem("adapter-gone")

    def _answer(self, verb: str, fields: dict[str, Any]) -> Answer:
        return getattr(self, verb)(**{name: value for name, value in fields.items() if name != "run"})

    def start(self, plan: dict[str, Any], key: str) -> Answer:
        if self.habits.refuses_start:
            return Answer("error", detail="no such operation")
        if self.habits.never_acknowledges:
            return Answer("indefinite", detail="busy")
        self.world.cross("worker")
        self.world.journal.plan = Plan.from_json(plan)
        return Answer("ok")

    def signal(self, name: str, payload: dict[str, str], id: str) -> Answer:
        if self.habits.refuses_early and self.status().status.state != "waiting":
            return Answer("error", detail="nothing waits")
        is_new = id not in self.world.journal.signals
        if not self.habits.drops_signals:
            self.world.journal.signals[id] = (name, payload["nonce"])
        if is_new and self.habits.loses_signal_acks:
            return Answer("indefinite", detail="no answer")
        return Answer("ok")

    def resume(self) -> Answer:
        self.unit.resumed.set()
        return Answer("ok")

    def status(self) -> Answer:
        if self.habits.status_fails or self.world.minds_damage("errors"):
            return Answer("indefinite", detail="AttributeError: no 'anwser'")
        status = _status(self.world.journal)
        if self.habits.names_the_wait and status.state == "waiting":
            status = attrs.evolve(status, on="w")
        if self.habits.shows_result is not None and status.state == "done":
            status = attrs.evolve(status, result=self.habits.shows_result)
        return Answer("ok", status=status)


def _status(journal: Journal) -> Status:
    if journal.plan is None:
        return Status("unknown")
    operations = tuple(OperationStatus(name, "succeeded", nonce) for name, nonce in journal.accepted.items())
    leaf = next((leaf for leaf in journal.plan.leaves() if leaf.id not in journal.accepted), None)
    if leaf is None and journal.ended:
        return Status("done", result=dict(journal.accepted), operations=operations)
    if isinstance(leaf, Wait):
        return Status("waiting", on=leaf.signal, operations=operations)
    return Status("running", operations=operations)


def _problem(code: str) -> SimkitError:
    return SimkitError(Problem(code, code, "toy"))


# ---- running


def watch(
    plan: Plan,
    *interruptions: Interruption,
    habits: Habits = Habits(),  # frozen
    units: tuple[str, ...] = ("worker",),
    bounds: Bounds = BOUNDS,
) -> Observation:
    """Drive one run of the toy runtime, in virtual time and always in the same order. Raises what `observe` raises."""
    subject = Subject("toy", Declared(shows_operations=True), units, habits.resumes_on_request, bounds)

    async def main(_world: object) -> Observation | SimkitError:
        async with trio.open_nursery() as nursery:
            try:
                return await observe(ToyWorld(habits, nursery), subject, Scenario("test", plan, interruptions), "r")
            except SimkitError as error:
                return error
            finally:
                nursery.cancel_scope.cancel()

    seen = run(main, tape=Tape.from_seed(0), limits=Limits(steps=100_000)).unwrap()
    if isinstance(seen, SimkitError):
        raise seen
    return seen
