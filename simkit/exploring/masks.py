"""Swarm masks: which faults a run has, and how often each; most are off, the rest at wild weights.

A mask is drawn fault by fault and host by host when the run first comes by such a site, so that hosts may appear at any time.
After A. Groce and others, "Swarm Testing", ISSTA 2012, as `simkit.swarm`, which sets the options of a world instead.
"""

from __future__ import annotations

from simkit.exploring.kinds import Without, kind_of
from simkit.tape import OPEN, Tape

__all__ = ["SwarmMask"]

Ratio = tuple[int, int]
_NEVER: Ratio = (0, 1)
_RATIOS: tuple[Ratio, ...] = (_NEVER, (1, 1000), (1, 100), (1, 10))
_WEIGHTS = (6, 2, 2, 1)
#: In so many of the runs nothing strikes at all: the schedule alone is to be seen.
_QUIET = (3, 1)
#: How many crashes a run has at most, so that it can come to an end; how often it stands still; how many other faults.
_CRASHES = (1, 2, 3, 5)
_STANDSTILLS = (1, 2, 3)
_FAULTS_MAX = 100
_LONG = tuple(OPEN + what for what in ("stuck", "clog", "stall", "pause"))
_STATE = f"{OPEN}state"


class SwarmMask:
    """The mask number `seed`."""

    def __init__(self, seed: int, without: Without) -> None:
        self._stream = Tape.from_seed(seed).stream("mask")
        self._without = without
        self._ratios: dict[tuple[str, str], Ratio] = {}
        self._quiet = self._stream.choose("quiet", 2, _QUIET) == 1
        self._crashes_left = _CRASHES[self._stream.choose("crashes", len(_CRASHES))]
        self._standstills_left = _STANDSTILLS[self._stream.choose("standstills", len(_STANDSTILLS))]
        self._faults_left = _FAULTS_MAX

    def ratio(self, label: str, site_key: str) -> Ratio:
        """How often a fault strikes at such a site."""
        what = site_key.partition(":")[0]
        found = self._ratios.get((label, what))
        if found is None:
            found = self._ratios[label, what] = self._drawn(label, what)
        return found

    def allows(self, label: str, site_key: str, value: int) -> bool:
        """Whether one that was drawn may strike; if so, it counts."""
        if kind_of((label, site_key, 0), value) in self._without:
            return False
        if site_key == _STATE:
            return True
        if label.startswith("crash/") or site_key.startswith(f"{OPEN}oom"):
            self._crashes_left -= 1
            return self._crashes_left >= 0
        if site_key.startswith(_LONG):
            self._standstills_left -= 1
            return self._standstills_left >= 0
        self._faults_left -= 1
        return self._faults_left >= 0

    def _drawn(self, label: str, what: str) -> Ratio:
        if self._quiet:
            return _NEVER
        if what == _STATE:  # the rest of a crash that has struck
            return (3, 4)
        name = "crash" if label.startswith("crash/") else what
        return _RATIOS[self._stream.choose(f"{label}:{name}", len(_RATIOS), _WEIGHTS)]
