"""Equivalents of what trio does most often, to the same effect with fewer frames; and `trio.sleep` by one heap entry.

`take()` gives functions of trio the code of their stand-ins here, once and for good: whoever took such a function by name
is served too, and nothing is to be done or undone for a run. A stand-in serves every loop, trio's own included, in every
thread: one that knows a shorter way asks first whether it is in a simulation. `give_back()` restores trio's own code.
Apart from `trio.sleep`, only for reviewed versions of trio (see `fingerprint`).
"""

from __future__ import annotations

import contextlib
import functools
import math
import re
import threading
from collections.abc import Callable
from types import FunctionType
from typing import Any, cast

import trio
from trio import _highlevel_socket, _socket, _sync, _timeouts
from trio._core import _generated_run, _ki, _parking_lot, _run, _traps
from trio._core._run import GLOBAL_RUN_CONTEXT, CancelScope

from simkit._kernel import fingerprint, locks, scopes
from simkit._kernel.sleeper import FAR_S, nap_until_s, sleep_until_s
from simkit._kernel.tasks import SimTask
from simkit._kernel.timers import Timers

# A stand-in runs among the globals of the module that it stands in for; what it needs of ours is there as `_simkit_…`.
# ruff: noqa: F821
# mypy: disable-error-code="name-defined, no-any-return"


async def _sleep(seconds: float) -> None:
    """`trio.sleep`."""
    timers = _simkit_napping
    if timers is not None and 0 < seconds < _simkit_far_s:
        await _simkit_nap_until_s(timers, timers.now_ns / 1_000_000_000 + seconds)
        return
    if seconds < 0:
        raise ValueError("`seconds` must be non-negative")
    if seconds == 0:
        await trio.lowlevel.checkpoint()
        return
    timers = _simkit_timers_here()
    if timers is not None and seconds < _simkit_far_s:
        await _simkit_sleep_until_s(timers, timers.now_ns / 1_000_000_000 + seconds)
    else:
        await sleep_until(trio.current_time() + seconds)


async def _cancel_shielded_checkpoint() -> None:
    """`trio.lowlevel.cancel_shielded_checkpoint`: it is always answered by a success that holds nothing."""
    await _async_yield(CancelShieldedCheckpoint)


async def _checkpoint() -> None:
    """`trio.lowlevel.checkpoint`; the fast loop answers with the task."""
    answer = await _simkit_async_yield(_simkit_checkpoint)
    task = answer if type(answer) is _simkit_task else current_task()
    task._cancel_points += 1
    if task._cancel_status.effectively_cancelled or (task._runner.ki_pending and task is task._runner.main_task):
        await _simkit_cancelled(task)


async def _cancelled(task: Any) -> None:
    """The rest of a checkpoint in a task that is cancelled, or interrupted by the user."""
    around = task._cancel_status._scope
    if around._cancel_reason is None and task._runner.ki_pending and task is task._runner.main_task:
        around._cancel_reason = _run.CancelReason(source="KeyboardInterrupt")
    assert around._cancel_reason is not None
    scope = CancelScope(deadline=-math.inf)
    scope._cancel_reason = around._cancel_reason
    with scope:
        await trio.lowlevel.wait_task_rescheduled(lambda _: trio.lowlevel.Abort.SUCCEEDED)


async def _wait_task_rescheduled(abort_func: Any) -> Any:
    """`trio.lowlevel.wait_task_rescheduled`, past the slow way in which a frozen class sets its one attribute."""
    trap = _simkit_new_trap(WaitTaskRescheduled)
    trap.__dict__["abort_func"] = abort_func
    return (await _async_yield(trap)).unwrap()


async def _getaddrinfo(host: Any, port: Any, family: int = 0, type: int = 0, proto: int = 0, flags: int = 0) -> Any:  # noqa: A002
    """`trio.socket.getaddrinfo`: in a simulation, what is plainly a name is not tried as an address first."""
    if _simkit_is_name(host) and _simkit_timers_here() is not None and isinstance(port, int):
        resolver = _resolver.get(None)
        if resolver is not None:
            await trio.lowlevel.checkpoint_if_cancelled()
            return await resolver.getaddrinfo(host.encode("ascii"), port, family, type, proto, flags)
    return await _simkit_getaddrinfo(host, port, family, type, proto, flags)


def _is_name(host: object) -> bool:
    """Whether no address is written like this: letters, digits and hyphens, a letter first."""
    return isinstance(host, str) and _NAME.fullmatch(host) is not None


_NAME = re.compile(r"[a-z][a-z0-9-]*", re.ASCII)


def _current_time() -> float:
    """`trio.current_time`."""
    timers = _simkit_napping
    if timers is not None:
        return timers.now_ns / 1_000_000_000
    try:
        return GLOBAL_RUN_CONTEXT.runner.current_time()
    except AttributeError:
        raise RuntimeError("must be called from async context") from None


def _timers_here() -> Timers | None:
    """The timers of the simulation that runs in this thread."""
    timers = getattr(getattr(GLOBAL_RUN_CONTEXT, "runner", None), "deadlines", None)
    return timers if type(timers) is Timers else None


def _register(scope: CancelScope, new: float) -> None:
    """Let the timers know when `scope` is due now."""
    old, scope._registered_deadline = scope._registered_deadline, new
    runner = GLOBAL_RUN_CONTEXT.runner
    deadlines = runner.deadlines
    before = deadlines.next_deadline() if runner.is_guest else None
    if old != math.inf:
        deadlines.remove(old, scope)
    if new != math.inf:
        deadlines.add(new, scope)
    if before is not None and before != deadlines.next_deadline():
        runner.force_guest_tick_asap()


class _Deadline:
    """`CancelScope._might_change_registered_deadline`: on leaving, the timers learn when the scope is due now."""

    __slots__ = ("_scope",)

    def __init__(self, scope: CancelScope) -> None:
        self._scope = scope

    def __enter__(self) -> None:
        """Nothing has changed yet."""

    def __exit__(self, *_: object) -> None:
        scope = self._scope
        new = math.inf if scope._cancel_status is None or scope._cancel_called else scope._deadline
        if scope._registered_deadline != new:
            _register(scope, new)


def _deadline(scope: CancelScope) -> _Deadline:
    return _Deadline(scope)


class _Translation:
    """`_translate_socket_errors_to_stream_errors`."""

    __slots__ = ()

    def __enter__(self) -> None:
        """Nothing to set up."""

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if not isinstance(error, OSError):
            return
        if error.errno in _highlevel_socket._closed_stream_errnos:
            raise trio.ClosedResourceError("this socket was already closed") from None
        raise trio.BrokenResourceError(f"socket connection broken: {error}") from error


_TRANSLATION = _Translation()


def _translation() -> _Translation:
    return _TRANSLATION


def _copy(function: Any) -> FunctionType:
    """A function as it is now."""
    made = FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


_ALWAYS: tuple[tuple[Any, Any], ...] = ((_timeouts.sleep, _sleep),)
#: What stands in for trio's own by its code: the function, its stand-in.
_REVIEWED: tuple[tuple[Any, Any], ...] = (
    (_traps.cancel_shielded_checkpoint, _cancel_shielded_checkpoint),
    (_traps.wait_task_rescheduled, _wait_task_rescheduled),
    (_run.checkpoint, _checkpoint),
    (_run.checkpoint_if_cancelled, scopes.checkpoint_if_cancelled),
    (_run.current_task, scopes.current_task),
    (_generated_run.reschedule, scopes.reschedule),
    (_generated_run.current_time, _current_time),
    (CancelScope.__enter__, scopes.enter),
    (CancelScope._close, scopes.close),
    (CancelScope._cancel, scopes.cancel),
    (cast("property", CancelScope.cancel_called).fget, scopes.cancel_called),
    (_run.Nursery._check_nursery_closed, scopes.check_nursery_closed),
    (_parking_lot.add_parking_lot_breaker, scopes.add_parking_lot_breaker),
    (_parking_lot.ParkingLot.unpark, locks.unpark),
    (_sync._LockImpl.acquire, locks.acquire),
    (_sync._LockImpl.release, locks.release),
    (_socket.getaddrinfo, _getaddrinfo),
)
#: What the stand-ins need of ours.
_NAMES: dict[str, Any] = {
    "_simkit_timers_here": _timers_here,
    "_simkit_far_s": FAR_S,
    "_simkit_sleep_until_s": sleep_until_s,
    "_simkit_nap_until_s": nap_until_s,
    "_simkit_new_trap": _traps.WaitTaskRescheduled.__new__,
    "_simkit_async_yield": _traps._async_yield,
    "_simkit_checkpoint": _traps.CancelShieldedCheckpoint,
    "_simkit_task": SimTask,
    "_simkit_cancelled": _cancelled,
    "_simkit_enter": _copy(CancelScope.__enter__),
    "_simkit_close": _copy(CancelScope._close),
    "_simkit_new_status": _run.CancelStatus.__new__,
    "_simkit_register": _register,
    "_simkit_current_task": _run.current_task,
    "_simkit_getaddrinfo": _copy(_socket.getaddrinfo),
    "_simkit_is_name": _is_name,
    "_simkit_breakers": _parking_lot.GLOBAL_PARKING_LOT_BREAKER,
    "_simkit_unpark": _copy(_parking_lot.ParkingLot.unpark),
}
#: What stands in by its name: where, the name, the stand-in.
_BY_NAME: tuple[tuple[Any, str, Any], ...] = (
    (CancelScope, "_might_change_registered_deadline", _deadline),
    (_highlevel_socket, "_translate_socket_errors_to_stream_errors", _translation),
)
#: How to restore what was taken.
_taken: list[Callable[[], object]] = []
#: The modules that stand-ins run in, by their names.
_homes: list[dict[str, Any]] = []
_NOT_ALONE: dict[str, Any] = {}


def take() -> None:
    """Let the stand-ins stand in from now on."""
    if _taken:
        return
    for function, stand_in in (*_ALWAYS, *(_REVIEWED if fingerprint.is_known() else ())):
        _lend_code(function, stand_in)
    if fingerprint.is_known():
        for where, name, stand_in in _BY_NAME:
            _taken.append(functools.partial(setattr, where, name, vars(where)[name]))
            setattr(where, name, stand_in)


def give_back() -> None:
    """Restore trio's own code. Not while a simulation runs."""
    while _taken:
        _taken.pop()()


def _lend_code(function: FunctionType, stand_in: FunctionType) -> None:
    own = function.__code__
    with contextlib.suppress(KeyError):  # what trio says of the user's interrupts in this function
        _ki._CODE_KI_PROTECTION_STATUS_WMAP[stand_in.__code__] = _ki._CODE_KI_PROTECTION_STATUS_WMAP[own]
    home = function.__globals__
    if all(home is not known for known in _homes):
        home.update(_NAMES, _simkit_alone=_NOT_ALONE, _simkit_napping=None)
        _homes.append(home)
    function.__code__ = stand_in.__code__
    _taken.append(functools.partial(setattr, function, "__code__", own))


def run_begins(timers: Timers) -> None:
    """A simulation runs in this thread: while there is no other thread, whose trio this is need not be asked each time.

    No other thread can come: only simulated ones are started in a simulation, and these share its state.
    """
    if threading.active_count() == 1:
        _tell_homes(GLOBAL_RUN_CONTEXT.__dict__, timers if timers.naps else None)


def run_ends() -> None:
    """The simulation is over."""
    _tell_homes(_NOT_ALONE, None)


def _tell_homes(alone: dict[str, Any], napping: Timers | None) -> None:
    for home in _homes:
        home["_simkit_alone"] = alone
        home["_simkit_napping"] = napping
