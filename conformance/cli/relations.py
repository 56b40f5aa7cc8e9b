"""What belongs to an obligation: its judge, the mutants that prove it, the stories that exercise it, reported faults."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance import events as e
from conformance.cli import listing

if TYPE_CHECKING:
    from collections.abc import Iterable

    from conformance.mutants.outline import Outline
    from scenarios.faults import Reported
    from scenarios.obligations import Obligation
    from scenarios.obligations.catalogue import Promise


def mutants_of(id_: str) -> tuple[Outline, ...]:
    """The mutants that this obligation must catch."""
    return tuple(one for one in listing.mutant_registry().values() if one.obligation == id_)


def stories_of(id_: str) -> tuple[str, ...]:
    """The stories of the catalogue that exercise an obligation: those it names, else those its mutants are shown by."""
    judged = listing.registry().get(id_)
    named = judged.scenarios if judged is not None else ()
    return named or tuple(sorted({one.shown_by.partition("/")[0] for one in mutants_of(id_) if one.shown_by}))


def faults_of(id_: str) -> tuple[Reported, ...]:
    """The kinds of reported faults that an obligation is there to catch."""
    return tuple(one for one in listing.faults().values() if id_ in one.obligations)


def stories_of_fault(fault: Reported) -> tuple[str, ...]:
    """The stories that exercise any of a fault's obligations."""
    return tuple(dict.fromkeys(story for id_ in fault.obligations for story in stories_of(id_)))


def judge_of(one: Obligation) -> str:
    """Where its judge is: `module:function`."""
    return f"{one.judge.__module__}:{one.judge.__name__}"


def described(promise: Promise) -> e.ObligationListed:
    """All that is known of a promise; of one without a judge, what the catalogue says."""
    judged = listing.registry().get(promise.id)
    return e.ObligationListed(
        id=promise.id,
        level=promise.level,
        kind=promise.kind,
        group=promise.group,
        profile=promise.profile,
        promise=promise.promise if judged is None else _sentence(judged.promise),
        judge=None if judged is None else judge_of(judged),
        minimum=None if judged is None else judged.minimum,
        anomalies=() if judged is None else judged.anomalies,
        scenarios=stories_of(promise.id),
        mutants=_names(mutants_of(promise.id)),
        causes=() if judged is None else judged.causes,
        learnt_from=tuple(one.number for one in faults_of(promise.id)),
    )


def _names(found: Iterable[Outline]) -> tuple[str, ...]:
    return tuple(one.name for one in found)


def _sentence(text: str) -> str:
    """Judges word their promises with or without a full stop."""
    stripped = text.strip().rstrip(".")
    return f"{stripped[:1].upper()}{stripped[1:]}."
