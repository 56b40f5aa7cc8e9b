"""Pairs of strikes: which are tried, tier by tier. Pure.

A second strike falls into the recovery from the first: it is one of those that the run with the first comes by next, in the
order of how soon. Or both lie in the cone of a named point that held in the default run.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from simkit.exploring.kinds import class_of
from simkit.exploring.plan import Strike
from simkit.exploring.sampling import spread, spread_indices
from simkit.tape import Site

__all__ = ["Pair", "after_first", "chosen", "count_within", "tiers", "within"]

Pair = tuple[Strike, Strike]


def after_first(firsts: Sequence[tuple[Strike, Sequence[Strike]]], known: frozenset[Site]) -> list[Pair]:
    """For each first strike those that its run comes by later: the next of every first, then the one after that, …

    Args:
        firsts: strikes, each with what its run came by afterwards.
        known: sites of the default run; a site that is not among them exists because of the first, and goes before.
    """
    ordered = [(first, sorted(seconds, key=lambda one: one.site in known)) for first, seconds in firsts]
    depth = max((len(seconds) for _, seconds in ordered), default=0)
    return [(first, seconds[at]) for at in range(depth) for first, seconds in ordered if at < len(seconds)]


def tiers(pairs: Iterable[Pair]) -> tuple[list[Pair], list[Pair]]:
    """Those whose first is a crash, and those whose first is another fault."""
    crashes: list[Pair] = []
    faults: list[Pair] = []
    for pair in pairs:
        (crashes if class_of(pair[0].site) == "crash" else faults).append(pair)
    return crashes, faults


def count_within(strikes: Sequence[Strike]) -> int:
    """How many pairs of these strikes there are."""
    return math.comb(len(strikes), 2)


def within(strikes: Sequence[Strike], most: int) -> list[Pair]:
    """Pairs of strikes at two different sites, the earlier first; at most `most`, evenly spread over all."""
    count = len(strikes)
    pairs = []
    for index in spread_indices(math.comb(count, 2), most):
        one = count - 2 - (math.isqrt(8 * (math.comb(count, 2) - 1 - index) + 1) - 1) // 2
        other = index - one * (2 * count - one - 1) // 2 + one + 1
        if strikes[one].site != strikes[other].site:
            pairs.append((strikes[one], strikes[other]))
    return pairs


def chosen(tiers_: Sequence[Sequence[Pair]], most: int) -> list[Pair]:
    """At most `most` pairs: half of them from the first tier, half of the rest from the next, what is left over from any."""
    taken: list[Pair] = []
    shares: list[int] = []
    left = most
    for at, tier in enumerate(tiers_):
        last = at == len(tiers_) - 1
        shares.append(min(len(tier), left if last else -(-left // 2)))
        left -= shares[-1]
    for at, tier in enumerate(tiers_):
        more = min(left, len(tier) - shares[at])
        shares[at] += more
        left -= more
    for tier, share in zip(tiers_, shares, strict=True):
        taken += spread(tier, share)
    return taken
