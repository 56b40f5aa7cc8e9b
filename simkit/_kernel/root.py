"""The nursery of the root task, around everything: as trio opens and closes it, with fewer frames.

Nothing is around it, and nobody has cancelled anything when it opens. What is unusual by the time it closes, such as an
error of a system task, goes trio's own way, and so does all of it for versions of trio that were not reviewed.
"""

from __future__ import annotations

from typing import Any

from trio._core._run import CancelScope, CancelStatus, Nursery

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


def close(nursery: Nursery, failed: BaseException | None) -> None:
    """Close it once all have left it; raises what is left of what failed in it."""
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
    left = scope._close(failed)
    if left is not None:
        raise left
