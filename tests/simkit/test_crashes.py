"""Crashes: one at every boundary of a probe run."""

from __future__ import annotations

from collections.abc import Callable

import apsw
import pytest
import trio

from simkit.crashes import CrashPoint, crash_everywhere, crash_points, power_losses
from simkit.disk import Disk
from simkit.host import Host
from simkit.tape import Tape
from simkit.world import Outcome, World, run


def test_every_boundary_is_a_crash_point() -> None:
    """All numbers of all hosts, in order."""
    points = crash_points({"b": 2, "a": 1, "idle": 0})
    assert list(map(str, points)) == ["a.boundary#1", "b.boundary#1", "b.boundary#2"]


@pytest.mark.parametrize(
    ("most", "numbers"), [(5, [1, 25, 50, 75, 100]), (2, [1, 100]), (1, [1]), (0, []), (200, None)]
)
def test_a_bounded_exploration_is_spread(most: int, numbers: list[int] | None) -> None:
    """Fewer points than boundaries are spread evenly and keep both ends."""
    found = [point.number for point in crash_points({"a": 100}, most=most)]
    assert found == (numbers if numbers is not None else list(range(1, 101)))


async def counter(acknowledged: list[int], mode: str) -> None:
    """Add rows, and acknowledge each once it is committed, or (the bug) before."""
    db = apsw.Connection("/counter.db")
    db.execute("pragma locking_mode=exclusive; pragma journal_mode=wal; pragma synchronous=full").fetchall()
    db.execute("create table if not exists t (n integer)")
    for number in range(3):
        if mode == "early":
            acknowledged.append(number)
        db.execute("insert into t values (?)", (number,))
        if mode == "sound":
            acknowledged.append(number)
        await trio.sleep(0.1)
    await trio.sleep_forever()


def crash_at(point: CrashPoint | None, mode: str) -> Outcome[bool]:
    """One run; the power goes at `point`; afterwards: is everything acknowledged still there?"""

    async def main(world: World) -> bool:
        host, acknowledged = world.host("db"), list[int]()
        if point is not None:
            world.host(point.host).at_boundary(point.number, lambda: host.power_loss("lose"))
        host.start(counter, acknowledged, mode)
        await trio.sleep(1)
        if host.processes:
            host.power_loss("lose")

        async def read() -> list[int]:
            db = apsw.Connection("/counter.db")
            db.execute("pragma locking_mode=exclusive")
            tables = list(db.execute("select 1 from sqlite_master where name = 't'"))
            return [row[0] for row in db.execute("select n from t order by n")] if tables else []

        status = await host.start(read).wait()
        if status.kind == "killed":  # the crash struck recovery
            status = await host.start(read).wait()
        return set(acknowledged) <= set(status.value)

    return run(main, tape=Tape.from_seed(1))


def test_crashing_everywhere_finds_an_early_acknowledgement_and_nothing_in_sound_code() -> None:
    """The probe passes for both; a crash at every boundary tells them apart, and names where."""
    for mode in ("sound", "early"):
        probe = crash_at(None, mode)
        assert probe.unwrap()
        assert probe.boundaries["db"] > 10
        results = list(crash_everywhere(probe, lambda point, mode=mode: crash_at(point, mode).unwrap()))  # type: ignore[misc]
        assert len(results) == probe.boundaries["db"]
        lost = [point for point, kept in results if not kept]
        assert bool(lost) is (mode == "early")
        assert all(isinstance(point, CrashPoint) for point in lost)


def replace_file(disk: Disk, host: Host, care: str) -> None:
    """Replace /f by a rename; `care` says which syncs are made."""
    owner = host.processes[-1]
    file = disk.open("/f.tmp", create=True, owner=owner)
    file.write(b"new", 0)
    if "file" in care:
        file.fsync()
    disk.rename("/f.tmp", "/f", owner=owner)
    if "directory" in care:
        disk.sync_dir("/", owner=owner)


def replacing(point: CrashPoint | None, strike: Callable[[Host], object], care: str) -> Outcome[tuple[bool, bytes]]:
    """One run: whether the program was told that it is done, and what /f holds after a power loss."""

    async def main(world: World) -> tuple[bool, bytes]:
        host = world.host("a")
        host.disk.load({"/f": b"old"})
        done: list[int] = []

        async def program() -> None:
            replace_file(host.disk, host, care)
            done.append(1)
            host.disk.open("/done", create=True, owner=host.processes[-1])

        if point is not None:
            host.at_boundary(point.number, lambda: strike(host))
        await host.start(program).wait()
        return bool(done), host.disk.read_file("/f")

    return run(main, tape=Tape.from_seed(1))


@pytest.mark.parametrize(
    ("care", "left"),
    [
        ("file, directory", {(False, b"old"), (False, b"new"), (True, b"new")}),
        ("directory", {(done, data) for done in (False, True) for data in (b"new", b"", bytes(3))} | {(False, b"old")}),
        ("file", {(False, b"old"), (True, b"new"), (True, b"old")}),
    ],
)
def test_power_is_lost_everywhere_into_every_state(care: str, left: set[tuple[bool, bytes]]) -> None:
    """Each forgotten sync of the classic replacement shows as a state that should not be; none forgotten, none found."""
    probe = replacing(None, print, care)
    seen = {run.unwrap() for _, _, run in power_losses(probe, lambda point, strike: replacing(point, strike, care))}
    assert seen == left


def test_a_crash_that_strikes_nothing_is_an_error() -> None:
    """The run must be the probe's: a boundary that it never crosses is told."""
    with pytest.raises(RuntimeError, match=r"a\.boundary#1"):
        list(power_losses({"a": 99}, lambda _, strike: replacing(None, strike, "file"), most=1))
