"""`socket.socket` in a simulation: servers make, bind and hand it to trio; what waits is refused; nothing of it stays."""

from __future__ import annotations

import errno
import pickle
import socket
from collections.abc import Callable
from typing import Any

import pytest
import trio

from simkit.guard import RefusedError
from simkit.process import ProcessDead
from simkit.world import World
from tests.simkit.rig import outcome_of, simulate

REAL = socket.socket


def _listening(port: int = 80) -> trio.SocketListener:
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind(("0.0.0.0", port))
    sock.setblocking(False)
    sock.set_inheritable(True)
    sock.listen(10)
    assert isinstance(sock, socket.socket)
    assert (sock.family, sock.type, sock.getsockname()) == (socket.AF_INET, socket.SOCK_STREAM, ("0.0.0.0", port))
    return trio.SocketListener(trio.socket.from_stdlib_socket(sock))


async def _echo(stream: trio.SocketStream) -> None:
    async for data in stream:
        await stream.send_all(data)


async def _serve() -> None:
    await trio.serve_listeners(_echo, [_listening()])


async def _ask() -> bytes:
    async with await trio.open_tcp_stream("server", 80) as stream:
        await stream.send_all(b"hello")
        return bytes(await stream.receive_some(10))


def test_a_socket_of_the_standard_library_becomes_one_of_trio() -> None:
    """It is made, bound and set to listen at once, on the host that it is made on, and accepts from other hosts."""

    async def main(world: World) -> object:
        world.host("server").start(_serve)
        return (await world.host("client").start(_ask).wait()).value

    assert simulate(main) == b"hello"
    assert socket.socket is REAL
    assert trio.socket.from_stdlib_socket.__module__.startswith("trio")


@pytest.mark.parametrize(
    "waits",
    [
        lambda sock: sock.connect(("server", 80)),
        lambda sock: sock.accept(),
        lambda sock: sock.recv(10),
        lambda sock: sock.sendall(b"x"),
        lambda sock: sock.makefile("rb").read(1),
    ],
)
def test_what_waits_is_refused(waits: Callable[[Any], object]) -> None:
    """A call that would wait names its own line and the simulated way, also when the program swallows it."""

    async def main(world: World) -> None:
        try:
            waits(socket.socket())
        except Exception:  # noqa: BLE001
            return

    error = outcome_of(main).error
    assert isinstance(error, RefusedError)
    assert "a call of a socket that waits" in str(error)
    assert __file__ in error.problem.where
    assert "trio.open_tcp_stream" in error.problem.expected


def test_errors_are_those_of_the_system() -> None:
    """A port that is taken, an address of somebody else, a family that there is not, a closed socket, a method that is none."""

    async def main(world: World) -> list[int | None]:
        found = []

        def failing(call: Callable[[], object]) -> None:
            try:
                call()
            except OSError as error:
                found.append(error.errno)

        first, second = socket.socket(), socket.socket()
        first.bind(("127.0.0.1", 80))
        failing(lambda: second.bind(("127.0.0.1", 80)))
        failing(lambda: second.bind(("10.9.9.9", 80)))
        failing(lambda: socket.socket(socket.AF_INET6))
        with first:
            pass
        failing(lambda: first.listen(1))
        assert first.fileno() == -1
        with pytest.raises(AttributeError, match="nonsense"):
            first.nonsense  # type: ignore[attr-defined]  # noqa: B018
        return found

    assert simulate(main) == [errno.EADDRINUSE, errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT, errno.EBADF]


def test_it_dies_with_its_process() -> None:
    """After a kill the port is free, and the socket of the dead does nothing."""

    async def main(world: World) -> object:
        kept: list[Any] = []

        async def hold() -> None:
            kept.append(socket.socket())
            kept[0].bind(("", 80))
            await trio.sleep_forever()

        process = world.host("server").start(hold)
        await trio.sleep(1)
        process.kill()
        with pytest.raises(ProcessDead):
            kept[0].listen(1)
        world.host("server").start(_serve)
        return (await world.host("client").start(_ask).wait()).value

    assert simulate(main) == b"hello"


def test_a_class_derived_inside_is_a_real_one() -> None:
    """A library that is first imported in a simulation derives its sockets from the real class, for ever."""
    kept: list[type] = []

    async def main(world: World) -> None:
        class Derived(socket.socket):
            def hello(self) -> str:
                return f"{super().fileno() >= 0}"

        kept.append(Derived)

    simulate(main)
    assert kept[0].__mro__[1] is REAL
    with kept[0]() as sock:
        assert sock.hello() == "True"
        assert isinstance(sock, REAL)
    with REAL() as sock, pytest.raises(TypeError):
        pickle.dumps(sock)
