"""Processes that are asked to leave, as by SIGTERM."""

from __future__ import annotations

import signal
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio

from simkit.process import ExitStatus
from simkit.tape import Tape
from simkit.world import Outcome, World, run

both_kernels = pytest.mark.parametrize("kernel", ["fast", "fallback"])


def simulate(main: Callable[[World], Awaitable[Any]], kernel: str = "fast") -> Outcome[Any]:
    return run(main, tape=Tape.from_seed(1), kernel=kernel)  # type: ignore[arg-type]


async def leaves_when_asked(told: list[float]) -> str:
    with trio.open_signal_receiver(signal.SIGTERM) as signals:
        async for _ in signals:
            told.append(trio.current_time())
            await trio.sleep(1)
            return "left"
    raise AssertionError("never asked")


@both_kernels
def test_who_is_asked_to_leave_takes_its_time(kernel: str) -> None:
    """Its handler is called at that instant, as that process and no other; asked again, it is no further on."""
    told: list[float] = []

    async def main(world: World) -> list[ExitStatus]:
        processes = [world.host(name).start(leaves_when_asked, told) for name in "ab"]
        await trio.sleep(2)
        processes[0].terminate()
        first = await processes[0].wait()
        processes[0].terminate()  # nobody is there
        processes[1].terminate()
        return [first, await processes[1].wait()]

    assert simulate(main, kernel).unwrap() == [ExitStatus("exited", "left")] * 2
    assert [round(when - told[0]) for when in told] == [0, 1]


def test_who_is_stopped_hears_of_it_as_it_goes_on() -> None:
    """Also when it is killed meanwhile: then it hears of nothing."""
    told: list[float] = []

    async def main(world: World) -> list[float]:
        one, other = (world.host(name).start(leaves_when_asked, told) for name in "ab")
        await trio.sleep(0.1)
        for process in (one, other):
            process.pause()
            process.terminate()
        other.kill()
        await trio.sleep(3)
        seen = list(told)
        one.resume()
        await one.wait()
        return [*seen, round(trio.current_time() - told[0])]

    assert simulate(main).unwrap() == [1]
    assert len(told) == 1


@pytest.mark.parametrize(
    ("handler", "kind"),
    [
        (signal.SIG_DFL, "killed"),
        (signal.SIG_IGN, None),
        (lambda _number, _frame: sys.exit(0), "exited"),
        (lambda _number, _frame: sys.exit(3), "failed"),
        (lambda _number, _frame: int("nothing"), "failed"),
        (lambda _number, _frame: None, None),
    ],
)
def test_what_a_handler_makes_of_it(handler: Any, kind: str | None) -> None:
    """The default is death; what a handler raises ends the process, and nobody else."""

    async def program() -> None:
        signal.signal(signal.SIGTERM, handler)
        await trio.sleep(5)

    async def main(world: World) -> str | None:
        process = world.host("a").start(program)
        await trio.sleep(1)
        process.terminate()
        world.failures.clear()  # it is what this is about
        return None if process.status is None else process.status.kind

    assert simulate(main).unwrap() == kind
