"""Verdicts: what one obligation's judge says of one history, and the rules that turn many into one.

A judge is a pure function `History → Finding`. It never throws to green: what it did not see it did not exercise.
"""

from __future__ import annotations

from typing import Literal

import attrs

Kind = Literal["safety", "liveness"]
Outcome = Literal["error", "fail", "inconclusive", "pass", "not-covered", "not-claimed"]
Level = Literal["MUST", "SHOULD"]

#: The longest answer that a sentence quotes whole.
_QUOTED_MAX = 40


@attrs.frozen
class Violation:
    """A forbidden observation: the anomaly's catalogue name, one sentence, and the indexes of the events that prove it."""

    anomaly: str
    sentence: str
    evidence: tuple[int, ...]
    operation: str | None = None


def short(answer: str | None) -> str:
    """An answer as a sentence quotes it: whole, or its beginning, as it may be of any size."""
    return str(answer) if answer is None or len(answer) <= _QUOTED_MAX else f"{answer[:12]}…"


@attrs.frozen
class Finding:
    """What a judge saw in one history: how often the promise was put to the test, and what broke it.

    `slow` marks a liveness promise kept only within four times the bound.
    """

    exercised: int = 0
    violations: tuple[Violation, ...] = ()
    slow: bool = False


@attrs.frozen
class Verdict:
    """One obligation over a whole campaign."""

    obligation: str
    outcome: Outcome
    exercised: int
    minimum: int
    reason: str = ""
    observed: Literal["held", "violated", "nothing"] = "nothing"
    anomalies: tuple[str, ...] = ()
