"""Faults of a disk that is not losing power: errors asked for once, errors drawn from the tape, lies; all counted."""

from __future__ import annotations

import errno
import os

import attrs

from simkit._storage.inode import Choices

#: (numerator, denominator) of how often something happens.
Ratio = tuple[int, int]
NEVER: Ratio = (0, 1)
ALWAYS: Ratio = (1, 1)


@attrs.frozen
class DiskFaults:
    """How often a disk misbehaves; integer ratios, nothing by default."""

    read_eio: Ratio = NEVER
    write_eio: Ratio = NEVER
    write_enospc: Ratio = NEVER
    fsync_eio: Ratio = NEVER  # and the dirty pages are dropped, as Linux does
    fsync_lies: Ratio = NEVER  # says done, made nothing durable
    sync_dir_lies: Ratio = NEVER


#: Errors that can be drawn before an operation of each kind.
_DRAWN = {
    "read": (("read_eio", errno.EIO),),
    "write": (("write_eio", errno.EIO), ("write_enospc", errno.ENOSPC)),
    "fsync": (("fsync_eio", errno.EIO),),
}


@attrs.define
class Asked:
    """An error asked for by `Injector.fail_next`."""

    kind: str
    errno: int
    path: str | None
    times: int


class Injector:
    """Decides which operation fails, and counts every fault that really happened in `fired`."""

    def __init__(self, stream: Choices) -> None:
        self.faults = DiskFaults()
        self.fired: dict[str, int] = {}
        self._stream = stream
        self._asked: list[Asked] = []

    def count(self, what: str) -> None:
        """Note that fault `what` happened."""
        self.fired[what] = self.fired.get(what, 0) + 1

    def fail_next(self, kind: str, errno_: int, *, path: str | None, times: int) -> None:
        """Let the next `times` operations of `kind` (on `path`, when given) fail with `errno_`."""
        self._asked.append(Asked(kind, errno_, path, times))

    @property
    def waiting(self) -> int:
        """How many failures were asked for and have not fired yet."""
        return sum(asked.times for asked in self._asked)

    def error(self, kind: str, path: str) -> OSError | None:
        """Return the error that the operation about to happen must raise, or None."""
        for asked in self._asked:
            if asked.kind == kind and asked.path in (None, path):
                asked.times -= 1
                if not asked.times:
                    self._asked.remove(asked)
                return self._fire(kind, asked.errno, path)
        for option, number in _DRAWN.get(kind, ()):
            if self._drawn(option, path):
                return self._fire(kind, number, path)
        return None

    def lies(self, kind: str, path: str) -> bool:
        """Return whether this fsync or directory sync only pretends."""
        lying = self._drawn(f"{kind}_lies", path)
        if lying:
            self.count(f"lying-{kind}")
        return lying

    def _drawn(self, option: str, path: str) -> bool:
        num, den = getattr(self.faults, option)
        return num >= den or (num > 0 and self._stream.chance(f"{option}:{path}", num, den))

    def _fire(self, kind: str, number: int, path: str) -> OSError:
        self.count(f"{kind}-{errno.errorcode[number].lower()}")
        return OSError(number, os.strerror(number), path)
