"""Who belongs to a unit: the processes of its group, its session, or with its token in their environment.

Systems without `/proc` show none of it; there the process group is all the kit can see, and it only sees whether the
group is empty.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import attrs

#: The variable that marks a unit's processes.
VARIABLE: Final = "SIMKIT_UNIT"

_PROC: Final = Path("/proc")

#: Whether this system shows processes one by one.
SHOWN: Final = (_PROC / "self/stat").exists()


@attrs.frozen
class Member:
    """One live process; `stopped` by a signal."""

    pid: int
    stopped: bool


def find(token: str, group: int | None) -> tuple[Member, ...]:
    """Live processes that carry `token`, or belong to process group or session `group`, by number.

    Pass `group` only while its number cannot have been given to somebody else. Dead processes not yet reaped do not
    count. Never raises: a process that ends while it is looked at is not there.
    """
    return tuple(_shown(token, group)) if SHOWN else _unshown(group)


def _shown(token: str, group: int | None) -> Iterator[Member]:
    mark = f"{VARIABLE}={token}".encode()
    for pid in sorted(int(name) for name in os.listdir(_PROC) if name.isdecimal()):  # noqa: PTH208 - names are all we need
        try:
            # The name in brackets may hold anything; the fields after it are state, parent, group, session.
            state, _, pgrp, session = (_PROC / str(pid) / "stat").read_bytes().rpartition(b") ")[2].split()[:4]
            if state in b"ZX":
                continue
            ours = group is not None and group in {int(pgrp), int(session)}
            if ours or mark in (_PROC / str(pid) / "environ").read_bytes().split(b"\0"):
                yield Member(pid, stopped=state in b"Tt")
        except OSError:
            continue


def _unshown(group: int | None) -> tuple[Member, ...]:
    if group is None:
        return ()
    try:
        os.killpg(group, 0)
    except OSError:  # no such group, or (on some systems) only the dead are left in it
        return ()
    return (Member(-group, stopped=True),)
