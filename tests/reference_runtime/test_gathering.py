"""Requests that are ready at once share a transaction: one sync for all, each undone by itself, and nobody told before it."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable

import apsw
import pytest
import trio
import trio.testing

from reference_runtime import Refusal, Server, Store, Unreachable, embedded, views
from reference_runtime.embedded import Embedded
from reference_runtime.log import Log
from reference_runtime.model import Grant, Json
from tests.runtime_rig import MS, call, par, plan, states

CALLS = 6


@pytest.fixture
def store(tmp_path):
    opened = Store.open(str(tmp_path / "s.db"))
    yield opened
    opened.close()


def commits(store: Store) -> list[str]:
    """The commits from now on, as they come."""
    made: list[str] = []
    store.db.trace_v2(
        apsw.SQLITE_TRACE_STMT, lambda traced: made.append(traced["sql"]) if traced["sql"] == "COMMIT" else None
    )
    return made


async def tickets(handle: Embedded) -> tuple[str, list[Json]]:
    """A worker's execution with every call of a fan-out in hand."""
    await handle.submit("t", plan(par(*(call(f"s{number}") for number in range(CALLS)))))
    execution = (await handle.call("hello", {"name": "w", "code": {"version": "7"}}))["execution"]
    claimed = await handle.call("claim", {"execution": execution, "holding": [], "limit": CALLS})
    return execution, claimed["tickets"]


def report(execution: str, ticket: Json, **more: object) -> Json:
    grant = {name: ticket[name] for name in ("attempt", "operation", "generation", "version")} | more
    return {
        "grant": grant, "report": "succeeded", "answer": {"nonce": f"n-{ticket['operation']}"}, "detail": "", "facts": {},
        "execution": execution, "limit": 0,
    }  # fmt: skip


def test_reports_at_once_are_one_commit(store):
    """All of them are taken, in their places, by a single sync."""

    async def main():
        async with embedded(Server(store)) as handle:
            execution, held = await tickets(handle)
            made = commits(store)
            async with trio.open_nursery() as nursery:
                for ticket in held:
                    nursery.start_soon(handle.call, "settle", report(execution, ticket))
            assert len(made) == 1
            status = await handle.status("t")
            assert (status["state"], status["result"]) == ("done", {f"s{n}": f"n-s{n}" for n in range(CALLS)})

    trio.run(main)
    numbers = [
        number for (number,) in store._rows("SELECT sequence FROM transition WHERE task = 't' ORDER BY sequence")
    ]
    assert numbers == list(range(1, len(numbers) + 1))


def test_nobody_is_told_before_the_commit(store):
    """Neither who reports nor who looks on meanwhile, whatever is read in between."""
    told: list[tuple[str, bool]] = []

    async def main():
        async with embedded(Server(store)) as handle, trio.open_nursery() as nursery:
            execution, held = await tickets(handle)

            async def ask(verb: str, params: Json) -> None:
                await handle.call(verb, params)
                told.append((verb, store.db.in_transaction))

            for ticket in held[:2]:
                nursery.start_soon(ask, "settle", report(execution, ticket))
            nursery.start_soon(ask, "status", {"task": "t"})
            nursery.start_soon(ask, "journal", {"task": "t"})
            nursery.start_soon(ask, "signal", {"task": "t", "id": "1", "name": "go", "payload": {"nonce": "n"}})

    trio.run(main)
    assert sorted(told) == [
        ("journal", False),
        ("settle", False),
        ("settle", False),
        ("signal", False),
        ("status", False),
    ]


def test_one_that_is_refused_takes_no_other_along(store):
    """Each is a part by itself: a stale word is kept as evidence, and the rest counts."""
    refused: list[str] = []

    async def main():
        async with embedded(Server(store)) as handle:
            execution, held = await tickets(handle)

            async def settle(ticket: Json, **more: object) -> None:
                try:
                    await handle.call("settle", report(execution, ticket, **more))
                except Refusal as no:
                    refused.append(no.code)

            made = commits(store)
            async with trio.open_nursery() as nursery:
                for ticket in held[:3]:
                    nursery.start_soon(settle, ticket)
                nursery.start_soon(lambda: settle(held[3], version=99))
                nursery.start_soon(lambda: settle(held[4], operation="nothing"))
            assert len(made) == 1
            told = states(await handle.status("t"))
            assert [told[f"s{number}"] for number in range(5)] == ["succeeded"] * 3 + ["dispatched"] * 2

    trio.run(main)
    assert sorted(refused) == ["stale", "unknown-operation"]
    assert store._value("SELECT count(*) FROM evidence") == 1


def test_a_server_that_ends_before_the_commit_has_told_nobody(store, monkeypatch):
    """What was shared is undone, and who waits for it learns that the server is gone."""
    gone: list[str] = []

    async def main():
        server = Server(store, lease_ns=1000 * MS)
        async with trio.open_nursery() as nursery, embedded(server) as handle:
            execution, held = await tickets(handle)
            monkeypatch.setattr(server, "_commit_soon", trio.sleep_forever)

            async def settle(ticket: Json) -> None:
                with pytest.raises(Unreachable):
                    await handle.call("settle", report(execution, ticket))
                gone.append(ticket["operation"])

            for ticket in held[:2]:
                nursery.start_soon(settle, ticket)
            await trio.testing.wait_all_tasks_blocked()
            assert store.db.in_transaction
        assert not store.db.in_transaction

    trio.run(main)
    assert sorted(gone) == ["s0", "s1"]
    assert set(states(views.status(store, "t")).values()) == {"dispatched"}


def test_a_failed_commit_ends_the_server(store, monkeypatch):
    """An error of the storage is nobody's answer: who waits learns that the server is gone."""

    def fail() -> None:
        raise apsw.IOError("no")

    async def main():
        async with embedded(Server(store)) as handle:
            execution, held = await tickets(handle)
            monkeypatch.setattr(store, "_commit_transaction", fail)
            async with trio.open_nursery() as nursery:
                for ticket in held[:2]:
                    nursery.start_soon(handle.call, "settle", report(execution, ticket))

    with pytest.raises(BaseExceptionGroup) as raised:
        trio.run(main)
    assert raised.group_contains(apsw.IOError)


def test_a_store_whose_commit_failed_keeps_nothing_of_it(store, monkeypatch):
    """What was to be told is told to nobody later, and what was shared is undone before another server is up."""

    def fail() -> None:
        raise apsw.IOError("no")

    async def main():
        async with embedded(Server(store)) as handle, trio.open_nursery() as nursery:
            execution, held = await tickets(handle)
            with monkeypatch.context() as broken:
                broken.setattr(store, "_commit_transaction", fail)
                for ticket in held[:2]:
                    nursery.start_soon(handle.call, "settle", report(execution, ticket))
                await trio.sleep_forever()

    with pytest.raises(BaseExceptionGroup):
        trio.run(main)
    assert not store.db.in_transaction

    async def again():
        async with embedded(Server(store)) as handle:
            told = states(await handle.status("t"))
            assert set(told.values()) == {"dispatched"}
            await handle.submit("u", plan(par(*(call(f"s{number}") for number in range(CALLS)))))

    trio.run(again)


def test_what_sqlite_undoes_by_itself_ends_the_server_with_its_own_error(store, monkeypatch):
    """A full disk is told as one, whatever is left of the transaction, and nobody is told that a part of it counts."""
    told: list[str] = []
    turn = store.turn

    def full(held: Grant, *rest: object, **more: object) -> object:
        if held.operation == "s0":
            return turn(held, *rest, **more)
        store.db.execute("ROLLBACK")  # as SQLite does where there is no room
        raise apsw.FullError("database or disk is full")

    async def main():
        async with embedded(Server(store)) as handle:
            execution, held = await tickets(handle)
            monkeypatch.setattr(store, "turn", full)

            async def settle(ticket: Json) -> None:
                await handle.call("settle", report(execution, ticket))
                told.append(ticket["operation"])

            async with trio.open_nursery() as nursery:
                for ticket in held[:3]:
                    nursery.start_soon(settle, ticket)

    with pytest.raises(BaseExceptionGroup) as raised:
        trio.run(main)
    assert raised.group_contains(apsw.FullError)
    assert not raised.group_contains(apsw.SQLError)
    assert told == []


def test_who_waits_is_let_go_also_where_undoing_fails(store, monkeypatch):
    """A server that cannot undo what is shared ends all the same, and with it the waiting."""
    gone: list[str] = []

    def fail() -> None:
        raise apsw.IOError("no")

    async def main():
        server = Server(store)
        async with trio.open_nursery() as nursery, embedded(server) as handle:
            execution, held = await tickets(handle)
            monkeypatch.setattr(server, "_commit_soon", trio.sleep_forever)
            monkeypatch.setattr(store, "abandon_shared", fail)

            async def settle() -> None:
                with trio.fail_after(1, shield=True), pytest.raises(Unreachable):
                    await handle.call("settle", report(execution, held[0]))
                gone.append("s0")

            nursery.start_soon(settle)
            await trio.testing.wait_all_tasks_blocked()

    with pytest.raises(BaseExceptionGroup) as raised:
        trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
    assert raised.group_contains(apsw.IOError)
    assert gone == ["s0"]


def test_whether_a_question_may_wait_is_settled_once(store, monkeypatch):
    """Who was not prepared to wait, and came to wait after all, would not be told that the server has ended."""
    late = iter([False, True])

    async def main():
        server = Server(store)
        async with embedded(server) as handle:
            monkeypatch.setattr(server, "is_late", lambda: next(late))
            await handle.call("ping", {})

    trio.run(main)
    assert list(late) == [True]


# -- a commit that is put off


def timed(main: Callable[[], Awaitable[None]]) -> None:
    """Run it by a clock that goes on only while everybody waits."""
    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


async def settle_later(handle: Embedded, execution: str, ticket: Json, after_s: float, told: list[float]) -> None:
    await trio.sleep(after_s)
    await handle.call("settle", report(execution, ticket))
    told.append(trio.current_time())


@pytest.mark.parametrize(("delay_ns", "count", "answered_ms"), [(0, 3, [0, 4, 9]), (10 * MS, 1, [10, 10, 10])])
def test_a_commit_that_is_put_off_is_joined_by_who_comes_meanwhile(store, delay_ns, count, answered_ms):
    """One sync for all of them, as long after the first as was set; without a delay each has its own."""

    async def main():
        async with embedded(Server(store, commit_delay_ns=delay_ns)) as handle:
            execution, held = await tickets(handle)
            made, told, begun = commits(store), list[float](), trio.current_time()
            async with trio.open_nursery() as nursery:
                for ticket, after_s in zip(held, (0, 0.004, 0.009), strict=False):
                    nursery.start_soon(settle_later, handle, execution, ticket, after_s, told)
            assert len(made) == count
            assert [round((at - begun) * 1000) for at in told] == answered_ms

    timed(main)


def test_who_looks_on_is_answered_after_the_commit_that_is_put_off(store):
    """A status, a word and a sign of life are about what is not durable yet, or may be."""
    told: list[tuple[str, int, bool]] = []

    async def main():
        async with embedded(Server(store, commit_delay_ns=10 * MS)) as handle, trio.open_nursery() as nursery:
            execution, held = await tickets(handle)
            begun = trio.current_time()

            async def ask(verb: str, params: Json) -> None:
                await trio.sleep(0.003)
                await handle.call(verb, params)
                told.append((verb, round((trio.current_time() - begun) * 1000), store.db.in_transaction))

            nursery.start_soon(settle_later, handle, execution, held[0], 0, [])
            nursery.start_soon(ask, "status", {"task": "t"})
            nursery.start_soon(ask, "signal", {"task": "t", "id": "1", "name": "go", "payload": {"nonce": "n"}})
            nursery.start_soon(
                ask, "heartbeat", {"execution": execution, "generations": [one["generation"] for one in held[1:]]}
            )

    timed(main)
    assert sorted(told) == [("heartbeat", 10, False), ("signal", 10, False), ("status", 10, False)]


def test_nobody_waits_for_others_who_cannot_come(store):
    """A report of the only lease there is, is a transaction of its own, whatever the delay."""

    async def main():
        async with embedded(Server(store, commit_delay_ns=50 * MS)) as handle:
            await handle.submit("t", plan(call("a")))
            execution = (await handle.call("hello", {"name": "w", "code": {"version": "7"}}))["execution"]
            claimed = await handle.call("claim", {"execution": execution, "holding": [], "limit": 1})
            begun = trio.current_time()
            await handle.call("settle", report(execution, claimed["tickets"][0]))
            assert trio.current_time() == begun

    timed(main)


def test_a_lease_that_ends_while_a_commit_is_put_off_is_taken_back_in_it(store):
    """What is due by a clock in the meantime is a part like any other, and a sign of life counts from when it came."""

    async def main():
        async with embedded(Server(store, lease_ns=200 * MS, commit_delay_ns=50 * MS)) as handle:
            execution, held = await tickets(handle)
            made, begun = commits(store), trio.current_time()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(settle_later, handle, execution, held[0], 0.18, [])
                await trio.sleep(0.19)
                alive = {"execution": execution, "generations": [held[1]["generation"]]}
                assert (await handle.call("heartbeat", alive))["lost"] == []
            assert (round((trio.current_time() - begun) * 1000), len(made)) == (230, 1)
            assert states(await handle.status("t"))["s1"] == "dispatched"
            assert {generation for generation, _ in store.leases()} == {held[1]["generation"]}

    timed(main)


def test_a_server_that_ends_while_a_commit_is_put_off_has_told_nobody(store):
    """What was shared is undone, and no file says otherwise."""
    gone: list[str] = []

    async def main():
        server = Server(store, commit_delay_ns=50 * MS)
        async with trio.open_nursery() as nursery, embedded(server) as handle:
            execution, held = await tickets(handle)

            async def settle(ticket: Json) -> None:
                with pytest.raises(Unreachable):
                    await handle.call("settle", report(execution, ticket))
                gone.append(ticket["operation"])

            for ticket in held[:2]:
                nursery.start_soon(settle, ticket)
            await trio.sleep(0.01)
            assert store.db.in_transaction
        assert not store.db.in_transaction

    timed(main)
    assert sorted(gone) == ["s0", "s1"]
    assert set(states(views.status(store, "t")).values()) == {"dispatched"}


@pytest.mark.parametrize("at_s", [0.002, 0.1], ids=["before the commit", "after it"])
def test_who_leaves_before_it_is_told_of_a_lease_holds_none(store, at_s):
    """What was leased to a request that waited, in a commit that is put off, is taken back like any other, and for good."""
    lines: list[Json] = []

    async def main():
        server = Server(
            store, lease_ns=400 * MS, commit_delay_ns=50 * MS, log=Log(lambda line: lines.append(json.loads(line)))
        )
        async with embedded(server) as handle, trio.open_nursery() as nursery:
            await handle.submit("t", plan(par(call("a"), call("b")), call("c")))
            held = (await handle.call("claim", {"execution": "w#1", "holding": [], "limit": 2}))["tickets"]
            nursery.start_soon(handle.call, "claim", {"execution": "w#2", "holding": [], "limit": 1})
            await trio.testing.wait_all_tasks_blocked()
            for ticket in held:
                nursery.start_soon(handle.call, "settle", report("w#1", ticket))
            await trio.sleep(at_s)
            ((generation, holder),) = store.leases()
            assert (holder, store.db.in_transaction) == ("w#2", at_s < 0.05)
            assert (await handle.call("release", {"execution": "w#2"}))["released"] == [generation]
            alive = await handle.call("heartbeat", {"execution": "w#2", "generations": [generation]})
            assert alive["lost"] == [generation]
            await trio.sleep(0.6)

    timed(main)
    assert [line["event"] for line in lines] == ["up", "left"]


def test_a_part_goes_by_nothing_that_was_read_before_it(store):
    """As a transaction of its own does not, though what looks on between two parts is inside the same one."""
    with store.sharing():
        store.submit("t", plan(call("a")))
    assert store._attempt("t.1").condition == "runnable"
    with store.sharing():
        store.db.execute("UPDATE attempt SET condition = 'blocked'")
        assert store._attempt("t.1").condition == "blocked"
    store.commit_shared()


def test_numbers_that_a_failed_part_took_ahead_are_given_out_once(store, tmp_path):
    """They were not taken after all: a store that is opened later would give them out again."""

    def claim_in_vain() -> None:
        with store.sharing():
            store.claim("w", [], 1)
            raise Refusal("never", "mind")

    store.submit("t", plan(par(*(call(f"s{number}") for number in range(CALLS)))))
    with pytest.raises(Refusal, match="never: mind"):
        claim_in_vain()
    (first,) = store.claim("w", [], 1)
    store.commit_shared()
    store.close()
    again = Store.open(str(tmp_path / "s.db"))
    (second,) = again.claim("v", [], 1)
    again.close()
    assert second.generation > first.generation


def test_a_server_that_is_up_again_knows_of_no_lease_that_was_undone(store):
    """Whose leases there are is what the store says, whatever was leased in a commit that never came."""
    lines: list[Json] = []

    async def main():
        server = Server(store, commit_delay_ns=50 * MS, log=Log(lambda line: lines.append(json.loads(line))))
        with trio.move_on_after(0.01):
            async with embedded(server) as handle, trio.open_nursery() as nursery:
                await handle.submit("t", plan(par(call("a"), call("b")), call("c")))
                held = (await handle.call("claim", {"execution": "w#1", "holding": [], "limit": 2}))["tickets"]
                for ticket in held:
                    nursery.start_soon(handle.call, "settle", {**report("w#1", ticket), "limit": 1})
        assert len(store.leases()) == 2
        async with embedded(server):
            pass

    timed(main)
    assert [line["leases"] for line in lines if line["event"] == "up"] == [0, 2]


@pytest.mark.parametrize(("delay_ns", "lease_ns"), [(-1, 1000 * MS), (101 * MS, 1000 * MS), (26 * MS, 100 * MS)])
def test_a_delay_by_which_answers_come_too_late_is_refused(store, delay_ns, lease_ns):
    """With what it may be."""
    with pytest.raises(Refusal, match=rf"bad-setting: .* it may be at most {min(100 * MS, lease_ns // 4) // MS}ms"):
        Server(store, lease_ns=lease_ns, commit_delay_ns=delay_ns)


# -- the log


def test_the_log_tells_of_nothing_that_is_not_durable_yet(store):
    """Who came, who left and what was taken back: as parts of a commit that others share, and alone."""
    told: list[tuple[str, bool]] = []
    log = Log(lambda line: told.append((json.loads(line)["event"], store.db.in_transaction)))

    async def main():
        async with embedded(Server(store, lease_ns=200 * MS, commit_delay_ns=50 * MS, log=log)) as handle:
            execution, held = await tickets(handle)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(settle_later, handle, execution, held[0], 0.18, [])
                await trio.sleep(0.19)
                nursery.start_soon(handle.call, "hello", {"name": "w", "code": {"version": "7"}})
                nursery.start_soon(handle.call, "release", {"execution": "another#7"})
            # the leases of all others have ended meanwhile
            await handle.call("claim", {"execution": "w#2", "holding": [], "limit": 1})
            await trio.sleep(0.3)

    timed(main)
    assert sorted(event for event, _ in told) == ["left", *["reclaimed"] * CALLS, "up", "welcomed", "welcomed"]
    assert [event for event, is_early in told if is_early] == []
