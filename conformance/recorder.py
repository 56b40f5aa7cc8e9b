"""The recorder: turns what the kit sees into the typed events of one history, in the one order it saw them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from scenarios.history import Answered, Applied, Asked, Event, History, Received, Replied

if TYPE_CHECKING:
    from scenarios.history import Declared, Status
    from scenarios.plan import Plan
    from simkit.services import Reply, Request


class Recorder:
    """Appends events; implements `simkit.services.Recorder` for the hosted world and `ask`/`answer` for the driver.

    `listen`, when given, is told each event as it happens (for a trace or a live view).
    """

    def __init__(self, now_ns: Callable[[], int], listen: Callable[[Event], None] | None = None) -> None:
        self.now_ns = now_ns
        self.events: list[Event] = []
        self._listen = listen
        self._asks = 0

    def add(self, event: Event) -> None:
        self.events.append(event)
        if self._listen is not None:
            self._listen(event)

    # -- the services' side ------------------------------------------------------------------------------------------

    def received(self, call: int, request: Request, incarnation: int, digest: str) -> None:
        self.add(
            Received(
                self.now_ns(),
                call,
                request.service,
                request.run,
                request.op,
                incarnation,
                request.key,
                digest,
                dict(request.carries),
                request.lookup,
            )
        )

    def applied(self, call: int, effect: int, nonce: str) -> None:
        self.add(Applied(self.now_ns(), call, effect, nonce))

    def replied(self, call: int, reply: Reply, delivery: Literal["sent", "dropped", "reset"]) -> None:
        self.add(Replied(self.now_ns(), call, reply.status, reply.kind, reply.nonce, delivery))

    # -- the driver's side -------------------------------------------------------------------------------------------

    def ask(self, verb: str, run: str, incarnation: int, *, id: str | None = None, name: str | None = None,
            nonce: str | None = None) -> int:  # fmt: skip
        self._asks += 1
        self.add(Asked(self.now_ns(), self._asks, verb, run, incarnation, id, name, nonce))
        return self._asks

    def answer(
        self,
        ask: int,
        outcome: Literal["ok", "error", "indefinite"],
        detail: str = "",
        status: Status | None = None,
    ) -> None:
        self.add(Answered(self.now_ns(), ask, outcome, detail, status))

    def history(self, run: str, plan: Plan, declared: Declared) -> History:
        return History(run, plan, declared, tuple(self.events))
