"""Open tapes strike: each crash at each kind of boundary does what it says, nothing strikes a calm world."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio

import simkit
from simkit.patience import LivenessError, patience_for, patience_ns
from simkit.striking import AFTER, DARK, KILL, KINDS, LOSE, STATE, TORN
from simkit.tape import Journal, Site, Tape
from simkit.world import Outcome, World, run
from tests.simkit import explore_programs

Program = Callable[[World], Awaitable[Any]]


@pytest.mark.parametrize("program", ["sound", "recovers_once", "asks_twice", "gives_up", "served"])
@pytest.mark.parametrize("seed", [0, 7])
def test_an_open_tape_does_not_change_a_run(program: str, seed: int) -> None:
    """The same departures on a closed and on an open tape, listened to or not: one digest."""
    main = getattr(explore_programs, program)
    plain = run(main, tape=Tape.from_seed(seed))
    departures = plain.departures
    for tape in (
        Tape.from_departures(departures, entropy=seed),
        Tape.opened(departures, entropy=seed),
        Tape.opened(departures, entropy=seed, journal=Journal()),
    ):
        again = run(main, tape=tape)
        switches = [site for site in departures if site[1].startswith("switch:")]
        assert again.digest == plain.digest or switches  # an open tape has one site for a `maybe`, no switch
        assert again.error is None
    assert run(main, tape=Tape.opened(entropy=seed)).digest == run(main, tape=Tape.from_departures({})).digest


# ---- at the boundaries of a disk


async def writing(world: World) -> dict[str, bytes]:
    """One synced write, one not, and a word in between; what is there once the host was struck."""
    host = world.host("a")

    async def work() -> None:
        disk = host.disk
        file = disk.open("/f", owner=host.processes[-1], create=True)
        disk.sync_dir("/", owner=host.processes[-1])
        file.write(b"o" * 1536, 0)
        file.fsync()
        file.write(b"n" * 1536, 0)
        world.trace.record("said", "new")
        await trio.sleep(1)
        file.write(b"e" * 1536, 0)

    await host.start(work).wait()
    return {f"/{name}": host.disk.read_file(name) for name in host.disk.listdir("/")}


def struck(program: Program, *strikes: tuple[Site, int]) -> Outcome[Any]:
    """A run with these departures; each must really happen."""
    outcome = run(program, tape=Tape.opened(dict(strikes)))
    assert outcome.departures == dict(strikes)
    return outcome


def visits(program: Program) -> dict[Site, tuple[int, ...]]:
    """The crashes that the default run comes by."""
    journal = Journal()
    run(program, tape=Tape.opened(journal=journal)).unwrap()
    return {visit.site: tuple(visit.values) for visit in journal.sites if visit.site[0].startswith("crash/")}


def test_every_boundary_of_a_disk_is_a_site() -> None:
    """In order, each with the crashes that it can meet: torn only a write, power only while something is unsynced."""
    kills, power = (KILL, AFTER), (LOSE, STATE)
    assert visits(writing) == {
        ("crash/a", "!create:/f", 0): kills,
        ("crash/a", "!sync_dir:/", 0): (*kills, *power),
        ("crash/a", "!write:/f", 0): (*kills, TORN),
        ("crash/a", "!fsync:/f", 0): (*kills, *power),
        ("crash/a", "!write:/f", 1): (*kills, TORN),
        ("crash/a", "!write:/f", 2): (*kills, TORN, *power),
    }


OLD, NEW, END = b"o" * 1536, b"n" * 1536, b"e" * 1536


@pytest.mark.parametrize(
    ("nth", "value", "left", "said"),
    [
        (1, KILL, OLD, False),
        (1, AFTER, NEW, True),  # what follows in the same step still runs
        (1, TORN, NEW[:768] + OLD[768:], False),
        (2, KILL, NEW, True),
        (2, AFTER, END, True),
        (2, LOSE, OLD, True),
    ],
)
def test_a_crash_at_a_write(nth: int, value: int, left: bytes, *, said: bool) -> None:
    """What it leaves, and whether the process came to say what it says after the second write."""
    outcome = struck(writing, (("crash/a", "!write:/f", nth), value))
    assert outcome.unwrap() == {"/f": left}
    assert outcome.fired[f"crash/a:{KINDS[value]}"] == 1
    assert any(event.kind == "said" for event in outcome.trace.events()) is said


def test_a_power_loss_into_every_state() -> None:
    """STATE stands for the states between all lost and all kept; a site of its own says which. No two are alike."""
    strike = (("crash/a", "!write:/f", 2), STATE)
    journal = Journal()
    first = run(writing, tape=Tape.opened(dict([strike]), journal=journal)).unwrap()["/f"]
    values = next(visit.values for visit in journal.sites if visit.site[1] == "!state")
    others = [struck(writing, strike, (("crash/a", "!state", 0), value)).unwrap()["/f"] for value in values]
    assert len({first, *others}) == 1 + len(values)
    assert not {OLD, NEW} & {first, *others}
    assert all(set(data) == set(b"on") for data in (first, *others))  # whole sectors of both


def test_the_outside_is_never_struck() -> None:
    """What main does to a disk, and what it sends, is no boundary of a host."""

    async def main(world: World) -> None:
        file = world.host("a").disk.open("/f", create=True)
        file.write(b"data", 0)
        file.fsync()

    assert visits(main) == {}


# ---- at messages


async def talking(world: World) -> tuple[list[bytes], str, str]:
    """A client says a word to a server, which answers; what the server heard, and how both ended."""
    heard: list[bytes] = []
    server, client = world.host("server"), world.host("client")

    async def serve() -> None:
        async with (await trio.open_tcp_listeners(80))[0] as listener, await listener.accept() as stream:
            heard.append(bytes(await stream.receive_some()))
            await stream.send_all(b"answer")

    async def ask() -> None:
        async with await trio.open_tcp_stream("server", 80) as stream:
            await stream.send_all(b"word")
            assert await stream.receive_some() == b"answer"

    serving = server.start(serve)
    await trio.sleep(1)
    asking = client.start(ask)
    return heard, (await asking.wait()).kind, (await serving.wait()).kind


def test_every_message_is_a_site_before_it_leaves_and_before_it_is_there() -> None:
    """Hosts without a disk have no power loss of their own: it is a kill."""
    assert visits(talking) == {
        ("crash/client", "!send:server", 0): (KILL, AFTER, DARK),
        ("crash/server", "!deliver:client", 0): (KILL, DARK),
        ("crash/server", "!send:client", 0): (KILL, AFTER, DARK),
        ("crash/client", "!deliver:server", 0): (KILL, DARK),
    }


@pytest.mark.parametrize(
    ("site", "value", "came"),
    [
        (("crash/client", "!send:server", 0), KILL, ([], "killed", "failed")),
        (("crash/client", "!send:server", 0), AFTER, ([b"word"], "killed", "failed")),
        (("crash/server", "!deliver:client", 0), KILL, ([], "failed", "killed")),
        (("crash/server", "!send:client", 0), KILL, ([b"word"], "failed", "killed")),
        (("crash/server", "!send:client", 0), AFTER, ([b"word"], "exited", "killed")),
        (("crash/client", "!deliver:server", 0), KILL, ([b"word"], "killed", "exited")),
    ],
)
def test_a_crash_at_a_message(site: Site, value: int, came: object) -> None:
    """Before it leaves nobody hears of it; after it has left, it arrives."""
    assert struck(talking, (site, value)).unwrap() == came


def test_a_machine_without_power_tells_nobody() -> None:
    """Its peer waits where it would be told of a kill at once, until it gives up on what it sends."""
    kill = run(talking, tape=Tape.opened({("crash/server", "!deliver:client", 0): KILL}))
    dark = run(talking, tape=Tape.opened({("crash/server", "!deliver:client", 0): DARK}))
    assert kill.unwrap() == dark.unwrap() == ([], "failed", "killed")
    assert kill.now_ns < 2 * 10**9
    assert dark.now_ns > 900 * 10**9


@pytest.mark.parametrize(
    ("site", "value", "seconds"),
    [
        (("process/client", "!pause:send", 0), 1, 5),
        (("process/server", "!pause:deliver", 0), 2, 120),
        (("process/client", "!pause:deliver", 0), 1, 5),
    ],
)
def test_a_machine_stands_still_at_a_message(site: Site, value: int, seconds: int) -> None:
    """It goes on later, as if nothing had been."""
    outcome = struck(talking, (site, value))
    assert outcome.unwrap() == ([b"word"], "exited", "exited")
    assert outcome.now_ns // 10**9 == 1 + seconds
    assert sum(times for what, times in outcome.fired.items() if what.endswith(":pause")) == 1


# ---- other faults


async def asking_everything(world: World) -> dict[str, object]:
    """Disk, clock, names, points: what an open tape may strike besides crashes."""
    host = world.host("a")
    found: dict[str, object] = {"skew": host.clock.skew_ns}

    async def work() -> None:
        me = host.processes[-1]
        file = host.disk.open("/f", owner=me, create=True)
        for what, call in (
            ("write", lambda: file.write(b"data", 0)),
            ("read", lambda: file.read(4, 0)),
            ("fsync", file.fsync),
        ):
            try:
                call()
                found[what] = "done"
            except OSError as error:
                found[what] = error.errno
        found["maybe"] = simkit.maybe("rare")

    found["status"] = (await host.start(work).wait()).kind
    return found


FINE = {"skew": 0, "write": "done", "read": "done", "fsync": "done", "maybe": False, "status": "exited"}


@pytest.mark.parametrize(
    ("site", "value", "changed"),
    [
        (("clock/a", "!skew", 0), 3, {"skew": 500_000_000}),
        (("disk/a", "!write_eio:/f", 0), 1, {"write": 5}),
        (("disk/a", "!write_enospc:/f", 0), 1, {"write": 28}),
        (("disk/a", "!read_eio:/f", 0), 1, {"read": 5}),
        (("disk/a", "!fsync_eio:/f", 0), 1, {"fsync": 5}),
        (("points", "!maybe:rare", 0), 1, {"maybe": True}),
    ],
)
def test_a_fault_that_no_option_asks_for(site: Site, value: int, changed: dict[str, object]) -> None:
    """One departure, one fault."""
    assert struck(asking_everything, (site, value)).unwrap() == FINE | changed


def test_an_error_that_sqlite_keeps_to_itself_is_not_printed(capfd: pytest.CaptureFixture[str]) -> None:
    """A connection that is given up writes its log back; there is nobody to tell that this fails."""
    import apsw

    async def main(world: World) -> str:
        host = world.host("db")

        async def work() -> None:
            db = apsw.Connection("/db")
            db.execute("pragma locking_mode=exclusive; pragma journal_mode=wal; create table t (n)").fetchall()
            host.disk.fail_next("write", 5, path="/db", times=9)
            del db

        ended = (await host.start(work).wait()).kind
        assert host.disk.fired == {"write-eio": 1}
        return ended

    assert run(main, tape=Tape.from_seed(1)).unwrap() == "exited"
    assert capfd.readouterr() == ("", "")


def test_the_oom_killer_comes_to_a_named_point() -> None:
    """The process that is there is killed."""
    outcome = struck(asking_everything, (("points", "!oom:a", 0), 1))
    assert outcome.unwrap()["status"] == "killed"


def test_what_damages_in_silence_strikes_copies_only() -> None:
    """Bit rot, lies of fsync and strays are sites where copies are declared, and nowhere else."""

    async def main(world: World) -> None:
        host = world.host("a")
        world.copies.declare("twins", [("a", "/one"), ("a", "/two")])
        for path in ("/one", "/other"):
            file = host.disk.open(path, create=True)
            file.write(b"data", 0)
            file.fsync()
            file.read(4, 0)
        host.disk.sync_dir("/")

    journal = Journal()
    run(main, tape=Tape.opened(journal=journal)).unwrap()
    silent = ("!bit_rot", "!fsync_lies", "!misdirected_write", "!sync_dir_lies")
    assert [visit.site[1] for visit in journal.sites if visit.site[1].startswith(silent)] == [
        "!misdirected_write:/one",
        "!fsync_lies:/one",
        "!bit_rot:/one",
    ]


# ---- calm


def test_nothing_strikes_a_calm_world_nor_what_is_made_in_it() -> None:
    """Hosts, disks and the network made after the calm have no sites either."""

    async def main(world: World) -> None:
        world.calm()
        host = world.host("late")

        async def work() -> None:
            file = host.disk.open("/f", owner=host.processes[-1], create=True)
            file.write(b"data", 0)
            with pytest.raises(OSError, match="late"):
                await trio.open_tcp_stream("late", 80)
            assert not simkit.maybe("rare")

        assert (await host.start(work).wait()).kind == "exited"

    journal = Journal()
    run(main, tape=Tape.opened(journal=journal)).unwrap()
    assert journal.sites == []


def test_the_tape_says_when_all_faults_end() -> None:
    """The setting calms the world at that time, and is on the tape of the run."""

    async def main(world: World) -> tuple[bool, bool]:
        await world.sleep_ns(999)
        before = world.is_calm
        await world.sleep_ns(2)
        return before, world.is_calm

    given: dict[Site, int] = {("world", "!calm", 0): 1000}
    outcome = run(main, tape=Tape.from_departures(given))
    assert outcome.unwrap() == (False, True)
    assert outcome.departures == given


def test_a_program_that_does_not_end_once_it_is_calm_loses_patience() -> None:
    """By virtual time; the next number stands for four times as long; a program that ends is not touched."""
    given: dict[Site, int] = {("world", "!calm", 0): 1000, ("world", "!patience", 0): 2}
    outcome = run(explore_programs.bare, tape=Tape.from_departures(given))
    assert outcome.unwrap() == 1

    async def waits(world: World) -> None:
        await trio.sleep(3600)

    waited = run(waits, tape=Tape.from_departures(given))
    assert isinstance(waited.error, LivenessError)
    assert waited.now_ns == 1000 + 240 * 10**9
    assert [patience_ns(number) // 10**9 for number in (1, 2, 3)] == [60, 240, 960]
    assert [patience_for(seconds * 10**9) for seconds in (0, 60, 61, 240, 961)] == [1, 1, 2, 2, 4]


def test_supervision_starts_again_until_it_ends_by_itself() -> None:
    """Killed or failed: again, after a pause; with a bound: no more than that."""

    async def main(world: World) -> tuple[str, int, str, int]:
        host = world.host("a")
        starts: list[int] = []

        async def work() -> None:
            starts.append(world.now_ns)
            if len(starts) == 1:
                host.processes[-1].kill()
                await trio.sleep(1)
            assert len(starts) > 2

        ended = await host.supervise(work)
        assert starts == [0, 10**9, 2 * 10**9]

        async def fails() -> None:
            starts.append(0)
            raise ValueError

        bounded = await host.supervise(fails, restarts=2, after_ns=5)
        return ended.kind, 3, bounded.kind, len(starts) - 3

    assert run(main, tape=Tape.from_seed(1)).unwrap() == ("exited", 3, "failed", 3)
