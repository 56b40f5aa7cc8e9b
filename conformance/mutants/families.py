"""Mutants of CHI-1 to CHI-3: children that are left, forgotten, begun anew, joined twice or never, and given too much."""

from __future__ import annotations

import contextlib
import json
import time
from typing import TYPE_CHECKING, Any

import attrs
import trio

from conformance.mutants import Patch, mutant
from reference_runtime.branching import Branching
from reference_runtime.budget import Budget
from reference_runtime.children import Children
from reference_runtime.ownership import Ownership
from reference_runtime.progress import Progress
from reference_runtime.server import Server

if TYPE_CHECKING:
    from collections.abc import Callable

    from reference_runtime.budget import Account
    from reference_runtime.model import Json, Outcome, Report, Tally
    from reference_runtime.ownership import Lease
    from reference_runtime.store import Store

#: How long an announcement is on its way.
_PACE_S = 0.5


def _on_restart(patch: Patch, change: Callable[[Store], None]) -> None:
    """What a server that comes up does to what it finds."""

    def init(self: Server, store: Store, **options: Any) -> None:
        original(self, store, **options)
        with store._transaction():  # noqa: SLF001 - a mutant goes where it should not
            change(store)

    original = Server.__init__
    patch.replace(Server, "__init__", init)


def _is_failure(reason: str) -> bool:
    return reason.startswith("parent-failed")


@mutant("failure-not-handed-down", "CHI-1", shown_by="tree/undisturbed")
def failure_not_handed_down(patch: Patch) -> None:
    """A run that fails is over when its own steps are; only a stop is handed down to its children."""

    def tally(self: Progress, attempt: str) -> Tally:
        found = original_tally(self, attempt)
        return attrs.evolve(found, children=False) if found.failing else found

    def stop_children(self: Children, attempt: str, reason: str) -> int:
        return 0 if _is_failure(reason) else original_stop(self, attempt, reason)

    original_tally, original_stop = Progress.tally, Children.stop_children
    patch.replace(Progress, "tally", tally)
    patch.replace(Children, "stop_children", stop_children)


@mutant("orphans-by-restart", "CHI-1", shown_by="tree/kill@bough/bud#1.applied(engine)")
def orphans_by_restart(patch: Patch) -> None:
    """Which run owns which child is kept in memory: after a restart every child is on its own."""

    def change(store: Store) -> None:
        store.db.execute("UPDATE child SET owner = 'detached'")

    _on_restart(patch, change)


@mutant("let-go-in-no-list", "CHI-1", shown_by="tree/undisturbed")
def let_go_in_no_list(patch: Patch) -> None:
    """A run shows the children that it waits for, and none that it has let go."""

    def children(self: Children, task: str) -> list[Json]:
        return [one for one in original(self, task) if not one["detached"]]

    original = Children.children
    patch.replace(Children, "children", children)


@mutant("ended-children-begin-anew", "CHI-2", shown_by="harvest/kill@gather#1.received(engine)")
def ended_children_begin_anew(patch: Patch) -> None:
    """Recovery of a run begins its children again, whether or not they have ended."""

    def change(store: Store) -> None:
        rows = store.db.execute(
            "SELECT c.task, o.spec FROM child c JOIN attempt p ON p.id = c.attempt JOIN operation o ON o.attempt = c.attempt"
            " AND o.id = c.operation JOIN task t ON t.id = c.task JOIN attempt a ON a.id = t.attempt"
            " WHERE p.outcome IS NULL AND a.outcome = 'succeeded' ORDER BY c.task"
        ).fetchall()
        for child, spec in rows:
            store.db.execute(
                "UPDATE child SET is_accepted = 0 WHERE task = ?", (child,)
            )  # or nothing would begin in it
            store._admit(str(child), json.loads(str(spec))["plan"])  # noqa: SLF001 - as above

    _on_restart(patch, change)


@mutant("end-taken-with-each-announcement", "CHI-2", shown_by="harvest/undisturbed")
def end_taken_with_each_announcement(patch: Patch) -> None:
    """The end of a child is announced by its last step and by its run, and taken both times."""

    def child_ended(self: Children, attempt: str, outcome: Outcome) -> None:
        original(self, attempt, outcome)
        row = self._row(
            "SELECT c.attempt, c.operation FROM child c JOIN attempt a USING (task) WHERE a.id = ?", attempt
        )
        if row is not None:
            self.db.execute(
                "INSERT INTO transition SELECT task, (SELECT max(sequence) + 1 FROM transition n WHERE n.task = l.task),"
                " attempt, operation, origin, state, move, reason, generation, version, at_ns FROM transition l"
                " WHERE attempt = ? AND operation = ? ORDER BY sequence DESC LIMIT 1",
                row,
            )
            self._lines.clear()  # so that the next line is counted from this one

    original = Children.child_ended
    patch.replace(Children, "child_ended", child_ended)


@mutant("end-announced-once", "CHI-2", shown_by="harvest/kill@west/w2#1.replied(engine)")
def end_announced_once(patch: Patch) -> None:
    """The end of a child is announced to its owner from memory, some time after it is on record."""
    ended: list[tuple[str, Outcome]] = []

    def child_ended(_self: Children, attempt: str, outcome: Outcome) -> None:
        ended.append((attempt, outcome))

    async def keep_time(self: Server) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(announce, self)
            await original_keep_time(self)

    async def announce(self: Server) -> None:
        ended.clear()  # memory of the process that died
        while True:
            await trio.sleep(_PACE_S)
            for attempt, outcome in ended[:]:
                with self.store._transaction():  # noqa: SLF001 - as above
                    original(self.store, attempt, outcome)
            ended.clear()
            self.notify()

    original, original_keep_time = Children.child_ended, Server._keep_time  # noqa: SLF001 - as above
    patch.replace(Children, "child_ended", child_ended)
    patch.replace(Server, "_keep_time", keep_time)


@mutant("share-of-the-whole", "CHI-3", shown_by="dowry/undisturbed")
def share_of_the_whole(patch: Patch) -> None:
    """A child's share is compared with what its owner was allowed, whatever is left of that."""

    def share_exceeds(_self: Budget, account: Account, amount: int) -> bool:
        return amount > account.allowance

    patch.replace(Budget, "share_exceeds", share_exceeds)


@mutant("time-of-its-own", "CHI-3", shown_by="minors/undisturbed")
def time_of_its_own(patch: Patch) -> None:
    """A child has as much time as its owner was given, counted from its own beginning."""

    def remaining_ns(self: Budget, task: str, now_ns: int) -> int | None:
        left_ns = original(self, task, now_ns)
        if left_ns is None:
            return None
        sql = "SELECT c.submitted_ns - o.submitted_ns FROM task c JOIN task o ON o.id = ? WHERE c.id = ?"
        return left_ns + int(self._value(sql, task.partition("/")[0], task))

    original = Budget.remaining_ns
    patch.replace(Budget, "remaining_ns", remaining_ns)


@mutant("failed-child-is-over", "EFF-11", shown_by="errand/undisturbed")
def failed_child_is_over(patch: Patch) -> None:
    """A child that has ended has ended: its owner goes on, whether or not it failed."""

    def end_report(self: Children, outcome: Outcome) -> Report:
        return "succeeded" if outcome == "failed" else original(self, outcome)

    original = Children.end_report
    patch.replace(Children, "end_report", end_report)


@mutant("lost-child-is-over", "EFF-11", shown_by="messenger/undisturbed")
def lost_child_is_over(patch: Patch) -> None:
    """A child of which nobody knows what it did has not failed, and so its owner goes on."""

    def end_report(self: Children, outcome: Outcome) -> Report:
        return "succeeded" if outcome == "unresolved" else original(self, outcome)

    original = Children.end_report
    patch.replace(Children, "end_report", end_report)


@mutant("losers-children-live", "DUR-6", shown_by="scout/undisturbed")
def losers_children_live(patch: Patch) -> None:
    """A child that lost a race is left to come to its end, and its owner waits for it."""
    patch.replace(Children, "stop_child_of", lambda _self, _op, _reason: None)


@mutant("owners-end-forgotten", "CHI-1", shown_by="gossip/notice@end>kid/letter")
def owners_end_forgotten(patch: Patch) -> None:
    """A late word lets a child go on whose end its owner has taken, and which may be over by then."""

    def is_stopped(self: Branching, attempt: str) -> bool:
        stands = self._attempt(attempt)
        return stands.failing is not None or stands.halt is not None

    patch.replace(Branching, "is_stopped", is_stopped)


@mutant("given-out-as-listed", "CHI-1", shown_by="rush/kill@t+200000000ns(engine)~1600000000ns")
def given_out_as_listed(patch: Patch) -> None:
    """Work is given out as it was listed, though something given up before it in the list has ended its run."""

    def take(self: Ownership, execution: str, limit: int, source: int | None) -> list[Lease]:
        now_ns = time.time_ns()
        leases: list[Lease] = []
        passed_over: set[str] = set()
        for op in self.runnable(now_ns, limit, execution):
            if op.attempt in passed_over:
                continue
            is_over = self.take_up(op.attempt, execution) != "kept" or self._ended_by_its_limits(op, now_ns)
            if is_over or not self.affords(op, now_ns):
                passed_over.add(op.attempt)
            else:
                leases.append(self._lease(op, execution, source))
        for attempt in dict.fromkeys(lease.attempt for lease in leases):
            self._conclude(attempt)
        return leases

    patch.replace(Ownership, "_take", take)


@mutant("concluded-half-way", "DUR-6", shown_by="nest/undisturbed")
def concluded_half_way(patch: Patch) -> None:
    """How a run stands is looked at after every step that follows from another, and so before the last has followed."""
    patch.replace(Progress, "_concluding_last", lambda _self: contextlib.nullcontext())
