"""Programs that campaigns send to other processes, some of which their process does not survive."""

from __future__ import annotations

import ctypes
import re
from typing import Any

import trio

import simkit
from simkit import World


async def odd_seeds_differ(world: World) -> None:
    """Sleeps as long as the tape says; fails for one value in ten."""
    world.host("desk")
    length = world.tape.stream("length").choose("nap", 10)
    simkit.sometimes("long nap", length == 9)
    await trio.sleep(length)
    assert length != 7, f"a nap of {length}"


async def process_fails(world: World) -> None:
    """Only a process fails, main does not."""

    async def broken() -> None:
        raise OSError("broken")

    await world.host("desk").start(broken).wait()


async def main_notices(world: World) -> None:
    """A process fails, and main by that."""

    async def broken() -> None:
        raise OSError("broken")

    status = await world.host("desk").start(broken).wait()
    assert status.error is None, "the process ended badly"


async def runs_away(world: World) -> None:
    """Seed 2 sleeps for ever, an hour at a time."""
    while world.tape.entropy == 2:  # noqa: ASYNC110  # nothing ever happens, on purpose
        await trio.sleep(3600)


async def kills_its_process(world: World) -> None:
    """Seed 5 breaks the process that runs it, as a fault in a C extension does."""
    await trio.lowlevel.checkpoint()
    if world.tape.entropy == 5:
        ctypes.string_at(0)


async def never_leaves_c(world: World) -> None:
    """Seed 3 is lost in one call of C."""
    await trio.lowlevel.checkpoint()
    if world.tape.entropy == 3:
        re.match(r"(a*)*b", "a" * 64)


def double(number: int) -> int:
    """Work for a crew."""
    return 2 * number


def fails_at_three(number: int) -> int:
    """Work that raises."""
    if number == 3:
        raise ValueError("three")
    return number


class Nearby:
    """An executor as simple as can be: at once, here, but by pickle, as a distant one does."""

    def __init__(self) -> None:
        self.calls = 0

    def submit(self, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Do it now."""
        import concurrent.futures
        import pickle

        self.calls += 1
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        sent = pickle.loads(pickle.dumps((function, args, kwargs)))
        future.set_result(pickle.loads(pickle.dumps(sent[0](*sent[1], **sent[2]))))
        return future
