"""The machine's own time zone, which must not show: for a run local time is UTC, and in a process that of its host's clock.

`time.localtime` and the like have stand-ins (see `virtual`). Here is what asks C: `datetime.timestamp` and `astimezone` of
moments without a zone, `time.tzname`, SQLite's `localtime`. A machine that is in UTC already costs nothing.
"""

from __future__ import annotations

import ctypes
import datetime
import functools
import gc
import os
import time
from collections.abc import Callable
from typing import Any

from simkit._guard.state import here

_real = datetime.datetime
_EPOCH = _real(1970, 1, 1, tzinfo=datetime.UTC)
_SECOND = datetime.timedelta(seconds=1)
#: What `leave` is told when nothing was changed.
_UNTOUCHED = "\0"


def enter() -> str | None:
    """Let local time be UTC until `leave`, which takes what this returns."""
    if time.tzname[0] == "UTC" and not time.timezone and not time.daylight:
        return _UNTOUCHED
    before = os.environ.get("TZ")
    _set("UTC0")
    return before


def leave(before: str | None) -> None:
    """Let local time be what it was."""
    if before != _UNTOUCHED:
        _set(before)


def _set(name: str | None) -> None:
    if name is None:
        os.environ.pop("TZ", None)
    else:
        os.environ["TZ"] = name
    time.tzset()


@functools.cache
def mind_hosts() -> None:
    """From now on moments without a zone are local to the host whose process asks. Asked for when a host gets a zone.

    The methods belong to a type of C, whose namespace Python code may not change; below that protection it is a plain
    dictionary. They fall through to the real ones outside a simulation, so nothing has to be undone.
    """
    (namespace,) = gc.get_referents(_real.__dict__)
    namespace["timestamp"] = _timestamp(_real.timestamp)
    namespace["astimezone"] = _astimezone(_real.astimezone)
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(_real))


def _timestamp(real: Callable[[Any], float]) -> Callable[..., float]:
    @functools.wraps(real)
    def timestamp(self: datetime.datetime) -> float:
        guard = here()
        return real(self if guard is None or self.tzinfo is not None else self.replace(tzinfo=guard.zone()))

    return timestamp


def _astimezone(real: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(real)
    def astimezone(self: datetime.datetime, tz: datetime.tzinfo | None = None) -> datetime.datetime:
        guard = here()
        if guard is None:
            return real(self, tz)  # type: ignore[no-any-return]
        zone = guard.zone()
        # In two steps, as in C: the offset that was valid then, and the one that is valid at what that makes of it. They
        # differ where the clock skips an hour.
        moment = self if self.tzinfo is not None else self.replace(tzinfo=_fixed(zone, self.replace(tzinfo=zone)))
        return real(moment, _fixed(zone, moment) if tz is None else tz)  # type: ignore[no-any-return]

    return astimezone


def _fixed(zone: datetime.tzinfo, moment: datetime.datetime) -> datetime.timezone:
    """What `zone` is at `moment`."""
    there = _real.fromtimestamp((moment - _EPOCH) // _SECOND, zone)
    name = there.tzname()
    return datetime.timezone(there.utcoffset() or datetime.timedelta(), *(() if name is None else (name,)))
