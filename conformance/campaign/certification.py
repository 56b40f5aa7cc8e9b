"""`certify`: the scenarios of a tier on real processes, judged; and the certificate that says what came of it."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from typing import TYPE_CHECKING, Any

from conformance import targets
from conformance.campaign import proof, real, subject
from conformance.campaign.cover import uncovered
from conformance.campaign.docket import Docket, origin_of
from conformance.certificate import (
    Certificate,
    Claim,
    Kit,
    Mutants,
    ObligationRow,
    Profile,
    Subject,
    environment,
)
from conformance.events import CampaignBegan, Installing
from conformance.recomputed import evidence_of, grants_told, why_not
from scenarios import catalogue
from scenarios.obligations import OBLIGATIONS
from scenarios.requirements import demanded
from simkit.case import kit_version

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from conformance.campaign.proof import Proof
    from conformance.events import Emit
    from conformance.install import Installed
    from conformance.store import Store
    from conformance.targets import Target
    from scenarios.interruption import Scenario
    from scenarios.requirements import RequirementSet
    from scenarios.rules import Tally
    from scenarios.verdict import Verdict


def certify(
    target: str,
    *,
    config: str | None,
    tier: catalogue.Tier,
    requirements: str | None = None,
    jobs: int | None,
    store: Store,
    emit: Emit,
    stopping: Callable[[], bool],
) -> Certificate:
    """Run a tier against a target and judge it by a requirement set, the current one when none is named. Raises `SimkitError`
    when the target cannot be installed, started or asked.
    """
    demands = demanded(requirements)
    parsed = targets.parse(target, config)
    scenarios = _scenarios(parsed, tier)
    installed = real.environment_of(parsed, emit)  # first: what cannot be installed is no campaign
    files = subject.bytes_of(parsed, store.root)  # before anything of it runs
    subject.demand_sources(parsed, files)
    emit(CampaignBegan(parsed.title, "certify", "process", tier, {"configuration": config}, len(scenarios)))
    docket = Docket(parsed, origin_of(parsed, "process"), store, emit, tier=tier)
    real.run_all(parsed, installed.python, [(None, one) for one in scenarios], docket.add, jobs, emit, stopping)
    docket.tell_unfired()
    if changed := subject.changed(files, subject.bytes_of(parsed, store.root)):
        docket.doubt_all(subject.not_one_target(parsed, changed))
    # Only now: a target that cannot be judged is told at once, and whoever stops the campaign waits for no proof.
    proven = proof.prove(lambda text: emit(Installing(text)), stopping, jobs=jobs)
    verdicts = docket.verdicts(proven.uncaught(), demands, uncovered(parsed))
    complete = docket.runs == len(scenarios) and proven.whole
    digest = _digest(parsed, installed, files)
    return _certificate(parsed, tier, demands, installed, digest, proven, docket, verdicts, complete=complete)


def _scenarios(target: Target, tier: catalogue.Tier) -> list[Scenario]:
    named = real.scenarios(target, tier)
    seeds = catalogue.FULL_SEEDS if tier == "full" else ()
    return [*named, *(real.drawn(target, seed) for seed in seeds)]


def _certificate(
    target: Target,
    tier: str,
    demands: RequirementSet,
    installed: Installed,
    digest: str,
    proven: Proof,
    docket: Docket,
    verdicts: Mapping[str, Verdict],
    *,
    complete: bool,
) -> Certificate:
    harness = target.manifest.harness
    packages = dict(one.split("==", 1) for one in installed.packages if "==" in one)
    return Certificate(
        subject=Subject(harness.name, target.version, target.configuration, harness.storage, digest),
        kit=Kit(kit_version(), demands.title, demands.digest),
        world="process",
        durability="kill",
        tier=tier,
        claims=tuple(Claim(id_, one.statement, one.source) for id_, one in target.claims.items()),
        obligations=tuple(_row(id_, verdicts[id_], docket.total[id_], demands) for id_ in OBLIGATIONS),
        mutants=Mutants(proven.count, proven.total, tuple(sorted(proven.uncaught()))),
        environment=environment(packages, _settings(target)),
        profiles=tuple(
            Profile(one.profile, one.granted and complete, why_not(one, verdicts, complete=complete), one.uncovered)
            for one in grants_told(verdicts, demands, target.claims)
        ),
        runs=docket.runs,
        cases=tuple(docket.cases),
        issued=dt.datetime.now(dt.UTC).date().isoformat(),
        complete=complete,
    )


def _row(id_: str, verdict: Verdict, seen: Tally, demands: RequirementSet) -> ObligationRow:
    obligation, demand = OBLIGATIONS[id_], demands.get(id_)
    return ObligationRow(
        id=id_,
        level=demand.level if demand else obligation.level,
        verdict=verdict.outcome,
        exercised=verdict.exercised,
        minimum=verdict.minimum,
        evidence=evidence_of(seen.exercised, seen.violations, seen.anomalies, slow=seen.slow),
        name=obligation.name,
        observed=verdict.observed,
        anomalies=verdict.anomalies,
        reason=verdict.reason,
    )


def _settings(target: Target) -> dict[str, Any]:
    """What the manifest tells of settings, what its units were given, and, whatever those say, the limits the kit kept to."""
    manifest = target.manifest
    units = {f"{unit}.{name}": value for unit, one in manifest.units.items() for name, value in one.env.items()}
    return {
        **manifest.settings,
        **units,
        **manifest.configurations[target.configuration].env,
        **target.describe()["limits"],
    }


def _digest(target: Target, installed: Installed, files: Mapping[str, str]) -> str:
    """What was certified, down to the adapter's bytes and every resolved package."""
    parts = [dict(files), target.version, target.configuration, list(installed.packages)]
    return hashlib.blake2b(json.dumps(parts).encode(), digest_size=16).hexdigest()
