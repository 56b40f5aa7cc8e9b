"""The tasks of a simulation: trio's, numbered within their run, and made without the detours.

A task knows two things more than trio's: what its coroutine is sent by, and the nap that it takes, if any (see `sleeper`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextvars import Context
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, NoReturn, cast

from trio._core._run import Nursery, Task
from trio._util import coroutine_or_error
from trio.lowlevel import Abort

if TYPE_CHECKING:
    from simkit._kernel.runner import SimRunner

_COROUTINE_FLAG = 0x80  # inspect.CO_COROUTINE


class _Open:
    """Lets a class that trio wants to be final have a subclass."""

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        """Say nothing against it."""


class SimTask(_Open, Task):  # type: ignore[misc]
    """A task of a simulation.

    Being its own answer: the fast loop sends a task itself where trio sends a `Value(None)`, at a checkpoint, which
    wants to know its task next.
    """

    __slots__ = ("nap", "send")

    #: The sequence number of its nap's entry among the timers; 0 when it takes none.
    nap: int
    #: Resumes it: the `send` of its coroutine.
    send: Callable[[Any], object]
    coro: Any

    def unwrap(self) -> None:
        """What a checkpoint gets: nothing."""

    def rouse(self, _raise_cancel: Callable[[], NoReturn]) -> Abort:
        """Abort a nap: the task was cancelled, or killed."""
        self.nap = 0
        self._runner.deadlines.grow_stale()  # type: ignore[attr-defined]  # ours
        return Abort.SUCCEEDED

    def __repr__(self) -> str:
        """By number: trio puts this text into exceptions, and an address differs from run to run."""
        return f"<Task {self.name!r} number {self._counter}>"


_new = cast("Callable[[type[SimTask]], SimTask]", SimTask.__new__)
_no_status: Any = None


def make(
    runner: SimRunner, coro: Any, nursery: Nursery | None, name: str, context: Context, *, ki_protected: bool
) -> SimTask:
    """A task that is in no queue yet. Past the constructor, which may not be called, to the same effect."""
    task = _new(SimTask)
    task._parent_nursery = nursery
    task.coro = coro
    task.send = coro.send
    task._runner = runner
    task.name = name
    task.context = context
    task._counter = next(runner.numbers)
    task._ki_protected = ki_protected
    task._next_send_fn = task._next_send = task._abort_func = task.custom_sleep_data = None
    task._child_nurseries = []
    task._eventual_parent_nursery = None
    task._cancel_points = task._schedule_points = task.nap = 0
    task._cancel_status = _no_status
    return task


def begin(async_fn: Callable[..., Any], args: tuple[Any, ...], context: Context) -> Any:
    """The coroutine of a new task; TypeError, worded by trio, for what is no async function.

    An async function only makes its coroutine when called. Whatever else there is may run code, and does it in `context`.
    """
    function = async_fn.__func__ if type(async_fn) is MethodType else async_fn
    if type(function) is FunctionType and function.__code__.co_flags & _COROUTINE_FLAG:
        return async_fn(*args)
    return context.run(coroutine_or_error, async_fn, *args)


def name_of(async_fn: Callable[..., Any], name: object) -> str:
    """What a task of `async_fn` is called, by the rules of trio."""
    if name is None:
        name = async_fn
    if isinstance(name, functools.partial):
        name = name.func
    if isinstance(name, str):
        return name
    try:
        return f"{name.__module__}.{name.__qualname__}"  # type: ignore[attr-defined]
    except AttributeError:
        return repr(name)


async def awaited(awaitable: Any) -> Any:
    """Stands around a coroutine without a frame, of an extension module."""
    return await awaitable
