"""The list of tasks: what a line says, pages without a gap, and what one answer looks at."""

from __future__ import annotations

import json

import apsw
import pytest
import trio

from reference_runtime import Client, Refusal, Store, listing, views
from reference_runtime.listing import tasks
from reference_runtime.model import Json, Report
from reference_runtime.rpc import STATES, TASKS_MAX, parse_request
from tests.runtime_plans import claim, settle
from tests.runtime_rig import approve, call, plan, served, wait

AGENT = {"version": 1, "workflow": "agent", "input": None}
#: Ids whose order is not that of their attempts, whose ids go on with a dot: some signs sort before it, some after.
IDS = ["a", "a!", "a!!", "a-b", "a.", "a.1", "a.1.1", "a/b", "a0", "ab", "b", "b ä", "b\U0001f600", "b\uffee"]


def listed(store: Store, limit: int, state: str = "") -> list[str]:
    """The ids on all pages, each asked for by the cursor of the one before."""
    found: list[str] = []
    page = tasks(store, "", limit, state)
    while True:
        assert len(page["tasks"]) <= limit
        found += [one["task"] for one in page["tasks"]]
        if (after := page["next"]) is None:
            return found
        page = tasks(store, after, limit, state)
        assert page["next"] is None or page["next"] > after


def fill(store: Store) -> dict[str, str]:
    """Tasks of every state, by id."""
    store.submit("done", plan(call("a")))
    store.submit("failed", plan(call("a")))
    store.submit("unresolved", plan(call("a", "mailer")))
    reports: dict[str, Report] = {"done.1": "succeeded", "failed.1": "failed", "unresolved.1": "unknown"}
    for ticket in claim(store, 3):
        settle(store, ticket, reports[ticket.attempt])
    store.submit("cancelled", plan(call("a")))
    store.cancel("cancelled", "stop")
    store.submit("parked", AGENT)
    (turn,) = store.claim_turns("w#1", {"agent": "1"}, (), 1)
    store.park_turn(turn, "1", "diverged: here")
    store.submit("asking", plan(approve("ok", "a"), call("a")))
    store.submit("signal", plan(wait("w", "go"), call("a")))
    store.submit("paused", plan(wait("w", "go")))
    store.pause("paused", "p")
    store.submit("admitted", plan(call("a")))
    store.submit("workflow", AGENT)
    return {
        **{one: one for one in ("done", "failed", "cancelled")},
        **dict.fromkeys(("unresolved", "parked"), "blocked"),
        **dict.fromkeys(("asking", "signal", "paused"), "waiting"),
        **dict.fromkeys(("admitted", "workflow"), "running"),
    }


def test_a_line_says_what_the_status_says(store):
    """State, phase, reason and what is waited for; and of approvals those that are pending, by their ids."""
    filled = fill(store)
    page = tasks(store, "", 100, "")
    assert page["next"] is None
    assert [one["task"] for one in page["tasks"]] == sorted(filled)
    for line in page["tasks"]:
        full = views.status(store, line["task"])
        assert line["state"] == filled[line["task"]]
        assert {name: line[name] for name in ("state", "phase", "reason", "on")} == {
            name: full[name] for name in ("state", "phase", "reason", "on")
        }
        assert line["approvals"] == [one["operation"] for one in full["approvals"] if one["state"] == "pending"]
    by_id = {line["task"]: line for line in page["tasks"]}
    assert by_id["asking"] == {
        "task": "asking",
        "state": "waiting",
        "phase": "waiting",
        "reason": None,
        "on": "ok",
        "approvals": ["ok"],
    }
    assert (by_id["parked"]["reason"], by_id["signal"]["on"]) == ("diverged: here", "go")


@pytest.mark.parametrize("state", STATES)
def test_a_state_has_its_tasks(store, state):
    """All of them, and no others, however many are asked for at a time."""
    wanted = sorted(task for task, one in fill(store).items() if one == state)
    assert wanted
    for limit in (1, 2, 100):
        assert listed(store, limit, state) == wanted


def test_an_effect_that_nobody_can_establish_is_among_the_blocked(store):
    """With stranded work, which nobody who is there has the code for."""
    fill(store)
    store.db.execute("UPDATE attempt SET stranded = 'code-incompatible: 1' WHERE id = 'admitted.1'")
    assert listed(store, 100, "blocked") == ["admitted", "parked", "unresolved"]
    assert "admitted" not in listed(store, 100, "running")


@pytest.mark.parametrize("state", ["", "waiting"])
def test_pages_go_on_without_a_gap(store, monkeypatch, state):
    """In the order of ids, whatever signs these have, however few are shown or looked at; each once."""
    for id_ in reversed(IDS):
        store.submit(id_, plan(wait("w", "go")))
    for looked_at in (1, 2, 3, 5, 100):
        monkeypatch.setattr(listing, "LOOKED_AT_MAX", looked_at)
        for limit in (1, 2, 3, 100):
            assert listed(store, limit, state) == sorted(IDS), (looked_at, limit)


def test_what_comes_in_between_is_seen_where_it_belongs(store):
    """A task that is new by then is on a later page when its id comes later."""
    for id_ in ("a", "b", "d"):
        store.submit(id_, plan(call("x")))
    first = tasks(store, "", 2, "running")
    store.submit("c", plan(call("x")))
    assert first["next"] == "b"
    assert [one["task"] for one in tasks(store, "b", 2, "running")["tasks"]] == ["c", "d"]


def test_one_answer_looks_at_a_bounded_number(store, monkeypatch):
    """A page may be empty; it says where to go on, and does not read what comes after that."""
    monkeypatch.setattr(listing, "LOOKED_AT_MAX", 2)
    for id_ in ("a", "b", "c"):
        store.submit(id_, plan(wait("w", "go")))
    store.submit("d", plan(call("x")))
    for state in ("running", "done"):
        assert tasks(store, "", 100, state) == {"tasks": [], "next": "b"}
    assert [one["task"] for one in tasks(store, "b", 100, "running")["tasks"]] == ["d"]


def test_the_living_are_found_without_the_dead(store):
    """However many tasks have ended, what it takes to list those that have not stays, but for a step to find the place."""
    store.submit("m", plan(wait("w", "go")))

    def steps() -> int:
        counted: list[int] = []
        store.db.trace_v2(
            apsw.SQLITE_TRACE_PROFILE, lambda event: counted.append(event["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"])
        )
        assert [one["task"] for one in tasks(store, "", 100, "waiting")["tasks"]] == ["m"]
        store.db.trace_v2(0)
        assert counted
        return sum(counted)

    alone = steps()
    with store.together():
        for number in range(100):
            store.submit(f"a{number}", plan(call("x")))
            store.cancel(f"a{number}", "stop")
            store.submit(f"z{number}", plan(call("x")))
            store.cancel(f"z{number}", "stop")
    assert len(listed(store, 500, "cancelled")) == 200
    assert steps() - alone < 10


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"state": "sleeping"}, f"bad-request: tasks: unknown state 'sleeping'; there are {', '.join(STATES)}"),
        ({"limit": 0}, f"bad-request: tasks: limit must be 1 to {TASKS_MAX}; got 0"),
        ({"limit": TASKS_MAX + 1}, f"bad-request: tasks: limit must be 1 to {TASKS_MAX}; got 501"),
        ({"limit": -1}, "bad-request: tasks: limit must be 0 or more"),
    ],
)
def test_what_cannot_be_listed_is_refused(tmp_path, asked, said):
    """By name, with what there is; the server goes on."""

    async def main() -> None:
        async with served(tmp_path / "s.db") as (server, port), Client("127.0.0.1", port) as client:
            server.store.submit("t", plan(call("a")))
            with pytest.raises(Refusal) as refused:
                await client.tasks(**asked)
            assert str(refused.value).startswith(said)
            assert [one["task"] for one in (await client.tasks())["tasks"]] == ["t"]

    trio.run(main)


def test_every_field_is_asked_for():
    """As of any verb: what is left out is named."""
    line: Json = {"id": 1, "verb": "tasks", "params": {"after": "", "limit": 1}}
    with pytest.raises(Refusal, match="tasks: state must be str"):
        parse_request(json.dumps(line).encode())
