"""The server: owns the store, answers calls, fires timers and takes work back from workers that went silent.

Every verb is a method that ends its transaction before it returns, or its part of one that is shared, and an answer leaves
only after the commit; so whatever a caller was told is durable. Calls run to their end one at a time (there is no await inside
a part). Errors of the storage are not answered: they end the server, because after one nobody knows what the next answer would
be worth.

What is due by the wall clock is kept as far off as it was when that is set; this is looked at before anything is read or
written by it.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import TypeVar

import attrs
import trio

from reference_runtime.clock import Steps
from reference_runtime.connections import Connections, denial, next_request, send_answer, while_there
from reference_runtime.evolution import Code
from reference_runtime.gathering import check_commit_delay
from reference_runtime.holding import NS
from reference_runtime.log import OFF, Log
from reference_runtime.looking import Looking
from reference_runtime.model import MOVES, Grant, Json, Refusal, Rejected, Report, Ticket, flat
from reference_runtime.ownership import Lease
from reference_runtime.rpc import LOST, Lines, parse_request, read_facts, read_grant
from reference_runtime.store import Store
from reference_runtime.turns import Turn
from reference_runtime.waiting import Waiting, WaitingRoom, give, leased

T = TypeVar("T")
LEASE_NS = 10 * NS
#: How long a claim waits for work before it returns empty-handed; also the longest the server sleeps on the wall clock.
POLL_NS = 1 * NS
#: Verbs that may take their time; all others are answered at once.
WAITING = frozenset({"claim", "claim_turns"})


class Server(Looking):
    """One store and everybody who talks to it."""

    def __init__(
        self,
        store: Store,
        *,
        lease_ns: int = LEASE_NS,
        poll_ns: int = POLL_NS,
        commit_delay_ns: int = 0,
        connections: Connections | None = None,
        log: Log = OFF,
    ) -> None:
        """Raises `Refusal` (`bad-setting`) for a `commit_delay_ns` that is too long beside `lease_ns`."""
        check_commit_delay(commit_delay_ns, lease_ns)
        super().__init__(lease_ns, log)
        self.commit_delay_ns = commit_delay_ns
        self.store = store
        self.connections = connections or Connections()
        self.poll_ns = poll_ns
        self.nursery: trio.Nursery | None = None
        self.guests: dict[trio.CancelScope, None] = {}  # who asks within this process
        self._steps = Steps()
        self._work = WaitingRoom[Lease]()
        self._early = trio.Event()  # set when time must be looked at before `_wake`, which is monotonic
        self._wake = 0.0
        self._since = 0.0  # from when on it could be reached
        self._minded: tuple[list[str], int] | None = None  # who was there, and the count of changes, at the last look

    async def serve(
        self,
        host: str | None,
        port: int,
        *,
        task_status: trio.TaskStatus[list[trio.SocketListener]] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Serve until cancelled. `task_status.started` gives the listeners, once connections are taken."""
        await self.serve_on(await trio.open_tcp_listeners(port, host=host), task_status=task_status)

    async def serve_on(
        self,
        listeners: list[trio.SocketListener],
        *,
        task_status: trio.TaskStatus[list[trio.SocketListener]] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """As `serve`, on sockets that are open already; those who came before are answered, too."""
        async with self.up():
            task_status.started(listeners)
            await trio.serve_listeners(self._converse, listeners)

    def is_up(self) -> bool:
        return self.nursery is not None

    def is_late(self) -> bool:
        """Whether something is due by now that comes before whoever asks."""
        return trio.current_time() >= self._wake

    def may_wait(self, verb: str) -> bool:
        """Whether the answer to a verb may have to wait for something."""
        return verb in WAITING or self.is_late() or self.is_gathering(verb)

    @asynccontextmanager
    async def up(self) -> AsyncIterator[None]:
        """For as long as this lasts the server can be asked (`answer`), and what is due by its clocks happens. Raises
        RuntimeError where it is up already.
        """
        if self.is_up():
            raise RuntimeError("this server is up already; ask it by Embedded(server)")
        self._since = trio.current_time()
        self.store.mend_hours()
        self._hold_all()
        self.log("up", leases=len(self._holders))
        async with trio.open_nursery() as nursery:
            self.nursery = nursery
            nursery.start_soon(self._keep_time)
            try:
                yield
            finally:
                self.nursery = None
                for guest in self.guests:  # or what they wait for would be leased to them by nobody
                    guest.cancel()
                nursery.cancel_scope.cancel()
                self.abandon_gathered()  # last, as it may fail

    # -- verbs

    async def ping(self) -> Json:
        return {"lease_ns": self.lease_ns}

    async def submit(self, task: str, plan: Json) -> Json:
        """Acknowledge a task, which is durable once this is answered."""
        with self.serving("submit"):
            receipt = self.store.submit(task, plan)
        return attrs.asdict(receipt)

    async def signal(self, task: str, id: str, name: str, payload: Json) -> Json:
        disposition = self.store.signal(task, id, name, payload)
        self.notify()
        return disposition

    async def decide(
        self, task: str, id: str, operation: str, decision: str, digest: str, actor: str, payload: Json
    ) -> Json:
        """Take a decision about an approve leaf; `payload` brings the nonce it is known by."""
        nonce = str(payload.get("nonce", ""))
        with self.store.auditing_refusal(task, actor, f"command {id}", operation):
            answer = self.store.decide(task, operation, decision, digest, actor, id, nonce)
        self.notify()
        return answer

    async def cancel(self, task: str, id: str) -> Json:
        """Accept a stop: from the moment this is answered nothing more of the task is admitted."""
        answer = self.store.cancel(task, id)
        self.notify()
        return answer

    async def pause(self, task: str, id: str) -> Json:
        return self.store.pause(task, id)

    async def unpause(self, task: str, id: str) -> Json:
        answer = self.store.unpause(task, id)
        self.notify()
        return answer

    async def retry(self, task: str, id: str) -> Json:
        answer = self.store.retry(task, id)
        self.notify()
        return answer

    async def hello(self, name: str, code: Json) -> Json:
        """Name one activation of a worker, write down what code it runs, and tell it how long a lease lasts."""
        runs = Code.from_json(code)
        execution = self.store.welcome(name, runs)
        self.store.afterwards(partial(self.log, "welcomed", execution=execution, code=runs.version))
        return {"execution": execution, "lease_ns": self.lease_ns}

    async def claim(self, execution: str, holding: list[int], limit: int) -> Json:
        """Lease work to a worker, waiting a while for some to turn up."""
        asked = trio.current_time()
        deadline = asked + self.poll_ns / NS
        take = self._unless_left(execution, partial(self.store.claim, execution, holding, limit))
        with self._presence.asking(execution), self._work.waits(execution, take) as waiting:
            while True:
                self._mind_clock()
                leases = waiting.look()
                if leases or limit == 0 or trio.current_time() >= deadline or self._presence.has_left(execution):
                    break  # who wants nothing, or has left, is given nothing, however much of it is due
                self._mind_code()
                with trio.move_on_at(min(deadline, _monotonic(self.store.next_work_ns(execution)))):
                    await waiting.woken()
        return self._handed_out(leases, execution, trio.current_time() - asked)

    def _handed_out(self, leases: list[Lease], execution: str, waited: float) -> Json:
        """Leases as an answer. Their terms began `waited` seconds after the request came, and no earlier than that."""
        for lease in leases:
            self._hold(lease.generation, execution)
        if leases:
            self._mind_time()
        return {
            "tickets": [flat(one) for one in leases if isinstance(one, Ticket)],
            "grants": [flat(one) for one in leases if isinstance(one, Grant)],
            "waited_ns": int(waited * NS),
        }

    async def heartbeat(self, execution: str, generations: list[int]) -> Json:
        """Extend the leases this execution still has; which ones it has lost, and which are of runs that are to stop."""
        self._presence.heard(execution)
        self._runners.heard(execution)
        lost = []
        for generation in generations:
            if generation in self._holders and self._holders[generation][0] == execution:
                self._hold(generation, execution)
            else:
                lost.append(generation)
        return {"lost": lost, "stopping": self.store.tell(execution, generations)}

    async def dispatch(self, grant: Json) -> Json:
        """Record an intent; the ticket says that it is durable. The lease's term begins anew."""
        ticket = self.store.dispatch(read_grant(grant))
        if isinstance(ticket, Rejected):
            raise Refusal("stale", ticket.reason)
        self._heard(ticket.generation)
        return flat(ticket)

    async def settle(
        self,
        grant: Json,
        report: Report,
        answer: Json,
        detail: str,
        facts: Json,
        execution: str,
        limit: int,
        ahead: Json | None = None,
    ) -> Json:
        """Take what an invocation came to; `answer` is empty where there is none. Answers with up to `limit` more leases.

        `ahead`: how a workflow goes on with it, taken in the same transaction where it fits.
        """
        if report not in MOVES:
            raise Refusal("bad-request", f"settle: report {report!r}; there are {', '.join(MOVES)}")
        held = read_grant(grant)
        told = read_facts(facts)
        going_on, gone_on = self.ahead_of(held.operation, answer, ahead, execution)
        with self.serving("settle"):
            rejected, leases = self.store.turn(
                held, report, answer or None, detail, told, execution=execution, limit=limit, going_on=going_on
            )
        if rejected is not None:
            raise Refusal("stale", rejected.reason)
        self._let_go(held.generation)
        return {**self._handed_out(leases, execution, 0.0), "ahead": gone_on}

    async def release(self, execution: str) -> Json:
        """Take back what an execution that is over still has leased; it sent nothing under these leases."""
        self._presence.leave(execution)
        self._runners.leave(execution)
        released = self.store.hand_back(execution)
        for generation in released:
            self._holders.pop(generation, None)
        self.store.afterwards(partial(self.log, "left", execution=execution, generations=released))
        self.notify()
        return {"released": released}

    def _unless_left(self, execution: str, take: Callable[[], list[T]]) -> Callable[[], list[T]]:
        """What leases to a request of an execution, and nothing once that has left: it had asked before that."""
        return lambda: [] if self._presence.has_left(execution) else take()

    # -- time

    def notify(self) -> None:
        """Wake those for whom what was just committed matters: who waits for work, and who waits for the next hour."""
        self._tell_workers(self.store.next_work_ns())
        self.tell_runners()
        self._mind_time(self.store.next_timer_ns())

    def _tell_workers(self, due_ns: int | None) -> None:
        if due_ns is not None:
            self._work.wake()

    @contextmanager
    def serving(self, verb: str) -> Iterator[None]:
        """One transaction that also leases what comes of it to those who wait, so that they need none of their own. Others are
        told of what is left, once it is committed. Where there may be more such requests, these share it.
        """
        with self.store.sharing() if self.is_gathering(verb) else self.store.together():
            yield
            due_ns = self.store.next_work_ns()
            work = self._work.take() if due_ns is not None and due_ns <= time.time_ns() else {}
            turns = self._turns.take() if self._turns and self.store.turn_is_due() else {}
        for generation, execution in (*leased(work), *leased(turns)):
            self._hold(generation, execution)
        self.store.afterwards(partial(self._serve, work, turns, due_ns))

    def _serve(
        self, work: dict[Waiting[Lease], list[Lease]], turns: dict[Waiting[Turn], list[Turn]], due_ns: int | None
    ) -> None:
        for generation, _ in (*give(work, self._holders), *give(turns, self._holders)):
            self._heard(generation)
        self._tell_workers(self.store.next_work_ns() if work else due_ns)
        self.tell_runners()
        self._mind_time(self.store.started_timer_ns())

    def _mind_time(self, at_ns: int | None = None) -> None:
        """Wake the keeper of time when something is due before it would look: at `at_ns`, or at the end of a new lease."""
        if at_ns is None and self.lease_ns >= self.poll_ns:
            return  # it looks again before any new lease ends
        lease = trio.current_time() + self.lease_ns / NS if self._holders else float("inf")
        if min(lease, _monotonic(at_ns)) < self._wake:
            self._early.set()

    async def _keep_time(self) -> None:
        self._wake = trio.current_time()
        while True:
            self._early = trio.Event()
            if trio.current_time() > self._wake + self.lease_ns / NS / 2:
                self._excuse()
            self._mind_clock()
            self._mind_code()
            await self.connections.drop_stalled()
            fired = self.store.fire_timers()
            if fired:
                self._forget_taken()
            if fired + self.reassign():
                self.notify()
                self._wake = trio.current_time()  # it looks again at once, after those who ask
                await trio.lowlevel.checkpoint()
                continue
            longest = trio.current_time() + self.poll_ns / NS
            self._wake = min(longest, self.next_expiry(), _monotonic(self.store.next_timer_ns()))
            with trio.move_on_at(self._wake):
                await self._early.wait()

    def _mind_clock(self) -> None:
        """When the wall clock has been set, set everything that is due by it as well."""
        if step_ns := self._steps.step_ns():
            self.log("clock-set", step_ns=step_ns)
            self.store.set_hours(step_ns)
            self.notify()

    def _mind_code(self) -> None:
        """Show which work waits for code that nobody there has, once everybody had a term to come back to this server."""
        if self._is_new():
            return
        present = self._presence.there()
        if self._minded != (present, self.store.db.total_changes()):  # or there is nothing new to see
            self.store.strand(present)
            self._minded = present, self.store.db.total_changes()

    def _is_new(self) -> bool:
        """Whether not everybody has had a term yet to come back to this server."""
        return trio.current_time() < self._since + self.lease_ns / NS

    def _excuse(self) -> None:
        """This server was away itself (stopped, swapped out): nobody could have reached it, so nobody was silent."""
        self._since = trio.current_time()
        self.connections.excuse()
        for generation in self._holders:
            self._heard(generation)

    # -- connections

    async def _converse(self, stream: trio.abc.Stream) -> None:
        """Answer one connection's requests in order, until it is gone; a request that waits is then given up."""
        lines = Lines(stream)
        if not self.connections.enter(lines):
            await self.connections.refuse(lines)
            return
        try:
            while (line := await next_request(lines)) is not None:
                answer = await self.answer(line, lines)
                if answer is None:
                    return
                await send_answer(lines, answer)
        except LOST:
            return
        finally:
            self.connections.leave(lines)

    async def answer(self, line: bytes, lines: Lines | None = None, *, may_wait: bool = True) -> Json | None:
        """The answer to one request line; None when it had to wait, and meanwhile the connection (`lines`) was gone. With
        `may_wait` as the method of this name has just said of its verb.
        """
        if may_wait and self.is_late():
            await trio.lowlevel.checkpoint()  # what is due by now comes first
        self._mind_clock()
        try:
            id_, verb, params = parse_request(line)
        except Refusal as no:
            return denial(None, no)
        answered = self._answered(id_, verb, getattr(self, verb)(**params))
        return await (answered if lines is None or verb not in WAITING else while_there(lines, answered))

    def fail(self, error: Exception) -> None:
        """End this server by an error that came of a question, as one does that comes of what a connection asks."""
        assert self.nursery is not None, "only what is up can fail"
        self.nursery.start_soon(_raise, error)

    async def _answered(self, id_: int, verb: str, result: Awaitable[Json]) -> Json:
        """An answer, once all that it may be about is durable."""
        try:
            answer = {"id": id_, "ok": await result}
        except Refusal as no:
            answer = denial(id_, no)
        if self.awaits_commit(verb):
            await self.committed()
        return answer


def _monotonic(at_ns: int | None) -> float:
    """When, on the monotonic clock, the wall clock will show `at_ns`; a little later rather than too early."""
    if at_ns is None:
        return float("inf")
    return trio.current_time() + max(0, at_ns - time.time_ns()) / NS + 1e-6


async def _raise(error: Exception) -> None:
    raise error
