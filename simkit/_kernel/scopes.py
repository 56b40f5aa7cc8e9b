"""Stand-ins for cancel scopes, nurseries and locks: what trio does when nothing unusual happens, in one frame.

Whatever is unusual (misnesting, scopes of the root task, guest mode) goes trio's own way. See `shortcuts` for how they
stand in, and for the names that they find there.
"""

from __future__ import annotations

from typing import Any

# A stand-in runs among the globals of the module that it stands in for; what it needs of ours is there as `_simkit_…`.
# ruff: noqa: F821
# mypy: disable-error-code="name-defined, no-any-return"


def current_task() -> Any:
    """`trio.lowlevel.current_task`."""
    if _simkit_alone:
        try:
            return _simkit_alone["task"]
        except KeyError:
            pass  # in no task
    try:
        return GLOBAL_RUN_CONTEXT.task
    except AttributeError:
        raise RuntimeError("must be called from async context") from None


async def checkpoint_if_cancelled() -> None:
    """`trio.lowlevel.checkpoint_if_cancelled`."""
    task = current_task()
    if task._cancel_status.effectively_cancelled or (task._runner.ki_pending and task is task._runner.main_task):
        await checkpoint()
        raise AssertionError("this should never happen")
    task._cancel_points += 1


def enter(self: Any) -> Any:
    """`CancelScope.__enter__`."""
    task = current_task()
    parent = task._cancel_status
    if self._has_been_entered or parent is None:
        return _simkit_enter(self)
    self._has_been_entered = True
    if self._relative_deadline != inf:
        assert self._deadline == inf
        self._deadline = current_time() + self._relative_deadline
        self._relative_deadline = inf
    if self._deadline != inf and current_time() >= self._deadline:
        self._cancel(CancelReason(source="deadline"))
    self._cancel_status = status = _simkit_new_status(CancelStatus)
    status._scope = self
    status._parent = parent
    status._children = set()
    status._tasks = {task}
    status.effectively_cancelled = status.abandoned_by_misnesting = False
    parent._children.add(status)
    parent._tasks.remove(task)
    task._cancel_status = status
    if self._cancel_called or parent.effectively_cancelled:
        self._cancel_status = None  # as it is while a status is made
        status._tasks.clear()
        status.recalculate()
        status._tasks.add(task)
        self._cancel_status = status
        if status.effectively_cancelled:
            task._attempt_delivery_of_any_pending_cancel()
    if self._deadline != inf and not self._cancel_called:
        _simkit_register(self, self._deadline)
    return self


def close(self: Any, exc: BaseException | None) -> BaseException | None:
    """`CancelScope._close`."""
    status = self._cancel_status
    task = current_task()
    if status is None or task._cancel_status is not status or status.abandoned_by_misnesting or status._parent is None:
        return _simkit_close(self, exc)
    parent = status._parent
    status._tasks.remove(task)
    task._cancel_status = parent
    parent._tasks.add(task)
    if parent.effectively_cancelled:
        task._attempt_delivery_of_any_pending_cancel()
    if exc is not None and status.effectively_cancelled and (self._shield or not parent.effectively_cancelled):
        if isinstance(exc, Cancelled):
            self.cancelled_caught = True
            exc = None
        elif isinstance(exc, BaseExceptionGroup):
            matched, exc = exc.split(Cancelled)
            if matched:
                self.cancelled_caught = True
            if exc:
                exc = collapse_exception_group(exc)
    parent._children.remove(status)
    status._parent = None
    if status._tasks or status._children:
        status.close()
    self._cancel_status = None
    if self._registered_deadline != inf:
        _simkit_register(self, inf)
    return exc


def cancel(self: Any, cancel_reason: Any) -> None:
    """`CancelScope._cancel`."""
    if self._cancel_called:
        return
    if self._cancel_reason is None:
        self._cancel_reason = cancel_reason
    self._cancel_called = True
    if self._registered_deadline != inf:
        _simkit_register(self, inf)
    if self._cancel_status is not None:
        self._cancel_status.recalculate()


def cancel_called(self: Any) -> bool:
    """`CancelScope.cancel_called`: the time matters only where there is a deadline."""
    if (
        not self._cancel_called
        and self._deadline != inf
        and (self._cancel_status is not None or not self._has_been_entered)
        and current_time() >= self._deadline
    ):
        self._cancel(CancelReason(source="deadline"))
    return self._cancel_called


def check_nursery_closed(self: Any) -> None:
    """`Nursery._check_nursery_closed`."""
    if not (self._nested_child_running or self._children or self._pending_starts):
        self._closed = True
        if self._parent_waiting_in_aexit:
            self._parent_waiting_in_aexit = False
            GLOBAL_RUN_CONTEXT.runner.reschedule(self._parent_task)


def reschedule(task: Any, next_send: Any) -> None:
    """`trio.lowlevel.reschedule`."""
    try:
        runner = _simkit_alone["runner"] if _simkit_alone else GLOBAL_RUN_CONTEXT.runner
        return runner.reschedule(task, next_send)
    except AttributeError:
        raise RuntimeError("must be called from async context") from None


def add_parking_lot_breaker(task: Any, lot: Any) -> None:
    """`trio.lowlevel.add_parking_lot_breaker`."""
    if not task.coro.cr_running and inspect.getcoroutinestate(task.coro) == inspect.CORO_CLOSED:
        raise _core._exceptions.BrokenResourceError("Attempted to add already exited task as lot breaker.")
    lots = GLOBAL_PARKING_LOT_BREAKER.get(task)
    if lots is None:
        GLOBAL_PARKING_LOT_BREAKER[task] = [lot]
    else:
        lots.append(lot)
