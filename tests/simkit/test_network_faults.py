"""Simulated TCP when things break: deaths, pauses, cut links, resets."""

from __future__ import annotations

import socket as stdlib_socket
import struct

import attrs
import pytest
import trio

from simkit.network import OUTSIDE, NetworkOptions, abort
from simkit.process import ProcessDead
from simkit.tape import Tape
from simkit.world import World, run
from tests.simkit.network_rig import MS, PORT, connected, read_all, serve, silent
from tests.simkit.rig import outcome_of, simulate


@pytest.mark.parametrize("way", ["kill", "power"])
def test_the_peers_of_a_dead_process_meet_a_reset_after_the_latency(way: str) -> None:
    """What it had sent arrives first, then ECONNRESET; new connections are refused."""

    async def main(world: World) -> tuple[bytes, int]:
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
        cause = info.value.__cause__
        assert isinstance(cause, ConnectionResetError)
        return words, after_ns

    assert simulate(main) == (b"last words", 5 * MS)


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


def test_a_process_killed_after_its_end_of_stream_has_nothing_left_to_tell() -> None:
    """The peer reads the end, and meets the reset only by sending to it."""

    async def main(world: World) -> bytes:
        listener = (await trio.open_tcp_listeners(PORT))[0]

        async def client() -> None:
            stream = await trio.open_tcp_stream(OUTSIDE, PORT)
            await stream.send_all(b"that is all")
            await stream.send_eof()
            await trio.sleep_forever()

        process = world.host("client").start(client)
        stream = await listener.accept()
        await trio.sleep(1)
        process.kill()
        await trio.sleep(1)
        words = await read_all(stream)
        await stream.send_all(b"anybody?")
        await trio.sleep(1)
        with pytest.raises(trio.BrokenResourceError):
            await stream.send_all(b"no")
        return words

    assert simulate(main) == b"that is all"


def test_a_process_killed_at_the_instant_it_is_connected_leaves_a_reset() -> None:
    """The connection was made, its task had not run yet: the server must not wait for ever."""

    async def main(world: World) -> str:
        world.network.options = NetworkOptions(latency_ns=5 * MS, spread=(1,), spread_weights=(1,))
        listener = (await trio.open_tcp_listeners(PORT))[0]

        async def client() -> None:
            await trio.open_tcp_stream(OUTSIDE, PORT)
            raise AssertionError("it was dead by now")

        process = world.host("client").start(client)
        await world.sleep_ns(6 * MS)
        world.call_later(4 * MS, process.kill)
        stream = await listener.accept()
        with trio.move_on_after(10):
            try:
                await stream.receive_some()
            except trio.BrokenResourceError:
                return str(process.status)
        return "nobody told the server"

    assert simulate(main) == "killed"


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


@pytest.mark.parametrize("cut", ["both", "there", "back"])
@pytest.mark.parametrize("patience", [3, 100])
def test_a_server_hears_of_a_connection_only_when_hands_were_shaken(cut: str, patience: int) -> None:
    """A client that gives up while the link is cut, in whatever direction, leaves nothing to accept; one that waits gets
    through when it is mended. Seen between two network namespaces as well.
    """

    async def main(world: World) -> tuple[list[str], list[str]]:
        accepted: list[str] = []

        async def note(stream: trio.SocketStream) -> None:
            accepted.append("accepted")
            await stream.send_all(b"hello")

        async def client() -> bytes:
            with trio.move_on_after(patience):
                stream = await trio.open_tcp_stream("server", PORT)
                return await read_all(stream)
            return b"gave up"

        serve(world.host("server"), note)
        process = world.host("client").start(client)
        if cut == "both":
            world.network.partition("client", "server")
        else:
            world.network.partition(*(("client", "server") if cut == "there" else ("server", "client")), one_way=True)
        await trio.sleep(10)
        before = list(accepted)
        world.network.heal()
        await trio.sleep(20)
        assert process.status is not None
        return before, [*accepted, process.status.value.decode()]

    through = ["gave up"] if patience < 10 else ["accepted", "hello"]
    assert simulate(main) == ([], through)


def test_whoever_hears_no_acknowledgement_gives_up() -> None:
    """What it sends arrives and the link back is cut: ETIMEDOUT in the end. Seen between two namespaces as well."""

    async def main(world: World) -> tuple[list[bytes], int]:
        heard: list[bytes] = []

        async def listen(stream: trio.SocketStream) -> None:
            while True:
                heard.append(bytes(await stream.receive_some()))

        serve(world.host("server"), listen)
        stream = await connected()
        await stream.send_all(b"a")
        await trio.sleep(1)
        world.network.partition("server", OUTSIDE, one_way=True)
        await stream.send_all(b"b")
        began_ns = world.now_ns
        with pytest.raises(trio.BrokenResourceError) as info:
            await stream.receive_some()
        assert isinstance(info.value.__cause__, TimeoutError)
        return heard, (world.now_ns - began_ns) // 1_000_000_000

    assert simulate(main) == ([b"a", b"b"], 924)


def test_a_mended_link_acknowledges_what_arrived_meanwhile() -> None:
    """Nobody gives up on a connection whose way back was cut for a while."""

    async def main(world: World) -> bytes:
        serve(world.host("server"))
        stream = await connected()
        world.network.partition("server", OUTSIDE, one_way=True)
        await stream.send_all(b"a")
        await trio.sleep(500)
        world.network.heal()
        await trio.sleep(1000)
        return bytes(await stream.receive_some())

    assert simulate(main) == b"a"


def test_a_machine_that_is_off_again_before_it_answered_keeps_nobody_waiting_for_ever() -> None:
    """On for a moment only: what is sent meets nobody, and its sender gives up when it would have anyway."""

    async def main(world: World) -> int:
        server = world.host("server")
        serve(server, silent)
        stream = await connected()
        server.power_loss(silent=True)
        await stream.send_all(b"x")
        began_ns = world.now_ns
        await trio.sleep(5)
        server.boot()
        await trio.sleep(0.1)
        server.power_loss(silent=True)
        with pytest.raises(trio.BrokenResourceError) as info:
            await stream.receive_some()
        assert isinstance(info.value.__cause__, TimeoutError)
        return (world.now_ns - began_ns) // 1_000_000_000

    assert simulate(main) == 924


def test_a_client_without_power_does_not_reset_what_it_was_connecting_to() -> None:
    """It tells nobody: the server's end stays half open."""

    async def main(world: World) -> str:
        accepted = trio.Event()
        seen: list[str] = []

        async def note(stream: trio.SocketStream) -> None:
            accepted.set()
            with trio.move_on_after(60):
                try:
                    await stream.receive_some()
                except trio.BrokenResourceError:
                    seen.append("reset")

        world.network.options = NetworkOptions(latency_ns=50 * MS, spread=(1,), spread_weights=(1,))
        serve(world.host("server"), note)
        await trio.sleep(1)
        world.host("client").start(connected)
        await accepted.wait()  # its answer is still under way
        world.host("client").power_loss(silent=True)
        await trio.sleep(100)
        return str(seen)

    assert simulate(main) == "[]"
