"""Processes: killed, stopped, continued, out of memory; a real one and a simulated one are seen to do the same."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from tests.fidelity.stages import Actor, RealActor, Stage, agree, attempted, connecting, tried

pytestmark = pytest.mark.slow  # real processes, file systems, time


async def until_there(stage: Stage, name: str) -> None:
    """Wait until an actor has made a file."""
    for _ in range(1000):
        if name in stage.files.listdir("/"):
            return
        await trio.sleep(0.01)
    raise AssertionError(f"{name} never came")


async def connected(stage: Stage, port: int) -> trio.SocketStream:
    """Connect to an actor, trying again while it is not there yet."""
    for _ in range(1000):
        try:
            return await trio.open_tcp_stream(stage.server, port)
        except OSError:
            await trio.sleep(0.01)
    raise AssertionError("nobody listens")


def test_a_killed_process_unwinds_nothing_and_its_writes_stay(tmp_path: Path) -> None:
    """No `finally` runs; what it wrote without a sync is in the page cache, which is not its own."""

    async def program(stage: Stage) -> list[object]:
        actor = stage.start("writer")
        await until_there(stage, "ready")
        actor.kill()
        await actor.wait()
        return [stage.files.listdir("/"), stage.files.open("/data").read(100, 0)]

    assert agree(program, tmp_path) == [["data", "ready"], b"unsynced"]


def test_the_peer_of_a_killed_process_reads_what_it_said_and_the_end(tmp_path: Path) -> None:
    """The system closes its sockets: data, end of stream; who sends on is reset; new connections are refused."""

    async def program(stage: Stage) -> list[str]:
        port = stage.port()
        actor = stage.start("talker", port)
        async with await connected(stage, port) as stream:
            await trio.sleep(0.1)
            actor.kill()
            await actor.wait()
            seen = [await attempted(lambda: stream.receive_some(100)) for _ in range(2)]
            for _ in range(2):
                seen.append(await attempted(lambda: stream.send_all(b"x")))
                await trio.sleep(0.1)
        return [*seen, await attempted(connecting(stage.server, port))]

    assert agree(program, tmp_path) == ["b'hello'", "b''", "None", "EPIPE", "ECONNREFUSED"]


def test_the_peer_of_a_process_killed_with_unread_data_is_reset(tmp_path: Path) -> None:
    """As by closing with unread data: ECONNRESET instead of an end."""

    async def program(stage: Stage) -> str:
        port = stage.port()
        actor = stage.start("deaf", port)
        async with await connected(stage, port) as stream:
            await stream.send_all(b"do you hear me?")
            await trio.sleep(0.2)
            actor.kill()
            await actor.wait()
            return await attempted(lambda: stream.receive_some(1))

    assert agree(program, tmp_path) == "ECONNRESET"


def test_a_killed_server_comes_back_on_its_port(tmp_path: Path) -> None:
    """Its port is free at once, and a new process serves there."""

    async def program(stage: Stage) -> str:
        port = stage.port()
        for _ in range(2):
            actor = stage.start("echo", port)
            async with await connected(stage, port) as stream:
                await stream.send_all(b"x")
                answer = await attempted(lambda: stream.receive_some(1), 5)
                actor.kill()
                await actor.wait()
        return answer

    assert agree(program, tmp_path) == "b'x'"


def test_a_stopped_server_is_connected_to_and_answers_when_it_goes_on(tmp_path: Path) -> None:
    """SIGSTOP and SIGCONT: the system accepts for it, what is sent waits, and is answered in the end."""

    async def program(stage: Stage) -> list[str]:
        port = stage.port()
        actor = stage.start("echo", port)
        async with await connected(stage, port) as first:
            actor.pause()
            async with await trio.open_tcp_stream(stage.server, port) as second:
                seen = []
                for stream in (first, second):
                    await stream.send_all(b"x")
                    seen.append(await attempted(lambda stream=stream: stream.receive_some(1), 0.3))  # type: ignore[misc]
                actor.resume()
                seen.append(await attempted(lambda: first.receive_some(1), 5))
                seen.append(await attempted(lambda: second.receive_some(1), 5))
        return seen

    assert agree(program, tmp_path) == ["waits", "waits", "b'x'", "b'x'"]


def test_a_stopped_process_does_nothing_and_can_be_killed(tmp_path: Path) -> None:
    """While it is stopped its file does not grow, afterwards it does; killed while stopped, it is dead."""

    async def program(stage: Stage) -> list[bool]:
        actor = stage.start("ticker")
        await until_there(stage, "ticks")
        ticks = stage.files.open("/ticks")
        seen = []
        for stop in (True, False):
            actor.pause() if stop else actor.resume()
            await trio.sleep(0.05)
            before = ticks.size()
            await trio.sleep(0.5)
            seen.append(ticks.size() > before)
        actor.pause()
        actor.kill()
        await actor.wait()
        before = ticks.size()
        await trio.sleep(0.2)
        return [*seen, ticks.size() > before]

    assert agree(program, tmp_path) == [False, True, False]


def test_a_process_that_is_asked_to_leave_does_so_in_order_or_is_killed(tmp_path: Path) -> None:
    """SIGTERM: whoever has a handler unwinds and takes its time, also when it was stopped as it was asked; others are dead."""

    async def program(stage: Stage) -> list[list[str]]:
        seen: list[list[str]] = []
        for name, is_stopped in (("polite", False), ("polite", True), ("writer", False)):
            actor = stage.start(name)
            await until_there(stage, "ready")
            if is_stopped:
                actor.pause()
            actor.terminate()
            if is_stopped:
                await trio.sleep(0.2)
                seen.append(stage.files.listdir("/"))
                actor.resume()
            await actor.wait()
            seen.append(stage.files.listdir("/"))
            for file in seen[-1]:
                stage.files.unlink(f"/{file}")
        return seen

    polite = ["left", "ready", "unwound"]
    assert agree(program, tmp_path) == [polite, ["ready"], polite, ["data", "ready"]]


@contextlib.contextmanager
def small_memory(tmp_path: Path) -> Iterator[Path]:
    """A control group that may use 64 MiB."""
    for parent, limit in (
        (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"),
        (Path("/sys/fs/cgroup"), "memory.max"),
    ):
        group = parent / f"simkit-{tmp_path.name}"
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            (group / limit).write_text(str(64 << 20), encoding="ascii")
            yield group
        except OSError:
            continue
        else:
            return
        finally:
            group.rmdir()
    pytest.skip("cannot be provoked here: no control group of memory can be made")


def test_a_process_that_takes_all_memory_is_killed(root: None, tmp_path: Path) -> None:
    """As by SIGKILL, somewhere on its way: it never gets to its end."""

    async def hunger(stage: Stage, actor: Actor) -> list[object]:
        await actor.wait()
        return [stage.files.listdir("/"), tried(lambda: stage.files.open("/sated"))]

    with small_memory(tmp_path) as group:

        async def program(stage: Stage) -> list[object]:
            actor = stage.start("hungry")
            if isinstance(actor, RealActor):
                (group / "cgroup.procs").write_text(str(actor.process.pid), encoding="ascii")
            seen = await hunger(stage, actor)
            if isinstance(actor, RealActor):
                assert actor.process.returncode == -9
            return seen

        (tmp_path / "files").mkdir()
        seen = agree(program, tmp_path / "files", lambda world: world.points.out_of_memory_at("takes memory", nth=60))
    assert seen == [["ready"], "ENOENT"]


def test_a_process_that_gets_no_more_memory_may_go_on(tmp_path: Path) -> None:
    """A MemoryError unwinds like any other; who catches it and gives back what it has, lives."""

    async def program(stage: Stage) -> list[object]:
        actor = stage.start("thrifty", 64)
        await actor.wait()
        return list(stage.files.listdir("/"))

    seen = agree(program, tmp_path, lambda world: world.points.memory_error_at("takes memory", nth=60))
    assert seen == ["gave-back", "unwound", "went-on"]
