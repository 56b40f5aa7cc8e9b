"""The standard library's sqlite3 on the simulated disk: durable as far as it is synced, killed, repeatable."""

from __future__ import annotations

import sqlite3
import threading
from typing import Any

import pytest
import trio

import simkit
from simkit import Tape, World, threaded
from simkit._sqlite import stdlib
from simkit.errors import SimkitError

pytestmark = pytest.mark.skipif(
    stdlib._library() is None, reason="NOT TESTED: the SQLite of this Python's sqlite3 does not show its functions"
)


def simulate(main: Any, seed: int = 0, **options: Any) -> Any:
    tape = Tape.from_seed(seed)
    return simkit.run(main, tape=tape, strategy=simkit.RandomWalk(tape.stream("schedule")), **options)


def count_up(times: int = 3) -> int:
    database = sqlite3.connect("/count.db", isolation_level=None)
    database.execute("PRAGMA synchronous = EXTRA")
    database.execute("CREATE TABLE IF NOT EXISTS count (n INTEGER)")
    for _ in range(times):
        database.execute("INSERT INTO count VALUES (1)")
    found = database.execute("SELECT count(*) FROM count").fetchone()[0]
    database.close()
    return int(found)


def test_a_database_lives_on_the_disk_of_its_host() -> None:
    """What one process wrote the next one reads; another host has its own."""

    async def program() -> int:
        return count_up()

    async def main(world: World) -> list[int]:
        desk, other = world.host("desk"), world.host("other")
        statuses = [await host.start(program).wait() for host in (desk, desk, other)]
        assert all(status.error is None for status in statuses), statuses
        assert desk.disk.exists("/count.db")
        return [status.value for status in statuses]

    outcome = simulate(main)
    assert outcome.unwrap() == [3, 6, 3]
    assert outcome.boundaries["desk"] > 20
    assert simulate(main).digest == outcome.digest


def test_acknowledged_commits_survive_a_power_loss_anywhere() -> None:
    """At each boundary, with everything unsynced lost: what was acknowledged is there again."""

    def run(strike: Any = None) -> Any:
        acknowledged: list[int] = []

        async def program() -> None:
            database = sqlite3.connect("/count.db", isolation_level=None)
            database.execute("PRAGMA synchronous = EXTRA")
            database.execute("CREATE TABLE IF NOT EXISTS count (n INTEGER)")
            for number in range(3):
                database.execute("INSERT INTO count VALUES (?)", (number,))
                acknowledged.append(number)
                await trio.sleep(1)

        async def reader() -> list[int]:
            database = sqlite3.connect("/count.db")
            try:
                return [row[0] for row in database.execute("SELECT n FROM count ORDER BY n")]
            except sqlite3.OperationalError:
                return []

        async def main(world: World) -> tuple[list[int], list[int]]:
            host = world.host("desk")
            if strike is not None:
                host.at_boundary(strike.number, lambda: host.power_loss("lose"))
            await host.start(program).wait()
            status = await host.start(reader).wait()
            assert status.error is None, status
            return list(acknowledged), status.value

        return simulate(main)

    probe = run()
    assert probe.unwrap() == ([0, 1, 2], [0, 1, 2])
    lost = []
    for point, outcome in simkit.crash_everywhere(probe, run):
        acknowledged, found = outcome.unwrap()
        if not set(acknowledged) <= set(found):
            lost.append(point)
    assert not lost


def test_connections_lock_each_other_out() -> None:
    """Two connections of one host: the second writer is told that the database is locked."""

    async def program() -> str:
        first, second = (sqlite3.connect("/x.db", isolation_level=None, timeout=0.1) for _ in range(2))
        first.execute("CREATE TABLE t (n)")
        first.execute("BEGIN IMMEDIATE")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            second.execute("BEGIN IMMEDIATE")
        first.execute("COMMIT")
        second.execute("BEGIN IMMEDIATE")
        return "in turn"

    async def main(world: World) -> Any:
        status = await world.host("desk").start(program).wait()
        if status.error is not None:
            raise status.error
        return status.value

    assert simulate(main).unwrap() == "in turn"


def test_wal_needs_an_exclusive_lock() -> None:
    """There is no shared memory; with an exclusive lock WAL works."""

    async def program() -> list[str]:
        shared, alone = sqlite3.connect("/shared.db"), sqlite3.connect("/alone.db")
        alone.execute("PRAGMA locking_mode = EXCLUSIVE")
        modes = [one.execute("PRAGMA journal_mode = WAL").fetchone()[0] for one in (shared, alone)]
        alone.execute("CREATE TABLE t (n)")
        return modes

    async def main(world: World) -> Any:
        return (await world.host("desk").start(program).wait()).value

    assert simulate(main).unwrap() == ["delete", "wal"]


def test_threads_share_it() -> None:
    """A program of threads, each with a connection of its own."""

    def program() -> int:
        threads = [threading.Thread(target=count_up, args=(2,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return count_up(0)

    async def main(world: World) -> Any:
        status = await world.host("desk").start(threaded.run, program).wait()
        if status.error is not None:
            raise status.error
        return status.value

    for seed in range(3):
        assert simulate(main, seed).unwrap() == 6


def test_a_thread_that_finds_the_database_locked_waits_while_others_go_on() -> None:
    """With SQLite's own busy timeout, as on a real machine; and no longer than that."""

    def program() -> tuple[list[str], int]:
        told: list[str] = []
        sqlite3.connect("/shared.db").execute("CREATE TABLE log (who TEXT)")

        def write(who: str, hold_s: float) -> None:
            database = sqlite3.connect("/shared.db", timeout=2, isolation_level=None)
            try:
                database.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                told.append(str(error))
                return
            database.execute("INSERT INTO log VALUES (?)", (who,))
            threaded.in_trio(trio.sleep, hold_s)
            database.execute("COMMIT")

        def together(*holds_s: float) -> None:
            threads = [threading.Thread(target=write, args=(f"w{n}", hold_s)) for n, hold_s in enumerate(holds_s)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

        together(0.5, 0.5, 0.5)
        assert told == []
        together(50, 50)
        return told, sqlite3.connect("/shared.db").execute("SELECT count(*) FROM log").fetchone()[0]

    async def main(world: World) -> Any:
        return (await world.host("desk").start(threaded.run, program).wait()).value

    for seed in range(3):
        outcome = simulate(main, seed)
        assert outcome.unwrap() == (["database is locked"], 4)
        assert simulate(main, seed).digest == outcome.digest


def test_time_and_chance_are_the_worlds() -> None:
    """`datetime('now')` is the host's clock, `random()` the tape's."""

    async def program() -> tuple[str, int]:
        database = sqlite3.connect("/x.db")
        return database.execute("SELECT datetime('now'), random()").fetchone()

    async def main(world: World) -> Any:
        await trio.sleep(3600)
        return (await world.host("desk").start(program).wait()).value

    first, again, other = (simulate(main, seed).unwrap() for seed in (1, 1, 2))
    assert first == again
    assert first[1] != other[1]
    assert first[0] == other[0]


def test_outside_a_process_it_is_refused_and_after_the_run_it_is_real(tmp_path: Any) -> None:
    """The outside has no disk; when the run is over, paths are the machine's again."""

    async def main(_world: World) -> None:
        sqlite3.connect("/x.db")

    with pytest.raises(SimkitError, match="process of a host"):
        simulate(main).unwrap()
    database = sqlite3.connect(tmp_path / "real.db")
    database.execute("CREATE TABLE t (n)")
    database.commit()
    database.close()
    assert (tmp_path / "real.db").stat().st_size > 0
