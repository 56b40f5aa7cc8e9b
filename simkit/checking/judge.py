"""`check`: whether a history is linearizable, within bounds. A bound that is met makes the verdict inconclusive."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator

import attrs

from simkit.checking import models
from simkit.checking.history import History, Operation
from simkit.checking.model import WHOLE, Model
from simkit.checking.search import Search
from simkit.checking.timeline import overlapping, parts, timeline
from simkit.checking.verdict import Answer, Evidence, Verdict
from simkit.errors import ExitCode, Problem, SimkitError, told, wrong

#: Situations that a part may meet before the next one has its turn; doubled each round.
_QUANTUM = 50
_QUANTUM_MAX = 16_000
#: So many to find out where exactly a history that has no order goes wrong.
_QUANTUM_EVIDENCE = 100_000


@attrs.frozen
class Bounds:
    """When to give up. A situation takes some 300 bytes, and a few microseconds; the order in which parts are tried is fixed.

    There is no clock in here: one who wants a bound on time hands in a clock.
    """

    operations: int = 100_000
    situations: int = 1_000_000
    time_s: float | None = None
    clock: Callable[[], float] | None = None  # seconds, such as a monotonic clock


_BOUNDS = Bounds()
_MODELS = "see simkit.checking.models for ready ones, such as models.key_value()"


def check(history: History | Iterable[Operation], model: Model, *, bounds: Bounds = _BOUNDS) -> Verdict:
    """Judge whether there is one order of all operations in which every answer is right.

    Args:
        history: what was recorded, or the operations themselves in any order.
        model: what the object does; see `simkit.checking.models` for ready ones.
        bounds: when to give up.

    Returns: the verdict, true only when an order was found. A history in which nothing returned proves nothing, and is
    inconclusive. Raises SimkitError for an operation that the model does not know, and when the model fails.
    """
    _check(history, model)
    operations = history.operations() if isinstance(history, History) else tuple(history)
    for one in operations:
        _need_known(one, model)
    if len(operations) > bounds.operations:
        return _inconclusive(model, operations, f"{len(operations)} operations, and the bound is {bounds.operations}")
    if not any(one.definite for one in operations):
        return _inconclusive(model, operations, "no operation returned: there is nothing to judge")
    with _failures_of(model):
        lines = [timeline(part, model) for part in parts(operations, model.partition, WHOLE)]
        searches = [Search(line, model) for line in lines if line.operations]
        refuted, reason = _take_turns(searches, bounds)
        evidence = None if refuted is None else _evidence(refuted, model, bounds)
    answer: Answer = "not linearizable" if refuted else "inconclusive" if reason else "linearizable"
    situations = sum(search.situations for search in searches)
    return Verdict(model.name, answer, len(operations), len(lines), situations, evidence, "" if refuted else reason)


def _check(history: object, model: object) -> None:
    """Refuse what is no history, or no model."""
    if not isinstance(history, Iterable | History):
        raise wrong("check: history", history, "a History, or a list of operations")
    if not isinstance(model, Model):
        name = getattr(model, "__name__", "")
        is_ready = callable(model) and getattr(models, name, None) is model
        raise wrong("check: model", model, "a model", f"call it: models.{name}()" if is_ready else _MODELS)


def _need_known(one: object, model: Model) -> None:
    """Refuse what is no operation, or none of the model."""
    if not isinstance(one, Operation):
        raise wrong(
            "check: history", one, "operations: simkit.checking.Operation(process, asked, answer, called, returned)"
        )
    if model.knows(one.asked):
        return
    has = [f"{name}({', '.join(arguments.split())})" for name, arguments in (model.operations or {}).items()]
    raise SimkitError(
        Problem(
            "operation-unknown",
            f"a {model.name} knows no operation {one.asked[0]!r} with {len(one.asked) - 1} arguments",
            str(one),
            f"one of {', '.join(has)}",
            "name the operations of the history as the model does, or judge it by another one",
        )
    )


def _take_turns(searches: list[Search], bounds: Bounds) -> tuple[Search | None, str]:
    """The first part found to have no order, if one is, and which bound was met."""
    clock, quantum = bounds.clock, _QUANTUM
    began = 0.0 if clock is None else clock()
    open_ = searches
    while open_:
        left = []
        for search in open_:
            room = bounds.situations - sum(each.situations for each in searches)
            if room <= 0:
                return None, f"the bound of {bounds.situations} situations"
            if clock is not None and bounds.time_s is not None and clock() - began >= bounds.time_s:
                return None, f"the bound of {bounds.time_s} seconds"
            found = search.advance(min(quantum, room))
            if found is False:
                return search, ""
            if found is None:
                left.append(search)
        open_ = left
        quantum = min(2 * quantum, _QUANTUM_MAX)
    return None, ""


def _evidence(search: Search, model: Model, bounds: Bounds) -> Evidence:
    exact = True
    if search.foresighted:  # it knew that there is no order before it came to the operation that shows it
        search = Search(search.timeline, model, thorough=True)
        exact = search.advance(min(_QUANTUM_EVIDENCE, bounds.situations)) is False
    longest, done = search.longest(), search.timeline.operations
    return Evidence(
        misplaced=done[longest.reached],
        order=longest.order,
        states=longest.states,
        overlapping=tuple(overlapping(search.timeline, longest.reached)),
        operations=len(done) + len(search.timeline.unknown),
        exact=exact,
    )


def _inconclusive(model: Model, operations: tuple[Operation, ...], reason: str) -> Verdict:
    return Verdict(model.name, "inconclusive", len(operations), 0, 0, None, reason)


@contextlib.contextmanager
def _failures_of(model: Model) -> Iterator[None]:
    """What the model raises is told as its failure; a judge never passes because it stumbled."""
    try:
        yield
    except SimkitError:
        raise
    except Exception as error:
        raise SimkitError(
            Problem(
                "model-failed",
                f"the model of a {model.name} raised {told(error)}",
                "a check of a history",
                "a model that steps with every operation of the history, and whose states are hashable",
                "the traceback is the cause of this error",
                ExitCode.INTERNAL,
            )
        ) from error
