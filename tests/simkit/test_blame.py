"""Failures that are raised inside the kit are told apart by the lines of the program that they are laid to."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Awaitable, Callable

import pytest
import trio

import simkit
from simkit import testing
from simkit.blame import places_of
from simkit.shrinking import fingerprint_of

Main = Callable[[simkit.World], Awaitable[None]]


async def _waits_for_an_event(_world: simkit.World) -> None:
    await trio.Event().wait()


async def _waits_for_another(_world: simkit.World) -> None:
    await trio.Event().wait()


async def _connects(_world: simkit.World) -> None:
    socket.create_connection(("127.0.0.1", 1))


async def _looks_up(_world: simkit.World) -> None:
    socket.getaddrinfo("localhost", 1)


async def _reads_no_json(_world: simkit.World) -> None:
    json.loads("{")


async def _reads_nothing(_world: simkit.World) -> None:
    json.loads("")


def _error(main: Main) -> BaseException:
    error = simkit.run(main, tape=simkit.Tape.from_seed(1)).error
    assert error is not None
    return error


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (_waits_for_an_event, _waits_for_another),
        (_connects, _looks_up),
        (_reads_no_json, _reads_nothing),
    ],
)
def test_failures_below_the_program_are_told_apart_by_its_lines(one: Main, other: Main) -> None:
    """Deadlocks, refusals, and what the standard library raises; while the same line is the same failure."""
    errors = _error(one), _error(other)
    assert type(errors[0]) is type(errors[1])
    assert fingerprint_of(errors[0]) != fingerprint_of(errors[1])
    assert fingerprint_of(errors[0]) == fingerprint_of(_error(one))
    for error, main in zip(errors, (one, other), strict=True):
        assert [(place.filename, place.name) for place in places_of(error)] == [(__file__, main.__name__)]


def test_a_deadlock_is_laid_to_every_place_where_somebody_waits() -> None:
    """Each once, in order, however many tasks wait there."""

    async def first(event: trio.Event) -> None:
        await event.wait()

    async def second(event: trio.Event) -> None:
        await event.wait()

    async def main(_world: simkit.World) -> None:
        async with trio.open_nursery() as nursery:
            for task in (second, first, first):
                nursery.start_soon(task, trio.Event())

    places = places_of(_error(main))
    lines = [place.lineno for place in places]
    assert lines == sorted(set(lines))
    assert [place.name.rpartition(".")[2] for place in places] == ["first", "second", "main"]


def test_without_a_line_of_the_program_the_innermost_counts() -> None:
    """As where a call-back of the kit itself fails."""
    with pytest.raises(TypeError) as caught:
        eval(compile("len(1)", trio.__file__, "eval"))
    error = caught.value
    assert error.__traceback__ is not None
    error.__traceback__ = error.__traceback__.tb_next  # without this test
    assert [place.filename for place in places_of(error)] == [trio.__file__]
    assert places_of(ValueError()) == ()


def test_a_failed_process_is_the_failure_before_what_main_makes_of_it() -> None:
    """Unless processes may fail; a refusal stays first in any case."""

    async def notices(world: simkit.World) -> None:
        async def broken() -> None:
            raise OSError("broken")

        status = await world.host("desk").start(broken).wait()
        assert status.error is None, "it ended badly"

    async def is_refused(world: simkit.World) -> None:
        with contextlib.suppress(AssertionError):
            await notices(world)
        await trio.Event().wait()

    for program, may_fail, expected in [
        (notices, False, OSError),
        (notices, True, AssertionError),
        (is_refused, False, simkit.DeadlockError),
    ]:
        outcome = simkit.run(program, tape=simkit.Tape.from_seed(0))
        error = testing.failure_of(testing.Spec(program, None, None, processes_may_fail=may_fail), outcome)
        assert type(error) is expected
