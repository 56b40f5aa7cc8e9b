"""`doctor`: is this installation fit to judge, and is a target? In simulation it must be deterministic; as real processes
its units must start, speak the protocol, and carry out one undisturbed run.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from typing import TYPE_CHECKING

import trio

from conformance import evidence, install, invocation, targets
from conformance.campaign import real
from conformance.campaign.patience import interruptible
from conformance.events import CampaignBegan, Checked, DoctorResult
from conformance.simulate import Kernel, can_be_simulated, simulate
from scenarios import catalogue
from scenarios.history import Asked, Started
from simkit.errors import ExitCode, SimkitError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from conformance.campaign.docket import Judged
    from conformance.events import Emit, World
    from conformance.store import Store
    from conformance.targets import Target
    from scenarios.interruption import Scenario

#: Seeds whose digests are compared.
SEEDS = (0, 1, 2, 3, 4, 5)
_CHILD_S = 300
_CHILD = "import sys; from conformance.campaign.checkup import print_digests; print_digests(sys.argv[1], sys.argv[2])"


def doctor(target: str | None, *, store: Store, emit: Emit, stopping: Callable[[], bool]) -> DoctorResult:
    """Check what can be checked, one after the other; every check is told as it is made."""
    parsed = None if target is None else targets.parse(target)
    title = parsed.title if parsed else "this installation"
    world: World = "simulated" if parsed is None or can_be_simulated(parsed) else "process"
    emit(CampaignBegan(title, "doctor", world, None, {}, None))
    checks: list[Checked] = []
    for check in _checks(parsed, store, emit):
        emit(check)
        checks.append(check)
        if stopping():
            break
    return DoctorResult(tuple(checks))


def _checks(target: Target | None, store: Store, emit: Emit) -> Iterator[Checked]:
    yield _python()
    yield _kernel()
    yield _store(store)
    yield _cache()
    if target is None or can_be_simulated(target):
        yield from _determinism(target or targets.parse("reference"))
        return
    installed = _installed(target, emit)
    yield installed
    if installed.ok:
        yield from _undisturbed(target, store)


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
        return await real.judged(target, python, None, scenario)
    raise AssertionError("a block that was cut short has raised")


def _undisturbed(target: Target, store: Store) -> Iterator[Checked]:
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
    calls = len(scenario.plan.leaves())
    detail = f"{scenario.name}: {', '.join(broken) or 'never settled'}" if broken or judged.unsettled else ""
    yield Checked(
        "answers",
        not detail,
        detail or f"{scenario.name}: {calls} operations carried out, every status as it must be",
        "see all of it: " + invocation.line("replay", "-t", target.text, "--scenario", scenario.name, "--show"),
        ExitCode.VIOLATION if broken else ExitCode.INCONCLUSIVE,
    )


def _determinism(target: Target) -> Iterator[Checked]:
    first = digests(target, "fast")
    yield _same("two runs", first, digests(target, "fast"))
    yield _same("kernel and fallback", first, digests(target, "fallback"))
    for hash_seed in ("1", "2"):
        yield _same(f"PYTHONHASHSEED={hash_seed}", first, _elsewhere(target, hash_seed))


def _same(name: str, first: Sequence[str], second: Sequence[str]) -> Checked:
    if first == second:
        return Checked(name, True, f"{len(first)} seeds, same digests ({first[0][:12]}…)")
    seed = next((seed for seed, one, other in zip(SEEDS, first, second, strict=False) if one != other), SEEDS[0])
    if not second:
        hint = "run `simkit run -t reference --seeds 0` by itself: does it work?"
        return Checked(name, False, "no digests came back", hint, ExitCode.INTERNAL)
    hint = "something is not deterministic: run the seed twice with a trace and compare the first differing event"
    return Checked(name, False, f"seed {seed} gives two digests", hint, ExitCode.DIVERGED)


def digests(target: Target, kernel: Kernel) -> list[str]:
    """The trace digests of `SEEDS` in this process."""
    return [simulate(target, seed, kernel=kernel).outcome.digest for seed in SEEDS]


def print_digests(text: str, configuration: str) -> None:
    """In a process of its own: print the digests as JSON."""
    sys.stdout.write(json.dumps(digests(targets.parse(text, configuration), "fast")) + "\n")


def _elsewhere(target: Target, hash_seed: str) -> list[str]:
    command = [sys.executable, "-c", _CHILD, target.text, target.configuration]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    try:
        done = subprocess.run(  # noqa: S603 - our own interpreter and our own code
            command, env=environment, capture_output=True, text=True, timeout=_CHILD_S, check=True
        )
        return list(json.loads(done.stdout))
    except (OSError, subprocess.SubprocessError, ValueError):
        return []  # told as no digests
