"""What of a database survives a power loss, by journal mode and synchronous level: proven in both directions."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

import apsw
import pytest
import trio

from simkit.disk import Boundary, Disk, DiskFaults
from simkit.tape import Tape
from simkit.world import World
from tests.simkit.rig import PATH, on, opened, simulate

EXCLUSIVE = "PRAGMA locking_mode=EXCLUSIVE"
pytestmark = pytest.mark.slow


def write_rows(connection: apsw.Connection, acknowledged: list[int], rows: int) -> None:
    """Commit one row a transaction, some of them spilling over several pages."""
    connection.execute("CREATE TABLE IF NOT EXISTS t(k INTEGER PRIMARY KEY, v BLOB)")
    for key in range(rows):
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO t VALUES(?, ?)", (key, bytes([key % 256]) * (key * 7919 % 3000)))
        connection.execute("COMMIT")
        acknowledged.append(key)


def verdict(acknowledged: int, found: tuple[int, bool] | str) -> str:
    """What a recovered database is worth: fine, lost acknowledged rows, invented rows, or corrupt."""
    if isinstance(found, str):
        return found
    count, sound = found
    if not sound:
        return "corrupt"
    if count < acknowledged:
        return "lost"
    return "fine" if count <= acknowledged + 1 else "invented"


def recovered() -> tuple[int, bool] | str:
    """Open what the power loss left, as the next incarnation would."""
    try:
        connection = apsw.Connection(PATH)
        connection.execute(EXCLUSIVE)
        if not connection.execute("SELECT count(*) FROM sqlite_schema WHERE name = 't'").get:
            return 0, True
        rows = connection.execute("SELECT k, v FROM t ORDER BY k")
        keys = [key for key, value in rows if value is not None and set(value) <= {key % 256}]
        sound = connection.execute("PRAGMA integrity_check").get == "ok" and keys == list(range(len(keys)))
        return len(keys), sound
    except (apsw.CorruptError, apsw.NotADBError, apsw.SQLError):
        return "corrupt"


def crash_once(seed: int, journal: str, synchronous: str, prepare: Callable[[Disk], None], cut: int | None) -> str:
    """Cut the power right before boundary number `cut`, or at the end of all work, recover, and judge."""

    async def main(world: World) -> str:
        host = world.host("a")
        prepare(host.disk)
        acknowledged: list[int] = []

        async def writer() -> None:
            await trio.lowlevel.checkpoint()
            write_rows(opened(journal, synchronous), acknowledged, 25)

        if cut is not None:
            host.at_boundary(cut, host.power_loss)
        await host.start(writer).wait()
        assert host.disk.crashes == (0 if cut is None else 1)
        if cut is None:
            return str(host.boundaries)
        host.disk.faults = DiskFaults()
        return verdict(len(acknowledged), await on(host, recovered))

    return simulate(main, seed)


def crashes(journal: str, synchronous: str, rounds: int, prepare: Callable[[Disk], None] = lambda _: None) -> Any:
    """Judge `rounds` power losses at boundaries drawn from all those of an undisturbed run."""
    boundaries = int(crash_once(0, journal, synchronous, prepare, None))
    draw = Tape.from_seed(1).stream("cuts")
    cuts = [1 + draw.randrange("cut", boundaries) for _ in range(rounds)]
    return collections.Counter(crash_once(n, journal, synchronous, prepare, cut) for n, cut in enumerate(cuts))


@pytest.mark.parametrize(("journal", "synchronous"), [("WAL", "FULL"), ("DELETE", "EXTRA")])
def test_a_durable_configuration_never_loses_an_acknowledged_commit(journal: str, synchronous: str) -> None:
    """WAL/FULL and DELETE/EXTRA keep every acknowledged commit over 300 power losses at drawn boundaries."""
    assert crashes(journal, synchronous, 300) == {"fine": 300}


def test_delete_full_can_lose_the_last_acknowledged_commit() -> None:
    """SQLite's default acknowledges before the journal's unlink is durable: the old journal returns and rolls back."""
    found = crashes("DELETE", "FULL", 300)
    assert found["lost"] >= 3
    assert set(found) == {"fine", "lost"}


def test_delete_full_is_safe_where_an_unlink_is_durable_at_once() -> None:
    """The loss above is the directory entry's: make every directory change durable, and it is gone."""

    def prepare(disk: Disk) -> None:
        trace = disk.on_boundary

        def hook(boundary: Boundary) -> Any:
            disk._names.sync(lambda _: True)
            return None if trace is None else trace(boundary)

        disk.on_boundary = hook

    assert crashes("DELETE", "FULL", 150, prepare) == {"fine": 150}


def test_wal_normal_loses_commits_but_never_corrupts() -> None:
    """synchronous=NORMAL trades the last commits for speed; what is left is a sound, shorter database."""
    found = crashes("WAL", "NORMAL", 200)
    assert found["lost"] >= 20
    assert set(found) == {"fine", "lost"}


@pytest.mark.parametrize("journal", ["WAL", "DELETE"])
def test_a_lying_fsync_defeats_every_configuration(journal: str) -> None:
    """A disk that only pretends to sync loses acknowledged commits or corrupts the file, whatever the settings."""

    def prepare(disk: Disk) -> None:
        disk.faults = DiskFaults(fsync_lies=(1, 1))

    found = crashes(journal, "EXTRA", 100, prepare)
    assert found["lost"] + found["corrupt"] >= 20
    assert found["invented"] == 0


def test_synchronous_off_can_corrupt() -> None:
    """The judge can see corruption: without any sync and a rollback journal, some power loss leaves a broken file."""
    assert crashes("DELETE", "OFF", 150)["corrupt"] >= 1


@pytest.mark.parametrize("journal", ["WAL", "DELETE", "PERSIST", "TRUNCATE"])
def test_killing_the_process_loses_nothing_in_any_mode(journal: str) -> None:
    """A kill without a power loss keeps the page cache: every acknowledged commit is there, even unsynced."""

    def crashed(cut: int) -> str:
        async def main(world: World) -> str:
            host = world.host("a")
            acknowledged: list[int] = []

            async def writer() -> None:
                await trio.lowlevel.checkpoint()
                write_rows(opened(journal, "OFF"), acknowledged, 12)

            process = host.start(writer)
            host.at_boundary(cut, process.kill)
            await process.wait()
            return verdict(len(acknowledged), await on(host, recovered))

        return simulate(main)

    verdicts = {cut: crashed(cut) for cut in range(1, 90, 2)}
    assert set(verdicts.values()) == {"fine"}, verdicts
