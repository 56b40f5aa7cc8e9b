"""Whether the runs of a campaign came to anything: did interruptions strike, was any service ever called, and are plans carried
out where nothing disturbs them?
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from scenarios.ability import shortfall
from scenarios.history import Fired, Received
from scenarios.index import look
from scenarios.operation import RESERVED_SERVICES, SEMANTICS

if TYPE_CHECKING:
    from collections.abc import Collection

    from conformance.campaign.judged import Judged

#: Promises about keys that were sent: where none is, they cannot be put to the test.
_ABOUT_KEYS = frozenset({"EFF-2", "EFF-3"})
#: The promise about timers: to be struck in time it takes a machine that is quick enough.
_TIMERS = "SCH-1"
_SLOW = "this machine was too slow for it, or too busy; try again when it has less to do"
#: Services that a request brings a key to; the store knows an upload by its place.
_KEYED = frozenset(name for name, promised in SEMANTICS.items() if promised == "keyed") - RESERVED_SERVICES


@attrs.define
class Vitality:
    """Counts runs, and those that were struck and that called a service."""

    runs: int = 0
    struck: int = 0
    missed: int = 0  # in which something was to strike, and nothing did
    called: int = 0
    keyless: int = 0  # that called services which honour keys, and sent none
    keyed: int = 0  # that sent a key
    late: list[str] = attrs.field(factory=list)  # kills and stops that were to meet a timer and came after its end
    unable: list[str] = attrs.field(factory=list)  # undisturbed runs that fell short of their plans, in words

    def add(self, judged: Judged) -> None:
        self.runs += 1
        self.struck += bool(judged.fired)
        self.missed += bool(judged.unfired and not judged.fired)
        if is_undisturbed(judged) and judged.history is not None and (words := shortfall(judged.history)):
            self.unable.append(f"{judged.scenario} {words}")
        self.late += _came_too_late(judged)
        events = judged.history.events if judged.history is not None else ()
        requests = [one for one in events if isinstance(one, Received)]
        keyed = any(one.key is not None for one in requests)
        self.called += bool(requests)
        self.keyed += keyed
        self.keyless += not keyed and any(one.service in _KEYED for one in requests)

    def inability(self) -> str:
        """Why what the target does when it is disturbed says nothing, where it does not do its plans undisturbed."""
        if not self.unable:
            return ""
        more = f"; so did {len(self.unable) - 1} more undisturbed runs" if len(self.unable) > 1 else ""
        return f"undisturbed, {self.unable[0]}{more}: what it does otherwise proves nothing"

    def advice(self, id_: str, tier: str | None) -> str:
        """What would put promise `id_` to the test, which was not: a higher tier, or nothing that the kit can do. To follow a
        reason.
        """
        if tier is None:
            return ""
        if self.runs and not self.called:
            return f"; no service was called in {_runs(self.runs)}, and no tier changes that"
        if self.missed and not self.struck:
            return f"; nothing that was to strike did so in {_runs(self.missed)}, and no tier changes that"
        if id_ in _ABOUT_KEYS and self.keyless and not self.keyed:
            told = f"no request carried a key in {_runs(self.keyless)} that called services which honour keys"
            return f"; {told}, and no tier changes that"
        if id_ == _TIMERS and self.late:
            return f"; {', '.join(self.late)} was to strike while a timer ran, and the timer had ended by then: {_SLOW}"
        return "; a higher tier tries more" if tier in {"smoke", "core"} else ""


def _came_too_late(judged: Judged) -> list[str]:
    """The scenario, if it was to be struck while one of its timers ran and was not, or only later, though it ended done."""
    finding = judged.findings.get(_TIMERS)
    if judged.history is None or finding is None or finding.exercised or judged.problem is not None:
        return []
    last = look(judged.history).last_seen()
    if last is None or last.status.state != "done":  # it may never have come to its timer
        return []
    ids = {f"waiting:{sleep.id}" for sleep in judged.history.plan.sleeps()}
    labels = (*judged.fired, *judged.unfired)
    return [judged.scenario] if any(label.partition("@")[2] in ids for label in labels) else []


def doubt(judged: Judged, only: Collection[str] | None = None) -> str:
    """Why a run in which nothing was violated says nothing, of these obligations where they are given; empty where it does say
    something.
    """
    if judged.problem is not None:
        return "it could not be judged"
    if judged.unsettled:
        return "it never settled"
    if any(finding.slow for id_, finding in judged.findings.items() if only is None or id_ in only):
        return "it was kept only within four times the bound"
    return f"{', '.join(judged.unfired)} never struck" if judged.unfired else ""


def is_undisturbed(judged: Judged) -> bool:
    """Was nothing to strike this run, and did nothing?"""
    if judged.history is None or judged.problem is not None or judged.fired or judged.unfired:
        return False
    return not any(isinstance(one, Fired) for one in judged.history.events)


def _runs(count: int) -> str:
    return "the one run" if count == 1 else f"any of {count} runs"
