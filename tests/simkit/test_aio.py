"""asyncio programs run unchanged in a simulation: tasks, timers, streams, TLS, threads; killed without unwinding."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import trio

import simkit
from simkit import Limits, RandomWalk, Tape, World, aio
from simkit.errors import SimkitError
from simkit.strategies import Reduced


def simulate(main: Any, seed: int = 0, *, walk: bool = True, **options: Any) -> Any:
    tape = Tape.from_seed(seed)
    strategy = RandomWalk(tape.stream("schedule")) if walk else None
    return simkit.run(main, tape=tape, strategy=strategy, **options)


def in_process(program: Any, *args: Any, seed: int = 0, **options: Any) -> Any:
    """Run an asyncio program as a process of a host; its value, or what it raised."""

    async def main(world: World) -> Any:
        status = await world.host("desk").start(aio.run, program, *args).wait()
        if status.error is not None:
            raise status.error
        return status.value

    return simulate(main, seed, **options)


async def napping(log: list[str]) -> str:
    async def nap(name: str, seconds: float) -> str:
        await asyncio.sleep(seconds)
        log.append(name)
        return name

    names = await asyncio.gather(nap("long", 3600), nap("short", 1))
    return " ".join(names)


def test_timers_are_virtual_and_in_order() -> None:
    """An hour passes at once, whoever comes first by the clock comes first."""
    log: list[str] = []
    outcome = in_process(napping, log)
    assert outcome.unwrap() == "long short"
    assert log == ["short", "long"]
    assert outcome.now_ns == 3600 * 10**9


async def lost_update() -> int:
    value = 0

    async def add() -> None:
        nonlocal value
        seen = value
        await asyncio.sleep(0)
        value = seen + 1

    await asyncio.gather(add(), add())
    return value


def test_strategies_choose_between_asyncio_tasks() -> None:
    """Some schedules lose the update, some do not, and the same seed always does the same."""
    values = {seed: in_process(lost_update, seed=seed).unwrap() for seed in range(30)}
    assert set(values.values()) == {1, 2}
    again = {seed: in_process(lost_update, seed=seed).unwrap() for seed in range(30)}
    assert again == values


def test_fifo_is_the_order_of_asyncio() -> None:
    """In asyncio's own order the update is lost each time, as it is under asyncio.run."""
    assert asyncio.run(lost_update()) == 1

    async def main(world: World) -> Any:
        async def program() -> Any:
            return await aio.run(lost_update, order="fifo")

        return (await world.host("desk").start(program).wait()).value

    assert {simulate(main, seed).unwrap() for seed in range(20)} == {1}


async def callbacks(log: list[str]) -> None:
    loop = asyncio.get_running_loop()
    loop.call_soon(log.append, "first")
    loop.call_soon(log.append, "second")
    loop.call_later(1, log.append, "fourth")
    cancelled = loop.call_later(0.5, log.append, "never")
    await asyncio.sleep(0)
    log.append("third")
    cancelled.cancel()
    await asyncio.sleep(2)


def test_callbacks_keep_their_order() -> None:
    """As asyncio promises, whatever the schedule."""
    for seed in range(10):
        log: list[str] = []
        in_process(callbacks, log, seed=seed).unwrap()
        assert log == ["first", "second", "third", "fourth"]


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while line := await reader.readline():
        writer.write(line.upper())
        await writer.drain()
    writer.close()
    await writer.wait_closed()


async def serve(**tls: Any) -> None:
    server = await asyncio.start_server(echo, "", 7, **tls)
    async with server:
        await server.serve_forever()


async def ask(words: list[str], **tls: Any) -> list[str]:
    while True:
        try:
            reader, writer = await asyncio.open_connection("server", 7, **tls)
            break
        except ConnectionRefusedError:
            await asyncio.sleep(0.1)
    answers = []
    for word in words:
        writer.write(f"{word}\n".encode())
        await writer.drain()
        answers.append((await reader.readline()).decode().strip())
    writer.close()
    await writer.wait_closed()
    return answers


def test_streams_go_over_the_simulated_network() -> None:
    """A server on one host, a client on another, plain asyncio streams on both."""

    async def main(world: World) -> Any:
        world.host("server").start(aio.run, serve)
        return (await world.host("client").start(aio.run, ask, ["one", "two"]).wait()).value

    for seed in range(5):
        assert simulate(main, seed).unwrap() == ["ONE", "TWO"]


async def flood(size: int) -> int:
    reader, writer = await asyncio.open_connection("server", 7)
    writer.write(b"x" * size + b"\n")
    await writer.drain()
    answer = await reader.readexactly(size + 1)
    writer.close()
    return len(answer)


def test_more_than_the_window_is_buffered_and_drained() -> None:
    """A megabyte goes through, whatever the buffers hold."""

    async def big(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readuntil(b"\n"))
        await writer.drain()
        writer.close()

    async def server() -> None:
        async with await asyncio.start_server(big, "", 7, limit=2**21) as listening:
            await listening.serve_forever()

    async def main(world: World) -> Any:
        world.host("server").start(aio.run, server)
        await trio.sleep(1)
        return (await world.host("client").start(aio.run, flood, 2**20).wait()).value

    assert simulate(main).unwrap() == 2**20 + 1


def test_a_kill_unwinds_nothing_and_resets_connections() -> None:
    """No finally of the dead runs, and the peer notices."""
    log: list[str] = []

    async def server() -> None:
        try:
            await serve()
        finally:
            log.append("unwound")

    async def asks_twice() -> str:
        reader, writer = await asyncio.open_connection("server", 7)
        writer.write(b"hello\n")
        first = await reader.readline()
        try:
            return f"{first!r} then {await reader.readline()!r}"
        except ConnectionResetError:
            return f"{first!r} then reset"

    async def main(world: World) -> Any:
        process = world.host("server").start(aio.run, server)
        await trio.sleep(1)
        client = world.host("client").start(aio.run, asks_twice)
        await trio.sleep(1)
        process.kill()
        return (await client.wait()).value

    assert simulate(main).unwrap() == "b'HELLO\\n' then reset"
    assert log == []


def test_what_is_left_is_cancelled_at_the_end() -> None:
    """As asyncio.run does: tasks that are left are cancelled and waited for, async generators closed."""
    log: list[str] = []

    async def numbers() -> Any:
        try:
            yield 1
            yield 2
        finally:
            log.append("generator closed")

    async def left() -> None:
        try:
            await asyncio.sleep(1000)
        finally:
            await asyncio.sleep(1)
            log.append("left")

    async def program() -> str:
        asyncio.create_task(left())  # noqa: RUF006
        await asyncio.sleep(1)
        generator = numbers()
        await anext(generator)
        globals()["_kept"] = generator
        return "done"

    outcome = in_process(program)
    assert outcome.unwrap() == "done"
    assert log == ["left", "generator closed"]
    assert outcome.now_ns == 2 * 10**9


def test_sets_of_tasks_have_one_order() -> None:
    """`asyncio.wait` gives sets; iterating one is the same in every run."""

    async def program() -> list[str]:
        tasks = [asyncio.create_task(asyncio.sleep(0, str(n))) for n in range(40)]
        done, _ = await asyncio.wait(tasks)
        return [task.result() for task in done]

    def run_once() -> Any:
        _ballast = [object() for _ in range(1000)]
        return in_process(program, seed=3).unwrap()

    first = run_once()
    _more = [bytearray(100) for _ in range(1000)]
    assert run_once() == first


def test_coroutines_that_asyncio_puts_into_a_set_start_in_one_order() -> None:
    """`as_completed` starts them in the order of a set, which is that of their addresses; outside it is left alone."""

    async def sleep(number: int, log: list[int]) -> int:
        log.append(number)
        await asyncio.sleep(number)
        return number

    async def program(order: list[int]) -> tuple[list[int], list[int]]:
        log: list[int] = []
        ended = [await one for one in asyncio.as_completed([sleep(number, log) for number in order])]
        return log, ended

    order = [number * 7 % 16 for number in range(16)]
    outcome = in_process(lambda: aio_in_fifo(program, order))
    assert outcome.unwrap() == (order, sorted(order))
    assert vars(asyncio.tasks)["set"]([3, 3]) == {3}


def test_gatherings_in_a_set_have_one_order() -> None:
    """`gather` makes a future of its own kind; sets of them are walked in one order, and outside they stay what they were."""

    async def program() -> list[Any]:
        gatherings = [asyncio.gather(asyncio.sleep(0, n)) for n in range(40)]
        done, _ = await asyncio.wait(gatherings)
        return [gathering.result() for gathering in done]

    def run_once() -> Any:
        _ballast = [object() for _ in range(1000)]
        return in_process(program, seed=3).unwrap()

    first = run_once()
    _more = [bytearray(100) for _ in range(1000)]
    assert run_once() == first

    async def real() -> bool:
        gathering = asyncio.gather(asyncio.sleep(0))
        return hash(gathering) == object.__hash__(gathering)

    assert asyncio.run(real())


def test_a_running_loop_is_neither_closed_nor_run_again() -> None:
    """asyncio raises RuntimeError there, and programs are prepared for that."""

    async def program() -> str:
        loop = asyncio.get_running_loop()
        with pytest.raises(RuntimeError, match="Cannot close a running event loop"):
            loop.close()
        for again in (loop.run_forever, lambda: loop.run_until_complete(loop.create_future())):
            with pytest.raises(RuntimeError, match=r"simkit\.aio\.run"):
                again()
        await asyncio.sleep(1)
        return "goes on"

    assert in_process(program).unwrap() == "goes on"


async def aio_in_fifo(program: Any, *args: Any) -> Any:
    """Programs within programs: a loop of its own that keeps asyncio's order."""
    return await aio.in_trio(lambda: aio.run(program, *args, order="fifo"))


def test_threads_are_simulated() -> None:
    """`asyncio.to_thread` runs in a thread of the world; its `time.sleep` is virtual."""
    import time

    async def program() -> Any:
        began = time.monotonic()
        results = await asyncio.gather(*(asyncio.to_thread(time.sleep, seconds) for seconds in (5, 3)))
        return results, round(time.monotonic() - began, 3)

    results, seconds = in_process(program).unwrap()
    assert results == [None, None]
    assert 5 <= seconds < 5.1


def test_timeouts_and_task_groups() -> None:
    """The structured half of asyncio works."""

    async def program() -> Any:
        try:
            async with asyncio.timeout(2):
                async with asyncio.TaskGroup() as group:
                    group.create_task(asyncio.sleep(1))
                    group.create_task(asyncio.sleep(1000))
        except TimeoutError:
            return asyncio.get_running_loop().time()

    assert in_process(program).unwrap() == 2.0


def test_a_pause_holds_timers_and_tasks_back() -> None:
    """Nothing of a paused process runs; what came due happens when it goes on."""
    log: list[float] = []

    async def program() -> None:
        loop = asyncio.get_running_loop()
        loop.call_later(2, lambda: log.append(loop.time()))
        await asyncio.sleep(1)
        log.append(loop.time())
        await asyncio.sleep(10)

    async def main(world: World) -> None:
        process = world.host("desk").start(aio.run, program)
        await trio.sleep(0.5)
        process.pause()
        await trio.sleep(5)
        process.resume()
        await process.wait()

    simulate(main).unwrap()
    assert log == [5.5, 5.5]


def test_datagrams() -> None:
    """An endpoint on each of two hosts."""

    class Server(asyncio.DatagramProtocol):
        def connection_made(self, transport: Any) -> None:
            self.transport = transport

        def datagram_received(self, data: bytes, addr: Any) -> None:
            self.transport.sendto(data[::-1], addr)

    class Client(asyncio.DatagramProtocol):
        def __init__(self) -> None:
            self.answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

        def datagram_received(self, data: bytes, addr: Any) -> None:
            self.answer.set_result(data)

    async def server() -> None:
        await asyncio.get_running_loop().create_datagram_endpoint(Server, local_addr=("", 9))
        await asyncio.sleep(100)

    async def client() -> bytes:
        loop = asyncio.get_running_loop()
        transport, protocol = await loop.create_datagram_endpoint(Client, remote_addr=("server", 9))
        transport.sendto(b"abc")
        return await protocol.answer

    async def main(world: World) -> Any:
        world.host("server").start(aio.run, server)
        await trio.sleep(1)
        return (await world.host("client").start(aio.run, client).wait()).value

    assert simulate(main).unwrap() == b"cba"


def test_trio_functions_can_be_awaited() -> None:
    """What the world offers in trio, asyncio code can wait for."""

    async def program() -> str:
        await aio.in_trio(trio.sleep, 3)
        with pytest.raises(ValueError, match="negative"):
            await aio.in_trio(trio.sleep, -1)
        return "slept"

    outcome = in_process(program)
    assert outcome.unwrap() == "slept"
    assert outcome.now_ns == 3 * 10**9


def test_cancelling_the_trio_task_cancels_the_program() -> None:
    """By asyncio's way: CancelledError in the main task, cleanup awaited."""
    log: list[str] = []

    async def program() -> None:
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            await asyncio.sleep(1)
            log.append("cleaned up")
            raise

    async def main(_world: World) -> None:
        with trio.move_on_after(5):
            await aio.run(program)

    outcome = simulate(main)
    outcome.unwrap()
    assert log == ["cleaned up"]
    assert outcome.now_ns == 6 * 10**9


def test_errors_that_nobody_awaits_can_be_raised() -> None:
    """Logged by default, as asyncio does; raised when asked."""

    async def program() -> None:
        async def broken() -> None:
            raise LookupError("nobody waits for me")

        asyncio.create_task(broken())  # noqa: RUF006
        await asyncio.sleep(1)

    async def main(_world: World) -> None:
        await aio.run(program, unhandled="raise")

    with pytest.raises(LookupError, match="nobody"):
        simulate(main).unwrap()


def test_what_cannot_be_simulated_is_refused() -> None:
    """Subprocesses, descriptors and asyncio.run itself name the simulated way."""

    async def program() -> None:
        await asyncio.create_subprocess_exec("true")

    with pytest.raises(SimkitError, match=r"Host\.start"):
        in_process(program).unwrap()
    with pytest.raises(SimkitError, match="aio-outside"):
        trio.run(aio.run, program)


def test_digests_are_those_of_the_fallback_kernel() -> None:
    """Both loops give the same trace."""

    async def main(world: World) -> Any:
        world.host("server").start(aio.run, serve)
        return (await world.host("client").start(aio.run, ask, ["one", "two"]).wait()).value

    for seed in range(5):
        assert simulate(main, seed, kernel="fast").digest == simulate(main, seed, kernel="fallback").digest


def test_a_search_finds_the_race() -> None:
    """`simkit.search` explores asyncio tasks like any others."""

    async def main(world: World) -> None:
        status = await world.host("desk").start(aio.run, lost_update).wait()
        assert status.value == 2

    found = simkit.search(main, "surw", seed=1, runs_max=100, limits=Limits(steps=10_000))
    assert found


async def declared_update() -> int:
    value = 0

    async def add() -> None:
        nonlocal value
        await simkit.step("read", "value")
        seen = value
        await simkit.step("write", "value")
        value = seen + 1

    await asyncio.gather(add(), add())
    return value


def test_asyncio_code_declares_its_steps() -> None:
    """`simkit.step` yields in asyncio as well, in earnest too; a search that takes its word needs fewer runs to exhaust."""
    assert asyncio.run(declared_update()) in {1, 2}

    async def main(world: World) -> None:
        status = await world.host("desk").start(aio.run, declared_update).wait()
        assert status.value in {1, 2}

    found = simkit.search(main, Reduced(declared=True), runs_max=3000)
    assert not found
    assert found.exhausted


def test_a_deadlock_names_asyncio_tasks_and_their_lines() -> None:
    """A program that waits for what never comes: which task, and where."""

    async def stuck() -> None:
        await asyncio.Event().wait()

    with pytest.raises(
        simkit.DeadlockError, match=r"Task-1 .*stuck of desk/main#101 at .*test_aio.py:\d+ in .*stuck"
    ) as caught:
        in_process(stuck).unwrap()
    assert "2 tasks wait" in str(caught.value)  # with main; those that serve the loop do not count


def test_a_kill_inside_a_call_of_its_own_is_told_by_nobody(caplog: pytest.LogCaptureFixture) -> None:
    """The last step of the dead still ends its task, which asks the loop for callbacks: they are forgotten in silence."""

    async def program() -> None:
        async def write() -> None:
            Path("/file").write_text("x", encoding="utf-8")  # noqa: ASYNC240  # simulated

        await asyncio.gather(write(), asyncio.sleep(1))

    async def main(world: World) -> str:
        host = world.host("desk")
        process = host.start(aio.run, program)
        host.at_boundary(2, process.kill)
        return str(await process.wait())

    assert simulate(main).unwrap() == "killed"
    assert not caplog.records
