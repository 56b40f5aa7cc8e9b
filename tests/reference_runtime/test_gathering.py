"""Requests that are ready at once share a transaction: one sync for all, each undone by itself, and nobody told before it."""

from __future__ import annotations

import apsw
import pytest
import trio
import trio.testing

from reference_runtime import Refusal, Server, Store, Unreachable, embedded, views
from reference_runtime.embedded import Embedded
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
