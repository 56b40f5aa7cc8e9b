"""Changes to a schedule: a pre-emption more, one less, sooner or later; the beginning of one with the end of another.

A schedule is followed loosely, so that one which does not fit what comes after a change is no error.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import attrs

from simkit.shrinking.search import merged
from simkit.strategy import Segment

Plan = tuple[Segment, ...]
#: One change in so many splices two schedules.
SPLICES = 6
#: "Until it cannot go on".
_TO_BLOCK = 1 << 30
_SEGMENTS_MAX = 4000

#: So many steps after a frontier are worth a switch, and so many tasks are worth switching to.
_NEAR = 3
_TASKS_MAX = 10
#: The number of trio's first task, which only waits for the others.
_INIT = 0


@attrs.frozen
class Run:
    """What a schedule gave."""

    taken: Plan
    #: After so many steps it did something new; 0 if nobody knows.
    frontier: int = 0


_Change = Callable[[Plan, Run, Random], Plan]


def change(plan: Plan, run: Run, donor: Plan, rng: Random) -> Plan:
    """Change one thing about `plan`, of which `run` came; a `donor` lends its end."""
    if donor:
        changed = splice(plan or run.taken, donor, rng)
    else:
        changes = _CHANGES if plan else (preempt, extend)
        changed = changes[rng.randrange(len(changes))](plan, run, rng)
        if changed == plan:
            changed = preempt(plan, run, rng)
    return merged(changed)[:_SEGMENTS_MAX]


def preempt(plan: Plan, run: Run, rng: Random) -> Plan:
    """After any step another task goes on first; what comes after stays, or is left to the default."""
    whole = run.taken or plan
    at = 1 + rng.randrange(sum(count for _, count in whole))
    switched = _switched(whole, at, rng)
    return (*switched, *_rest(whole, at)) if switched and rng.randrange(2) else switched or plan


def extend(plan: Plan, run: Run, rng: Random) -> Plan:
    """One switch soon after what is new about the entry began, or else soon after the last one of the plan."""
    whole = run.taken or plan
    at = run.frontier or sum(count for _, count in plan)
    while rng.randrange(2):
        at += 1
    return _switched(whole, at, rng) or plan


def each(taken: Plan, frontier: int) -> list[Plan]:
    """Every switch soon after a step, for one step or until the other task cannot go on."""
    return [
        (*begun, (task, steps))
        for further in range(_NEAR)
        for begun in [cut(taken, frontier + further)]
        for task in _others(taken, begun)[:_TASKS_MAX]
        for steps in (1, _TO_BLOCK)
    ]


def _switched(whole: Plan, at: int, rng: Random) -> Plan:
    """The first steps of a run, and then another task, for a few steps or until it cannot go on; () if there is none."""
    begun = cut(whole, at)
    others = _others(whole, begun)
    if not others:
        return ()
    steps = _TO_BLOCK if rng.randrange(3) == 0 else 1 + rng.randrange(2 << rng.randrange(3))
    return (*begun, (others[rng.randrange(len(others))], steps))


def _others(whole: Plan, begun: Plan) -> list[int]:
    """The tasks that took steps later on but not the next one: those that there may be a choice of."""
    rest = _rest(whole, sum(count for _, count in begun))
    following = rest[0][0] if rest else _INIT
    return list(dict.fromkeys(task for task, _ in rest if task not in {_INIT, following}))


def _rest(plan: Plan, steps: int) -> Plan:
    """A plan without its first steps."""
    found: list[Segment] = []
    for task, count in plan:
        if count > steps:
            found.append((task, count - steps))
        steps = max(0, steps - count)
    return tuple(found)


def cut(plan: Plan, steps: int) -> Plan:
    """The beginning of a plan, so many steps long at most."""
    found: list[Segment] = []
    for task, count in plan:
        if steps <= 0:
            break
        found.append((task, min(count, steps)))
        steps -= count
    return tuple(found)


def undo(plan: Plan, _run: Run, rng: Random) -> Plan:
    """A segment less."""
    at = rng.randrange(len(plan))
    return (*plan[:at], *plan[at + 1 :])


def shift(plan: Plan, _run: Run, rng: Random) -> Plan:
    """A switch sooner or later."""
    at = rng.randrange(len(plan))
    task, steps = plan[at]
    shifted = (steps // 2, steps - 1, steps + 1, 2 * steps, 1 + rng.randrange(steps))[rng.randrange(5)]
    return (*plan[:at], (task, max(1, min(shifted, _TO_BLOCK))), *plan[at + 1 :])


def exchange(plan: Plan, _run: Run, rng: Random) -> Plan:
    """Two neighbours in the other order."""
    at = rng.randrange(max(1, len(plan) - 1))
    return (*plan[:at], *reversed(plan[at : at + 2]), *plan[at + 2 :])


def reassign(plan: Plan, run: Run, rng: Random) -> Plan:
    """Another task takes the steps of a segment."""
    tasks = sorted({task for task, _ in (*run.taken, *plan) if task != _INIT}) or [_INIT]
    at = rng.randrange(len(plan))
    return (*plan[:at], (tasks[rng.randrange(len(tasks))], plan[at][1]), *plan[at + 1 :])


def splice(plan: Plan, donor: Plan, rng: Random) -> Plan:
    """The beginning of one and the end of the other, from about the same step on."""
    if not plan:
        return donor
    cut = rng.randrange(len(plan)) + 1
    steps, rest = sum(taken for _, taken in plan[:cut]), 0
    for at, (_, taken) in enumerate(donor):
        if rest >= steps:
            return (*plan[:cut], *donor[at:])
        rest += taken
    return plan[:cut]


_CHANGES: tuple[_Change, ...] = (preempt, extend, extend, undo, shift, shift, exchange, reassign)
