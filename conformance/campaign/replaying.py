"""`replay`: a saved case, or a named scenario of a target, once more.

A simulated case repeats its departures and its schedule and must give the same trace digest, see `resimulating`. A case of
real processes repeats plan and interruptions a few times, compares obligation and anomaly, and says how often they showed.
That nothing is violated is said only where a run was judged, has settled, and was struck by all that was to strike it.
"""

from __future__ import annotations

import difflib
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from conformance import invocation, targets
from conformance.campaign import real
from conformance.campaign.docket import Docket, origin_of
from conformance.campaign.kinds import answered_for, kinds
from conformance.campaign.mutant_replay import replay_mutant
from conformance.campaign.resimulating import resimulate
from conformance.campaign.vitality import doubt
from conformance.events import CampaignBegan, Replayed
from conformance.look import NOTHING
from conformance.manifest import FILE
from conformance.simulate import scenario_from_json
from scenarios import catalogue
from simkit.errors import ExitCode, Problem, SimkitError

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.campaign.judged import Judged
    from conformance.events import Emit
    from conformance.look import Look
    from conformance.store import Store
    from conformance.targets import Target
    from scenarios.interruption import Scenario
    from simkit.case import Case

#: How often a run on real processes is repeated.
TIMES = 3


def replay(
    case: Case,
    *,
    target: str | None = None,
    config: str | None = None,
    show: bool = False,
    look: Look = NOTHING,
    store: Store,
    emit: Emit,
    stopping: Callable[[], bool],
) -> Replayed:
    """Do a case again, of the target it names unless another is given. Raises `SimkitError` when that is not to be had."""
    if case.world == "process" and _mutant_of(case) is not None:
        raise _malformed(
            case,
            f"it has the mutant {_mutant_of(case)} and is of real processes",
            "world",
            "mutants run in simulation only",
        )
    if case.world == "process" and look.asks:
        raise _real_has_no_events(look.asks, f"case {case.id}")
    found = _target_of(case, target, config)
    name, swarm = str(case.scenario.get("name", "")), bool(case.options.get("swarm", case.world == "process"))
    origin = origin_of(found, case.world, name, mutant=_mutant_of(case), swarm=swarm)
    docket = Docket(found, origin, store, emit, show=show, again=case)
    if case.world == "process":
        answer = _replay_real(found, scenario_from_json(case.scenario), case, docket, emit, stopping)
    else:
        answer = resimulate(case, found, _wanted(case), _mutant_of(case), docket, emit, look)
    return attrs.evolve(answer, altered=case.altered)


def replay_scenario(
    target: str,
    *,
    config: str | None,
    mutant: str | None,
    scenario: str,
    show: bool = False,
    look: Look = NOTHING,
    store: Store,
    emit: Emit,
    stopping: Callable[[], bool],
) -> Replayed:
    """Do a named scenario again: on real processes, or with a mutant in simulation. Reproduced when anything claimed is
    violated.
    """
    if look.asks:
        raise _real_has_no_events(look.asks, f"--scenario {scenario}")
    parsed = targets.parse(target, config)
    found = real.scenario_named(parsed, scenario)
    if found is None:
        raise SimkitError(
            Problem(
                "scenario-unknown",
                f"there is no scenario {scenario!r}{_nearest_scenario(scenario)}",
                "--scenario",
                "a name such as chain/kill@buy#1.applied, or seed/7",
                "`simkit list scenarios` shows all that have a name",
            )
        )
    if mutant is not None:
        origin = origin_of(parsed, "simulated", found.name, mutant=mutant)
        docket = Docket(parsed, origin, store, emit, show=show)
        return replay_mutant(parsed, found, mutant, docket, emit, stopping)
    docket = Docket(parsed, origin_of(parsed, "process", found.name), store, emit, show=show)
    return _replay_real(parsed, found, None, docket, emit, stopping)


def _real_has_no_events(option: str, where: str) -> SimkitError:
    return SimkitError(
        Problem(
            "replay-not-simulated",
            f"{option} is for simulated runs: real processes keep their own time, and have no events to count",
            where,
            "a case of the simulated world, such as `simkit run` saves",
            "--show tells a run on real processes whole, and the folder beside its case has the logs",
        )
    )


def _nearest_scenario(name: str) -> str:
    known = [one.name for story in catalogue.STORIES for one in catalogue.scenarios_of(story, workers=True)]
    near = difflib.get_close_matches(name, known, n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""


def _of_a_test(case: Case, test: str) -> SimkitError:
    return SimkitError(
        Problem(
            "case-of-a-test",
            "this is the case of a test, which pytest has to run",
            f"case {case.id}",
            "a case of a target",
            shlex.join(["pytest", test, "--simkit-replay", case.id]),
            ExitCode.USAGE,
        )
    )


def _target_of(case: Case, given: str | None, config: str | None) -> Target:
    """The target to run: the one given, else the manifest where it was found then, else what was typed then."""
    text, path = case.target.get("target"), case.target.get("path")
    if isinstance(case.target.get("test"), str):
        raise _of_a_test(case, case.target["test"])
    if not isinstance(text, str):
        raise _malformed(case, "the case does not say which target it is of", "target.target", "what was given to -t")
    recorded = case.target.get("configuration")
    chosen = config or (recorded if isinstance(recorded, str) else None)
    if given is not None:
        return targets.parse(given, chosen)
    if isinstance(path, str) and Path(path).is_file():
        return attrs.evolve(targets.parse(path, chosen), text=_as_seen_from_here(text, path))
    try:
        return targets.parse(text, chosen)
    except SimkitError as error:
        if not isinstance(path, str):
            raise
        hint = "say where it is now: " + invocation.line("replay", case.id, "-t", "PATH")
        where = f"neither {path}, where the case was found, nor {text} from here"
        raise SimkitError(attrs.evolve(error.problem, where=where, hint=hint)) from error


def _as_seen_from_here(text: str, path: str) -> str:
    """What to type after -t in this folder: what was typed then when it leads to the same manifest, else its whole path."""
    manifest = Path(text) / FILE if Path(text).is_dir() else Path(text)
    return text if manifest.exists() and manifest.samefile(path) else path


def _mutant_of(case: Case) -> str | None:
    mutant = case.target.get("mutant")
    if not isinstance(mutant, str | None):
        raise _malformed(case, f"its mutant is {mutant!r}", "target.mutant", "the name of a mutant, or null")
    return mutant


def _wanted(case: Case) -> str:
    """What the case promises to show again: obligation and anomaly."""
    if case.expect is None:
        return ""
    words = [case.expect.get(name) for name in ("obligation", "anomaly")]
    if not all(isinstance(word, str) for word in words):
        raise _malformed(case, f"it expects {words}", "expect", "an obligation and an anomaly, or null")
    return " ".join(map(str, words))


def _malformed(case: Case, what: str, field: str, expected: str) -> SimkitError:
    return SimkitError(
        Problem("case-malformed", what, f"case {case.id}: {field}", expected, "find it again from its seed")
    )


# ---- real processes


def _replay_real(
    target: Target,
    scenario: Scenario,
    case: Case | None,
    docket: Docket,
    emit: Emit,
    stopping: Callable[[], bool],
) -> Replayed:
    wanted, seed = (None, None) if case is None else (_wanted(case), case.seed)
    installed = real.environment_of(target, emit)
    emit(CampaignBegan(target.title, "replay", "process", None, {"scenario": scenario.name}, TIMES))
    seen: list[Judged] = []

    def take(judged: Judged) -> Problem | None:
        seen.append(judged)
        return docket.add(judged)

    real.run_all(target, installed.python, [(seed, scenario)] * TIMES, take, None, emit, stopping)
    told = [answered_for(map(" ".join, kinds(one)), docket.claimed, wanted) for one in seen]
    shown = [ours for ours, _ in told if ours]
    again = [ours for ours in shown if wanted is None or wanted in ours]
    if not again and len(seen) < TIMES and stopping():
        raise KeyboardInterrupt  # too few runs to say what it does now
    beside = dict.fromkeys(kind for _, others in told for kind in others)
    doubts = [doubt(one, docket.claimed | {(wanted or "").partition(" ")[0]}) for one in seen]
    telling = sum(not words for words in doubts)
    answer = "reproduced" if again else "different" if shown else "clean" if case is None else "fixed"
    if not shown and not telling:
        answer = "inconclusive"
    return Replayed(
        answer,  # type: ignore[arg-type]
        scenario.name,
        None if case is None else case.id,
        expected=wanted or "",
        got=", ".join(dict.fromkeys(kind for ours in shown for kind in ours)),
        times=len(again),
        of=sum(one.problem is None for one in seen) if shown or not telling else telling,
        reason="; ".join(dict.fromkeys(doubts)) if answer == "inconclusive" else "",
        beside=", ".join(beside),
    )
