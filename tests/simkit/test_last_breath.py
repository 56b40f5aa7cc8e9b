"""What a process starts by trio's low-level means is its own, and the dead start nothing."""

from __future__ import annotations

import os
from collections.abc import Callable

import trio

from simkit.process import ProcessDead
from simkit.world import World
from tests.simkit.test_process import both_kernels, simulate


@both_kernels
def test_a_system_task_is_that_of_the_process_that_started_it(kernel: str) -> None:
    """It ends with it, is paused with it, and its files are on that host."""

    async def main(world: World) -> tuple[list[int], list[str]]:
        ticks: list[int] = []

        async def tick() -> None:
            while True:
                await trio.sleep(1)
                with open("/ticks", "a") as file:  # noqa: PTH123, ASYNC230  # simulated
                    file.write(".")
                ticks.append(world.now_ns // 1_000_000_000)

        async def program() -> None:
            trio.lowlevel.spawn_system_task(tick)
            await trio.sleep_forever()

        process = world.host("a").start(program)
        await trio.sleep(2.5)
        process.pause()
        await trio.sleep(3)
        process.resume()
        await trio.sleep(1.2)
        process.kill()
        await trio.sleep(5)
        return ticks, world.host("a").disk.listdir("/")

    assert simulate(main, kernel).unwrap() == ([1, 2, 5, 6], ["ticks"])


@both_kernels
def test_who_is_killed_inside_a_call_starts_nothing_any_more(kernel: str) -> None:
    """Its handlers run up to the next await, but neither a task nor a callback that they start does, wherever it lives."""

    async def main(world: World) -> list[str]:
        seen: list[str] = []
        host = world.host("a")

        async def late() -> None:
            seen.append("task")

        async with trio.open_nursery() as foreign:

            async def program() -> None:
                token = trio.lowlevel.current_trio_token()
                token.run_sync_soon(seen.append, "callback asked for before")
                starts: list[Callable[[], object]] = [
                    lambda: trio.lowlevel.spawn_system_task(late),
                    lambda: foreign.start_soon(late),
                    lambda: token.run_sync_soon(seen.append, "callback"),
                ]
                try:
                    os.mkdir("/d")  # noqa: PTH102
                except ProcessDead:
                    for start in starts:
                        try:
                            start()
                        except ProcessDead:
                            seen.append("refused")
                    await trio.sleep(1)

            process = host.start(program)
            host.at_boundary(1, process.kill)
            await trio.sleep(5)
        return seen

    assert simulate(main, kernel).unwrap() == ["refused"] * 2  # a callback is not made


@both_kernels
def test_a_callback_is_made_as_the_process_that_asked_for_it(kernel: str) -> None:
    """`run_sync_soon` of a process touches the disk of its host."""

    async def main(world: World) -> list[str]:
        async def program() -> None:
            token = trio.lowlevel.current_trio_token()
            token.run_sync_soon(os.mkdir, "/d")
            token.run_sync_soon(os.mkdir, "/e", idempotent=True)
            token.run_sync_soon(os.mkdir, "/e", idempotent=True)
            await trio.sleep(1)

        status = await world.host("a").start(program).wait()
        assert status.kind == "exited"
        return world.host("a").disk.listdir("/")

    assert simulate(main, kernel).unwrap() == ["d", "e"]
