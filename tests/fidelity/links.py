"""Programs over a link that is cut, mended, narrow or nameless: played in a network namespace of their own, as a child
process whose loopback is switched off and on, and in a simulated network.
"""

from __future__ import annotations

import json
import socket as stdlib_socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent.parent))

import trio
import trio.testing

from tests.fidelity import actors
from tests.fidelity.stages import attempted, connecting, told

if TYPE_CHECKING:
    from tests.fidelity.stages import SimulatedStage

TCP_USER_TIMEOUT = 18
NO_FILES: Any = None
PORT = 7100


class Link(Protocol):
    """What can be done to the link between the program and the server's machine."""

    server: str

    def cut(self) -> None: ...
    def mend(self) -> None: ...
    def narrow(self, bytes_per_s: int) -> None: ...
    def give_up_after(self, stream: trio.SocketStream, ms: int) -> None: ...


class RealLink:
    """The loopback of a namespace."""

    server = "127.0.0.1"

    def cut(self) -> None:
        subprocess.run(["ip", "link", "set", "lo", "down"], check=True)

    def mend(self) -> None:
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)

    def narrow(self, bytes_per_s: int) -> None:
        rate = f"rate {bytes_per_s * 8} burst 70kb latency 10s"
        subprocess.run(["tc", "qdisc", "add", "dev", "lo", "root", "tbf", *rate.split()], check=True)

    def give_up_after(self, stream: trio.SocketStream, ms: int) -> None:
        stream.setsockopt(stdlib_socket.IPPROTO_TCP, TCP_USER_TIMEOUT, ms)


class SimulatedLink:
    """The link between the outside and the machine."""

    def __init__(self, stage: SimulatedStage) -> None:
        self._network = stage.world.network
        self.server = stage.server

    def cut(self) -> None:
        self._network.partition("outside", self.server)

    def mend(self) -> None:
        self._network.heal()

    def narrow(self, bytes_per_s: int) -> None:
        self._change(bytes_per_s=bytes_per_s)

    def give_up_after(self, _: trio.SocketStream, ms: int) -> None:
        self._change(retransmit_timeout_ns=ms * 1_000_000)

    def _change(self, **options: Any) -> None:
        import attrs

        self._network.options = attrs.evolve(self._network.options, **options)


async def connected(link: Link) -> trio.SocketStream:
    for _ in range(500):
        try:
            return await trio.open_tcp_stream(link.server, PORT)
        except OSError:
            await trio.sleep(0.01)
    raise AssertionError("nobody listens")


async def cut_and_mended(link: Link) -> list[str]:
    """What is sent into a cut link waits, as does connecting; once it is mended, both get through."""
    async with await connected(link) as stream:
        await stream.send_all(b"a")
        seen = [await attempted(lambda: stream.receive_some(1))]
        link.cut()
        seen.append(await attempted(lambda: stream.send_all(b"b")))
        seen.append(await attempted(lambda: stream.receive_some(1), 0.5))
        seen.append(await attempted(connecting(link.server, PORT), 0.5))
        link.mend()
        seen.append(await attempted(lambda: stream.receive_some(1), 20))
        seen.append(await attempted(connecting(link.server, PORT), 20))
    return seen


async def given_up(link: Link) -> list[str]:
    """Whoever sent into a link that stays cut is told by ETIMEDOUT; then the stream is at its end; a listener is not told."""
    async with await connected(link) as talker, await connected(link) as listener:
        link.give_up_after(talker, 1500)
        link.cut()
        await talker.send_all(b"x")
        seen = [await attempted(lambda: talker.receive_some(1), 20), await attempted(lambda: talker.receive_some(1))]
        seen.append(await attempted(lambda: talker.send_all(b"x")))
        seen.append(await attempted(lambda: listener.receive_some(1)))
        link.mend()
    return seen


def probing(stream: trio.SocketStream, idle_s: int, interval_s: int, probes: int) -> None:
    """Ask for keep-alive probes."""
    stream.setsockopt(stdlib_socket.SOL_SOCKET, stdlib_socket.SO_KEEPALIVE, 1)
    for option, value in (("IDLE", idle_s), ("INTVL", interval_s), ("CNT", probes)):
        stream.setsockopt(stdlib_socket.IPPROTO_TCP, getattr(stdlib_socket, f"TCP_KEEP{option}"), value)


async def kept_alive(link: Link) -> list[str]:
    """Over a link that stays cut, whoever probes is told although it sent nothing; before, and without, nobody is."""
    async with await connected(link) as probes, await connected(link) as patient, await connected(link) as silent:
        probing(probes, 1, 1, 2)
        probing(patient, 1, 1, 100)
        seen = [await attempted(lambda: probes.receive_some(1), 3.5)]  # probes that are answered are not seen
        link.cut()
        seen.append(await attempted(lambda: probes.receive_some(1), 1.5))
        seen.append(await attempted(lambda: probes.receive_some(1), 10))
        seen += [await attempted(lambda: probes.receive_some(1)), await attempted(lambda: probes.send_all(b"x"))]
        seen += [
            await attempted(lambda: patient.receive_some(1), 0.5),
            await attempted(lambda: silent.receive_some(1), 0.5),
        ]
        link.mend()
        await patient.send_all(b"y")
        seen.append(await attempted(lambda: patient.receive_some(1), 10))
    return seen


async def narrowed(link: Link) -> list[bool]:
    """A megabyte there and back over a link of two megabytes a second takes its time, and arrives."""
    async with await connected(link) as stream:
        link.narrow(2_000_000)
        begun, data, received = trio.current_time(), bytes(1_000_000), bytearray()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stream.send_all, data)
            while len(received) < len(data):
                received += await stream.receive_some()
        took = trio.current_time() - begun
    return [0.4 < took < 10, received == data]


async def messages(link: Link) -> list[int]:
    """Of messages sent before, while and after the link is cut, the one in the middle is lost for good."""
    answered: list[int] = []
    with trio.socket.socket(trio.socket.AF_INET, trio.socket.SOCK_DGRAM) as socket:
        await socket.bind(("0.0.0.0", 0))
        for number in range(3):
            if number == 1:
                link.cut()
            await socket.sendto(bytes([number]), (link.server, PORT))
            await trio.sleep(0.1)
            link.mend()
        with trio.move_on_after(1):
            while True:
                answered.append((await socket.recvfrom(10))[0][0])
    return answered


async def nameless(_: Link) -> list[object]:
    """No resolver can be reached."""
    try:
        await trio.open_tcp_stream("server.example.org", 80)
    except OSError as error:
        return [told(error), error.errno]
    return []


async def play(link: Link, program: str) -> Any:
    with trio.fail_after(60):
        return await globals()[program](link)


async def main(program: str) -> None:
    link = RealLink()
    link.mend()
    async with trio.open_nursery() as nursery:
        for actor in (actors.echo, actors.udp_echo):
            nursery.start_soon(actor, NO_FILES, PORT)
        await trio.testing.wait_all_tasks_blocked()
        seen = await play(link, program)
        nursery.cancel_scope.cancel()
    print(json.dumps(seen))


if __name__ == "__main__":
    trio.run(main, sys.argv[1])
