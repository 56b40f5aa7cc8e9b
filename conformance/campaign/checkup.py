"""`doctor`: is this installation fit to judge, and is a target? In simulation it must be deterministic: in both loops, for
every hash seed and on every Python of the machine. As real processes its units must start, speak the protocol, and carry
out one undisturbed run.
"""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from conformance import evidence, install, invocation, pythons, targets
from conformance.campaign import real, sameness
from conformance.campaign.aliveness import alive
from conformance.campaign.patience import interruptible
from conformance.campaign.sameness import Elsewhere, Here, MissingError, Way, WayError
from conformance.events import CampaignBegan, Checked, DoctorResult, Installing
from conformance.simulate import can_be_simulated
from scenarios import catalogue
from scenarios.history import Asked, Started
from simkit.errors import ExitCode, SimkitError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conformance.campaign.judged import Judged
    from conformance.campaign.sameness import Digests
    from conformance.events import Emit, World
    from conformance.store import Store
    from conformance.targets import Target
    from scenarios.interruption import Scenario

#: What of the machine's surroundings must not matter: each is a row, and a process of its own.
_SURROUNDINGS = (
    {"PYTHONHASHSEED": "1"},
    {"PYTHONHASHSEED": "2"},
    {"TZ": "Asia/Tokyo", "LC_ALL": "C"},
)


def doctor(
    target: str | None, *, config: str | None = None, store: Store, emit: Emit, stopping: Callable[[], bool]
) -> DoctorResult:
    """Check what can be checked, one after the other; every check is told as it is made."""
    parsed = None if target is None else targets.parse(target, config)
    title = parsed.title if parsed else "this installation"
    world: World = "simulated" if parsed is None or can_be_simulated(parsed) else "process"
    emit(CampaignBegan(title, "doctor", world, None, {}, None))
    checks: list[Checked] = []
    for check in _checks(parsed, store, emit, config):
        emit(check)
        checks.append(check)
        if stopping():
            break
    return DoctorResult(tuple(checks))


def _checks(target: Target | None, store: Store, emit: Emit, config: str | None) -> Iterator[Checked]:
    yield _python()
    yield _kernel()
    yield _store(store)
    yield _cache()
    if target is None or can_be_simulated(target):
        yield from _determinism(target, emit)
        return
    installed = _installed(target, emit)
    yield installed
    if installed.ok:
        yield from _undisturbed(target, store, config)


def _python() -> Checked:
    found = f"{platform.python_implementation()} {platform.python_version()}"
    return Checked("python", sys.version_info >= (3, 11), found, "simkit needs Python 3.11 or later", ExitCode.USAGE)


def _kernel() -> Checked:
    from simkit._kernel import fingerprint

    known = fingerprint.is_known()
    detail = f"trio's internals are {'' if known else 'not '}those the fast kernel was made for"
    return Checked("kernel", known, detail, "the fallback is used: slower, same traces", ExitCode.PASSED)


def _store(store: Store) -> Checked:
    try:
        store.check()
    except SimkitError as error:
        return Checked("store", False, error.problem.what, error.problem.hint, ExitCode.USAGE)
    return Checked("store", True, f"{store.root} can be written")


def _cache() -> Checked:
    folder = install.cache_folder()
    parent = next((one for one in (folder, *folder.parents) if one.exists()), folder)
    usable = os.access(parent, os.W_OK)
    return Checked("cache", usable, f"{folder}", "set SIMKIT_CACHE to a folder that can be written", ExitCode.USAGE)


def _installed(target: Target, emit: Emit) -> Checked:
    try:
        found = real.environment_of(target, emit)
    except SimkitError as error:
        return Checked("environment", False, error.problem.what, error.problem.hint, error.problem.exit_code)
    where = f"{len(found.packages)} packages in {found.folder}" if found.folder else "simkit's own Python"
    return Checked("environment", True, where)


async def _one(target: Target, python: str, scenario: Scenario) -> Judged:
    with interruptible():
        return alive(target, await real.judged(target, python, None, scenario))
    raise AssertionError("a block that was cut short has raised")


def _undisturbed(target: Target, store: Store, config: str | None) -> Iterator[Checked]:
    """One run that nothing interrupts, on real processes: units and hello, then every answer of the run."""
    plans = [one for one in catalogue.tier("full", target.manifest.operations.supported) if not one.interruptions]
    scenario = max(plans, key=lambda one: (len(one.plan.kinds()), len(one.plan.leaves())))
    python = install.ensure(target).python
    judged = trio.run(_one, target, python, scenario)
    history = judged.history
    started = [event.unit for event in history.events if isinstance(event, Started)] if history else []
    if judged.problem is not None:
        kept = store.keep_run(scenario.name, evidence.files(history, judged.logs), None, lambda _event: None)
        hint = "; ".join(filter(None, (judged.problem.hint, f"logs: {kept}" if kept else "")))
        asked = any(isinstance(event, Asked) for event in history.events) if history else False
        yield Checked("answers" if asked else "units", False, judged.problem.what, hint, judged.problem.exit_code)
        return
    yield Checked("units", True, f"{', '.join(started)} started and said hello, as real processes")
    broken = [f"{id_} {one.anomaly}" for id_, found in judged.findings.items() for one in found.violations]
    calls, named = len(scenario.plan.leaves()), ("--config", config) if config else ()
    detail = f"{scenario.name}: {', '.join(broken) or 'never settled'}" if broken or judged.unsettled else ""
    yield Checked(
        "answers",
        not detail,
        detail or f"{scenario.name}: {calls} operations carried out, every status as it must be",
        "see all of it: " + invocation.line("replay", "-t", target.text, *named, "--scenario", scenario.name, "--show"),
        ExitCode.VIOLATION if broken else ExitCode.INCONCLUSIVE,
    )


def _determinism(target: Target | None, emit: Emit) -> Iterator[Checked]:
    """The same programs in other ways; the first way is the fast loop in this process."""
    here = Here(target)
    try:
        first = here.digests()
    except SimkitError as error:
        yield Checked("programs", False, error.problem.what, error.problem.hint, error.problem.exit_code)
        return
    except Exception as error:  # noqa: BLE001  # whatever a program ends with is what is wrong with it
        hint = "the program fails here already: run it by itself"
        yield Checked("programs", False, f"{type(error).__name__}: {error}", hint, ExitCode.INTERNAL)
        return
    names = dict.fromkeys(name.rpartition(",")[0] for name in first)
    yield Checked("programs", True, f"{', '.join(names)}: {len(first)} runs, digest {sameness.combined(first)[:12]}…")
    yield _same("two runs", here, here, first)
    yield _same("kernel and fallback", here, Here(target, "fallback"), first)
    for environ in _SURROUNDINGS:
        name = " ".join(f"{variable}={value}" for variable, value in environ.items())
        yield _same(name, here, Elsewhere(target, Path(sys.executable), environ), first)
    yield from _other_pythons(target, here, first, emit)


def _other_pythons(target: Target | None, here: Here, first: Digests, emit: Emit) -> Iterator[Checked]:
    """Every Python of the machine but this one; what cannot be compared is told, and no failure."""
    survey = pythons.survey()
    others = [python for python in survey.pythons if not python.is_this_one]
    for python in others:
        try:
            path = pythons.environment(python, progress=lambda text: emit(Installing(text)))
        except SimkitError as error:
            yield _not_compared(
                python.name, f"{error.problem.what.splitlines()[0]} ({python.path})", error.problem.hint
            )
        else:
            yield _same(python.name, here, Elsewhere(target, path, {}, ours=False), first)
    for broken in survey.broken:
        yield _not_compared(str(broken.path), f"it {broken.why}")
    if not others and not survey.broken:
        hint = "another Python on PATH, or one that pyenv or uv keeps, is found by itself"
        yield _not_compared("other Pythons", "there is none from 3.11 on but this one", hint)


def _not_compared(name: str, why: str, hint: str = "") -> Checked:
    return Checked(name, True, f"not compared: {why}", hint, ExitCode.PASSED, skipped=True)


def _same(name: str, one: Way, other: Way, first: Digests) -> Checked:
    try:
        second = other.digests()
        found = sameness.difference(one, other, first, second)
    except MissingError as error:
        return _not_compared(name, str(error), "simkit's own needs are installed there, those of the target are not")
    except WayError as error:
        hint = "it is our own programs that could not be run there: this is a fault of simkit or of that Python"
        return Checked(name, False, f"no digests came back: {error}", hint, ExitCode.INTERNAL)
    if found:
        hint = "something is not deterministic, or not the same there: the two events tell which part"
        return Checked(name, False, found, hint, ExitCode.DIVERGED)
    return Checked(name, True, f"{len(first)} runs, same digests ({sameness.combined(second)[:12]}…)")
