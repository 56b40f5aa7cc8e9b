"""The standard library's sqlite3 on the simulated disk: the VFS of `simkit.sqlite` for the SQLite that `_sqlite3` links.

apsw brings an SQLite of its own; `sqlite3`, and SQLAlchemy or aiosqlite above it, use the system's. That one is found by the
extension module's own file, and is given a VFS made of ctypes callbacks, each of which asks the VFS and files that apsw's
connections use. Installed at the first `sqlite3.connect` of a run, and only where the library shows its functions.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import apsw

if TYPE_CHECKING:
    from simkit._sqlite.file import DatabaseFile
    from simkit.world import World

__all__ = ["serve"]

_NAME = b"simkit"
_OK, _IOERR, _NOTFOUND, _SHORT_READ = 0, 10, 12, 522
_PATH_BYTES_MAX = 1024
_CODES: dict[type[BaseException], int] = {
    apsw.BusyError: 5,
    apsw.FullError: 13,
    apsw.CantOpenError: 14,
}

_int, _pointer, _int64, _text = ctypes.c_int, ctypes.c_void_p, ctypes.c_int64, ctypes.c_char_p
_int_at = ctypes.POINTER(ctypes.c_int)
_int64_at = ctypes.POINTER(ctypes.c_int64)


def _function(*arguments: Any) -> Any:
    return ctypes.CFUNCTYPE(_int, *arguments)


class _Methods(ctypes.Structure):
    """`sqlite3_io_methods`, version 1: no shared memory."""


class _File(ctypes.Structure):
    """`sqlite3_file` with our number behind it."""


_FILE = ctypes.POINTER(_File)
_Methods._fields_ = [
    ("iVersion", _int),
    ("xClose", _function(_FILE)),
    ("xRead", _function(_FILE, _pointer, _int, _int64)),
    ("xWrite", _function(_FILE, _pointer, _int, _int64)),
    ("xTruncate", _function(_FILE, _int64)),
    ("xSync", _function(_FILE, _int)),
    ("xFileSize", _function(_FILE, _int64_at)),
    ("xLock", _function(_FILE, _int)),
    ("xUnlock", _function(_FILE, _int)),
    ("xCheckReservedLock", _function(_FILE, _int_at)),
    ("xFileControl", _function(_FILE, _int, _pointer)),
    ("xSectorSize", _function(_FILE)),
    ("xDeviceCharacteristics", _function(_FILE)),
]
_File._fields_ = [("methods", ctypes.POINTER(_Methods)), ("number", _int64)]


class _VfsRecord(ctypes.Structure):
    """`sqlite3_vfs`, version 2."""

    _fields_ = (
        ("iVersion", _int),
        ("szOsFile", _int),
        ("mxPathname", _int),
        ("pNext", _pointer),
        ("zName", _text),
        ("pAppData", _pointer),
        ("xOpen", _function(_pointer, _text, _FILE, _int, _int_at)),
        ("xDelete", _function(_pointer, _text, _int)),
        ("xAccess", _function(_pointer, _text, _int, _int_at)),
        ("xFullPathname", _function(_pointer, _text, _int, _pointer)),
        ("xDlOpen", ctypes.CFUNCTYPE(_pointer, _pointer, _text)),
        ("xDlError", ctypes.CFUNCTYPE(None, _pointer, _int, _pointer)),
        ("xDlSym", ctypes.CFUNCTYPE(_pointer, _pointer, _pointer, _text)),
        ("xDlClose", ctypes.CFUNCTYPE(None, _pointer, _pointer)),
        ("xRandomness", _function(_pointer, _int, _pointer)),
        ("xSleep", _function(_pointer, _int)),
        ("xCurrentTime", _function(_pointer, ctypes.POINTER(ctypes.c_double))),
        ("xGetLastError", _function(_pointer, _int, _pointer)),
        ("xCurrentTimeInt64", _function(_pointer, _int64_at)),
    )


def _guarded(fn: Callable[..., int | None]) -> Callable[..., int]:
    """A callback: what it raises becomes the code that SQLite knows; nothing may leave it."""

    def callback(*args: Any) -> int:
        try:
            return fn(*args) or _OK
        except BaseException as error:  # noqa: BLE001  # ProcessDead above all: the dead get an error
            extended = getattr(error, "extendedresult", None)
            return int(extended) if extended else _CODES.get(type(error), _IOERR)

    return callback


class _Library:
    """The SQLite of `_sqlite3`, with our VFS known to it."""

    def __init__(self, library: Any) -> None:
        from simkit.sqlite import _VFS  # the one VFS; it knows the run's session

        self._library = library
        self._vfs = _VFS
        self._files: dict[int, DatabaseFile] = {}
        self._numbers = 0
        self._serving: World | None = None
        library.sqlite3_vfs_find.restype = ctypes.c_void_p
        library.sqlite3_vfs_find.argtypes = [ctypes.c_char_p]
        library.sqlite3_vfs_register.argtypes = [ctypes.c_void_p, _int]
        library.sqlite3_randomness.argtypes = [_int, ctypes.c_void_p]
        self._methods = self._make_methods()
        self._record = self._make_record()  # kept for good: SQLite has its address
        library.sqlite3_vfs_register(ctypes.byref(self._record), 0)

    def serve(self, world: World) -> None:
        """Lead paths to the disks of `world` until its run is over."""
        if self._serving is world:
            return
        before = self._library.sqlite3_vfs_find(None)
        self._serving = world
        self._library.sqlite3_vfs_register(ctypes.byref(self._record), 1)
        self._library.sqlite3_randomness(0, None)  # SQLite's generator is process-wide: ask the tape anew

        def end() -> None:
            self._serving = None
            self._files.clear()  # connections that are left find their files gone
            self._library.sqlite3_vfs_register(before, 1)
            self._library.sqlite3_randomness(0, None)

        world.kernel.endings.append(end)

    # ---- files

    def _file(self, file: Any) -> DatabaseFile:
        return self._files[file.contents.number]

    def _close(self, file: Any) -> None:
        found = self._files.pop(file.contents.number, None)
        if found is not None:
            found.xClose()

    def _read(self, file: Any, buffer: int, amount: int, offset: int) -> int:
        data = bytes(self._file(file).xRead(amount, offset))
        ctypes.memmove(buffer, data, len(data))
        if len(data) == amount:
            return _OK
        ctypes.memset(buffer + len(data), 0, amount - len(data))
        return _SHORT_READ

    def _write(self, file: Any, buffer: int, amount: int, offset: int) -> None:
        self._file(file).xWrite(ctypes.string_at(buffer, amount), offset)

    def _size(self, file: Any, out: Any) -> None:
        out[0] = self._file(file).xFileSize()

    def _reserved(self, file: Any, out: Any) -> None:
        out[0] = int(self._file(file).xCheckReservedLock())

    def _make_methods(self) -> _Methods:
        calls: dict[str, Any] = {
            "xClose": self._close,
            "xRead": self._read,
            "xWrite": self._write,
            "xTruncate": lambda file, size: self._file(file).xTruncate(size),
            "xSync": lambda file, flags: self._file(file).xSync(flags),
            "xFileSize": self._size,
            "xLock": lambda file, level: self._file(file).xLock(level),
            "xUnlock": lambda file, level: self._file(file).xUnlock(level),
            "xCheckReservedLock": self._reserved,
            "xFileControl": lambda _file, _operation, _argument: _NOTFOUND,
            "xSectorSize": lambda file: self._file(file).xSectorSize(),
            "xDeviceCharacteristics": lambda file: self._file(file).xDeviceCharacteristics(),
        }
        return _Methods(iVersion=1, **_typed(_Methods, calls))

    # ---- the file system

    def _open(self, _vfs: int, name: bytes | None, file: Any, flags: int, out_flags: Any) -> None:
        file.contents.methods = ctypes.POINTER(_Methods)()  # no xClose after an error
        wanted = [flags, flags]
        opened = self._vfs.xOpen(None if name is None else name.decode(), wanted)
        self._numbers += 1
        self._files[self._numbers] = opened
        file.contents.number = self._numbers
        file.contents.methods = ctypes.pointer(self._methods)
        if out_flags:
            out_flags[0] = wanted[1]

    def _access(self, _vfs: int, name: bytes, flags: int, out: Any) -> None:
        out[0] = int(self._vfs.xAccess(name.decode(), flags))

    def _full_pathname(self, _vfs: int, name: bytes, size: int, out: int) -> int:
        full = self._vfs.xFullPathname(name.decode()).encode() + b"\0"
        if len(full) > size:
            return 14
        ctypes.memmove(out, full, len(full))
        return _OK

    def _randomness(self, _vfs: int, size: int, out: int) -> int:
        ctypes.memmove(out, self._vfs.xRandomness(size), size)
        return size

    def _time(self, _vfs: int, out: Any) -> None:
        out[0] = self._vfs.xCurrentTime()

    def _time_ms(self, _vfs: int, out: Any) -> None:
        out[0] = self._vfs.xCurrentTimeInt64()

    def _make_record(self) -> _VfsRecord:
        calls: dict[str, Any] = {
            "xOpen": self._open,
            "xDelete": lambda _vfs, name, sync: self._vfs.xDelete(name.decode(), bool(sync)),
            "xAccess": self._access,
            "xFullPathname": self._full_pathname,
            "xDlOpen": lambda _vfs, _name: None,
            "xDlError": lambda _vfs, size, out: ctypes.memset(out, 0, size) and None,
            "xDlSym": lambda _vfs, _handle, _name: None,
            "xDlClose": lambda _vfs, _handle: None,
            "xRandomness": self._randomness,
            "xSleep": lambda _vfs, microseconds: self._vfs.xSleep(microseconds),
            "xCurrentTime": self._time,
            "xGetLastError": lambda _vfs, _size, _out: _OK,
            "xCurrentTimeInt64": self._time_ms,
        }
        sizes = {"iVersion": 2, "szOsFile": ctypes.sizeof(_File), "mxPathname": _PATH_BYTES_MAX, "zName": _NAME}
        return _VfsRecord(**sizes, **_typed(_VfsRecord, calls))


def _typed(record: Any, calls: dict[str, Callable[..., Any]]) -> dict[str, Any]:
    kinds = {name: kind for name, kind in record._fields_ if name in calls}  # ctypes' own name
    plain = {"xDlOpen", "xDlError", "xDlSym", "xDlClose"}
    return {name: kinds[name](call if name in plain else _guarded(call)) for name, call in calls.items()}


@functools.cache
def _library() -> _Library | None:
    """The library, when it can be had: linked to, or built in and visible."""
    if sys.platform == "win32":
        return None
    spec = importlib.util.find_spec("_sqlite3")
    if spec is None:
        return None
    found = ctypes.CDLL(None if spec.origin in {None, "built-in"} else spec.origin)
    try:
        found.sqlite3_vfs_register, found.sqlite3_vfs_find, found.sqlite3_randomness  # noqa: B018  # are they there?
    except AttributeError:
        return None
    return _Library(found)


def serve(world: World) -> bool:
    """Let the standard library's sqlite3 use the disks of `world`; False where that cannot be done."""
    library = _library()
    if library is None:
        return False
    library.serve(world)
    return True
