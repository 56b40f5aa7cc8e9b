"""Mutants of BUD-1 to BUD-8: what may be used is looked up and written down apart, forgotten, given away and not told."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from conformance.mutants import Patch, mutant
from reference_runtime.budget import Budget
from reference_runtime.ownership import Ownership
from reference_runtime.particulars import Particulars
from reference_runtime.server import Server

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from reference_runtime.budget import Account, BudgetKind
    from reference_runtime.model import Report
    from reference_runtime.ownership import Lease
    from reference_runtime.rows import Operation
    from reference_runtime.store import Store


@mutant("directions-not-counted", "BUD-1", shown_by="ration/steer@plan#1.received>sum")
def directions_not_counted(patch: Patch) -> None:
    """As much is reserved as the plan says, whatever a direction has made of the request since."""

    def needs(self: Budget, op: Operation) -> dict[BudgetKind, int]:
        found = original(self, op)
        return {**found, "tokens": int(json.loads(op.spec).get("tokens") or 0)} if "tokens" in found else found

    original = Budget.needs
    patch.replace(Budget, "needs", needs)


@mutant("check-and-write-apart", "BUD-1", shown_by="ration/undisturbed")
def check_and_write_apart(patch: Patch) -> None:
    """Whoever takes work looks at the accounts once, and writes down what it reserved after it has decided about all of it."""
    seen: dict[str, dict[BudgetKind, Account]] = {}
    taking: list[bool] = []

    def take(self: Ownership, execution: str, limit: int, source: int | None) -> list[Lease]:
        seen.clear()
        taking.append(True)
        try:
            return original_take(self, execution, limit, source)
        finally:
            taking.pop()

    def accounts(self: Budget, task: str) -> dict[BudgetKind, Account]:
        if not taking:
            return original_accounts(self, task)
        if task not in seen:
            seen[task] = original_accounts(self, task)
        return seen[task]

    original_take, original_accounts = Ownership._take, Budget.accounts  # noqa: SLF001 - a mutant goes where it should not
    patch.replace(Ownership, "_take", take)
    patch.replace(Budget, "accounts", accounts)


def _affordable(patch: Patch, change: Callable[[Account], Account], *, privileged: bool | None = None) -> None:
    """Decide by other numbers than those of the account."""

    def affordable(self: Budget, account: Account, amount: int, **given: bool) -> Any:
        trusted = given["privileged"] if privileged is None else privileged
        return original(self, change(account), amount, privileged=trusted)

    original = Budget.affordable
    patch.replace(Budget, "affordable", affordable)


@mutant("only-consumed-counts", "BUD-1", shown_by="ration/undisturbed")
def only_consumed_counts(patch: Patch) -> None:
    """What others have reserved, and what nobody knows, does not count when work is let in."""
    _affordable(patch, lambda account: account._replace(reserved=0, unknown=0))


@mutant("usage-up-to-what-was-reserved", "BUD-1", shown_by="misjudged/undisturbed")
def usage_up_to_what_was_reserved(patch: Patch) -> None:
    """An answer that took more than was set aside for it counts as what was set aside."""

    def settlement(self: Budget, kind: BudgetKind, report: Report, held: int, used: int | None) -> tuple[int, int]:
        return original(self, kind, report, held, None if used is None else min(used, held))

    original = Budget.settlement
    patch.replace(Budget, "settlement", settlement)


@mutant("concurrency-not-counted", "BUD-1", shown_by="single-file/undisturbed")
def concurrency_not_counted(patch: Patch) -> None:
    """How much may be under way at once is written down, and nobody looks at it."""

    def affordable(self: Budget, account: Account, amount: int, *, privileged: bool) -> str:
        return "now" if account.kind == "concurrency" else original(self, account, amount, privileged=privileged)

    original = Budget.affordable
    patch.replace(Budget, "affordable", affordable)


def _on_restart(patch: Patch, *statements: str) -> None:
    """What a server that comes up does to the accounts it finds."""

    def init(self: Server, store: Store, **options: Any) -> None:
        original(self, store, **options)
        with store._transaction():  # noqa: SLF001 - a mutant goes where it should not
            for statement in statements:
                store.db.execute(statement)

    original = Server.__init__
    patch.replace(Server, "__init__", init)


@mutant("allowance-renewed-by-restart", "BUD-2", shown_by="ration/kill@sum#1.applied(engine)")
def allowance_renewed_by_restart(patch: Patch) -> None:
    """What is used and reserved is counted in memory, so that a restarted server begins with the whole allowance."""
    _on_restart(
        patch,
        "UPDATE allowance SET consumed = 0, reserved = 0, unknown = 0 WHERE kind != 'elapsed_ns'",
        "DELETE FROM hold",
    )


@mutant("usage-counted-again-by-restart", "BUD-2", shown_by="ration/kill@sum#1.applied(engine)")
def usage_counted_again_by_restart(patch: Patch) -> None:
    """A restarted server adds up what is on record on top of the sum that it finds."""
    _on_restart(patch, "UPDATE allowance SET consumed = 2 * consumed WHERE kind != 'elapsed_ns'")


@mutant("reservations-of-one-life", "BUD-2", shown_by="ration/kill@plan#1.received(engine)")
def reservations_of_one_life(patch: Patch) -> None:
    """Reservations live in the server's memory: after a restart what is under way is free."""
    _on_restart(patch, "UPDATE allowance SET reserved = 0", "DELETE FROM hold WHERE state = 'reserved'")


def _settlement(patch: Patch, report: Report, settled: Callable[[int], tuple[int, int]]) -> None:
    """Settle the tokens of one kind of report otherwise: what was held → consumed and unknown."""

    def settlement(self: Budget, kind: BudgetKind, of: Report, held: int, used: int | None) -> tuple[int, int]:
        return settled(held) if (kind, of) == ("tokens", report) else original(self, kind, of, held, used)

    original = Budget.settlement
    patch.replace(Budget, "settlement", settlement)


@mutant("lost-usage-is-free", "BUD-3", shown_by="ration/drop@sum#1.applied")
def lost_usage_is_free(patch: Patch) -> None:
    """A request without an answer gives back everything that was reserved for it."""
    _settlement(patch, "unknown", lambda _held: (0, 0))


@mutant("lost-usage-is-consumed", "BUD-3", shown_by="ration/reset@sum#1.applied")
def lost_usage_is_consumed(patch: Patch) -> None:
    """A lost answer is booked as if it had said that everything reserved was used."""
    _settlement(patch, "unknown", lambda held: (held, 0))


@mutant("no-price-is-nothing", "BUD-3", shown_by="unpriced/undisturbed")
def no_price_is_nothing(patch: Patch) -> None:
    """An answer that does not say what it has cost has cost nothing."""

    def settlement(self: Budget, kind: BudgetKind, report: Report, held: int, used: int | None) -> tuple[int, int]:
        is_answer = kind == "tokens" and report == "succeeded"
        return original(self, kind, report, held, 0 if is_answer and used is None else used)

    original = Budget.settlement
    patch.replace(Budget, "settlement", settlement)


@mutant("expired-hold-is-free", "BUD-4", shown_by="ration/kill@sum#1.applied")
def expired_hold_is_free(patch: Patch) -> None:
    """A reservation runs out with the lease of its holder, whether or not the request had left."""
    patch.replace(Budget, "silent_usage", lambda _self, **_: "unsent")


def _set_aside(patch: Patch, taken: Callable[..., None]) -> None:
    def set_aside(self: Budget, op: Operation, child: str, share: Mapping[str, Any], now_ns: int, **_: bool) -> None:
        taken(self, op, child, share, now_ns)

    patch.replace(Budget, "set_aside", set_aside)


@mutant("share-from-nowhere", "BUD-5", shown_by="fanout/undisturbed")
def share_from_nowhere(patch: Patch) -> None:
    """A child has an account of its own, and nothing is taken out of its owner's."""
    _set_aside(patch, lambda self, _op, child, share, now_ns: self.open_account(child, share, now_ns, None))


@mutant("share-without-limit", "BUD-5", shown_by="glutton/undisturbed")
def share_without_limit(patch: Patch) -> None:
    """A child's share is a number that its requests are not held to: they are charged to its owner."""
    _set_aside(patch, lambda *_: None)


@mutant("reservation-is-consumed", "BUD-6", shown_by="ration/undisturbed")
def reservation_is_consumed(patch: Patch) -> None:
    """Whatever an answer says that it cost, everything that was reserved is booked as used."""
    _settlement(patch, "succeeded", lambda held: (held, 0))


@mutant("reserve-for-anybody", "BUD-7", shown_by="windup/undisturbed")
def reserve_for_anybody(patch: Patch) -> None:
    """The reserve is a number in the plan, and any work may use it up."""
    _affordable(patch, lambda account: account._replace(reserve=0))


@mutant("reserve-for-nobody", "BUD-7", shown_by="windup/undisturbed")
def reserve_for_nobody(patch: Patch) -> None:
    """Checks and compensations are held to what everything else may use."""
    _affordable(patch, lambda account: account, privileged=False)


@mutant("exhaustion-untold", "BUD-8", shown_by="overdraft/undisturbed")
def exhaustion_untold(patch: Patch) -> None:
    """What cannot be afforded fails as if it had been refused."""

    def end_unaffordable(self: Particulars, op: Operation, _reason: str) -> None:
        original(self, op, "rejected: it was not sent")

    original = Particulars._end_unaffordable  # noqa: SLF001 - a mutant goes where it should not
    patch.replace(Particulars, "_end_unaffordable", end_unaffordable)
