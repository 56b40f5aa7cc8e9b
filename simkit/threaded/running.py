"""Starting a program of threads in the simulation."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, cast

import outcome
import trio

from simkit._kernel.threads import current_thread
from simkit.errors import ExitCode, Problem, SimkitError, wrong
from simkit.points import current_world
from simkit.threaded import stand_ins
from simkit.threaded.program import Program, current_worker

T = TypeVar("T")


async def run(main: Callable[..., T], *args: Any) -> T:
    """Run the blocking program `main(*args)` in a simulated thread, with as many threads as it likes to start.

    Args:
        main: a plain function; the first thread of the program.
        args: its arguments.

    Returns: what `main` returns, or raises what it raises, once every thread that is no daemon has ended. Raises
        SimkitError outside a simulation.
    """
    world = current_world()
    if world is None:
        raise _outside()
    if inspect.iscoroutinefunction(main):
        raise wrong("threaded.run: main", main, "a plain function: async ones run in tasks, or under `simkit.aio.run`")
    if not callable(main):
        raise wrong(
            "threaded.run: main", main, "a plain function and its arguments: run(main, *args), not run(main(*args))"
        )
    stand_ins.install(world)
    program = Program(trio.lowlevel.current_trio_token())
    start = functools.partial(_start, program, functools.partial(main, *args))
    result = await trio.to_thread.run_sync(start, limiter=trio.CapacityLimiter(1))
    return cast("T", result.unwrap())


def _start(program: Program, main: Callable[[], object]) -> outcome.Outcome[Any]:
    """Wait in one thread for the program, which has others: real ones that nobody had before."""
    me = current_thread()
    assert me is not None
    results: list[outcome.Outcome[Any]] = []
    first = program.start(lambda: results.append(outcome.capture(main)))
    program.await_end(me, first)
    program.await_all(me)
    return results[0]


def in_trio(fn: Callable[..., Awaitable[T]], *args: Any) -> T:
    """Call a trio function from a simulated thread and wait for it: `in_trio(process.wait)`."""
    worker = current_worker()
    if worker is None:
        raise _outside()
    return trio.from_thread.run(fn, *args, trio_token=worker.program.token)


def _outside() -> SimkitError:
    return SimkitError(
        Problem(
            "threaded-outside",
            "simkit.threaded was asked to run a program of threads outside a simulation",
            "simkit.threaded",
            "a process that `Host.start` started, or the main function of `simkit.run`",
            "outside a simulation call the function itself",
            ExitCode.USAGE,
        )
    )
