"""The tally: what a stream of events adds up to. Reports and the command line count with the same one."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, TypeAlias

import attrs

from conformance.events import CampaignBegan, MutantJudged, RunFinished, VerdictReached, ViolationFound

if TYPE_CHECKING:
    from conformance.events import Event

#: Obligation, anomaly, claimed: violations that agree in these are told once and counted.
Same: TypeAlias = tuple[str, str, bool]


#: Scenario, seed and case of a run.
Run: TypeAlias = tuple[str, int | None, str | None]


def same(event: ViolationFound) -> Same:
    """What makes two violations the same finding."""
    return event.obligation, event.anomaly, event.claimed


@attrs.define
class Tally:
    """Counts, the first violation of each kind, and the verdicts, so far."""

    began: CampaignBegan | None = None
    runs: Counter[str] = attrs.field(factory=Counter)
    found: Counter[Same] = attrs.field(factory=Counter)
    first: dict[Same, ViolationFound] = attrs.field(factory=dict)
    verdicts: list[VerdictReached] = attrs.field(factory=list)
    seeds: set[int] = attrs.field(factory=set)
    mutants: list[MutantJudged] = attrs.field(factory=list)
    of_run: dict[Run, ViolationFound] = attrs.field(factory=dict)  # the first told of each run

    def add(self, event: Event) -> bool:
        """Count `event`; True when it is the first of its kind (every event but a violation told before)."""
        match event:
            case CampaignBegan():
                self.began = event
            case RunFinished():
                self.runs[event.outcome] += 1
                if event.seed is not None:
                    self.seeds.add(event.seed)
            case MutantJudged():
                self.mutants.append(event)
            case VerdictReached():
                self.verdicts.append(event)
            case ViolationFound():
                self.found[same(event)] += 1
                return self.first.setdefault(same(event), event) is event
        return True

    def before(self, event: ViolationFound) -> ViolationFound | None:
        """The violation of the same run that was told before this one, if there is one."""
        first = self.of_run.setdefault((event.scenario, event.seed, event.case_id), event)
        return None if first is event or not event.claimed else first

    @property
    def violations(self) -> int:
        """Violations of promises that are claimed."""
        return sum(n for (_, _, claimed), n in self.found.items() if claimed)

    def counts(self) -> dict[str, int]:
        """The counts of `CampaignEnded`: runs, seeds, violations, observations; `runs_<outcome>`, `obligations_<outcome>`; of
        mutants their number, those caught and the runs made of them.
        """
        caught = sum(event.outcome == "caught" for event in self.mutants)
        verdicts = Counter(event.verdict.outcome for event in self.verdicts)
        return {
            "runs": self.runs.total() + sum(event.runs for event in self.mutants),
            **{f"runs_{outcome}": n for outcome, n in sorted(self.runs.items())},
            **({"seeds": len(self.seeds)} if self.seeds else {}),
            "violations": self.violations,
            "observations": self.found.total() - self.violations,
            **{f"obligations_{outcome}": n for outcome, n in sorted(verdicts.items())},
            **({"mutants": len(self.mutants), "mutants_caught": caught} if self.mutants else {}),
        }

    def broken(self) -> tuple[str, ...]:
        """Claimed obligations violated so far, each with its anomalies: `DUR-3 recomputed`."""
        anomalies: dict[str, list[str]] = {}
        for obligation, anomaly, claimed in self.found:
            if claimed:
                anomalies.setdefault(obligation, []).append(anomaly)
        return tuple(f"{obligation} {' '.join(names)}" for obligation, names in sorted(anomalies.items()))
