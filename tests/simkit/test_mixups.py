"""Programs of one library in the loop of another: every error names the simulated way."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio

import simkit
from simkit import aio, threaded
from simkit.mixups import annotate


def error_of(main: Callable[[simkit.World], Awaitable[Any]]) -> BaseException:
    error = simkit.run(main, tape=simkit.Tape.from_seed(0)).error
    assert error is not None
    return error


def notes_of(error: BaseException | None) -> str:
    return "\n".join(getattr(error, "__notes__", ()))


async def sleeps(_world: object = None) -> None:
    await asyncio.sleep(1)


async def waits(_world: object = None) -> None:
    await asyncio.Event().wait()


async def has_a_timeout(_world: object = None) -> None:
    async with asyncio.timeout(1):
        await asyncio.sleep(0)


async def sleeps_by_trio() -> None:
    await trio.sleep(1)


async def waits_by_trio() -> None:
    await trio.Event().wait()


async def blocks(_world: object = None) -> None:
    time.sleep(1)  # noqa: ASYNC251  # as a mistake


def plain(_value: int = 0) -> int:
    return 3


@pytest.mark.parametrize("main", [sleeps, waits, has_a_timeout])
def test_asyncio_in_a_trio_task_is_told_where_it_runs(main: Callable[[object], Awaitable[None]]) -> None:
    """In the main function and in a process, once."""

    async def starts(world: simkit.World) -> None:
        await world.host("a").start(main).wait()

    assert notes_of(error_of(main)).count("simkit.aio.run(main)") == 1
    process = simkit.run(starts, tape=simkit.Tape.from_seed(0)).failures[0]
    assert process.status is not None
    assert notes_of(process.status.error).count("simkit.aio.run(main)") == 1


@pytest.mark.parametrize("program", [sleeps_by_trio, waits_by_trio])
def test_trio_in_an_asyncio_task_is_told_how_it_is_called(program: Callable[[], Awaitable[None]]) -> None:
    """By `in_trio`, in the words of the error."""

    async def main(_world: simkit.World) -> None:
        await aio.run(program)  # type: ignore[arg-type]

    assert notes_of(error_of(main)).count("simkit.aio.in_trio(fn, *args)") == 1


def test_a_nursery_in_an_asyncio_task_is_refused() -> None:
    """It would end in an error of trio's own bookkeeping."""

    async def nurses() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(sleeps_by_trio)

    async def main(_world: simkit.World) -> None:
        with contextlib.suppress(RuntimeError):
            await aio.run(nurses)

    error = error_of(main)
    assert isinstance(error, simkit.SimkitError)
    assert error.problem.code == "aio-nursery"
    assert f"{__file__}:{nurses.__code__.co_firstlineno} in " in error.problem.where


def test_an_error_in_a_group_gets_its_note_once() -> None:
    """However often it is looked at, and however deep it lies."""
    error = RuntimeError("no running event loop")
    group = ExceptionGroup("outer", [ValueError(), ExceptionGroup("inner", [error])])
    annotate([group, None, error])
    assert notes_of(error).count("simkit:") == 1


def test_errors_of_other_kinds_get_no_note() -> None:
    """Nor does what looks like them and comes from the program itself."""

    async def main(_world: simkit.World) -> None:
        nothing: Any = None
        nothing.create_future()

    assert notes_of(error_of(main)) == ""


def test_a_real_sleep_names_that_of_each_library() -> None:
    """In a trio task and in an asyncio task it is the same call, and the same refusal."""
    text = str(error_of(blocks))
    assert "trio.sleep(…)" in text
    assert "asyncio.sleep(…)" in text
    assert "simkit.threaded.run" in text


def test_a_program_of_the_wrong_kind_is_named() -> None:
    """A plain function for asyncio, an async one for threads; what a program is given too much of is its own error."""

    async def as_asyncio(_world: simkit.World) -> None:
        await aio.run(plain)  # type: ignore[arg-type]

    async def as_threads(_world: simkit.World) -> None:
        await threaded.run(sleeps)  # type: ignore[unused-coroutine]

    async def with_too_much(_world: simkit.World) -> None:
        await aio.run(sleeps, 1, 2)

    for main, words in ((as_asyncio, "aio.run: main cannot be"), (as_threads, "threaded.run: main cannot be")):
        error = error_of(main)
        assert isinstance(error, simkit.SimkitError)
        assert words in str(error)
    assert isinstance(error_of(with_too_much), TypeError)
