"""The marks of a run that was made small: what is a fault, what is none, and what decides."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.picture import drawn, pictured
from simkit.explanation import Cause, Explanation
from simkit.spacetime import Lane, Row, Table
from tests.conformance.test_shrinkage import KIND, small  # noqa: F401 - the fixture


def why(*sites: tuple[str, str]) -> Explanation:
    causes = tuple(Cause((label, key, 0), 1) for label, key in sites)
    return Explanation("DUR-1 amnesia", causes, (), (), 9, complete=True)


def row(kind: Any, text: str, at_ns: int = 5, event: int = 0) -> Row:
    return Row(at_ns, 0, kind, text, lives=("alive",), event=event)


def marks(explanation: Explanation, *rows: Row) -> list[tuple[str, str, bool]]:
    found = pictured(Table((Lane("engine", "engine"),), rows), explanation)
    return [(one.kind, one.text, one.decides) for one in found.rows]


def test_an_interruption_is_a_fault_and_decides_with_what_it_strikes() -> None:
    """The row of the kill and the row of the death; a fault at another time is another matter."""
    rows = (
        row("note", "kill@buy#1.applied+power@time:9"),
        row("death", "engine#1 is killed"),
        row("fault", "connection 1 to worker is reset"),
        row("note", "kill@ack:start", 7),
        row("death", "worker#2 is killed", 7),
    )
    assert marks(why(("interruption", "kill@buy#1.applied")), *rows) == [
        ("fault", "kill@buy#1.applied+power@time:9", True),
        ("death", "engine#1 is killed", True),
        ("fault", "connection 1 to worker is reset", False),
        ("fault", "kill@ack:start", False),
        ("death", "worker#2 is killed", False),
    ]


@pytest.mark.parametrize("key", ["interruption crowd@enter#1.received=8", "detail crowd@enter#1.received=8.arg"])
def test_an_interruption_that_was_made_smaller_is_known_by_its_kind(key: str) -> None:
    """Its label is another one then; which of several it was nobody can tell."""
    label, _, name = key.partition(" ")
    crowd = row("note", "crowd@enter#1.received=1")
    (mark,) = marks(why((label, name)), crowd)
    assert mark[2]
    assert not any(decides for *_, decides in marks(why((label, name)), crowd, row("note", "crowd@buy#1.received=1")))


def test_what_the_kit_says_to_a_worker_is_no_fault() -> None:
    """It is a message as others are."""
    assert marks(why(), row("fault", "wire outside>worker/2 45")) == [
        ("send", "control, outside to worker/2: 45 bytes", False)
    ]


def test_the_run_that_was_made_small_is_marked_and_numbered(small: Any) -> None:  # noqa: F811
    """What decides it is the kill after the acknowledgement; its event is the one by which a replay is stopped."""
    text = small.drawn["spacetime.txt"]
    lines = text.splitlines()
    assert lines[0].split()[:2] == ["event", "time"]
    assert [line.split(maxsplit=3)[-1].lstrip("│┬┴X! ") for line in lines if line.startswith(">")] == [
        "kill@ack:start",
        "worker#102 is killed",
        KIND,
    ]
    faults = [line for line in lines if " ! " in line and not line.startswith("  >")]
    assert all("kill@ack:start" in line or "is reset" in line for line in faults), faults
    assert text.endswith(drawn(Table((), ())).split("\n\n")[-1])
