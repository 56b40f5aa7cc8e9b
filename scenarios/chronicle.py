"""What a harness's journal says of the operations it is about: rows by operation, and the transitions there may be.

Pure reading for judges. Rows of operations that a harness made itself for one of the plan (`c~2` for a check made anew) count
as the plan's own. What children send is in their own journals, so nothing of it is expected here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeVar, get_args

from scenarios.bodies import Invocation, Journal, Rejection, Transition
from scenarios.history import OperationState
from scenarios.index import Facts
from scenarios.observed import Request

Row = TypeVar("Row", Transition, Invocation, Rejection)

STATES: Final[frozenset[str]] = frozenset(get_args(OperationState))
#: Every transition there may be, as (from, to): whatever moves an operation, these are the states it can come to.
LEGAL: Final[frozenset[tuple[str, str]]] = frozenset(
    {
        ("planned", "dispatched"),  # its intent is durable
        ("planned", "succeeded"),  # decided inside the harness: a signal, a timer, a decision, a drawn value
        ("planned", "failed"),  # a definite no inside the harness
        ("planned", "skipped"),
        ("dispatched", "succeeded"),
        ("dispatched", "failed"),
        ("dispatched", "unknown"),  # it may have happened
        ("unknown", "dispatched"),  # the same request again
        ("unknown", "unknown"),  # a question was asked, or went unanswered
        ("unknown", "reconciled"),
        ("unknown", "unresolved"),
        ("unknown", "failed"),  # no further try, and none of them had an effect
        ("unknown", "skipped"),  # none had an effect, and none is wanted any more
        ("unresolved", "reconciled"),  # somebody settled it
    }
)


def leaf_of(operation: str) -> str:
    """The plan's operation that a row is about."""
    return operation.partition("~")[0]


def by_leaf(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Rows of each operation of the plan, in the order they are in."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(leaf_of(row.operation), []).append(row)
    return found


def chains(journal: Journal) -> Mapping[str, tuple[Transition, ...]]:
    """The transitions of each operation by itself, in order of their sequence; what is in no words of ours is left out."""
    found: dict[str, list[Transition]] = {}
    for row in sorted(journal.transitions, key=lambda row: row.sequence):
        found.setdefault(row.operation, []).append(row)
    return {
        operation: tuple(rows)
        for operation, rows in found.items()
        if all(row.to_state in STATES and row.from_state in STATES | {""} for row in rows)
    }


def deeds(facts: Facts, before: int) -> dict[str, list[Request]]:
    """What this run itself sent before event `before` to have an operation carried out, by operation."""
    found: dict[str, list[Request]] = {}
    for request in facts.sent:
        if request.at < before and not request.event.lookup and is_own(request.op) and request.event.service != "desk":
            found.setdefault(request.op, []).append(request)
    return found


def is_own(operation: str) -> bool:
    """Is this an operation of the run's own, none of a child's?"""
    return "/" not in operation
