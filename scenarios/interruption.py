"""Interruptions: what is done to the world, and where it strikes. Pure data; a world carries them out.

A `Site` names a place by what happens there, never by a global count, so that the same interruption means the same thing
in the simulated and in the process world and in a replay:

- `barrier`: request number `nth` (from 1) of call `op` reaches `received`, `applied` or `replied`; without `op`, request
  number `nth` of any call, counted from when the interruption was armed;
- `ack`: the kit has just been answered `verb` (`start`, `signal`);
- `waiting`: a status shows the run waiting on `op`'s signal, or (for a sleep) `op`'s timer has been running a while;
- `end`: a status shows the run terminal;
- `boundary` (simulated world only): storage boundary number `nth` of unit `unit` (write, sync, …; see simkit.disk);
- `time`: `ns` after the start was asked.
"""

from __future__ import annotations

from typing import Any, Literal

import attrs

from scenarios.plan import Plan

Action = Literal[
    "kill",  # SIGKILL to the unit at once; restarted by the kit
    "power",  # as kill, and unsynced data of the unit's disk is lost (simulated world)
    "drop",  # the reply is never sent, the connection stays open
    "reset",  # the connection is reset instead of the reply
    "delay",  # the reply waits `ns`
    "error-before",  # 503 and nothing applied
    "error-after",  # applied, then 503
    "pause",  # stop the worker, start a second one, continue the first after `ns`
    "lose-ack",  # the kit throws the answer away and asks again
    "repeat",  # the kit asks the same thing again, same ids
    "early",  # op's signal is sent and answered while a call before its wait is held
]
Where = Literal["barrier", "ack", "waiting", "end", "boundary", "time"]
Barrier = Literal["received", "applied", "replied"]


@attrs.frozen
class Site:
    where: Where
    op: str | None = None
    nth: int = 1
    barrier: Barrier | None = None
    verb: str | None = None
    ns: int = 0
    unit: str = "worker"

    @property
    def label(self) -> str:
        match self.where:
            case "barrier":
                return f"{self.op or '*'}#{self.nth}.{self.barrier}"
            case "ack":
                return f"ack:{self.verb}" + (f":{self.op}" if self.op else "")
            case "waiting":
                return f"waiting:{self.op}"
            case "boundary":
                return f"{self.unit}.boundary#{self.nth}"
            case "time":
                return f"t+{self.ns}ns"
            case "end":
                return "end"


@attrs.frozen
class Interruption:
    """One fault. `then` strikes only after this one has fired and the target is back (a second crash in recovery)."""

    action: Action
    site: Site
    ns: int = 0  # how long, for delay and pause
    then: Interruption | None = None
    state: str | None = None  # for power: what the disk is left with, a `CrashState.code`; None: as the tape says

    @property
    def label(self) -> str:
        label = f"{self.action}@{self.site.label}"
        if self.site.where != "boundary" and self.site.unit != "worker":
            label += f"({self.site.unit})"
        if self.state is not None:
            label += f"[{self.state}]"
        return f"{label}+{self.then.label}" if self.then else label

    def chain(self) -> tuple[Interruption, ...]:
        """This one and every `then`, in order."""
        return (self, *(self.then.chain() if self.then else ()))

    def to_json(self) -> dict[str, Any]:
        return {
            "action": self.action,
            "site": attrs.asdict(self.site),
            "ns": self.ns,
            "then": self.then.to_json() if self.then else None,
            **({} if self.state is None else {"state": self.state}),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Interruption:
        then = data.get("then")
        follows = cls.from_json(then) if then else None
        return cls(data["action"], Site(**data["site"]), data.get("ns", 0), follows, data.get("state"))


@attrs.frozen
class Scenario:
    """A plan and what happens to it. `name` is stable and unique in a tier, e.g. `chain/kill@b#1.applied`."""

    name: str
    plan: Plan
    interruptions: tuple[Interruption, ...] = ()
