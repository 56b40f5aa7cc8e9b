"""Which interruption strikes now: a small state machine over armed interruptions, with no I/O.

An interruption is armed from the beginning; its `then` is armed once the target is back after it fired. `take_*` hands out
the ones whose site is here and marks them fired, so nothing can strike twice, and `unfired` names what never did.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from scenarios.interruption import Interruption


class Injector:
    def __init__(self, interruptions: Iterable[Interruption]) -> None:
        self._armed = list(interruptions)
        self._next: list[Interruption] = []
        self._all = [link for one in self._armed for link in one.chain()]
        self._any_requests = dict.fromkeys(self._armed, 0)
        self.fired: list[Interruption] = []

    @property
    def idle(self) -> bool:
        """Nothing is left that could strike."""
        return not self._armed and not self._next

    @property
    def armed(self) -> tuple[Interruption, ...]:
        return tuple(self._armed)

    def unfired(self) -> tuple[Interruption, ...]:
        left = list(self._all)
        for one in self.fired:
            left.remove(one)
        return tuple(left)

    def target_is_back(self) -> None:
        """Arm what was to follow the interruptions fired so far."""
        for one in self._next:
            self._armed.append(one)
            self._any_requests[one] = 0
        self._next = []

    def at_barrier(self, op: str, nth: int, barrier: str) -> list[Interruption]:
        """The interruptions that strike as request `nth` of call `op` is at `barrier`."""
        return self._take(lambda one: self._is_at_barrier(one, op, nth, barrier))

    def at(self, where: str, *, verb: str | None = None, op: str | None = None) -> list[Interruption]:
        """The interruptions of sites `ack`, `waiting` and `end`. An op is compared only where the site names one."""
        return self._take(
            lambda one: one.site.where == where and (verb is None or one.site.verb == verb) and one.site.op == op
        )

    def take(self, one: Interruption) -> bool:
        """Fire one armed interruption by itself (boundaries and times); False when it is no longer armed."""
        return bool(self._take(lambda other: other is one))

    def _is_at_barrier(self, one: Interruption, op: str, nth: int, barrier: str) -> bool:
        site = one.site
        if site.where != "barrier" or site.barrier != barrier:
            return False
        if site.op is not None:
            return site.op == op and site.nth == nth
        self._any_requests[one] += 1
        return self._any_requests[one] == site.nth

    def _take(self, here: Callable[[Interruption], bool]) -> list[Interruption]:
        hits = [one for one in self._armed if here(one)]
        for one in hits:
            self._armed.remove(one)
            self.fired.append(one)
            if one.then is not None:
                self._next.append(one.then)
        return hits
