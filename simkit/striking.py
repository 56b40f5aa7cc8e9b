"""What an open tape strikes at the boundaries of one host, at each change of its disk and at each message: crashes, pauses.

A boundary is a site only while a process of the host is at work there (or alive, when a message arrives), and until the
world is calm. The site is `("crash/HOST", "!KIND:WHERE", occurrence)`; kinds and values are these:

    the kinds of `Boundary` (write, fsync, rename, …)   KILL, AFTER, TORN (a write), LOSE and STATE (something is unsynced)
    send       before a message leaves                  KILL, AFTER, LOSE and STATE, DARK
    deliver    before a message is there                KILL, LOSE and STATE, DARK

At a message the whole machine may also stand still for a while, as at a migration or a long collection of garbage: the site
`("process/HOST", "!pause:KIND", occurrence)`, with a number of `PAUSES_NS`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from simkit._storage.handle import Boundary, ProcessDead, Tear
from simkit.process import current_process

if TYPE_CHECKING:
    from simkit.host import Host

__all__ = ["AFTER", "DARK", "KILL", "KINDS", "LOSE", "PAUSES_NS", "STATE", "TORN", "Striker"]

#: All processes of the host are killed before it takes effect.
KILL = 1
#: They are killed once it has, before the next boundary of the host and before any other task goes on.
AFTER = 2
#: Only the first half of the write reaches the page cache, then they are killed.
TORN = 3
#: The power goes before it takes effect, and whatever was not synced is lost.
LOSE = 4
#: The power goes before it takes effect, into a state between all lost and all kept: the site "!state" says which.
STATE = 5
#: As LOSE, and nobody is told: its peers are left half open.
DARK = 6
#: By value, for people.
KINDS = {KILL: "kill", AFTER: "kill-after", TORN: "torn", LOSE: "power", STATE: "power-state", DARK: "dark"}
#: How long a machine stands still, by value.
PAUSES_NS = {1: 5_000_000_000, 2: 120_000_000_000}
#: Of how many states a power loss can choose, at most.
STATES_MAX = 16


class Striker:
    """Asks the tape at each boundary of a host, and carries out what it says."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._stream = host.world.tape.stream(f"crash/{host.name}")
        self._pauses = host.world.tape.stream(f"process/{host.name}")
        #: Whether it asks no more.
        self.is_calm = False
        self._doomed = False
        #: What it struck, and how often.
        self.fired: dict[str, int] = {}

    def calm(self) -> None:
        """Ask no more; what was struck already comes about."""
        self.is_calm = True

    def at_disk(self, boundary: Boundary) -> Tear | None:
        """Before a change of the disk: raise `ProcessDead` when it must not happen, give a tear when only a part of it."""
        if not self._at_work():
            return None
        writes = boundary.kind == "write" and boundary.size > 1
        struck = self._ask(f"{boundary.kind}:{boundary.path}", (KILL, AFTER, TORN) if writes else (KILL, AFTER))
        if struck == TORN:
            return Tear(boundary.size // 2, self._kill)
        self._carry_out(struck)
        return None

    def at_send(self, target: str) -> None:
        """Before a message leaves: raise `ProcessDead` when it must not."""
        if self._at_work():
            self._carry_out(self._ask(f"send:{target}", (KILL, AFTER), message=True))
            self._pause("send")

    def at_delivery(self, source: str) -> None:
        """Before a message is there; nobody's code runs now."""
        if self._host.processes and not self.is_calm:
            struck = self._ask(f"deliver:{source}", (KILL,), message=True)
            if struck:
                self._strike(struck)
            else:
                self._pause("deliver")

    def _at_work(self) -> bool:
        """Whether a process of the host is; one that was to die after the last boundary dies here."""
        process = current_process()
        if process is None or process.host is not self._host or not process.alive:
            return False
        if self._doomed:
            self._kill()
            raise ProcessDead(f"{process.label} was killed after its last boundary")
        return not self.is_calm

    def _ask(self, where: str, kills: tuple[int, ...], *, message: bool = False) -> int:
        host = self._host
        power = (LOSE, STATE) if host.has_disk and host.disk.unsynced else ()
        values = (*kills, *power, *((DARK,) if message else ()))
        struck = self._stream.fault(where, values)
        if struck:
            self._count(KINDS[struck])
            host.world.trace.record("crash", host.name, KINDS[struck], where)
        return struck

    def _carry_out(self, struck: int) -> None:
        if struck == AFTER:
            self._doomed = True
            self._host.world.kernel.call_soon(self._kill)
        elif struck:
            self._strike(struck)
            raise ProcessDead(f"{self._host.name} went down")

    def _strike(self, struck: int) -> None:
        if struck == KILL:
            self._kill()
        elif struck in {LOSE, DARK}:
            self._host.power_loss("lose", silent=struck == DARK)
        else:
            self._lose_some()

    def _lose_some(self) -> None:
        """Lose power into one of the states that are neither all kept nor all lost; all is lost when there is none."""
        found = [state for state in self._host.disk.crash_states(STATES_MAX + 2).states if state.decisions]
        lost = self._host.disk.durable_files()
        states = [state for state in found if state.files != lost][:STATES_MAX]
        choice = self._stream.fault("state", tuple(range(1, len(states))))
        self._host.power_loss(states[choice] if states else "lose")

    def _pause(self, kind: str) -> None:
        """Let the whole machine stand still from the next await of its processes, if the tape says so."""
        ns = PAUSES_NS.get(self._pauses.fault(f"pause:{kind}", tuple(PAUSES_NS)), 0)
        if ns:
            self._count("pause")
            self._host.world.trace.record("machine-pause", self._host.name, ns)
            for process in tuple(self._host.processes):
                process.stall(ns)

    def _count(self, what: str) -> None:
        self.fired[what] = self.fired.get(what, 0) + 1

    def _kill(self) -> None:
        self._doomed = False
        for process in tuple(self._host.processes):
            process.kill()
