"""Sample values for the tests of events, reports, certificates and the command line, and a fake engine to drive it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import attrs

from conformance import events as e
from conformance.certificate import (
    Certificate,
    Claim,
    Environment,
    Kit,
    Mutants,
    ObligationRow,
    Profile,
    Subject,
)
from conformance.failure import Origin, describe
from conformance.recomputed import evidence_of
from conformance.reporters import spacetime
from conformance.store import read_journal
from scenarios import history as h
from scenarios.obligations import OBLIGATIONS
from scenarios.plan import Call, Plan, Seq
from scenarios.requirements import REQUIREMENT_SETS
from scenarios.verdict import Verdict, Violation
from simkit.case import Case
from simkit.errors import ExitCode, Problem

MS = 1_000_000
PLAN = Plan(Seq("main", (Call("quote", "reader"), Call("buy", "ledger", {"amount": 1}, ("quote",)))))
PROBLEM = Problem(
    "adapter-silent", "no answer to start", "adapter.py (pid 7)", "one JSON line", "flush stdout", ExitCode.TARGET
)


def history() -> h.History:
    """The worker dies between `quote`'s answer and `buy`, comes back and asks for another quote."""
    told: list[h.Event] = [
        h.Started(0, 1, "worker"),
        h.Asked(1 * MS, 1, "start", "r", 1),
        h.Answered(2 * MS, 1, "ok"),
        h.Received(3 * MS, 1, "reader", "r", "quote", 1, params="p"),
        h.Applied(4 * MS, 1, 1, "aaaaaaaa"),
        h.Replied(5 * MS, 1, 200, "executed", "aaaaaaaa"),
        h.Received(6 * MS, 2, "ledger", "r", "buy", 1, key="r:buy", carries={"quote": "aaaaaaaa"}),
        h.Fired(7 * MS, "kill@buy#1.received"),
        h.Died(7 * MS, 1, "worker", "killed"),
        h.Started(90 * MS, 2, "worker"),
        *(event for n in range(8) for event in _poll(100 * MS + n * MS, 10 + n)),
        h.Received(120 * MS, 3, "reader", "r", "quote", 2, params="p"),
        h.Applied(121 * MS, 3, 2, "bbbbbbbb"),
        h.Replied(122 * MS, 3, 200, "executed", "bbbbbbbb"),
        h.Closed(300 * MS, "settled"),
    ]
    return h.History("r", PLAN, h.Declared(), tuple(told))


def _poll(at_ns: int, ask: int) -> Iterable[h.Event]:
    yield h.Asked(at_ns, ask, "status", "r", 2)
    yield h.Answered(at_ns + 1000, ask, "ok", status=h.Status("running"))


VIOLATION = Violation(
    "recomputed", "quote was asked for again after its answer had been accepted", (6, 26), operation="quote"
)
#: The evidence of an obligation that was put to the test four times and held.
PASSED = evidence_of(4, 0, (), slow=False)
ORIGIN = Origin("naive", "process", "chain/kill@buy#1.received", case_id="0123456789ab")


def violation(**changes: Any) -> e.ViolationFound:
    """A violation as an engine tells it."""
    found = describe(history(), VIOLATION, "DUR-3", "accepted result is reused", ORIGIN)
    return attrs.evolve(found, **changes)


def certificate(**changes: Any) -> Certificate:
    """A small passing certificate: of an earlier set, whose profile Durable is claimed and granted."""
    demands = REQUIREMENT_SETS["2026.1"]
    rows = tuple(
        ObligationRow(one.id, one.level, "pass", 4, one.minimum, PASSED, OBLIGATIONS[one.id].name, "held")
        if one.profile == "Durable"
        else ObligationRow(one.id, one.level, "not-claimed", 0, one.minimum, "00fe", OBLIGATIONS[one.id].name)
        for one in demands.requirements
        if one.id != "EFF-1"
    )
    twice = ObligationRow("EFF-1", "MUST", "not-claimed", 4, 3, "00fe", "lands once", "violated", ("twice",))
    whole = Certificate(
        subject=Subject("toy", "1.0", "sync", "sqlite", "ab12"),
        kit=Kit("2026.1.0", demands.name, demands.digest),
        world="process",
        durability="kill",
        tier="smoke",
        claims=(Claim("Durable", "survives a crash", "https://example.org/docs"),),
        obligations=(*rows, twice),
        mutants=Mutants(30, 30),
        environment=Environment("CPython 3.11.2", "linux x86_64", {"toy": "1.0"}, {"settle_ms": 4000}),
        profiles=(Profile("Durable", granted=True),),
        runs=12,
        cases=("0123456789ab",),
        issued="2026-01-31",
    )
    return attrs.evolve(whole, **changes)


def verdicts() -> tuple[e.VerdictReached, ...]:
    """A verdict of every kind."""
    return (
        e.VerdictReached(Verdict("DUR-1", "pass", 40, 3, observed="held"), "acknowledged task survives"),
        e.VerdictReached(
            Verdict("DUR-3", "fail", 12, 3, observed="violated", anomalies=("recomputed",)), "accepted result is reused"
        ),
        e.VerdictReached(Verdict("SIG-1", "inconclusive", 1, 3, "barrier waiting:w never reached"), "signals are kept"),
        e.VerdictReached(
            Verdict("EFF-1", "not-claimed", 9, 3, observed="violated", anomalies=("twice",)), "each effect lands once"
        ),
        e.VerdictReached(
            Verdict("OWN-6", "not-covered", 0, 1, "not covered by the process world: nobody can set its clock"),
            "clocks move nothing",
        ),
        e.VerdictReached(Verdict("DUR-13", "pass", 3, 3, observed="held"), "other payload refused", level="SHOULD"),
    )


def every_event() -> tuple[e.Event, ...]:
    """One event of every kind, in an order a campaign might say them."""
    return (
        e.CampaignBegan("naive", "certify", "process", "smoke", {"jobs": 4, "mutant": None}, 31),
        e.Installing("making an environment for naive"),
        e.Progress(3, 31, "chain"),
        e.RunFinished("chain/undisturbed", "pass"),
        e.RunFinished("chain/kill@buy#1.received", "fail", 7, ("kill@buy#1.received",), "0123456789ab"),
        violation(),
        violation(scenario="chain/kill@end", case_id="ba9876543210", replay_case="simkit replay ba9876543210"),
        violation(obligation="EFF-1", name="each effect lands once", anomaly="twice", claimed=False),
        *verdicts(),
        e.Certified(
            "naive 1.0 default",
            "ab" * 32,
            ".simkit/certificates/naive.json",
            ("Durable", "Ownership"),
            {"Effects": "no"},
            8,
            8,
            {"Ownership": ("OWN-6",)},
        ),
        e.Replayed("diverged", "seed/7", "0123456789ab", "DUR-3 recomputed", "", "aa", "bb", 0, 1, 9, "a#1", "b#1"),
        e.Checked("kernel", ok=True, detail="fast, trio 0.35.0"),
        e.Checked("store", ok=False, detail="read only", hint="use --store", exit_code=ExitCode.USAGE),
        e.Listed("obligations", "DUR-1", "an acknowledged task survives", {"level": "MUST"}),
        e.ObligationListed(
            "DUR-1",
            "MUST",
            "safety",
            "DUR",
            "Durable",
            "A task stays.",
            "scenarios.obligations.durable:task_survives",
            3,
            ("amnesia",),
            ("tour",),
            ("ack-before-commit",),
            ("answers too early",),
            ("F02",),
        ),
        e.ObligationListed("JRN-5", "MUST", "safety", "JRN", "Durable", "A secret is found nowhere.", None, None),
        e.MutantJudged("ack-before-commit", "DUR-1", "caught", "tour/kill@ack:start", 0, 1, 0.25, ("DUR-6",)),
        e.MutantJudged("no-key", "EFF-1", "caught by another", runs=510, seconds=9.5, others=("EFF-2", "DUR-5")),
        e.MutantJudged("never-wakes", "SCH-9", "survived", runs=510, seconds=9.25),
        e.Noted("no cases are saved"),
        e.RunShown("chain/undisturbed", spacetime.whole(history())),
        e.Explained("obligation", "DUR-1", "acknowledged task survives", {"promise": "it is still there"}),
        e.Trouble(PROBLEM),
        e.CampaignEnded(
            {"runs": 2, "runs_fail": 1, "runs_pass": 1, "violations": 2}, 1.5, 1.3, ExitCode.VIOLATION, "no"
        ),
    )


@attrs.frozen
class FakeCase:
    """A case as the store needs it."""

    id: str

    def save(self, folder: Path) -> Path:
        path = folder / f"{self.id}.json"
        path.write_text(json.dumps({"id": self.id}))
        return path


Script = Callable[..., Any]


@attrs.define
class FakeEngine:
    """Does what a test scripts: `script(emit, stopping, **arguments)` returns what the engine's function returns."""

    script: Script
    calls: list[tuple[str, dict[str, Any]]] = attrs.field(factory=list)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            self.calls.append((name, {"args": args, **kwargs}))
            return self.script(kwargs["emit"], kwargs["stopping"])

        return call


def ran(code: ExitCode = ExitCode.PASSED, *said: e.Event) -> Callable[..., Any]:
    """The script of a `run` that says these events."""

    def script(emit: e.Emit, _stopping: Callable[[], bool]) -> e.Summary:
        emit(e.CampaignBegan("reference", "run", "simulated", total=2))
        for event in (e.RunFinished("seed/0", "pass", 0), *said):
            emit(event)
        return e.Summary(code)

    return script


def kept_events() -> list[e.Event]:
    """What the one journal of this folder kept."""
    (path,) = Path(".simkit/runs").iterdir()
    return read_journal(path)


def certified(emit: e.Emit, _stopping: Callable[[], bool]) -> Any:
    """The script of a `certify`."""
    emit(e.CampaignBegan("toy", "certify", "process", "smoke"))
    for event in verdicts()[:1]:
        emit(event)
    return certificate()


def saved_case() -> Path:
    """A real case in the store of this folder."""
    case = Case(
        world="simulated",
        target={"target": "reference", "mutant": "timer-in-memory"},
        scenario={"name": "seed/7"},
        seed=7,
        expect={"obligation": "SCH-1", "anomaly": "out of order"},
    )
    return case.save(Path(".simkit/cases"))
