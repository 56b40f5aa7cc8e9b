"""How many seeds would put everything to the test often enough, at the rate at which this campaign did."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from conformance.reporters.wording import counted, promises

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scenarios.verdict import Verdict


def advice(verdicts: Sequence[Verdict], seeds: int, *, swept: bool = False) -> str:
    """A clause to follow the list of what was not put to the test often enough; empty where nothing can be said.

    Args:
        verdicts: those that are inconclusive.
        seeds: how many seeds were run.
        swept: whether the run of each was crashed everywhere, so that the number of runs says nothing of that of seeds.
    """
    short = [one for one in verdicts if one.exercised < one.minimum]
    seen = [one for one in short if one.exercised]
    never = [one.obligation for one in short if not one.exercised]
    if not short or not seeds:
        return ""
    if swept:
        return "a sweep tests what the run of its seed comes to; the rest takes other seeds, or many without --sweep"
    parts = []
    if seen:
        wanted = _round_up(max(math.ceil(seeds * one.minimum / one.exercised) for one in seen))
        some = "them" if not never else "what was put to the test at all"
        parts.append(f"at this rate about {wanted} seeds would do for {some} (--seeds 0-{wanted - 1})")
    if never:
        tried = counted(seeds, "seed")
        parts.append(f"of {promises(never)} nothing is known from {tried}: try ten times as many")
    return "; ".join(parts)


def _round_up(count: int) -> int:
    """The next of 1, 2, 5, 10, 20, 50, …: a rate is no better known than that."""
    power = int("1" + "0" * (len(str(count)) - 1))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= count)
