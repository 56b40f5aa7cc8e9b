"""The composite seed: a small replicated store in plain trio, its world's faults, and its invariant, judged a seed at a time.

Three replicas, four clients, a network that loses and delays. A write is acknowledged once it is in the write-ahead logs of
two replicas, synced; clients ask again when no answer comes in time. In the middle of it the power of one replica fails,
and it comes back on what its disk kept. At the end no acknowledged write may be missing.
"""

from __future__ import annotations

import collections
import contextlib
import random
import socket
import types
from collections.abc import Coroutine, Generator, Iterator
from typing import Any

import attrs
import trio

import simkit.world
from simkit.network import NetworkOptions
from simkit.process import current_process
from simkit.strategy import RandomWalk
from simkit.tape import Tape
from simkit.trace import Sink, Trace
from simkit.world import World, run
from tests.benchmarks.contest import Contest, Goal

REPLICAS = ("r0", "r1", "r2")
CLIENTS = ("c0", "c1", "c2", "c3")
WRITES = 5  # of each client
PORT = 4000
FOLDER = "/data"
LOG = f"{FOLDER}/log"
NETWORK = NetworkOptions(latency_ns=1_000_000, spread=(1, 4, 20), spread_weights=(12, 3, 1), datagram_losses=(1, 20))


# ------------------------------------------------------------------------------------------------------------ the program
class Log:
    """A file of lines on the disk of the host, each synced before anybody hears of it."""

    def __init__(self) -> None:
        me = current_process()
        assert me is not None
        disk = me.host.disk
        self._file = disk.open(LOG, owner=me, create=True)
        disk.sync_dir(FOLDER, owner=me)  # else a power loss may take the file's name
        self._seen = set(lines_of(disk.read_file(LOG)))
        self._end = sum(len(line) + 1 for line in self._seen)
        self._file.truncate(self._end)

    def add(self, line: bytes) -> None:
        """Append a line, durably; one that is there already is left alone."""
        if line not in self._seen:
            self._seen.add(line)
            self._file.write(line + b"\n", self._end)
            self._file.fsync()
            self._end += len(line) + 1


def lines_of(content: bytes) -> list[bytes]:
    """Whole lines; the last one may have been torn."""
    return content.split(b"\n")[:-1]


async def bound() -> Any:
    sock = trio.socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    await sock.bind(("", PORT))
    return sock


async def primary(backups: list[tuple[str, int]]) -> None:
    """Write down what clients ask for, hand it on, acknowledge it when a backup has it as well."""
    sock, log = await bound(), Log()
    waiting: dict[bytes, Any] = {}
    while True:
        message, sender = await sock.recvfrom(2048)
        kind, _, line = message.partition(b" ")
        if kind == b"put":
            log.add(line)
            waiting[line] = sender
            for backup in backups:
                await sock.sendto(b"copy " + line, backup)
        elif line in waiting:  # else it was acknowledged already, or asked for before a crash
            await sock.sendto(line, waiting.pop(line))


async def backup() -> None:
    """Write down what the primary sends, and say so."""
    sock, log = await bound(), Log()
    while True:
        message, sender = await sock.recvfrom(2048)
        line = message.partition(b" ")[2]
        log.add(line)
        await sock.sendto(b"have " + line, sender)


async def client(name: str, server: tuple[str, int], acknowledged: list[bytes]) -> None:
    """Write one thing after the other, each until it is acknowledged."""
    sock = await bound()
    for number in range(WRITES):
        line = f"{name} {number}".encode()
        while line not in acknowledged:
            await sock.sendto(b"put " + line, server)
            with trio.move_on_after(0.1):
                while (await sock.recvfrom(2048))[0] != line:
                    pass
                acknowledged.append(line)
        await trio.sleep(0.01)


# -------------------------------------------------------------------------------------------------------------- its world
async def main(world: World) -> None:
    """Start everything, let the power of one replica fail, wait for the clients, judge."""
    world.network.options = NETWORK
    hosts = [world.host(name) for name in REPLICAS]
    addresses = [(host.address, PORT) for host in hosts]
    programs = {host: (primary, addresses[1:]) if host is hosts[0] else (backup,) for host in hosts}
    for host in hosts:
        host.start(*programs[host])
    acknowledged: list[bytes] = []
    clients = [world.host(name).start(client, name, addresses[0], acknowledged) for name in CLIENTS]
    choices = world.tape.stream("accident")
    await trio.sleep(0.02 + 0.01 * choices.randrange("when", 10))
    victim = hosts[choices.randrange("who", len(hosts))]
    victim.power_loss()
    await trio.sleep(0.05)
    victim.start(*programs[victim])
    for process in clients:
        await process.wait()
    assert not world.failures
    logs = [lines_of(host.disk.durable_files().get(LOG, b"")) for host in hosts]
    assert len(acknowledged) == len(CLIENTS) * WRITES
    assert all(sum(line in log for log in logs) >= 2 for line in acknowledged), "an acknowledged write was lost"


# ------------------------------------------------------------------------------------------------------------ the contests
OURS = "simkit: guard, trace and digest"
BARE = "bare coroutine scheduler, random pick"
NEITHER = "simkit: neither"
BARE_SWITCHES = 20_000
BARE_TASKS = 10


@attrs.frozen
class Count:
    """What some seeds were made of."""

    seeds: int = 0
    steps: int = 0
    events: int = 0


def contests(scale: int) -> list[Contest]:
    """Seeds, their steps and their events a second, and what guard and trace cost of it."""
    count = max(1, scale * 3 // 10)
    return [
        Contest(
            "composite seeds: 3 replicas, 4 clients, lossy network, log, crash, restart",
            "seeds",
            {OURS: lambda: seeds(count).seeds, BARE: bare},
            goals={BARE: Goal(500, 2_500_000)},
        ),
        Contest("steps of these seeds", "steps", {OURS: lambda: seeds(count).steps, BARE: bare}),
        Contest("events of these seeds", "events", {OURS: lambda: seeds(count).events, BARE: bare}),
        Contest(
            "guard and trace of a composite seed",
            "seeds",
            {
                "simkit: guard and trace": lambda: seeds(count, digest=False).seeds,
                NEITHER: lambda: seeds(count, watched=False).seeds,
                OURS: lambda: seeds(count).seeds,
            },
            {NEITHER: 1 / 1.1},  # at most a tenth more time
        ),
    ]


def seeds(count: int, *, watched: bool = True, digest: bool = True) -> Count:
    """Run seeds 0, 1, 2…, each with guard, trace and the trace's digest; or without the digest, or with none of these."""
    steps = events = 0
    for seed in range(count):
        tape = Tape.from_seed(seed)
        with contextlib.nullcontext() if watched else _silence():
            outcome = run(main, tape=tape, strategy=RandomWalk(tape.stream("schedule")), guard=watched)
        outcome.unwrap()
        assert not (watched and digest) or outcome.digest
        steps, events = steps + outcome.steps, events + len(outcome.trace)
    return Count(count, steps, events)


class _Silent(Trace):
    """Forgets what it is told, as cheaply as that can be done; `run` itself has no such switch."""

    def __init__(self, sink: Sink | None = None) -> None:
        super().__init__(sink)
        nowhere: Any = collections.deque[object](maxlen=0)
        self.told = nowhere
        self.record_step = nowhere.append

    def record(self, kind: str, *details: str | int | None) -> None:
        """Forget it."""


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Let runs have a trace that keeps nothing."""
    module: Any = simkit.world
    before, module.Trace = module.Trace, _Silent
    try:
        yield
    finally:
        module.Trace = before


@types.coroutine
def _trap() -> Generator[None, None, None]:
    yield


async def _spin(times: int) -> None:
    for _ in range(times):
        await _trap()


def bare() -> int:
    """Task switches of the least that picks at random: a list of coroutines, and a generator of numbers."""
    ready: list[Coroutine[Any, Any, None]] = [_spin(BARE_SWITCHES // BARE_TASKS) for _ in range(BARE_TASKS)]
    draw = random.Random(1).random
    while ready:
        task = ready.pop(int(draw() * len(ready)))
        try:
            task.send(None)
        except StopIteration:
            continue
        ready.append(task)
    return BARE_SWITCHES
