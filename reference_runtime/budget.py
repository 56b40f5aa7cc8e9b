"""Budgets: what a task may still spend, reserved before anything leaves and settled by what came back.

An account is a row for each kind of a task's allowance. At every moment consumed + reserved + unknown is at most what is
allowed: a reservation is made in the transaction that gives the work out, and settling it releases what was not used.
The usage of a lost answer is *unknown*: nobody spends it again, nor counts it as confirmed. A child has what its parent
set aside for it, and where nothing was, it draws on its parent's account. Nothing here is renewed by a retry or a restart.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from reference_runtime.audit import Audit
from reference_runtime.delivery import Delivery
from reference_runtime.model import AMOUNT_MAX, Json, Report
from reference_runtime.rows import Operation

BudgetKind = Literal["calls", "tokens", "elapsed_ns", "concurrency"]
KINDS: tuple[BudgetKind, ...] = ("calls", "tokens", "elapsed_ns", "concurrency")
#: What a child can be given a share of; its time is its own, and its parent's goes on meanwhile.
SHARED: tuple[BudgetKind, ...] = ("calls", "tokens", "concurrency")
#: Work that ends a run well; only this may touch the reserve.
PRIVILEGED = frozenset({"check", "compensate", "sweep"})
#: How long work that cannot be afforded just now waits at most before it asks again; a settlement wakes it sooner.
PARK_NS = 1_000_000_000

_LINE = """WITH RECURSIVE line (task, depth) AS (SELECT ?1, 0 UNION ALL
    SELECT c.parent, line.depth + 1 FROM line JOIN child c ON c.task = line.task)"""


class Account(NamedTuple):
    """One kind of one task's allowance, in calls, tokens, nanoseconds or leases."""

    task: str
    kind: BudgetKind
    allowance: int
    reserve: int
    consumed: int
    reserved: int
    unknown: int


class Budget(Audit, Delivery):
    """Accounts, reservations and deadlines."""

    def open_account(self, task: str, allowance: Mapping[str, Any], submitted_ns: int, deadline_ns: int | None) -> None:
        """Write down what a task may spend, when it is admitted; `deadline_ns` counts from then.

        What stands there already (a child's share of its parent's) is never raised.
        """
        self._limited.clear()
        reserve = allowance.get("reserve") or {}
        for kind in KINDS:
            if kind in allowance:
                row = (task, kind, allowance[kind], reserve.get(kind, 0))
                self.db.execute(
                    "INSERT INTO allowance VALUES (?, ?, ?, ?, 0, 0, 0) ON CONFLICT DO UPDATE SET"
                    " allowance = min(allowance, excluded.allowance), reserve = excluded.reserve",
                    row,
                )
        if deadline_ns is not None:
            self.db.execute(
                "INSERT INTO deadline VALUES (?, ?) ON CONFLICT DO UPDATE SET at_ns = min(at_ns, excluded.at_ns)",
                (task, submitted_ns + deadline_ns),
            )

    def is_limited(self, task: str) -> bool:
        """Whether anything limits a task, or may limit it from above; most tasks are spared all further questions."""
        if (known := self._limited.get(task)) is not None:
            return known
        sql = (
            "SELECT EXISTS (SELECT 1 FROM allowance WHERE task = ?1) OR EXISTS (SELECT 1 FROM deadline WHERE task = ?1)"
            " OR EXISTS (SELECT 1 FROM child WHERE task = ?1)"
        )
        found = bool(self._value(sql, task))
        if self.db.in_transaction:
            self._limited[task] = found
        return found

    def accounts(self, task: str) -> dict[BudgetKind, Account]:
        """What a task draws on: of each kind its own account, or the nearest one of those that own it."""
        found: dict[BudgetKind, Account] = {}
        rows = self._rows(
            f"{_LINE} SELECT a.task, a.kind, a.allowance, a.reserve, a.consumed, a.reserved, a.unknown"
            " FROM line JOIN allowance a ON a.task = line.task ORDER BY line.depth, a.kind",
            task,
        )
        for row in rows:
            account = Account(*row)
            found.setdefault(account.kind, account)
        return found

    # -- deadlines

    def remaining_ns(self, task: str, now_ns: int) -> int | None:
        """How long there is until the earliest deadline of the task and of those that own it; None without one."""
        if not self.is_limited(task):
            return None
        at_ns = self._value(f"{_LINE} SELECT min(d.at_ns) FROM line JOIN deadline d ON d.task = line.task", task)
        return None if at_ns is None else int(at_ns) - now_ns

    def past_deadline(self, remaining_ns: int | None) -> bool:
        """Whether it is too late to send anything out."""
        return remaining_ns is not None and remaining_ns <= 0

    def ends_at(self, task: str) -> tuple[int, str] | None:
        """When the time of a task, or of one that owns it, is over, and the reason its run ends with then; None: never."""
        if not self.is_limited(task):
            return None
        row = self._row(
            f"{_LINE} SELECT d.at_ns AS at_ns, 'deadline' FROM line JOIN deadline d ON d.task = line.task UNION ALL"
            " SELECT t.submitted_ns + a.allowance, 'allowance-exhausted: elapsed' FROM line JOIN task t ON t.id = line.task"
            " JOIN allowance a ON a.task = line.task AND a.kind = 'elapsed_ns' ORDER BY 1, 2 DESC LIMIT 1",
            task,
        )
        return None if row is None else (int(row[0]), str(row[1]))

    def too_late(self, op: Operation, at_ns: int) -> bool:
        """Whether an invocation of `op` at `at_ns` would come after the deadline of its run."""
        left_ns = self.remaining_ns(op.task, at_ns) if self.keeps_time(op) else None
        return self.past_deadline(left_ns)

    # -- reserving

    def reserve(self, op: Operation, now_ns: int) -> bool | str:
        """Set aside what one invocation of `op` may cost, in the transaction that gives it out.

        True: reserved. False: not just now, because others hold it; the operation is asked again later. A text: never,
        and that is the reason the run ends with.
        """
        if op.kind == "sweep" or not self._attempt(op.attempt).is_limited:
            return True
        if self.too_late(op, now_ns):
            return "deadline"
        accounts, needs = self.accounts(op.task), self.needs(op)
        if self.keeps_time(op) and self.elapsed_exhausted(accounts.get("elapsed_ns"), now_ns):
            return "allowance-exhausted: elapsed"
        charged = [(accounts[kind], amount) for kind, amount in needs.items() if kind in accounts and amount]
        answers = [self.affordable(account, amount, privileged=op.kind in PRIVILEGED) for account, amount in charged]
        if "never" in answers:
            return f"allowance-exhausted: {charged[answers.index('never')][0].kind}"
        if "later" in answers:
            self._park(op, charged[answers.index("later")][0].task, now_ns)
            return False
        for account, amount in charged:
            self._hold(account, op.attempt, op.id, amount)
        return True

    def keeps_time(self, op: Operation) -> bool:
        """Whether an operation is too late once the run's time is over; to undo or to ask what was done is not."""
        return op.kind not in ("compensate", "sweep") and op.remedy != "lookup"

    def needs(self, op: Operation) -> dict[BudgetKind, int]:
        """The most one invocation can cost; a look-up asks for nothing to be done and costs only its place."""
        if op.remedy == "lookup":
            return {"concurrency": 1}
        spec = json.loads(op.spec)
        tokens = spec.get("tokens") or 0
        asked = spec["params"].get("tokens") if op.kind == "model" else None  # a direction may have changed it
        if isinstance(asked, int) and not isinstance(asked, bool) and asked >= 0:
            tokens = asked
        return {"calls": 1, "tokens": int(tokens), "concurrency": 1}

    def affordable(self, account: Account, amount: int, *, privileged: bool) -> Literal["now", "later", "never"]:
        """Whether `amount` fits: counting what is confirmed, what others hold, and what nobody knows."""
        limit = account.allowance - (0 if privileged else account.reserve)
        gone = account.consumed + account.unknown
        if gone + account.reserved + amount <= limit:
            return "now"
        return "never" if gone + amount > limit else "later"

    def elapsed_exhausted(self, account: Account | None, now_ns: int) -> bool:
        """Whether the time the run may take in all has passed; also notes how much has, for its status."""
        if account is None:
            return False
        return self.note_elapsed(account.task, now_ns) >= account.allowance

    def note_elapsed(self, task: str, now_ns: int) -> int:
        """Write down how much of the time that a task may take has passed; zero for one that may take for ever."""
        row = self._row(
            "UPDATE allowance SET consumed = max(consumed, ?1 - (SELECT submitted_ns FROM task WHERE id = ?2))"
            " WHERE task = ?2 AND kind = 'elapsed_ns' RETURNING consumed",
            now_ns,
            task,
        )
        return 0 if row is None else int(row[0])

    def _hold(self, account: Account, attempt: str, operation: str, amount: int) -> None:
        self.db.execute(
            "UPDATE allowance SET reserved = reserved + ? WHERE task = ? AND kind = ?",
            (amount, account.task, account.kind),
        )
        row = (attempt, operation, account.kind, account.task, amount)
        self.db.execute("INSERT INTO hold VALUES (?, ?, ?, 'reserved', ?, ?)", row)

    def _park(self, op: Operation, account: str, now_ns: int) -> None:
        self.db.execute("INSERT OR IGNORE INTO parked VALUES (?, ?, ?)", (account, op.attempt, op.id))
        self.db.execute(
            "UPDATE operation SET due_ns = ? WHERE attempt = ? AND id = ?", (now_ns + PARK_NS, op.attempt, op.id)
        )
        self._touch(op.attempt)

    # -- settling

    def settle_usage(self, op: Operation, report: Report, answer: Mapping[str, Any] | None, now_ns: int) -> None:
        """Turn what was held for an invocation into what it cost, and free the rest."""
        if not self._attempt(op.attempt).is_limited:
            return
        held = self._rows(
            "SELECT kind, account, amount FROM hold WHERE attempt = ? AND operation = ? AND state = 'reserved' ORDER BY kind",
            op.attempt,
            op.id,
        )
        for kind, account, amount in held:
            consumed, unknown = self.settlement(kind, report, amount, tokens_used(answer))
            self._settle(op.attempt, op.id, Hold(kind, account, amount), consumed, unknown)
        if report == "found":
            self.resolve_usage(op.attempt, op.id)
        for account in sorted({account for _, account, _ in held}):
            self._wake_parked(account, now_ns)

    def settlement(self, kind: BudgetKind, report: Report, held: int, used: int | None) -> tuple[int, int]:
        """What an invocation consumed for certain, and what nobody knows, out of `held`; the remainder is free again."""
        if kind == "concurrency" or report == "unsent":
            return 0, 0
        if report == "unknown":
            return 0, held
        if kind == "calls":
            return held, 0
        if used is None:
            return (0, held) if report in ("succeeded", "found") else (0, 0)
        return used, 0

    def silent_usage(self, *, is_dispatched: bool) -> Report:
        """What a hold becomes when its holder went silent: free only if not a byte can have left."""
        return "unknown" if is_dispatched else "unsent"

    def resolve_usage(self, attempt: str, operation: str) -> None:
        """The receiver knows the effect, so the calls that were lost on the way to it are confirmed. Tokens stay unknown."""
        where = "attempt = ? AND operation = ? AND state = 'unknown' AND kind = 'calls'"
        for account, amount in self._rows(f"SELECT account, amount FROM hold WHERE {where}", attempt, operation):
            self.db.execute(
                "UPDATE allowance SET unknown = unknown - ?1, consumed = consumed + ?1 WHERE task = ?2 AND kind = 'calls'",
                (amount, account),
            )
        self.db.execute(f"DELETE FROM hold WHERE {where}", (attempt, operation))

    def release_withdrawn(self, attempt: str, now_ns: int) -> None:
        """Free what is held for operations that were given out but withdrawn before anything left."""
        rows = self._rows(
            "SELECT DISTINCT h.operation FROM hold h WHERE h.attempt = ?1 AND h.state = 'reserved' AND NOT EXISTS"
            " (SELECT 1 FROM lease l WHERE l.attempt = ?1 AND l.operation = h.operation) AND NOT EXISTS"
            " (SELECT 1 FROM child c WHERE c.parent = (SELECT task FROM attempt WHERE id = ?1) AND c.attempt = ?1"
            " AND c.operation = h.operation) ORDER BY h.operation",
            attempt,
        )
        for (operation,) in rows:
            self.settle_usage(self._operation(attempt, operation), "unsent", None, now_ns)

    def _settle(self, attempt: str, operation: str, hold: Hold, consumed: int, unknown: int) -> None:
        self.db.execute(
            "UPDATE allowance SET reserved = reserved - ?, consumed = consumed + ?, unknown = unknown + ?"
            " WHERE task = ? AND kind = ?",
            (hold.amount, consumed, unknown, hold.account, hold.kind),
        )
        self.db.execute(
            "DELETE FROM hold WHERE attempt = ? AND operation = ? AND kind = ? AND state = 'reserved'",
            (attempt, operation, hold.kind),
        )
        if unknown:
            self.db.execute(
                "INSERT INTO hold VALUES (?, ?, ?, 'unknown', ?, ?)"
                " ON CONFLICT DO UPDATE SET amount = amount + excluded.amount",
                (attempt, operation, hold.kind, hold.account, unknown),
            )

    def _wake_parked(self, account: str, now_ns: int) -> None:
        self.db.execute(
            "UPDATE operation SET due_ns = ?1 WHERE due_ns IS NOT NULL AND (attempt, id) IN"
            " (SELECT attempt, operation FROM parked WHERE account = ?2)",
            (now_ns, account),
        )
        self.db.execute("DELETE FROM parked WHERE account = ?", (account,))

    # -- children

    def set_aside(
        self, op: Operation, child: str, share: Mapping[str, Any], now_ns: int, *, is_given: bool
    ) -> str | None:
        """Take a child's share out of the accounts of `op`'s task; the reason when it does not fit.

        `is_given`: for good, as for a child that will outlive its parent; otherwise the child's end returns the remainder.
        """
        accounts = self.accounts(op.task)
        charged = [(accounts[kind], int(share[kind])) for kind in SHARED if kind in share and kind in accounts]
        for account, amount in charged:
            if self.share_exceeds(account, amount):
                return f"allowance-exhausted: {account.kind}"
        self.open_account(child, share, now_ns, share.get("deadline_ns"))
        for account, amount in charged:
            self._hold(account, op.attempt, op.id, amount)
            if is_given:
                self._settle(op.attempt, op.id, Hold(account.kind, account.task, amount), amount, 0)
        return None

    def share_exceeds(self, account: Account, amount: int) -> bool:
        """Whether a child's share is more than its parent has to give."""
        return self.affordable(account, amount, privileged=False) != "now"

    def return_share(self, attempt: str, operation: str, child: str, now_ns: int) -> None:
        """A child is over: what it consumed, and what it does not know, is its parent's; the remainder is free again."""
        held = self._rows(
            "SELECT h.kind, h.account, h.amount, a.consumed, a.unknown FROM hold h"
            " JOIN allowance a ON a.task = ? AND a.kind = h.kind"
            " WHERE h.attempt = ? AND h.operation = ? AND h.state = 'reserved' ORDER BY h.kind",
            child,
            attempt,
            operation,
        )
        for kind, account, amount, consumed, unknown in held:
            self._settle(attempt, operation, Hold(kind, account, amount), consumed, unknown)
        for account in sorted({row[1] for row in held}):
            self._wake_parked(account, now_ns)

    def usage(self, task: str) -> Json | None:
        """What a task was allowed and what became of it, for each kind of its own accounts; None without any."""
        rows = self._rows(
            "SELECT kind, allowance, consumed, reserved, unknown FROM allowance WHERE task = ? ORDER BY kind", task
        )
        names = ("allowance", "consumed", "reserved", "unknown")
        return {kind: dict(zip(names, numbers, strict=True)) for kind, *numbers in rows} or None


class Hold(NamedTuple):
    """What is held in one account for one invocation, or for one child."""

    kind: BudgetKind
    account: str
    amount: int


def tokens_used(answer: Mapping[str, Any] | None) -> int | None:
    """The tokens an answer says it cost, as many as can be counted; None when it says nothing."""
    usage = (answer or {}).get("usage")
    tokens = usage.get("tokens") if isinstance(usage, dict) else None
    return min(tokens, AMOUNT_MAX) if isinstance(tokens, int) and tokens >= 0 else None
