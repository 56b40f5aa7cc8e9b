"""Simulated TCP: trio's own functions, unmodified, over latencies, windows, ports and names."""

from __future__ import annotations

import errno
import functools
import socket as stdlib_socket
import struct
from collections.abc import Awaitable, Callable

import pytest
import trio

from simkit.network import OUTSIDE, NetworkOptions, SimulatedSocket
from simkit.tape import Tape
from simkit.world import World, run
from tests.simkit.network_rig import MS, PORT, connected, echo, in_process, read_all, serve, silent
from tests.simkit.rig import outcome_of, simulate


@pytest.mark.parametrize("seed", range(5))
def test_trio_servers_and_clients_run_unmodified(seed: int) -> None:
    """open_tcp_stream and serve_tcp carry every byte in order, whatever the latencies and the schedule."""
    payload = bytes(range(256)) * 2000

    async def main(world: World) -> bytes:
        serve(world.host("server"))

        async def client() -> bytes:
            async with await connected() as stream, trio.open_nursery() as nursery:

                async def send() -> None:
                    await stream.send_all(payload)
                    await stream.send_eof()

                nursery.start_soon(send)
                return await read_all(stream)
            raise AssertionError

        return await in_process(world.host("client"), client)

    assert simulate(main, seed, wander=True) == payload


def test_the_outside_connects_and_serves_as_well() -> None:
    """Code that belongs to no host reaches hosts by name, and hosts reach it by its name or an alias."""

    async def main(world: World) -> list[bytes]:
        serve(world.host("server"))
        world.network.alias("ledger")
        async with trio.open_nursery() as nursery:
            await nursery.start(trio.serve_tcp, echo, PORT)

            async def ask(name: str) -> bytes:
                async with await connected(name) as stream:
                    await stream.send_all(name.encode())
                    return await stream.receive_some()

            found = [await ask("server")]
            for name in ("ledger", OUTSIDE):
                status = await world.host("client").start(ask, name).wait()
                found.append(status.value)
            nursery.cancel_scope.cancel()
        return found

    assert simulate(main) == [b"server", b"ledger", b"outside"]


def test_a_message_takes_its_latency_in_both_directions() -> None:
    """With one fixed latency a connect takes two, and an echo two more, to the nanosecond."""

    async def main(world: World) -> list[int]:
        world.network.options = NetworkOptions(latency_ns=3 * MS, spread=(1,), spread_weights=(1,))
        serve(world.host("server"))
        await world.sleep_ns(MS)
        times = [world.now_ns]
        async with await trio.open_tcp_stream("server", PORT) as stream:
            times.append(world.now_ns)
            await stream.send_all(b"x")
            await stream.receive_some()
            times.append(world.now_ns)
        return times

    assert simulate(main) == [1 * MS, 7 * MS, 13 * MS]


def test_segments_never_overtake_each_other() -> None:
    """However the latencies are drawn, one direction delivers in the order of sending."""

    async def main(world: World) -> bytes:
        serve(world.host("server"))
        stream = await connected()
        for number in range(200):
            await stream.send_all(struct.pack(">H", number))
        await stream.send_eof()
        return await read_all(stream)

    expected = b"".join(struct.pack(">H", number) for number in range(200))
    for seed in range(10):
        assert simulate(main, seed) == expected


def test_the_same_seed_gives_the_same_trace_and_another_seed_another() -> None:
    """Latencies are the tape's: digests repeat per seed and differ between seeds."""

    async def main(world: World) -> None:
        serve(world.host("server"))
        stream = await connected()
        for _ in range(20):
            await stream.send_all(b"x")
            await stream.receive_some()

    assert outcome_of(main, 1).digest == outcome_of(main, 1).digest
    assert outcome_of(main, 1).digest != outcome_of(main, 2).digest


def test_both_kernels_give_the_same_trace() -> None:
    """The network relies on nothing that only one of the loops does."""

    async def main(world: World) -> None:
        serve(world.host("server"))
        async with await connected() as stream:
            for _ in range(20):
                await stream.send_all(b"x")
                await stream.receive_some()

    fast, slow = (run(main, tape=Tape.from_seed(3), kernel=kernel) for kernel in ("fast", "fallback"))
    assert fast.error is slow.error is None
    assert fast.digest == slow.digest


def test_buffers_are_bounded_and_push_back() -> None:
    """A sender blocks once the window is full and goes on when the reader reads."""

    async def main(world: World) -> tuple[bool, int]:
        sent = []
        world.network.options = NetworkOptions(buffer_bytes=1000)
        listener = (await trio.open_tcp_listeners(PORT))[0]

        async def client() -> None:
            stream = await trio.open_tcp_stream(OUTSIDE, PORT)
            await stream.send_all(b"x" * 5000)
            sent.append(5000)
            await stream.send_eof()

        world.host("client").start(client)
        stream = await listener.accept()
        await trio.sleep(100)
        blocked = not sent
        return blocked, len(await read_all(stream))

    assert simulate(main) == (True, 5000)


def test_half_close_leaves_the_other_direction_open() -> None:
    """After send_eof the peer reads the end and can still answer; sending again is refused."""

    async def main(world: World) -> bytes:
        async def reply_at_end(stream: trio.SocketStream) -> None:
            request = await read_all(stream)
            await stream.send_all(request[::-1])
            await stream.aclose()

        serve(world.host("server"), reply_at_end)
        stream = await connected()
        await stream.send_all(b"abc")
        await stream.send_eof()
        await stream.send_eof()
        with pytest.raises(trio.ClosedResourceError):
            await stream.send_all(b"more")
        return await read_all(stream)

    assert simulate(main) == b"cba"


def test_nobody_listening_is_connection_refused() -> None:
    """A port without a listener refuses after a round trip; a name that is no host cannot be resolved."""

    async def main(world: World) -> int:
        world.host("server")
        with pytest.raises(OSError, match="all attempts to connect") as info:
            await trio.open_tcp_stream("server", PORT)
        assert isinstance(info.value.__cause__, BaseExceptionGroup)
        assert isinstance(info.value.__cause__.exceptions[0], ConnectionRefusedError)
        elapsed = world.now_ns
        with pytest.raises(stdlib_socket.gaierror, match="'nowhere' in this simulation; hosts: 'server'"):
            await trio.open_tcp_stream("nowhere", PORT)
        with pytest.raises(OSError, match="10\\.9\\.9\\.9"):
            await trio.open_tcp_stream("10.9.9.9", PORT)
        return elapsed

    assert simulate(main) > 0


def test_ports_are_allocated_and_guarded() -> None:
    """Port 0 takes a free one; a taken port, or a foreign address, is refused as the system would."""

    async def main(world: World) -> tuple[bool, bool]:
        one = (await trio.open_tcp_listeners(0))[0]
        two = (await trio.open_tcp_listeners(0))[0]
        ports = [listener.socket.getsockname()[1] for listener in (one, two)]
        with pytest.raises(OSError) as taken:  # noqa: PT011
            await trio.open_tcp_listeners(ports[0])
        with pytest.raises(OSError) as foreign:  # noqa: PT011
            await trio.open_tcp_listeners(0, host="10.0.0.1")
        assert (taken.value.errno, foreign.value.errno) == (errno.EADDRINUSE, errno.EADDRNOTAVAIL)
        await one.aclose()
        again = (await trio.open_tcp_listeners(ports[0]))[0]
        return ports[0] != ports[1], isinstance(again.socket, SimulatedSocket)

    assert simulate(main) == (True, True)


def test_a_loopback_listener_is_reached_from_its_own_host_only() -> None:
    """127.0.0.1 and localhost mean the host of whoever says it."""

    async def main(world: World) -> tuple[bytes, str]:
        async def local() -> bytes:
            async with trio.open_nursery() as nursery:
                await nursery.start(functools.partial(trio.serve_tcp, echo, PORT, host="127.0.0.1"))
                async with await trio.open_tcp_stream("localhost", PORT) as stream:
                    await stream.send_all(b"home")
                    found = await stream.receive_some()
                tell.set()
                await trio.sleep(10)
                nursery.cancel_scope.cancel()
            return found

        tell = trio.Event()
        process = world.host("server").start(local)
        await tell.wait()
        with pytest.raises(OSError, match="all attempts") as info:
            await trio.open_tcp_stream("server", PORT)
        assert isinstance(info.value.__cause__, BaseExceptionGroup)
        return (await process.wait()).value, type(info.value.__cause__.exceptions[0]).__name__

    assert simulate(main) == (b"home", "ConnectionRefusedError")


def test_closing_while_another_task_waits_wakes_it() -> None:
    """As trio does: the waiting task gets ClosedResourceError, for receiving and for accepting."""

    async def main(world: World) -> list[str]:
        serve(world.host("server"), silent)
        listener = (await trio.open_tcp_listeners(PORT))[0]
        stream = await connected()
        told: list[str] = []

        async def waiting(what: Callable[[], Awaitable[object]]) -> None:
            try:
                await what()
            except trio.ClosedResourceError:
                told.append("closed")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(waiting, stream.receive_some)
            nursery.start_soon(waiting, listener.accept)
            await trio.sleep(1)
            await stream.aclose()
            await listener.aclose()
        return told

    assert simulate(main) == ["closed", "closed"]


def test_a_cancelled_connect_leaves_nothing_behind() -> None:
    """The server may see a connection, but only to meet its reset; the port is free again."""

    async def main(world: World) -> tuple[bool, int]:
        met: list[str] = []

        async def meet(stream: trio.SocketStream) -> None:
            try:
                await stream.receive_some()
            except trio.BrokenResourceError:
                met.append("reset")

        world.network.options = NetworkOptions(latency_ns=50 * MS, spread=(1,), spread_weights=(1,))
        serve(world.host("server"), meet)
        await trio.sleep(1)
        with trio.move_on_after(0.07) as scope:
            await trio.open_tcp_stream("server", PORT)
        await trio.sleep(10)
        assert met == ["reset"]
        return scope.cancelled_caught, len(world.network.connections)

    assert simulate(main) == (True, 0)


def test_a_full_accept_queue_makes_connecting_wait() -> None:
    """With a backlog of one two may wait; the third client connects after a SYN retry, once the first was accepted."""

    async def main(world: World) -> tuple[int, float]:
        listener = (await trio.open_tcp_listeners(PORT, backlog=1))[0]
        connected_at: list[float] = []

        async def client() -> None:
            await trio.open_tcp_stream(OUTSIDE, PORT)
            connected_at.append(trio.current_time())
            await trio.sleep_forever()

        for _ in range(3):
            world.host("client").start(client)
        await trio.sleep(0.5)
        early = len(connected_at)
        await listener.accept()
        await trio.sleep(5)
        return early, connected_at[2] - connected_at[0]

    early, wait = simulate(main)
    assert early == 2
    assert 0.9 < wait < 1.5


def test_two_readers_on_one_socket_are_refused() -> None:
    """trio's own rule: one task at a time waits on a socket."""

    async def main(world: World) -> None:
        serve(world.host("server"), silent)
        stream = await connected()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stream.receive_some)
            await trio.sleep(1)
            with pytest.raises(trio.BusyResourceError):
                await stream.receive_some()
            nursery.cancel_scope.cancel()

    simulate(main)


def test_other_kinds_of_sockets_are_refused() -> None:
    """IPv6 and raw sockets get the errors of a system without them."""

    async def main(_: World) -> list[int | None]:
        numbers = []
        for family, kind in (
            (trio.socket.AF_INET6, trio.socket.SOCK_STREAM),
            (trio.socket.AF_INET, trio.socket.SOCK_RAW),
        ):
            with pytest.raises(OSError) as info:  # noqa: PT011
                trio.socket.socket(family, kind)
            numbers.append(info.value.errno)
        await trio.lowlevel.checkpoint()
        return numbers

    assert simulate(main) == [errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT]


def test_events_are_traced() -> None:
    """Send, deliver, connect and reset stand in the trace, with connection, places and sizes."""

    async def main(world: World) -> None:
        serve(world.host("server"))
        stream = await connected()
        await stream.send_all(b"xyz")
        await stream.receive_some()
        world.network.reset(OUTSIDE, "server")

    events = [str(event.detail) for event in outcome_of(main).trace.events() if event.kind == "net"]
    for expected in ("connect 1 outside server 0", "send 1 outside server 3", "deliver 1 server outside 3"):
        assert expected in events
    assert [event for event in events if event.startswith("reset")]


@pytest.mark.parametrize(
    ("bound", "asked", "reached"),
    [
        ("127.0.0.1", "localhost", True),
        ("127.0.0.1", "server", False),
        ("server", "localhost", False),
        ("server", "server", True),
        ("0.0.0.0", "localhost", True),
        ("0.0.0.0", "server", True),
    ],
)
def test_a_socket_is_reached_at_the_address_that_it_is_bound_to(bound: str, asked: str, reached: bool) -> None:
    """Loopback and the address of the machine are two, for streams and for messages, also from the same machine."""

    async def main(world: World) -> list[bool]:
        async def program() -> list[bool]:
            listening, asking = trio.socket.socket(), trio.socket.socket()
            await listening.bind((bound, PORT))
            listening.listen()
            try:
                await asking.connect((asked, PORT))
                found = [True]
            except ConnectionRefusedError:
                found = [False]
            receiving, sending = (trio.socket.socket(type=stdlib_socket.SOCK_DGRAM) for _ in range(2))
            await receiving.bind((bound, PORT))
            await sending.sendto(b"x", (asked, PORT))
            with trio.move_on_after(10) as waiting:
                await receiving.recvfrom(1)
            return [*found, not waiting.cancelled_caught]

        return await in_process(world.host("server"), program)

    assert simulate(main) == [reached, reached]


def test_a_message_from_elsewhere_does_not_reach_a_socket_on_the_loopback() -> None:
    """Its sender is told that nobody is bound there."""

    async def main(world: World) -> bool:
        async def listen() -> None:
            receiving = trio.socket.socket(type=stdlib_socket.SOCK_DGRAM)
            await receiving.bind(("127.0.0.1", PORT))
            await receiving.recvfrom(1)

        process = world.host("server").start(listen)
        await trio.sleep(1)
        sending = trio.socket.socket(type=stdlib_socket.SOCK_DGRAM)
        await sending.connect(("server", PORT))
        await sending.send(b"x")
        with pytest.raises(ConnectionRefusedError):
            await sending.recv(1)
        return process.alive

    assert simulate(main)
