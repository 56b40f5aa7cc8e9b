"""The scene of an interruption: what it can strike and ask, and the record of whether it did."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import attrs
import trio

from conformance.client import Client
from conformance.control import Answer
from conformance.crew import Crew
from conformance.headway import Headway
from conformance.injector import Injector
from conformance.questions import Question
from conformance.recorder import Recorder
from conformance.world import Patience, Subject, Unit, World
from scenarios.history import Fired
from scenarios.interruption import Interruption
from scenarios.plan import Plan
from simkit.services import Outside, Request


@attrs.frozen
class Passing:
    """A request at one of its barriers, and the incarnation that sent it."""

    request: Request
    caller: int


async def _unheard(_question: Question, _answer: Answer) -> None:
    """Nobody minds."""


@attrs.define(eq=False)
class Scene:
    """One run under way. `loose` counts what goes on in the background and may still do something to it, `beside_runs` are
    the other runs that the kit has started, and `acknowledged` is told of every command that the target has taken.
    """

    world: World
    subject: Subject
    plan: Plan
    run: str
    injector: Injector
    recorder: Recorder
    crew: Crew
    client: Client
    headway: Headway
    patience: Patience
    outside: Outside
    nursery: trio.Nursery | None = None
    beside_runs: set[str] = attrs.field(factory=set)
    acknowledged: Callable[[Question, Answer], Awaitable[None]] = attrs.field(default=_unheard)
    loose: int = 0
    noted: int = 0
    _nonces: dict[str, str] = attrs.field(factory=dict, init=False)
    _given: dict[str, int] = attrs.field(factory=dict, init=False)

    def number_of(self, kind: str) -> int:
        """The next number of commands of one kind, from 1: one that is given anew is another one."""
        self._given[kind] = self._given.get(kind, 0) + 1
        return self._given[kind]

    def nonce_of(self, command: str) -> str:
        """The nonce that goes with a command: the same each time it is given, as its id is."""
        if command not in self._nonces:
            self._nonces[command] = self.world.nonce()
        return self._nonces[command]

    def note(self, one: Interruption) -> None:
        """Record that `one` takes place now."""
        self.recorder.add(Fired(self.world.now_ns(), one.label))
        self.world.fires(one.label)
        self.patience.disturb()
        self.noted += 1

    def miss(self, one: Interruption) -> None:
        """There was nothing to strike."""
        self.injector.miss(one)

    def has(self, *verbs: str) -> bool:
        """Whether the target can be asked all of these."""
        return set(verbs) <= set(self.subject.declared.verbs)

    def target(self, one: Interruption, passing: Passing | None) -> Unit | None:
        """The living unit to strike: the caller itself where a worker is meant and one is known, else the named unit."""
        if passing is not None and one.site.unit == self.crew.worker_name:
            unit = self.crew.numbered(passing.caller)
        else:
            unit = self.crew.named(one.site.unit)
        return unit if self.crew.lives(unit) else None

    def soon(self, work: Callable[..., Awaitable[object]], *args: object) -> None:
        """Go on with this in the background; the run does not count as settled before it is over."""
        assert self.nursery is not None
        self.loose += 1
        self.nursery.start_soon(self._loosely, work, args)

    def beside(self, work: Callable[..., Awaitable[object]], *args: object) -> None:
        """Go on with this in the background, whatever becomes of the run."""
        assert self.nursery is not None
        self.nursery.start_soon(work, *args)

    async def _loosely(self, work: Callable[..., Awaitable[object]], args: tuple[object, ...]) -> None:
        try:
            await work(*args)
        finally:
            self.loose -= 1
