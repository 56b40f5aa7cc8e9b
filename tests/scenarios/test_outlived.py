"""What a death ends for good puts nothing to the test: every example is cut at its last death and goes no further."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

import attrs

from scenarios.history import Answered, Asked, Closed, Died, History, Quiet, Started, State, Status
from scenarios.index import look
from scenarios.obligations import OBLIGATIONS
from scenarios.outlived import vanished_at
from scenarios.rules import judge_all
from scenarios.verdict import Finding
from tests.scenarios.build import Story, plan
from tests.scenarios.examples import collected

CHAIN = plan("a ledger", "b ledger a", "c ledger b")
PASSED = [one for one in collected() if one.anomaly is None]
#: Promises that something is not repeated, lost or begun after a death.
KEPT = ("APR-5", "CAN-1", "CHI-2", "DUR-3", "EFF-1", "EFF-4", "EFF-5", "RTY-2", "SIG-1", "SIG-3")


def test_what_vanishes_with_a_death_shows_nothing_more() -> None:
    """A run that nobody knows after a death has shown what it had shown before."""
    for history, at in itertools.islice(deaths(), 0, None, 4):
        if look(history).struck("wipe", at):
            continue
        before = counted(judge_all(attrs.evolve(history, events=history.events[:at])))
        after = counted(judge_all(left(history, at, "unknown")))
        assert {id_: count for id_, count in after.items() if count > before[id_]} == {}


def test_what_stands_still_after_a_death_repeats_and_loses_nothing() -> None:
    """A run that is only said to be running after a death shows nothing of what it would do."""
    for history, at in deaths():
        before, after = attrs.evolve(history, events=history.events[:at]), left(history, at, "running")
        shown = {id_: OBLIGATIONS[id_].judge(before).exercised for id_ in KEPT}
        counts = {id_: OBLIGATIONS[id_].judge(after).exercised for id_ in KEPT}
        assert {id_: count for id_, count in counts.items() if count > shown[id_]} == {}


def test_a_harness_without_storage_has_shown_no_reuse() -> None:
    """It keeps its runs in memory and loses them with each death: that it works nothing again is no merit of its."""
    lost = Story(CHAIN).up().start().call("a").call("b").crash().status("unknown").settled().history()
    assert judge_all(lost)["DUR-3"].exercised == 0
    kept = Story(CHAIN).up().start().call("a").call("b").crash().call("c").done().settled().history()
    assert judge_all(kept)["DUR-3"].exercised == 1


def test_a_run_that_comes_back_has_not_vanished() -> None:
    """Unknown for a moment, as while a server comes up, is no end; nor is a disk that was emptied on purpose."""
    away = Story(CHAIN).up().start().call("a").crash().status("unknown")
    assert vanished_at(look(away.history())) == away.events.index(
        next(one for one in away.events if isinstance(one, Died))
    )
    assert vanished_at(look(away.call("b").history())) is None
    emptied = Story(CHAIN).up().start().call("a").fired("wipe@end").crash().status("unknown")
    assert vanished_at(look(emptied.history())) is None


def deaths() -> Iterator[tuple[History, int]]:
    """The last death of every example that has one."""
    for one in PASSED:
        yield from ((one.history, at) for at in look(one.history).deaths[-1:])


def left(history: History, at: int, state: State) -> History:
    """Up again after its death at event `at`, shown with `state` once, and never heard of until the observer gives up."""
    died = history.events[at]
    assert isinstance(died, Died)
    now_ns, ask = died.at_ns + 1, 1 + max((one.ask for one in history.events if isinstance(one, Asked)), default=0)
    started = [one for one in history.events[:at] if isinstance(one, Started)]
    code = started[-1].code if started else ""
    after = (
        Started(now_ns, len(started) + 1, died.unit, code),
        Asked(now_ns + 1, ask, "status", history.run, len(started) + 1),
        Answered(now_ns + 2, ask, "ok", "", Status(state)),
        Quiet(now_ns + 3),
        Closed(now_ns + 60_000_000_000, "bound"),
    )
    return attrs.evolve(history, events=(*history.events[: at + 1], *after))


def counted(findings: Mapping[str, Finding]) -> dict[str, int]:
    return {id_: finding.exercised for id_, finding in findings.items()}
