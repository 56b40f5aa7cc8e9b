"""A coroutine that is made and thrown away is told at the end of the run, and nothing else is."""

from __future__ import annotations

import warnings

import pytest
import trio

import simkit
from simkit import World
from simkit.unawaited import NeverAwaitedError, refused


async def forgets() -> None:
    trio.sleep(1)  # type: ignore[unused-coroutine]  # noqa: ASYNC105
    await trio.sleep(1)


@pytest.mark.parametrize("in_a_process", [False, True])
def test_a_coroutine_that_is_never_awaited_fails_the_test(in_a_process: bool) -> None:
    """With its name, and the line that made it, whoever forgot it."""

    @simkit.test(seeds=2)
    async def program(world: World) -> None:
        if in_a_process:
            await world.host("machine").start(forgets).wait()
        else:
            await forgets()

    with pytest.raises(NeverAwaitedError) as told:
        program()
    problem = told.value.problem
    assert "coroutine 'sleep' was never awaited" in problem.what
    line = forgets.__code__.co_firstlineno + 1
    assert problem.where == f"{__file__}:{line} in forgets"


def test_the_error_of_the_program_itself_comes_first() -> None:
    """It may well be what became of the coroutine that never ran."""

    @simkit.test(seeds=2)
    async def program(world: World) -> None:
        await forgets()
        raise LookupError

    with pytest.raises(LookupError):
        program()


def test_other_warnings_go_their_way() -> None:
    """Also where Python would turn them into errors."""
    with pytest.warns(RuntimeWarning, match="of another kind"), refused():
        warnings.warn("of another kind", RuntimeWarning, stacklevel=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning), refused():
            warnings.warn("as an error", UserWarning, stacklevel=1)
        with pytest.raises(NeverAwaitedError), refused():
            trio.sleep(1)  # type: ignore[unused-coroutine]  # noqa: ASYNC105
