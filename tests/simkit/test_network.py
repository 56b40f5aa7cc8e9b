"""Simulated TCP: trio's own functions, unmodified, over latencies, cuts, resets and deaths."""

from __future__ import annotations

import errno
import functools
import socket as stdlib_socket
import struct
from collections.abc import Awaitable, Callable
from typing import TypeVar

import attrs
import pytest
import trio

from simkit.network import OUTSIDE, NetworkOptions, SimulatedSocket, abort
from simkit.process import Process, ProcessDead
from simkit.strategy import RandomWalk
from simkit.tape import Tape
from simkit.world import Host, Outcome, World, run

T = TypeVar("T")
MS = 1_000_000
PORT = 7000


def simulate(main: Callable[[World], Awaitable[T]], seed: int = 0, *, wander: bool = False) -> T:
    return outcome_of(main, seed, wander=wander).unwrap()


def outcome_of(main: Callable[[World], Awaitable[T]], seed: int = 0, *, wander: bool = False) -> Outcome[T]:
    tape = Tape.from_seed(seed)
    strategy = RandomWalk(tape.stream("schedule")) if wander else None
    return run(main, tape=tape, strategy=strategy)


async def echo(stream: trio.SocketStream) -> None:
    """Send back what comes, and the end of stream after it."""
    try:
        async for data in stream:
            await stream.send_all(data)
        await stream.send_eof()
    except trio.BrokenResourceError:
        pass


async def silent(_: trio.SocketStream) -> None:
    await trio.sleep_forever()


def serve(host: Host, handler: Callable[[trio.SocketStream], Awaitable[object]] = echo) -> Process:
    async def server() -> None:
        await trio.serve_tcp(handler, PORT)

    return host.start(server, name="server")


async def connected(host: str = "server") -> trio.SocketStream:
    """Connect, trying again while nobody listens yet."""
    for _ in range(100):
        try:
            return await trio.open_tcp_stream(host, PORT)
        except OSError:
            await trio.sleep(0.01)
    raise AssertionError("nobody listens")


async def in_process(host: Host, fn: Callable[[], Awaitable[T]]) -> T:
    status = await host.start(fn).wait()
    if status.error is not None:
        raise status.error
    return status.value


async def read_all(stream: trio.SocketStream) -> bytes:
    return b"".join([data async for data in stream])


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
        with pytest.raises(stdlib_socket.gaierror, match="nowhere"):
            await trio.open_tcp_stream("nowhere", PORT)
        with pytest.raises(OSError, match="10\\.9\\.9\\.9"):
            await trio.open_tcp_stream("10.9.9.9", PORT)
        return elapsed

    assert simulate(main) > 0


@pytest.mark.parametrize("way", ["kill", "power"])
def test_the_peers_of_a_dead_process_meet_a_reset_after_the_latency(way: str) -> None:
    """What it had sent arrives first, then ECONNRESET; new connections are refused."""

    async def main(world: World) -> tuple[bytes, int, str]:
        world.network.options = NetworkOptions(latency_ns=5 * MS, spread=(1,), spread_weights=(1,))
        process = serve(world.host("server"))
        stream = await connected()
        await stream.send_all(b"last words")
        await trio.sleep(0.006)  # echoed, on its way back
        killed_ns = world.now_ns
        process.kill() if way == "kill" else world.host("server").power_loss()
        words = await stream.receive_some()
        with pytest.raises(trio.BrokenResourceError, match="reset") as info:
            await stream.receive_some()
        after_ns = world.now_ns - killed_ns
        with pytest.raises(trio.BrokenResourceError):
            await stream.send_all(b"x")
        with pytest.raises(OSError, match="all attempts"):
            await trio.open_tcp_stream("server", PORT)
        return words, after_ns, errno.errorcode[info.value.__cause__.errno]  # type: ignore[union-attr]

    assert simulate(main) == (b"last words", 5 * MS, "ECONNRESET")


def test_a_death_can_end_the_stream_or_lose_what_was_in_flight() -> None:
    """Options: an end of stream as a killed Linux process leaves it, or a reset that overtakes the last bytes."""

    async def last_seen(world: World, options: NetworkOptions) -> bytes | str:
        world.network.options = attrs.evolve(options, latency_ns=5 * MS, spread=(1,), spread_weights=(1,))
        process = serve(world.host("server"))
        stream = await connected()
        await stream.send_all(b"words")
        await trio.sleep(0.006)
        process.kill()
        try:
            return await read_all(stream)
        except trio.BrokenResourceError:
            return "reset"

    gentle = NetworkOptions(death="eof")
    harsh = NetworkOptions(death_loses_in_flight=(1, 1))
    assert simulate(lambda world: last_seen(world, gentle)) == b"words"
    assert simulate(lambda world: last_seen(world, harsh)) == "reset"


def test_a_process_restarts_on_its_port() -> None:
    """Ports and listeners of the dead are free at once, and a new incarnation is reached under the same name."""

    async def main(world: World) -> bytes:
        serve(world.host("server")).kill()
        process = serve(world.host("server"))
        await trio.sleep(1)
        process.kill()
        serve(world.host("server"))
        async with await connected() as stream:
            await stream.send_all(b"x")
            return await stream.receive_some()

    assert simulate(main) == b"x"


def test_nothing_of_a_dead_process_is_ever_sent() -> None:
    """A process killed in the middle of its sending sends no more, and a send right after its own death raises."""
    raised: list[type[BaseException]] = []

    async def main(world: World) -> tuple[int, int]:
        received = bytearray()
        listener = (await trio.open_tcp_listeners(PORT))[0]

        async def chatter() -> None:
            stream = await trio.open_tcp_stream(OUTSIDE, PORT)
            try:
                while True:
                    await stream.send_all(b"x")
                    await trio.sleep(0.001)
            finally:
                await stream.send_all(b"late")

        async def suicide() -> None:
            stream = await trio.open_tcp_stream(OUTSIDE, PORT)
            doomed.kill()
            try:
                stream.socket.getpeername()
                await stream.send_all(b"late")
            except BaseException as error:
                raised.append(type(error))
                raise

        process = world.host("client").start(chatter)
        stream = await listener.accept()
        await trio.sleep(0.05)
        process.kill()
        killed_at = world.now_ns
        try:
            while True:
                received += await stream.receive_some()
        except trio.BrokenResourceError:
            pass
        doomed = world.host("client").start(suicide)
        await listener.accept()
        await trio.sleep(1)
        assert b"late" not in received
        return len(received), killed_at

    received, _ = simulate(main)
    assert received >= 10
    assert raised == [ProcessDead]


def test_a_paused_process_is_sent_to_and_reads_it_all_when_resumed() -> None:
    """Data for a stopped process waits in its buffer; the peer notices nothing but silence."""

    async def main(world: World) -> tuple[bool, bytes]:
        process = serve(world.host("server"))
        stream = await connected()
        process.pause()
        await stream.send_all(b"while you slept")
        with trio.move_on_after(60) as silence:
            await stream.receive_some()
        process.resume()
        return silence.cancelled_caught, await stream.receive_some()

    assert simulate(main) == (True, b"while you slept")


def test_a_partition_stalls_and_healing_delivers() -> None:
    """A cut link loses nothing: established streams and new connections wait until it heals."""

    async def main(world: World) -> tuple[bool, bytes, bytes]:
        serve(world.host("server"))
        stream = await connected()
        world.network.partition(OUTSIDE, "server")
        await stream.send_all(b"held")
        with trio.move_on_after(30) as silence:
            await stream.receive_some()
        found: list[bytes] = []

        async def late_client() -> None:
            other = await trio.open_tcp_stream("server", PORT)
            await other.send_all(b"late")
            found.append(await other.receive_some())

        async with trio.open_nursery() as nursery:
            nursery.start_soon(late_client)
            await trio.sleep(10)
            assert found == []
            world.network.heal()
        return silence.cancelled_caught, await stream.receive_some(), found[0]

    assert simulate(main) == (True, b"held", b"late")


def test_a_one_way_partition_lets_the_other_direction_through() -> None:
    """Requests arrive, replies do not: the lost acknowledgement."""

    async def main(world: World) -> tuple[list[bytes], bool, bytes]:
        arrived: list[bytes] = []

        async def record(stream: trio.SocketStream) -> None:
            arrived.append(await stream.receive_some())
            await stream.send_all(b"done")

        serve(world.host("server"), record)
        stream = await connected()
        world.network.partition("server", OUTSIDE, one_way=True)
        await stream.send_all(b"do it")
        with trio.move_on_after(5) as silence:
            await stream.receive_some()
        world.network.heal("server")
        return arrived, silence.cancelled_caught, await stream.receive_some()

    assert simulate(main) == ([b"do it"], True, b"done")


def test_connecting_across_a_partition_times_out_in_the_end() -> None:
    """Without an answer connect gives up with ETIMEDOUT, as the kernel's SYN retries do."""

    async def main(world: World) -> float:
        serve(world.host("server"))
        await trio.sleep(1)
        world.network.partition(OUTSIDE, "server")
        began = trio.current_time()
        with pytest.raises(OSError, match="all attempts") as info:
            await trio.open_tcp_stream("server", PORT)
        assert isinstance(info.value.__cause__, BaseExceptionGroup)
        assert isinstance(info.value.__cause__.exceptions[0], TimeoutError)
        return trio.current_time() - began

    assert 129 < simulate(main) < 132


@pytest.mark.parametrize("how", ["abort", "linger"])
def test_an_abort_resets_the_peer_and_drops_what_is_unsent(how: str) -> None:
    """abort(), or SO_LINGER of zero and close, is a RST: no end of stream, no last bytes."""

    async def main(world: World) -> str:
        listener = (await trio.open_tcp_listeners(PORT))[0]

        async def client() -> None:
            stream = await trio.open_tcp_stream(OUTSIDE, PORT)
            await stream.send_all(b"never seen")
            if how == "abort":
                abort(stream)
            else:
                stream.setsockopt(stdlib_socket.SOL_SOCKET, stdlib_socket.SO_LINGER, struct.pack("ii", 1, 0))
                await stream.aclose()
            with pytest.raises(trio.ClosedResourceError):
                await stream.receive_some()

        process = world.host("client").start(client)
        stream = await listener.accept()
        with pytest.raises(trio.BrokenResourceError) as info:
            await stream.receive_some()
        assert (await process.wait()).kind == "exited"
        return type(info.value.__cause__).__name__

    assert simulate(main) == "ConnectionResetError"


def test_closing_with_unread_data_resets_the_peer() -> None:
    """As Linux does: the peer learns that its data was not read."""

    async def main(world: World) -> None:
        async def rude(stream: trio.SocketStream) -> None:
            await trio.sleep(1)
            await stream.aclose()

        serve(world.host("server"), rude)
        stream = await connected()
        await stream.send_all(b"ignored")
        with pytest.raises(trio.BrokenResourceError, match="reset"):
            await stream.receive_some()

    simulate(main)


def test_sending_to_a_closed_peer_ends_in_a_reset() -> None:
    """The first send after the peer closed succeeds, a later one meets the reset that it provoked."""

    async def main(world: World) -> bytes:
        async def polite(stream: trio.SocketStream) -> None:
            await stream.aclose()

        serve(world.host("server"), polite)
        stream = await connected()
        end = await stream.receive_some()
        await stream.send_all(b"one")
        await trio.sleep(1)
        with pytest.raises(trio.BrokenResourceError):
            await stream.send_all(b"two")
        return end

    assert simulate(main) == b""


def test_network_reset_breaks_both_ends_of_all_connections_between_two_places() -> None:
    """A fault from outside: both ends meet ECONNRESET; connections to elsewhere live on; the count is exact."""

    async def main(world: World) -> tuple[int, bytes, dict[str, int]]:
        serve(world.host("server"))
        serve(world.host("other"))
        one, two, elsewhere = await connected(), await connected(), await connected("other")
        count = world.network.reset(OUTSIDE, "server")
        for stream in (one, two):
            with pytest.raises(trio.BrokenResourceError):
                await stream.receive_some()
        await elsewhere.send_all(b"alive")
        return count, await elsewhere.receive_some(), world.network.fired

    assert simulate(main) == (2, b"alive", {"reset": 1})


def test_drawn_breaks_fire_and_are_counted() -> None:
    """With breaks at one segment in ten, streams break about that often; the tape replays each."""

    async def main(world: World) -> int:
        world.network.options = NetworkOptions(breaks=(1, 10))
        serve(world.host("server"))
        broken = 0
        stream = await connected()
        for _ in range(200):
            try:
                await stream.send_all(b"x")
                assert await stream.receive_some() == b"x"
            except trio.BrokenResourceError:
                broken += 1
                stream = await connected()
        assert world.network.fired == {"break": broken}
        return broken

    first = outcome_of(main, 4)
    assert 15 < first.unwrap() < 80
    again = run(main, tape=Tape.from_departures(first.departures))
    assert (again.value, again.digest) == (first.value, first.digest)


def test_a_process_that_ends_by_itself_closes_as_usual() -> None:
    """Returning from main without closing is an end of stream after the last byte, not a reset."""

    async def main(world: World) -> bytes:
        listener = (await trio.open_tcp_listeners(PORT))[0]

        async def client() -> None:
            stream = await trio.open_tcp_stream(OUTSIDE, PORT)
            await stream.send_all(b"goodbye")

        world.host("client").start(client)
        return await read_all(await listener.accept())

    assert simulate(main) == b"goodbye"


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
    """With a backlog of one the second client connects after a SYN retry, once the first was accepted."""

    async def main(world: World) -> tuple[int, float]:
        listener = (await trio.open_tcp_listeners(PORT, backlog=1))[0]
        connected_at: list[float] = []

        async def client() -> None:
            await trio.open_tcp_stream(OUTSIDE, PORT)
            connected_at.append(trio.current_time())
            await trio.sleep_forever()

        for _ in range(2):
            world.host("client").start(client)
        await trio.sleep(0.5)
        early = len(connected_at)
        await listener.accept()
        await trio.sleep(5)
        return early, connected_at[1] - connected_at[0]

    early, wait = simulate(main)
    assert early == 1
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
    """IPv6 and datagrams get the errors of a system without them."""

    async def main(_: World) -> list[int | None]:
        numbers = []
        for family, kind in (
            (trio.socket.AF_INET6, trio.socket.SOCK_STREAM),
            (trio.socket.AF_INET, trio.socket.SOCK_DGRAM),
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
