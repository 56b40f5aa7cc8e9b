"""Interruptions: what is done to the world, and where it strikes. Pure data; a world carries them out.

A `Site` names a place by what happens there, never by a global count, so that the same interruption means the same thing
in the simulated and in the process world and in a replay:

- `barrier`: request number `nth` (from 1) of call `op` reaches `received`, `applied` or `replied`; without `op`, request
  number `nth` of any call, counted from when the interruption was armed. Where `op` is an approval it is the desk that is
  asked whether the approver may decide (`received`, `replied`): somebody holds what was approved, and has not sent it;
- `ack`: the kit has just been answered `verb` (`start`, `signal`, `decide`, `cancel`, `pause`, `unpause`);
- `waiting`: a status shows the run waiting on `op`'s signal or decision, or (for a sleep) its timer has been running a while;
- `end`: a status shows the run terminal;
- `boundary` (simulated world only): storage boundary number `nth` of unit `unit` (write, sync, …; see simkit.disk);
- `time`: `ns` after the start was asked.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any, Literal, get_args

import attrs

from scenarios.plan import Plan

Action = Literal[
    "kill",  # SIGKILL to the unit at once; restarted by the kit, after `ns`. At a barrier's request 0: at every one (poison)
    "power",  # as kill, and unsynced data of the unit's disk is lost (simulated world)
    "drop",  # the reply is never sent, the connection stays open
    "reset",  # the connection is reset instead of the reply
    "delay",  # the reply waits `ns`
    "error-before",  # 503 and nothing applied
    "error-after",  # applied, then 503
    "leave",  # the worker (`arg` other: the one beside it) is asked to leave (SIGTERM), after `ns`; then another is started
    "pause",  # stop the worker, start a second one, continue the first after `ns`
    "lose-ack",  # the kit throws the answer away and asks again; at the end: that of the first status that shows it
    "repeat",  # the kit asks the same thing again, same ids
    "early",  # op's signal is sent and answered while a call before its wait is held
    "cancel",  # the kit asks for the run to be cancelled
    "halt",  # the kit asks for the run to be paused, and to go on after `ns`
    "steer",  # two directions, in order, for what `target` is to be asked
    "deny",  # the decision is no
    "forge",  # somebody without authority says yes, and then no, before anybody decides
    "revoke",  # approved, then the approver's authority is withdrawn; given back after `ns`
    "late-decision",  # the decision comes only once its validity has passed
    "cross",  # yes and no, under two ids, one after the other
    "stale-decision",  # `target` is steered meanwhile, then decided by the old digest, then by the new
    "unmatched",  # a signal that nothing waits for
    "late-signal",  # a signal more, of a known name; where its wait is on: its own, `ns` after the time of the wait is over
    "misuse",  # the same id is started again with another plan
    "forget",  # kill the engine; when it comes up again its audit trail is gone
    "deploy",  # kill the unit, and start it with the code of version `arg`; not the worker: for `ns`
    "second",  # another worker under the same name, beside the living one, with the code of version `arg` where it is given
    "jump",  # the unit's wall clock jumps by `ns`, backwards when negative
    "full",  # the unit's disk is full for `ns`
    "eio",  # the write or sync at the boundary fails, once; or the next operation of kind `arg` (simulated world)
    "flip",  # kill the unit, flip one bit of its largest state file, start it
    "wipe",  # kill the worker, empty its state folder
    "crowd",  # `arg` other runs are started at once
    "notice",  # a receiver's word that `target`'s effect happened: after `ns`, twice, and one that belongs nowhere
    "expire",  # as drop, and the receiver forgets the key at once
]
ACTIONS: tuple[Action, ...] = get_args(Action)
#: Actions that touch only what the kit asks; they give a harness no reason to repeat a call.
ASKING_ACTIONS: frozenset[Action] = frozenset(
    {
        "repeat", "early", "lose-ack", "cancel", "halt", "steer", "deny", "forge", "revoke", "late-decision", "cross",
        "stale-decision", "unmatched", "late-signal", "misuse", "notice",
    }
)  # fmt: skip
#: The verb beyond those every target has without which an action cannot be carried out.
VERBS_OF: Mapping[Action, tuple[str, ...]] = {
    "cancel": ("cancel",),
    "halt": ("pause", "unpause"),
    "leave": ("leave",),
    **dict.fromkeys(("deny", "forge", "revoke", "late-decision", "cross"), ("decide",)),
    "stale-decision": ("decide", "signal"),
    **dict.fromkeys(("steer", "notice", "unmatched", "late-signal"), ("signal",)),
}
#: Verbs that every target has had to answer, from the beginning.
BASIC_VERBS = ("start", "status", "signal", "resume")
#: Actions that a simulated world can always carry out, and a real one only to units that allow for it, if at all.
SIMULATED_ACTIONS: frozenset[Action] = frozenset({"power", "jump", "full", "eio"})
#: Actions for which two workers must be able to share one store.
SHARING_ACTIONS: frozenset[Action] = frozenset({"pause", "second"})
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
    ns: int = 0  # how long, for delay and pause; how long a killed unit stays down; how much later a worker is to leave; by how
    # much a clock jumps
    then: Interruption | None = None
    state: str | None = None  # for power: what the disk is left with, a `CrashState.code`; None: as the tape says
    target: str | None = None  # the operation that is steered, or whose effect is noticed
    arg: str | None = (
        None  # the version deployed, the size of the crowd, the kind of operation that fails, who is to leave
    )

    @property
    def label(self) -> str:
        label = f"{self.action}@{self.site.label}"
        if self.site.where != "boundary" and self.site.unit != "worker":
            label += f"({self.site.unit})"
        if self.target is not None:
            label += f">{self.target}"
        if self.arg is not None:
            label += f"={self.arg}"
        if self._tells_ns:
            label += f"~{self.ns}ns"
        if self.state is not None:
            label += f"[{self.state}]"
        return f"{label}+{self.then.label}" if self.then else label

    @property
    def _tells_ns(self) -> bool:
        """Is `ns` part of the name? Where one place is struck for several lengths of time."""
        return self.action in {"kill", "power", "jump", "leave"} and self.ns != 0

    def chain(self) -> tuple[Interruption, ...]:
        """This one and every `then`, in order."""
        return (self, *(self.then.chain() if self.then else ()))

    def to_json(self) -> dict[str, Any]:
        return {
            "action": self.action,
            "site": attrs.asdict(self.site),
            "ns": self.ns,
            "then": self.then.to_json() if self.then else None,
            **{name: value for name in _OPTIONAL if (value := getattr(self, name)) is not None},
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Interruption:
        then = data.get("then")
        follows = cls.from_json(then) if then else None
        return cls(
            data["action"],
            Site(**data["site"]),
            data.get("ns", 0),
            follows,
            **{name: data.get(name) for name in _OPTIONAL},
        )


#: A world of real processes that can do nothing beyond killing, stopping, files and questions.
NOTHING_MORE: Mapping[Action, Collection[str]] = MappingProxyType({})


def fits(
    one: Interruption,
    *,
    verbs: Collection[str] = BASIC_VERBS,
    units: Collection[str] = ("worker",),
    simulated: bool = False,
    workers: bool = False,
    real: Mapping[Action, Collection[str]] = NOTHING_MORE,
) -> bool:
    """Can this interruption, and all that follows it, be carried out on a target with these verbs and units? `real`: which of
    the `SIMULATED_ACTIONS` can be carried out for real, and on which units.
    """
    return all(
        set(VERBS_OF.get(link.action, ())) <= set(verbs)
        and (link.site.where != "ack" or link.site.verb in verbs)
        and link.site.unit in {"worker", *units}
        and (simulated or _is_real(link, real))
        and (workers or link.action not in SHARING_ACTIONS)
        and (link.action != "forget" or "engine" in units)
        and (link.action != "leave" or link.site.unit == "worker")
        for link in one.chain()
    )


def _is_real(link: Interruption, real: Mapping[Action, Collection[str]]) -> bool:
    """Can real processes suffer it?"""
    if link.site.where == "boundary":
        return False
    return link.action not in SIMULATED_ACTIONS or link.site.unit in real.get(link.action, ())


_OPTIONAL = ("state", "target", "arg")  # written only where they are given
_ACTION_OF = re.compile(r"(?:^|\+)([a-z-]+)@")


def actions_of(label: str) -> tuple[str, ...]:
    """The actions of a whole chain, read from its label."""
    return tuple(_ACTION_OF.findall(label))


@attrs.frozen
class Scenario:
    """A plan and what happens to it. `name` is stable and unique in a tier, e.g. `chain/kill@b#1.applied`."""

    name: str
    plan: Plan
    interruptions: tuple[Interruption, ...] = ()
