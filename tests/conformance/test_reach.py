"""What a manifest rules out is told by the verdicts it makes inconclusive."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from conformance import events as e
from conformance.campaign.docket import Docket, origin_of
from conformance.campaign.judged import Judged
from conformance.manifest import Manifest, Operations, Shows
from conformance.reach import ruled_out
from conformance.store import Store
from conformance.targets import parse
from scenarios.history import Answered, Asked, Declared, History, Received, State, Status
from scenarios.obligations import OBLIGATIONS
from scenarios.plan import Call, Plan, Seq, Sleep
from scenarios.verdict import Finding


def manifest(*, operations: bool = False, supported: tuple[str, ...] = ("seq", "call")) -> Manifest:
    """A manifest that shows and supports little."""
    found = parse("naive").manifest
    return attrs.evolve(found, shows=Shows(operations), operations=Operations(supported))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("obligation", "found", "why"),
    [
        ("DUR-12", manifest(), "[shows] operations is off"),
        ("DUR-12", manifest(operations=True), ""),
        ("DUR-7", manifest(), "[shows] operations and attempts are off"),
        ("SIG-1", manifest(), "[operations] supported has no 'wait'"),
        ("SCH-1", manifest(supported=("call", "sleep")), ""),
        ("DUR-1", manifest(), ""),
    ],
)
def test_what_is_missing_is_named(obligation: str, found: Manifest, why: str) -> None:
    """The line of the manifest that rules a promise out is quoted, and no other."""
    assert ruled_out(obligation, found) == why


def test_an_unexercised_verdict_says_what_rules_it_out(tmp_path: Path) -> None:
    """A claim that cannot be put to the test says why; one that could be points to a higher tier."""
    claims = {name: parse("naive").manifest.claims["Durable"] for name in ("DUR-1", "DUR-12")}
    target = attrs.evolve(parse("naive"), manifest=attrs.evolve(manifest(), claims=claims))
    told: list[e.Event] = []
    docket = Docket(target, origin_of(target, "process"), Store(tmp_path), told.append, tier="smoke")
    reached = docket.verdicts()
    assert reached["DUR-12"].reason.endswith("; not with this adapter.toml: [shows] operations is off")
    assert reached["DUR-1"].reason.endswith("; a higher tier tries more")
    assert len(told) == len(OBLIGATIONS)


def calling(service: str = "ledger", key: str | None = None) -> History:
    """A run that called a service once."""
    plan = Plan(Call("a", service))
    return History("r", plan, Declared(), (Received(0, 1, service, "r", "a", 1, key),))


@pytest.mark.parametrize(
    ("runs", "end"),
    [
        ([Judged("a", None, {}, ("kill@a#1.applied",), (), calling())], "; a higher tier tries more"),
        (
            [Judged("a", None, {}, (), ("kill@end",), calling())],
            "; nothing that was to strike did so in the one run, and no",
        ),
        ([Judged("a", None, {}, ("kill@end",), (), None)] * 2, "; no service was called in any of 2 runs, and no tier"),
    ],
)
def test_a_higher_tier_is_named_only_where_it_would_help(tmp_path: Path, runs: list[Judged], end: str) -> None:
    """Where nothing struck, or nothing called a service, more of the same puts nothing to the test."""
    target = attrs.evolve(parse("naive"), manifest=manifest())
    docket = Docket(target, origin_of(target, "process"), Store(tmp_path), lambda _event: None, tier="smoke")
    for one in runs:
        docket.add(one)
    assert end in docket.verdicts()["DUR-1"].reason


@pytest.mark.parametrize(
    ("histories", "obligation", "end"),
    [
        (
            [calling()] * 2,
            "EFF-2",
            "; no request carried a key in any of 2 runs that called services which honour keys, and",
        ),
        ([calling(), calling("reader")], "EFF-3", "; no request carried a key in the one run that called"),
        ([calling(), calling(key="k")], "EFF-2", "; a higher tier tries more"),
        ([calling("reader"), calling("mailer")], "EFF-3", "; a higher tier tries more"),
        ([calling()], "EFF-1", "; a higher tier tries more"),
    ],
)
def test_promises_about_keys_say_when_none_was_sent(
    tmp_path: Path, histories: list[History], obligation: str, end: str
) -> None:
    """More of the same sends none either; where a key came, or nobody was called who honours one, a higher tier may help."""
    target = parse("reference")
    docket = Docket(target, origin_of(target, "process"), Store(tmp_path), lambda _event: None, tier="smoke")
    for one in histories:
        docket.add(Judged("a", None, {}, ("kill@a#1.applied",), (), one))
    assert end in docket.verdicts()[obligation].reason


@pytest.mark.parametrize(
    ("fired", "unfired", "state", "end"),
    [
        (
            (),
            ("kill@waiting:nap",),
            "done",
            "; timer/a was to strike while a timer ran, and the timer had ended by then: this",
        ),
        (
            ("kill@waiting:nap",),
            (),
            "done",
            "; timer/a was to strike while a timer ran, and the timer had ended by then: this",
        ),
        ((), ("kill@waiting:nap",), "running", "; a higher tier tries more"),
        (("kill@waiting:word",), (), "done", "; a higher tier tries more"),
        (("kill@a#1.applied",), (), "done", "; a higher tier tries more"),
    ],
)
def test_a_timer_that_was_missed_is_put_down_to_the_machine(
    tmp_path: Path, fired: tuple[str, ...], unfired: tuple[str, ...], state: State, end: str
) -> None:
    """What was to strike while a timer ran and came too late says so; a higher tier would be as late on such a machine."""
    target = parse("dbos")
    docket = Docket(target, origin_of(target, "process"), Store(tmp_path), lambda _event: None, tier="smoke")
    plan = Plan(Seq("m", (Call("a", "ledger"), Sleep("nap", 1))))
    ends = (Asked(1, 1, "status", "r", 1), Answered(2, 1, "ok", "", Status(state)))
    history = attrs.evolve(calling(), plan=plan, events=(*calling().events, *ends))
    docket.add(Judged("other", None, {}, ("kill@a#1.received",), (), calling()))
    docket.add(Judged("timer/a", None, {"SCH-1": Finding(0)}, fired, unfired, history))
    assert end in docket.verdicts()["SCH-1"].reason
