"""The world: hosts and their disks, power loss, boundaries, and what a run leaves as it found it."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import apsw
import pytest
import trio

import simkit
from simkit.process import ProcessDead
from simkit.strategy import RandomWalk
from simkit.tape import Tape
from simkit.world import Limits, Outcome, World, run


def simulate(main: Callable[[World], Awaitable[Any]], seed: int = 1, **options: Any) -> Outcome[Any]:
    return run(main, tape=Tape.from_seed(seed), **options)


async def keeper(path: str, rows: int) -> list[int]:
    """Open a database, tell what it holds, add some."""
    db = apsw.Connection(path)
    db.execute("pragma locking_mode=exclusive; pragma journal_mode=wal; pragma synchronous=full").fetchall()
    db.execute("create table if not exists t (n integer)")
    found = [row[0] for row in db.execute("select n from t order by n")]
    for number in range(len(found), len(found) + rows):
        db.execute("insert into t values (?)", (number,))
        await trio.sleep(0.1)
    db.close()
    return found


def test_hosts_have_names_and_addresses_in_order() -> None:
    """A host is made at first use and is the same for ever; addresses follow that order."""

    async def main(world: World) -> list[str]:
        names = ["web", "db", "web"]
        hosts = [world.host(name) for name in names]
        assert hosts[0] is hosts[2]
        assert repr(hosts[1]) == "<Host db 10.0.0.2>"
        return [host.address for host in hosts]

    assert simulate(main).unwrap() == ["10.0.0.1", "10.0.0.2", "10.0.0.1"]


def test_a_disk_outlives_its_processes_and_a_kill_loses_nothing_acknowledged() -> None:
    """Killed at any instant, restarted on the same disk: every committed row is there."""

    async def main(world: World) -> list[int]:
        host = world.host("db")
        process = host.start(keeper, "/data/x.db", 50)
        await trio.sleep(0.55)
        process.kill()
        status = await host.start(keeper, "/data/x.db", 0).wait()
        return list(status.value)

    assert simulate(main).unwrap() == list(range(6))


def test_power_loss_kills_and_loses_by_the_tape() -> None:
    """After a power loss committed rows are there, every process is gone, and the choice is on the tape."""

    async def main(world: World) -> list[int]:
        host = world.host("db")
        processes = [host.start(keeper, f"/data/{name}.db", 50) for name in "ab"]
        await trio.sleep(0.55)
        host.power_loss()
        assert not any(process.alive for process in processes)
        assert host.processes == []
        status = await host.start(keeper, "/data/a.db", 0).wait()
        return list(status.value)

    outcome = simulate(main)
    assert outcome.unwrap() == list(range(6))
    assert [event.detail for event in outcome.trace.events() if event.kind == "power-loss"] == ["db sample"]
    again = run(main, tape=Tape.from_departures(outcome.departures, entropy=1))
    assert again.digest == outcome.digest


@pytest.mark.parametrize("how", ["kill", "power"])
def test_an_action_at_a_boundary_strikes_before_it_takes_effect(how: str) -> None:
    """The process dies inside its own write: it does not happen, the handle is dead, no code goes on after its await."""
    acts: list[object] = []

    async def main(world: World) -> int:
        host = world.host("db")

        async def program() -> None:
            disk = host.disk
            file = disk.open("/log", create=True, owner=host.processes[0])
            for number in range(5):
                try:
                    file.write(b"%d" % number, number)
                except ProcessDead:
                    acts.append(number)
                    await trio.sleep(0)
                    acts.append("went on")

        process = host.start(program)
        host.at_boundary(4, process.kill if how == "kill" else host.power_loss)
        await process.wait()
        await trio.sleep(1)
        return host.disk.boundaries

    outcome = simulate(main)
    assert outcome.unwrap() == 4
    assert outcome.boundaries == {"db": 4}
    assert acts == [2]
    kinds = [event.detail.split()[:3] for event in outcome.trace.events() if event.kind == "boundary"]
    assert kinds == [["db", "1", "create"], *(["db", str(number), "write"] for number in (2, 3, 4))]


def test_hosts_talk_over_the_simulated_network() -> None:
    """trio's own functions, unmodified: a server on one host, a client on another."""

    async def main(world: World) -> bytes:
        async def serve() -> None:
            async def handle(stream: trio.SocketStream) -> None:
                await stream.send_all(await stream.receive_some(100) + b" back")

            await trio.serve_tcp(handle, 80)

        async def ask() -> bytes:
            stream = await trio.open_tcp_stream("server", 80)
            await stream.send_all(b"there and")
            return bytes(await stream.receive_some(100))

        world.host("server").start(serve)
        await trio.sleep(0.1)
        status = await world.host("client").start(ask).wait()
        return bytes(status.value)

    assert simulate(main).unwrap() == b"there and back"


def test_the_same_arguments_give_the_same_run() -> None:
    """Processes, database, network, random walk: ten runs of a seed have one digest, ten seeds have several."""

    async def main(world: World) -> None:
        for name in ("a", "b"):
            world.host(name).start(keeper, "/x.db", 3)
        await trio.sleep(0.25)
        world.host("a").power_loss()
        await world.host("a").start(keeper, "/x.db", 3).wait()

    def digest(seed: int, kernel: str = "fast") -> str:
        tape = Tape.from_seed(seed)
        outcome = run(main, tape=tape, strategy=RandomWalk(tape.stream("walk")), kernel=kernel)  # type: ignore[arg-type]
        outcome.unwrap()
        return outcome.digest

    assert len({digest(3) for _ in range(5)} | {digest(3, "fallback") for _ in range(5)}) == 1
    assert len({digest(seed) for seed in range(10)}) >= 5


def test_the_collector_is_off_inside_and_as_it_was_outside() -> None:
    """No collection during a run; the setting of the caller is restored, whichever it was."""

    async def main(_world: World) -> bool:
        return gc.isenabled()

    for before in (True, False):
        (gc.enable if before else gc.disable)()
        try:
            assert simulate(main).unwrap() is False
            assert gc.isenabled() is before
        finally:
            gc.enable()


def test_garbage_of_many_runs_is_collected_between_them() -> None:
    """Runs whose leftovers are cyclic do not grow memory without end, though the collector is off in each."""

    class Cycle:
        def __init__(self) -> None:
            self.me = self

    async def main(_world: World) -> None:
        for _ in range(20_000):
            Cycle()

    gc.collect()
    before = len(gc.get_objects())
    gc.disable()
    try:
        for _ in range(20):  # each leaves 40,000 objects behind
            simulate(main)
        assert len(gc.get_objects()) < before + 300_000
    finally:
        gc.enable()
        gc.collect()


def test_failures_of_processes_are_in_the_outcome() -> None:
    """A process that nobody waits for does not fail unseen."""

    async def fails() -> None:
        raise ValueError("unseen")

    async def main(world: World) -> None:
        world.host("h").start(fails, name="worker")
        await trio.sleep(1)

    (failure,) = simulate(main).failures
    assert (failure.label, str(failure.status)) == ("h/worker#101", "failed: ValueError: unseen")


def test_an_error_of_main_is_the_outcome() -> None:
    """`run` returns it, with everything else there is to know; `unwrap` raises it."""

    async def main(_world: World) -> None:
        await trio.sleep(2)
        raise LookupError("no")

    outcome = simulate(main, limits=Limits())
    assert (outcome.value, outcome.now_ns) == (None, 2_000_000_000)
    with pytest.raises(LookupError):
        outcome.unwrap()


def test_importing_the_package_loads_nothing_heavy() -> None:
    """`import simkit` stays light for command lines and plug-ins; names load what they need when asked for."""
    code = (
        "import sys, simkit; heavy = {'trio', 'apsw', 'networkx', 'hypothesis'} & set(sys.modules); assert not heavy, heavy;"
        "simkit.run; assert 'trio' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_public_name_is_there() -> None:
    """What the package promises it has, and what it has not it says."""
    for name in simkit.__all__:
        assert getattr(simkit, name) is not None
    assert "Tape" in dir(simkit)
    with pytest.raises(AttributeError, match="no attribute 'nowhere'"):
        _ = simkit.nowhere
