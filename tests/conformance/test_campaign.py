"""The campaign engine: what a docket adds up to, seeds over processes, real certifications on a few scenarios."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest

from conformance import events as e
from conformance import targets
from conformance.campaign import certification, proof, real, seeds, seedwork
from conformance.campaign.certification import certify
from conformance.campaign.docket import Docket, claimed_ids, origin_of
from conformance.campaign.judged import Judged
from conformance.campaign.kinds import CASES_MAX
from conformance.campaign.proof import Proof
from conformance.certificate import Certificate
from conformance.certificate_file import load
from conformance.order import Order
from conformance.simulate import simulate
from conformance.store import Store
from scenarios import catalogue
from scenarios.interruption import Scenario
from scenarios.obligations import OBLIGATIONS
from scenarios.requirements import Requirement, RequirementSet
from scenarios.verdict import Finding, Violation
from simkit.case import Case
from simkit.errors import ExitCode, Problem, SimkitError
from tests.report_samples import history

NAIVE = targets.parse("naive")
PROBLEM = Problem("adapter-silent", "no answer", "here", exit_code=ExitCode.TARGET)


class Listener:
    """Collects events."""

    def __init__(self) -> None:
        self.events: list[e.Event] = []

    def __call__(self, event: e.Event) -> None:
        self.events.append(event)

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    def told(self) -> list[e.Event]:
        """Everything but what only people on a terminal get."""
        return [event for event in self.events if not isinstance(event, e.Progress | e.Installing)]


@pytest.fixture
def listener() -> Listener:
    return Listener()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def never() -> bool:
    return False


# ---- the docket


def judged(seed: int, *violated: str, exercised: Sequence[str] = (), **more: Any) -> Judged:
    """A run that violated and exercised these obligations."""
    findings = {id_: Finding(1) for id_ in exercised}
    findings |= {id_: Finding(1, (Violation(OBLIGATIONS[id_].anomalies[0], "So it was.", (1,)),)) for id_ in violated}
    case = Case("process", {"target": "naive"}, {"name": f"seed/{seed}"}, seed) if violated else None
    return Judged(
        f"seed/{seed}", seed, findings, ("kill@a#1.applied",), (), history() if violated else None, case, **more
    )


@pytest.fixture
def docket(store: Store, listener: Listener) -> Docket:
    return Docket(NAIVE, origin_of(NAIVE, "process"), store, listener)


def test_a_claimed_profile_claims_its_obligations() -> None:
    """And one claimed by its own id stands beside it."""
    durable = {id_ for id_, one in OBLIGATIONS.items() if one.profile == "Durable"}
    assert claimed_ids(NAIVE) == durable
    assert claimed_ids(targets.parse("amnesiac")) == durable | {"SIG-1"}


def test_the_first_cases_of_a_kind_are_kept(docket: Docket, store: Store, listener: Listener) -> None:
    """A mutant fails in hundreds of seeds alike: after a few, runs are only counted, and told without a table."""
    for seed in range(CASES_MAX + 2):
        docket.add(judged(seed, "DUR-3"))
    assert len(docket.cases) == len(list(store.cases.glob("*.json"))) == CASES_MAX
    finished = listener.of(e.RunFinished)
    assert [one.case_id for one in finished] == [*docket.cases, None, None]
    found = listener.of(e.ViolationFound)
    assert [bool(one.table) for one in found] == [True] * CASES_MAX + [False] * 2
    assert [one.replay_seed for one in found] == [f"simkit run -t naive --seeds {n}" for n in range(CASES_MAX + 2)]
    assert docket.total["DUR-3"].violations == CASES_MAX + 2
    assert docket.runs == CASES_MAX + 2


def test_a_kind_not_seen_before_is_kept_beside_a_worn_one(docket: Docket) -> None:
    """What is told of a run depends on its rarest violation."""
    for seed in range(CASES_MAX):
        docket.add(judged(seed, "DUR-3"))
    docket.add(judged(77, "DUR-3", "DUR-1"))
    assert len(docket.cases) == CASES_MAX + 1


def test_a_run_fails_by_what_is_claimed(docket: Docket, listener: Listener) -> None:
    """A violation of anything else is told as observed; a run that shows one fails nothing and passed neither."""
    docket.add(judged(0, "EFF-1"))
    docket.add(judged(1, "DUR-1"))
    docket.add(judged(2, exercised=["DUR-1"]))
    assert [one.outcome for one in listener.of(e.RunFinished)] == ["not-claimed", "fail", "pass"]
    assert [one.claimed for one in listener.of(e.ViolationFound)] == [False, True]
    verdicts = docket.verdicts()
    assert (verdicts["EFF-1"].outcome, verdicts["EFF-1"].observed) == ("not-claimed", "violated")
    assert (verdicts["DUR-1"].outcome, verdicts["DUR-1"].exercised) == ("fail", 2)


def test_verdicts_need_exercise_and_proof(docket: Docket, listener: Listener) -> None:
    """Counted over all runs against the requirement set; a judge whose mutant survived proves nothing."""
    for seed in range(3):
        docket.add(judged(seed, exercised=["DUR-1", "DUR-3"]))
    verdicts = docket.verdicts({"DUR-3": ("recompute-accepted",)})
    assert verdicts["DUR-1"].outcome == "pass"
    assert (verdicts["DUR-2"].outcome, verdicts["DUR-2"].exercised) == ("inconclusive", 0)
    assert verdicts["DUR-3"].outcome == "inconclusive"
    assert "recompute-accepted" in verdicts["DUR-3"].reason
    assert [one.verdict for one in listener.of(e.VerdictReached)] == list(verdicts.values())
    assert list(verdicts) == list(OBLIGATIONS)


def test_verdicts_are_by_the_requirement_set_that_is_asked_for(docket: Docket) -> None:
    """Which may want an obligation exercised more often than another set does."""
    docket.add(judged(0, exercised=["DUR-1"]))
    one = Requirement("DUR-1", "MUST", "Durable", 1)
    assert docket.verdicts()["DUR-1"].outcome == "inconclusive"
    assert docket.verdicts(demands=RequirementSet("mild", (one,)))["DUR-1"].outcome == "pass"


def test_a_run_that_cannot_be_judged_is_nobodys_violation(docket: Docket, listener: Listener) -> None:
    """The first problem of a kind is told, everything claimed is in error, and other runs still count."""
    for seed in range(3):
        docket.add(Judged(f"seed/{seed}", seed, {}, problem=PROBLEM))
    docket.add(judged(3, exercised=["DUR-1"]))
    assert [one.outcome for one in listener.of(e.RunFinished)] == ["error"] * 3 + ["pass"]
    assert [one.problem.code for one in listener.of(e.Trouble)] == [PROBLEM.code]
    assert len(docket.troubles) == 3
    outcomes = {id_: one.outcome for id_, one in docket.verdicts().items()}
    assert {outcomes[id_] for id_ in docket.claimed} == {"error"}
    assert outcomes["EFF-1"] == "not-claimed"


def test_a_case_that_cannot_be_kept_hides_no_violation(docket: Docket, store: Store, listener: Listener) -> None:
    """It is told with its table and the line that finds it again, and the campaign goes on."""
    store.root.parent.mkdir(exist_ok=True)
    store.root.write_text("a file where the store should be", encoding="utf-8")
    docket.add(judged(5, "DUR-3"))
    (found,) = listener.of(e.ViolationFound)
    assert found.table
    assert (found.case_id, found.replay_case) == (None, "")
    assert found.replay_seed == "simkit run -t naive --seeds 5"
    assert len(listener.of(e.Trouble)) >= 1
    assert docket.cases == []


def test_a_configuration_is_named_only_when_it_is_not_taken_anyway() -> None:
    """A replay line is as short as it can be, and no shorter."""
    taken = targets.parse("langgraph")
    other = next(one for one in taken.manifest.configurations if one != taken.configuration)
    assert origin_of(taken, "process").configuration is None
    assert origin_of(targets.parse("langgraph", taken.configuration), "process").configuration is None
    assert origin_of(targets.parse("langgraph", other), "process").configuration == other


# ---- seeds


def run(
    store: Store,
    listener: Listener,
    which: Sequence[int],
    *,
    target: str = "reference",
    mutant: str | None = None,
    jobs: int | None = 1,
    stopping: Callable[[], bool] = never,
) -> e.Summary:
    return seeds.run(Order(target, mutant=mutant), which, jobs=jobs, store=store, emit=listener, stopping=stopping)


def _nowhere(event: e.Event) -> e.Event:
    """Without the folder, which is another for another store."""
    return attrs.evolve(event, kept="") if isinstance(event, e.ViolationFound) else event


@pytest.mark.slow
def test_what_is_told_does_not_depend_on_the_number_of_processes(tmp_path: Path) -> None:
    """The same events in the same order, and the same cases."""
    told, cases = [], []
    for jobs in (1, 2):
        store, listener = Store(tmp_path / f"store{jobs}"), Listener()
        summary = run(store, listener, range(10), mutant="no-key", jobs=jobs)
        assert summary.exit_code is ExitCode.VIOLATION
        told.append([_nowhere(one) for one in listener.told()])
        cases.append(sorted(path.name for path in store.cases.glob("*.json")))
    assert told[0] == told[1]
    assert cases[0] == cases[1]
    assert [one.seed for one in told[0] if isinstance(one, e.RunFinished)] == list(range(10))


@pytest.mark.slow
def test_a_stop_between_seeds_keeps_what_was_judged(store: Store, listener: Listener) -> None:
    """The running seed is finished, the rest is left, and the summary says so."""
    summary = run(store, listener, range(4, 50), mutant="no-key", stopping=lambda: len(listener.of(e.RunFinished)) >= 4)
    assert [one.seed for one in listener.of(e.RunFinished)] == [4, 5, 6, 7]
    assert len(listener.of(e.VerdictReached)) == len(OBLIGATIONS)
    assert summary.exit_code is ExitCode.VIOLATION
    assert list(store.cases.glob("*.json"))


def test_a_stop_with_nothing_violated_is_inconclusive(store: Store, listener: Listener) -> None:
    """Too little was seen to say that anything held."""
    summary = run(store, listener, range(50), stopping=lambda: len(listener.of(e.RunFinished)) >= 2)
    assert summary.exit_code is ExitCode.INCONCLUSIVE
    unsure = [one.verdict.obligation for one in listener.of(e.VerdictReached) if one.verdict.outcome == "inconclusive"]
    assert len(unsure) > 10
    assert summary.reason.startswith(
        f"stopped early; nothing violated; not put to the test often enough by 2 runs: {len(unsure)} obligations "
        "(--format json names each); "
    )


def test_no_seeds_are_nothing_selected(store: Store, listener: Listener) -> None:
    """Zero runs are no pass."""
    assert run(store, listener, []).exit_code is ExitCode.NOTHING_SELECTED


def test_a_seed_that_cannot_be_judged_is_counted_and_the_rest_goes_on(
    store: Store, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its scenario is named as ever; the campaign ends in the problem's exit code."""

    def failing(target: targets.Target, seed: int, **more: Any) -> Any:
        if seed == 1:
            raise SimkitError(PROBLEM)
        return simulate(target, seed, **more)

    monkeypatch.setattr(seedwork, "simulate", failing)
    summary = run(store, listener, range(3))
    assert [(one.scenario, one.outcome) for one in listener.of(e.RunFinished)] == [
        ("seed/0", "pass"),
        ("seed/1", "error"),
        ("seed/2", "pass"),
    ]
    assert summary.exit_code is ExitCode.TARGET
    assert summary.reason == "1 of 3 runs could not be judged: no answer"


@pytest.mark.parametrize(
    ("target", "mutant", "code"),
    [("reference", "no-keys", "mutant-unknown"), ("naive", "no-key", "mutant-target")],
)
def test_a_mutant_that_is_not_to_be_had_is_told_before_anything_runs(
    store: Store, listener: Listener, target: str, mutant: str, code: str
) -> None:
    """Mutants are of the reference runtime, and known by name."""
    with pytest.raises(SimkitError) as caught:
        run(store, listener, range(3), target=target, mutant=mutant)
    assert caught.value.problem.code == code
    assert listener.events == []


# ---- certification


def scenarios(*names: str) -> list[Scenario]:
    found = [catalogue.by_name(name) for name in names]
    return [one for one in found if one is not None]


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Put a few scenarios in place of a tier, and a proof that was made before."""

    def put(*names: str) -> None:
        monkeypatch.setattr(certification, "_scenarios", lambda *_: scenarios(*names))
        monkeypatch.setattr(proof, "prove", lambda *_, **__: Proof({"no-key": "seed 1", "never-reassign": None}))

    return put


def certified(
    target: str, store: Store, listener: Listener, stopping: Callable[[], bool] = never, **more: Any
) -> Certificate:
    return certify(target, config=None, tier="smoke", jobs=2, store=store, emit=listener, stopping=stopping, **more)


@pytest.mark.slow
def test_a_runtime_without_memory_is_found_out(few: Callable[..., None], store: Store, listener: Listener) -> None:
    """`naive` computes again what it had: its certificate says so, with the cases that show it."""
    few("chain/undisturbed", "chain/kill@buy#1.applied", "chain/kill@bill#1.replied")
    certificate = certified("naive", store, listener, requirements="2026.3")
    assert certificate.kit.requirements == "2026.3 (draft)"
    rows = {row.id: row for row in certificate.obligations}
    assert list(rows) == list(OBLIGATIONS)
    assert (rows["DUR-3"].verdict, rows["DUR-3"].observed) == ("fail", "violated")
    assert rows["EFF-1"].verdict == "not-claimed"
    assert [(one.name, one.granted) for one in certificate.profiles] == [("Durable", False)]
    assert "DUR-3 fail" in certificate.profiles[0].reason
    assert (certificate.runs, certificate.complete) == (3, True)
    assert certificate.cases
    assert [store.load_case(one).target["name"] for one in certificate.cases] == ["naive"] * len(certificate.cases)
    outcomes = {one.scenario: one.outcome for one in listener.of(e.RunFinished)}
    assert outcomes == {
        "chain/undisturbed": "pass",
        "chain/kill@buy#1.applied": "fail",
        "chain/kill@bill#1.replied": "fail",
    }


@pytest.mark.slow
def test_a_runtime_that_acknowledges_first_is_found_out(
    few: Callable[..., None], store: Store, listener: Listener
) -> None:
    """`amnesiac` loses the task it has just acknowledged, and nothing else goes wrong in between."""
    few("chain/undisturbed", "chain/kill@ack:start")
    certificate = certified("amnesiac", store, listener)
    rows = {row.id: row for row in certificate.obligations}
    assert (rows["DUR-1"].verdict, rows["DUR-1"].anomalies) == ("fail", ("amnesia",))
    assert [one.scenario for one in listener.of(e.RunFinished) if one.outcome == "fail"] == ["chain/kill@ack:start"]


@pytest.mark.slow
def test_the_reference_runtime_is_blamed_for_nothing(
    few: Callable[..., None], store: Store, listener: Listener
) -> None:
    """As real processes: server and worker are killed, and every promise holds, if not often enough to be certified."""
    few(
        "chain/undisturbed", "chain/kill@buy#1.applied", "chain/kill@book#1.applied(engine)", "chain/drop@buy#1.applied"
    )
    certificate = certified("reference", store, listener)
    assert {row.verdict for row in certificate.obligations} <= {"pass", "inconclusive"}
    assert {row.observed for row in certificate.obligations} <= {"held", "nothing"}
    assert certificate.cases == ()
    assert not any(profile.granted for profile in certificate.profiles)
    fired = [label for one in listener.of(e.RunFinished) for label in one.fired]
    assert sorted(fired) == ["drop@buy#1.applied", "kill@book#1.applied(engine)", "kill@buy#1.applied"]


@pytest.mark.slow
def test_a_certificate_says_what_was_certified_and_how(
    few: Callable[..., None], store: Store, listener: Listener
) -> None:
    """Subject, kit, world, claims with their sources, mutants, settings; and it comes back whole from its file."""
    few("chain/undisturbed")
    certificate = certified("naive", store, listener)
    subject = certificate.subject
    assert (subject.name, subject.version, subject.configuration) == ("naive", "1", "default")
    assert (certificate.world, certificate.durability, certificate.tier) == ("process", "kill", "smoke")
    assert [(one.id, one.source) for one in certificate.claims] == [
        ("Durable", "its own imagination: a control that must fail")
    ]
    assert (certificate.mutants.caught, certificate.mutants.total) == (1, 2)
    assert certificate.environment.settings["settle_ms"] == NAIVE.manifest.limits.settle_ms
    assert {row.id: row.minimum for row in certificate.obligations}["DUR-1"] == 3
    assert load(store.save_certificate(certificate)) == certificate
    (began,) = listener.of(e.CampaignBegan)
    assert (began.command, began.world, began.tier, began.total) == ("certify", "process", "smoke", 1)


@pytest.mark.slow
def test_the_digest_of_a_subject_covers_its_adapter(
    few: Callable[..., None], store: Store, listener: Listener, tmp_path: Path
) -> None:
    """Another byte in the adapter is another subject."""
    few("chain/undisturbed")
    copy = tmp_path / "naive"
    shutil.copytree(NAIVE.folder, copy, ignore=shutil.ignore_patterns("__pycache__"))
    first = certified(str(copy), store, listener).subject.digest
    assert certified(str(copy), store, listener).subject.digest == first
    with (copy / "adapter.py").open("a", encoding="utf-8") as file:
        file.write("\n# changed\n")
    assert certified(str(copy), store, listener).subject.digest != first


@pytest.mark.slow
def test_a_stopped_certification_is_not_complete(few: Callable[..., None], store: Store, listener: Listener) -> None:
    """It says what was judged until then, and that this is not all."""
    few("chain/undisturbed", "chain/kill@buy#1.applied", "chain/kill@bill#1.replied")
    certificate = certified("naive", store, listener, stopping=lambda: len(listener.of(e.RunFinished)) >= 1)
    assert (certificate.runs, certificate.complete) == (1, False)


@pytest.mark.slow
def test_an_adapter_that_cannot_be_asked_ends_the_campaign_with_its_first_run(
    few: Callable[..., None], store: Store, listener: Listener, tmp_path: Path
) -> None:
    """Its problem is raised, and no other run is begun."""
    few("chain/undisturbed", "chain/kill@buy#1.applied", "chain/kill@bill#1.replied")
    shutil.copy(NAIVE.folder / "adapter.toml", tmp_path)
    (tmp_path / "adapter.py").write_text("print('hello, I am no protocol')\ninput()\n", encoding="utf-8")
    with pytest.raises(SimkitError) as caught:
        certified(str(tmp_path / "adapter.toml"), store, listener)
    assert caught.value.problem.code == "adapter-garbage"
    assert [one.outcome for one in listener.of(e.RunFinished)] == ["error"]


def test_tiers_fit_the_target() -> None:
    """Pauses only where two workers may share a store, an engine killed only where there is one, drawn runs only in full."""
    for name, shares, engine in (("reference", True, True), ("naive", False, False)):
        target = targets.parse(name)
        core, full = (certification._scenarios(target, tier) for tier in ("core", "full"))
        actions = {one.action for scenario in full for one in scenario.interruptions}
        units = {one.site.unit for scenario in full for one in scenario.interruptions}
        assert ("pause" in actions) is shares
        assert ("engine" in units) is engine
        assert not {"power"} & actions
        names = {one.name for one in full}
        assert {one.name for one in core} < names
        assert {f"seed/{seed}" for seed in catalogue.FULL_SEEDS} <= names
        assert len(names) == len(full)


def test_every_scenario_of_the_full_tier_is_found_by_its_name() -> None:
    """That is what its replay line quotes."""
    target = targets.parse("naive")
    for scenario in certification._scenarios(target, "full"):
        assert real.scenario_named(target, scenario.name) == scenario
    assert real.scenario_named(target, "seed/x") is None
    assert real.scenario_named(target, "nowhere/undisturbed") is None


def test_what_never_struck_is_told(docket: Docket, listener: Listener) -> None:
    """Counted by what was asked for, the most frequent first; where everything struck nothing is said."""
    docket.tell_unfired()
    assert listener.of(e.Noted) == []
    for label in ("kill@end", "kill@*#1.applied", "kill@*#1.applied", "drop@a#1.applied", "reset@a#1.applied"):
        docket.add(attrs.evolve(judged(0, exercised=["DUR-1"]), unfired=(label,)))
    docket.tell_unfired()
    (noted,) = listener.of(e.Noted)
    assert noted.text == (
        "5 interruptions never struck, for the run never came there: "
        "kill@*#1.applied × 2, kill@end, drop@a#1.applied, …"
    )


@pytest.mark.parametrize("command", ["certify", "run"])
def test_a_release_that_does_not_exist_begins_no_campaign(
    command: str, store: Store, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is announced before it is known that there is something to run."""

    def fails(*_: object) -> None:
        raise SimkitError(PROBLEM)

    monkeypatch.setattr(real, "environment_of", fails)
    common: dict[str, Any] = {"config": None, "jobs": 1, "store": store, "emit": listener, "stopping": never}
    begins = {
        "run": lambda: run(store, listener, range(3), target="dbos==9.9.9"),
        "certify": lambda: certify("dbos==9.9.9", tier="smoke", **common),
    }
    with pytest.raises(SimkitError):
        begins[command]()
    assert listener.of(e.CampaignBegan) == []
