"""The ends of a workflow function: what it returns, raises and forgets, and what it must not await."""

from __future__ import annotations

import asyncio
import functools
import json
from collections.abc import Callable
from typing import Any

import pytest

from reference_runtime.commands import Continued, Made, Outcome, Raised, Returned
from reference_runtime.replay import Replay
from reference_runtime.workflow import Context, OperationFailed
from tests.replay_rig import CTX, begin, ok


async def _forgets_a_call(ctx: Context) -> None:
    ctx.call("ledger", id="a")


async def _forgets_a_compensation(ctx: Context) -> None:
    ctx.compensate("pay", "ledger", {})
    await ctx.call("ledger", id="pay")


async def _forgets_a_draw_in_a_branch(ctx: Context) -> None:
    async def part() -> None:
        await ctx.call("ledger", id="pay")
        ctx.now()

    await ctx.gather(part(), _part(ctx))


async def _part(ctx: Context) -> None:
    await ctx.wait("go", id="go")


async def _forgets_a_gather(ctx: Context) -> None:
    ctx.gather(ctx.call("ledger", id="a"), ctx.call("ledger", id="b"))


async def _forgets_and_cuts(ctx: Context) -> None:
    ctx.operation({"op": "sleep", "ns": 1, "id": "s"})
    ctx.continue_as_new(1)


def _noting(function: Callable[[Context], Any]) -> Replay:
    """A function, with a context that notes what it makes, as a runner begins it; all it asks for has succeeded."""
    made = Made()
    replay = Replay(lambda: function(Context("t", 1, made)), made=made)
    for operation in ("pay", "go"):
        replay.deliver(ok(operation))
    return replay


@pytest.mark.parametrize(
    ("function", "named", "line"),
    [
        (_forgets_a_call, "call 'a'", 1),
        (_forgets_a_compensation, "compensate 'compensate'", 1),
        (_forgets_a_draw_in_a_branch, "draw 'time'", 3),
        (_forgets_a_gather, "gather of 2", 1),
        (_forgets_and_cuts, "sleep 's'", 1),
    ],
)
def test_what_was_never_awaited_is_told(function, named, line):
    """A function is not over while something it made of its context was forgotten; that is named, with its line."""
    replay = _noting(function)
    assert str(replay.check()) == (
        f"refused: the function is over, and {named} was made but never awaited, so it was not done;"
        " await it, or make it only where it is awaited"
        f" (test_replay_ends.py:{function.__code__.co_firstlineno + line})"
    )
    assert replay.end is None
    replay.close()


async def _raises(ctx: Context) -> None:
    ctx.call("ledger", id="a")
    raise OperationFailed("b", "no")


async def _approves_only(ctx: Context) -> None:
    await ctx.approve(ctx.call("ledger", id="a"), id="go")


async def _loses_a_race(ctx: Context) -> None:
    async def loser() -> None:
        later = ctx.call("ledger", id="later")
        await ctx.wait("never", id="never")
        await later

    async def failing() -> None:
        ctx.call("ledger", id="unused")
        raise OperationFailed("b", "no")

    await ctx.race(loser(), ctx.wait("go", id="go"))
    with pytest.raises(OperationFailed):
        await ctx.gather(failing())


async def _awaits_later(ctx: Context) -> None:
    both: list[Any] = [ctx.call("ledger", id="pay"), ctx.race(ctx.wait("go", id="go"), ctx.sleep(5, id="slow"))]
    for one in both:
        await one


@pytest.mark.parametrize(
    ("function", "end"),
    [
        (_raises, Raised("no")),
        (_approves_only, Returned(None)),
        (_loses_a_race, Returned(None)),
        (_awaits_later, Returned(None)),
    ],
)
def test_what_is_not_needed_is_not_forgotten(function, end):
    """What was about to be done when an error came or a race was lost, what is only approved, and what is awaited later."""
    replay = _noting(function)
    assert (replay.check(), replay.end) == (None, end)


def test_ends():
    """A value, an error in words, a failed operation by its reason, and a cut with its state."""

    async def returns():
        return 3

    async def raises():
        raise KeyError("x")

    async def fails():
        raise OperationFailed("a", "a failed: no")

    async def cuts():
        await CTX.gather(_cut())

    ends = [begin(one).end for one in (returns, raises, fails, cuts)]
    line = raises.__code__.co_firstlineno + 1
    raised = Raised(f"raised: KeyError: 'x' (test_replay_ends.py:{line})")
    assert ends == [Returned(3), raised, Raised("a failed: no"), Continued({"n": 1})]


def test_an_error_is_told_with_the_users_own_line():
    """Inside Python's own code, or this package's, it is the line that went there; the whole way is kept beside it."""

    async def decodes():
        json.loads("{")

    async def reads():
        await CTX.gather(CTX.wait("never"), _misread())

    for function, where in ((decodes, decodes), (reads, _misread)):
        end = begin(function).end
        assert isinstance(end, Raised)
        assert end.reason.endswith(f" (test_replay_ends.py:{where.__code__.co_firstlineno + 1})")
        assert f"{function.__code__.co_firstlineno + 1}, in {function.__name__}" in end.trace


async def _misread() -> None:
    CTX.now().read(Outcome("time#1", "succeeded", {"nonce": "late"}))


@pytest.mark.parametrize(
    ("needs_a_loop", "named"),
    [
        (functools.partial(asyncio.sleep, 1), "asyncio.tasks.sleep (RuntimeError: no running event loop)"),
        (lambda: asyncio.Queue().get(), "asyncio.queues.Queue.get (AttributeError: "),
    ],
)
def test_what_needs_an_event_loop_is_refused_by_name(needs_a_loop, named):
    """It is a foreign await like any other: the code may be put right, and the task goes on."""

    async def waits():
        await needs_a_loop()

    async def agent():
        await CTX.gather(waits())

    replay = begin(agent)
    line = waits.__code__.co_firstlineno + 1
    assert str(replay.check()).startswith(
        f"refused: a workflow may await operations of its context only; {__file__}:{line} awaits {named}"
    )
    assert (replay.end, replay.fresh) == (None, [])
    replay.close()


def test_an_error_of_ones_own_is_no_missing_loop():
    """Also a RuntimeError: it ends the function."""

    async def raises():
        raise RuntimeError("no more")

    end = begin(raises).end
    assert isinstance(end, Raised)
    assert end.reason.startswith("raised: RuntimeError: no more (")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (SystemExit(3), "raised: SystemExit: 3"),
        (asyncio.CancelledError(), "raised: CancelledError: "),
        (GeneratorExit(), "raised: GeneratorExit: "),
        (BaseExceptionGroup("two", [SystemExit(1)]), "raised: BaseExceptionGroup: two (1 sub-exception)"),
        (
            UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
            "raised: UnicodeDecodeError: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte",
        ),
    ],
)
@pytest.mark.parametrize("depth", [0, 1])
def test_whatever_a_workflow_raises_is_its_own_end(error, said, depth):
    """Also what would end a process: others have their work in hand in the same one."""

    async def raises():
        raise error

    async def within():
        await CTX.gather(raises(), CTX.wait("never"))

    line = raises.__code__.co_firstlineno + 1
    assert begin(within if depth else raises).end == Raised(f"{said} (test_replay_ends.py:{line})")


class _UnsayableError(Exception):
    """An error that has no words, and says so by ending the process."""

    def __str__(self) -> str:
        raise SystemExit(3)

    @property
    def reason(self) -> str:
        raise SystemExit(4)


class _UnsayableLoopError(RuntimeError):
    def __str__(self) -> str:
        raise ValueError


@pytest.mark.parametrize(
    ("error", "another"), [(_UnsayableError(), "SystemExit"), (_UnsayableLoopError(), "ValueError")]
)
def test_an_error_that_cannot_be_said_is_an_end_as_well(error, another):
    """Whatever else it raises when it is asked what it is; its name is known all the same."""

    async def raises():
        raise error

    line = raises.__code__.co_firstlineno + 1
    said = f"raised: {type(error).__name__}: (its text raised {another}) (test_replay_ends.py:{line})"
    assert begin(raises).end == Raised(said)


class _InterruptedError(Exception):
    def __str__(self) -> str:
        raise KeyboardInterrupt


def test_an_interrupt_as_an_error_is_said_is_no_end_of_a_workflow():
    """It was meant for the worker there, too."""

    async def raises():
        raise _InterruptedError

    with pytest.raises(KeyboardInterrupt):
        begin(raises)


def test_an_interrupt_is_no_end_of_a_workflow():
    """It was meant for the worker, in whose code ever it arrived."""

    async def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        begin(interrupted)


def _plain() -> dict[str, int]:
    return {"n": 1}


async def _yielding() -> Any:
    yield 1


@pytest.mark.parametrize(("function", "named"), [(_plain, "dict"), (_yielding, "async_generator")])
def test_a_function_that_cannot_be_driven_is_refused(function, named):
    """It may be mended, and tried again; what it asked for is nothing. The line is that of the function."""
    replay = begin(function)
    assert str(replay.check()) == (
        f"refused: a workflow is an async function that returns; this one gave {named}"
        f" (test_replay_ends.py:{function.__code__.co_firstlineno})"
    )
    assert (replay.end, replay.fresh) == (None, [])
    replay.close()


async def _cut() -> None:
    CTX.continue_as_new({"n": 1})
