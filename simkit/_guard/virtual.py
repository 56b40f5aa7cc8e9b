"""Stand-ins for what the standard library tells of the real world: clock, process id, name of the machine, randomness.

Each asks whether a guard is on and falls through to the real one when not, so that it does no harm where it stays behind.
"""

from __future__ import annotations

import _thread
import datetime as datetime_module
import errno
import functools
import os
import platform
import random
import signal
import socket
import time
import types
import uuid
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import trio

from simkit._guard import files, refuse, sockets, temporary
from simkit._guard.state import Active, here
from simkit._kernel.owner import OWNER

_NS = 1_000_000_000
#: 100 ns ticks between the epoch of version 1 UUIDs (RFC 9562) and that of Unix.
_UUID_EPOCH_TICKS = 0x01B21DD213814000
#: Clocks by what they tell; all others count from when the machine was started.
_OF_THE_PROCESSOR = {getattr(time, f"CLOCK_{name}_CPUTIME_ID", None) for name in ("PROCESS", "THREAD")}
_OF_THE_WALL = {getattr(time, f"CLOCK_{name}", None) for name in ("REALTIME", "TAI")}
#: What Python does not leave to the system's default as it starts.
_AT_FIRST: dict[int, Any] = {signal.SIGINT: signal.default_int_handler} | {
    getattr(signal, name): signal.SIG_IGN for name in ("SIGPIPE", "SIGXFSZ") if hasattr(signal, name)
}
#: No process hears of these.
_UNSEEN = {getattr(signal, name, None) for name in ("SIGKILL", "SIGSTOP")}
_NODE = 0x020000000001  # a locally administered address
_real_date = datetime_module.date
_real_datetime = datetime_module.datetime


class _LikeReal(type):
    """Instances of the real class pass for instances of the stand-in."""

    real: type

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.real) if "real" in vars(cls) else super().__instancecheck__(instance)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, cls.real) if "real" in vars(cls) else super().__subclasscheck__(subclass)


class SimulatedDatetime(_real_datetime, metaclass=_LikeReal):
    """`datetime.datetime` with virtual `now`; makes instances of the real class."""

    real = _real_datetime

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        return _real_datetime.__new__(_real_datetime if cls is SimulatedDatetime else cls, *args, **kwargs)

    @classmethod
    def now(cls, tz: datetime_module.tzinfo | None = None) -> Any:
        guard = here()
        if guard is None:
            return _real_datetime.now(tz)
        seconds, rest = divmod(guard.now_ns(), _NS)
        now = _real_datetime.fromtimestamp(seconds, tz or guard.zone()).replace(microsecond=rest // 1000)
        return now if tz is not None else now.replace(tzinfo=None)

    @classmethod
    def fromtimestamp(cls, timestamp: float, tz: datetime_module.tzinfo | None = None) -> Any:
        guard = here()
        if guard is None or tz is not None:
            return _real_datetime.fromtimestamp(timestamp, tz)
        return _real_datetime.fromtimestamp(timestamp, guard.zone()).replace(tzinfo=None)

    @classmethod
    def utcnow(cls) -> Any:
        return cls.now(datetime_module.UTC).replace(tzinfo=None)

    @classmethod
    def today(cls) -> Any:
        return cls.now()


class SimulatedDate(_real_date, metaclass=_LikeReal):
    """`datetime.date` with a virtual `today`."""

    real = _real_date

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        return _real_date.__new__(_real_date if cls is SimulatedDate else cls, *args, **kwargs)

    @classmethod
    def today(cls) -> Any:
        return SimulatedDatetime.now().date()

    @classmethod
    def fromtimestamp(cls, timestamp: float) -> Any:
        return SimulatedDatetime.fromtimestamp(timestamp).date()


for _stand_in, _name in ((SimulatedDatetime, "datetime"), (SimulatedDate, "date")):
    _stand_in.__name__ = _stand_in.__qualname__ = _name
    _stand_in.__module__ = "datetime"


class SimulatedRandom(random.Random, metaclass=_LikeReal):
    """`random.Random`; one that is given no seed takes it from the tape, not from the system."""

    real = random.Random

    def seed(self, a: Any = None, version: int = 2) -> None:
        guard = here()
        super().seed(guard.noise.getrandbits(128) if a is None and guard is not None else a, version)


def _ns(guard: Active) -> int:
    return guard.now_ns()


def _seconds(guard: Active) -> float:
    return guard.now_ns() / _NS


def _elapsed_ns(guard: Active) -> int:
    return guard.elapsed_ns()


def _elapsed(guard: Active) -> float:
    return guard.elapsed_ns() / _NS


def _clock_gettime_ns(guard: Active, clock: int) -> int:
    if clock in _OF_THE_PROCESSOR:
        return 0
    return guard.now_ns() if clock in _OF_THE_WALL else guard.elapsed_ns()


def _clock_gettime(guard: Active, clock: int) -> float:
    return _clock_gettime_ns(guard, clock) / _NS


def _gmtime(guard: Active, seconds: float | None = None) -> time.struct_time:
    return _real_gmtime(guard.now_ns() // _NS if seconds is None else seconds)


def _localtime(guard: Active, seconds: float | None = None) -> time.struct_time:
    """Local to the host of the running process."""
    at = guard.now_ns() // _NS if seconds is None else int(seconds // 1)
    moment = _real_datetime.fromtimestamp(at, guard.zone())
    offset = moment.utcoffset() or datetime_module.timedelta()
    summer = int(bool(moment.dst()))  # a zone that knows nothing of summer time is not in it
    return time.struct_time((*moment.timetuple()[:8], summer, moment.tzname(), int(offset.total_seconds())))


def _mktime(guard: Active, moment: Any) -> float:
    year, month, day, hour, minute, second = tuple(moment)[:6]
    start = _real_datetime(year, 1, 1, tzinfo=guard.zone())
    days = _real_date(year + (month - 1) // 12, (month - 1) % 12 + 1, 1) - _real_date(year, 1, 1)
    wall = datetime_module.timedelta(days=days.days + day - 1, hours=hour, minutes=minute, seconds=second)
    return (start + wall).timestamp()


def _strftime(guard: Active, layout: str, moment: Any = None) -> str:
    return _real_strftime(layout, _localtime(guard) if moment is None else moment)


def _ctime(guard: Active, seconds: float | None = None) -> str:
    return _real_asctime(_localtime(guard, seconds))


def _asctime(guard: Active, moment: Any = None) -> str:
    return _real_asctime(_localtime(guard) if moment is None else moment)


def _sleep(_guard: Active, seconds: float) -> None:
    from simkit._kernel import threads

    thread = threads.current_thread()
    if thread is not None:  # there only this thread waits
        threads.sleep(thread, seconds)
        return
    raise refuse.refusal("time.sleep", (seconds,))


def _refused(event: str) -> Callable[..., NoReturn]:
    """For what Python has no audit event for."""

    def refuse_it(_guard: Active, *args: Any, **_kwargs: Any) -> NoReturn:
        raise refuse.refusal(event, args)

    return refuse_it


def _no_time(_guard: Active) -> float:
    """Code runs at an instant: the processor has nothing to do while time passes."""
    return 0.0


def _no_time_ns(_guard: Active) -> int:
    return 0


def _times(guard: Active) -> os.times_result:
    return os.times_result((0.0, 0.0, 0.0, 0.0, guard.elapsed_ns() / _NS))


def _load(_guard: Active) -> tuple[float, float, float]:
    return 0.0, 0.0, 0.0


def _set_handler(guard: Active, number: int, handler: Any) -> Any:
    """Kept for the running process alone: that of the interpreter would outlive it, and the run."""
    before = _handler(guard, number)
    if not callable(handler) and handler not in (signal.SIG_DFL, signal.SIG_IGN):
        raise TypeError("signal handler must be signal.SIG_IGN, signal.SIG_DFL, or a callable object")
    if number in _UNSEEN:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
    guard.handlers[guard.pid(), int(number)] = handler
    return before


def _handler(guard: Active, number: int) -> Any:
    if number not in signal.valid_signals():
        raise ValueError("signal number out of range")
    usual = _AT_FIRST.get(number, signal.SIG_DFL)
    return guard.handlers.get((guard.pid(), int(number)), usual)


def _start_thread(_guard: Active, *_args: Any, **_kwargs: Any) -> int:
    """Python 3.11 has no audit event for it, and a thread that trio kept for later has none anywhere."""
    raise refuse.refusal("_thread.start_new_thread", ())


def _urandom(guard: Active, size: int) -> bytes:
    return guard.noise.randbytes(size)


def _getrandom(guard: Active, size: int, _flags: int = 0) -> bytes:
    return guard.noise.randbytes(size)


def _getpid(guard: Active) -> int:
    return guard.pid()


def _getppid(_guard: Active) -> int:
    return 1


def _gethostname(_guard: Active) -> str:
    """The name by which others reach it."""
    process = OWNER.get()
    return "outside" if process is None else process.label.partition("/")[0]


def _getfqdn(guard: Active, name: str = "") -> str:
    """Names of hosts have no domains."""
    name = name.strip()
    return _gethostname(guard) if name in {"", "0.0.0.0", "::"} else name  # noqa: S104  # nothing is bound


def _getnode(_guard: Active) -> int:
    return _NODE


def _uuid1(guard: Active, node: int | None = None, clock_seq: int | None = None) -> uuid.UUID:
    ticks = guard.now_ns() // 100 + _UUID_EPOCH_TICKS
    sequence = guard.noise.getrandbits(14) if clock_seq is None else clock_seq
    low, middle, high = ticks & 0xFFFFFFFF, (ticks >> 32) & 0xFFFF, (ticks >> 48) & 0x0FFF
    fields = (low, middle, high, (sequence >> 8) & 0x3F, sequence & 0xFF, _NODE if node is None else node)
    return uuid.UUID(fields=fields, version=1)


_real_gmtime, _real_strftime, _real_asctime = time.gmtime, time.strftime, time.asctime

_STAND_INS: tuple[tuple[types.ModuleType, str, Any], ...] = (
    (time, "time", _seconds),
    (time, "time_ns", _ns),
    (time, "monotonic", _elapsed),
    (time, "monotonic_ns", _elapsed_ns),
    (time, "perf_counter", _elapsed),
    (time, "perf_counter_ns", _elapsed_ns),
    (time, "process_time", _no_time),
    (time, "process_time_ns", _no_time_ns),
    (time, "thread_time", _no_time),
    (time, "thread_time_ns", _no_time_ns),
    (time, "clock_gettime", _clock_gettime),
    (time, "clock_gettime_ns", _clock_gettime_ns),
    (time, "gmtime", _gmtime),
    (time, "localtime", _localtime),
    (time, "mktime", _mktime),
    (time, "strftime", _strftime),
    (time, "ctime", _ctime),
    (time, "asctime", _asctime),
    (time, "sleep", _sleep),
    (_thread, "start_new_thread", _start_thread),
    (_thread, "start_joinable_thread", _start_thread),
    (trio.lowlevel, "start_thread_soon", _start_thread),
    (os, "urandom", _urandom),
    (os, "getrandom", _getrandom),
    (os, "times", _times),
    (os, "getloadavg", _load),
    (signal, "signal", _set_handler),
    (signal, "getsignal", _handler),
    *((signal, name, _refused(f"signal.{name}")) for name in ("raise_signal", "alarm", "setitimer")),
    *((os, name, _refused(f"os.{name}")) for name in ("sync", "statvfs", "mkfifo", "mknod")),
    (os, "getpid", _getpid),
    (os, "getppid", _getppid),
    (socket, "gethostname", _gethostname),
    (socket, "getfqdn", _getfqdn),
    (platform, "node", _gethostname),
    (uuid, "getnode", _getnode),
    (uuid, "uuid1", _uuid1),
)


def _stand_in_for(real: Callable[..., Any], simulated: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(real)
    def stand_in(*args: Any, **kwargs: Any) -> Any:
        guard = here()
        return real(*args, **kwargs) if guard is None else simulated(guard, *args, **kwargs)

    return stand_in


def _reduced(value: Any) -> tuple[Any, ...]:
    """Pickle an instance of a real class while its name leads to the stand-in: by that name, which leads back later."""
    _, *rest = value.__reduce_ex__(4)
    return (_NAMED[type(value)], *rest)


_NAMED: dict[type, type] = {
    _real_datetime: SimulatedDatetime,
    _real_date: SimulatedDate,
    random.Random: SimulatedRandom,
}
#: For `copyreg.dispatch_table`, while the stand-ins are in place.
REDUCERS: dict[type, Callable[[Any], tuple[Any, ...]]] = dict.fromkeys(_NAMED, _reduced)


def table() -> Iterator[tuple[types.ModuleType, str, Any, Any]]:
    """Every (module, name, real, stand-in); names that this platform lacks are left out."""
    for module, name, simulated in _STAND_INS:
        real = getattr(module, name, None)
        if real is not None:
            yield module, name, real, _stand_in_for(real, simulated)
    yield from files.table()
    yield from sockets.table()
    yield from temporary.table()
    yield datetime_module, "datetime", _real_datetime, SimulatedDatetime
    yield datetime_module, "date", _real_date, SimulatedDate
    yield random, "Random", random.Random, SimulatedRandom
