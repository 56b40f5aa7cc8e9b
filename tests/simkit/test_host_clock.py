"""Wall clocks of hosts: skewed, drifting, jumping, in zones; monotonic time and sleeps are untouched."""

from __future__ import annotations

import datetime
import email.utils
import os
import time
from collections.abc import Callable, Iterator

import apsw
import pytest
import trio

from simkit.clock import EPOCH_NS
from simkit.tape import Tape
from simkit.world import World, run
from tests.simkit.network_rig import in_process
from tests.simkit.rig import outcome_of, simulate

S = 1_000_000_000
NOON = datetime.datetime(2026, 7, 1, 12)  # noqa: DTZ001  # without a zone: local
EAST = datetime.timezone(datetime.timedelta(hours=5, minutes=30), "EAST")


async def ahead_ns() -> int:
    """How far the wall clock of the running process is ahead of true time."""
    return time.time_ns() - EPOCH_NS - time.monotonic_ns()


def test_clocks_are_right_until_told_otherwise() -> None:
    """Every host, and the outside, reads true time."""

    async def main(world: World) -> list[int]:
        await trio.sleep(7)
        return [await in_process(world.host("a"), ahead_ns), await ahead_ns(), world.host("a").clock.skew_ns]

    assert simulate(main) == [0, 0, 0]


def test_a_clock_jumps_forward_and_back_for_its_host_only() -> None:
    """Wall time moves at once; monotonic time, sleeps and other hosts do not."""
    readings: list[tuple[int, int]] = []

    async def reader() -> None:
        for _ in range(3):
            readings.append((time.time_ns() - EPOCH_NS, time.monotonic_ns()))
            await trio.sleep(1)

    async def main(world: World) -> int:
        host = world.host("a")
        process = host.start(reader)
        await trio.sleep(0.5)
        host.clock.jump(3600 * S)
        await trio.sleep(1)
        host.clock.jump(-7200 * S)
        await process.wait()
        return await in_process(world.host("b"), ahead_ns)

    assert simulate(main) == 0
    assert readings == [(0, 0), (3601 * S, S), (2 * S - 3600 * S, 2 * S)]


def test_a_clock_drifts() -> None:
    """Gains so much a second from when it was told, on top of its skew."""

    async def main(world: World) -> list[int]:
        clock = world.host("a").clock
        clock.adjust(skew_ns=-S, drift_ppb=1_000_000)
        await trio.sleep(1000)
        seen = [await in_process(world.host("a"), ahead_ns)]
        clock.adjust(drift_ppb=-1_000_000)
        await trio.sleep(1000)
        return [*seen, await in_process(world.host("a"), ahead_ns)]

    assert simulate(main) == [0, -S]


def test_every_reader_of_the_wall_clock_sees_the_hosts_own() -> None:
    """time, datetime, date and SQLite agree, in the host's zone where local time is asked for."""

    async def readings() -> list[object]:
        database = apsw.Connection("/x.db")
        now = datetime.datetime.now()  # noqa: DTZ005 - local time is what is asked
        return [
            time.gmtime().tm_hour,
            datetime.datetime.now(datetime.UTC).hour,
            next(database.execute("select strftime('%H', 'now')"))[0],
            (time.localtime().tm_hour, time.localtime().tm_min, time.localtime().tm_zone, time.localtime().tm_gmtoff),
            (now.hour, now.minute, now.tzinfo),
            datetime.date.today().isoformat(),  # noqa: DTZ011 - as above
            datetime.datetime.fromtimestamp(0).isoformat(),  # noqa: DTZ006 - as above
            time.strftime("%H:%M %Z"),
            time.ctime(0),
            time.mktime(time.localtime(1_000_000)),
        ]

    async def main(world: World) -> list[object]:
        host = world.host("a")
        host.clock.jump(22 * 3600 * S)
        host.clock.zone = EAST
        await trio.sleep(0)
        return await in_process(host, readings)

    assert simulate(main) == [
        22,
        22,
        "22",
        (3, 30, "EAST", 19800),
        (3, 30, None),
        "2026-01-02",
        "1970-01-01T05:30:00",
        "03:30 EAST",
        "Thu Jan  1 05:30:00 1970",
        1_000_000.0,
    ]


def test_skew_drift_and_jumps_are_drawn_from_the_tape() -> None:
    """Different seeds, different clocks; a tape without departures has true ones."""

    async def main(world: World) -> tuple[int, int, int]:
        clock = world.host("a").clock
        clock.draw()
        drawn = clock.skew_ns, clock.drift_ppb
        await trio.sleep(1)
        return *drawn, clock.draw_jump()

    found = [simulate(main, seed) for seed in range(30)]
    assert len(set(found)) > 15
    assert {sign for skew, _, _ in found for sign in [(skew > 0) - (skew < 0)]} == {-1, 0, 1}
    assert any(jump < 0 for *_, jump in found)
    assert any(jump > 0 for *_, jump in found)
    assert run(main, tape=Tape.from_departures({})).value == (0, 0, 0)


def test_clocks_are_part_of_the_trace() -> None:
    """Each change of a clock is an event; impossible ones are refused."""

    async def main(world: World) -> None:
        clock = world.host("a").clock
        clock.jump(5)
        await trio.sleep(0)
        with pytest.raises(ValueError, match="1970"):
            clock.jump(-2 * EPOCH_NS)
        with pytest.raises(ValueError, match="at most"):
            clock.adjust(drift_ppb=10**9)

    events = [event for event in outcome_of(main).trace.events() if event.kind == "wall-clock"]
    assert [event.detail for event in events] == ["a 5 0"]


def test_a_slow_disk_makes_its_process_stand_still() -> None:
    """The write returns, and the tasks of that process go on 200 ms later; others do not wait."""

    async def main(world: World) -> list[int]:
        host = world.host("a")
        seen: list[int] = []

        async def writer() -> None:
            file = host.disk.open("/f", create=True, owner=host.processes[0])
            file.write(b"x", 0)
            file.write(b"y", 0)
            await trio.sleep(0)
            seen.append(world.now_ns)

        async def bystander() -> None:
            await trio.sleep(0.01)
            seen.append(world.now_ns)

        host.disk.strike_next("slow", times=2)
        first = host.start(writer)
        host.start(bystander)
        await first.wait()
        return seen

    assert simulate(main) == [10_000_000, 400_000_000]


def test_a_stalled_process_that_is_also_paused_waits_for_both() -> None:
    """Resumed while its disk is slow, it waits for the disk; and the other way round."""

    async def main(world: World) -> list[int]:
        seen: list[int] = []

        async def program() -> None:
            for _ in range(3):
                await trio.sleep(0)
                seen.append(world.now_ns // S)

        process = world.host("a").start(program)
        process.stall(5 * S)
        process.pause()
        world.call_later(2 * S, process.resume)
        await trio.sleep(6)
        other = world.host("b").start(program)
        other.stall(S)
        other.pause()
        world.call_later(3 * S, other.resume)
        await other.wait()
        return seen

    assert simulate(main) == [5, 5, 5, 9, 9, 9]


@pytest.fixture
def machine_in(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Let the machine be in a zone."""

    def move(name: str) -> None:
        monkeypatch.setenv("TZ", name)
        time.tzset()

    yield move
    monkeypatch.undo()
    time.tzset()


def test_the_zone_of_the_machine_does_not_show(machine_in: Callable[[str], None]) -> None:
    """On a machine in Tokyo a run is the same to the last digit, by whatever local time is asked for."""

    async def ask() -> list[object]:
        moment = NOON
        in_sql = apsw.Connection(":memory:").execute("SELECT datetime('2026-07-01 12:00', 'localtime')").get
        return [
            *(moment.timestamp(), str(moment.astimezone()), moment.astimezone().tzname(), moment.strftime("%s")),
            *(time.tzname, time.timezone, time.localtime(0).tm_zone, time.mktime((2026, 7, 1, 12, 0, 0, 0, 0, -1))),
            *(email.utils.localtime(moment).isoformat(), in_sql),
        ]

    async def main(world: World) -> list[list[object]]:
        east = world.host("east")
        east.clock.zone = EAST
        return [await ask(), await in_process(world.host("a"), ask), await in_process(east, ask)]

    told = []
    for name in ("Asia/Tokyo", "UTC0", "America/New_York"):
        machine_in(name)
        before = (time.tzname, os.environ["TZ"], NOON.timestamp())
        told.append(simulate(main))
        assert (time.tzname, os.environ["TZ"], NOON.timestamp()) == before
    assert told[0] == told[1] == told[2]
    assert told[0][0][1] == "2026-07-01 12:00:00+00:00"
    assert told[0][2][1:3] == ["2026-07-01 12:00:00+05:30", "EAST"]


def test_what_is_no_zone_is_refused() -> None:
    """The name of a zone is not a zone: said where it is set."""

    async def main(world: World) -> None:
        world.host("a").clock.zone = "Europe/Berlin"  # type: ignore[assignment]

    assert "Host.clock.zone cannot be 'Europe/Berlin'" in str(outcome_of(main).error)
