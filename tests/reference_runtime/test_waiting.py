"""Who waits for work is served in the transaction that makes it: one commit, told after it, and nothing where it was undone."""

from __future__ import annotations

import attrs
import pytest
import trio
import trio.testing

from reference_runtime import Client, Refusal, Server, Store
from reference_runtime.documents import replayed
from reference_runtime.waiting import Waiting, give, leased
from tests.runtime_rig import EAGER, MS, call, plan, served


class Commits:
    """Counts what a store commits."""

    def __init__(self, store: Store) -> None:
        self.count = 0
        store.db.set_commit_hook(self._committed)

    def _committed(self) -> bool:
        self.count += 1
        return False


def _ask(holding: tuple[int, ...] = ()) -> dict:
    return {"execution": "w#1", "holding": list(holding), "limit": 4}


def _ask_turns() -> dict:
    return {**_ask(), "codes": {"interpret": "1"}, "warm": {}, "batch": 0}


@pytest.mark.parametrize(
    ("verb", "ask", "document", "what"),
    [
        ("claim", _ask(), plan(call("a")), "tickets"),
        ("claim_turns", _ask_turns(), replayed(plan(call("a"))), "turns"),
    ],
)
def test_one_commit_admits_and_leases(tmp_path, verb, ask, document, what):
    """A request that waits is answered from the very transaction that admits a task."""
    answers: list[dict] = []

    async def main():
        async with served(tmp_path / "s.db") as (server, port), Client("127.0.0.1", port) as client:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_answer, client, verb, ask, answers)
                await trio.testing.wait_all_tasks_blocked(0.05)
                commits = Commits(server.store)
                await server.submit("t", document)
            assert [len(answers), len(answers[0][what]), commits.count] == [1, 1, 1]
            assert server.store.leases() == [(answers[0][what][0]["generation"], "w#1")]

    trio.run(main)


async def _answer(client: Client, verb: str, ask: dict, answers: list) -> None:
    answers.append(await client.call(verb, ask))


def _undone(server: Server, waiting: Waiting) -> None:
    """A transaction that leases something to who waits, and then fails."""
    with server.store.together():
        server.store.submit("t", plan(call("a")))
        assert server._work.take()[waiting]
        raise RuntimeError


def test_what_is_undone_is_not_given(tmp_path):
    """Where the transaction comes to nothing, so do its leases, and who waits goes on waiting."""

    async def main():
        server = Server(Store.open(str(tmp_path / "s.db"), policy=EAGER))
        with server._work.waits("w#1", lambda: server.store.claim("w#1", [], 4)) as waiting:
            with pytest.raises(RuntimeError):
                _undone(server, waiting)
            assert (waiting.leases, server.store.leases()) == ([], [])
            await server.submit("t", plan(call("a")))
            assert [lease.operation for lease in waiting.leases] == ["a"]
        server.store.close()

    trio.run(main)


def test_who_hung_up_is_given_nothing(tmp_path):
    """A request that was given up waits no longer, and the next one gets the work."""

    async def main():
        async with served(tmp_path / "s.db") as (server, port), Client("127.0.0.1", port) as client:
            with trio.move_on_after(0.05):
                await client.call("claim", _ask())
            await trio.testing.wait_all_tasks_blocked(0.05)
            await server.submit("t", plan(call("a")))
            assert server.store.leases() == []
            assert len((await client.call("claim", _ask()))["tickets"]) == 1

    trio.run(main)


def test_a_turn_is_kept_while_its_history_is_told(tmp_path):
    """Who asks for more of a turn's history is alive: its term begins anew each time, however long all of that takes."""
    clock = trio.testing.MockClock()

    async def main():
        async with served(tmp_path / "s.db", lease_ns=10_000 * MS) as (_, port), Client("127.0.0.1", port) as client:
            await client.submit("t", replayed(plan(call("a"))))
            (turn,) = (await client.call("claim_turns", _ask_turns()))["turns"]
            more = {"generation": turn["generation"], "known": [], "batch": 1}
            for _ in range(4):
                clock.jump(4)
                assert (await client.call("tell_more", more))["generation"] == turn["generation"]
                await client.status("t")
            for seconds in (4, 4, 2.1):
                clock.jump(seconds)
                await client.status("t")
            with pytest.raises(Refusal, match="owns no turn"):
                await client.call("tell_more", more)

    trio.run(main, clock=clock)


@attrs.frozen
class _Lease:
    generation: int


def test_what_was_given_back_meanwhile_is_told_to_nobody():
    """Of two leases of one commit the one that is still held is told, to the request that it was leased to."""
    first, second = Waiting[_Lease]("w#1", list), Waiting[_Lease]("w#2", list)
    taken = {first: [_Lease(1), _Lease(2)], second: [_Lease(3)]}
    assert leased(taken) == [(1, "w#1"), (2, "w#1"), (3, "w#2")]
    assert give(taken, {2, 4}) == [(2, "w#1")]
    assert (first.leases, second.leases) == ([_Lease(2)], [])


def test_who_wants_nothing_is_answered_at_once(tmp_path, monkeypatch):
    """However much there is to do: to look again and again whether it is due would take the server's time from all others."""
    looks: list[int | None] = []

    async def main():
        async with served(tmp_path / "s.db") as (server, port), Client("127.0.0.1", port) as client:
            await client.submit("t", plan(call("a")))
            look = server.store.next_work_ns

            def looked(*execution: str) -> int | None:
                looks.append(look(*execution))
                return looks[-1]

            monkeypatch.setattr(server.store, "next_work_ns", looked)
            assert (await client.call("claim", {**_ask(), "limit": 0}))["tickets"] == []

    trio.run(main)
    assert looks == []
