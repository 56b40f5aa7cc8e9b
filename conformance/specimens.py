"""Small programs that together touch everything a simulation has: `doctor` compares their traces on every Python.

Each is an async function of a world that does what its name says, under a random schedule and with faults drawn from the
tape, and tells what it saw by `tell`, so that a value which differs anywhere shows in the digest.
"""

from __future__ import annotations

import datetime
import os
import random
import secrets
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import apsw
import attrs
import trio

from simkit._storage.faults import DiskFaults
from simkit.network import NetworkOptions
from simkit.points import maybe
from simkit.process import current_process
from simkit.strategy import RandomWalk
from simkit.tape import Tape
from simkit.trace import Event
from simkit.world import KernelName, Limits, Outcome, World, run

__all__ = ["SEEDS", "SPECIMENS", "Trail", "trail"]

SEEDS = (0, 1, 2)
_LIMITS = Limits(steps=200_000, time_ns=3600 * 1_000_000_000)
_PORT = 7000


@attrs.frozen
class Trail:
    """What one run of a program left: its digest, and its events for whoever has to find where two differ."""

    digest: str
    events: tuple[Event, ...] = attrs.field(repr=False)


def trail(name: str, seed: int, kernel: KernelName = "fast") -> Trail:
    """Run the specimen `name` on `seed`. Raises what it raises: a specimen that fails is a fault of the kit."""
    tape = Tape.from_seed(seed)
    strategy = RandomWalk(tape.stream("schedule"))
    outcome: Outcome[None] = run(SPECIMENS[name], tape=tape, strategy=strategy, kernel=kernel, limits=_LIMITS)
    outcome.unwrap()
    return Trail(outcome.digest, tuple(outcome.trace.events()))


def tell(world: World, *seen: object) -> None:
    """Make what a program saw part of the trace."""
    world.trace.record("saw", *map(repr, seen))


# ---- tasks and time


async def tasks(world: World) -> None:
    """Nurseries, channels, locks, cancellation, async generators, groups of errors."""
    send, receive = trio.open_memory_channel[int](2)
    lock, done = trio.Lock(), trio.Event()

    async def produce(number: int) -> None:
        async with send.clone() as own:
            for step in range(4):
                async with lock:
                    await trio.lowlevel.checkpoint()
                await own.send(10 * number + step)

    async def count(task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED) -> None:
        task_status.started(7)
        await done.wait()

    async def numbers() -> AsyncIterator[int]:
        async with trio.open_nursery() as inner:
            inner.start_soon(trio.sleep, 0)
            for number in range(3):
                yield number

    async def fail(error: Exception) -> None:
        await trio.lowlevel.checkpoint()
        raise error

    async with trio.open_nursery() as nursery:
        tell(world, await nursery.start(count))
        for number in range(3):
            nursery.start_soon(produce, number)
        tell(world, [await receive.receive() for _ in range(12)])
        done.set()
    generator = numbers()
    tell(world, [number async for number in generator])
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fail, ValueError("one"))
            nursery.start_soon(fail, KeyError("two"))
    except* (ValueError, KeyError) as group:
        tell(world, [repr(error) for error in group.exceptions])
    with trio.CancelScope() as scope:
        scope.cancel()
        await trio.sleep_forever()
    tell(world, scope.cancelled_caught, await _late())


async def _late() -> int:
    """Work in a `finally` of what was cancelled."""
    beats = 0
    with trio.move_on_after(1):
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                for _ in range(3):
                    await trio.sleep(0.01)
                    beats += 1
    return beats


async def timers(world: World) -> None:
    """Deadlines that move, time-outs inside time-outs, many sleepers at one instant."""

    async def nap(seconds: float) -> None:
        await trio.sleep(seconds)
        tell(world, seconds, trio.current_time())

    async with trio.open_nursery() as nursery:
        for number in range(20):
            nursery.start_soon(nap, (number % 5) / 10)
    with trio.move_on_after(5) as outer:
        try:
            with trio.fail_after(1.5):
                outer.deadline -= 4
                await trio.sleep(3)
        except trio.TooSlowError:
            tell(world, "too slow")
    tell(world, outer.cancelled_caught, world.now_ns)
    fired: list[int] = []
    for delay in (30, 10, 20, 10):
        world.call_later(delay, fired.append, delay)
    await world.sleep_ns(100)
    tell(world, fired)


# ---- chance and clocks


async def chance(world: World) -> None:
    """Everything that Python can ask for randomness, time and local time, on hosts whose clocks differ."""

    async def ask() -> None:
        process = current_process()
        assert process is not None
        own = random.Random()
        items = list(range(8))
        random.shuffle(items)
        tell(world, items, own.random(), random.gauss(0, 1), random.sample(range(50), 5), random.choices("abc", k=4))
        tell(world, secrets.token_hex(8), os.urandom(8), str(uuid.uuid4()), str(uuid.uuid1()), os.getpid())
        moment = datetime.datetime.now()  # noqa: DTZ005  # local time is what is asked for
        tell(world, time.time_ns(), time.monotonic_ns(), moment.isoformat(), datetime.date.today())  # noqa: DTZ011
        tell(world, time.strftime("%Y-%m-%d %H:%M:%S %Z"), tuple(time.localtime()), time.mktime(time.localtime()))
        tell(world, moment.timestamp(), moment.astimezone().isoformat(), time.ctime())
        tell(world, maybe("specimen"), hash(42), sorted({"b", "a"}))

    for number in range(3):
        host = world.host(f"host{number}")
        host.clock.draw()
        host.clock.zone = datetime.timezone(datetime.timedelta(hours=3 * number - 3))
        host.clock.draw_jump()
        await host.start(ask).wait()
        await trio.sleep(random.random())


# ---- the network


async def network(world: World) -> None:
    """A server and clients over a bad network: latencies, stalls, broken connections, lost messages, a cut link."""
    world.network.options = NetworkOptions(
        breaks=(1, 60), stalls=(1, 20), syn_losses=(1, 8), dns_failures=(1, 8), datagram_losses=(1, 4)
    )

    async def echo(stream: trio.SocketStream) -> None:
        try:
            async for chunk in stream:
                await stream.send_all(chunk[::-1])
        except trio.BrokenResourceError as error:
            tell(world, type(error.__cause__).__name__)

    async def serve() -> None:
        async with trio.open_nursery() as nursery:
            await nursery.start(trio.serve_tcp, echo, _PORT)
            nursery.start_soon(_listen_for_messages, world)

    async def ask(number: int) -> None:
        for attempt in range(4):
            try:
                with trio.fail_after(20):
                    stream = await trio.open_tcp_stream("server", _PORT)
                    async with stream:
                        await stream.send_all(f"hello {number} {attempt}".encode())
                        tell(world, number, bytes(await stream.receive_some()))
            except (OSError, trio.BrokenResourceError, trio.TooSlowError) as error:
                tell(world, number, type(error).__name__, getattr(error, "errno", None))
            await trio.sleep(0.2)
        await _send_messages()

    server = world.host("server").start(serve)
    clients = [world.host(f"client{number}").start(ask, number) for number in range(3)]
    await trio.sleep(0.3)
    world.network.partition("client0", "server", one_way=True)
    await trio.sleep(2)
    world.network.heal()
    for client in clients:
        tell(world, str(await client.wait()))
    server.kill()
    tell(world, sorted(world.network.fired.items()))


async def _listen_for_messages(world: World) -> None:
    with trio.socket.socket(trio.socket.AF_INET, trio.socket.SOCK_DGRAM) as socket:
        await socket.bind(("0.0.0.0", _PORT + 1))  # noqa: S104  # an address of the simulation
        while True:
            tell(world, await socket.recvfrom(100))


async def _send_messages() -> None:
    with trio.socket.socket(trio.socket.AF_INET, trio.socket.SOCK_DGRAM) as socket:
        for number in range(5):
            try:
                await socket.sendto(b"message %d" % number, ("server", _PORT + 1))
            except OSError:
                await trio.sleep(0.1)


# ---- files and databases


async def disk(world: World) -> None:
    """Files by their usual names, with errors and delays drawn, and power losses between."""
    host = world.host("files")
    host.disk.faults = DiskFaults(
        read_eio=(1, 40), write_eio=(1, 40), fsync_eio=(1, 20), fsync_lies=(1, 10), short_read=(1, 10), slow=(1, 20)
    )

    async def write(round_: int) -> None:
        folder = Path("/data")
        await trio.Path(folder).mkdir(exist_ok=True)
        for number in range(4):
            try:
                with (folder / "new").open("wb") as file:
                    file.write(b"%d" % number * (500 + 300 * round_))
                    file.flush()
                    os.fsync(file.fileno())
                (folder / "new").replace(folder / f"{number % 2}")
                await trio.to_thread.run_sync(os.listdir, folder)
                path = trio.Path(f"/data/{number % 2}")
                tell(world, round_, number, len(await path.read_bytes()), (await path.stat()).st_size)
            except OSError as error:
                tell(world, round_, number, type(error).__name__, error.errno)

    for round_ in range(4):
        process = host.start(write, round_)
        with trio.move_on_after(0.5):
            await process.wait()
        host.power_loss()
        tell(world, sorted((name, host.disk.size(f"/data/{name}")) for name in _names(host.disk, "/data")))
    tell(world, host.disk.digest(), sorted(host.disk.fired.items()))


def _names(disk_: Any, folder: str) -> list[str]:
    return list(disk_.listdir(folder)) if disk_.is_directory(folder) else []


async def sqlite(world: World) -> None:
    """Transactions in both journal modes, cut off at a boundary by a loss of power, and recovery."""
    host = world.host("base")
    stream = world.tape.stream("specimen")

    async def work(mode: str) -> None:
        connection = apsw.Connection(f"/{mode}.db")
        for statement in ("locking_mode=EXCLUSIVE", f"journal_mode={mode}", "synchronous=FULL"):
            connection.pragma(*statement.split("="))
        connection.execute("CREATE TABLE IF NOT EXISTS t(k INTEGER PRIMARY KEY, v, r, at)")
        for _ in range(4):
            connection.execute(
                "INSERT INTO t(v, r, at) VALUES(hex(randomblob(20)), random(), strftime('%Y-%m-%d %H:%M:%f', 'now'))"
            )
            await trio.sleep(0.01)
        tell(world, list(connection.execute("SELECT * FROM t")))

    for mode in ("DELETE", "WAL"):
        host.at_boundary(host.boundaries + 5 + stream.choose("crash", 40), host.power_loss)
        for _ in range(2):
            tell(world, str(await host.start(work, mode).wait()))
        await host.start(work, mode).wait()
    tell(world, host.boundaries, host.disk.digest())


# ---- threads and processes


async def threads(world: World) -> None:
    """Functions in threads that sleep, call back, and are given up."""

    def block(number: int) -> int:
        total = 0
        for step in range(3):
            time.sleep(0.01 * ((number + step) % 3))
            total += trio.from_thread.run_sync(int, f"{number}{step}")
        trio.from_thread.run(trio.sleep, 0.02)
        return total

    async def use() -> None:
        async with trio.open_nursery() as nursery:
            for number in range(4):
                nursery.start_soon(_thread, world, block, number)
        with trio.move_on_after(0.05):
            await trio.to_thread.run_sync(time.sleep, 1, abandon_on_cancel=True)
        tell(world, "abandoned", trio.current_time())

    process = world.host("threads").start(use)
    tell(world, str(await process.wait()))
    await trio.sleep(2)


async def _thread(world: World, fn: Callable[[int], int], number: int) -> None:
    tell(world, number, await trio.to_thread.run_sync(fn, number), trio.current_time())


async def processes(world: World) -> None:
    """Kill, pause, stall, restart, an upgrade, a machine that goes dark, exits of every kind."""
    host, stream = world.host("machine"), world.tape.stream("specimen")

    async def beat(label: str) -> str:
        process = current_process()
        assert process is not None
        try:
            for number in range(stream.choose("beats", 6) + 2):
                await trio.Path(f"/beat-{process.pid}").write_bytes(b"%d" % number)
                await trio.sleep(0.05)
        finally:
            tell(world, "unwound", label)
        if stream.choose("fails", 3) == 2:
            raise RuntimeError(label)
        return label

    for number in range(6):
        process = host.start(beat, f"run {number}", name="app")
        await trio.sleep(0.03 * stream.choose("wait", 4))
        what = stream.choose("what", 3)
        if what == 0:
            process.kill()
        elif what == 1:
            process.pause()
        else:
            process.stall(200_000_000)
        await trio.sleep(0.2)
        process.resume()
        tell(world, str(await process.wait()))
    dark = host.start(beat, "dark")
    await trio.sleep(0.01)
    host.power_loss(silent=True)
    tell(world, str(dark.status), host.up, sorted(_names(host.disk, "/")))
    host.boot()
    tell(world, host.up, [process.label for process in world.failures])


Specimen = Callable[[World], Awaitable[None]]
SPECIMENS: Mapping[str, Specimen] = MappingProxyType(
    {
        "tasks": tasks,
        "timers": timers,
        "chance and clocks": chance,
        "network": network,
        "disk": disk,
        "sqlite": sqlite,
        "threads": threads,
        "processes": processes,
    }
)
