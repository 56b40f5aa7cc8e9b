"""Which interruption strikes now: a small state machine over armed interruptions, with no I/O.

An interruption is armed from the beginning; its `then` is armed once the target is back after it fired. `at_barrier`, `at`
and `take` hand out the ones whose site is here and count them as fired, so nothing can strike twice; one that found
nobody to strike is given back with `miss`. `unfired` names what never struck.

One whose site is request number 0 of a call is poison: it strikes at every request of that call, `POISON_MAX` times at most,
and counts as one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import attrs

from scenarios.interruption import Action, Interruption

#: How often poison strikes: more than any harness can be expected to try before it sets the work aside.
POISON_MAX = 12


@attrs.define(eq=False)
class _Armed:
    interruption: Interruption
    requests: int = 0  # at its barrier, of any call, since it was armed
    strikes: int = 0

    @property
    def strikes_max(self) -> int:
        site = self.interruption.site
        return POISON_MAX if site.where == "barrier" and site.op is not None and site.nth == 0 else 1


class Injector:
    def __init__(self, interruptions: Iterable[Interruption]) -> None:
        self._armed = [_Armed(one) for one in interruptions]
        self._next: list[Interruption] = []
        self._all = [link for one in self._armed for link in one.interruption.chain()]
        self.fired: list[Interruption] = []

    @property
    def idle(self) -> bool:
        """Nothing is left that could strike."""
        return not self._armed and not self._next

    @property
    def armed(self) -> tuple[Interruption, ...]:
        return tuple(one.interruption for one in self._armed)

    def unfired(self) -> tuple[Interruption, ...]:
        left = list(self._all)
        for one in self.fired:
            left.remove(one)
        return tuple(left)

    def target_is_back(self) -> tuple[Interruption, ...]:
        """Arm what was to follow the interruptions fired so far, and return it."""
        following, self._next = self._next, []
        self._armed += [_Armed(one) for one in following]
        return tuple(following)

    def follow(self, one: Interruption) -> tuple[Interruption, ...]:
        """What `one` did took nothing of the target down: arm what was to follow it, and return it."""
        if one.then is None or one.then not in self._next:
            return ()
        self._next.remove(one.then)
        self._armed.append(_Armed(one.then))
        return (one.then,)

    def at_barrier(self, op: str, nth: int, barrier: str) -> list[Interruption]:
        """The interruptions that strike as request `nth` of call `op` is at `barrier`."""
        return self._take(lambda one: _is_at_barrier(one, op, nth, barrier))

    def at_desk(self, op: str, nth: int, barrier: str) -> list[Interruption]:
        """The interruptions that strike as somebody asks for the authority behind approval `op` for the `nth` time."""
        return self._take(lambda one: one.interruption.site.op == op and _is_at_barrier(one, op, nth, barrier))

    def at(
        self, where: str, *, verb: str | None = None, op: str | None = None, action: Action | None = None
    ) -> list[Interruption]:
        """The interruptions of sites `ack`, `waiting` and `end`. An op is compared only where the site names one."""

        def here(armed: _Armed) -> bool:
            one = armed.interruption
            place = one.site.where == where and (verb is None or one.site.verb == verb) and one.site.op == op
            return place and (action is None or one.action == action)

        return self._take(here)

    def take(self, one: Interruption) -> bool:
        """Fire one armed interruption by itself (boundaries and times); False when it is no longer armed."""
        return bool(self._take(lambda armed: armed.interruption is one))

    def miss(self, one: Interruption) -> None:
        """What was just handed out struck nobody: it has not fired, and nothing follows it."""
        if one not in self.fired:  # poison that has struck before
            return
        self.fired.remove(one)
        self._next = [then for then in self._next if then is not one.then]
        self._armed = [armed for armed in self._armed if armed.interruption is not one.then]

    def _take(self, here: Callable[[_Armed], bool]) -> list[Interruption]:
        hits = [one for one in self._armed if here(one)]
        for armed in hits:
            armed.strikes += 1
            if armed.strikes >= armed.strikes_max:
                self._armed.remove(armed)
            if armed.strikes > 1:
                continue
            self.fired.append(armed.interruption)
            if armed.interruption.then is not None:
                self._next.append(armed.interruption.then)
        return [armed.interruption for armed in hits]


def _is_at_barrier(armed: _Armed, op: str, nth: int, barrier: str) -> bool:
    site = armed.interruption.site
    if site.where != "barrier" or site.barrier != barrier:
        return False
    if site.op is not None:
        return site.op == op and site.nth in {0, nth}
    armed.requests += 1
    return armed.requests == site.nth
