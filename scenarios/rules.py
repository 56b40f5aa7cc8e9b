"""The verdict rules: what many findings say about one obligation, and many verdicts about a target.

    judge_all(history)   every judge's finding on one history
    tally(findings)      one obligation's findings over a campaign, added up
    decide(…)            the verdict of one obligation
    merge(outcomes)      the worst of several outcomes
    grant(…)             a profile, whole or not at all

The first rule that applies decides:

    not claimed                              not-claimed, with what was observed all the same
    kit or adapter broke the protocol        error
    any safety witness                       fail
    liveness missed, even at four bounds    fail
    made it only within four bounds          inconclusive (slow)
    nothing in this world puts it to the test   not-covered, which is neither a pass nor a failure
    exercised fewer times than the minimum   inconclusive (unexercised)
    mutants that this build did not catch    inconclusive (unproven)
    otherwise                                pass
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal

import attrs

from scenarios.history import History
from scenarios.index import look
from scenarios.obligations import OBLIGATIONS, Obligation
from scenarios.outlived import vanished_at
from scenarios.requirements import CURRENT, REQUIREMENT_SETS, RequirementSet
from scenarios.verdict import Finding, Outcome, Verdict

#: Worst first.
SEVERITY: Final[tuple[Outcome, ...]] = ("error", "fail", "inconclusive", "pass", "not-covered", "not-claimed")

Observed = Literal["held", "violated", "nothing"]


def judge_all(history: History) -> dict[str, Finding]:
    """Every registered judge's finding on one history, in the catalogue's order.

    A run that has called nobody puts nothing to the test, whatever was asked and answered: what does nothing loses nothing,
    does nothing twice, and can always say why it ended. What it breaks is blamed all the same. No obligation is excepted:
    also what is only about commands and refusals is shown by runs that do work.

    A run that vanished with a death has shown only what it had shown by then: what is not there breaks nothing more.
    """
    findings = {id_: obligation.judge(history) for id_, obligation in OBLIGATIONS.items()}
    facts = look(history)
    if not facts.sent:
        return {id_: attrs.evolve(finding, exercised=0) for id_, finding in findings.items()}
    gone = vanished_at(facts)
    if gone is None:
        return findings
    lived = attrs.evolve(history, events=history.events[:gone])
    shown = {id_: obligation.judge(lived).exercised for id_, obligation in OBLIGATIONS.items()}
    return {
        id_: attrs.evolve(finding, exercised=min(finding.exercised, shown[id_])) for id_, finding in findings.items()
    }


@attrs.frozen
class Tally:
    """One obligation's findings over a campaign, added up. `anomalies` are named once each, in order of appearance."""

    exercised: int = 0
    violations: int = 0
    anomalies: tuple[str, ...] = ()
    slow: bool = False

    @property
    def observed(self) -> Observed:
        if self.violations:
            return "violated"
        return "held" if self.exercised else "nothing"


def tally(findings: Iterable[Finding]) -> Tally:
    """Add up the findings of one obligation. What breaks a promise has put it to the test, whatever was to do so."""
    total = Tally()
    for finding in findings:
        names = (*total.anomalies, *(violation.anomaly for violation in finding.violations))
        total = Tally(
            total.exercised + max(finding.exercised, 1 if finding.violations else 0),
            total.violations + len(finding.violations),
            tuple(dict.fromkeys(names)),
            total.slow or finding.slow,
        )
    return total


def decide(
    obligation: Obligation,
    seen: Tally,
    *,
    claimed: bool,
    minimum: int | None = None,
    error: str = "",
    uncaught: Sequence[str] = (),
    uncovered: str = "",
) -> Verdict:
    """The verdict of one obligation.

    `minimum` overrides the obligation's own (a requirement set's demand); `error` says how kit or adapter broke the
    protocol; `uncaught` names the obligation's mutants that this build's judge did not catch; `uncovered` says why nothing
    that can be done to the target in this world puts the promise to the test.
    """
    least = obligation.minimum if minimum is None else minimum
    outcome, reason = _outcome(obligation, seen, claimed, least, error, uncaught, uncovered)
    return Verdict(obligation.id, outcome, seen.exercised, least, reason, seen.observed, seen.anomalies)


def _outcome(
    obligation: Obligation,
    seen: Tally,
    claimed: bool,
    minimum: int,
    error: str,
    uncaught: Sequence[str],
    uncovered: str,
) -> tuple[Outcome, str]:
    if not claimed:
        return "not-claimed", f"observed: {seen.observed}"
    if error:
        return "error", error
    if seen.violations:
        return "fail", f"{', '.join(seen.anomalies)} ({_times(seen.violations)})"
    if seen.slow:
        return "inconclusive", "slow: kept only within four times the bound"
    if uncovered and not seen.exercised:
        return "not-covered", uncovered
    if seen.exercised < minimum:
        return "inconclusive", f"exercised {_times(seen.exercised)} of at least {minimum}: needs {obligation.tested_by}"
    if uncaught:
        return "inconclusive", f"unproven check: {', '.join(uncaught)} not caught by this build"
    return "pass", f"exercised {_times(seen.exercised)}"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def merge(outcomes: Iterable[Outcome]) -> Outcome:
    """The worst of several outcomes; `not-claimed` for none, as nothing claimed is nothing shown."""
    return min(outcomes, key=SEVERITY.index, default="not-claimed")


@attrs.frozen
class Grant:
    """A profile, granted whole or not at all; `missing` are the required obligations that did not pass.

    It is granted as far as the world goes: `uncovered` are the required obligations that nothing in it could put to the test.
    """

    profile: str
    granted: bool
    missing: tuple[str, ...] = ()
    uncovered: tuple[str, ...] = ()


def grant(profile: str, verdicts: Mapping[str, Verdict], demands: RequirementSet = REQUIREMENT_SETS[CURRENT]) -> Grant:
    """Is `profile` granted? Every MUST the set puts in it, as far as this world covers it, has to pass; a profile without any
    that passed is never granted.
    """
    outcomes = {
        one.id: verdicts[one.id].outcome if one.id in verdicts else None
        for one in demands.requirements
        if one.profile == profile and one.level == "MUST"
    }
    missing = tuple(id_ for id_, outcome in outcomes.items() if outcome not in {"pass", "not-covered"})
    uncovered = tuple(id_ for id_, outcome in outcomes.items() if outcome == "not-covered")
    return Grant(profile, "pass" in outcomes.values() and not missing, missing, uncovered)


def grants(verdicts: Mapping[str, Verdict], demands: RequirementSet = REQUIREMENT_SETS[CURRENT]) -> tuple[Grant, ...]:
    """Every profile of the set."""
    return tuple(grant(profile, verdicts, demands) for profile in demands.profiles)
