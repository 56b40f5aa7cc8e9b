"""Which version of the code met which work: workers and engines that came up, what they ran, and whether it fitted.

Known only where the plan says for which version it was written, and the harness declares which version goes on with the work
of which (`Declared.codes`); everything else is left out. Work is of the version of its plan, and of a newer one from the first
request of a worker on that runs this and may go on with it.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from scenarios.history import TERMINAL, Started
from scenarios.index import Facts
from scenarios.joining import of_kind
from scenarios.observed import Request


@attrs.frozen
class Comer:
    """A process that came up with code of a known version; `work`: the version that the run's work was of by then."""

    incarnation: int
    unit: str
    code: str
    work: str
    at: int
    gone: int  # when it died; the end of the history for one that lived

    def __str__(self) -> str:
        return f"{self.unit} {self.incarnation}, which runs code {self.code},"


def goes_on(facts: Facts, code: str, work: str) -> bool | None:
    """Does this version say of itself that it goes on with work of that one? None where nothing is said."""
    declared = dict(facts.history.declared.codes)
    return work in declared[code] if code in declared and work in declared else None


def is_older(facts: Facts, code: str, work: str) -> bool:
    """Is `code` the older one of two versions that are declared?"""
    order = [name for name, _ in facts.history.declared.codes]
    return order.index(code) < order.index(work)


def moves(facts: Facts) -> tuple[tuple[int, str], ...]:
    """From which event on the work was of which version; empty where nobody says."""
    work = facts.history.plan.code
    if work is None or work not in dict(facts.history.declared.codes):
        return ()
    found = [(-1, work)]
    for request in facts.sent:
        code = code_of(facts, request)
        if code != work and not facts.late(request) and goes_on(facts, code, work):
            work = code
            found.append((request.at, work))
    return tuple(found)


def code_of(facts: Facts, request: Request) -> str:
    """What the worker behind a request runs; empty where nobody says."""
    event = facts.history.events[facts.started[request.event.incarnation]]
    return event.code if isinstance(event, Started) else ""


def work_at(facts: Facts, index: int) -> str:
    """The version that the work is of at an event; empty where nobody says."""
    return next((work for at, work in reversed(moves(facts)) if at < index), "")


def comers(facts: Facts) -> Iterator[Comer]:
    """Everything that came up with code of a declared version while the run was not over, in order."""
    end = next((seen.answered for seen in facts.statuses if seen.status.state in TERMINAL - {"blocked"}), None)
    begun = facts.start_ok()
    for index, event in of_kind(facts.history, Started):
        if begun is None or begun.answered_at is None or index < begun.answered_at:
            continue
        if end is not None and index > end:
            return
        work = work_at(facts, index)
        if goes_on(facts, event.code, work) is not None:
            gone = facts.died.get(event.incarnation, len(facts.history.events))
            yield Comer(event.incarnation, event.unit, event.code, work, index, gone)


def misfits(facts: Facts) -> Iterator[Comer]:
    """Comers that do not go on with the work there was."""
    return (one for one in comers(facts) if not goes_on(facts, one.code, one.work))


def restored_at(facts: Facts, misfit: Comer) -> int | None:
    """When, after a misfit, code came up in its place that goes on with the work, or code that nobody says anything of."""
    for index, event in of_kind(facts.history, Started):
        if index > misfit.at and event.unit == misfit.unit:
            is_fit = goes_on(facts, event.code, work_at(facts, index))
            if is_fit or (is_fit is None and event.code == ""):
                return index
    return None


def ends_fit(facts: Facts) -> bool:
    """Is there, at the end, a worker whose code goes on with the work?"""
    end = len(facts.history.events)
    work = work_at(facts, end)
    alive = [facts.history.events[at] for worker, at in facts.started.items() if worker not in facts.died]
    return any(isinstance(one, Started) and goes_on(facts, one.code, work) for one in alive)
