"""A link that is cut in one direction: between two network namespaces, whose frames one way go to nobody, and in simulation."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent.parent))

import trio

from tests.fidelity.stages import attempted

PORT = 7200
NEAR, FAR = "10.77.0.1", "10.77.0.2"
NOBODY = "02:00:00:00:00:99"


def ip(*words: str, inside: int | None = None) -> str:
    enter = [] if inside is None else ["nsenter", "--target", str(inside), "--net"]
    return subprocess.run([*enter, "ip", *words], check=True, capture_output=True, text=True).stdout


async def serve(heard: Callable[[bytes], object], host: str | None = None) -> None:
    """Send back what comes, and note it."""

    async def handle(stream: trio.SocketStream) -> None:
        async for data in stream:
            heard(bytes(data))
            await stream.send_all(data)

    await trio.serve_tcp(handle, PORT, host=host)


async def one_way(
    server: str, cut: Callable[[str], None], mend: Callable[[], None], heard: Callable[[], str]
) -> list[str]:
    """What is said arrives or not; what is answered arrives or not; once the link is whole, all of it has."""
    for _ in range(500):
        with contextlib.suppress(OSError):
            stream = await trio.open_tcp_stream(server, PORT)
            break
        await trio.sleep(0.01)
    seen: list[str] = []
    async with stream:
        await stream.send_all(b"a")
        seen.append(await attempted(lambda: stream.receive_some(1), 5))
        for direction, word in (("there", b"b"), ("back", b"c")):
            cut(direction)
            await stream.send_all(word)
            seen += [await attempted(lambda: stream.receive_some(1), 0.7), heard()]
            mend()
            seen += [await attempted(lambda: stream.receive_some(1), 20), heard()]
    return seen


@contextlib.contextmanager
def two_namespaces(record: Path) -> Iterator[tuple[Callable[[str], None], Callable[[], None]]]:
    """This process in one, a server in another, a cable between; gives how to cut and how to mend."""
    server = subprocess.Popen(["unshare", "--net", sys.executable, __file__, "serve", str(record)])
    try:
        for _ in range(500):  # until it has left our namespace
            own, its = (Path(f"/proc/{pid}/ns/net").readlink() for pid in ("self", server.pid))
            if own != its:
                break
            time.sleep(0.01)
        ip("link", "add", "v0", "type", "veth", "peer", "name", "v1", "netns", str(server.pid))
        ends = {"there": ("v0", NEAR, FAR, None), "back": ("v1", FAR, NEAR, server.pid)}
        for device, address, _, inside in ends.values():
            ip("address", "add", f"{address}/24", "dev", device, inside=inside)
            ip("link", "set", device, "up", inside=inside)
        macs = {
            direction: json.loads(ip("-json", "link", "show", device, inside=inside))[0]["address"]
            for direction, (device, _, _, inside) in ends.items()
        }

        def point(direction: str, mac: str) -> None:
            device, _, peer, inside = ends[direction]
            ip("neigh", "replace", peer, "lladdr", mac, "dev", device, "nud", "permanent", inside=inside)

        def mend() -> None:
            point("there", macs["back"])
            point("back", macs["there"])

        mend()
        yield lambda direction: point(direction, NOBODY), mend
    finally:
        server.kill()
        server.wait()


def main(record: Path) -> None:
    """Play the program for real, and print what it saw."""

    def heard() -> str:
        return record.read_text(encoding="ascii") if record.exists() else ""

    with two_namespaces(record) as (cut, mend):
        print(json.dumps(trio.run(one_way, FAR, cut, mend, heard)))


def note(record: Path) -> Callable[[bytes], Any]:
    """Append to a file."""

    def write(data: bytes) -> None:
        with record.open("ab") as file:
            file.write(data)

    return write


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        trio.run(serve, note(Path(sys.argv[2])))
    else:
        main(Path(sys.argv[1]))
