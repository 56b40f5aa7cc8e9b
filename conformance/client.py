"""The client: asks one worker after the other on behalf of one run, and records every question and answer.

A worker may die or be stopped over a question; then the answer is indefinite, as for any client. What breaks the protocol
is a `SimkitError`. A command that is asked again has the id, and the nonce, that it had before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from conformance import questions
from conformance.control import Answer
from conformance.questions import Question
from simkit.errors import SimkitError

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.crew import Crew
    from conformance.recorder import Recorder
    from conformance.world import Subject, Unit, World
    from scenarios.plan import Plan, Wait

#: How long a worker that closed its channel may take to be dead.
EXIT_NS = 2_000_000_000


class Client:
    def __init__(self, world: World, subject: Subject, plan: Plan, run: str, recorder: Recorder, crew: Crew) -> None:
        self._world, self._bounds, self._plan, self._run = world, subject.bounds, plan, run
        self._recorder, self._crew = recorder, crew
        self._nonces: dict[str, str] = {}  # of signals, by wait
        self._last: dict[str, Question] = {}  # the latest question of each verb
        #: Asked once a worker has answered: does the kit throw that away?
        self.loses: Callable[[Question, Answer], bool] = lambda _question, _answer: False
        self._open: dict[trio.CancelScope, Unit] = {}

    async def start(self) -> Answer:
        """Submit the run."""
        return await self.ask(questions.start(self._run, self._plan))

    async def status(self, run: str | None = None) -> Answer:
        """The status of the run, or of another one."""
        return await self.ask(Question("status", run or self._run))

    async def resume(self) -> Answer:
        return await self.ask(Question("resume", self._run))

    async def read(self, verb: str, **fields: object) -> Answer:
        """What the target tells under `events`, `artifacts` or `journal`."""
        return await self.ask(Question(verb, self._run, fields))

    async def signal(self, wait: Wait) -> Answer:
        """Send the signal of `wait`: the same id and nonce each time it is sent again."""
        nonce = self._nonces.setdefault(wait.id, self._world.nonce())
        inside = self._plan.operations_of_children().get(wait.id)
        to = None if inside is None else f"{self._run}/{inside[0]}"
        return await self.ask(questions.signal_of(self._run, wait, nonce, to))

    async def again(self, verb: str) -> Answer | None:
        """Ask the latest question of this verb once more; None when there was none."""
        last = self._last.get(verb)
        return None if last is None else await self.ask(last)

    def has_asked(self, verb: str) -> bool:
        return verb in self._last

    def give_up(self, unit: Unit) -> None:
        """Wait no longer for what this unit was asked: it has been stopped."""
        for scope, asked in self._open.items():
            if asked is unit:
                scope.cancel()

    async def ask(self, question: Question) -> Answer:
        """Ask the worker there is. An acknowledgement that is thrown away is indefinite; but for a start, whose asker goes on
        asking by itself, the same is asked again at once.
        """
        unit = self._crew.worker
        if unit is None:
            return _none("there is no worker to ask")
        if question.run == self._run and not question.is_misuse:
            self._last[question.verb] = question
        number = self._recorder.ask(question, unit.incarnation)
        answer = await self._put(unit, question)
        is_lost = answer.outcome == "ok" and self.loses(question, answer)
        if is_lost:
            answer = _none("the kit threw the acknowledgement away")
        body = dict(answer.ok) if answer.status is None and answer.ok else None
        self._recorder.answer(number, answer.outcome, answer.detail, answer.status, body)
        return await self.ask(question) if is_lost and question.verb != "start" else answer

    async def _put(self, unit: Unit, question: Question) -> Answer:
        if unit.control is None:
            return _none("the worker never opened its control channel")
        with trio.CancelScope() as scope:
            self._open[scope] = unit
            try:
                return await unit.control.ask(
                    question.verb, self._bounds.ask_ns, run=question.to or question.run, **question.fields
                )
            except SimkitError as error:
                if not await self._is_gone(unit, error):
                    raise
                return _none("the worker died before it answered")
            finally:
                del self._open[scope]
        return _none("the worker was stopped before it answered")

    async def _is_gone(self, unit: Unit, error: SimkitError) -> bool:
        """Did the question fail because the worker died over it? Its end of the channel closes a moment before it is dead."""
        if error.problem.code == "adapter-gone":
            until_ns = self._world.now_ns() + EXIT_NS
            while self._crew.lives(unit) and self._world.now_ns() < until_ns:
                await self._world.sleep_ns(self._bounds.poll_ns)
        return not self._crew.lives(unit) or unit is not self._crew.worker


def _none(why: str) -> Answer:
    """No answer came, so that nobody knows what became of the question."""
    return Answer("indefinite", detail=why, told=False)
