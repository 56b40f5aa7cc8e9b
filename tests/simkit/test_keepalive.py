"""SO_KEEPALIVE on simulated sockets: when probes go out, what answers them, and what they find out."""

from __future__ import annotations

import socket as stdlib_socket

import attrs
import trio

from simkit.network import OUTSIDE, NetworkOptions
from simkit.world import World
from tests.simkit.network_rig import PORT, connected, serve
from tests.simkit.rig import outcome_of, simulate

S = 1_000_000_000
STEADY = NetworkOptions(latency_ns=1_000_000, spread=(1,), spread_weights=(1,))


def keep_alive(on: trio.SocketStream | trio.SocketListener, **options: int) -> None:
    on.socket.setsockopt(stdlib_socket.SOL_SOCKET, stdlib_socket.SO_KEEPALIVE, 1)
    for name, value in options.items():
        on.socket.setsockopt(stdlib_socket.IPPROTO_TCP, getattr(stdlib_socket, f"TCP_KEEP{name}"), value)


async def broken_by(stream: trio.SocketStream) -> str:
    try:
        await stream.receive_some()
    except trio.BrokenResourceError as error:
        return type(error.__cause__).__name__
    return "end"


def probes(world: World) -> list[int]:
    """When probes went out, in seconds."""
    return [event.now_ns // S for event in world.trace.events() if event.detail.startswith("probe")]


def test_by_default_it_takes_hours() -> None:
    """Two hours without a word, nine probes 75 seconds apart, and then it is over: as Linux has it."""

    async def main(world: World) -> tuple[str, int]:
        world.network.options = STEADY
        serve(world.host("server"))
        stream = await connected()
        keep_alive(stream)
        begun_ns = world.now_ns
        world.network.partition(OUTSIDE, "server")
        how = await broken_by(stream)
        return how, (world.now_ns - begun_ns) // S

    assert simulate(main) == ("TimeoutError", 7200 + 9 * 75)


def test_a_peer_that_is_there_answers_and_traffic_makes_probes_needless() -> None:
    """Idle, it is asked each time the idle time is over; while they talk, it is not."""

    async def main(world: World) -> list[int]:
        world.network.options = STEADY
        serve(world.host("server"))
        stream = await connected()
        keep_alive(stream, IDLE=10, INTVL=1, CNT=3)
        for _ in range(20):
            await stream.send_all(b"x")
            await stream.receive_some()
            await trio.sleep(3)
        quiet = len(probes(world))
        await trio.sleep(35)
        await stream.send_all(b"x")
        assert await stream.receive_some()
        return [quiet, len(probes(world))]

    quiet, asked = simulate(main)
    assert quiet == 0
    assert asked == 3


def test_an_outage_that_is_shorter_than_the_probes_is_not_noticed() -> None:
    """Unanswered probes are forgotten with the first answer."""

    async def main(world: World) -> bytes:
        world.network.options = STEADY
        serve(world.host("server"))
        stream = await connected()
        keep_alive(stream, IDLE=5, INTVL=1, CNT=4)
        for _ in range(5):
            world.network.partition(OUTSIDE, "server", one_way=True)
            await trio.sleep(3)
            world.network.heal()
            await trio.sleep(6)
        await stream.send_all(b"x")
        return bytes(await stream.receive_some())

    assert simulate(main) == b"x"


def test_switched_off_and_closed_it_asks_no_more() -> None:
    """Options can be taken back, and a closed socket leaves no timer: a deadlock is still one."""

    async def main(world: World) -> int:
        world.network.options = STEADY
        serve(world.host("server"))
        one, other = await connected(), await connected()
        for stream in (one, other):
            keep_alive(stream, IDLE=5, INTVL=1, CNT=2)
        one.setsockopt(stdlib_socket.SOL_SOCKET, stdlib_socket.SO_KEEPALIVE, 0)
        await other.aclose()
        await trio.sleep(100)
        return len(probes(world))

    assert simulate(main) == 0


def test_a_server_finds_out_about_a_client_without_power() -> None:
    """Accepted sockets have the options of the one that listens; the machine of the client stays dark, or comes back."""

    async def serves() -> list[str]:
        [listener] = await trio.open_tcp_listeners(PORT)
        keep_alive(listener, IDLE=5, INTVL=1, CNT=2)
        return [await broken_by(await listener.accept()) for _ in range(2)]

    async def connects() -> None:
        await trio.open_tcp_stream("server", PORT)
        await trio.sleep_forever()

    async def main(world: World) -> list[str]:
        world.network.options = attrs.evolve(STEADY, death="eof")
        server, client = world.host("server").start(serves), world.host("client")
        client.start(connects)
        await trio.sleep(1)
        client.power_loss(silent=True)
        await trio.sleep(20)
        client.start(connects)
        await trio.sleep(1)
        client.power_loss(silent=True)
        client.boot()
        return list((await server.wait()).value)

    outcome = outcome_of(main)
    assert outcome.unwrap() == ["TimeoutError", "ConnectionResetError"]
    assert outcome.digest == outcome_of(main).digest
