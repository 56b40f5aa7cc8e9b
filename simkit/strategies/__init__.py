"""Strategies that explore: many runs of one program, each with another schedule. The random walk itself is `simkit.strategy`.

The map: `base` is the interface (`Exploration`) and what samplers share, `knowledge` what runs teach.

- `walk`: random, first come first served, trio's own order    - `pct`: priorities, lowered at random steps
- `pos`: priorities, drawn anew in a race                       - `surw`: uniform over the steps that matter
- `reads_from`: a read must see a certain write                 - `exhaustive`: every schedule, or with few delays
- `reduced`: every schedule up to independent steps             - `portfolio`: several in turn
- `wrapping`: measure another strategy, or make its runs twice

Each cites its paper and says where it deviates. `named("pct3")` makes one by name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from simkit.errors import ExitCode, Problem, SimkitError
from simkit.strategies.base import Exploration, RedundantError, Sampler
from simkit.strategies.exhaustive import DelayBounded, Exhaustive
from simkit.strategies.knowledge import Knowledge
from simkit.strategies.pct import PCT
from simkit.strategies.portfolio import Portfolio, portfolio
from simkit.strategies.pos import POS
from simkit.strategies.reads_from import ReadsFrom
from simkit.strategies.reduced import Reduced
from simkit.strategies.surw import SURW
from simkit.strategies.walk import FirstCome, Probe, RandomWalks, TrioBatches
from simkit.strategies.wrapping import Measured, Measures, Twice

__all__ = [
    "PCT",
    "POS",
    "SURW",
    "DelayBounded",
    "Exhaustive",
    "Exploration",
    "FirstCome",
    "Knowledge",
    "Measured",
    "Measures",
    "Portfolio",
    "Probe",
    "RandomWalks",
    "ReadsFrom",
    "Reduced",
    "RedundantError",
    "Sampler",
    "TrioBatches",
    "Twice",
    "named",
    "portfolio",
]

#: By name; those with a number in their name take it as their depth or bound.
_PLAIN: Mapping[str, Callable[[], Exploration]] = {
    "fifo": FirstCome,
    "trio": TrioBatches,
    "random": RandomWalks,
    "pos": POS,
    "surw": SURW,
    "reads-from": ReadsFrom,
    "exhaustive": Exhaustive,
    "reduced": Reduced,
    "portfolio": portfolio,
}
_NUMBERED: Mapping[str, Callable[[int], Exploration]] = {"pct": PCT, "delays": DelayBounded}
NAMES = (*_PLAIN, "pct3", "pct10", "delays2")


def named(name: str) -> Exploration:
    """Make the strategy called `name`: one of `NAMES`, or "pct" or "delays" with another number."""
    if name in _PLAIN:
        return _PLAIN[name]()
    match = re.fullmatch(r"([a-z]+)([1-9]\d{0,3})", name)
    if match is not None and match[1] in _NUMBERED:
        return _NUMBERED[match[1]](int(match[2]))
    raise SimkitError(
        Problem(
            "unknown-strategy",
            f"there is no strategy called {name!r}",
            "the strategy of a search",
            f"one of {', '.join(NAMES)}, or pct and delays with another number",
            exit_code=ExitCode.USAGE,
        )
    )
