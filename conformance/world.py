"""What the driver needs of a world, and what it must know of a target; no I/O of its own.

Bounds, Patience  how long to wait, and for how long one has waited
Subject           which units and declarations a target has
World, Unit       launched, killed and paused by the two implementations in `conformance.worlds`
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

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


class Patience:
    """Counts from the last disturbance: a run must settle within `settle_ns` of it."""

    def __init__(self, bounds: Bounds, now_ns: Callable[[], int]) -> None:
        self._settle_ns, self._now_ns = bounds.settle_ns, now_ns
        self._disturbed_ns = now_ns()

    def disturb(self) -> None:
        self._disturbed_ns = self._now_ns()

    def within(self, times: int) -> bool:
        """Whether no more than `times` bounds have passed."""
        return self._now_ns() - self._disturbed_ns <= times * self._settle_ns


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

    async def pause(self) -> None: ...
    async def resume(self) -> None: ...
    def last_words(self) -> str:
        """The end of its error output."""


class World(Protocol):
    """Where a target runs."""

    def now_ns(self) -> int: ...
    def nonce(self) -> str: ...
    @property
    def stormy(self) -> bool:
        """Whether the world's own faults are on (simulated world only): nothing has to be reached before they are off."""

    async def sleep_ns(self, ns: int) -> None: ...
    def serving(self, outside: Outside, gate: Gate) -> AbstractAsyncContextManager[None]:
        """In this block the target's calls reach `outside`, through `gate`."""

    async def launch(self, unit: str, incarnation: int) -> Unit:
        """Start a unit; its control channel, if it has one, is ready."""

    def watch_boundary(self, unit: str, nth: int, strike: Callable[[], None]) -> None:
        """Call `strike` as the unit's host is about to pass its `nth` storage boundary (simulated world only)."""
