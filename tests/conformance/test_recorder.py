"""The recorder's side of the services: what of a request and of an answer becomes part of the history."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import trio

from conformance.recorder import Recorder, canonical
from scenarios.history import Applied, Authority, Received, Replied, Stored
from simkit.services import Outside, Request, open_gate
from tests.service_rig import Caller, counted


def recorded(*asked: Request | Callable[[Outside], None], secrets: tuple[str, ...] = ()) -> list[Any]:
    """The events of run `r` in which these requests are made and these things done to the outside."""
    recorder = Recorder("r", lambda: 5)
    recorder.secrets = {f"s{n}": value for n, value in enumerate(secrets)}
    outside = Outside(counted(), recorder, lambda: 0)

    async def main() -> None:
        for one in asked:
            if isinstance(one, Request):
                await outside.serve(one, 3, open_gate, Caller())
            else:
                one(outside)

    trio.run(main)
    return recorder.events


@pytest.mark.parametrize(
    ("run", "op", "expected"),
    [
        ("r", "a", ("r", "a")),
        ("r/c", "a", ("r", "c/a")),
        ("r/c/d", "a@2", ("r", "c/d/a@2")),
        ("r2/c", "a", ("r2/c", "a")),
        ("crowd/1", "a", ("crowd/1", "a")),
    ],
)
def test_what_children_send_is_recorded_as_the_plan_names_it(run: str, op: str, expected: tuple[str, str]) -> None:
    """A child's operations are the run's, by a path; runs beside this one keep their names. The services see the real run."""
    assert canonical("r", Request("ledger", run, op)) == expected
    received, applied, replied = recorded(Request("ledger", run, op, f"{run}:{op}"))
    assert (received.run, received.op, received.key) == (*expected, f"{run}:{op}")
    assert (applied, replied.nonce) == (Applied(5, 1, 1, "n1"), "n1")


def test_everything_a_request_brings_is_recorded() -> None:
    """Token, time left, subject and part stand in the history; a request that brings none of them says so."""
    full = Request(
        "checker",
        "r",
        "c",
        token=7,
        remaining_ns=-1,
        subject="report",
        version=2,
        digest="ab",
        part=3,
        script=("failed",),
    )
    received, _, replied = recorded(full)
    assert isinstance(received, Received)
    assert (received.token, received.remaining_ns, received.part) == (7, -1, 3)
    assert received.subject == "report@2#ab"
    assert replied == Replied(5, 1, 200, "executed", "n1", "sent", usage=None, external="req-000001", outcome="failed")
    received, _, replied = recorded(Request("model", "r", "m", params={"uses": 9}))
    assert (received.token, received.remaining_ns, received.subject, received.part) == (None, None, None, None)
    assert (replied.usage, replied.outcome) == (9, None)


@pytest.mark.parametrize(("brought", "counts"), [("hush", True), ("[redacted]", False), (None, False)])
def test_only_the_secret_that_was_entrusted_counts_and_it_is_not_recorded(brought: str | None, counts: bool) -> None:
    """A request that brings something else instead has not brought its secret; no event holds the value."""
    events = recorded(Request("mailer", "r", "a", secret=brought), secrets=("other", "hush"))
    assert events[0].secret is counts
    assert "hush" not in repr(events)


def test_the_stores_facts_and_changes_of_authority_are_recorded() -> None:
    """In the order in which they came true, between the answers to requests."""
    put = {"action": "put", "location": "r/report/1", "parts": 1, "data": ""}
    events = recorded(
        Request("store", "r", "a", params=put, part=1),
        lambda outside: outside.revoke("alice"),
        Request("store", "r", "a", params={"action": "abort", "location": "r/report/1"}),
        lambda outside: outside.grant("alice"),
    )
    assert [event for event in events if isinstance(event, Stored | Authority)] == [
        Stored(5, "r/report/1", "staged"),
        Authority(5, "alice", granted=False),
        Stored(5, "r/report/1", "removed"),
        Authority(5, "alice", granted=True),
    ]
    assert not any(isinstance(event, Applied) for event in events)
