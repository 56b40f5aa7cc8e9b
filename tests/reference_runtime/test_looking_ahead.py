"""Looking ahead: a worker reports how a workflow goes on together with the result it goes on with, and both are one commit.

What a function came to before its result was durable counts only if the store comes to the same: else it was never told.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from reference_runtime import Client, Store, Worker, runner
from reference_runtime.model import Json, Ticket
from reference_runtime.turns import Turn, accepted
from reference_runtime.workflow import Context, workflow
from tests.reference_runtime.test_waiting import Commits
from tests.runtime_plans import child
from tests.runtime_rig import DEADLINE_S, EAGER, FakeTools, call, served, states, under, until

WORK: Json = {"version": 1, "workflow": "agent", "input": None}
ANSWER = {"nonce": "n1"}


@workflow("agent")
async def pair(ctx: Context, _: Any) -> str:
    first = await ctx.call("ledger", {"n": 1}, id="a")
    second = await ctx.call("reader", {"after": first["nonce"]}, id="b")
    return str(second["nonce"])


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    one = Store.open(str(tmp_path / "s.db"), policy=EAGER)
    yield one
    one.close()


def begun(store: Store) -> tuple[runner.Warm, Ticket, Turn]:
    """A workflow that waits for its first call, the call's ticket, and the turn that its result will make due."""
    store.submit("t", WORK)
    turn = store.claim_turns("w#1", {"agent": "1"}, (), 1)[0]
    warm = runner.begin(pair, {"task": "t", "input": None, "segment": 1, "commands": []})
    said = runner.advance(warm, [])
    assert store.take_turn(turn, "1", said["commands"], said["end"], "w#1") == (None, None)
    (ticket,) = store.claim("w#1", (), 1)
    assert isinstance(ticket, Ticket)
    return warm, ticket, attrs.evolve(turn, length=1, outcomes=1, generation=0)


def settle(store: Store, ticket: Ticket, turn: Turn, said: Json, told: Json | None = None) -> tuple[list, list]:
    """Report a call's result with how its workflow goes on; what was leased, and what came of going on."""
    found: list[tuple[bool, Turn | None]] = []
    told = told or accepted(ticket.operation, ANSWER)

    def going_on() -> None:
        found.append(store.go_on(turn, told, "1", said["commands"], said["end"], "w#1"))

    rejected, leases = store.turn(under(ticket), "succeeded", ANSWER, "", execution="w#1", limit=1, going_on=going_on)
    assert rejected is None
    return leases, found


def test_result_and_next_operation_are_one_commit(store):
    """The result is accepted, what the workflow asks for next is there and leased, and no turn is owed to anybody."""
    warm, ticket, turn = begun(store)
    said = runner.advance(warm, [accepted("a", ANSWER)])
    commits = Commits(store)
    leases, found = settle(store, ticket, turn, said)
    assert (found, [one.operation for one in leases], commits.count) == ([(True, None)], ["b"], 1)
    assert store.claim_turns("w#1", {"agent": "1"}, (), 1) == []
    warm.replay.close()


def test_a_repeated_report_goes_on_once(store):
    """The answer was lost: the same report gives the same leases, and nothing is asked for again."""
    warm, ticket, turn = begun(store)
    said = runner.advance(warm, [accepted("a", ANSWER)])
    first, _ = settle(store, ticket, turn, said)
    again, found = settle(store, ticket, turn, said)
    assert (again, found) == (first, [])
    warm.replay.close()


@pytest.mark.parametrize("change", [{"length": 0}, {"length": 2}, {"outcomes": 2}, {"segment": 2}])
def test_another_history_is_not_gone_on_with(store, change):
    """A function at another place than the store: its result counts, what it asks for does not, and its turn is due."""
    warm, ticket, turn = begun(store)
    said = runner.advance(warm, [accepted("a", ANSWER)])
    leases, found = settle(store, ticket, attrs.evolve(turn, **change), said)
    assert (leases, found) == ([], [(False, None)])
    _assert_due(store, warm)


def test_another_result_is_not_gone_on_with(store):
    """A function that was told something else than what was accepted was told nothing."""
    warm, ticket, turn = begun(store)
    other = accepted("a", {"nonce": "other"})
    leases, found = settle(store, ticket, turn, runner.advance(warm, [other]), other)
    assert (leases, found) == ([], [(False, None)])
    _assert_due(store, warm)


def test_what_cannot_be_asked_for_leaves_the_result(store):
    """Of commands that are refused nothing is left, not even those before the wrong one; the result is kept."""
    warm, ticket, turn = begun(store)
    said = runner.advance(warm, [accepted("a", ANSWER)])
    twice = [*said["commands"], {**said["commands"][0], "sequence": 3}]
    leases, found = settle(store, ticket, turn, {**said, "commands": twice})
    assert (leases, found) == ([], [(False, None)])
    _assert_due(store, warm)


def test_a_child_that_is_undone_leaves_the_result(store):
    """Also where a child was admitted before the wrong command: it was never there, and its owner's turn is due."""
    warm, ticket, turn = begun(store)
    said = runner.advance(warm, [accepted("a", ANSWER)])
    version, leaf = store._value("SELECT version FROM task"), child("k", call("x"))
    admitted = {**said["commands"][0], "kind": "child", "id": "k", "spec": leaf}
    leases, found = settle(store, ticket, turn, {**said, "commands": [admitted, *said["commands"], admitted]})
    assert (leases, found) == ([], [(False, None)])
    assert store._rows("SELECT id, version FROM task") == [("t", version + 1)]
    _assert_due(store, warm)


def _assert_due(store: Store, warm: runner.Warm) -> None:
    assert store._rows("SELECT id, state FROM operation ORDER BY position") == [("a", "succeeded")]
    (turn,) = store.claim_turns("w#1", {"agent": "1"}, (), 1)
    assert (turn.segment, turn.length, turn.outcomes) == (1, 1, 1)
    warm.replay.close()


def test_a_stopped_workflow_asks_for_nothing_more(store):
    """A stop came first: the result counts, and what was to follow it does not begin."""
    warm, ticket, turn = begun(store)
    store.cancel("t", "c1")
    leases, found = settle(store, ticket, turn, runner.advance(warm, [accepted("a", ANSWER)]))
    assert (leases, found) == ([], [(False, None)])
    assert store._value("SELECT outcome FROM attempt") == "cancelled"
    warm.replay.close()


STEPS = 6


@workflow("agent")
async def chain(ctx: Context, _: Any) -> list[str]:
    return [(await ctx.call("ledger", {"n": n}))["nonce"] for n in range(STEPS)]


def _run(path: Path, tools: FakeTools) -> tuple[Json, list, int]:
    """One chain by one worker: its status, its history, and how often the store committed after the task was admitted."""

    async def main() -> tuple[Json, list, int]:
        async with served(path) as (server, port), Client("127.0.0.1", port) as client, trio.open_nursery() as nursery:
            await client.submit("t", WORK)
            commits = Commits(server.store)
            with trio.fail_after(DEADLINE_S):
                nursery.start_soon(Worker(Client("127.0.0.1", port), tools, workflows=[chain]).run)
                status = await until(client, "t", "done")
            nursery.cancel_scope.cancel()
            history = server.store._rows("SELECT number, sequence, kind, id FROM command_history ORDER BY number")
        return status, history, commits.count

    return trio.run(main)


def test_a_step_of_a_chain_is_one_commit(tmp_path):
    """Beside its steps a chain costs a greeting, its first turn, the lease of that and of its first call, and its delivery."""
    _, _, commits = _run(tmp_path / "s.db", FakeTools())
    assert commits <= STEPS + 5


def test_who_is_never_believed_comes_to_the_same(tmp_path, monkeypatch):
    """With every look ahead in vain, each call is made once and the history is the same."""
    ahead, tools = _run(tmp_path / "a.db", FakeTools()), FakeTools()
    monkeypatch.setattr(Store, "go_on", lambda *_: (False, None))
    status, history, commits = _run(tmp_path / "b.db", tools)
    assert history == ahead[1]
    assert states(status) == states(ahead[0])
    assert len(tools.effects) == STEPS
    assert commits > ahead[2]
