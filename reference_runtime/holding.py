"""Holding: whose leases run until when, in memory, on the monotonic clock.

No jump of the wall clock takes work from a live owner, and a restarted server grants every holder a full term before it draws
conclusions.
"""

from __future__ import annotations

import itertools
from functools import partial
from typing import TYPE_CHECKING

import trio

from reference_runtime.log import OFF, Log

if TYPE_CHECKING:
    from collections.abc import Callable

    from reference_runtime.store import Store

NS = 1_000_000_000
#: How many leases are taken back in one transaction: others are answered between two of them, and may say that they live.
RECLAIMED_MAX = 50


class Holding:
    """The terms of the leases that are out."""

    store: Store

    def __init__(self, lease_ns: int, log: Log = OFF) -> None:
        self.lease_ns = lease_ns
        self.log = log
        self._holders: dict[int, tuple[str, float]] = {}  # generation → execution and monotonic deadline

    def _let_go(self, generation: int) -> None:
        """Forget a lease that was given back."""
        self._holders.pop(generation, None)

    def _hold(self, generation: int, execution: str) -> None:
        """Begin a lease's term anew."""
        self._holders[generation] = (execution, trio.current_time() + self.lease_ns / NS)

    def _heard(self, generation: int) -> None:
        """Begin a lease's term anew, whoever has it: its holder has just asked for something."""
        if generation in self._holders:
            self._hold(generation, self._holders[generation][0])

    def _hold_all(self) -> None:
        """Grant everybody who holds anything by the store, and nobody else, a full term from now on."""
        self._holders.clear()
        for generation, execution in self.store.leases():
            self._hold(generation, execution)

    def lease_expired(self, deadline: float, now: float) -> bool:
        """Whether a holder has been silent for a whole term."""
        return now >= deadline

    def next_expiry(self) -> float:
        """When the next holder will have been silent for a whole term."""
        return min((deadline for _, deadline in self._holders.values()), default=float("inf"))

    def reassign(self) -> bool:
        """Take work back from those who went silent, as much as one transaction may; whether there was any."""
        now = trio.current_time()
        expired = (one for one, (_, deadline) in self._holders.items() if self.lease_expired(deadline, now))
        silent = list(itertools.islice(expired, RECLAIMED_MAX))
        if not silent:
            return False
        with self.store.together():
            taken = [self._take_back(generation) for generation in silent]
        for generation, told in zip(silent, taken, strict=True):
            self._let_go(generation)
            self.store.afterwards(told)
        return True

    def _take_back(self, generation: int) -> Callable[[], None]:
        """Take one lease back; what tells the log of it, for when that is durable."""
        execution, _ = self._holders[generation]
        attempt, operation = self.store.leased_for(generation)
        self.store.reclaim(generation)
        ids = {"attempt": attempt, "operation": operation, "generation": generation, "execution": execution}
        return partial(self.log, "reclaimed", **ids)

    def _forget_taken(self) -> None:
        """Let go of leases that were taken by force, as at the end of a stop's grace: their holders are told that they lost."""
        kept = {generation for generation, _ in self.store.leases()}
        for generation in sorted(self._holders.keys() - kept):
            self._let_go(generation)
