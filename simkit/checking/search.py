"""The search for one order in which every answer is right, depth first, and no situation twice.

Wing and Gong (Testing and Verifying Concurrent Objects, JPDC 1993) try every operation that can come next; Lowe (Testing
for Linearizability, CCPE 2017) keeps what was reached, as a pair of a bit set of the operations placed and a state, and
tries none twice; Horn and Kroening (Faster Linearizability Checking via P-Compositionality, FORTE 2015) take histories apart.

Beyond these, a situation is written down as the first operation without a place, a short bit set of the later ones that have
one, and the state. What is tried is cut down without losing an order: an operation that changes no state is placed as soon
as its answer is right, since it is in nobody's way; of operations that ask and got the same, the one that returned first
goes first; and a situation that has used up more of the operations of unknown outcome than another one has nothing that
the other has not. Those that must be placed soonest are tried first.
"""

from __future__ import annotations

import itertools
from collections.abc import Generator, Iterator
from typing import Any

import attrs

from simkit.checking.history import Operation
from simkit.checking.model import REFUSED, Model
from simkit.checking.timeline import Candidate, Timeline

#: How an order came about, latest first: (candidate, the rest); the beginning is empty.
_Way = tuple[Any, ...]
_Key = tuple[int, int, Any]


@attrs.frozen
class Longest:
    """The longest beginning of a part that has an order; `reached` operations returned in it."""

    reached: int
    order: tuple[Operation, ...]
    state: Any  # after this order
    #: States that an order of this beginning may end in.
    states: tuple[Any, ...]


class Search:
    """Tries orders of one part; `advance` a while at a time, so that parts can take turns."""

    def __init__(self, timeline: Timeline, model: Model, *, thorough: bool = False) -> None:
        self.timeline = timeline
        self.situations = 0
        #: Whether situations were left alone because a later answer was out of their reach.
        self.foresighted = False
        self._goals = (None,) * len(timeline.goals) if thorough else timeline.goals
        self._model = model
        self._seen: dict[_Key, Any] = {}
        self._furthest = -1
        self._way: _Way = ()
        self._run = self._tries()
        self._quantum = 0

    def advance(self, quantum: int) -> bool | None:
        """Meet about so many more situations; True when an order was found, False when there is none, None for not yet."""
        self._quantum = quantum
        try:
            next(self._run)
        except StopIteration as stop:
            return bool(stop.value)
        return None

    def _tries(self) -> Generator[None, None, bool]:  # one hot function, on purpose
        line, step, seen = self.timeline, self._model.step, self._seen
        end, writers, doubtful, reach = len(line.operations), line.writers, line.doubtful, line.reach
        settle, goals = self._settle, self._goals
        state = self._model.initial
        first, mask = settle(0, 0, state)
        if first == end:
            return True
        self._furthest, used, left = first, 0, self._quantum
        way: _Way = ()
        candidates = _next(writers[first], doubtful, reach[first])
        stack: list[tuple[int, int, int, Any, Iterator[Candidate], _Way]] = []
        seen[first, mask, state] = used
        while True:
            for candidate in candidates:
                number, asked, answer, twin = candidate
                if number >= 0:
                    bit = 1 << number - first
                    if mask & bit or (twin >= 0 and not mask >> twin - first & 1):
                        continue
                    after_mask, after_used = mask | bit, used
                else:
                    bit = 1 << ~number
                    if used & bit or (twin and not used & twin):
                        continue
                    after_mask, after_used = mask, used | bit
                after = step(state, asked, answer)
                if after is REFUSED or (number < 0 and after == state):
                    continue
                after_first, after_mask = settle(first, after_mask, after)
                if after_first == end:
                    return True
                if goals[after_first] is not None and self._hopeless(after_first, after_mask, after):
                    continue
                key = (after_first, after_mask, after)
                known = seen.get(key)
                if known is None:
                    seen[key] = after_used
                elif type(known) is int:
                    if known & after_used == known:
                        continue
                    seen[key] = [known, after_used]
                else:
                    if any(less & after_used == less for less in known):
                        continue
                    known.append(after_used)
                stack.append((first, mask, used, state, candidates, way))
                first, mask, used, state = after_first, after_mask, after_used, after
                way = (candidate, way)
                if first > self._furthest:
                    self._furthest, self._way = first, way
                candidates = _next(writers[first], doubtful, reach[first])
                left -= 1
                if left <= 0:
                    self.situations = len(seen)
                    yield
                    left = self._quantum
                break
            else:
                if not stack:
                    self.situations = len(seen)
                    return False
                first, mask, used, state, candidates, way = stack.pop()

    def _settle(self, first: int, mask: int, state: Any) -> tuple[int, int]:
        """Place every reader whose answer is right, and go on to the first operation that has no place yet."""
        line, step = self.timeline, self._model.step
        end, readers = len(line.operations), line.readers[first]
        while True:
            for number, asked, answer, _ in readers:
                bit = 1 << number - first
                if not mask & bit and step(state, asked, answer) is not REFUSED:
                    mask |= bit
            if not mask & 1:
                return first, mask
            mask >>= 1
            first += 1
            if first == end:
                return first, 0
            readers = line.fresh[first]

    def _hopeless(self, first: int, mask: int, state: Any) -> bool:
        """Whether the next reader's answer cannot be reached from here."""
        goals, within = self._goals, self._model.within
        goal = goals[first]
        while goal is not None and mask >> goal[0] - first & 1:
            goal = goals[goal[0] + 1]
        if goal is None or within is None or within(state, goal[1], goal[2]):
            return False
        self.foresighted = True
        return True

    def longest(self) -> Longest:
        """The longest beginning that has an order, and such an order; to be asked when there is none of the whole."""
        line, step = self.timeline, self._model.step
        steps: list[Candidate] = []
        way = self._way
        while way:
            steps.append(way[0])
            way = way[1]
        order: list[Operation] = []
        first, mask, state = 0, 0, self._model.initial
        first, mask = self._placed(order, first, mask, state)
        for number, asked, answer, _ in reversed(steps):
            state = step(state, asked, answer)
            if number < 0:
                order.append(line.unknown[~number])
            else:
                order.append(line.operations[number])
                mask |= 1 << number - first
            first, mask = self._placed(order, first, mask, state)
        states = tuple(dict.fromkeys(key[2] for key in self._seen if key[0] == self._furthest))
        return Longest(self._furthest, tuple(order), state, states)

    def _placed(self, order: list[Operation], first: int, mask: int, state: Any) -> tuple[int, int]:
        """As `_settle`; tells what it placed."""
        line, (after_first, after_mask) = self.timeline, self._settle(first, mask, state)
        reach = max(after_first - first, (after_mask << after_first - first).bit_length())
        had = mask | (after_mask << after_first - first) | ((1 << after_first - first) - 1)
        order += [line.operations[first + at] for at in range(reach) if had >> at & 1 and not mask >> at & 1]
        return after_first, after_mask


def _next(writers: tuple[Candidate, ...], doubtful: tuple[Candidate, ...], reach: int) -> Iterator[Candidate]:
    return itertools.chain(writers, itertools.islice(doubtful, reach)) if reach else iter(writers)
