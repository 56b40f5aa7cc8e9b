"""Contests of judging histories: Porcupine's test data, against the search that its checker is built on, in plain Python.

Porcupine itself is a Go program, and no part of the set-up; docs/checking.md has its times beside ours, measured on one
machine. There the plain search, with the models that ours uses, took 7.7 times as long as Porcupine on the register's logs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from simkit.checking import REFUSED, WHOLE, Model, Operation, check
from simkit.checking.timeline import parts
from tests.benchmarks.contest import Contest
from tests.quality.porcupine import ETCD, KEY_VALUE, history

#: The plain search takes too long on this one: it would have to try its parts in turns.
_LEFT_OUT = "c50-bad"
PEER = "the plain search of Wing, Gong and Lowe"
#: So many times its rate is a fifth of Porcupine's.
TARGET = 1.6


def contests(scale: int) -> list[Contest]:
    """Both kinds of logs, `scale` per cent of each."""
    etcd = [history(name) for name in list(ETCD)[: max(1, len(ETCD) * min(scale, 100) // 100)]]
    key_value = [history(name) for name in KEY_VALUE if name != _LEFT_OUT and (scale >= 100 or name.startswith("c01"))]
    return [
        _contest(f"judging {len(etcd)} logs of a compare-and-set register", etcd),
        _contest(f"judging {len(key_value)} logs of a key-value store", key_value),
    ]


def _contest(title: str, histories: Sequence[tuple[list[Operation], Model]]) -> Contest:
    def judged(judge: Callable[[list[Operation], Model], object]) -> int:
        for operations, model in histories:
            judge(operations, model)
        return sum(len(operations) for operations, _ in histories)

    return Contest(
        title,
        "operations",
        {"simkit.check": lambda: judged(check), PEER: lambda: judged(plain)},
        targets={PEER: TARGET},
    )


def plain(operations: Sequence[Operation], model: Model) -> bool:
    """The search alone: a linked list of calls and returns, a bit set and the state of what was reached."""
    return all(_linearizable(part, model) for part in parts(operations, model.partition, WHOLE))


def _linearizable(operations: Sequence[Operation], model: Model) -> bool:  # as in the paper, on purpose
    line = _List(operations)
    state, done, entry = model.initial, 0, line.after[0]
    seen: set[tuple[int, Any]] = set()
    stack: list[tuple[int, Any]] = []
    while line.after[0] >= 0:
        one, last = line.calls[entry], line.returns[entry]
        if one is None:  # a return: what comes before it must be tried in another order
            if not stack:
                return False
            entry, state = stack.pop()
            done &= ~(1 << entry)
            line.put_back(entry, line.returns[entry])
            entry = line.after[entry]
            continue
        after = model.step(state, one.asked, one.answer)
        key = (done | 1 << entry, after)
        if after is not REFUSED and key not in seen:
            seen.add(key)
            stack.append((entry, state))
            state, done = after, done | 1 << entry
            line.take_out(entry, last)
            entry = line.after[0]
        else:
            entry = line.after[entry]
    return True


class _List:
    """Calls and returns in order, linked by number; number 0 is the head."""

    def __init__(self, operations: Sequence[Operation]) -> None:
        events = [(one.called, 0, at) for at, one in enumerate(operations)]
        events += [(float("inf") if one.returned is None else one.returned, 1, at) for at, one in enumerate(operations)]
        events.sort()
        count = len(events)
        self.after = [*range(1, count + 1), -1]
        self.before = list(range(-1, count + 1))
        self.calls: list[Operation | None] = [None] * (count + 1)
        self.returns = [0] * (count + 1)
        called: dict[int, int] = {}
        for number, (_, is_return, at) in enumerate(events, 1):
            if is_return:
                self.returns[called[at]] = number
            else:
                called[at] = number
                self.calls[number] = operations[at]

    def take_out(self, *entries: int) -> None:
        for entry in entries:
            before, after = self.before[entry], self.after[entry]
            self.after[before] = after
            self.before[after] = before  # of the last one, that of the head, which nobody reads

    def put_back(self, call: int, last: int) -> None:
        for entry in (last, call):
            self.after[self.before[entry]] = entry
            self.before[self.after[entry]] = entry
