"""The reference adapter in simulation: the same run every time, cases that come back, power that is really lost."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from conformance import simulate as simulation
from conformance import targets
from conformance.campaign import seedwork
from conformance.campaign.judging import judge_simulated
from conformance.campaign.replaying import replay
from conformance.mutants import applied
from conformance.order import Order
from conformance.simulate import Simulated, scenario_from_json, scenario_to_json, simulate
from conformance.store import Store
from scenarios import catalogue
from scenarios.history import Closed, Died
from scenarios.interruption import Interruption, Scenario, Site
from scenarios.plan import Call, Plan, Seq
from scenarios.rules import judge_all
from simkit.case import Case
from simkit.crashes import crash_points
from simkit.errors import ExitCode, SimkitError
from simkit.world import Limits, run
from tests.conformance.seen_rig import events

REFERENCE = targets.parse("reference")
CHAIN = catalogue.STORIES["chain"].plan
CLEAN_SEEDS = range(36)


def struck(*interruptions: Interruption, seed: int = 0) -> Simulated:
    return simulate(REFERENCE, seed, scenario=Scenario("chain/test", CHAIN, interruptions))


def told(simulated: Simulated, kind: str) -> list[str]:
    return [event.detail for event in simulated.outcome.trace.events() if event.kind == kind]


def violations(simulated: Simulated) -> dict[str, object]:
    findings = judge_all(simulated.observation.history)
    return {id_: finding.violations for id_, finding in findings.items() if finding.violations}


# ---- the same run every time


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 7, 11])
def test_a_seed_is_one_run(seed: int) -> None:
    """Twice by the fast kernel and once by its fallback: the same steps, and the same history to the nanosecond."""
    first, again = simulate(REFERENCE, seed), simulate(REFERENCE, seed)
    other = simulate(REFERENCE, seed, kernel="fallback")
    for one in (again, other):
        assert one.outcome.digest == first.outcome.digest
        assert one.observation == first.observation
    assert (first.outcome.kernel, other.outcome.kernel) == ("fast", "fallback")


def test_two_seeds_are_two_runs() -> None:
    """Of one scenario too: the schedule and the network are drawn anew."""
    digests = {struck(seed=seed).outcome.digest for seed in range(3)}
    assert len(digests) == 3


def test_a_mutant_lasts_as_long_as_its_run() -> None:
    """The run after it is the one before it."""
    before = struck().outcome.digest
    simulate(REFERENCE, 0, scenario=Scenario("chain/test", CHAIN), mutant="no-key")
    assert struck().outcome.digest == before


# ---- settings that are drawn

DELAY = "REFERENCE_COMMIT_DELAY_MS"


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """What each engine from now on is told to put its commits off by."""
    module, told = simulation.load_module(REFERENCE.folder / "adapter.py"), list[str | None]()
    run_engine = module.run_engine

    async def recorded(env: Mapping[str, str]) -> None:
        told.append(env.get(DELAY))
        await run_engine(env)

    monkeypatch.setattr(module, "run_engine", recorded)
    return told


def test_a_setting_is_drawn_for_a_whole_run(given: list[str | None]) -> None:
    """Every engine of a run has the same, runs have several; where the configuration says it, or none are drawn, it says it."""
    scenario = catalogue.by_name("chain/kill@buy#1.applied(engine)")
    runs = []
    for seed in range(8):
        given.clear()
        simulate(REFERENCE, seed, scenario=scenario, swarm=True)
        runs.append(tuple(given))
    assert all(len(told) > 1 and len(set(told)) == 1 for told in runs)
    assert {told[0] for told in runs} > {"0"}
    assert {told[0] for told in runs} <= set(REFERENCE.manifest.swarm[DELAY])
    given.clear()
    simulate(REFERENCE, 0, scenario=scenario)
    assert set(given) == {None}
    given.clear()
    for seed in range(8):
        simulate(targets.parse("reference:delayed"), seed, scenario=scenario, swarm=True)
    assert set(given) == {"75"}


def test_what_is_drawn_of_settings_comes_again_with_its_case(given: list[str | None], tmp_path: Path) -> None:
    """It is one of the choices by which a run departs from the usual, and the first value is none."""
    scenario = catalogue.by_name("chain/kill@buy#1.applied")
    drawn = {}
    for seed in range(8):
        given.clear()
        simulated = simulate(REFERENCE, seed, scenario=scenario, mutant="new-key-on-retry", swarm=True)
        judged = judge_simulated(REFERENCE, seed, simulated, "new-key-on-retry")
        if judged.case is not None:
            drawn[given[0]] = judged.case
    assert len(drawn) > 1
    for told, case in drawn.items():
        given.clear()
        assert REFERENCE.manifest.swarm[DELAY][case.departures.get(("swarm", DELAY, 0), 0)] == told
        again = replay(case, store=Store(tmp_path / "store"), emit=lambda _: None, stopping=lambda: False)
        assert (again.answer, again.digest, set(given)) == ("reproduced", case.digest, {told})


# ---- cases


@pytest.fixture(scope="module")
def found() -> tuple[Simulated, Case]:
    """A run in which a mutant is caught, and its case."""
    scenario = catalogue.by_name("chain/kill@buy#1.applied")
    assert scenario is not None
    simulated = simulate(REFERENCE, 3, scenario=scenario, mutant="new-key-on-retry")
    judged = judge_simulated(REFERENCE, 3, simulated, "new-key-on-retry")
    assert judged.case is not None
    return simulated, judged.case


def test_a_saved_case_comes_back_with_the_same_digest(
    found: tuple[Simulated, Case], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the file alone, and also when the kit has changed what a seed draws."""
    simulated, case = found
    loaded = Case.load(case.save(tmp_path))
    assert loaded == case

    def refuse(*_: object, **__: object) -> Scenario:
        raise AssertionError("a replay draws no scenario")

    monkeypatch.setattr(catalogue, "drawn", refuse)
    program = simulation.program(REFERENCE, scenario_from_json(loaded.scenario))
    with applied("new-key-on-retry"):
        again = run(program, tape=loaded.tape(), strategy=loaded.strategy())
    assert again.digest == case.digest == simulated.outcome.digest
    assert again.value == simulated.observation
    answer = replay(loaded, store=Store(tmp_path / "store"), emit=lambda _: None, stopping=lambda: False)
    assert (answer.answer, answer.digest) == ("reproduced", case.digest)
    assert case.expect is not None
    assert answer.expected == f"{case.expect['obligation']} {case.expect['anomaly']}"


def test_a_case_promises_what_its_run_showed(found: tuple[Simulated, Case]) -> None:
    """The first violation by name, and every other beside it."""
    simulated, case = found
    assert case.expect is not None
    shown = violations(simulated)
    assert case.expect["obligation"] == next(iter(shown))
    assert {kind.split(" ")[0] for kind in case.expect["all"]} == set(shown)
    assert "EFF-2" in shown


def test_a_run_without_a_violation_has_no_case() -> None:
    """Nor does it drag its history along."""
    judged = judge_simulated(REFERENCE, 0, struck(), None)
    assert (judged.case, judged.history, judged.violated) == (None, None, False)


@pytest.mark.parametrize("story", catalogue.STORIES)
def test_scenarios_are_kept_as_json(story: str) -> None:
    """Every scenario of the catalogue comes back as it was."""
    for scenario in catalogue.scenarios_of(story, workers=True, units=("engine", "worker")):
        assert scenario_from_json(scenario_to_json(scenario)) == scenario


@pytest.mark.parametrize(
    ("change", "field"),
    [({"plan": {"version": 9}}, "version"), ({"interruptions": [{"action": "kill"}]}, "site"), ({"name": None}, "")],
)
def test_a_malformed_scenario_is_told(change: dict, field: str) -> None:
    """By what is off with it, as a mistake in the case and not as a bug."""
    data = {**scenario_to_json(Scenario("x", CHAIN)), **change}
    if change.get("name", "") is None:
        del data["name"]
    with pytest.raises(SimkitError) as caught:
        scenario_from_json(data)
    assert caught.value.problem.code == "scenario-malformed"
    assert field in caught.value.problem.what


# ---- power and boundaries


def test_power_loss_strikes_the_disk() -> None:
    """The store server loses its power right after the acknowledgement: its disk says so, and the task survives."""
    seen = struck(Interruption("power", Site("ack", verb="start", unit="engine")))
    (death,) = events(seen.observation, Died)
    assert (death.unit, death.cause) == ("engine", "power")
    assert [line.split()[0] for line in told(seen, "power-loss")] == ["engine"]
    assert len(told(seen, "lost")) == 1
    assert violations(seen) == {}
    assert events(seen.observation, Closed)[0].reason == "settled"


def test_a_boundary_strikes_at_its_number() -> None:
    """Right before that storage operation, and nothing of the store is written until the server is back."""
    probe = struck()
    number = probe.outcome.boundaries["engine"] // 2
    crash = Interruption("power", Site("boundary", nth=number, unit="engine"))
    seen = struck(crash)
    assert seen.observation.fired == (crash.label,)
    entries = [
        (event.kind, event.detail) for event in seen.outcome.trace.events() if event.kind in {"boundary", "power-loss"}
    ]
    loss = next(index for index, (kind, _) in enumerate(entries) if kind == "power-loss")
    assert entries[loss - 1][1].split()[:2] == ["engine", str(number)]
    assert events(seen.observation, Died)[0].unit == "engine"
    assert violations(seen) == {}


@pytest.mark.slow
def test_every_boundary_of_a_run_is_survived(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server's power fails before each of its storage operations, in a run each; every one fires and none is blamed."""
    small = Scenario("small", Plan(Seq("main", (Call("a", "ledger"),))))
    for module in (seedwork, simulation):
        monkeypatch.setattr(module, "draw", lambda *_: small)
    points = crash_points(simulate(REFERENCE, 0).outcome)
    assert len(points) > 30
    order = Order("reference", boundaries=True, swarm=False)
    probe, *crashed = seedwork.judged_seed(order, 0)
    assert probe.fired == ()
    assert [one.fired for one in crashed] == [(f"power@{point}",) for point in points]
    assert [one for one in crashed if one.violated or one.problem is not None] == []


@pytest.mark.slow
def test_the_judges_blame_nothing_in_drawn_runs() -> None:
    """The runtime keeps its promises in every one of a few dozen seeds, most of which are interrupted."""
    runs = {seed: simulate(REFERENCE, seed) for seed in CLEAN_SEEDS}
    assert {seed: blamed for seed, run in runs.items() if (blamed := violations(run))} == {}
    assert all(events(run.observation, Closed)[0].reason == "settled" for run in runs.values())
    assert sum(bool(run.observation.fired) for run in runs.values()) > len(runs) // 2


# ---- what cannot be judged


def test_a_run_that_meets_its_bound_is_inconclusive(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told as a limit that was met, not as a fault of anybody."""
    monkeypatch.setattr(simulation, "LIMITS", Limits(steps=100))
    with pytest.raises(SimkitError) as caught:
        struck()
    assert (caught.value.problem.code, caught.value.problem.exit_code) == ("simulation-bound", ExitCode.INCONCLUSIVE)


ADAPTER = """
import trio
async def run_engine(env):
    await trio.sleep_forever()
async def run_worker(env, control):
    {body}
"""
STRAY = """import simkit_adapter
    class Verbs:
        def start(self, run, plan, key): ...
        def status(self, run): return "failed"
    host, _, port = env["SIMKIT_SERVICES"].removeprefix("lines://").partition(":")
    stream = await trio.open_tcp_stream(host, int(port))
    await stream.send_all(b"nonsense\\n")
    await stream.receive_some()
    async def receive_some(): return bytes(await control.receive_some())
    await simkit_adapter.serve_streams(Verbs(), receive_some, control.send_all)"""


@pytest.fixture
def adapter(tmp_path: Path, request: pytest.FixtureRequest) -> targets.Target:
    """An adapter whose worker does what the test says."""
    shutil.copy(REFERENCE.folder / "adapter.toml", tmp_path)
    (tmp_path / "adapter.py").write_text(ADAPTER.format(body=request.param), encoding="utf-8")
    return targets.parse(str(tmp_path / "adapter.toml"))


@pytest.mark.parametrize(
    ("adapter", "code", "told"),
    [
        ("return", "worker-keeps-dying", "4 times in one run (exited × 4)"),
        ("raise OSError('no memory')", "worker-keeps-dying", "4 times in one run (failed × 4)"),
        ("await control.send_all(b'garbage\\n'); await trio.sleep_forever()", "adapter-garbage", "garbage"),
        ("await trio.sleep_forever()", "adapter-silent", "did not answer"),
    ],
    indirect=["adapter"],
)
def test_a_broken_adapter_is_one_problem(adapter: targets.Target, code: str, told: str) -> None:
    """Whatever nursery it came through, and never a bug of the kit."""
    with pytest.raises(SimkitError) as caught:
        simulate(adapter, 0, scenario=Scenario("chain/test", CHAIN))
    assert (caught.value.problem.code, caught.value.problem.exit_code) == (code, ExitCode.TARGET)
    assert told in caught.value.problem.what


@pytest.mark.parametrize("adapter", [STRAY], indirect=True)
def test_what_the_services_cannot_read_is_the_adapters_problem(adapter: targets.Target) -> None:
    """A run in which the adapter spoke nonsense to a service is not judged, however it ended."""
    with pytest.raises(SimkitError) as caught:
        simulate(adapter, 0, scenario=Scenario("chain/test", CHAIN))
    assert "nonsense" in caught.value.problem.what
    assert caught.value.problem.exit_code is ExitCode.TARGET


def test_an_adapter_that_cannot_be_loaded_is_told(tmp_path: Path) -> None:
    """An import that fails is the adapter's fault."""
    (tmp_path / "adapter.toml").write_text(
        (REFERENCE.folder / "adapter.toml").read_text(encoding="utf-8"), encoding="utf-8"
    )
    (tmp_path / "adapter.py").write_text(
        "import nowhere_to_be_found\nasync def run_worker(env, control): ...\n", encoding="utf-8"
    )
    with pytest.raises(SimkitError) as caught:
        simulate(targets.parse(str(tmp_path)), 0)
    problem = caught.value.problem
    assert (problem.code, problem.exit_code) == ("adapter-cannot-load", ExitCode.TARGET)
    assert "nowhere_to_be_found" in problem.what


@pytest.mark.slow
@pytest.mark.parametrize("stride", [4, pytest.param(1, marks=pytest.mark.nightly)])
def test_every_interruption_of_the_core_tier_strikes(stride: int) -> None:
    """On the reference runtime; but after the last call there is no further effect at which a second crash could. By day every
    fourth of them.
    """
    manifest = REFERENCE.manifest
    missed: dict[str, tuple[str, ...]] = {}
    scenarios = catalogue.tier("core", manifest.operations.supported, workers=True, units=tuple(manifest.units))[
        ::stride
    ]
    for scenario in scenarios:
        unfired = simulate(REFERENCE, 0, scenario=scenario).observation.unfired
        if unfired:
            missed[scenario.name] = unfired
    supported = set(manifest.operations.supported)
    stories = [one for one in catalogue.STORIES.values() if one.generic and one.plan.needs() <= supported]
    last = {story.name: story.plan.calls()[-1].id for story in stories}
    beyond = [f"{name}/kill@{call}#1.applied+kill@*#1.applied" for name, call in last.items()]
    run = {scenario.name for scenario in scenarios}
    assert missed == {name: ("kill@*#1.applied",) for name in beyond if name in run}
