"""A portfolio: several strategies in turn, all learning from each other's runs.

No strategy is best everywhere: a random walk wins on shallow races, PCT on starvation, SURW on many tasks that do the same,
reads-from on reads that must see one certain write. Taking turns costs a factor, and guards against never.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from simkit.strategies.base import Exploration, Sampler
from simkit.strategies.knowledge import Knowledge
from simkit.strategies.pct import PCT
from simkit.strategies.pos import POS
from simkit.strategies.reads_from import ReadsFrom
from simkit.strategies.surw import SURW
from simkit.strategies.walk import Probe
from simkit.strategy import Strategy
from simkit.tape import Stream
from simkit.world import Outcome


class Portfolio:
    """Strategies in turn.

    Args:
        members: who takes turns, a member twice for twice the runs.
        name: how the whole is called.
    """

    def __init__(self, members: Sequence[Exploration], name: str = "portfolio") -> None:
        if not members:
            raise ValueError("a portfolio has at least one member")
        self.name = name
        self.same_world = any(member.same_world for member in members)
        self._members = list(members)
        self._turn = -1
        self._current: Exploration = self._members[0]

    @property
    def member(self) -> str:
        """Whose run this is."""
        return self._current.name

    def begin(self, stream: Stream) -> Strategy | None:
        """Let the next member begin; one that has nothing left leaves."""
        while self._members:
            self._turn = (self._turn + 1) % len(self._members)
            self._current = self._members[self._turn]
            strategy = self._current.begin(stream)
            if strategy is not None:
                return strategy
            self._members = [member for member in self._members if member is not self._current]
            self._turn -= 1
        return None

    def end(self, outcome: Outcome[Any]) -> None:
        """Tell the member."""
        self._current.end(outcome)


def portfolio() -> Portfolio:
    """The portfolio used unless another strategy is named: a probe, then mostly SURW and reads-from, others now and then."""
    knowledge = Knowledge()
    surw, reads_from = SURW(knowledge), ReadsFrom(knowledge)
    turns: list[Sampler] = []
    for seldom in (Probe(knowledge), POS(knowledge), PCT(3, knowledge), PCT(10, knowledge)):
        turns += [seldom, reads_from, surw, reads_from, surw]
    return Portfolio(turns)
