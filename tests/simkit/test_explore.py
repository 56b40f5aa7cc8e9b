"""Exploration: a crash at every boundary of a probe run."""

from __future__ import annotations

import apsw
import pytest
import trio

from simkit.explore import CrashPoint, crash_everywhere, crash_points
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
