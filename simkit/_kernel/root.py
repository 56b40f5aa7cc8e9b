"""The nursery of the root task, around everything: as trio opens and closes it, with fewer frames.

Nothing is around it, and nobody has cancelled anything when it opens. What is unusual by the time it closes, such as an
error of a system task, goes trio's own way, and so does all of it for versions of trio that were not reviewed.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Generator
from typing import Any, NoReturn

from trio._core._run import NONSTRICT_EXCEPTIONGROUP_NOTE, CancelScope, CancelStatus, Nursery
from trio._core._traps import CancelShieldedCheckpoint, WaitTaskRescheduled
from trio.lowlevel import Abort

from simkit._kernel import fingerprint

_new_status: Any = CancelStatus.__new__
_new_nursery: Any = Nursery.__new__
_no_status: Any = None


def opened(task: Any, strict_exception_groups: bool) -> Nursery:
    """The nursery of `task`, which is running and has none yet."""
    scope = CancelScope()
    if not fingerprint.is_known():
        scope.__enter__()
        return Nursery._create(task, scope, strict_exception_groups)
    status: CancelStatus = _new_status(CancelStatus)
    status._scope = scope
    status._parent = None
    status._children = set()
    status._tasks = {task}
    status.effectively_cancelled = status.abandoned_by_misnesting = False
    scope._has_been_entered = True
    scope._cancel_status = task._cancel_status = status
    nursery: Nursery = _new_nursery(Nursery)
    nursery._parent_task = task
    nursery._strict_exception_groups = strict_exception_groups
    nursery._cancel_status = status
    nursery.cancel_scope = scope
    nursery._children = set()
    nursery._pending_excs = []
    nursery._nested_child_running = True
    nursery._parent_waiting_in_aexit = nursery._closed = False
    nursery._pending_starts = 0
    task._child_nurseries.append(nursery)
    return nursery


@types.coroutine
def left(nursery: Nursery) -> Generator[Any, Any, None]:
    """Wait until all have left it, and it is closed; one that is left already waits no more than trio does."""
    nursery._nested_child_running = False
    nursery._check_nursery_closed()
    if nursery._closed:
        answer = yield CancelShieldedCheckpoint
    else:
        nursery._parent_waiting_in_aexit = True
        answer = yield _WAIT
    answer.unwrap()
    nursery._parent_task._child_nurseries.remove(nursery)


def _stays(_raise_cancel: Callable[[], NoReturn]) -> Abort:
    """Who waits for others stays, cancelled or not."""
    return Abort.FAILED


_WAIT = WaitTaskRescheduled(_stays)


def close(nursery: Nursery) -> None:
    """Close its scope, once all have left it; raises what is left of what failed in it."""
    failed = _failed(nursery)
    scope, task = nursery.cancel_scope, nursery._parent_task
    status = scope._cancel_status
    if (
        failed is None
        and status is not None
        and task._cancel_status is status
        and len(status._tasks) == 1
        and not (status._children or status.abandoned_by_misnesting)
        and fingerprint.is_known()
    ):
        status._tasks.clear()
        scope._cancel_status = None
        task._cancel_status = _no_status
        return
    rest = scope._close(failed)
    if rest is not None:
        raise rest


def _failed(nursery: Nursery) -> BaseException | None:
    errors = nursery._pending_excs
    if not errors:
        return None
    if len(errors) == 1 and not nursery._strict_exception_groups:
        return errors[0]
    group = BaseExceptionGroup("Exceptions from Trio nursery", errors)
    if not nursery._strict_exception_groups:
        group.add_note(NONSTRICT_EXCEPTIONGROUP_NOTE)
    return group
