"""The client: asks one worker after the other on behalf of one run, and records every question and answer.

A worker may die or be stopped over a question; then the answer is indefinite, as for any client. What breaks the protocol
is a `SimkitError`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from conformance.control import Answer
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
        self._open: dict[trio.CancelScope, Unit] = {}

    async def start(self, loses: Callable[[], bool] = lambda: False) -> Answer:
        """Submit the run. `loses` is asked once the worker has acknowledged: does the kit throw that away?"""
        return await self._question(
            "start", {"plan": self._plan.to_json(), "key": self._run}, id=self._run, loses=loses
        )

    async def status(self) -> Answer:
        return await self._question("status", {})

    async def resume(self) -> Answer:
        return await self._question("resume", {})

    async def signal(self, wait: Wait) -> Answer:
        """Send the signal of `wait`: the same id and nonce each time it is sent again."""
        nonce = self._nonces.setdefault(wait.id, self._world.nonce())
        command = f"{self._run}:{wait.id}"
        fields: dict[str, object] = {"name": wait.signal, "payload": {"nonce": nonce}, "id": command}
        return await self._question("signal", fields, id=command, name=wait.signal, nonce=nonce)

    def give_up(self, unit: Unit) -> None:
        """Wait no longer for what this unit was asked: it has been stopped."""
        for scope, asked in self._open.items():
            if asked is unit:
                scope.cancel()

    async def _question(
        self,
        verb: str,
        fields: dict[str, object],
        *,
        id: str | None = None,
        name: str | None = None,
        nonce: str | None = None,
        loses: Callable[[], bool] = lambda: False,
    ) -> Answer:
        unit = self._crew.worker
        if unit is None:
            return Answer("indefinite", detail="there is no worker to ask")
        number = self._recorder.ask(verb, self._run, unit.incarnation, id=id, name=name, nonce=nonce)
        answer = await self._ask(unit, verb, fields)
        if answer.outcome == "ok" and loses():
            answer = Answer("indefinite", detail="the kit threw the acknowledgement away")
        self._recorder.answer(number, answer.outcome, answer.detail, answer.status)
        return answer

    async def _ask(self, unit: Unit, verb: str, fields: dict[str, object]) -> Answer:
        if unit.control is None:
            return Answer("indefinite", detail="the worker never opened its control channel")
        with trio.CancelScope() as scope:
            self._open[scope] = unit
            try:
                return await unit.control.ask(verb, self._bounds.ask_ns, run=self._run, **fields)
            except SimkitError as error:
                if not await self._is_gone(unit, error):
                    raise
                return Answer("indefinite", detail="the worker died before it answered")
            finally:
                del self._open[scope]
        return Answer("indefinite", detail="the worker was stopped before it answered")

    async def _is_gone(self, unit: Unit, error: SimkitError) -> bool:
        """Did the question fail because the worker died over it? Its end of the channel closes a moment before it is dead."""
        if error.problem.code == "adapter-gone":
            until_ns = self._world.now_ns() + EXIT_NS
            while self._crew.lives(unit) and self._world.now_ns() < until_ns:
                await self._world.sleep_ns(self._bounds.poll_ns)
        return not self._crew.lives(unit) or unit is not self._crew.worker
