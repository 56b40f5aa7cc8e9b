"""The recorder: turns what the kit sees into the typed events of one history, in the one order it saw them.

What a child calls is recorded as its parent's: run `r/c` and operation `x` become run `r` and operation `c/x`, as the plan
names it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from scenarios.history import Answered, Applied, Asked, Authority, Event, History, Received, Replied, Stored

if TYPE_CHECKING:
    from conformance.questions import Question
    from scenarios.history import Declared, Status
    from scenarios.plan import Plan
    from simkit.services import Reply, Request


def canonical(run: str, request: Request) -> tuple[str, str]:
    """Run and operation of a request, as the plan of `run` names them; those of other runs are left as they are."""
    if not request.run.startswith(f"{run}/"):
        return request.run, request.op
    return run, f"{request.run.removeprefix(f'{run}/')}/{request.op}"


class Recorder:
    """Appends events; implements `simkit.services.Recorder` for the hosted world and `ask`/`answer` for the driver.

    `listen`, when given, is told each event as it happens (for a trace or a live view).
    """

    def __init__(self, run: str, now_ns: Callable[[], int], listen: Callable[[Event], None] | None = None) -> None:
        self.run, self.now_ns = run, now_ns
        self.events: list[Event] = []
        #: Values of the secrets that were entrusted to the target, by name: only one of them counts as brought.
        self.secrets: Mapping[str, str] = {}
        self._listen = listen
        self._asks = 0

    def add(self, event: Event) -> None:
        self.events.append(event)
        if self._listen is not None:
            self._listen(event)

    # -- the services' side ------------------------------------------------------------------------------------------

    def received(self, call: int, request: Request, incarnation: int, digest: str) -> None:
        run, op = canonical(self.run, request)
        self.add(
            Received(
                self.now_ns(),
                call,
                request.service,
                run,
                op,
                incarnation,
                request.key,
                digest,
                dict(request.carries),
                request.lookup,
                token=request.token,
                remaining_ns=request.remaining_ns,
                subject=_subject(request),
                secret=request.secret in self.secrets.values(),
                part=request.part,
            )
        )

    def applied(self, call: int, effect: int, nonce: str) -> None:
        self.add(Applied(self.now_ns(), call, effect, nonce))

    def replied(self, call: int, reply: Reply, delivery: Literal["sent", "dropped", "reset"]) -> None:
        self.add(
            Replied(
                self.now_ns(),
                call,
                reply.status,
                reply.kind,
                reply.nonce,
                delivery,
                usage=reply.usage,
                external=reply.external,
                outcome=reply.outcome,
            )
        )

    def stored(self, location: str, state: Literal["staged", "committed", "removed"]) -> None:
        self.add(Stored(self.now_ns(), location, state))

    def authority(self, actor: str, *, granted: bool) -> None:
        self.add(Authority(self.now_ns(), actor, granted))

    # -- the driver's side -------------------------------------------------------------------------------------------

    def ask(self, question: Question, incarnation: int) -> int:
        """Note a question, and return its number."""
        self._asks += 1
        self.add(
            Asked(
                self.now_ns(),
                self._asks,
                question.verb,
                question.run,
                incarnation,
                question.id,
                question.name,
                question.nonce,
                operation=question.operation,
                decision=question.decision,
                digest=question.digest,
                actor=question.actor,
                payload=question.payload,
            )
        )
        return self._asks

    def answer(
        self,
        ask: int,
        outcome: Literal["ok", "error", "indefinite"],
        detail: str = "",
        status: Status | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> None:
        self.add(Answered(self.now_ns(), ask, outcome, detail, status, body=body))

    def history(self, run: str, plan: Plan, declared: Declared) -> History:
        return History(run, plan, declared, tuple(self.events))


def _subject(request: Request) -> str | None:
    """What a check is about, as `name@version#digest`."""
    return None if request.subject is None else f"{request.subject}@{request.version}#{request.digest}"
