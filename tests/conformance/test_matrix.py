"""The matrix: which mutant is caught by what, what counts as caught, many at once, and what is left when it is stopped."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import attrs
import pytest

from conformance import events as e
from conformance import targets
from conformance.campaign import matrix
from conformance.campaign.matrix import Runs, examine, examine_all, examine_one, mutants, summarise
from conformance.mutants import all_mutants, chosen, find
from conformance.mutants.outline import outlines
from scenarios.history import Declared, History
from scenarios.interruption import Scenario
from scenarios.obligations import OBLIGATIONS
from scenarios.plan import Call, Plan, Seq
from scenarios.verdict import Finding, Violation
from simkit.errors import ExitCode, Problem, SimkitError

EMPTY = History("run-1", Plan(Seq("main", (Call("a", "ledger"),))), Declared(), ())
GUILTY = Finding(1, (Violation("amnesia", "guilty", ()),))


def never() -> bool:
    return False


@attrs.frozen
class Ran:
    """What a simulated run gave, as far as the matrix looks at it."""

    observation: Any


@attrs.frozen
class Seen:
    history: History


@pytest.fixture
def runs_made(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str | None, str, int]]:
    """Runs without a runtime: a mutant's history has an event that the unbroken one has not; lists the runs made."""
    made: list[tuple[str | None, str, int]] = []
    broken = attrs.evolve(EMPTY, run="broken")

    def simulate(_target: object, seed: int, *, scenario: Scenario | None, mutant: str | None, swarm: bool) -> Ran:
        made.append((mutant, scenario.name if scenario else "", seed))
        return Ran(Seen(EMPTY if mutant is None else broken))

    monkeypatch.setattr(matrix, "simulate", simulate)
    monkeypatch.setattr(matrix, "_unbroken", functools.cache(matrix._unbroken.__wrapped__))
    return made


@pytest.fixture
def blaming(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Judges that blame what they are told to: the broken run, or every run."""

    def put(*, broken: Sequence[str] = (), everything: Sequence[str] = ()) -> None:
        def judge_of(id_: str) -> Callable[[History], Finding]:
            def judge(history: History) -> Finding:
                return GUILTY if id_ in everything or (id_ in broken and history.run == "broken") else Finding(1)

            return judge

        judges = {id_: attrs.evolve(one, judge=judge_of(id_)) for id_, one in OBLIGATIONS.items()}
        monkeypatch.setattr(matrix, "OBLIGATIONS", judges)

    return put


def test_the_first_run_that_its_own_obligation_blames_is_told(runs_made: list[Any], blaming: Any) -> None:
    """With the number of runs it took, and the others that blame it too."""
    blaming(broken=["EFF-1", "DUR-5"])
    found = examine("no-key", Runs(seeds_max=3), never)
    assert found is not None
    assert (found.outcome, found.scenario, found.seed, found.runs) == ("caught", find("no-key").shown_by, 0, 1)
    assert found.others == ("DUR-5",)


def test_to_be_caught_by_another_is_not_to_be_caught(runs_made: list[Any], blaming: Any) -> None:
    """It is told which others blame it, after everything was tried."""
    blaming(broken=["EFF-2", "DUR-5"])
    found = examine("no-key", Runs(seeds_max=3), never)
    assert found is not None
    assert (found.outcome, found.others, found.scenario) == ("caught by another", ("DUR-5", "EFF-2"), "")
    assert found.runs == matrix.SCHEDULES_MAX + 3


def test_a_judge_that_blames_the_unbroken_runtime_catches_nothing(runs_made: list[Any], blaming: Any) -> None:
    """To call everybody guilty is no proof."""
    blaming(everything=["EFF-1"])
    found = examine("no-key", Runs(seeds_max=1), never)
    assert found is not None
    assert (found.outcome, found.others) == ("survived", ())


def test_the_unbroken_run_is_made_once_for_all_mutants_of_a_scenario(runs_made: list[Any], blaming: Any) -> None:
    """Two mutants shown by one scenario share it."""
    blaming(broken=["EFF-1", "EFF-2"])
    assert find("no-key").shown_by == find("new-key-on-retry").shown_by
    for name in ("no-key", "new-key-on-retry"):
        examine(name, Runs(seeds_max=0), never)
    assert [mutant for mutant, _, _ in runs_made] == ["no-key", None, "new-key-on-retry"]


def test_what_cannot_be_judged_catches_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that ends in a problem of the kit says nothing of a mutant."""

    def refuse(*_: object, **__: object) -> None:
        raise SimkitError(Problem("simulation-bound", "met", "here"))

    monkeypatch.setattr(matrix, "simulate", refuse)
    found = examine("no-key", Runs(seeds_max=3), never)
    assert found is not None
    assert (found.outcome, found.runs, found.unjudged) == ("survived", 13, 13)


def test_an_unbroken_run_that_cannot_be_judged_clears_nobody(
    runs_made: list[Any], blaming: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody knows whether the judge would have blamed it too."""
    blaming(broken=["EFF-1"])
    monkeypatch.setattr(matrix, "_unbroken", lambda *_: None)
    found = examine("no-key", Runs(seeds_max=0), never)
    assert found is not None
    assert found.outcome == "survived"


def test_a_mutant_examined_halfway_is_not_judged(runs_made: list[Any], blaming: Any) -> None:
    """Asked to stop, it says nothing rather than that the mutant survived."""
    blaming()
    stops = iter([False, False, True])
    assert examine("no-key", Runs(), lambda: next(stops)) is None
    assert len(runs_made) == 2


def test_drawn_seeds_are_tried_for_who_names_no_scenario(runs_made: list[Any], blaming: Any) -> None:
    """Before its own judge only."""
    blaming(broken=["EFF-1", "EFF-2"])
    found = examine_one(attrs.evolve(find("no-key"), shown_by=""), Runs(seeds_max=2), never)
    assert found is not None
    assert (found.scenario, found.seed, found.others) == ("seed/0", 0, ())


# ---- the command


def test_words_choose_mutants_by_name_obligation_or_group() -> None:
    """In the catalogue's order, each once; nothing chooses all of them."""
    assert chosen(()) == tuple(all_mutants())
    assert chosen(["sig-2", "no-key", "EFF-1"]) == ("no-key", "signal-ids-ignored")
    assert set(chosen(["SCH"])) == {name for name, one in all_mutants().items() if one.obligation.startswith("SCH-")}
    with pytest.raises(SimkitError, match="mutant-unknown"):
        chosen(["no-keys"])


def test_the_command_tells_each_mutant_and_how_far_it_is(runs_made: list[Any], blaming: Any) -> None:
    """A survivor is exit 1, by name."""
    blaming(broken=["EFF-1"])
    told: list[e.Event] = []
    options: Any = {"config": None, "seeds": 0, "jobs": 1, "emit": told.append, "stopping": never}
    summary = mutants("reference", only=["no-key", "new-key-on-retry"], **options)
    assert [one.outcome for one in told if isinstance(one, e.MutantJudged)] == ["caught", "caught by another"]
    assert [(one.done, one.total) for one in told if isinstance(one, e.Progress)] == [(1, 2), (2, 2)]
    assert summary.exit_code is ExitCode.VIOLATION
    assert summary.reason == "1 of 2 mutants caught by their own obligations; not caught: new-key-on-retry"


def test_a_promise_without_mutants_selects_nothing(runs_made: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Which is no success."""
    monkeypatch.setattr(matrix, "chosen", lambda _only: ())
    options: Any = {"config": None, "seeds": 0, "jobs": 1, "emit": lambda _: None, "stopping": never}
    assert mutants("reference", only=["VER-5"], **options).exit_code is ExitCode.NOTHING_SELECTED


def test_only_the_reference_runtime_has_mutants() -> None:
    """Another target is wrong usage."""
    with pytest.raises(SimkitError, match="mutant-target"):
        matrix.check_target(targets.parse("naive"))


def test_a_hint_names_no_option_that_the_command_has_not() -> None:
    """`mutants` takes no --mutant to leave away."""
    options: Any = {"config": None, "only": (), "seeds": 0, "jobs": 1, "emit": lambda _: None, "stopping": never}
    with pytest.raises(SimkitError) as caught:
        mutants("naive", **options)
    assert "--mutant" not in str(caught.value)


def test_stopped_in_the_middle_what_was_judged_is_kept() -> None:
    """It is no success: the rest is not known."""
    one = e.MutantJudged("no-key", "EFF-1", "caught")
    summary = summarise([one], 3)
    assert summary.exit_code is ExitCode.INCONCLUSIVE
    assert summary.reason == "1 of 3 mutants caught by their own obligations; 2 not judged"


@pytest.mark.slow
def test_several_processes_say_what_one_says() -> None:
    """In the order of the names, whoever is done first."""
    names = ("ack-before-commit", "no-key", "show-before-commit")
    alone, shared = (list(examine_all(names, Runs(seeds_max=0), jobs, never)) for jobs in (1, 2))
    assert [one.mutant for one in alone] == list(names)
    assert [attrs.evolve(one, seconds=0) for one in alone] == [attrs.evolve(one, seconds=0) for one in shared]


def test_processes_that_are_asked_to_stop_judge_nothing_more() -> None:
    """What they had in hand comes back as not judged."""
    assert list(examine_all(("no-key", "new-key-on-retry"), Runs(), 2, lambda: True)) == []


def test_outlines_are_what_the_mutants_register() -> None:
    """Read from the source, they are the same in the same order."""
    registered = [(one.name, one.obligation, one.change, one.shown_by, one.config) for one in all_mutants().values()]
    assert [attrs.astuple(one) for one in outlines().values()] == registered


@pytest.mark.parametrize(
    ("ask", "where", "expected", "hint"),
    [
        (lambda: find("no-kee"), "--mutant no-kee", "mutants", "did you mean no-key"),
        (lambda: find("nope"), "--mutant nope", "mutants", "`simkit list mutants`"),
        (lambda: find("zzqqxx"), "--mutant zzqqxx", "mutants", "`simkit list mutants`"),
        (
            lambda: chosen(["NOPE"]),
            "--only NOPE",
            "an obligation (RTY-1) or a group of them (EFF)",
            "`simkit list mutants`",
        ),
        (lambda: chosen(["RTY-01"]), "--only RTY-01", "an obligation (RTY-1)", "did you mean RTY-1"),
    ],
)
def test_a_mutant_that_is_none_is_told_in_few_words(
    ask: Callable[[], object], where: str, expected: str, hint: str
) -> None:
    """By the option that named it, with the nearest; never with hundreds of names."""
    with pytest.raises(SimkitError) as caught:
        ask()
    problem = caught.value.problem
    assert (problem.code, problem.where) == ("mutant-unknown", where)
    assert expected in problem.expected
    assert hint in problem.hint
    assert max(len(problem.expected), len(problem.hint)) < 160
