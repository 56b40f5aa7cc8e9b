"""A world in which everything goes wrong: drawn per run, the same in both loops and under every hash seed, then calm."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import attrs
import pytest
import trio

import simkit
from simkit.disk import DiskFaults
from simkit.network import NetworkOptions
from simkit.strategy import RandomWalk
from simkit.swarm import draw_faults
from simkit.tape import Tape
from simkit.world import KernelName, Outcome, World, run
from tests.simkit.rig import simulate

ROOT = Path(__file__).parents[2]
PORT = 7000


async def keeper(world: World) -> None:
    """Keep numbers in a log that is replaced by a rename now and then; answer each with what was kept."""
    host = world.host("keeper")
    disk, owner = host.disk, host.processes[-1]

    async def handle(stream: trio.SocketStream) -> None:
        async for data in stream:
            simkit.reachable("asked")
            try:
                log = disk.open("/data/log", create=True, owner=owner)
                log.write(bytes(data), log.size())
                log.fsync()
                if simkit.maybe("rotate", 1, 3):
                    disk.rename("/data/log", "/data/old", owner=owner)
                    disk.sync_dir("/data", owner=owner)
                simkit.always("log grows", log.read(1, 0) or host.disk.fired)
            except OSError:
                simkit.sometimes("disk fails", condition=True)
                return
            await stream.send_all(data)

    await trio.serve_tcp(handle, PORT)


async def client(world: World, answers: list[int]) -> None:
    for number in range(8):
        with trio.move_on_after(30):
            try:
                async with await trio.open_tcp_stream("keeper", PORT) as stream:
                    await stream.send_all(bytes([number]))
                    answers.append(len(await stream.receive_some(1)))
            except (OSError, trio.BrokenResourceError):
                await trio.sleep(0.1)


async def stormy(world: World) -> tuple[int, int]:
    world.copies.declare("log", [("keeper", "/data")])
    draw_faults(world, ["keeper", "client"], silent=True)
    answers: list[int] = []
    keepers = [world.host("keeper").start(keeper, world)]
    asking = world.host("client").start(client, world, answers)
    for round_number in range(4):
        await trio.sleep(2)
        world.host("keeper").clock.draw_jump()
        world.host("keeper").power_loss(silent=round_number % 2 == 0)
        keepers.append(world.host("keeper").start(keeper, world))
    world.network.clog("client", "keeper", 10**9)
    with trio.move_on_after(400):
        await asking.wait()
    await simkit.eventually("keeper runs", lambda: keepers[-1].alive or keepers[-1].status is not None)
    return len(answers), world.now_ns


def outcome_of(seed: int, kernel: KernelName = "fast") -> Outcome[tuple[int, int]]:
    tape = Tape.from_seed(seed)
    return run(stormy, tape=tape, strategy=RandomWalk(tape.stream("schedule")), kernel=kernel)


@pytest.mark.parametrize("seed", range(6))
def test_both_loops_meet_the_same_faults(seed: int) -> None:
    """Same digest, same counts of faults and points."""
    fast, fallback = outcome_of(seed), outcome_of(seed, "fallback")
    assert fast.unwrap() == fallback.unwrap()
    assert fast.digest == fallback.digest
    assert fast.fired == fallback.fired
    assert fast.points == fallback.points


@pytest.mark.slow
def test_hash_seeds_change_nothing() -> None:
    """Two interpreters that hash strings differently see the same runs."""
    program = "from tests.simkit.test_swarm import outcome_of\nprint([outcome_of(s).digest for s in range(4)])"
    seen = [
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "77")
    ]
    assert seen[0] == seen[1]
    assert seen[0] == f"{[outcome_of(seed).digest for seed in range(4)]}\n"


def test_a_storm_is_replayed_from_its_departures() -> None:
    """The departures alone bring back every fault."""
    first = outcome_of(5)
    tape = Tape.from_departures(first.departures, entropy=5)
    again = run(stormy, tape=tape, strategy=RandomWalk(tape.stream("schedule")))
    assert again.digest == first.digest
    assert again.fired == first.fired
    assert tape.unused() == {}


def test_runs_differ_in_which_faults_they_have() -> None:
    """Each fault is on in some runs and off in others; silent damage only when asked for."""

    async def main(world: World) -> dict[str, str]:
        world.host("a")
        return dict(draw_faults(world))

    runs = [simulate(main, seed) for seed in range(40)]
    names = {name for drawn in runs for name in drawn}
    options = [f"network.{field.name}" for field in attrs.fields(NetworkOptions) if field.default == (0, 1)]
    options += [f"disk/a.{field.name}" for field in attrs.fields(DiskFaults) if field.default == (0, 1)]
    silent = {f"disk/a.{name}" for name in ("fsync_lies", "sync_dir_lies", "bit_rot", "misdirected_write")}
    assert set(options) - silent <= names
    assert not names & silent
    assert all(any(name not in drawn for drawn in runs) for name in names)


def test_an_empty_tape_draws_fair_weather() -> None:
    """Without departures nothing is wrong."""

    async def main(world: World) -> dict[str, str]:
        world.host("a")
        return dict(draw_faults(world, silent=True))

    assert run(main, tape=Tape.from_departures({})).value == {}
