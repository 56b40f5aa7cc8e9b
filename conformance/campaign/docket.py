"""The docket: takes in judged runs one by one; tells violations, has cases kept, and adds up to verdicts."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs

from conformance.campaign.happenings import Happenings
from conformance.campaign.judged import Judged
from conformance.campaign.keeping import Keeping, Kept
from conformance.campaign.kinds import Kinds, kinds
from conformance.campaign.vitality import Vitality
from conformance.events import Noted, RunFinished, RunShown, Trouble, VerdictReached, ViolationFound
from conformance.failure import Origin, describe, replay_line
from conformance.reach import ruled_out
from conformance.recomputed import claimed_by
from conformance.reporters import spacetime
from conformance.reporters.wording import run as run_name
from scenarios.obligations import OBLIGATIONS
from scenarios.requirements import demanded
from scenarios.rules import Tally, decide, tally
from simkit.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from pathlib import Path

    from conformance.campaign.judged import Shrinks
    from conformance.events import Emit, World
    from conformance.store import Store
    from conformance.targets import Target
    from scenarios.requirements import RequirementSet
    from scenarios.verdict import Outcome, Verdict, Violation
    from simkit.case import Case

_SHOWN_MAX = 3


def claimed_ids(target: Target) -> frozenset[str]:
    """The obligations a target's manifest claims; a claimed profile stands for all its obligations."""
    return claimed_by(target.claims)


def origin_of(
    target: Target,
    world: World,
    scenario: str = "",
    *,
    mutant: str | None = None,
    boundaries: bool = False,
    sweep: int | None = None,
    swarm: bool = True,
) -> Origin:
    """Where a run of this target comes from; a configuration that is taken anyway needs no mention."""
    chosen = None if target.configuration == target.manifest.harness.configuration else target.configuration
    return Origin(
        target.text,
        world,
        scenario,
        configuration=chosen,
        mutant=mutant,
        boundaries=boundaries,
        sweep=sweep,
        swarm=swarm,
    )


class Docket:
    """Adds up one campaign against one target."""

    def __init__(
        self,
        target: Target,
        origin: Origin,
        store: Store,
        emit: Emit,
        *,
        tier: str | None = None,
        show: bool = False,
        again: Case | None = None,
        shrinks: Shrinks | None = None,
    ) -> None:
        """`show`: tell every run whole, not only what it violates. `again`: all runs are of this case, and make no other.
        `shrinks`: makes the first run of each kind of claimed failure small; that is what is kept and told of it then.
        """
        self.claimed = claimed_ids(target)
        self.runs = 0
        self.unfired: Counter[str] = Counter()
        self.happenings = Happenings()
        self._vitality = Vitality()
        #: Runs that never ended though no judge says why: nobody knows what they would have shown.
        self.unsettled: list[str] = []
        self._origin = origin
        self._emit = emit
        self._totals = {id_: Tally() for id_ in OBLIGATIONS}
        self._kinds = Kinds()
        self._troubles: list[Problem] = []
        self._keeping = Keeping(store, emit, again)
        self._manifest, self._tier, self._show = target.manifest, tier, show
        self._shrinks = shrinks
        self._doubt = ""  # the code of what is wrong with the campaign itself

    @property
    def cases(self) -> Sequence[str]:
        """The ids of those that were saved."""
        return self._keeping.cases

    @property
    def total(self) -> Mapping[str, Tally]:
        return self._totals

    @property
    def troubles(self) -> Sequence[Problem]:
        return self._troubles

    def add(self, judged: Judged) -> Problem | None:
        """Take in one run and tell what it showed. Returns why it could not be judged, as it was told."""
        self.runs += 1
        problem = None
        self.unfired.update(judged.unfired)
        self.happenings.add(judged)
        self._vitality.add(judged)
        if self._show and judged.history is not None:
            self._emit(RunShown(judged.scenario, spacetime.whole(judged.history), judged.seed))
        if judged.problem is not None:
            problem = self._note(judged)
        if judged.unsettled and not judged.violated:
            self.unsettled.append(judged.scenario)
        if (judged.unsettled or judged.slow) and not judged.violated:
            self._note_slow(judged)
        for id_, finding in judged.findings.items():
            one = tally((finding,))
            self._totals[id_] = _added(self._totals[id_], one)
        small: dict[tuple[str, str], Kept] = {}
        try:
            small = self._made_small(judged)
        finally:  # whoever is interrupted meanwhile has the run as it was found
            self._tell_run(judged, small)
        return problem

    def _tell_run(self, judged: Judged, small: Mapping[tuple[str, str], Kept]) -> None:
        """A run that was taken in, with what it violates: as it was made small, else as it was found; its case is kept."""
        due = self._shrinks is None or self._kinds.needs_whole(judged, small, self.claimed)
        fresh = self._kinds.is_fresh(judged)
        whole = fresh and due
        case_id = self._keeping.case(judged) if whole else next((one.case_id for one in small.values()), None)
        seen_in = self._keeping.seen(judged, case_id) if whole and case_id else ""
        outcome = self._outcome(judged)
        self._emit(RunFinished(judged.scenario, outcome, judged.seed, judged.fired, case_id))
        told: set[tuple[str, str]] = set()
        for id_, finding in judged.findings.items():
            for violation in finding.violations:
                kind = (id_, violation.anomaly)
                if kind in small and kind not in told:
                    self._tell_small(small[kind], *kind)
                else:
                    self._tell(judged, id_, violation, case_id, seen_in, whole=fresh)
                told.add(kind)

    def doubt_all(self, problem: Problem) -> None:
        """Something is wrong with the campaign itself: tell it, and let nothing pass. Its rows name it by its code alone."""
        self._troubles.append(problem)
        self._doubt = problem.code
        self._emit(Trouble(problem))

    @contextlib.contextmanager
    def summed_up(self, uncovered: Mapping[str, str] | None = None) -> Iterator[None]:
        """Whoever is interrupted in this block tells the verdicts of what was judged until then all the same."""
        try:
            yield
        except BaseException as error:
            if _is_interrupt(error):
                self.verdicts(uncovered=uncovered)
            raise

    def verdicts(
        self,
        uncaught: Mapping[str, Sequence[str]] | None = None,
        demands: RequirementSet | None = None,
        uncovered: Mapping[str, str] | None = None,
    ) -> dict[str, Verdict]:
        """Every obligation's verdict so far, told as events too. `uncaught`: mutants that survived, by obligation; `demands`:
        the requirement set to judge by, the current one when not given; `uncovered`: what nothing in this world puts to the
        test, and why. What was seen broken stays broken, whatever else could not be judged.
        """
        demands = demands or demanded()
        reached: dict[str, Verdict] = {}
        error = self._doubt or (str(self._troubles[0].what) if self._troubles else "")
        for id_, obligation in OBLIGATIONS.items():
            requirement = demands.get(id_)
            verdict = decide(
                obligation,
                self._totals[id_],
                claimed=id_ in self.claimed,
                minimum=requirement.minimum if requirement else None,
                error="" if self._totals[id_].violations else error,
                uncaught=(uncaught or {}).get(id_, ()),
                uncovered=(uncovered or {}).get(id_, ""),
            )
            if verdict.outcome == "inconclusive" and verdict.exercised < verdict.minimum:
                verdict = attrs.evolve(verdict, reason=verdict.reason + self._missing(id_))
            if verdict.outcome == "pass" and (doubt := self._never_settled() or self._vitality.inability()):
                verdict = attrs.evolve(verdict, outcome="inconclusive", reason=doubt)
            reached[id_] = verdict
            self._emit(VerdictReached(verdict, obligation.name, obligation.level, obligation.profile))
        return reached

    def tell_unfired(self) -> None:
        """Name the interruptions that were asked for and never struck: what they were to show was not put to the test."""
        if not self.unfired:
            return
        total = self.unfired.total()
        shown = ", ".join(f"{label} × {n}" if n > 1 else label for label, n in self.unfired.most_common(_SHOWN_MAX))
        more = ", …" if len(self.unfired) > _SHOWN_MAX else ""
        never = "1 interruption never struck" if total == 1 else f"{total} interruptions never struck"
        self._emit(Noted(f"{never}, for the run never came there: {shown}{more}"))

    def tell_happenings(self, folder: Path) -> None:
        """Say which interruptions and faults took place, and which named points in `folder` no run has hit."""
        for sentence in self.happenings.told(folder):
            self._emit(Noted(sentence))

    def _missing(self, id_: str) -> str:
        """What would put the obligation to the test, where the manifest or the tier rules it out."""
        if why := ruled_out(id_, self._manifest):
            return f"; not with this adapter.toml: {why}"
        return self._vitality.advice(id_, self._tier)

    def _never_settled(self) -> str:
        if not self.unsettled:
            return ""
        shown = ", ".join(self.unsettled[:_SHOWN_MAX])
        runs = "1 run" if len(self.unsettled) == 1 else f"{len(self.unsettled)} runs"
        return f"{runs} never settled, and nothing seen explains it: {shown}"

    def _outcome(self, judged: Judged) -> Outcome:
        if judged.problem is not None:
            return "error"
        if any(finding.violations for id_, finding in judged.findings.items() if id_ in self.claimed):
            return "fail"
        if judged.violated:
            return "not-claimed"
        slow = any(finding.slow for id_, finding in judged.findings.items() if id_ in self.claimed)
        return "inconclusive" if slow or judged.unsettled else "pass"

    def _note(self, judged: Judged) -> Problem:
        """A run that could not be judged; the first problem of each kind is told, with where the logs are."""
        assert judged.problem is not None
        problem = judged.problem
        fresh = all(one.code != problem.code for one in self._troubles)
        if folder := self._keeping.odd(judged, problem.code):
            problem = attrs.evolve(problem, hint="; ".join(filter(None, (problem.hint, f"logs: {folder}"))))
        self._troubles.append(problem)
        if fresh:
            self._emit(Trouble(problem))
        return problem

    def _note_slow(self, judged: Judged) -> None:
        """A run that took too long, or never ended: where to look."""
        word = "never settled" if judged.unsettled else "was slow"
        if folder := self._keeping.odd(judged, word):
            self._emit(Noted(f"{run_name(judged.scenario, judged.seed)} {word}; what was seen of it: {folder}"))

    def _made_small(self, judged: Judged) -> dict[tuple[str, str], Kept]:
        """For each kind of claimed failure that no run has shown before: this one made small, saved and ready to be told."""
        found: dict[tuple[str, str], Kept] = {}
        if self._shrinks is None or judged.case is None:
            return found
        for kind in kinds(judged):
            if self._kinds.has(kind) or kind in found or kind[0] not in self.claimed:
                continue
            small = self._shrinks(judged, " ".join(kind))
            if small is None:
                continue
            kept = self._keeping.small(small)
            self._kinds.made_small(kinds(small.judged))
            found |= {
                other: kept for other in kinds(small.judged) if other == kind or self._is_due(other, judged, found)
            }
        return found

    def _is_due(self, kind: tuple[str, str], judged: Judged, found: Collection[tuple[str, str]]) -> bool:
        """Whether a small run that was made for another failure may be shown for this one too."""
        return not self._kinds.has(kind) and kind in kinds(judged) and kind not in found and kind[0] in self.claimed

    def _tell_small(self, kept: Kept, id_: str, anomaly: str) -> None:
        small, judged = kept.small, kept.small.judged
        assert judged.history is not None
        violation = next(one for one in judged.findings[id_].violations if one.anomaly == anomaly)
        origin = attrs.evolve(self._origin, scenario=judged.scenario, seed=judged.seed, case_id=kept.case_id)
        found = describe(judged.history, violation, id_, OBLIGATIONS[id_].name, origin)
        self._emit(attrs.evolve(found, kept=kept.folder, shrunk=small.told, decides=small.decides))

    def _tell(
        self, judged: Judged, id_: str, violation: Violation, case_id: str | None, seen_in: str, *, whole: bool
    ) -> None:
        origin = attrs.evolve(self._origin, scenario=judged.scenario, seed=judged.seed, case_id=case_id)
        obligation, claimed = OBLIGATIONS[id_], id_ in self.claimed
        if whole and judged.history is not None:
            found = describe(judged.history, violation, id_, obligation.name, origin, claimed=claimed)
            self._emit(attrs.evolve(found, kept=seen_in))
            return
        self._emit(
            ViolationFound(
                obligation=id_,
                anomaly=violation.anomaly,
                sentence=violation.sentence,
                scenario=judged.scenario,
                seed=judged.seed,
                replay_seed=replay_line(origin),
                name=obligation.name,
                claimed=claimed,
            )
        )


def _is_interrupt(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return error.subgroup(KeyboardInterrupt) is not None
    return isinstance(error, KeyboardInterrupt)


def _added(total: Tally, one: Tally) -> Tally:
    names = dict.fromkeys((*total.anomalies, *one.anomalies))
    return Tally(
        total.exercised + one.exercised, total.violations + one.violations, tuple(names), total.slow or one.slow
    )
