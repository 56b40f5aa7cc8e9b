"""The commands of `simkit` and their options. Each builds a session, asks the engine and returns an exit code."""

from __future__ import annotations

import os
import sys
import traceback
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

from cyclopts import App, CycloptsError, Parameter

from conformance import events as e
from conformance import reporters, tracefile
from conformance.cli import certificates, engine, explain, listing, mistyped, streams, usage
from conformance.cli.options import (
    PLAIN,
    Boundaries,
    Break,
    Common,
    Config,
    Jobs,
    Kernel,
    Mutant,
    ScenarioName,
    Seeds,
    Show,
    ShrinkRuns,
    ShrinkSeconds,
    Swarm,
    Sweep,
    SweepBudget,
    Target,
    Trace,
    Until,
)
from conformance.cli.session import Done, Session, conduct, short
from conformance.look import Look
from conformance.order import Bounds, Order
from conformance.reporters import Format, wording
from conformance.store import Store
from simkit.errors import ExitCode, Problem, SimkitError, worst

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

app = App(
    name="simkit",
    help="Find out what an agent runtime really does when the world breaks, and prove it with a replayable case.",
    help_epilogue=(
        "Exit codes: 0 all required passed · 1 violation · 2 usage · 3 inconclusive · 4 target unreachable or broke "
        "protocol · 5 nothing selected · 6 replay diverged · 70 bug in simkit, or trouble with this machine · 130 interrupted."
    ),
    version=lambda: metadata.version("simkit"),
    help_format="plaintext",
    suppress_keyboard_interrupt=False,
)


@app.command
def certify(
    target: Annotated[str | None, Parameter(name="TARGET", help="The target, instead of -t.")] = None,
    /,
    *,
    target_option: Target = None,
    config: Config = None,
    tier: Annotated[
        Literal["smoke", "core", "full"], Parameter(help="How much to try: 1, 5 or more minutes.")
    ] = "smoke",
    requirements: Annotated[str | None, Parameter(help="Requirement set, e.g. 2026.2, the current one.")] = None,
    jobs: Jobs = None,
    out: Annotated[Path | None, Parameter(help="Write the certificate here instead of into the store.")] = None,
    common: Common = PLAIN,
) -> int:
    """Run the scenarios of a tier against a real harness in real processes, judge it and write its certificate."""

    def body(session: Session) -> Done:
        subject, jobs_ = usage.target(target, target_option), usage.jobs(jobs)
        usage.requirements(requirements)
        certificate = engine.load().certify(
            subject,
            config=config,
            tier=tier,
            requirements=requirements,
            jobs=jobs_,
            store=session.store,
            emit=session.emit,
            stopping=session.stop,
        )
        return certificates.keep(session, certificate, out)

    return _conduct("certify", common, body)


@app.command
def run(
    *,
    target: Target = None,
    config: Config = None,
    mutant: Mutant = None,
    seeds: Seeds = "0-99",
    boundaries: Boundaries = False,
    swarm: Swarm = True,
    sweep: Sweep = False,
    sweep_budget: SweepBudget = 200,
    shrink_runs: ShrinkRuns = 200,
    shrink_seconds: ShrinkSeconds = 0,
    kernel: Kernel = "fast",
    jobs: Jobs = None,
    show: Show = False,
    common: Common = PLAIN,
) -> int:
    """Run a target under simulated crashes, one seed after the other, and judge every run. The first failure of each kind is
    made small and explained; the case that is kept and shown is the small one.
    """

    def body(session: Session) -> Done:
        session.stop.unit = "seed"
        subject, chosen, jobs_ = usage.target(None, target), usage.seeds(seeds, show=show), usage.jobs(jobs)
        usage.shrink(shrink_runs, shrink_seconds)
        usage.sweep_budget(sweep_budget)
        order = Order(
            subject,
            config,
            mutant,
            kernel,
            boundaries=boundaries,
            show=show,
            swarm=swarm,
            sweep=sweep_budget if sweep else None,
        )
        summary = engine.load().run(
            order,
            chosen,
            shrink=Bounds(shrink_runs, shrink_seconds),
            jobs=jobs_,
            store=session.store,
            emit=session.emit,
            stopping=session.stop,
        )
        return summary.exit_code, summary.reason or _reason(session)

    return _conduct("run", common, body)


@app.command
def replay(
    case: Annotated[str | None, Parameter(name="CASE", help="Id, its beginning, or file of a saved case.")] = None,
    /,
    *,
    target: Target = None,
    config: Config = None,
    mutant: Mutant = None,
    scenario: ScenarioName = None,
    show: Show = False,
    until: Until = None,
    break_: Break = None,
    trace: Trace = None,
    common: Common = PLAIN,
) -> int:
    """Do a run again: a saved case (of its own target, or of -t), or a named scenario of a target, on real processes, or with
    --mutant in simulation. Says reproduced, fixed, different or diverged, and at which event; of a scenario without violations
    that nothing was violated; and inconclusive where no run was judged, settled and was struck as asked. Events are numbered
    from 0; --until, --break and --trace are for simulated cases, and PYTHONBREAKPOINT names another debugger.
    """

    def body(session: Session) -> Done:
        usage.until_or_break(until, break_)
        usage.case_or_scenario(case, scenario, mutant)
        with tracefile.tracing(trace) as sink:
            look = Look(until, break_, sink)
            if case is not None:
                answer = engine.load().replay(
                    session.store.load_case(case),
                    target=target,
                    config=config,
                    show=show,
                    look=look,
                    store=session.store,
                    emit=session.emit,
                    stopping=session.stop,
                )
            else:
                answer = engine.load().replay_scenario(
                    usage.target(None, target),
                    config=config,
                    mutant=mutant,
                    scenario=cast("str", scenario),
                    show=show,
                    look=look,
                    store=session.store,
                    emit=session.emit,
                    stopping=session.stop,
                )
        session.emit(answer)
        return _REPLAY_CODES[answer.answer], wording.answer(answer)

    return _conduct("replay", common, body, aside=trace == tracefile.STANDARD_OUTPUT)


@app.command(name="mutants")
def mutants_(
    *,
    target: Target = None,
    config: Config = None,
    only: Annotated[
        tuple[str, ...],
        Parameter(
            consume_multiple=True,
            negative=(),
            show_default=False,
            help="Mutants, or all of an obligation (RTY-1) or group (RTY).",
        ),
    ] = (),
    seeds: Annotated[int, Parameter(help="Drawn seeds to try of a mutant after the scenario it names.")] = 500,
    jobs: Jobs = None,
    common: Common = PLAIN,
) -> int:
    """Prove the judges: run every mutant of the reference runtime, a runtime that breaks one promise, until its own obligation
    blames it. Says of each in which run it was caught, or that it survives, or which other obligations blame it.
    """

    def body(session: Session) -> Done:
        session.stop.unit = "mutant"
        subject, jobs_ = usage.target(None, target), usage.jobs(jobs)
        usage.mutant_seeds(seeds)
        summary = engine.load().mutants(
            subject,
            config=config,
            only=only,
            seeds=seeds,
            jobs=jobs_,
            emit=session.emit,
            stopping=session.stop,
        )
        return summary.exit_code, summary.reason

    return _conduct("mutants", common, body)


_REPLAY_CODES = {
    "reproduced": ExitCode.VIOLATION,
    "different": ExitCode.VIOLATION,
    "fixed": ExitCode.PASSED,
    "clean": ExitCode.PASSED,
    "diverged": ExitCode.DIVERGED,
    "stopped": ExitCode.PASSED,
    "inconclusive": ExitCode.INCONCLUSIVE,
}


@app.command
def cases(*, common: Common = PLAIN) -> int:
    """List the saved cases, newest last."""

    def body(session: Session) -> Done:
        found = None
        for found in listing.cases(session.store):
            if isinstance(found, Problem):
                session.trouble(found)
            else:
                session.emit(found)
        if found is None:
            session.emit(e.Noted(f"no cases are saved in {short(session.store.cases.absolute())}"))
        return ExitCode.PASSED, ""

    return _conduct("cases", common, body, campaign=False)


@app.command
def verify(
    *paths: Annotated[Path, Parameter(name="CERT", help="Certificates' files.")],
    common: Common = PLAIN,
) -> int:
    """Check by their footers that certificates are whole and unchanged, and show what each states, which is the exit code too;
    of several that which outranks the others.
    """

    def body(session: Session) -> Done:
        usage.certificates(paths)
        return certificates.verify(session, paths)

    return _conduct("verify", common, body)


@app.command(name="list")
def list_(
    *groups: Annotated[str, Parameter(name="GROUP", help="obligations, adapters, scenarios, mutants; then names.")],
    obligations: Annotated[bool, Parameter(negative=(), help="The promises and what breaks them.")] = False,
    adapters: Annotated[bool, Parameter(negative=(), help="The harnesses that can be certified.")] = False,
    scenarios: Annotated[bool, Parameter(negative=(), help="The named scenarios.")] = False,
    mutants: Annotated[bool, Parameter(negative=(), help="The broken runtimes that prove the judges.")] = False,
    common: Common = PLAIN,
) -> int:
    """List what there is: obligations, adapters, scenarios, mutants; without any, how many of each. Parts of names, or
    globs, choose among them: `simkit list scenarios tour`.
    """
    asked = {"obligations": obligations, "adapters": adapters, "scenarios": scenarios, "mutants": mutants}

    def body(session: Session) -> Done:
        for event in listing.chosen(groups, tuple(kind for kind, wanted in asked.items() if wanted)):
            session.emit(event)
        return ExitCode.PASSED, ""

    return _conduct("list", common, body, campaign=False)


@app.command(name="explain")
def explain_(
    name: Annotated[str | None, Parameter(name="ID", help="Whatever a report names, or a file.")] = None,
    /,
    *,
    common: Common = PLAIN,
) -> int:
    """Explain an obligation (DUR-3), a group, a profile, an anomaly (stuck), a verdict, a tier, a requirement set, a reported
    fault (F17), a mutant, an error or exit code, an interruption (storm, kill@ack:start), a story, a scenario, a service, a
    fault (network:clog), a certificate, or a saved case with its space-time table. Without one, list what can be explained.
    """

    def body(session: Session) -> Done:
        for event in explain.explain(name, session.store) if name else explain.known():
            session.emit(event)
        return ExitCode.PASSED, ""

    return _conduct("explain", common, body, campaign=False)


@app.command
def doctor(*, target: Target = None, config: Config = None, common: Common = PLAIN) -> int:
    """Check this installation: kernel, store, determinism across runs, hash seeds and Pythons; and a target when given."""

    def body(session: Session) -> Done:
        subject = usage.target(None, target) if config else target  # a configuration is one of a target
        result = engine.load().doctor(
            subject, config=config, store=session.store, emit=session.emit, stopping=session.stop
        )
        failed = [check for check in result.checks if not check.ok]
        reason = "not well: " + ", ".join(check.name for check in failed) if failed else "all is well"
        skipped = [check.name for check in result.checks if check.skipped]
        if skipped:
            reason += f"; not compared: {', '.join(skipped)}"
        return worst([check.exit_code for check in failed]), reason

    return _conduct("doctor", common, body)


# ---- behind the commands


def _conduct(
    command: str, common: Common, body: Callable[[Session], Done], *, campaign: bool = True, aside: bool = False
) -> int:
    """`aside`: the report goes to standard error, for standard output has something else to carry."""
    streams.check_folder()
    out = sys.stderr if aside else sys.stdout
    reporter = reporters.make(common.format or _default_format(), out, sys.stderr)
    return conduct(Session(command, reporter, Store.find(common.store)), body, campaign=campaign)


def _default_format() -> Format:
    return "pretty" if sys.stdout.isatty() or os.environ.get("FORCE_COLOR") else "plain"


def _reason(session: Session) -> str:
    broken = session.tally.broken()
    return "violated: " + ", ".join(broken) if broken else ""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code. The console script hands it to `sys.exit`."""
    words = list(sys.argv[1:] if argv is None else argv)
    streams.settle()
    try:
        code = app(words, exit_on_error=False, print_error=False, result_action="return_value")
    except CycloptsError as error:
        return _refuse(mistyped.problem(error, words, app), words)
    except SimkitError as error:  # before there was a session to tell it
        return _refuse(error.problem, words)
    except Exception:  # noqa: BLE001 - Python's own exit code would mean a violation
        traceback.print_exc()
        return int(ExitCode.INTERNAL)
    return int(code or 0)


def _refuse(problem: Problem, words: Sequence[str]) -> int:
    if "--format json" in " ".join(words) or "--format=json" in words:
        reporters.make("json", sys.stdout, sys.stderr).show(e.Trouble(problem))
    else:
        sys.stderr.write(f"{problem}\n")
    return int(problem.exit_code)
