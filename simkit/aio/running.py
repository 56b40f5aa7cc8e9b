"""Starting an asyncio program in the simulation, and winding it up as `asyncio.run` does."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Literal, TypeVar, cast

import trio

from simkit.aio.loop import Order, SimulatedLoop
from simkit.aio.ordering import keep_order
from simkit.errors import ExitCode, Problem, SimkitError, wrong
from simkit.points import current_world

T = TypeVar("T")


async def run(
    main: Callable[..., Coroutine[Any, Any, T]],
    *args: Any,
    order: Order = "any",
    unhandled: Literal["log", "raise"] = "log",
) -> T:
    """Run the asyncio program `main(*args)` in the calling trio task; for `asyncio.run(main(*args))`.

    Args:
        main: an `async def` of an asyncio program.
        args: its arguments.
        order: who goes first among tasks that are ready: "any" leaves it to the run's strategy, "fifo" is the order of
            asyncio's own loop, which finds less.
        unhandled: what becomes of an error that nobody waits for: logged, as asyncio does, or raised here.

    Returns: what `main` returns, or raises what it raises. Tasks that are left then are cancelled, and waited for.
    Cancelling the calling task cancels the asyncio task. Raises SimkitError outside a simulation.
    """
    world = current_world()
    if world is None:
        raise _outside()
    _check(main, order, unhandled)
    keep_order(SimulatedLoop)
    async with trio.open_nursery() as outer:
        home = await outer.start(_home)
        try:
            loop = SimulatedLoop(world, home, order)
            if unhandled == "raise":
                loop.set_exception_handler(_raise_unhandled)
            outcome = await _to_the_end(loop, main, args)
        finally:
            home.cancel_scope.cancel()
    if loop.fatal is not None:
        raise loop.fatal
    return cast("T", outcome())


def in_trio(fn: Callable[..., Awaitable[T]], *args: Any) -> asyncio.Future[T]:
    """Call a trio function from asyncio code in a simulation: `await in_trio(process.wait)`."""
    loop = asyncio.get_running_loop()
    if not isinstance(loop, SimulatedLoop):
        raise _outside()
    return loop.in_trio(fn, *args)


async def _home(task_status: trio.TaskStatus[trio.Nursery]) -> None:
    """Where the loop's lanes live: out of reach of a cancellation, which reaches the program by asyncio's way."""
    async with trio.open_nursery() as nursery:
        nursery.cancel_scope.shield = True
        task_status.started(nursery)
        await trio.sleep_forever()


async def _to_the_end(loop: SimulatedLoop, main: Callable[..., Any], args: tuple[Any, ...]) -> Callable[[], Any]:
    try:
        return await _main_task(loop, main, args)
    finally:
        if not loop.is_closed():
            loop.close_network()
            loop.finish()


async def _main_task(loop: SimulatedLoop, main: Callable[..., Any], args: tuple[Any, ...]) -> Callable[[], Any]:
    ended = trio.Event()
    try:
        task = loop.within(functools.partial(_begin, loop, main, args))
    except Exception as error:  # noqa: BLE001  # raised where no nursery makes a group of it
        return functools.partial(_fail, error)
    task.add_done_callback(lambda _: ended.set())
    loop.when_fatal(ended.set)
    try:
        await ended.wait()
    except trio.Cancelled:
        with trio.CancelScope(shield=True):
            loop.within(task.cancel)
            await ended.wait()
            await _wind_up(loop)
        raise
    with trio.CancelScope(shield=True):
        await _wind_up(loop)
    return task.result if task.done() and not task.cancelled() else _cancelled


def _begin(loop: SimulatedLoop, main: Callable[..., Any], args: tuple[Any, ...]) -> asyncio.Task[Any]:
    coroutine = main(*args)
    if not asyncio.iscoroutine(coroutine):
        raise wrong(
            "aio.run: main", main, "an async function: a plain one is called as it is, one that waits by `threaded.run`"
        )
    return loop.create_task(coroutine)


def _fail(error: Exception) -> Any:
    raise error


async def _wind_up(loop: SimulatedLoop) -> None:
    """As asyncio.run does: cancel what is left, wait for it, tell of its errors, close the async generators."""
    if loop.is_closed() or isinstance(loop.fatal, SystemExit):
        return
    done = trio.Event()
    task = loop.within(lambda: loop.create_task(_ended(loop), name="wind up"))
    task.add_done_callback(lambda _: done.set())
    await done.wait()


async def _ended(loop: SimulatedLoop) -> None:
    left = [task for task in loop.open_tasks() if task is not asyncio.current_task()]
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
    for task in left:
        if not task.cancelled() and task.exception() is not None:
            message = "unhandled exception during asyncio.run() shutdown"
            loop.call_exception_handler({"message": message, "exception": task.exception(), "task": task})
    await loop.shutdown_asyncgens()


def _raise_unhandled(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    assert isinstance(loop, SimulatedLoop)
    error = context.get("exception")
    loop.end_with(error if error is not None else RuntimeError(context["message"]))


def _cancelled() -> Any:
    raise asyncio.CancelledError


def _check(main: object, order: object, unhandled: object) -> None:
    if not callable(main):
        if asyncio.iscoroutine(main):
            main.close()  # it is told of already
        raise wrong(
            "aio.run: main", main, "an async function and its arguments: run(main, *args), not run(main(*args))"
        )
    if order not in ("any", "fifo"):
        raise wrong("aio.run: order", order, "any or fifo")
    if unhandled not in ("log", "raise"):
        raise wrong("aio.run: unhandled", unhandled, "log or raise")


def _outside() -> SimkitError:
    return SimkitError(
        Problem(
            "aio-outside",
            "simkit.aio was asked to run an asyncio program outside a simulation",
            "simkit.aio.run",
            "a process that `Host.start` started, or the main function of `simkit.run`",
            "outside a simulation use asyncio.run",
            ExitCode.USAGE,
        )
    )
