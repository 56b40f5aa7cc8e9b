"""Mutants of RTY-2 and SCH-8 whose limits are a quarter longer than they were to be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from conformance.mutants import Patch, mutant
from reference_runtime.acceptance import Acceptance
from reference_runtime.budget import Budget

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reference_runtime.retries import Limits
    from reference_runtime.rows import Operation


def _longer(limit_ns: int | None) -> int | None:
    return None if limit_ns is None else limit_ns * 5 // 4


@mutant("time-to-try-a-quarter-longer", "RTY-2", shown_by="pilgrimage/kill@gate#2.received~22500000000ns")
def time_to_try_a_quarter_longer(patch: Patch) -> None:
    """A call is tried for a quarter longer than it may be."""

    def limits_of(self: Acceptance, op: Operation) -> Limits:
        found = original(self, op)
        return attrs.evolve(found, elapsed_ns=_longer(found.elapsed_ns))

    original = Acceptance.limits_of
    patch.replace(Acceptance, "limits_of", limits_of)


@mutant("deadline-a-quarter-later", "SCH-8", shown_by="last-orders/kill@order1#1.received~22500000000ns")
def deadline_a_quarter_later(patch: Patch) -> None:
    """The deadline of a run is kept as one that comes a quarter later."""

    def open_account(
        self: Budget, task: str, allowance: Mapping[str, Any], submitted_ns: int, deadline_ns: int | None
    ) -> None:
        original(self, task, allowance, submitted_ns, _longer(deadline_ns))

    original = Budget.open_account
    patch.replace(Budget, "open_account", open_account)
