"""Retries: whether something is tried again, decided from what it has been through and from its limits. No I/O.

`remedy` is what the receiver's contract permits; here it is bounded. There is one layer of repetition in the runtime, and
this is it: a worker makes each invocation once. Every end has a reason, a stable code in kebab-case.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Literal

import attrs

from reference_runtime.model import Policy, Remedy, Semantics

Verdict = Literal["repeat", "lookup", "give_up", "exhaust"]
#: Receivers that forget: what they were asked under a key may be asked again only while they remember the key.
KEYED: frozenset[Semantics] = frozenset({"keyed", "fenced"})
#: Receivers whose answer is all there is: an invocation nobody knows the end of leaves nothing behind to find.
WITHOUT_EFFECT: frozenset[Semantics] = frozenset({"read", "metered"})


@attrs.frozen
class Past:
    """What an operation has been through: calls made, workers that died over it, questions in the search that is on.

    `first_ns` is when the first call was recorded, by the wall clock; `in_doubt` says that a call may have happened.
    """

    semantics: Semantics
    tries: int
    deaths: int = 0
    lookups: int = 0
    first_ns: int | None = None
    in_doubt: bool = False


@attrs.frozen
class Limits:
    """The most of each; `elapsed_ns` None: no limit. Times in nanoseconds since the first call."""

    tries: int
    lookups: int
    deaths: int
    elapsed_ns: int | None
    key_lifetime_ns: int


def limits_of(
    policy: Policy, tries: int | None, elapsed_ns: int | None, declared: Mapping[str, int] | None = None
) -> Limits:
    """The policy's limits, tightened by what the plan asks for one operation, and by what is `declared` of its tool. Of how
    long keys are remembered the declaration alone knows, where it says so.
    """
    said = declared or {}
    most = min(limit for limit in (policy.tries_max, tries, said.get("tries")) if limit is not None)
    elapsed = [limit for limit in (elapsed_ns, said.get("elapsed_ns")) if limit is not None]
    lifetime_ns = said.get("key_lifetime_ns", policy.key_lifetime_ns)
    return Limits(most, policy.lookups_max, policy.deaths_max, min(elapsed, default=None), lifetime_ns)


def decide(remedy: Remedy, past: Past, limits: Limits, at_ns: int) -> tuple[Verdict, str]:
    """What becomes of an operation whose next invocation would be at `at_ns`: the verdict, and the reason of an end.

    `give_up` leaves it unresolved, `exhaust` says that it failed: nothing of it can have happened.
    """
    if remedy == "none":
        return "give_up", "outcome-unknown"
    if remedy == "lookup":
        return ("lookup", "") if past.lookups < limits.lookups else ("give_up", "lookups-exhausted")
    reason = _exceeded(past, limits, at_ns)
    if not reason:
        return "repeat", ""
    harmless = reason == "poison" and past.semantics in WITHOUT_EFFECT
    return ("give_up" if past.in_doubt and not harmless else "exhaust"), reason


def _exceeded(past: Past, limits: Limits, at_ns: int) -> str:
    """The first limit that one more call would break; empty for none."""
    elapsed_ns = 0 if past.first_ns is None else at_ns - past.first_ns
    if past.deaths >= limits.deaths:
        return "poison"
    if past.tries >= limits.tries:
        return "retries-exhausted"
    if limits.elapsed_ns is not None and elapsed_ns > limits.elapsed_ns:
        return "time-exhausted"
    if past.semantics in KEYED and past.in_doubt and elapsed_ns >= limits.key_lifetime_ns:
        return "key-expired"
    return ""


def backoff_ns(tries: int, policy: Policy, rng: random.Random, retry_after_ns: int = 0) -> int:
    """How long to wait after `tries` tries: doubling from the least to the most, half of it left to chance.

    What the receiver asks for is waited out in full, and then the least backoff on top, so that those who were told the
    same do not come back together.
    """
    if retry_after_ns > 0:
        return min(retry_after_ns, policy.retry_after_ns_max) + _jittered(policy.backoff_ns_min, rng)
    return _jittered(min(policy.backoff_ns_min << min(max(tries - 1, 0), 30), policy.backoff_ns_max), rng)


def _jittered(ceiling: int, rng: random.Random) -> int:
    return ceiling // 2 + rng.randrange(ceiling // 2 + 1)
