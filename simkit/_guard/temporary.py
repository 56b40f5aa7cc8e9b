"""`tempfile` in a simulated process: files and folders in `/tmp` on its host's disk, with names from the tape.

tempfile keeps names, the folder and what the system can do in its module; these are put aside for the run. Whatever it
would remove when its objects go is removed only while their own process runs: a dead process removes nothing, and a
forgotten object never touches the machine's own `/tmp`.
"""

from __future__ import annotations

import functools
import glob
import os
import shutil
import tempfile
import types
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from simkit._guard import files
from simkit._guard.state import Active, here

if TYPE_CHECKING:
    from simkit.process import Process

_FOLDER = "/tmp"  # noqa: S108  # on simulated disks
_Folder: Any = tempfile.TemporaryDirectory
#: The class that keeps `os.scandir` for `Path.glob`, from Python 3.13 on.
_globber: Any = vars(glob).get("_StringGlobber")
_real_scandir: Any = None if _globber is None else vars(_globber)["scandir"]
_tempfile, _shutil = vars(tempfile), vars(shutil)
#: What `enter` puts aside: the state of tempfile, and what there is no stand-in for on the disk (files that never had a
#: name, descriptors of folders).
Kept = tuple[Any, Any, Any, Any]
_real_closer: Any = vars(tempfile)["_TemporaryFileCloser"]
_real_cleanup: Any = vars(_Folder)["_cleanup"]


def _process() -> Process | None:
    from simkit.process import current_process

    return current_process()


def _is_theirs(guard: Active | None, process: Process | None) -> bool:
    """Whether the world and the process of an object are those that run now."""
    return guard is not None and here() is guard and process is not None and process.alive and _process() is process


class _Closer(_real_closer):  # type: ignore[misc]
    """What removes a named temporary file; Python up to 3.11 calls `close` for it, later ones `cleanup`."""

    simulated: tuple[Active, Process]

    def close(self) -> None:
        if hasattr(_real_closer, "cleanup"):
            super().close()
        elif _is_theirs(*self.simulated):
            super().close(unlink=os.unlink)

    def cleanup(self) -> None:
        if _is_theirs(*self.simulated):
            super().cleanup(unlink=os.unlink)


class _Cleanup:
    """`TemporaryDirectory._cleanup`, bound to the process that made the folder."""

    def __get__(self, instance: object, owner: type) -> Callable[..., None]:
        guard, real = here(), _real_cleanup.__get__(instance, owner)
        return real if guard is None else functools.partial(_clean, guard, _process(), real)


def _clean(guard: Active | None, process: Process | None, real: Callable[..., None], *args: Any, **kwargs: Any) -> None:
    if _is_theirs(guard, process):
        real(*args, **kwargs)


def _named(real: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(real)
    def stand_in(*args: Any, **kwargs: Any) -> Any:
        file = real(*args, **kwargs)
        guard, process = here(), _process()
        if guard is not None and process is not None:
            closer: Any = vars(file)["_closer"]
            closer.__class__ = _Closer
            closer.simulated = guard, process
        return file

    return stand_in


def take() -> None:
    """Let the methods of classes that stand in do so; outside a run they are as ever."""
    setattr(_Folder, "_cleanup", _Cleanup())  # noqa: B010  # private, and no name of the class's type
    if _globber is not None:
        _globber.scandir = staticmethod(files.stand_in_for("scandir"))


def give_back() -> None:
    """Put back the real ones."""
    setattr(_Folder, "_cleanup", _real_cleanup)  # noqa: B010
    if _globber is not None:
        _globber.scandir = _real_scandir


def enter() -> Kept:
    """Put aside for a run what the modules keep, until `leave`, which takes what this returns."""
    names, others = _tempfile, _shutil
    kept = names["_name_sequence"], names["tempdir"], names["_O_TMPFILE_WORKS"], others["_use_fd_functions"]
    names["_name_sequence"], names["tempdir"] = None, _FOLDER
    names["_O_TMPFILE_WORKS"] = others["_use_fd_functions"] = False
    return kept


def leave(kept: Kept) -> None:
    """Put back what they kept."""
    names = _tempfile
    names["_name_sequence"], names["tempdir"], names["_O_TMPFILE_WORKS"], _shutil["_use_fd_functions"] = kept


def table() -> Iterator[tuple[types.ModuleType, str, Any, Any]]:
    """Every (module, name, real, stand-in), as `virtual.table` gives them."""
    yield tempfile, "NamedTemporaryFile", tempfile.NamedTemporaryFile, _named(tempfile.NamedTemporaryFile)
