"""Stand-ins for locks: what trio does when nothing unusual happens, without an exception for each task that has to wait.

See `shortcuts` for how they stand in, and for the names that they find there.
"""

from __future__ import annotations

from typing import Any

# A stand-in runs among the globals of the module that it stands in for; what it needs of ours is there as `_simkit_…`.
# ruff: noqa: F821
# mypy: disable-error-code="name-defined, no-any-return"


async def acquire(self: Any) -> None:
    """`Lock.acquire`."""
    task = _simkit_current_task()
    if task._cancel_status.effectively_cancelled or task._runner.ki_pending:
        await trio.lowlevel.checkpoint_if_cancelled()
    else:
        task._cancel_points += 1
    lot = self._lot
    if self._owner is None and not lot._parked:
        self._owner = task
        lots = _simkit_breakers.get(task)
        if lots is None:
            _simkit_breakers[task] = [lot]
        else:
            lots.append(lot)
        await trio.lowlevel.cancel_shielded_checkpoint()
    elif self._owner is task:
        raise RuntimeError("attempt to re-acquire an already held Lock")
    else:
        try:
            await lot.park()
        except trio.BrokenResourceError:
            raise trio.BrokenResourceError(
                f"Owner of this lock exited without releasing: {self._owner}",
            ) from None


def release(self: Any) -> None:
    """`Lock.release`."""
    if _simkit_current_task() is not self._owner:
        raise RuntimeError("can't release a Lock you don't own")
    lot = self._lot
    if _simkit_breakers.get(self._owner) == [lot]:
        del _simkit_breakers[self._owner]
    else:
        remove_parking_lot_breaker(self._owner, lot)
    if lot._parked:
        (self._owner,) = lot.unpark(count=1)
        add_parking_lot_breaker(self._owner, lot)
    else:
        self._owner = None


def unpark(self: Any, *, count: float = 1) -> list[Any]:
    """`ParkingLot.unpark`, most often of one task."""
    if type(count) is not int or count != 1:
        return _simkit_unpark(self, count=count)
    if not self._parked:
        return []
    task, _ = self._parked.popitem(last=False)
    _core.reschedule(task)
    return [task]
