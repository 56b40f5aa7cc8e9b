"""UDP on the loopback and in simulation."""

from __future__ import annotations

from pathlib import Path

import trio

from tests.fidelity.stages import Stage, agree, attempted


def udp() -> trio.socket.SocketType:
    return trio.socket.socket(trio.socket.AF_INET, trio.socket.SOCK_DGRAM)


def test_messages_keep_their_bounds(tmp_path: Path) -> None:
    """One receive a message, the rest of one that is too long is lost, an empty one is a message; the sender is told."""

    async def program(_: Stage) -> list[object]:
        with udp() as one, udp() as other:
            await one.bind(("127.0.0.1", 0))
            await other.bind(("127.0.0.1", 0))
            for data in (b"first", b"", b"second"):
                await other.sendto(data, one.getsockname())
            await trio.sleep(0.1)
            seen: list[object] = []
            for _number in range(3):
                data, source = await one.recvfrom(4)
                seen += [data, source == other.getsockname()]
            return seen

    assert agree(program, tmp_path) == [b"firs", True, b"", True, b"seco", True]


def test_nobody_is_there(tmp_path: Path) -> None:
    """An unconnected socket never learns of it, a connected one at the next call; too long is refused at once."""

    async def program(stage: Stage) -> list[str]:
        port = stage.port()
        with udp() as one:
            seen = [await attempted(lambda: one.sendto(b"x", ("127.0.0.1", port)))]
            await trio.sleep(0.1)
            seen.append(await attempted(lambda: one.sendto(b"x", ("127.0.0.1", port))))
            seen.append(await attempted(lambda: one.sendto(bytes(65_508), ("127.0.0.1", port))))
        with udp() as one:
            await one.connect(("127.0.0.1", port))
            for _ in range(3):
                seen.append(await attempted(lambda: one.send(b"x")))
                await trio.sleep(0.1)
            return [*seen, await attempted(lambda: one.recv(1), 0.2)]

    assert agree(program, tmp_path)[:4] == ["1", "1", "EMSGSIZE", "1"]


def test_what_nobody_reads_is_dropped(tmp_path: Path) -> None:
    """The receive queue is bounded: of very many messages the first arrive, the last do not, and sending never blocks."""

    async def program(_: Stage) -> list[bool]:
        with udp() as one, udp() as other:
            await one.bind(("127.0.0.1", 0))
            for number in range(2000):
                await other.sendto(number.to_bytes(2, "big") * 500, one.getsockname())
            await trio.sleep(0.1)
            received = []
            with trio.move_on_after(0.3):
                while True:
                    received.append(int.from_bytes((await one.recv(2000))[:2], "big"))
            return [received[:5] == [0, 1, 2, 3, 4], 1999 in received, 20 < len(received) < 1000]

    assert agree(program, tmp_path) == [True, False, True]
