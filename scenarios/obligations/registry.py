"""The registry: an obligation is a judge with everything a reader wants to know about it.

A judge is a pure function `History → Finding`, registered by the decorator `obligation`. It counts how often its promise
was really put to the test (`Finding.exercised`), and blames only what no correct harness could have shown: when in doubt
it says nothing, as a false alarm costs more than a miss.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias

import attrs

from scenarios.history import History
from scenarios.obligations.groups import Profile
from scenarios.verdict import Finding, Kind, Level, Violation

Judge: TypeAlias = Callable[[History], Finding]

#: What a failed check is called, and what the name means.
ANOMALIES: Final[Mapping[str, str]] = {
    "amnesia": "acknowledged or accepted, later gone",
    "duplicate effect": "one intent, two effects, or its work done twice",
    "lost effect": "reported done, effect missing",
    "phantom effect": "an effect with no durable intent behind it",
    "forked lineage": "two answers of one operation both used downstream",
    "out of order": "dispatched before what it depends on, or before its time",
    "stale acceptance": "an older generation won",
    "resurrection": "admitted after an acknowledged stop, pause, denial or expiry",
    "false certainty": "unknown reported as failed or succeeded",
    "key drift": "one operation, two keys; or one key, two meanings",
    "overspend": "more admitted, tried or held than was allowed",
    "replenished allowance": "what was used up counts as free again",
    "torn view": "a snapshot no single state explains, or answers that contradict each other",
    "stuck": "no progress though nothing is in the way",
    "silent divergence": "new code went on with an old history as if it were its own",
    "changed decision": "the same history, read again, led elsewhere",
    "leak": "a secret where it is stored or shown, or a thing or child that nobody owns",
}


@attrs.frozen
class Obligation:
    """One promise, its judge, and what a reader needs to understand a failure of it."""

    id: str
    level: Level
    kind: Kind
    profile: Profile
    promise: str  # in our own words, one sentence
    tested_by: str  # the interruptions that put it to the test
    anomalies: tuple[str, ...]  # names a violation may have, the usual one first
    minimum: int  # exercised fewer times than this, it proves nothing
    causes: tuple[str, ...]  # what usually is wrong in a harness that breaks it
    learnt_from: tuple[str, ...]  # numbers of public reports of this kind of fault
    judge: Judge
    scenarios: tuple[str, ...] = ()  # stories that exercise it; none named: those its mutants are shown by

    @property
    def name(self) -> str:
        """The judge's name in words, e.g. "acknowledged task survives"."""
        return self.judge.__name__.replace("_", " ")

    @property
    def group(self) -> str:
        return self.id.partition("-")[0]


_REGISTERED: dict[str, Obligation] = {}


def obligation(
    id: str,
    *,
    kind: Kind,
    profile: Profile,
    promise: str,
    tested_by: str,
    anomaly: str | tuple[str, ...],
    minimum: int,
    causes: tuple[str, ...],
    learnt_from: tuple[str, ...],
    level: Level = "MUST",
    scenarios: tuple[str, ...] = (),
) -> Callable[[Judge], Judge]:
    """Register the decorated judge under the catalogue's `id`; returns the judge itself."""
    anomalies = (anomaly,) if isinstance(anomaly, str) else anomaly
    assert id not in _REGISTERED, f"two judges for {id}"
    assert all(name in ANOMALIES for name in anomalies), f"{id}: no such anomaly among {anomalies}"

    def register(judge: Judge) -> Judge:
        _REGISTERED[id] = Obligation(
            id, level, kind, profile, promise, tested_by, anomalies, minimum, causes, learnt_from, judge, scenarios
        )
        return judge

    return register


def blame(anomaly: str, sentence: str, evidence: Iterable[int], operation: str | None = None) -> Violation:
    """A violation whose evidence is in order of observation, each event once."""
    return Violation(anomaly, sentence, tuple(sorted(set(evidence))), operation)


def firsts(violations: Iterable[Violation]) -> tuple[Violation, ...]:
    """The first violation of each operation: later ones only repeat it."""
    found: dict[str | None, Violation] = {}
    for violation in violations:
        found.setdefault(violation.operation, violation)
    return tuple(found.values())


def registered() -> Mapping[str, Obligation]:
    """Everything registered so far, in order of registration."""
    return dict(_REGISTERED)
