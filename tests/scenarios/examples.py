"""Histories written by hand for every obligation: what its judge must let pass, and what it must blame.

`holds(id, title, story)`: a correct harness can show this, so *no* judge may blame it (`but` names those that rightly do, where
one fault is looked at through another's eyes), and the judge counts it as tested `exercised` times.
`breaks(id, title, story, anomaly)`: the judge of `id` blames it, under that name.
"""

from __future__ import annotations

import importlib
import pathlib

import attrs

from scenarios.history import History
from tests.scenarios.build import Story


@attrs.frozen
class Example:
    """One history and what one judge has to say about it."""

    obligation: str
    title: str
    history: History
    anomaly: str | None = None  # None: to be let pass
    exercised: int = 1
    but: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.obligation} {'blames' if self.anomaly else 'passes'}: {self.title}"


EXAMPLES: list[Example] = []


def holds(obligation: str, title: str, story: Story, *, exercised: int = 1, but: tuple[str, ...] = ()) -> None:
    EXAMPLES.append(Example(obligation, title, story.history(), None, exercised, but))


def breaks(obligation: str, title: str, story: Story, anomaly: str) -> None:
    EXAMPLES.append(Example(obligation, title, story.history(), anomaly))


def collected() -> tuple[Example, ...]:
    """All examples, from every module of them, `examples_<group>.py`."""
    for path in sorted(pathlib.Path(__file__).parent.glob("examples_*.py")):
        importlib.import_module(f"tests.scenarios.{path.stem}")
    return tuple(EXAMPLES)
