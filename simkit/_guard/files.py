"""Files of a simulated process, by the usual names: `open`, `os`, `pathlib`, `trio.open_file`, on the host's simulated disk.

In a process every path is one of its host's disk, but for what belongs to Python's own installation, which is read as it
is. What the disk has not (modes, owners, links, times) stays refused, and so are files on the outside, which has no disk.
Buffers are the real ones of `io`: unflushed data dies with the process, flushed data with the power, synced data stays.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import io
import os
import stat
import sysconfig
import types
import weakref
import zoneinfo
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Self

from simkit._guard import refuse
from simkit._guard.descriptors import BY_DESCRIPTOR, file_of, fstat, stat_result
from simkit._guard.raw import Borrowed, Open, SimulatedFile, register
from simkit._guard.state import Active, here, off
from simkit._kernel.owner import OWNER
from simkit._storage.namespace import Directory

if TYPE_CHECKING:
    from simkit.process import Process

_BUFFER_BYTES = 8192
_LIBRARIES = (sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))
#: What Python reads as its own: its modules, and the data of time zones.
_INSTALLED = tuple({path + os.sep: None for path in (*_LIBRARIES, *zoneinfo.TZPATH)})


class _Entry:
    """What `os.scandir` gives."""

    def __init__(self, process: Process, folder: str, name: str) -> None:
        self.name = name
        self.path = os.path.join(folder, name)  # noqa: PTH118  # as os.scandir does
        self._process = process

    def __fspath__(self) -> str:
        return self.path

    def inode(self) -> int:
        return self.stat().st_ino

    def stat(self, **_options: Any) -> os.stat_result:
        return _stat_of(self._process, self.path)

    def is_dir(self, **_options: Any) -> bool:
        return self._process.host.disk.is_directory(self.path)

    def is_file(self, **_options: Any) -> bool:
        return not self.is_dir()

    def is_symlink(self) -> bool:
        return False

    def is_junction(self) -> bool:
        return False


class _Scan:
    """An iterator over the entries of a directory, in order."""

    def __init__(self, entries: list[_Entry]) -> None:
        self._entries = iter(entries)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> _Entry:
        return next(self._entries)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc_info: object) -> None:
        """Nothing to close."""

    def close(self) -> None:
        """Nothing to close."""


# ---- by path


def _open_raw(guard: Active, process: Process, path: str, flags: int) -> SimulatedFile:
    create, exclusive = bool(flags & os.O_CREAT), bool(flags & os.O_EXCL)
    file = process.host.disk.open(path, owner=process, create=create, exclusive=exclusive)
    if flags & os.O_TRUNC and file.size():
        file.truncate(0)
    return SimulatedFile(guard, file, path, flags)


_FLAGS = {
    "r": os.O_RDONLY,
    "w": os.O_WRONLY | os.O_CREAT | os.O_TRUNC,
    "a": os.O_WRONLY | os.O_CREAT | os.O_APPEND,
    "x": os.O_WRONLY | os.O_CREAT | os.O_EXCL,
}


def _open(  # the signature of `open`
    guard: Active,
    process: Process,
    path: str | int,
    mode: str = "r",
    buffering: int = -1,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
    closefd: bool = True,
    opener: Callable[[str, int], int] | None = None,
) -> Any:
    kinds = [letter for letter in mode if letter in _FLAGS]
    binary = "b" in mode
    if len(kinds) != 1 or set(mode) - set("rwaxbt+") or (binary and "t" in mode):
        raise ValueError(f"invalid mode for a simulated file: {mode!r}")
    if not closefd and not isinstance(path, int):
        raise ValueError("closefd=False is for descriptors, not for names")
    if (binary and encoding is not None) or (buffering == 0 and not binary):
        raise ValueError("binary mode takes no encoding, and text cannot be unbuffered")
    flags = _FLAGS[kinds[0]]
    if "+" in mode:
        flags = flags & ~os.O_ACCMODE | os.O_RDWR
    if isinstance(path, int):
        raw = _of_descriptor(guard, path, closes=closefd)
    elif opener is None:
        raw = _open_raw(guard, process, path, flags)
    else:
        raw = _of_descriptor(guard, opener(path, flags), closes=True)
    if "a" in mode:
        raw.seek(0, os.SEEK_END)
    if buffering == 0:
        return raw
    kind: Any = io.BufferedRandom if "+" in mode else io.BufferedReader if "r" in mode else io.BufferedWriter
    buffered = kind(raw, buffering if buffering > 1 else _BUFFER_BYTES)
    if binary:
        return _known(guard, process, buffered)
    text = io.TextIOWrapper(buffered, encoding or "utf-8", errors, newline, line_buffering=buffering == 1)
    text.mode = mode  # type: ignore[misc]  # as `open` does
    _known(guard, process, text)
    _known(guard, process, buffered)  # should the text be detached from it
    return text


def _known(guard: Active, process: Process, file: Any) -> Any:
    """Remember a file that may hold something back: an interpreter that comes to its end flushes it, a killed one does not."""
    if file.writable():
        buffers = guard.buffers.get(process)
        if buffers is None:
            buffers = guard.buffers[process] = weakref.WeakValueDictionary()
            process.on_leaving(functools.partial(_flush, buffers))
        buffers[file.fileno(), type(file)] = file
    return file


def _flush(buffers: weakref.WeakValueDictionary[Any, Any]) -> None:
    for file in list(buffers.values()):
        # An OSError nobody is there any more to be told of; a ValueError is of a file that is closed, or detached.
        with contextlib.suppress(OSError, ValueError):
            file.flush()


def _of_descriptor(guard: Active, fd: int, *, closes: bool) -> SimulatedFile:
    """The file of an open descriptor; closing it closes the descriptor, or not."""
    entry = guard.files.get(fd)
    if entry is None:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    file = file_of(entry)
    return file if closes else Borrowed(file)


def _os_open(guard: Active, process: Process, path: str, flags: int, _mode: int = 0o777) -> int:
    disk = process.host.disk
    node = disk.find(path)
    if isinstance(node, Directory) and not flags & os.O_EXCL:
        if flags & (os.O_ACCMODE | os.O_CREAT | os.O_TRUNC) != os.O_RDONLY:
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        return register(guard, Open(None, path, node))
    if flags & getattr(os, "O_DIRECTORY", 0) and node is not None:
        raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
    return _open_raw(guard, process, path, flags).fileno()


def _stat_of(process: Process, path: str) -> os.stat_result:
    disk = process.host.disk
    node = disk.find(path)
    if isinstance(node, Directory):
        return stat_result(stat.S_IFDIR, 0, disk.number_of(node))
    size = disk.size(path)  # its error, where there is no such file
    return stat_result(stat.S_IFREG, size, 0 if node is None else disk.number_of(node))


def _stat(_guard: Active, process: Process, path: str, **_options: Any) -> os.stat_result:
    return _stat_of(process, path)


def _access(_guard: Active, process: Process, path: str, _mode: int = 0) -> bool:
    return path == "/" or process.host.disk.exists(path)


def _listdir(_guard: Active, process: Process, path: str = ".") -> list[str]:
    return process.host.disk.listdir(path)


def _scandir(_guard: Active, process: Process, path: str = ".") -> _Scan:
    return _Scan([_Entry(process, path, name) for name in process.host.disk.listdir(path)])


def _mkdir(_guard: Active, process: Process, path: str, _mode: int = 0o777) -> None:
    process.host.disk.mkdir(path, owner=process)


def _rmdir(_guard: Active, process: Process, path: str) -> None:
    process.host.disk.rmdir(path, owner=process)


def _unlink(_guard: Active, process: Process, path: str) -> None:
    process.host.disk.unlink(path, owner=process)


def _rename(_guard: Active, process: Process, source: str, target: Any) -> None:
    process.host.disk.rename(source, os.fsdecode(target), owner=process)


def _readlink(_guard: Active, process: Process, path: str) -> str:
    _stat_of(process, path)
    raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path)


def _utime(_guard: Active, process: Process, path: str, *_times: Any, **_options: Any) -> None:
    """Times are not kept; it matters to nobody but `Path.touch`."""
    _stat_of(process, path)


_BY_PATH: dict[str, Any] = {
    "open": _os_open,
    "stat": _stat,
    "lstat": _stat,
    "access": _access,
    "listdir": _listdir,
    "scandir": _scandir,
    "mkdir": _mkdir,
    "rmdir": _rmdir,
    "unlink": _unlink,
    "remove": _unlink,
    "rename": _rename,
    "replace": _rename,
    "readlink": _readlink,
    "utime": _utime,
}


def _asking(guard: Active | None) -> Process | None:
    """The process whose files are meant, if it is the program that asks."""
    if guard is None or guard.busy:
        return None
    from simkit.process import current_process

    process = current_process()
    return None if process is None or refuse.is_reading() else process


def _by_path(real: Callable[..., Any], simulated: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(real)
    def stand_in(path: Any = ".", *args: Any, **kwargs: Any) -> Any:
        guard = here()
        if guard is None or isinstance(path, int):
            if guard is not None and path in guard.files:
                return _descriptor(real, simulated, guard, path, args, kwargs)
            return real(path, *args, **kwargs)
        name = os.fsdecode(path)
        if name.startswith(_INSTALLED) and _only_looks(simulated, args, kwargs):
            with off():
                return real(path, *args, **kwargs)
        process = None if name == os.devnull else _asking(guard)
        if process is None or kwargs.pop("dir_fd", None) is not None:
            return real(path, *args, **kwargs)
        if not name:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
        try:
            return simulated(guard, process, name, *args, **kwargs)
        except FileNotFoundError as missing:
            host = process.host.name
            missing.add_note(
                f"on the simulated disk of {host!r}; world.host({host!r}).disk.load({{path: bytes}}) puts files there"
            )
            raise

    return stand_in


def _only_looks(simulated: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a call leaves the disk as it was."""
    if simulated is _open:
        return not set(args[0] if args else kwargs.get("mode", "r")) & set("wax+")
    if simulated is _os_open:
        flags: int = args[0] if args else kwargs.get("flags", 0)
        return flags & (os.O_ACCMODE | os.O_CREAT | os.O_TRUNC) == os.O_RDONLY
    return simulated in {_stat, _access, _listdir, _scandir, _readlink}


def _descriptor(real: Any, simulated: Any, guard: Active, fd: int, args: Any, kwargs: Any) -> Any:
    """`open`, `os.stat` and the like of an open descriptor."""
    process = _asking(guard)
    if process is not None and simulated is _stat:
        return fstat(guard, process, guard.files[fd])
    if process is not None and simulated is _open:
        return _open(guard, process, fd, *args, **kwargs)
    return real(fd, *args, **kwargs)


def _by_descriptor(real: Callable[..., Any], simulated: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(real)
    def stand_in(fd: Any, *args: Any, **kwargs: Any) -> Any:
        guard = here()
        number = fd if guard is None or isinstance(fd, int) else fd.fileno()
        if guard is None or guard.busy or (entry := guard.files.get(number)) is None:
            return real(fd, *args, **kwargs)
        process = OWNER.get()
        return real(fd, *args, **kwargs) if process is None else simulated(guard, process, entry, *args, **kwargs)

    return stand_in


def _getcwd(real: Callable[[], str]) -> Callable[[], str]:
    @functools.wraps(real)
    def stand_in() -> str:
        return real() if _asking(here()) is None else "/"

    return stand_in


def stand_in_for(name: str) -> Callable[..., Any]:
    """The stand-in of `os.name`, for a place that keeps the function under no name of a module."""
    return _by_path(getattr(os, name), _BY_PATH[name])


def table() -> Iterator[tuple[types.ModuleType, str, Any, Any]]:
    """Every (module, name, real, stand-in), as `virtual.table` gives them."""
    yield io, "open", io.open, _by_path(io.open, _open)
    yield os, "getcwd", os.getcwd, _getcwd(os.getcwd)
    for names, make in ((_BY_PATH, _by_path), (BY_DESCRIPTOR, _by_descriptor)):
        for name, simulated in names.items():
            real = getattr(os, name, None)
            if real is not None:
                yield os, name, real, make(real, simulated)
