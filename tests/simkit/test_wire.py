"""Wires: between the outside and a process, on no network; they end with the process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio
import trio.testing

from simkit.process import Process, ProcessDead
from simkit.tape import Tape
from simkit.wire import WireEnd, wire
from simkit.world import Outcome, World, run

both_kernels = pytest.mark.parametrize("kernel", ["fast", "fallback"])
Main = Callable[[World], Awaitable[Any]]


def simulate(main: Main, kernel: str = "fast") -> Outcome[Any]:
    return run(main, tape=Tape.from_seed(1), kernel=kernel)  # type: ignore[arg-type]


def wired(world: World, program: Callable[[WireEnd], Awaitable[Any]]) -> tuple[WireEnd, Process]:
    """A process that has one end, and the other end."""
    ours, theirs = wire(world.trace, "there")
    process = world.host("a").start(program, theirs)
    process.on_death(theirs.die)
    return ours, process


async def echo(end: WireEnd) -> None:
    """Send back what comes, in capitals, until nothing comes."""
    while data := await end.receive_some():
        await end.send_all(data.upper())


@both_kernels
def test_bytes_go_both_ways_and_take_no_time(kernel: str) -> None:
    """What is sent at once is received at once, in order, at most as much as is asked for."""

    async def main(world: World) -> tuple[bytes, bytes, int]:
        end, _ = wired(world, echo)
        await end.send_all(b"one ")
        await end.send_all(b"two")
        return await end.receive_some(5), await end.receive_some(), world.now_ns

    assert simulate(main, kernel).unwrap() == (b"ONE T", b"WO", 0)


@both_kernels
def test_a_process_that_is_killed_leaves_what_it_sent_and_the_end(kernel: str) -> None:
    """As over TCP: what was under way arrives. Who sends on meets a broken stream."""

    async def main(world: World) -> list[bytes]:
        end, process = wired(world, echo)
        await end.send_all(b"last")
        await trio.sleep(1)
        process.kill()
        with pytest.raises(trio.BrokenResourceError):
            await end.send_all(b"nobody")
        return [await end.receive_some(), await end.receive_some(), await end.receive_some()]

    assert simulate(main, kernel).unwrap() == [b"LAST", b"", b""]


@both_kernels
def test_who_waits_hears_of_the_end(kernel: str) -> None:
    """A process that is killed, that loses power, or that hangs up, while the outside waits for it."""

    async def hangs_up(end: WireEnd) -> None:
        await trio.sleep(1)
        await end.aclose()
        await trio.sleep_forever()

    async def main(world: World) -> list[bytes]:
        heard = []
        for strike in (Process.kill, lambda process: process.host.power_loss("keep"), None):
            end, process = wired(world, echo if strike else hangs_up)
            async with trio.open_nursery() as nursery:
                if strike:
                    nursery.start_soon(_later, strike, process)
                heard.append(await end.receive_some())
        return heard

    assert simulate(main, kernel).unwrap() == [b"", b"", b""]


async def _later(strike: Callable[[Process], object], process: Process) -> None:
    await trio.sleep(1)
    strike(process)


@both_kernels
def test_a_paused_process_answers_when_it_goes_on(kernel: str) -> None:
    """What was sent meanwhile waits for it."""

    async def main(world: World) -> tuple[bool, bytes]:
        end, process = wired(world, echo)
        process.pause()
        await end.send_all(b"later")
        with trio.move_on_after(10) as scope:
            await end.receive_some()
        process.resume()
        return scope.cancelled_caught, await end.receive_some()

    assert simulate(main, kernel).unwrap() == (True, b"LATER")


def test_an_end_that_is_closed_or_dead_is_of_no_use() -> None:
    """Its holder is told which of the two it is; nobody waits on one end twice."""

    async def main(world: World) -> None:
        ours, theirs = wire(world.trace, "there")
        process = world.host("a").start(trio.sleep_forever)
        process.on_death(theirs.die)
        await _use_up(ours, theirs, process)

    simulate(main).unwrap()


async def _use_up(ours: WireEnd, theirs: WireEnd, process: Process) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_closed_under, ours)
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(trio.BusyResourceError):
            await ours.receive_some()
        await ours.aclose()
    for use in (ours.receive_some(), ours.send_all(b"x"), ours.wait_send_all_might_not_block()):
        with pytest.raises(trio.ClosedResourceError):
            await use
    process.kill()
    with pytest.raises(ProcessDead):
        await theirs.send_all(b"x")


async def _closed_under(end: WireEnd) -> None:
    with pytest.raises(trio.ClosedResourceError):
        await end.receive_some()


def test_what_a_wire_carries_is_in_the_trace() -> None:
    """By its size and its way: runs that said something else were not the same."""

    def run_of(word: bytes) -> Outcome[Any]:
        async def main(world: World) -> None:
            end, _ = wired(world, echo)
            await end.send_all(word)
            await end.receive_some()

        return simulate(main)

    told = [event.detail for event in run_of(b"word").trace.events() if event.kind == "wire"]
    assert told == ["outside>there 4", "there>outside 4"]
    assert run_of(b"word").digest == run_of(b"talk").digest != run_of(b"words").digest
