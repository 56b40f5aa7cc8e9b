"""What the driver needs of a world, and what it must know of a target; no I/O of its own.

Bounds, Patience  how long to wait, and for how long one has waited
Pace              how long to wait between two looks
Subject           which units and declarations a target has
World, Unit       launched, killed and paused by the two implementations in `conformance.worlds`
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

import attrs

from scenarios.history import Declared

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

    from conformance.control import ControlChannel
    from simkit.services import Gate, Outside


@attrs.frozen
class Bounds:
    """How long the driver waits for what, in nanoseconds of the world's own clock."""

    settle_ns: int
    poll_ns: int
    ask_ns: int
    grace_ns: int  # after a stale worker was let go: time to do harm before the last look
    idle_ns: int = 0  # the longest between two looks at a run of which nothing is heard; 0: no longer than `poll_ns`


class Patience:
    """Counts from the last disturbance: a run must settle within `settle_ns` of it, and no time counts while it is held."""

    def __init__(self, bounds: Bounds, now_ns: Callable[[], int]) -> None:
        self._settle_ns, self._now_ns = bounds.settle_ns, now_ns
        self._disturbed_ns = now_ns()
        self._holds = 0

    def disturb(self) -> None:
        self._disturbed_ns = self._now_ns()

    def rested_ns(self) -> int:
        """How long nothing has been disturbed."""
        return self._now_ns() - self._disturbed_ns

    def within(self, times: int) -> bool:
        """Whether no more than `times` bounds have passed."""
        return self._holds > 0 or self._now_ns() - self._disturbed_ns <= times * self._settle_ns

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """In this block the run cannot be stuck: it is kept from going on, and begins anew afterwards."""
        self._holds += 1
        try:
            yield
        finally:
            self._holds -= 1
            self.disturb()


#: Endings of files in a state folder that are made anew at boot: damage to them is none.
REBUILT = ("-shm",)


@attrs.frozen
class Sighting:
    """Where a world looked for secrets: names of places, and `place:secret` for each that was found."""

    places: tuple[str, ...]
    found: tuple[str, ...] = ()


class Pace:
    """How long to wait between two looks: `poll_ns`, and twice as long after each that told nothing new, up to `idle_ns`."""

    def __init__(self, bounds: Bounds) -> None:
        self._least_ns, self._most_ns = bounds.poll_ns, max(bounds.poll_ns, bounds.idle_ns)
        self._wait_ns = self._least_ns
        self._last: object = None

    def after(self, told: object) -> int:
        """Nanoseconds to wait after a look that told this."""
        self._wait_ns = min(2 * self._wait_ns, self._most_ns) if told == self._last else self._least_ns
        self._last = told
        return self._wait_ns


@attrs.frozen
class Subject:
    """What the driver must know of a target."""

    name: str
    declared: Declared
    units: Sequence[str]  # in launch order, the controlled worker last
    resumes_on_request: bool
    bounds: Bounds


class Unit(Protocol):
    """One process of the target."""

    name: str
    incarnation: int
    control: ControlChannel | None

    @property
    def alive(self) -> bool: ...
    async def kill(self, *, power: bool, state: str | None = None) -> None:
        """Dead when this returns; raises when it did not die of it. `state`: what a power loss leaves on its disk (simulated
        world only).
        """

    def ask_to_leave(self) -> None:
        """SIGTERM: it goes on until it ends by itself."""

    @property
    def left_in_order(self) -> bool:
        """Whether it has ended by itself, and of no signal."""

    async def bury(self) -> None:
        """It has ended by itself: when this returns, so has every process that it left behind."""

    async def pause(self) -> None: ...
    async def resume(self) -> None: ...
    def jump(self, ns: int) -> bool:
        """Set the wall clock of its machine by so much, back where negative; False when nobody looks at it."""

    def full(self, on: bool) -> None:
        """Let its disk have no room left, or room again, also over restarts."""

    def flip(self) -> bool:
        """Turn over one bit of the largest file in the state folder of the dead unit; False when there is none."""

    def wipe(self) -> None:
        """Empty the state folder of the dead unit."""

    @property
    def ending(self) -> str:
        """How it has ended, in two or three words: by which exit code or signal."""

    def last_words(self) -> str:
        """The end of its error output."""


#: At each launch another number below `BATCHES`: how much of a history a harness may be fed at a time, 0: all there is. It must
#: make no difference.
REBATCH = "SIMKIT_REBATCH"
BATCHES = 3


#: Told that a unit has come into being.
Born: TypeAlias = "Callable[[], None]"


def unheard() -> None:
    """Nobody minds."""


class World(Protocol):
    """Where a target runs."""

    def now_ns(self) -> int: ...
    def spent_ns(self) -> int:
        """The time by which patience is measured: it does not go on while the machine stands still."""

    def nonce(self) -> str: ...
    @property
    def stormy(self) -> bool:
        """Whether the world's own faults are on (simulated world only): nothing has to be reached before they are off."""

    async def sleep_ns(self, ns: int) -> None: ...
    def serving(self, outside: Outside, gate: Gate) -> AbstractAsyncContextManager[None]:
        """In this block the target's calls reach `outside`, through `gate`."""

    async def launch(
        self, unit: str, incarnation: int, *, code: str = "", forget: str = "", born: Born = unheard
    ) -> Unit:
        """Start a unit; its control channel, if it has one, is ready. `code`: which version of the code it is to be,
        `forget`: what of its state it is to drop as it boots; both are told in its environment. `born` is called as it
        comes to be, before anything that it does can be seen; where launching fails after that, it has ended.
        """

    def entrust(self, names: Sequence[str]) -> Mapping[str, str]:
        """Make a value for each of these secrets, and hand them to every unit launched from here on."""

    def scan(self, secrets: Mapping[str, str]) -> Sighting:
        """Look for the values of `secrets` in all that the units have written."""

    def fires(self, label: str) -> None:
        """An interruption of this label takes place: told beside the trace, for a drawing of the run (simulated world only)."""

    def watch_boundary(self, unit: str, nth: int, strike: Callable[[], None]) -> None:
        """Call `strike` as the unit's host is about to pass its `nth` storage boundary (simulated world only)."""

    def fail_once(self, unit: str, nth: int, strike: Callable[[], bool], *, kind: str | None = None) -> None:
        """Ask `strike` as the unit's host is about to pass its `nth` storage boundary; where it says so, the operation
        there fails with EIO, or the next of that `kind` (`fsync`, …; simulated world only).
        """
