"""Simulated networks in bad weather: clogged, narrow, lossy, half open, nameless; drawn from the tape or by name."""

from __future__ import annotations

import socket as stdlib_socket

import attrs
import pytest
import trio

from simkit.network import OUTSIDE, NetworkOptions
from simkit.world import Host, World
from tests.simkit.network_rig import MS, PORT, connected, in_process, read_all, serve, silent
from tests.simkit.rig import outcome_of, simulate

S = 1_000_000_000
STEADY = NetworkOptions(latency_ns=5 * MS, spread=(1,), spread_weights=(1,))


async def round_trip_ns(world: World, stream: trio.SocketStream, data: bytes = b"x") -> int:
    begun_ns = world.now_ns
    await stream.send_all(data)
    left = len(data)
    while left:
        left -= len(await stream.receive_some())
    return world.now_ns - begun_ns


def test_a_clogged_link_lets_nothing_through_and_then_everything() -> None:
    """One way: only what goes there waits; it all arrives when the link is free."""

    async def main(world: World) -> list[int]:
        world.network.options = STEADY
        serve(world.host("server"))
        stream = await connected()
        world.network.clog(OUTSIDE, "server", 2 * S, one_way=True)
        first = await round_trip_ns(world, stream)
        world.network.clog("server", world.host("elsewhere").name, 2 * S)
        return [first // MS, await round_trip_ns(world, stream) // MS, world.network.fired["clog"]]

    assert simulate(main) == [2010, 10, 2]


def test_clogs_are_drawn_from_the_tape() -> None:
    """About one segment in ten clogs its link, and a replay of the departures clogs the same."""

    async def main(world: World) -> tuple[int, int]:
        world.network.options = attrs.evolve(STEADY, clogs=(1, 10), clog_ns=S)
        serve(world.host("server"))
        stream = await connected()
        for _ in range(50):
            await round_trip_ns(world, stream)
        return world.network.fired["clog"], world.now_ns

    clogs, now_ns = simulate(main)
    assert 3 < clogs < 30
    assert now_ns > 3 * S
    assert simulate(main) == (clogs, now_ns)


def test_bandwidth_makes_size_take_time() -> None:
    """100 kB a second: what is sent waits for what was sent before it, in each direction on its own."""

    async def main(world: World) -> list[int]:
        world.network.options = attrs.evolve(STEADY, bytes_per_s=100_000)
        serve(world.host("server"))
        stream = await connected()
        return [await round_trip_ns(world, stream, b"x" * size) // MS for size in (1_000, 10_000)]

    assert simulate(main) == [10 + 2 * 10, 10 + 2 * 100]


def test_a_slow_reader_makes_its_peer_wait_for_room() -> None:
    """The window fills, the sender blocks, and all bytes arrive in order."""

    async def main(world: World) -> tuple[bool, int]:
        world.network.options = attrs.evolve(STEADY, buffer_bytes=4096)
        world.network.slow_reader("server", pause_ns=S, bytes_max=1024)
        received = bytearray()

        async def collect(stream: trio.SocketStream) -> None:
            received.extend(await read_all(stream))

        serve(world.host("server"), collect)
        stream = await connected()
        data = bytes(range(256)) * 64
        begun_ns = world.now_ns
        await stream.send_all(data)
        sent_ns = world.now_ns - begun_ns
        await stream.aclose()
        await trio.sleep(60)
        assert world.network.fired["slow-read"] >= 16
        return bytes(received) == data, sent_ns // S

    assert simulate(main) == (True, 12)


@pytest.mark.parametrize(("what", "ms"), [("stall", 1010), ("break", None)])
def test_a_lost_segment_is_a_stall_or_a_reset(what: str, ms: int | None) -> None:
    """By name, on one link, once."""

    async def main(world: World) -> list[int | None]:
        world.network.options = STEADY
        serve(world.host("server"))
        stream = await connected()
        times: list[int | None] = []
        world.network.strike_next(what, OUTSIDE, "server")  # type: ignore[arg-type]
        for _ in range(2):
            try:
                times.append(await round_trip_ns(world, stream) // MS)
            except trio.BrokenResourceError:
                times.append(None)
        assert world.network.fired[what] == 1
        return times

    assert simulate(main) == [ms, None if ms is None else 10]


def test_a_lost_first_packet_makes_connecting_take_a_second() -> None:
    """The SYN is sent again; when it is lost for ever, connecting times out."""

    async def main(world: World) -> tuple[int, str]:
        world.network.options = STEADY
        serve(world.host("server"))
        await trio.sleep(1)
        world.network.strike_next("syn-loss", target="server")
        begun_ns = world.now_ns
        await connected()
        took_ns = world.now_ns - begun_ns
        world.network.options = attrs.evolve(STEADY, syn_losses=(1, 1))
        with pytest.raises(OSError, match="all attempts") as info:
            await trio.open_tcp_stream("server", PORT)
        cause = info.value.__cause__
        assert isinstance(cause, ExceptionGroup)
        return took_ns // MS, str(cause.exceptions[0])

    took_ms, cause = simulate(main)
    assert took_ms == 1015
    assert "timed out" in cause


def test_names_fail_to_resolve_for_a_while() -> None:
    """EAI_AGAIN as often as asked for, then the name is there; an address never needs a resolver."""

    async def main(world: World) -> list[int | None]:
        serve(world.host("server"))
        await trio.sleep(1)
        world.network.strike_next("dns", target="server", times=2)
        errors = []
        for _ in range(2):
            with pytest.raises(stdlib_socket.gaierror) as info:
                await trio.open_tcp_stream("server", PORT)
            errors.append(info.value.errno)
        await (await connected()).aclose()
        world.network.options = NetworkOptions(dns_failures=(1, 1))
        await (await trio.open_tcp_stream(world.host("server").address, PORT)).aclose()
        return errors

    assert simulate(main) == [stdlib_socket.EAI_AGAIN] * 2


def test_a_silent_power_loss_leaves_peers_half_open_until_the_machine_is_back() -> None:
    """Nobody is told; what is sent is not answered; after the boot it is answered by a reset."""

    async def main(world: World) -> list[str]:
        world.network.options = STEADY
        host = world.host("server")
        serve(host)
        stream = await connected()
        host.power_loss(silent=True)
        seen = []
        with trio.move_on_after(3600):
            await stream.receive_some()
            seen.append("told")
        await stream.send_all(b"anybody?")
        with trio.move_on_after(60):
            await stream.receive_some()
            seen.append("answered")
        with trio.move_on_after(5):
            await trio.open_tcp_stream("server", PORT)
        host.boot()
        with pytest.raises(trio.BrokenResourceError) as info:
            await stream.receive_some()
        seen.append(type(info.value.__cause__).__name__)
        serve(host)
        await (await connected()).aclose()
        assert world.network.fired["half-open"] >= 1
        return seen

    assert simulate(main) == ["ConnectionResetError"]


def test_a_peer_that_sends_to_a_dead_machine_gives_up_in_the_end() -> None:
    """ETIMEDOUT when the retransmissions are used up; one that only listens never learns of it."""

    async def main(world: World) -> tuple[str, bool]:
        world.network.options = STEADY
        host = world.host("server")
        serve(host, silent)
        talker, listener = await connected(), await connected()
        host.power_loss(silent=True)
        await talker.send_all(b"x")
        begun_ns = world.now_ns
        with pytest.raises(trio.BrokenResourceError) as info:
            await talker.receive_some()
        assert 900 * S < world.now_ns - begun_ns < 1000 * S
        with trio.move_on_after(100_000) as scope:
            await listener.receive_some()
        return type(info.value.__cause__).__name__, scope.cancelled_caught

    assert simulate(main) == ("TimeoutError", True)


def test_a_process_started_on_a_dark_machine_boots_it() -> None:
    """Connections to a machine that is off wait for their SYN to be answered, and get through once it is on."""

    async def main(world: World) -> int:
        world.network.options = STEADY
        host = world.host("server")
        host.power_loss(silent=True)
        world.call_later(3 * S, serve, host)
        async with await trio.open_tcp_stream("server", PORT) as stream:
            await round_trip_ns(world, stream)
        return world.now_ns // S

    assert simulate(main) == 3


def udp() -> trio.socket.SocketType:
    return trio.socket.socket(trio.socket.AF_INET, trio.socket.SOCK_DGRAM)


async def numbers_received(world: World, count: int) -> list[int]:
    """Let `count` numbered messages go from one host to another; what arrives, as it arrives."""
    received: list[int] = []

    async def receive() -> None:
        with udp() as socket:
            await socket.bind(("", PORT))
            while True:
                data, source = await socket.recvfrom(100)
                assert source[0] == world.host("a").address
                received.append(int(data))

    async def send() -> None:
        with udp() as socket:
            for number in range(count):
                await socket.sendto(b"%d" % number, ("b", PORT))

    world.host("b").start(receive)
    world.host("a")
    await trio.sleep(1)
    await in_process(world.host("a"), send)
    await trio.sleep(1)
    return received


def test_messages_are_overtaken_lost_and_doubled() -> None:
    """Each travels on its own: over one run all three happen, and are counted."""

    async def main(world: World) -> list[int]:
        world.network.options = NetworkOptions(datagram_losses=(1, 5), datagram_duplicates=(1, 5))
        return await numbers_received(world, 60)

    outcome = outcome_of(main)
    received = outcome.unwrap()
    assert received != sorted(received)
    assert 30 < len(set(received)) < 60
    assert len(received) > len(set(received))
    assert outcome.fired["network:datagram-loss"] == 60 - len(set(received))
    assert outcome.fired["network:datagram-duplicate"] == len(received) - len(set(received))


def test_other_weather_holds_from_the_next_message_on() -> None:
    """Options, strikes that are asked for, and spared places: whatever a link was like before."""

    async def main(world: World) -> list[int]:
        received = []
        world.network.options = attrs.evolve(STEADY, latency_ns=MS)

        async def receive() -> None:
            with udp() as socket:
                await socket.bind(("", PORT))
                while True:
                    await socket.recvfrom(100)
                    received.append(world.now_ns // MS)

        async def send() -> None:
            network, lossy = world.network, attrs.evolve(STEADY, latency_ns=2 * MS, datagram_losses=(1, 1))
            with udp() as socket:
                for change in (
                    lambda: None,
                    lambda: setattr(network, "options", attrs.evolve(STEADY, latency_ns=3 * MS)),
                    lambda: network.strike_next("datagram-duplicate"),
                    lambda: setattr(network, "options", lossy),
                    lambda: network.spare("b"),
                    lambda: network.partition("a", "b"),
                ):
                    change()
                    await socket.sendto(b"x", ("b", PORT))
                    await trio.sleep(1)

        world.host("b").start(receive)
        await in_process(world.host("a"), send)
        return received

    assert simulate(main) == [1, 1003, 2003, 2003, 4002]


def test_two_tasks_may_read_what_has_arrived() -> None:
    """Each takes a message before it yields, so that what is there for one is not promised to both."""

    async def main(world: World) -> list[bytes]:
        received = []

        async def receive(socket: trio.socket.SocketType) -> None:
            received.append((await socket.recvfrom(100))[0])

        async def program() -> None:
            with udp() as socket:
                await socket.bind(("", PORT))
                await socket.sendto(b"first", ("127.0.0.1", PORT))
                await trio.sleep(1)
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(receive, socket)
                    nursery.start_soon(receive, socket)
                    await trio.sleep(1)
                    await socket.sendto(b"second", ("127.0.0.1", PORT))

        await in_process(world.host("a"), program)
        return received

    assert simulate(main) == [b"first", b"second"]


def test_a_cut_link_loses_messages_and_tells_nobody() -> None:
    """Sending succeeds, nothing arrives, also after the link is mended."""

    async def main(world: World) -> list[int]:
        world.network.partition("a", "b")
        received = await numbers_received(world, 3)
        world.network.heal()
        await trio.sleep(10)
        return received

    assert simulate(main) == []


def test_a_connected_message_socket_learns_that_nobody_is_there() -> None:
    """ECONNREFUSED at the call after the one that found nobody; an unconnected socket never learns."""

    async def main(world: World) -> list[str]:
        world.host("b")

        async def ask(host: Host) -> list[str]:
            seen = []
            with udp() as socket:
                await socket.sendto(b"x", (host.address, PORT))
                await trio.sleep(1)
                await socket.connect((host.address, PORT))
                for _ in range(2):
                    try:
                        seen.append(str(await socket.send(b"x")))
                    except ConnectionRefusedError:
                        seen.append("refused")
                    await trio.sleep(1)
            return seen

        return await in_process(world.host("a"), lambda: ask(world.host("b")))

    assert simulate(main) == ["1", "refused"]


def test_calm_weather_ends_every_fault() -> None:
    """World.calm: ratios at nothing, links mended, what was held up arrives; shape and time-outs stay."""

    async def main(world: World) -> list[int]:
        world.network.options = attrs.evolve(STEADY, breaks=(1, 1), stalls=(1, 1), bytes_per_s=100_000)
        world.network.partition(OUTSIDE, "server")
        world.network.clog(OUTSIDE, "server", 10_000 * S)
        world.network.strike_next("syn-loss", times=1000)
        serve(world.host("server"))
        world.calm()
        stream = await connected()
        return [await round_trip_ns(world, stream, b"x" * 1000) // MS for _ in range(2)]

    assert simulate(main) == [30, 30]


def test_no_fault_is_drawn_on_the_links_of_a_spared_place() -> None:
    """What belongs to the test is left alone, also on an open tape; what is asked for by name happens all the same."""

    async def main(world: World) -> tuple[list[str], int]:
        always = (1, 1)
        world.network.options = attrs.evolve(STEADY, clogs=always, stalls=always, syn_losses=always, breaks=always)
        world.network.spare(OUTSIDE)
        serve(world.host("server"))
        stream = await connected()
        quiet_ns = await round_trip_ns(world, stream)
        fired = list(world.network.fired)
        world.network.strike_next("stall", OUTSIDE, "server")
        await round_trip_ns(world, stream)
        return fired, quiet_ns // MS

    assert simulate(main) == ([], 10)
