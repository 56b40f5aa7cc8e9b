"""What the machine that tests could not give: room, a process, a descriptor. Whatever a harness did then says nothing of it
or of its adapter.
"""

from __future__ import annotations

import contextlib
import errno
import os
from typing import TYPE_CHECKING, Final

from simkit.errors import ExitCode, Problem, SimkitError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: What the system says when it is short of something, not when it was asked for something wrong.
SHORTAGES: Final = frozenset(
    {errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ENOSPC, errno.EDQUOT, errno.EIO}
)
#: With less than this left where the runs have their files, a harness cannot be told from one that was refused a write.
ROOM_BYTES_MIN: Final = 1 << 20
#: With fewer files than this to be made, neither.
ROOM_FILES_MIN: Final = 16


def short(what: str, where: str) -> Problem:
    """The problem of a machine that is short of something."""
    return Problem(
        "machine-short",
        what,
        where,
        "a machine that gives the harness what it asks for",
        "free some space, raise the limits (ulimit -a), or run fewer jobs; TMPDIR chooses where runs have their files",
        ExitCode.INTERNAL,
    )


@contextlib.contextmanager
def giving(doing: str, where: str) -> Iterator[None]:
    """Tell an OSError of the kit's own doing in this block as what it is: no fault of the target."""
    try:
        yield
    except OSError as error:
        raise SimkitError(short(f"{doing}: {error.strerror or error}", where)) from error


def no_room(folder: Path) -> Problem | None:
    """The problem, where nothing more can be written under `folder`."""
    bytes_, files = free_bytes(folder), free_files(folder)
    if bytes_ is not None and bytes_ < ROOM_BYTES_MIN:
        left = f"{bytes_} bytes are left"
    elif files is not None and files < ROOM_FILES_MIN:
        left = f"{files} files can still be made"
    else:
        return None
    return short(f"{left} where the run had its files: what was refused a write proves nothing", str(folder))


def free_bytes(folder: Path) -> int | None:
    """How much this user may still write under `folder`; None where the system does not say."""
    state = _state(folder)
    if state is None or not state.f_blocks:  # a tmpfs without a limit, or a remote file system: it says 0 of everything
        return None
    return state.f_frsize * (state.f_bavail if os.geteuid() else state.f_bfree)


def free_files(folder: Path) -> int | None:
    """How many files this user may still make under `folder`; None where the system does not count them, or say."""
    state = _state(folder)
    if state is None or not state.f_files:
        return None
    return state.f_favail if os.geteuid() else state.f_ffree


def _state(folder: Path) -> os.statvfs_result | None:
    try:
        return os.statvfs(folder)
    except OSError:  # a harness can remove the folder of its run: that is no want of room
        return None
