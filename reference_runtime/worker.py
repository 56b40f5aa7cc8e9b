"""The worker: claims operations, carries each one out once per lease, and reports what came of it.

The order of `perform` is the heart: the intent is durable before a byte leaves, and a result counts only once the server
has taken it. A worker decides nothing about repeating: it says what it saw, and the store decides by the receiver's
contract. Leases are kept alive while work is in hand, so that slow is never mistaken for dead.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import trio

from reference_runtime.client import Client, Patience, Unreachable
from reference_runtime.model import Grant, Json, Refusal, Report, Ticket
from reference_runtime.tools import Busy, Rejected, Request, Tools, Unsent

NS = 1_000_000_000
SLOTS = 16
FOR_EVER = Patience(total_ns=None)

#: What a tool raises, in the words of a report; anything else says nothing about what happened.
REPORTS: Mapping[type[BaseException], Report] = {Busy: "busy", Rejected: "failed", Unsent: "unsent"}


@attrs.frozen
class Outcome:
    """What came of one invocation."""

    report: Report
    answer: Json = attrs.field(factory=dict)
    detail: str = ""


class Worker:
    """One activation; `run` until cancelled. Holds at most `slots` leases, and the client as its own."""

    def __init__(self, client: Client, tools: Tools, *, name: str = "worker", slots: int = SLOTS) -> None:
        self.client = client
        self.tools = tools
        self.name = name
        self.slots = slots
        self.execution = ""
        self._lease_s = 0.0
        self._holding: dict[int, float] = {}  # generation → until when the lease is certainly ours
        self._handed_back = trio.Event()

    async def run(self) -> None:
        async with self.client, trio.open_nursery() as nursery:
            welcome = await self.client.call("hello", {"name": self.name}, FOR_EVER)
            self.execution, self._lease_s = welcome["execution"], welcome["lease_ns"] / NS
            nursery.start_soon(self._keep_leases)
            while True:
                for grant in await self._claim():
                    self._holding[grant.generation] = 0.0  # not certain before the intent was recorded under it
                    nursery.start_soon(self._perform_and_hand_back, grant)

    async def _claim(self) -> list[Grant]:
        while len(self._holding) >= self.slots:
            self._handed_back = trio.Event()
            await self._handed_back.wait()
        ask = {
            "execution": self.execution,
            "holding": sorted(self._holding),
            "limit": self.slots - len(self._holding),
        }
        answer = await self.client.call("claim", ask, FOR_EVER)
        return [Grant(**grant) for grant in answer["grants"]]

    async def _perform_and_hand_back(self, grant: Grant) -> None:
        try:
            await self.perform(grant)
        finally:
            self._holding.pop(grant.generation, None)
            self._handed_back.set()

    async def perform(self, grant: Grant) -> None:
        """Intent, then call, then report. Nothing is called without a durable intent."""
        ticket = await self.intend(grant)
        if ticket is None:
            return
        outcome = await self.invoke(ticket) if self.still_ours(grant) else Outcome("unsent", detail="the lease ran out")
        await self.report(ticket, outcome)

    async def intend(self, grant: Grant) -> Ticket | None:
        """Have the intent recorded; None when somebody else owns the operation by now."""
        asked = trio.current_time()
        try:
            ticket = Ticket(**await self.client.call("dispatch", {"grant": attrs.asdict(grant)}, FOR_EVER))
        except Refusal:
            return None
        self._holding[grant.generation] = asked + self._lease_s
        return ticket

    def still_ours(self, grant: Grant) -> bool:
        """Whether the lease is certainly ours still, looked at just before the first byte leaves."""
        return trio.current_time() < self._holding.get(grant.generation, 0.0)

    async def invoke(self, ticket: Ticket) -> Outcome:
        """Make the call, or ask the receiver what became of an earlier one."""
        request = Request(
            tool=ticket.tool,
            task=ticket.task,
            operation=ticket.operation,
            key=self.key_for(ticket),
            params=self.params_for(ticket),
            carries=ticket.carries,
            script=ticket.script,
        )
        try:
            if ticket.action == "call":
                return Outcome("succeeded", await self.tools.call(request))
            found = await self.tools.lookup(request)
            return Outcome("missing") if found is None else Outcome("found", found)
        except Exception as error:  # noqa: BLE001 - whatever a tool does, what it means is a decision
            return Outcome(self.outcome_of(error, ticket), detail=f"{type(error).__name__}: {error}")

    def key_for(self, ticket: Ticket) -> str | None:
        """The key to send: the operation's own, in every invocation."""
        return ticket.key

    def params_for(self, ticket: Ticket) -> Json:
        """The parameters to send: those recorded with the first intent, in every invocation."""
        return ticket.params

    def outcome_of(self, error: Exception, ticket: Ticket) -> Report:
        """What an exception says about the invocation; an unexpected one says nothing, so the outcome is unknown."""
        if ticket.action == "lookup":
            return "unknown"
        return REPORTS.get(type(error), "unknown")

    async def report(self, ticket: Ticket, outcome: Outcome) -> None:
        """Have the outcome taken. A refusal ends it too: the operation is somebody else's, and the word was kept."""
        grant = Grant(ticket.attempt, ticket.operation, ticket.generation, ticket.version)
        params = {
            "grant": attrs.asdict(grant),
            "report": outcome.report,
            "answer": outcome.answer,
            "detail": outcome.detail,
        }
        try:
            await self.client.call("settle", params, FOR_EVER)
        except Refusal:
            return

    async def _keep_leases(self) -> None:
        """Tell the server, three times a term, that what we hold is in good hands."""
        patience = attrs.evolve(FOR_EVER, total_ns=int(self._lease_s * NS))
        while True:
            await trio.sleep(self._lease_s / 3)
            if not self._holding:
                continue
            asked, generations = trio.current_time(), sorted(self._holding)
            try:
                answer = await self.client.call(
                    "heartbeat", {"execution": self.execution, "generations": generations}, patience
                )
            except Unreachable:
                continue
            for generation in generations:
                if generation in self._holding and generation not in answer["lost"]:
                    self._holding[generation] = asked + self._lease_s
