"""The wall clock of a host: off by a skew, drifting, jumping, in a time zone of its own.

It is what `time.time`, `datetime.now` and SQLite's `CURRENT_TIMESTAMP` read in the processes of that host. Monotonic
clocks, sleeps and deadlines are never affected, as on a real machine whose clock is set. A new clock is right, in UTC.
"""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING

from simkit._guard import zones
from simkit._options import need_whole
from simkit.errors import wrong

if TYPE_CHECKING:
    from simkit.world import World

__all__ = ["EPOCH_NS", "HostClock"]

#: Unix time at which every world begins: 2026-01-01 00:00 UTC.
EPOCH_NS = 1_767_225_600_000_000_000
_BILLION = 1_000_000_000
#: A clock that gains or loses half the time is as wrong as anything needs to be, and still runs forward.
_DRIFT_PPB_MAX = 500_000_000
#: How wrong a clock is drawn at most, and which quarters of that, the default first.
_SKEW_NS = 500_000_000
_DRIFT_PPB = 200_000
_PARTS = (0, 1, -1, 4, -4)
#: Sizes of drawn jumps, the default first: small ones (an NTP step), an hour (a zone's mistake), a day.
_JUMPS_NS = (0, 20_000_000, 2 * _BILLION, 3600 * _BILLION, 86_400 * _BILLION)
_JUMP_WEIGHTS = (4, 4, 4, 2, 1)


class HostClock:
    """One host's wall clock; true time is `EPOCH_NS` plus the world's virtual time."""

    __slots__ = ("_ahead_ns", "_drift_ppb", "_host", "_since_ns", "_world", "_zone")

    def __init__(self, world: World, host: str) -> None:
        self._zone: datetime.tzinfo = datetime.UTC
        self._world = world
        self._host = host
        self._ahead_ns = 0
        self._drift_ppb = 0
        self._since_ns = 0

    @property
    def zone(self) -> datetime.tzinfo:
        """What is local time: `time.localtime`, `datetime.now()` and other moments without a zone. Any tzinfo."""
        return self._zone

    @zone.setter
    def zone(self, zone: datetime.tzinfo) -> None:
        if not isinstance(zone, datetime.tzinfo):
            raise wrong("Host.clock.zone", zone, "a tzinfo, e.g. zoneinfo.ZoneInfo('Europe/Berlin')")
        zones.mind_hosts()
        self._zone = zone

    @property
    def now_ns(self) -> int:
        """Unix time as this host believes it to be."""
        return EPOCH_NS + self._world.now_ns + self.skew_ns

    @property
    def skew_ns(self) -> int:
        """How far it is ahead of true time, or behind when negative."""
        if not self._drift_ppb:
            return self._ahead_ns
        return self._ahead_ns + (self._world.now_ns - self._since_ns) * self._drift_ppb // _BILLION

    @property
    def drift_ppb(self) -> int:
        """How many nanoseconds it gains in a second."""
        return self._drift_ppb

    def jump(self, ns: int) -> None:
        """Set the clock forward by `ns`, or back when negative."""
        self._set(self.skew_ns + ns, self._drift_ppb)

    def adjust(self, *, skew_ns: int | None = None, drift_ppb: int | None = None) -> None:
        """Let it be ahead by `skew_ns` from now on, and gain `drift_ppb` nanoseconds in a second."""
        self._set(self.skew_ns if skew_ns is None else skew_ns, self._drift_ppb if drift_ppb is None else drift_ppb)

    def draw(self, *, skew_ns_max: int = _SKEW_NS, drift_ppb_max: int = _DRIFT_PPB) -> None:
        """Draw a skew and a drift from the tape, either way up to these."""
        stream = self._world.tape.stream(f"clock/{self._host}")
        skew, drift = stream.choose("skew", 5, (4, 1, 1, 1, 1)), stream.choose("drift", 5, (4, 1, 1, 1, 1))
        self._set(_PARTS[skew] * skew_ns_max // 4, _PARTS[drift] * drift_ppb_max // 4)

    def strike(self) -> None:
        """Be as wrong from the beginning as an open tape says: skew up to half a second, drift up to 200 ppm, either way."""
        stream = self._world.tape.stream(f"clock/{self._host}")
        skew, drift = stream.fault("skew", (1, 2, 3, 4)), stream.fault("drift", (1, 2, 3, 4))
        if skew or drift:
            self._set(_PARTS[skew] * _SKEW_NS // 4, _PARTS[drift] * _DRIFT_PPB // 4)

    def draw_jump(self) -> int:
        """Draw a jump from the tape, make it, and return its size; 0 when there was none."""
        stream = self._world.tape.stream(f"clock/{self._host}")
        size_ns = _JUMPS_NS[stream.choose("jump", len(_JUMPS_NS), _JUMP_WEIGHTS)]
        if size_ns and stream.choose("back", 2):
            size_ns = -size_ns
        if size_ns:
            self.jump(size_ns)
        return size_ns

    def calm(self) -> None:
        """Put it right, as a time service would: no skew and no drift. The zone stays."""
        if self._ahead_ns or self._drift_ppb:
            self._set(0, 0)

    def _set(self, ahead_ns: int, drift_ppb: int) -> None:
        need_whole("Host.clock: nanoseconds", ahead_ns)
        need_whole("Host.clock: drift_ppb", drift_ppb)
        if abs(drift_ppb) > _DRIFT_PPB_MAX:
            expected = f"at most {_DRIFT_PPB_MAX} ns gained or lost in a second: a clock runs forward"
            raise wrong("Host.clock: drift_ppb", drift_ppb, expected, "Host.clock.jump sets a clock back")
        now_ns = self._world.now_ns
        if EPOCH_NS + now_ns + ahead_ns < 0:
            raise wrong(
                "Host.clock: nanoseconds",
                ahead_ns,
                f"a time from 1970 on; the clock of {self._host} would stand before",
            )
        self._ahead_ns, self._drift_ppb, self._since_ns = ahead_ns, drift_ppb, now_ns
        self._world.trace.record("wall-clock", self._host, ahead_ns, drift_ppb)
