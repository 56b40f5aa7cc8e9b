"""Headway: how far the plan of a run has visibly come, by what the services answered and which signals were acknowledged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import networkx as nx

from scenarios.history import ACCEPTED, Received, Replied
from scenarios.plan import Approve, Artifact, Call, Check, Model, Wait

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from conformance.recorder import Recorder
    from scenarios.history import Status
    from scenarios.plan import Plan, Sleep

#: States of operations that nothing is waited for in; a tolerated refusal is shown as failed.
_OVER = ACCEPTED | {"skipped", "failed"}


class Headway:
    def __init__(self, plan: Plan, recorder: Recorder, now_ns: Callable[[], int]) -> None:
        self._plan, self._recorder, self._now_ns = plan, recorder, now_ns
        self._dependencies = plan.dependencies()
        self._answered_ns: dict[str, int] = {}  # call id → when its first usable answer left
        self._callers: dict[int, tuple[str, int]] = {}  # call → (op, incarnation)
        self._seen = 0
        self.started_ns = 0
        self._signalled_ns: dict[str, int] = {}  # wait id → when its signal was acknowledged
        self._perhaps: set[str] = set()  # waits whose signal was sent, and nobody knows whether it came
        self._over: set[str] = set()  # what the harness shows as over, of what nobody else can see the end

    def caller(self, call: int) -> int:
        """The incarnation behind a request."""
        self._look()
        return self._callers[call][1]

    def signalled(self, wait: Wait, outcome: Literal["ok", "error", "indefinite"]) -> bool:
        """The signal of this wait was sent, with this outcome; whether it has been acknowledged."""
        if outcome == "ok":
            self._signalled_ns[wait.id] = self._now_ns()
        elif outcome == "indefinite":
            self._perhaps.add(wait.id)
        return outcome == "ok"

    def decided(self, approve: Approve) -> None:
        """This approval was acknowledged."""
        self._over.add(approve.id)

    def noticed(self, op: str) -> None:
        """The harness has been told that the effect of this operation happened, whatever became of the answer."""
        self._answered_ns.setdefault(op, self._now_ns())

    def shown(self, status: Status) -> None:
        """Take in what the harness alone can show: that a wait has run out, that a refusal was tolerated, a turn skipped."""
        for one in status.operations:
            leaf = self._plan.leaf(one.id)
            is_shown = one.state == "skipped" or not isinstance(leaf, Wait) or leaf.timeout_ns is not None
            if one.state in _OVER and one.nonce is None and is_shown:
                self._over.add(one.id)

    def answered(self) -> Collection[str]:
        """Operations whose answer has left a service, and waits whose signal was acknowledged."""
        self._look()
        return self._answered_ns.keys() | self._signalled_ns.keys()

    def awaited(self, signal: str | None) -> Wait | None:
        """The wait to signal next: of this name, not signalled yet, with everything before it visibly done."""
        for wait in self._plan.waits():
            is_open = wait.id not in self._signalled_ns and wait.id not in self._over
            if is_open and signal in {None, wait.signal} and self._began(wait.id):
                return wait
        return None

    def is_running(self, sleep: Sleep) -> bool:
        """Whether a third of the time has passed since everything before it was answered."""
        if not self._began(sleep.id):
            return False
        done_ns = {**self._answered_ns, **self._signalled_ns}
        before = self._dependencies.predecessors(sleep.id)
        begun_ns = max((done_ns.get(one, self.started_ns) for one in before), default=self.started_ns)
        return self._now_ns() - begun_ns >= sleep.ns // 3

    def calls_before(self, wait: Wait) -> set[str]:
        """The calls that must be accepted before this wait begins."""
        return {op for op in nx.ancestors(self._dependencies, wait.id) if isinstance(self._plan.leaf(op), Call)}

    def _began(self, leaf: str) -> bool:
        self._look()
        before, certain = set(self._dependencies.predecessors(leaf)), self._plan.certain()[leaf]
        if not before <= certain:  # some of them may be skipped
            before = set(certain)
        return all(self._is_done(one) for one in before)

    def _is_done(self, leaf: str) -> bool:
        """As far as the outside can tell; of a sleep it can tell only that it began."""
        if leaf in self._over:
            return True
        match self._plan.leaf(leaf):
            case Call() | Model() | Artifact() | Check():
                return leaf in self._answered_ns
            case Wait():
                return leaf in self._signalled_ns or leaf in self._perhaps
            case Approve():
                return False
            case _:
                return self._began(leaf)

    def _look(self) -> None:
        """Take in what the services have recorded since the last look."""
        for event in self._recorder.events[self._seen :]:
            if isinstance(event, Received):
                self._callers[event.call] = (event.op, event.incarnation)
            elif isinstance(event, Replied) and event.nonce is not None and event.delivery == "sent":
                self._answered_ns.setdefault(self._callers[event.call][0], event.at_ns)
        self._seen = len(self._recorder.events)
