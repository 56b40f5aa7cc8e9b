"""SQLite on the simulated disk: determinism, locks, errors, and what must never touch the disk again."""

from __future__ import annotations

import gc
import subprocess
import sys
import textwrap
from typing import Any

import apsw
import pytest
import trio

from simkit.disk import Disk, ProcessDead
from simkit.process import current_process
from simkit.world import Host, World
from tests.simkit.rig import PATH, on, opened, outcome_of, simulate

EXCLUSIVE = "PRAGMA locking_mode=EXCLUSIVE"


def test_the_same_seed_gives_a_byte_identical_database() -> None:
    """random(), randomblob() and 'now' come from the tape and the world's clock."""

    def write() -> list[Any]:
        connection = opened("WAL", "FULL")
        connection.execute("CREATE TABLE t(a, b, c)")
        for _ in range(20):
            connection.execute(
                "INSERT INTO t VALUES(random(), hex(randomblob(8)), strftime('%Y-%m-%d %H:%M:%f','now'))"
            )
        return list(connection.execute("SELECT * FROM t LIMIT 1"))

    async def main(world: World) -> tuple[str, list[Any]]:
        await world.sleep_ns(1_500_000_000)
        rows = await on(world.host("a"), write)
        return world.host("a").disk.digest(), rows

    results = []
    for seed in (5, 5, 6):
        apsw.randomness(8)  # what SQLite did before must not matter
        results.append(simulate(main, seed))
    first, second, other = results
    assert first == second
    assert first[0] != other[0]
    assert first[1][0][2] == "2026-01-01 00:00:01.500"


def test_wal_needs_exclusive_locking_and_says_so() -> None:
    """Without shared memory the pragma answers delete; a program that checks the answer is warned."""

    def ask() -> object:
        return apsw.Connection(PATH).execute("PRAGMA journal_mode=WAL").get

    async def main(world: World) -> object:
        return await on(world.host("a"), ask)

    assert simulate(main) == "delete"


def test_lock_levels_hold_between_connections_and_processes() -> None:
    """One writer at a time, readers beside it, none while it commits: as on a real file."""

    def scene(host: Host) -> list[str]:
        one, two, three = (opened("DELETE", "FULL") for _ in range(3))
        told = []

        def attempt(who: apsw.Connection, sql: str) -> None:
            try:
                who.execute(sql).fetchall()
                told.append("ok")
            except apsw.BusyError:
                told.append("busy")

        one.execute("CREATE TABLE t(a)")
        attempt(one, "BEGIN IMMEDIATE")  # reserved
        attempt(one, "INSERT INTO t VALUES(1)")
        attempt(two, "BEGIN IMMEDIATE")  # refused
        attempt(two, "BEGIN; SELECT * FROM t")  # shared, beside reserved
        attempt(one, "COMMIT")  # pending: waits for the reader
        attempt(three, "PRAGMA user_version")  # no new readers while it waits
        attempt(two, "COMMIT")
        attempt(one, "COMMIT")
        attempt(two, "SELECT * FROM t")
        attempt(one, "BEGIN EXCLUSIVE")
        attempt(two, "SELECT * FROM t")
        return told

    async def main(world: World) -> list[str]:
        host = world.host("a")
        return await on(host, lambda: scene(host))

    assert simulate(main) == ["ok", "ok", "busy", "ok", "busy", "busy", "ok", "ok", "ok", "ok", "busy"]


def test_busy_handlers_wait_in_no_time_and_are_accounted() -> None:
    """A busy timeout ends in BusyError without moving any clock: nobody else could run meanwhile."""

    async def main(world: World) -> int:
        def scene() -> None:
            one, two = apsw.Connection(PATH), apsw.Connection(PATH)
            two.set_busy_timeout(10_000)
            one.execute("BEGIN EXCLUSIVE")
            with pytest.raises(apsw.BusyError):
                two.execute("BEGIN IMMEDIATE")

        await on(world.host("a"), scene)
        return world.now_ns

    assert simulate(main) == 0


def test_locks_of_the_dead_are_free_at_once() -> None:
    """A process killed inside a transaction blocks nobody, and its half-done work is rolled back."""

    async def main(world: World) -> list[Any]:
        host = world.host("a")

        async def holder() -> None:
            connection = opened("DELETE", "FULL")
            connection.execute("CREATE TABLE t(a)")
            connection.execute("BEGIN EXCLUSIVE")
            connection.execute("INSERT INTO t VALUES(1)")
            connection.execute("PRAGMA cache_spill=1")
            await trio.sleep_forever()

        process = host.start(holder)
        await world.sleep_ns(1)
        process.kill()
        return await on(host, lambda: list(opened("DELETE", "FULL").execute("SELECT * FROM t")))

    assert simulate(main) == []


@pytest.mark.parametrize("journal", ["WAL", "DELETE", "PERSIST", "TRUNCATE"])
@pytest.mark.parametrize("hot", [True, False])
def test_connections_of_the_dead_never_touch_the_disk(journal: str, hot: bool) -> None:
    """Neither the death nor collecting the garbage nor a successor's work lets a dead connection write or delete."""
    kept: list[apsw.Connection] = []

    async def main(world: World) -> None:
        host = world.host("a")

        async def victim() -> None:
            connection = opened(journal, "FULL")
            connection.execute("CREATE TABLE t(a)")
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("INSERT INTO t VALUES(zeroblob(3000000))")
            if not hot:
                connection.execute("COMMIT")
            kept.append(connection)
            await trio.sleep_forever()

        process = host.start(victim)
        await world.sleep_ns(1)
        before = host.disk.digest(), host.disk.boundaries
        process.kill()
        gc.collect()
        assert (host.disk.digest(), host.disk.boundaries) == before

        def successor() -> None:
            rows = list(opened(journal, "FULL").execute("SELECT length(a) FROM t"))
            assert rows == ([] if hot else [(3000000,)])
            state = host.disk.digest(), host.disk.boundaries
            with pytest.raises((apsw.Error, ProcessDead)):
                kept[0].execute("INSERT INTO t VALUES(2)")
            kept.clear()
            gc.collect()
            assert (host.disk.digest(), host.disk.boundaries) == state

        await on(host, successor)

    simulate(main)


@pytest.mark.parametrize("locking", ["EXCLUSIVE", "NORMAL"])
@pytest.mark.parametrize("journal", ["WAL", "DELETE"])
def test_a_connection_that_died_inside_its_commit_is_closed_without_a_trace(journal: str, locking: str) -> None:
    """Whatever boundary of its transaction it died at, the next process to open a database finds the disk untouched."""

    # with exclusive locking and a rollback journal, an ordinary close would delete the journal by name
    def crashed(nth: int) -> bool:
        async def main(world: World) -> bool:
            host = world.host("a")

            async def victim() -> None:
                connection = opened(journal, "FULL")
                if locking == "EXCLUSIVE":
                    connection.execute(EXCLUSIVE)
                connection.execute("CREATE TABLE t(a)")
                process = current_process()
                assert process is not None
                host.at_boundary(host.boundaries + nth, process.kill)
                connection.execute("INSERT INTO t VALUES(1)")
                await trio.sleep_forever()

            process = host.start(victim)
            await world.sleep_ns(1)
            if process.alive:
                return False
            before = host.disk.digest(), host.boundaries

            def successor() -> bool:
                connection = apsw.Connection(PATH)
                assert (host.disk.digest(), host.boundaries) == before
                connection.execute(EXCLUSIVE)
                return bool(connection.execute("PRAGMA integrity_check").get == "ok")

            return await on(host, successor)

        return simulate(main)

    deaths = [crashed(nth) for nth in range(1, 12)]
    assert deaths[:3] == [True] * 3
    assert sum(deaths) >= (3 if journal == "WAL" else 7)


@pytest.mark.parametrize("journal", ["WAL", "DELETE"])
def test_the_end_of_a_simulation_writes_nothing(journal: str) -> None:
    """Connections that still live when main returns are dropped as by a power cut: no rollback, no checkpoint."""

    async def main(world: World) -> tuple[Disk, str, int]:
        host = world.host("a")

        async def program() -> None:
            connection = opened(journal, "FULL")
            connection.execute("CREATE TABLE t(a); BEGIN; INSERT INTO t VALUES(zeroblob(3000000))")
            await trio.sleep_forever()

        host.start(program)
        await world.sleep_ns(1)
        return host.disk, host.disk.digest(), host.disk.boundaries

    disk, digest, boundaries = simulate(main)
    assert (disk.digest(), disk.boundaries) == (digest, boundaries)
    assert boundaries > 5


def test_a_process_that_dies_inside_its_own_write_gets_a_base_exception() -> None:
    """The kill lands inside COMMIT: no `except Exception` sees it, and trying again does not reach the disk."""
    seen: list[str] = []

    async def main(world: World) -> tuple[int, int]:
        host = world.host("a")

        async def victim() -> None:
            connection = opened("WAL", "FULL")
            connection.execute("CREATE TABLE t(a)")
            process = current_process()
            assert process is not None
            host.at_boundary(host.disk.boundaries + 2, process.kill)
            for _ in range(3):
                try:
                    connection.execute("INSERT INTO t VALUES(1)")
                except BaseException as error:  # noqa: BLE001 - a program that swallows everything
                    seen.append("exception" if isinstance(error, Exception) else type(error).__name__)
            await trio.sleep(1)
            seen.append("came back")

        await host.start(victim).wait()
        boundaries = host.disk.boundaries
        await trio.sleep(10)
        return boundaries, host.disk.boundaries

    before, after = simulate(main)
    assert seen[0] == "ProcessDead"
    assert "came back" not in seen
    assert before == after


@pytest.mark.parametrize(("kind", "error"), [("write", apsw.IOError), ("fsync", apsw.IOError), ("read", apsw.IOError)])
def test_disk_errors_reach_the_program_as_sqlite_errors(kind: str, error: type[Exception]) -> None:
    """EIO becomes SQLITE_IOERR, the transaction is rolled back, and the next one works."""

    async def main(world: World) -> object:
        host = world.host("a")

        def program() -> object:
            opened("DELETE", "FULL").execute("CREATE TABLE t(a)").connection.close()
            connection = opened("DELETE", "FULL")
            host.disk.fail_next(kind, 5)
            with pytest.raises(error):
                connection.execute("INSERT INTO t VALUES(1)")
            connection.execute("INSERT INTO t VALUES(2)")
            return connection.execute("SELECT a FROM t").get

        return await on(host, program), dict(host.disk.fired)

    assert simulate(main) == (2, {f"{kind}-eio": 1})


def test_a_full_disk_is_sqlite_full() -> None:
    """ENOSPC becomes SQLITE_FULL, and the database stays sound."""

    async def main(world: World) -> object:
        host = world.host("a")

        def program() -> object:
            connection = opened("WAL", "FULL")
            connection.execute("CREATE TABLE t(a)")
            host.disk.capacity_bytes = host.disk.used_bytes() + 10_000
            with pytest.raises(apsw.FullError):
                connection.execute("INSERT INTO t VALUES(zeroblob(20000))")
            host.disk.capacity_bytes = None
            return connection.execute("PRAGMA integrity_check").get

        return await on(host, program)

    assert simulate(main) == "ok"


def test_the_outside_has_no_disk() -> None:
    """A path opened outside every process is refused in words; memory databases work anywhere."""

    async def main(world: World) -> str:
        assert apsw.Connection(":memory:").execute("SELECT 1").get == 1
        with pytest.raises(Exception, match="outside every simulated process") as info:
            apsw.Connection(PATH)
        return str(info.value)

    assert "host.start" in simulate(main)


def test_two_hosts_have_two_disks() -> None:
    """The same path on another host is another file."""

    async def main(world: World) -> tuple[list[str], list[str]]:
        await on(world.host("a"), lambda: opened("WAL", "FULL").execute("CREATE TABLE t(a)").fetchall())
        await on(world.host("b"), lambda: None)
        return world.host("a").disk.listdir("/state"), world.host("b").disk.listdir("/state")

    assert simulate(main) == (["x.db"], [])


def test_after_a_simulation_sqlite_is_itself_again() -> None:
    """The default VFS and the hooks are put back, also when the simulation fails."""
    before = apsw.vfs_names()[0], list(apsw.connection_hooks)

    async def main(world: World) -> None:
        assert apsw.vfs_names()[0] == "simkit"
        raise ValueError

    assert isinstance(outcome_of(main).error, ValueError)
    assert (apsw.vfs_names()[0], list(apsw.connection_hooks)) == before


def test_leaving_the_interpreter_with_dead_connections_is_silent() -> None:
    """Connections of the dead and of a world that ended neither warn nor crash when Python leaves."""
    program = """
        import apsw, trio
        from simkit.tape import Tape
        from simkit.world import run

        kept = []

        async def main(world):
            host = world.host("a")
            for journal in ("WAL", "DELETE"):
                async def victim(journal=journal):
                    connection = apsw.Connection(f"/{journal}.db")
                    connection.execute("PRAGMA locking_mode=EXCLUSIVE")
                    connection.execute(f"PRAGMA journal_mode={journal}")
                    connection.execute("CREATE TABLE t(a); BEGIN IMMEDIATE; INSERT INTO t VALUES(zeroblob(9000))")
                    kept.append((connection, connection.execute("SELECT * FROM t")))
                    await trio.sleep_forever()
                host.start(victim)
                doomed = host.start(victim)
                await world.sleep_ns(1)
                doomed.kill()

        outcome = run(main, tape=Tape.from_seed(1))
        assert outcome.error is None, outcome.error
        print(len(kept))
    """
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_journal_whose_directory_cannot_be_synced_is_used_all_the_same() -> None:
    """SQLite's Unix VFS ignores that error of its own sync, as many systems cannot do it, and tells it of a delete."""

    async def main(world: World) -> list[Any]:
        host = world.host("a")

        def write() -> list[Any]:
            connection = opened("DELETE", "EXTRA")
            connection.execute("CREATE TABLE t(a)")
            host.disk.fail_next("sync_dir", 5, times=1)
            connection.execute("INSERT INTO t VALUES(1)")
            return [connection.execute("SELECT a FROM t").get, host.disk.fired]

        return await on(host, write)

    assert simulate(main) == [1, {"sync_dir-eio": 1}]
