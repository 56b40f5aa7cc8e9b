"""Whether the runs of a campaign came to anything: did interruptions strike, and was any service ever called?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from scenarios.history import Received

if TYPE_CHECKING:
    from conformance.campaign.docket import Judged


@attrs.define
class Vitality:
    """Counts runs, and those that were struck and that called a service."""

    runs: int = 0
    struck: int = 0
    missed: int = 0  # in which something was to strike, and nothing did
    called: int = 0

    def add(self, judged: Judged) -> None:
        self.runs += 1
        self.struck += bool(judged.fired)
        self.missed += bool(judged.unfired and not judged.fired)
        self.called += judged.history is not None and any(isinstance(one, Received) for one in judged.history.events)

    def advice(self, tier: str | None) -> str:
        """What would put to the test what was not: a higher tier, or nothing that the kit can do. To follow a reason."""
        if tier is None:
            return ""
        if self.runs and not self.called:
            return f"; no service was called in {_runs(self.runs)}, and no tier changes that"
        if self.missed and not self.struck:
            return f"; nothing that was to strike did so in {_runs(self.missed)}, and no tier changes that"
        return "; a higher tier tries more" if tier in {"smoke", "core"} else ""


def _runs(count: int) -> str:
    return "the one run" if count == 1 else f"any of {count} runs"
