"""The worker: takes operations, carries each one out once per lease, and reports what came of it.

The order of `perform` is the heart: the intent is durable before a byte leaves, and a result counts only once the server
has taken it. The answer to a report brings the next operation with it. A worker decides nothing about repeating: it says
what it saw, and the store decides by the receiver's contract. Leases are kept alive while work is in hand, so that slow is
never mistaken for dead; a worker that is told to stop finishes what it has begun and hands back the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext

import attrs
import trio

from reference_runtime.bounding import Bound
from reference_runtime.evolution import FIRST, Code
from reference_runtime.handle import UNSAYABLE, Handle, Patience, Unreachable
from reference_runtime.log import OFF, Log
from reference_runtime.model import NOT_BEGUN, Facts, Grant, Json, Refusal, Report, Ticket, flat
from reference_runtime.performing import Performer, leaf_of
from reference_runtime.rpc import CROWDED
from reference_runtime.runner import Runner
from reference_runtime.tools import Busy, Failure, Rejected, Request, Tools, Undispatchable, Unsent, external_of
from reference_runtime.workflow import Workflow

NS = 1_000_000_000
SLOTS = 16
GRACE_NS = 10 * NS
FOR_EVER = Patience(total_ns=None)
#: How long a worker that is leaving waits for its last words to be taken.
FAREWELL = Patience(total_ns=1 * NS)

#: What a tool raises, in the words of a report; anything else says nothing about what happened.
REPORTS: Mapping[type[BaseException], Report] = {
    Busy: "busy",
    Rejected: "failed",
    Unsent: "unsent",
    Undispatchable: "failed",
}


@attrs.frozen
class Outcome:
    """What came of one invocation."""

    report: Report
    answer: Json = attrs.field(factory=dict)
    detail: str = ""
    facts: Facts = attrs.field(factory=Facts)


def _unbounded(_: float) -> Bound:
    return nullcontext


class Worker:
    """One activation; `run` until cancelled, or until `stop`. Holds at most `slots` leases, and the client as its own."""

    def __init__(
        self,
        client: Handle,
        tools: Tools,
        *,
        name: str = "worker",
        slots: int = SLOTS,
        grace_ns: int = GRACE_NS,
        log: Log = OFF,
        workflows: Sequence[Workflow] = (),
        code: Code = FIRST,
        batch: int = 0,
        bounding: Callable[[float], Bound] = _unbounded,
    ) -> None:
        """Raises `Refusal` (`bad-setting`) for fewer than one slot."""
        if slots < 1:
            raise Refusal("bad-setting", f"a worker of {slots} slots would take nothing up; expected 1 or more")
        self.bounding = bounding
        self.client = client
        self.code = code
        self.batch = batch
        self.workflows = workflows
        self.tools = tools
        self.name = name
        self.slots = slots
        self.grace_ns = grace_ns
        self.log = log
        self.execution = ""
        self._runner: Runner | None = None
        self._lease_s = 0.0
        self._holding: dict[int, float] = {}  # generation → until when the lease is certainly ours
        self._handed_back = trio.Event()
        self._is_stopping = False
        self._beginning = trio.CancelScope()  # waiting for work, and work of which nothing was sent
        self._calls: dict[int, trio.CancelScope] = {}  # under way, by generation
        self._told: set[int] = set()  # leases of runs that are to stop

    def stop(self) -> None:
        """Begin nothing more: `run` returns when what was begun is reported, after `grace_ns` at the latest."""
        self.log("stopping", execution=self.execution, holding=len(self._holding))
        self._is_stopping = True
        self._beginning.cancel()

    async def run(self) -> None:
        async with self.client, trio.open_nursery() as nursery:
            asked = trio.current_time()
            with self._beginning:
                welcome = await self.client.call("hello", {"name": self.name, "code": self.code.to_json()}, FOR_EVER)
                self.execution, self._lease_s = welcome["execution"], welcome["lease_ns"] / NS
                self.log("ready", execution=self.execution, seconds=round(trio.current_time() - asked, 6))
                nursery.start_soon(self._keep_leases)
                async with trio.open_nursery() as beginning:
                    if self.workflows:
                        self._runner = Runner(
                            self.client,
                            self.workflows,
                            self.execution,
                            self.batch,
                            log=self.log,
                            bound=self.bounding(self._lease_s / 2),  # who is held up longer loses what it has in hand
                        )
                        beginning.start_soon(self._runner.run)
                    await self._begin(nursery)
            await self._leave()
            nursery.cancel_scope.cancel()

    async def _begin(self, nursery: trio.Nursery) -> None:
        while True:
            for lease in await self._claim():
                nursery.start_soon(self._work_off, lease)

    async def _claim(self) -> list[Grant | Ticket]:
        while len(self._holding) >= self.slots:
            self._handed_back = trio.Event()
            await self._handed_back.wait()
        ask = {
            "execution": self.execution,
            "holding": sorted(self._holding),
            "limit": self.slots - len(self._holding),
        }
        asked = trio.current_time()
        return self._taken(await self.client.call("claim", ask, FOR_EVER), asked)

    def _taken(self, answer: Json, asked: float) -> list[Grant | Ticket]:
        """The leases in an answer to what was `asked` then: certainly ours for a term from the time they were given."""
        leases: list[Grant | Ticket] = [Ticket(**one) for one in answer["tickets"]]
        leases += [Grant(**one) for one in answer["grants"]]
        until = asked + answer["waited_ns"] / NS + self._lease_s
        for lease in leases:
            self._holding[lease.generation] = until
        return leases

    async def _work_off(self, lease: Grant | Ticket) -> None:
        """Carry out a lease and what its report brings, one after the other, in one slot."""
        todo = [lease]
        while todo:
            one = todo.pop()
            try:
                todo += await self.perform(one)
            finally:
                self._holding.pop(one.generation, None)
        self._handed_back.set()

    async def perform(self, lease: Grant | Ticket) -> list[Grant | Ticket]:
        """Intent, then call, then report; the next leases. Nothing is called without a durable intent."""
        if self._is_stopping:
            return []
        ticket = lease if isinstance(lease, Ticket) else await self.intend(lease)
        if ticket is None:
            return []
        if ticket.fields.get("remaining_ns") == 0:
            outcome = Outcome("unsent", detail="the deadline has passed", facts=Facts(reason=NOT_BEGUN))
        elif self.still_ours(ticket):
            outcome = await self._invoke_until_stopped(ticket)
        else:
            outcome = Outcome("unsent", detail="the lease ran out", facts=Facts(reason=NOT_BEGUN))
        return await self.report(ticket, outcome)

    async def intend(self, grant: Grant) -> Ticket | None:
        """Have the intent recorded; None when somebody else owns the operation by now, or it may not be dispatched."""
        granted = await self.ask_authority(grant) if grant.authority else {}
        grant, asked = attrs.evolve(grant, granted=granted), trio.current_time()
        try:
            ticket = Ticket(**await self.client.call("dispatch", {"grant": flat(grant)}, FOR_EVER))
        except Refusal:
            return None
        self._holding[grant.generation] = asked + self._lease_s
        return ticket

    async def ask_authority(self, grant: Grant) -> dict[str, bool]:
        """Ask whether those who approved this operation have authority now; without those of whom nobody could tell."""
        granted = {}
        for leaf, actor in grant.authority.items():
            request = Request(
                tool="desk", task=grant.task, operation=leaf, key=None, params={"actor": actor}, carries={}
            )
            try:
                answer = await self.tools.lookup(request)
            except Exception as error:  # noqa: BLE001 - whatever it was, nobody told
                self.log("unanswered", operation=leaf, actor=actor, error=str(error))
                continue
            if answer is not None and isinstance(answer.get("allowed"), bool):
                granted[leaf] = answer["allowed"]
        return granted

    def still_ours(self, lease: Grant | Ticket) -> bool:
        """Whether the lease is certainly ours still, looked at just before the first byte leaves."""
        return trio.current_time() < self._holding.get(lease.generation, 0.0)

    async def _invoke_until_stopped(self, ticket: Ticket) -> Outcome:
        self.log("calling", **_ids(ticket), action=ticket.action, execution=self.execution)
        with trio.CancelScope() as self._calls[ticket.generation]:
            try:
                return await self.invoke(ticket)
            finally:
                self._calls.pop(ticket.generation, None)
        return Outcome("unknown", detail="it was told to stop, and given up")

    async def invoke(self, ticket: Ticket) -> Outcome:
        """Make the call, or ask the receiver what became of an earlier one."""
        request = Request(
            tool=ticket.tool,
            task=ticket.task,
            operation=leaf_of(ticket),
            key=self.key_for(ticket),
            params=self.params_for(ticket),
            carries=ticket.carries,
            script=ticket.script,
            secret=ticket.secret,
            fields=ticket.fields,
        )
        try:
            if ticket.action == "call":
                is_repeat = ticket.invocation > 1
                return _answered("succeeded", await Performer(self.tools).perform(request, is_repeat=is_repeat))
            found = await self.tools.lookup(request)
            return Outcome("missing") if found is None else _answered("found", found)
        except Exception as error:  # noqa: BLE001 - whatever a tool does, what it means is a decision
            detail = str(error) if isinstance(error, Failure) else f"{type(error).__name__}: {error}"
            return Outcome(self.outcome_of(error, ticket), detail=detail, facts=_facts_of(error))

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

    async def report(self, ticket: Ticket, outcome: Outcome) -> list[Grant | Ticket]:
        """Have the outcome taken; the leases that come with the answer. A refusal ends it too: the operation is somebody
        else's, and the word was kept. What cannot be reported as it is, is reported plainly.
        """
        params = {
            "grant": flat(Grant(ticket.attempt, ticket.operation, ticket.generation, ticket.version)),
            "report": outcome.report,
            "answer": outcome.answer,
            "detail": outcome.detail,
            "facts": flat(outcome.facts),
            "execution": self.execution,
            "limit": 0 if self._is_stopping else 1,
        }
        asked = trio.current_time()
        try:
            answer = await self._settle(ticket, outcome, params)
        except Refusal as no:
            self.log("refused", **_ids(ticket), report=outcome.report, execution=self.execution)
            plain = _plainly(outcome)
            if no.code not in UNSAYABLE or outcome == plain:
                return []
            return await self.report(ticket, plain)  # or it would be given out once more, and sent again
        self.log("reported", **_ids(ticket), report=outcome.report, execution=self.execution)
        return self._taken(answer, asked)

    async def _settle(self, ticket: Ticket, outcome: Outcome, params: Json) -> Json:
        """Report, together with how a workflow goes on that waits for this, where it runs here. Raises `Refusal`.

        Only with the result of a first call: one that took its worker with it may have done so as it went on.
        """
        ahead = None
        if self._runner is not None and outcome.report == "succeeded" and ticket.invocation == 1:
            ahead = self._runner.look_ahead(ticket.attempt, ticket.operation, outcome.answer)
        if ahead is None or self._runner is None:
            return await self.client.call("settle", params, FOR_EVER)
        answer: Json = {}
        try:
            answer = await self.client.call("settle", {**params, "ahead": ahead}, FOR_EVER)
        except Refusal as no:
            if no.code not in UNSAYABLE:
                raise
        finally:
            self._runner.looked_ahead(ticket.attempt, ahead, answer.get("ahead", {}))
        return answer or await self.client.call("settle", params, FOR_EVER)

    async def _leave(self) -> None:
        """Let calls under way come to their end, report the rest as unknown, and give back what was never begun."""
        with trio.move_on_after(self.grace_ns / NS):
            await self._empty_handed()
        for call in self._calls.values():
            call.cancel()
        with trio.move_on_after(self._lease_s):
            await self._empty_handed()
        if self.execution and not self._holding:
            with trio.move_on_after(self._lease_s):
                answer = await self._unless_unheard("release", {"execution": self.execution}, FAREWELL)
                if answer is not None:  # or what it holds comes back when its leases end
                    self.log("released", execution=self.execution, generations=answer["released"])

    async def _empty_handed(self) -> None:
        while self._holding:
            self._handed_back = trio.Event()
            await self._handed_back.wait()

    async def _keep_leases(self) -> None:
        """Tell the server, three times a term, that what we hold is in good hands."""
        # a connection that fell silent is given up in time for another one to be tried
        answer_ns = min(FOR_EVER.answer_ns, int(self._lease_s * NS / 4))
        patience = Patience(total_ns=int(self._lease_s * NS), answer_ns=answer_ns)
        while True:
            await trio.sleep(self._lease_s / 3)
            if not self._holding:
                continue
            asked, generations = trio.current_time(), sorted(self._holding)
            said = {"execution": self.execution, "generations": generations}
            answer = await self._unless_unheard("heartbeat", said, patience)
            if answer is None:
                continue
            for generation in generations:
                if generation in self._holding and generation not in answer["lost"]:
                    self._holding[generation] = asked + self._lease_s
            self._heed_stops(answer["stopping"], answer["lost"])

    async def _unless_unheard(self, verb: str, params: Json, patience: Patience) -> Json | None:
        """An answer, or None where the server gave none in time, or never had room for the connection."""
        try:
            return await self.client.call(verb, params, patience)
        except Unreachable:
            return None
        except Refusal as no:
            if no.code != CROWDED:
                raise
            return None

    def _heed_stops(self, stopping: list[int], lost: list[int]) -> None:
        """Give up calls that a stop has left alone for its whole grace, and that were then taken from us: nobody waits for
        them any more. One that was lost without a stop goes on: its late answer may be of use.
        """
        self._told = (self._told & self._holding.keys()) | set(stopping)
        for generation in sorted(self._told.intersection(lost)):
            if generation in self._calls:
                self._calls[generation].cancel()


def _answered(report: Report, answer: Json) -> Outcome:
    return Outcome(report, answer, facts=Facts(external=external_of(answer)))


def _plainly(outcome: Outcome) -> Outcome:
    """An outcome in words that can be reported in any case; a result that cannot be handed on is as good as lost."""
    is_result = outcome.report in ("succeeded", "found")
    return Outcome("unknown" if is_result else outcome.report, detail="what was answered cannot be reported")


def _facts_of(error: Exception) -> Facts:
    """What a failure tells beside its kind; a stranger tells nothing."""
    if not isinstance(error, Failure):
        return Facts()
    return Facts(external=error.external, retry_after_ns=error.retry_after_ns, reason=error.reason)


def _ids(ticket: Ticket) -> dict[str, object]:
    return {"task": ticket.task, "operation": ticket.operation, "generation": ticket.generation}
