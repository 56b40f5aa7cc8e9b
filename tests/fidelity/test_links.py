"""Links: cut, mended, narrow, without names; peers that are gone without a word."""

from __future__ import annotations

import json
import socket as stdlib_socket
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from simkit.world import World
from tests.fidelity import links, oneway
from tests.fidelity.conftest import tool
from tests.fidelity.stages import SimulatedStage, attempted
from tests.simkit.rig import simulate

pytestmark = pytest.mark.slow  # real processes, file systems, time

TCP_REPAIR = 19


def agree_on_links(program: str, prepare: Callable[[World], object] = lambda _: None) -> Any:
    """Play a program of `links` in a network namespace and in simulation."""
    tool("ip")
    tool("tc")
    command = [tool("unshare"), "--net", sys.executable, links.__file__, program]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    if "unshare" in done.stderr or "qdisc kind is unknown" in done.stderr:
        pytest.skip(f"cannot be provoked here: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr

    async def main(world: World) -> Any:
        stage = SimulatedStage(world)
        prepare(world)
        for actor in ("echo", "udp_echo"):
            stage.start(actor, links.PORT)
        await trio.testing.wait_all_tasks_blocked()
        return await links.play(links.SimulatedLink(stage), program)

    real, simulated = json.loads(done.stdout), simulate(main)
    assert real == simulated, f"real {real}, simulated {simulated}"
    return real


def test_a_cut_link_holds_up_and_loses_nothing(root: None) -> None:
    """Sending succeeds, receiving and connecting wait, and all get through when the link is mended."""
    assert agree_on_links("cut_and_mended") == ["b'a'", "None", "waits", "waits", "b'b'", "'connected'"]


def test_whoever_sends_into_a_cut_link_gives_up(root: None) -> None:
    """ETIMEDOUT once, then the end of the stream and EPIPE; whoever only listens waits on."""
    assert agree_on_links("given_up") == ["ETIMEDOUT", "b''", "EPIPE", "waits"]


def test_a_link_that_is_cut_one_way_carries_the_other_way(root: None, tmp_path: Path) -> None:
    """What is said is heard although no answer comes, or not heard at all; all of it has arrived once the link is whole."""
    for name in ("ip", "nsenter"):
        tool(name)
    command = [tool("unshare"), "--net", sys.executable, oneway.__file__, str(tmp_path / "heard")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    if "unshare" in done.stderr or "Unknown device type" in done.stderr:
        pytest.skip(f"cannot be provoked here: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr

    async def main(world: World) -> list[str]:
        heard: list[bytes] = []
        host, network = world.host("server"), world.network
        host.start(oneway.serve, heard.append)
        ways = {"there": ("outside", "server"), "back": ("server", "outside")}

        def cut(direction: str) -> None:
            network.partition(*ways[direction], one_way=True)

        return await oneway.one_way("server", cut, network.heal, lambda: b"".join(heard).decode())

    real, simulated = json.loads(done.stdout), simulate(main)
    assert real == simulated, f"real {real}, simulated {simulated}"
    assert real == ["b'a'", "waits", "a", "b'b'", "ab", "waits", "abc", "b'c'", "abc"]


def test_whoever_probes_a_cut_link_is_told(root: None) -> None:
    """SO_KEEPALIVE: ETIMEDOUT after the last probe without an answer; whoever has patience or does not probe is not told."""
    seen = agree_on_links("kept_alive")
    assert seen == ["waits", "waits", "ETIMEDOUT", "b''", "EPIPE", "waits", "waits", "b'y'"]


def test_options_of_keep_alive_are_those_of_linux() -> None:
    """Their defaults, their bounds, and that accepted sockets take them over from the one that listens."""

    async def program(listener: trio.SocketListener, host: str) -> list[Any]:
        tcp, level = stdlib_socket.IPPROTO_TCP, stdlib_socket.SOL_SOCKET
        names = [stdlib_socket.TCP_KEEPIDLE, stdlib_socket.TCP_KEEPINTVL, stdlib_socket.TCP_KEEPCNT]
        seen: list[Any] = [listener.socket.getsockopt(tcp, name) for name in names]
        for name, value in ((names[0], 0), (names[0], 32768), (names[1], 32768), (names[2], 128), (names[2], 127)):
            try:
                listener.socket.setsockopt(tcp, name, value)
            except OSError as error:
                seen.append(error.errno)
        listener.socket.setsockopt(level, stdlib_socket.SO_KEEPALIVE, 1)
        listener.socket.setsockopt(tcp, names[0], 5)
        near = await trio.open_tcp_stream(host, listener.socket.getsockname()[1])
        far = await listener.accept()
        for stream in (far, near):
            seen.append(bool(stream.getsockopt(level, stdlib_socket.SO_KEEPALIVE)))
            seen.append(stream.getsockopt(tcp, names[0]))
        await near.aclose()
        await far.aclose()
        return seen

    async def real() -> list[Any]:
        [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
        async with listener:
            return await program(listener, "127.0.0.1")

    async def main(_world: World) -> list[Any]:
        return await real()

    assert trio.run(real) == simulate(main)


def test_a_narrow_link_takes_time(root: None) -> None:
    """As much as its bandwidth says."""
    assert agree_on_links("narrowed") == [True, True]


def test_a_cut_link_loses_messages(root: None) -> None:
    """Nobody is told, and mending brings nothing back."""
    assert agree_on_links("messages") == [0, 2]


def test_a_name_cannot_be_resolved_for_now(root: None) -> None:
    """EAI_AGAIN, as getaddrinfo gives it to trio."""
    assert agree_on_links("nameless", lambda world: world.network.strike_next("dns", times=10)) == [
        "gaierror",
        stdlib_socket.EAI_AGAIN,
    ]


def half_opened(half_open: Callable[[trio.SocketStream, Callable[[], object]], Awaitable[list[str]]]) -> list[str]:
    """Play a program over a connection whose other end can vanish without a word, on both stages."""

    async def real() -> list[str]:
        [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
        near = await trio.open_tcp_stream("127.0.0.1", listener.socket.getsockname()[1])
        far = await listener.accept()

        def vanish() -> None:
            # A socket under repair closes without a word: what checkpoint and restore is made of.
            far.setsockopt(stdlib_socket.IPPROTO_TCP, TCP_REPAIR, 1)
            far.socket.close()

        async with near, listener:
            return await half_open(near, vanish)

    async def main(world: World) -> list[str]:
        stage = SimulatedStage(world)
        stage.start("deaf", links.PORT)
        host = world.host(stage.server)

        def vanish() -> None:
            host.power_loss(silent=True)
            host.boot()

        async with await links.connected(links.SimulatedLink(stage)) as near:
            await trio.sleep(0.1)
            return await half_open(near, vanish)

    seen, simulated = trio.run(real), simulate(main)
    assert seen == simulated, f"real {seen}, simulated {simulated}"
    return seen


def test_a_peer_that_vanished_answers_with_a_reset_once_it_is_back(root: None) -> None:
    """No word when it goes; a receive waits; what is sent is answered with a reset by the machine that knows nothing."""

    async def half_open(stream: trio.SocketStream, vanish: Callable[[], object]) -> list[str]:
        vanish()
        seen = [await attempted(lambda: stream.receive_some(1), 0.5), await attempted(lambda: stream.send_all(b"x"))]
        seen.append(await attempted(lambda: stream.receive_some(1), 5))
        return [*seen, await attempted(lambda: stream.receive_some(1)), await attempted(lambda: stream.send_all(b"x"))]

    assert half_opened(half_open) == ["waits", "None", "ECONNRESET", "b''", "EPIPE"]


def test_whoever_probes_a_peer_that_vanished_is_told_by_a_reset(root: None) -> None:
    """SO_KEEPALIVE finds the half-open connection without anything being sent, once the machine is back."""

    async def half_open(stream: trio.SocketStream, vanish: Callable[[], object]) -> list[str]:
        links.probing(stream, 1, 1, 3)
        vanish()
        seen = [
            await attempted(lambda: stream.receive_some(1), 0.5),
            await attempted(lambda: stream.receive_some(1), 10),
        ]
        return [*seen, await attempted(lambda: stream.receive_some(1)), await attempted(lambda: stream.send_all(b"x"))]

    assert half_opened(half_open) == ["waits", "ECONNRESET", "b''", "EPIPE"]
