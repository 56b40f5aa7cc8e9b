"""The crew: the units of one run, and the operator who starts again what died, unless it is to stay down for a while.

Every coming and going is recorded here, once and in the order in which it became true.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from typing import TYPE_CHECKING

from scenarios.history import Died, Paused, Resumed, Started
from simkit.errors import ExitCode, Problem, SimkitError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.recorder import Recorder
    from conformance.world import Patience, Subject, Unit, World

#: A target that dies by itself more often than this in one run cannot be judged; over storage that is damaged, it has stopped.
EXITS_MAX = 3


class Crew:
    def __init__(self, world: World, subject: Subject, recorder: Recorder, patience: Patience) -> None:
        self._world, self._subject, self._recorder, self._patience = world, subject, recorder, patience
        self._units: dict[str, Unit] = {}
        self._stale: list[Unit] = []  # workers that were paused, and perhaps let go since
        self._seconds: list[Unit] = []  # workers beside the one that is asked
        self._down: set[str] = set()
        self._forgets: dict[str, str] = {}
        #: Which version of the code workers are started with; empty: nobody says.
        self.code = ""
        self._others: dict[str, str] = {}  # the same for other units
        self._doomed: set[int] = set()  # incarnations the kit has begun to kill
        self._leaving: set[int] = set()  # those that were asked to leave
        self._ended: set[int] = set()  # and those that ended by themselves
        self._excuses: dict[str, int] = {}  # units whose storage fails at the moment, by how many faults
        self._launched = self._stops = 0
        self._exits: Counter[str] = Counter()  # how often it ended by itself, by how it did
        #: Whether a unit's storage holds what nobody wrote: then it is right to stop over it.
        self.is_damaged = False

    @property
    def worker_name(self) -> str:
        return self._subject.units[-1]

    @property
    def worker(self) -> Unit | None:
        """The controlled unit; None while nobody has taken over from one that was paused."""
        return self._units.get(self.worker_name)

    def named(self, name: str) -> Unit | None:
        return self._units.get(name)

    def numbered(self, incarnation: int) -> Unit | None:
        """Any unit that was not replaced after its death, stale and second workers among them."""
        everyone = (*self._units.values(), *self._stale, *self._seconds)
        return next((unit for unit in everyone if unit.incarnation == incarnation), None)

    def beside(self, unit: Unit) -> Unit | None:
        """Another living worker than this one, if there is any."""
        others = (self.worker, *self._seconds)
        return next((one for one in others if one is not unit and self.lives(one)), None)

    def lives(self, unit: Unit | None) -> bool:
        """Whether there is such a unit, alive, with no kill on its way to it."""
        return unit is not None and unit.alive and unit.incarnation not in self._doomed

    @property
    def is_complete(self) -> bool:
        """Whether every unit is there and alive."""
        return all(self.lives(self._units.get(name)) for name in self._subject.units)

    @property
    def has_stopped(self) -> bool:
        """Whether the target has been started often enough since the damage, and ended each time: it will not go on."""
        return self._stops > EXITS_MAX

    @contextlib.contextmanager
    def excused(self, name: str) -> Iterator[None]:
        """In this block the unit's storage fails: that it ends over this is no fault of its own."""
        self._excuses[name] = self._excuses.get(name, 0) + 1
        try:
            yield
        finally:
            self._excuses[name] -= 1

    async def ensure_up(self) -> tuple[str, ...]:
        """Start whatever is not up and may be, in launch order; the names of the units started anew. What has stopped over its
        damaged storage is left alone.
        """
        started = []
        for other in [other for other in self._seconds if not other.alive]:
            await self._note_end(other)
            self._seconds.remove(other)
        for name in self._subject.units:
            unit = self._units.get(name)
            if name in self._down or (unit is not None and unit.alive):
                continue
            if unit is not None:
                await self._note_end(unit)
            if self.has_stopped or not await self._start(name):
                continue
            self._patience.disturb()
            started.append(name)
        return tuple(started)

    async def _start(self, name: str) -> bool:
        """Launch a unit; False when it refuses to come up over damaged storage. What the kit or its machine cannot do is no
        refusal.
        """
        try:
            self._units[name] = await self._launch(name)
        except SimkitError as error:
            if not self.is_damaged or error.problem.exit_code is ExitCode.INTERNAL:
                raise
            self._stops += 1
            return False
        return True

    async def second(self, code: str | None = None) -> Unit:
        """Start another worker under the same name beside the living one, of this code where it is given; nobody asks it
        anything, or starts it again.
        """
        unit = await self._launch(self.worker_name, code)
        self._seconds.append(unit)
        return unit

    def is_down(self, name: str) -> bool:
        """Whether a unit is being kept from coming back."""
        return name in self._down

    def keep_down(self, name: str) -> None:
        """Start this unit no more, until `bring_back`."""
        self._down.add(name)

    def bring_back(self, name: str) -> None:
        self._down.discard(name)

    def forget(self, name: str, what: str) -> None:
        """Let the next launch of a unit drop a part of its state."""
        self._forgets[name] = what

    def deploy(self, name: str, code: str) -> None:
        """Start a unit with this version of the code from its next launch on."""
        if name == self.worker_name:
            self.code = code
        else:
            self._others[name] = code

    async def _launch(self, name: str, code: str | None = None) -> Unit:
        self._launched += 1
        incarnation, told = self._launched, code
        if told is None:
            told = self.code if name == self.worker_name else self._others.get(name, "")
        is_born = False

        def born() -> None:  # recorded here: it may call services long before it answers the kit
            nonlocal is_born
            is_born = True
            self._recorder.add(Started(self._world.now_ns(), incarnation, name, told))

        try:
            return await self._world.launch(name, incarnation, code=told, forget=self._forgets.pop(name, ""), born=born)
        except SimkitError as error:
            if is_born:
                by_itself = error.problem.code == "worker-died-at-start"
                self._recorder.add(Died(self._world.now_ns(), incarnation, name, "exited" if by_itself else "killed"))
            raise

    async def kill(self, unit: Unit, *, power: bool = False, state: str | None = None) -> None:
        self._doomed.add(unit.incarnation)
        await unit.kill(power=power, state=state)
        self._recorder.add(Died(self._world.now_ns(), unit.incarnation, unit.name, "power" if power else "killed"))

    def ask_to_leave(self, unit: Unit) -> None:
        """Ask a living unit to leave; that it then ends is as it should be."""
        self._leaving.add(unit.incarnation)
        unit.ask_to_leave()

    async def has_left(self, unit: Unit) -> bool:
        """Whether a unit that was asked to leave is gone; how it went is on record then. Raises SimkitError where the request
        was its death.
        """
        if not unit.alive:
            await self._note_end(unit)
        return not self.lives(unit)

    async def pause(self, unit: Unit) -> None:
        """Stop a worker; the next `ensure_up` starts its successor."""
        await unit.pause()
        self._recorder.add(Paused(self._world.now_ns(), unit.incarnation))
        self._stale.append(unit)
        del self._units[unit.name]

    async def let_go(self, unit: Unit) -> None:
        """Continue a stale worker, unless it was killed meanwhile."""
        if self.lives(unit):
            # Told first: it may call while the system still carries the signal out, and is awake then.
            self._recorder.add(Resumed(self._world.now_ns(), unit.incarnation))
            await unit.resume()

    async def _note_end(self, unit: Unit) -> None:
        """Record a death the kit did not cause, once; too many make the target unjudgeable, unless its disk is to blame."""
        if unit.incarnation in self._doomed or unit.incarnation in self._ended:
            return
        self._ended.add(unit.incarnation)
        await unit.bury()
        if unit.incarnation in self._leaving:
            self._recorder.add(Died(self._world.now_ns(), unit.incarnation, unit.name, "left"))
            if not unit.left_in_order:
                raise SimkitError(self._died_of_the_request(unit))
            return
        if self.is_damaged:
            self._stops += 1
        elif not self._world.stormy and not self._excuses.get(unit.name):
            self._exits[unit.ending] += 1
        self._recorder.add(Died(self._world.now_ns(), unit.incarnation, unit.name, "exited"))
        if self._exits.total() > EXITS_MAX:
            how = ", ".join(f"{ending} × {n}" for ending, n in self._exits.most_common())
            raise SimkitError(
                Problem(
                    "worker-keeps-dying",
                    f"unit {unit.name} of {self._subject.name} ended by itself {self._exits.total()} times in one run "
                    f"({how}); its last words:"
                    + "".join(f"\n    {line}" for line in (unit.last_words() or "(none)").splitlines()),
                    f"unit {unit.name}, incarnation {unit.incarnation}",
                    "a unit that runs until it is killed",
                    "run the adapter by hand and read its error output",
                    ExitCode.TARGET,
                )
            )

    def _died_of_the_request(self, unit: Unit) -> Problem:
        return Problem(
            "leave-unheard",
            f"unit {unit.name} of {self._subject.name} was asked to leave by SIGTERM, and died of it",
            f"unit {unit.name}, incarnation {unit.incarnation}",
            "a worker that ends what it has begun and exits by itself: `leave` stands under [verbs] supported",
            "handle SIGTERM in the adapter, or take `leave` away from [verbs] supported",
            ExitCode.TARGET,
        )
