"""Named points in a program: places to break it on purpose, and places that say what must hold there.

- `maybe("name")` is True now and then, in runs that switch it on: put what is legal and rare behind it (a retry, a tiny
  batch, an early return). After FoundationDB's BUGGIFY;
- `always`, `unreachable` must hold each time, `sometimes`, `reachable` at least once in a campaign. After Antithesis;
- `eventually` turns every fault off, then waits, within a bound;
- each of them is also a place to strike at: `world.points.at("name", action)`, `world.points.out_of_memory_at("name")`,
  `world.points.memory_error_at("name")`.

Outside a simulation `maybe` is False and the others do nothing, so that a program keeps them in production. Their counts
are in `Outcome.points`; `Coverage` adds up those of many runs, and names the points of `declared(…)` that none has hit.
"""

from __future__ import annotations

import inspect
import sys
import weakref
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Literal, NoReturn

import attrs

from simkit._options import need_ratio, need_whole
from simkit._storage.faults import NEVER, Ratio
from simkit.process import ProcessDead, current_process

if TYPE_CHECKING:
    from simkit.world import World

__all__ = [
    "PointCount",
    "PointError",
    "Points",
    "always",
    "eventually",
    "maybe",
    "reachable",
    "sometimes",
    "unreachable",
]

PointKind = Literal["maybe", "always", "sometimes", "reachable", "unreachable", "eventually"]
#: In so many runs of so many is a `maybe` switched on at all.
SWITCHED_ON: Ratio = (1, 2)
_POINTS_MAX = 10_000
_POLL_NS = 10_000_000
_WITHIN_NS = 60_000_000_000


class PointError(AssertionError):
    """What must hold at a named point does not. The run fails by it also when the program swallows it."""

    def __init__(self, name: str, what: str, where: str) -> None:
        super().__init__(name, what, where)
        self.name = name

    def __str__(self) -> str:
        name, what, where = self.args
        return f"{name}: {what}, at {where}"


@attrs.frozen
class PointCount:
    """How often a point was reached, and how often it held: `maybe` said True, the condition was true."""

    kind: PointKind
    reached: int
    held: int
    where: str  # file:line of the first time

    @property
    def hit(self) -> bool:
        """Whether it did what it is there for at least once."""
        return bool(self.reached if self.kind in {"always", "reachable", "unreachable"} else self.held)


@attrs.define
class _Tally:
    kind: PointKind
    where: str
    reached: int = 0
    held: int = 0


@attrs.frozen
class _Strike:
    """Something to do the `nth` time that a point is reached, on `host` when given."""

    nth: int
    host: str | None
    action: Callable[[], object]


class Points:
    """The named points of one world: what was counted, what strikes where."""

    def __init__(self, world: World) -> None:
        self._out_of_memory: Ratio = NEVER
        self._memory_errors: Ratio = NEVER
        self._pressed = False
        #: What did not hold.
        self.violations: list[PointError] = []
        self._world: World = weakref.proxy(world)  # no cycle, or it would take a collection to free a world
        self._stream = world.tape.stream("points")
        self._tallies: dict[str, _Tally] = {}
        self._switches: dict[str, bool] = {}
        self._strikes: dict[str, list[_Strike]] = {}
        self._visits: dict[tuple[str, str | None], int] = {}
        self._calm = world.is_calm
        #: Whether an open tape may strike.
        self._open = self._stream.open and not world.is_calm

    @property
    def out_of_memory(self) -> Ratio:
        """How often a process that reaches a point, any point, is killed there as by the OOM killer."""
        return self._out_of_memory

    @out_of_memory.setter
    def out_of_memory(self, often: Ratio) -> None:
        need_ratio("Points.out_of_memory", often)
        self._out_of_memory = often
        self._pressed = self._out_of_memory[0] > 0 or self._memory_errors[0] > 0

    @property
    def memory_errors(self) -> Ratio:
        """How often a process that reaches a point, any point, meets a MemoryError there: it has no room for more."""
        return self._memory_errors

    @memory_errors.setter
    def memory_errors(self, often: Ratio) -> None:
        need_ratio("Points.memory_errors", often)
        self._memory_errors = often
        self._pressed = self._out_of_memory[0] > 0 or self._memory_errors[0] > 0

    def at(self, name: str, action: Callable[[], object], *, nth: int = 1, host: str | None = None) -> None:
        """Call `action` the `nth` time that point `name` is reached (by a process of `host`).

        When it kills the process that is there, the code goes no further.
        """
        need_whole("Points.at: nth", nth, 1)
        self._strikes.setdefault(name, []).append(_Strike(nth, host, action))

    def out_of_memory_at(self, name: str, *, nth: int = 1, host: str | None = None) -> None:
        """Kill the process that reaches point `name` for the `nth` time, as the OOM killer does."""
        self.at(name, self._kill_current, nth=nth, host=host)

    def memory_error_at(self, name: str, *, nth: int = 1, host: str | None = None) -> None:
        """Raise MemoryError in whoever reaches point `name` for the `nth` time, as when there is no room for more."""
        self.at(name, self._fail_to_allocate, nth=nth, host=host)

    def calm(self) -> None:
        """No `maybe` fires from now on, and nothing strikes."""
        self._calm = True
        self._open = False
        self.out_of_memory = self.memory_errors = NEVER
        self._strikes.clear()

    def counts(self) -> dict[str, PointCount]:
        """The counts so far, by name, in the order of the first time."""
        return {
            name: PointCount(tally.kind, tally.reached, tally.held, tally.where)
            for name, tally in self._tallies.items()
        }

    # ---- for the functions of this module

    def fires(self, name: str, num: int, den: int) -> bool:
        """Whether a `maybe` is True this time."""
        if not 0 <= num <= den or not den:
            need_ratio(f"maybe({name!r})", (num, den))
        tally = self._tally("maybe", name)
        tally.reached += 1
        self._strike(name)
        if self._calm:
            return False
        if not (self._stream.fault(f"maybe:{name}") if self._open else self._drawn(name, num, den)):
            return False
        tally.held += 1
        self._world.trace.record("point", "maybe", name)
        return True

    def check(self, kind: PointKind, name: str, *, holds: bool, must: bool) -> None:
        """Count a point; one that must hold and does not is a violation."""
        tally = self._tally(kind, name)
        tally.reached += 1
        tally.held += holds
        journal = self._world.tape.journal
        if journal is not None and holds:
            process = current_process()
            journal.holds(name, "" if process is None else process.host.name)
        self._strike(name)
        if must and not holds:
            self.violated(kind, name)

    def violated(self, kind: PointKind, name: str) -> NoReturn:
        """Note a violation, and raise it."""
        what = "reached what must be unreachable" if kind == "unreachable" else f"{kind} does not hold"
        error = PointError(name, what, _caller())
        self.violations.append(error)
        self._world.trace.record("point", "violated", name)
        raise error

    def _drawn(self, name: str, num: int, den: int) -> bool:
        on = self._switches.get(name)
        if on is None:
            on = self._switches[name] = self._stream.chance(f"switch:{name}", *SWITCHED_ON)
        return on and self._stream.chance(f"maybe:{name}", num, den)

    def _tally(self, kind: PointKind, name: str) -> _Tally:
        tally = self._tallies.get(name)
        if tally is None:
            if len(self._tallies) >= _POINTS_MAX:
                raise ValueError(f"more than {_POINTS_MAX} named points: a name must not hold numbers that change")
            tally = self._tallies[name] = _Tally(kind, _caller())
        elif tally.kind != kind:
            raise ValueError(f"the point {name!r} is {tally.kind} at {tally.where}, and {kind} at {_caller()}")
        return tally

    def _strike(self, name: str) -> None:
        strikes = self._strikes.get(name)
        if not strikes and not self._pressed and not self._open:
            return
        num, den = self._out_of_memory
        process = current_process()
        if strikes:
            for strike in self._due(name, strikes):
                strike.action()
        possible = process is not None and (num > 0 or self._open)
        if process is not None and possible and self._stream.chance(f"oom:{process.host.name}", num, den):
            self._kill_current()
        if process is not None and not process.alive:
            raise ProcessDead(f"{process.label} was killed at {name}")
        num, den = self._memory_errors
        if process is not None and num > 0 and self._stream.chance(f"memory-error:{process.host.name}", num, den):
            self._fail_to_allocate()

    def _due(self, name: str, strikes: list[_Strike]) -> list[_Strike]:
        process = current_process()
        here = None if process is None else process.host.name
        due = []
        for host in dict.fromkeys(strike.host for strike in strikes if strike.host in {None, here}):
            visit = self._visits[name, host] = self._visits.get((name, host), 0) + 1
            due += [strike for strike in strikes if strike.host == host and strike.nth == visit]
        for strike in due:
            strikes.remove(strike)
        return due

    def _fail_to_allocate(self) -> NoReturn:
        process = current_process()
        self._world.trace.record("memory-error", "" if process is None else process.label)
        raise MemoryError("no room for more, says the simulation")

    def _kill_current(self) -> None:
        process = current_process()
        if process is not None:
            self._world.trace.record("out-of-memory", process.label)
            process.kill()


_current: World | None = None


def begin(world: World) -> Callable[[], None]:
    """Let the points of this module be those of `world` until what this returns is called."""
    global _current  # there is one simulation at a time
    before, _current = _current, world

    def end() -> None:
        global _current  # noqa: PLW0603
        _current = before

    return end


def current_world() -> World | None:
    """The world whose simulation is running; None outside one."""
    return _current


def maybe(name: str, num: int = 1, den: int = 4) -> bool:
    """Return True in `num` of `den` times, in runs that switch this point on (half of them); else, and outside, False."""
    return False if _current is None else _current.points.fires(name, num, den)


def always(name: str, condition: object) -> None:
    """`condition` must be true whenever this is reached."""
    if _current is not None:
        _current.points.check("always", name, holds=bool(condition), must=True)


def sometimes(name: str, condition: object) -> None:
    """`condition` should be true at least once in a campaign."""
    if _current is not None:
        _current.points.check("sometimes", name, holds=bool(condition), must=False)


def reachable(name: str) -> None:
    """This line should be reached at least once in a campaign."""
    if _current is not None:
        _current.points.check("reachable", name, holds=True, must=False)


def unreachable(name: str) -> None:
    """This line must never be reached."""
    if _current is not None:
        _current.points.check("unreachable", name, holds=False, must=True)


async def eventually(
    name: str,
    condition: Callable[[], bool] | Callable[[], Awaitable[bool]],
    *,
    within_ns: int = _WITHIN_NS,
    every_ns: int = _POLL_NS,
) -> None:
    """Turn all faults off (`World.calm`), then wait until `condition()` is true: at most `within_ns` of virtual time.

    It is asked every `every_ns`; an async condition may ask the program itself. Raises `PointError` when time is up.
    """
    world = _current
    if world is None:
        return
    need_whole("eventually: every_ns", every_ns, 1)
    need_whole("eventually: within_ns", within_ns, 0)
    world.calm()
    deadline_ns = world.now_ns + within_ns
    while True:
        answer = condition()
        holds = await answer if inspect.isawaitable(answer) else answer
        if holds or world.now_ns >= deadline_ns:
            world.points.check("eventually", name, holds=bool(holds), must=True)
            return
        await world.sleep_ns(min(every_ns, deadline_ns - world.now_ns))


def _caller() -> str:
    """File and line of the program's own frame."""
    frame = sys._getframe(1)  # noqa: SLF001  # what inspect.currentframe calls, without its detours
    while frame.f_back is not None and frame.f_globals.get("__name__") == __name__:
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
