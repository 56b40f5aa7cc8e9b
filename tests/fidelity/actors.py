"""Programs that play as processes of their own: started by name on the simulated host, and as real processes.

Each is an async function of the files that it may use and of its arguments. As a script, this file needs only trio.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import trio

if TYPE_CHECKING:
    from tests.fidelity.stages import Files


async def echo(_files: Files, port: int | str) -> None:
    """Send back what comes."""

    async def handle(stream: trio.SocketStream) -> None:
        async for data in stream:
            await stream.send_all(data)

    await trio.serve_tcp(handle, int(port), host="0.0.0.0")


async def udp_echo(_files: Files, port: int | str) -> None:
    """Send back each message."""
    with trio.socket.socket(trio.socket.AF_INET, trio.socket.SOCK_DGRAM) as socket:
        await socket.bind(("0.0.0.0", int(port)))
        while True:
            data, source = await socket.recvfrom(1000)
            await socket.sendto(data, source)


async def deaf(_files: Files, port: int | str) -> None:
    """Accept, and never read."""

    async def handle(_stream: trio.SocketStream) -> None:
        await trio.sleep_forever()

    await trio.serve_tcp(handle, int(port), host="0.0.0.0")


async def talker(_files: Files, port: int | str) -> None:
    """Say something and wait."""

    async def handle(stream: trio.SocketStream) -> None:
        await stream.send_all(b"hello")
        await trio.sleep_forever()

    await trio.serve_tcp(handle, int(port), host="0.0.0.0")


async def writer(files: Files) -> None:
    """Write without a sync, say so by a second file, and clean up at the end, which never comes."""
    handle = files.open("/data", create=True)
    try:
        handle.write(b"unsynced", 0)
        files.open("/ready", create=True).close()
        await trio.sleep_forever()
    finally:
        files.open("/unwound", create=True).close()


async def polite(files: Files) -> None:
    """Clean up and end once it is asked to leave; what it was at is unwound."""
    with trio.open_signal_receiver(signal.SIGTERM) as signals:
        files.open("/ready", create=True).close()
        try:
            async for _ in signals:
                break
        finally:
            files.open("/unwound", create=True).close()
    await trio.sleep(0.05)
    files.open("/left", create=True).close()


async def ticker(files: Files) -> None:
    """Append a byte to a file every few milliseconds."""
    handle, number = files.open("/ticks", create=True), 0
    while True:
        handle.write(b".", number)
        number += 1
        await trio.sleep(0.005)


async def hungry(files: Files) -> None:
    """Take memory without end."""
    files.open("/ready", create=True).close()
    taken: list[Any] = []
    for _ in range(1000):
        taken.append(bytearray(1 << 20))
        reachable("takes memory")
        await trio.sleep(0)
    files.open("/sated", create=True).close()


async def thrifty(files: Files, megabytes: int | str = 0) -> None:
    """Take memory until there is no more, give it back, and go on; with a limit of its own on a real system."""
    if type(files).__name__ == "RealFiles":
        import resource

        with open("/proc/self/statm", encoding="ascii") as file:  # noqa: ASYNC230, PTH123
            used = int(file.read().split()[0]) * resource.getpagesize()
        limit = used + (int(megabytes) << 20)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    taken: list[Any] = []
    try:
        for _ in range(1000):
            taken.append(bytearray(1 << 20))
            reachable("takes memory")
        files.open("/sated", create=True).close()
    except MemoryError:
        taken.clear()
        files.open("/gave-back", create=True).close()
    finally:
        files.open("/unwound", create=True).close()
    taken.append(bytearray(1 << 20))
    files.open("/went-on", create=True).close()


def reachable(name: str) -> None:
    """The named point, where there is a simulation."""
    if "simkit" in sys.modules:
        from simkit.points import reachable as point

        point(name)


def main(folder: str, actor: str, *args: str) -> None:
    sys.path.insert(0, str(Path(__file__).parent.parent.parent))
    from tests.fidelity.stages import RealFiles

    trio.run(globals()[actor], RealFiles(Path(folder)), *args)


if __name__ == "__main__":
    main(*sys.argv[1:])
