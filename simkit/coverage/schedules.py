"""Changes to a schedule: a pre-emption more, one less, sooner or later; the beginning of one with the end of another.

A schedule is followed loosely, so that one which does not fit what comes after a change is no error.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from simkit.shrinking.search import merged
from simkit.strategy import Segment

Plan = tuple[Segment, ...]
#: One change in so many splices two schedules.
SPLICES = 6
#: "Until it cannot go on".
_TO_BLOCK = 1 << 30
_SEGMENTS_MAX = 4000

_Change = Callable[[Plan, Plan, Random], Plan]


def change(plan: Plan, taken: Plan, donor: Plan, random: Random) -> Plan:
    """Change one thing about `plan`, of which `taken` is all that was run; a `donor` lends its end."""
    if donor:
        changed = splice(plan or taken, donor, random)
    else:
        changes = _CHANGES if plan else (preempt,)
        changed = changes[random.randrange(len(changes))](plan, taken, random)
        if changed == plan:
            changed = preempt(plan, taken, random)
    return merged(changed)[:_SEGMENTS_MAX]


def preempt(plan: Plan, taken: Plan, random: Random) -> Plan:
    """Somewhere in a task's steps another task goes on first; what comes after stays, or is left to the default."""
    whole = taken or plan
    tasks = sorted({task for task, _ in whole})
    if len(tasks) < 2:
        return plan
    at = random.randrange(len(whole))
    task, steps = whole[at]
    before = 1 + random.randrange(steps)
    others = [other for other in tasks if other != task]
    other = others[random.randrange(len(others))]
    inserted = other, _TO_BLOCK if random.randrange(3) == 0 else 1 + random.randrange(4)
    rest: Plan = ((task, steps - before), *whole[at + 1 :]) if random.randrange(2) else ()
    return (*whole[:at], (task, before), inserted, *rest)


def undo(plan: Plan, _taken: Plan, random: Random) -> Plan:
    """A segment less."""
    at = random.randrange(len(plan))
    return (*plan[:at], *plan[at + 1 :])


def shift(plan: Plan, _taken: Plan, random: Random) -> Plan:
    """A switch sooner or later."""
    at = random.randrange(len(plan))
    task, steps = plan[at]
    shifted = (steps // 2, steps - 1, steps + 1, 2 * steps, 1 + random.randrange(steps))[random.randrange(5)]
    return (*plan[:at], (task, max(1, min(shifted, _TO_BLOCK))), *plan[at + 1 :])


def exchange(plan: Plan, _taken: Plan, random: Random) -> Plan:
    """Two neighbours in the other order."""
    at = random.randrange(max(1, len(plan) - 1))
    return (*plan[:at], *reversed(plan[at : at + 2]), *plan[at + 2 :])


def reassign(plan: Plan, taken: Plan, random: Random) -> Plan:
    """Another task takes the steps of a segment."""
    tasks = sorted({task for task, _ in (*taken, *plan)})
    at = random.randrange(len(plan))
    return (*plan[:at], (tasks[random.randrange(len(tasks))], plan[at][1]), *plan[at + 1 :])


def splice(plan: Plan, donor: Plan, random: Random) -> Plan:
    """The beginning of one and the end of the other, from about the same step on."""
    if not plan:
        return donor
    cut = random.randrange(len(plan)) + 1
    steps, rest = sum(taken for _, taken in plan[:cut]), 0
    for at, (_, taken) in enumerate(donor):
        if rest >= steps:
            return (*plan[:cut], *donor[at:])
        rest += taken
    return plan[:cut]


_CHANGES: tuple[_Change, ...] = (preempt, preempt, undo, shift, shift, exchange, reassign)
