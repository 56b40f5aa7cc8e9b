"""Programs with one planted fault each, importable by other processes; and sound ones."""

from __future__ import annotations

import trio

import simkit
from simkit.disk import Disk
from simkit.world import World


async def replace(path: str, data: bytes, *, syncs: bool = True) -> None:
    """Replace a file as a whole, durably when `syncs`."""
    me = simkit.current_process()
    assert me is not None
    disk = me.host.disk
    file = disk.open("/new", owner=me, create=True)
    file.truncate(0)
    file.write(data, 0)
    if syncs:
        file.fsync()
    file.close()
    disk.rename("/new", path, owner=me)
    disk.sync_dir("/", owner=me)
    await trio.sleep(1)


def content(disk: Disk, path: str) -> bytes:
    """What is in a file; nothing when there is none."""
    return disk.read_file(path) if disk.exists(path) else b""


def mine() -> Disk:
    """The disk of the process that is running."""
    me = simkit.current_process()
    assert me is not None
    return me.host.disk


# ---- no fault at all


async def counts(upto: int) -> None:
    """Count in a file, durably; what is there already is made durable first."""
    me = simkit.current_process()
    assert me is not None
    mine().sync_dir("/", owner=me)
    for number in range(len(content(mine(), "/count")), upto):
        await replace("/count", b"x" * (number + 1))


async def sound(world: World) -> None:
    """Survives whatever a disk and a power loss do."""
    host = world.host("a")
    await host.supervise(counts, 3)
    host.power_loss("lose")
    assert content(host.disk, "/count") == b"xxx"


# ---- one crash


async def writes_carelessly() -> None:
    """Say that the work is done before it is durable."""
    if not mine().exists("/done"):
        await replace("/work", b"work", syncs=False)
        await replace("/done", b"done")


async def careless(world: World) -> None:
    """One power loss shows that the file has its name before its bytes."""
    host = world.host("a")
    await host.supervise(writes_carelessly)
    assert content(host.disk, "/work") == b"work"


# ---- a crash in the recovery from a crash


async def moves_on() -> None:
    """Keep what is to be done in /intent until it is done; after a crash, go on with it (and forget it too early)."""
    me = simkit.current_process()
    assert me is not None
    disk = mine()
    if disk.exists("/intent"):
        disk.unlink("/intent", owner=me)  # the fault: before the work is done again
        disk.sync_dir("/", owner=me)
        await replace("/done", b"done")
    elif not disk.exists("/begun"):
        await replace("/intent", b"to do")
        await replace("/begun", b"begun")
        await replace("/done", b"done")
        disk.unlink("/intent", owner=me)


async def recovers_once(world: World) -> None:
    """A crash after the intent is written is survived; one more in the recovery is not."""
    host = world.host("a")
    await host.supervise(moves_on)
    assert content(host.disk, "/done") == b"done"


# ---- two faults, both of which must strike before the point


async def asks_twice(world: World) -> None:
    """Two messages may be lost one at a time, not both: the answer is counted twice or not at all."""
    asker, server = world.host("asker"), world.host("server")
    heard: list[bytes] = []

    async def serve() -> None:
        socket = trio.socket.socket(type=trio.socket.SOCK_DGRAM)
        await socket.bind(("0.0.0.0", 5))
        while True:
            data, _ = await socket.recvfrom(10)
            heard.append(data)

    async def ask() -> None:
        socket = trio.socket.socket(type=trio.socket.SOCK_DGRAM)
        for word in (b"one", b"two"):
            await socket.sendto(word, ("server", 5))
            await trio.sleep(200)
        simkit.reachable("asked")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(server.supervise, serve)
        await trio.sleep(1)
        await asker.supervise(ask)
        nursery.cancel_scope.cancel()
    assert heard, "nobody was heard"


# ---- a schedule with one delay


async def late(world: World) -> None:
    """The second task relies on the first being one step ahead, as it is without a delay."""
    there: list[int] = []

    async def write() -> None:
        await trio.lowlevel.checkpoint()
        there.append(1)

    async def read() -> None:
        for _ in range(3):
            await trio.lowlevel.checkpoint()
        assert there, "it is late"

    async with trio.open_nursery() as nursery:
        nursery.start_soon(write)
        nursery.start_soon(read)


# ---- several choices at once


async def coins(world: World) -> None:
    """Three coins that all fall on the other side."""
    stream = world.tape.stream("coins")
    fallen = [stream.choose(f"coin {number}", 2) for number in range(3)]
    assert sum(fallen) < 3, "all three"


# ---- one choice after another


async def lock(world: World) -> None:
    """Five digits: each right one shows, and only all of them open it."""
    stream = world.tape.stream("digits")
    for number, digit in enumerate((3, 1, 4, 1, 5)):
        if stream.choose(f"digit {number}", 10) != digit:
            return
        simkit.reachable(f"digit {number} is right")
    raise AssertionError("open")


# ---- liveness


async def gives_up(world: World) -> None:
    """A reader that misses one message waits for it for ever, asking its clock all the time."""
    sender, reader = world.host("sender"), world.host("reader")

    async def send() -> None:
        socket = trio.socket.socket(type=trio.socket.SOCK_DGRAM)
        for number in range(3):
            await socket.sendto(b"%d" % number, ("reader", 5))
            await trio.sleep(1)

    async def read() -> None:
        socket = trio.socket.socket(type=trio.socket.SOCK_DGRAM)
        await socket.bind(("0.0.0.0", 5))
        missing = 3
        while missing:
            with trio.move_on_after(0.5):
                await socket.recvfrom(10)
                missing -= 1

    reading = reader.start(read)
    await trio.sleep(1)
    sender.start(send)
    await reading.wait()


# ---- what cannot be explored


_runs: list[int] = []


async def forgetful(world: World) -> None:
    """Each run takes one step more than the one before."""
    _runs.append(1)
    for _ in range(len(_runs)):
        await trio.lowlevel.checkpoint()


async def fails(world: World) -> None:
    """Without any fault."""
    raise RuntimeError("always")


async def endless(world: World) -> None:
    """Never returns."""
    while not world.is_calm:
        await world.sleep_ns(10**9)


async def bare(world: World) -> int:
    """Nothing can be struck."""
    return 1


async def served(world: World) -> int:
    """A server with SQLite, a client with streams, datagrams, named points: something of everything."""
    import apsw

    host, client = world.host("db"), world.host("client")
    told: list[bytes] = []

    async def serve() -> None:
        db = apsw.Connection("/db")
        db.execute("pragma locking_mode=exclusive; pragma journal_mode=wal; pragma synchronous=full").fetchall()
        db.execute("create table if not exists t (n integer primary key)")

        async def handle(stream: trio.SocketStream) -> None:
            async for data in stream:
                db.execute("insert or ignore into t values (?)", (int(data),))
                simkit.always("inserted", True)
                await stream.send_all(b"ok")

        await trio.serve_tcp(handle, 80)

    async def ask() -> None:
        for number in range(2):
            with trio.move_on_after(30):
                async with await trio.open_tcp_stream("db", 80) as stream:
                    await stream.send_all(b"%d" % number)
                    told.append(bytes(await stream.receive_some()))
            await trio.sleep(0 if simkit.maybe("hurry") else 1)

    host.start(serve)
    await trio.sleep(1)
    await client.start(ask).wait()
    return len(told)
