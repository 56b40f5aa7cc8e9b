"""Faults of a disk that is not losing power: errors asked for once, errors drawn from the tape, damage, delay; all counted."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable

import attrs

from simkit._options import at_least, need_whole, ratio
from simkit._storage.inode import Choices
from simkit.errors import wrong

#: (numerator, denominator) of how often something happens.
Ratio = tuple[int, int]
NEVER: Ratio = (0, 1)
ALWAYS: Ratio = (1, 1)


@attrs.frozen
class DiskFaults:
    """How often a disk misbehaves; integer ratios, nothing by default. A ratio that is none is an `OptionError`."""

    read_eio: Ratio = attrs.field(default=NEVER, validator=ratio)
    write_eio: Ratio = attrs.field(default=NEVER, validator=ratio)
    write_enospc: Ratio = attrs.field(default=NEVER, validator=ratio)
    fsync_eio: Ratio = attrs.field(default=NEVER, validator=ratio)  # and the dirty pages are dropped, as Linux does
    fsync_lies: Ratio = attrs.field(default=NEVER, validator=ratio)  # says done, made nothing durable
    sync_dir_lies: Ratio = attrs.field(default=NEVER, validator=ratio)
    short_read: Ratio = attrs.field(default=NEVER, validator=ratio)  # fewer bytes than there are, at least one
    bit_rot: Ratio = attrs.field(
        default=NEVER, validator=ratio
    )  # a bit of what is being read has turned over, for good
    misdirected_write: Ratio = attrs.field(
        default=NEVER, validator=ratio
    )  # what is written lands in other sectors; shows once the cache is gone
    slow: Ratio = attrs.field(default=NEVER, validator=ratio)  # the caller stands still for `slow_ns`
    slow_ns: int = attrs.field(default=200_000_000, validator=at_least(0))
    stuck: Ratio = attrs.field(default=NEVER, validator=ratio)  # the caller stands still for `stuck_ns`
    stuck_ns: int = attrs.field(default=600_000_000_000, validator=at_least(0))


NO_FAULTS = DiskFaults()
#: What breaks the promise of a single machine; an open tape strikes with these only where copies are declared.
SILENT = ("fsync_lies", "sync_dir_lies", "bit_rot", "misdirected_write")
#: Errors that can be drawn before an operation of each kind.
_DRAWN = {
    "read": (("read_eio", errno.EIO),),
    "write": (("write_eio", errno.EIO), ("write_enospc", errno.ENOSPC)),
    "fsync": (("fsync_eio", errno.EIO),),
}
#: Faults that are no errors, by the name under which they are asked for and counted.
STRIKES = {
    "lying-fsync": "fsync_lies",
    "lying-sync_dir": "sync_dir_lies",
    "short-read": "short_read",
    "bit-rot": "bit_rot",
    "misdirected-write": "misdirected_write",
    "slow": "slow",
    "stuck": "stuck",
}


#: What can be asked to fail: every call that a disk knows.
KINDS = ("read", "write", "truncate", "fsync", "sync_dir", "create", "unlink", "rename", "mkdir", "rmdir")


@attrs.define
class Asked:
    """An error, or another fault, asked for by name."""

    kind: str
    errno: int
    path: str | None
    times: int


class Injector:
    """Decides which operation fails, and counts every fault that really happened in `fired`."""

    def __init__(self, stream: Choices) -> None:
        self.faults = NO_FAULTS
        self.fired: dict[str, int] = {}
        #: Whether an open tape may strike.
        self.open: bool = getattr(stream, "open", False)
        #: Whether a file is one of several copies.
        self.covers: Callable[[str], bool] | None = None
        self._stream = stream
        self._asked: list[Asked] = []

    def count(self, what: str) -> None:
        """Note that fault `what` happened."""
        self.fired[what] = self.fired.get(what, 0) + 1

    def fail_next(self, kind: str, errno_: int, *, path: str | None, times: int) -> None:
        """Let the next `times` operations of `kind` (on `path`, when given) fail with `errno_`."""
        if kind not in KINDS:
            raise wrong("Disk.fail_next: kind", kind, f"one of {', '.join(KINDS)}")
        need_whole("Disk.fail_next: times", times, 1)
        self._asked.append(Asked(kind, errno_, path, times))

    def strike_next(self, fault: str, *, path: str | None, times: int) -> None:
        """Let one of `STRIKES` happen the next `times` that it can."""
        if fault not in STRIKES:
            raise wrong("Disk.strike_next: fault", fault, f"one of {', '.join(STRIKES)}")
        need_whole("Disk.strike_next: times", times, 1)
        self._asked.append(Asked(fault, 0, path, times))

    def calm(self) -> None:
        """Nothing happens any more, asked for or drawn."""
        self.faults = NO_FAULTS
        self.open = False
        self._asked.clear()

    @property
    def waiting(self) -> int:
        """How many failures were asked for and have not fired yet."""
        return sum(asked.times for asked in self._asked)

    def error(self, kind: str, path: str) -> OSError | None:
        """Return the error that the operation about to happen must raise, or None."""
        asked = self._taken(kind, path)
        if asked is not None:
            return self._fire(kind, asked.errno, path)
        for option, number in _DRAWN.get(kind, ()):
            if self._drawn(option, path):
                return self._fire(kind, number, path)
        return None

    def strikes(self, fault: str, path: str, can: Callable[[], bool] | None = None) -> bool:
        """Return whether one of `STRIKES` is due; not counted yet, as it may turn out to be impossible.

        One that was asked for waits while it `can` not happen.
        """
        return self._taken(fault, path, can) is not None or self._drawn(STRIKES[fault], path)

    def pick(self, what: str, path: str, n: int) -> int:
        """Draw a detail of a fault: where it hits."""
        return self._stream.choose(f"{what}:{path}", n)

    def _taken(self, kind: str, path: str, can: Callable[[], bool] | None = None) -> Asked | None:
        for asked in self._asked:
            if asked.kind == kind and asked.path in (None, path) and (can is None or can()):
                asked.times -= 1
                if not asked.times:
                    self._asked.remove(asked)
                return asked
        return None

    def _drawn(self, option: str, path: str) -> bool:
        num, den = getattr(self.faults, option)
        if num > 0:
            return num >= den or self._stream.chance(f"{option}:{path}", num, den)
        if not self.open or (option in SILENT and not (self.covers is not None and self.covers(path))):
            return False
        return self._stream.chance(f"{option}:{path}", 0, 1)

    def _fire(self, kind: str, number: int, path: str) -> OSError:
        self.count(f"{kind}-{errno.errorcode[number].lower()}")
        return OSError(number, os.strerror(number), path)
