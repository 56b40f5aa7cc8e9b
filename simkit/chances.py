"""Of a run that fails though it departs in nothing: whether its random numbers or the order of its tasks decide, or nothing.

Such a run still has the random numbers of its seed, and tasks that could go on at the same moment go on in an order. So it
is made again with the numbers of a few other seeds, and in a few other orders. Where none of these passes though the run has
choices to make, each of which was at its default, it is told what becomes of the first seeds, which draw them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping
from typing import Any, Protocol, runtime_checkable

import attrs

from simkit.shrinking.search import Attempt, Departures, Fingerprint, OverBudget, Plan, Runs

#: How many other seeds are tried, and how many other orders.
TRIED_MAX = 10
#: Choices that a sentence names.
_SHOWN_MAX = 3
#: The fingerprint of a run that passes, where those are looked for.
_PASSES = "passes"


@runtime_checkable
class Redraws(Protocol):
    """A `RunWith` that also runs with other random numbers and in other orders, such as `Retrial`."""

    @property
    def entropy(self) -> int:
        """The seed of the random numbers that it runs with."""
        ...

    def __call__(self, departures: Departures, plan: Plan) -> Attempt:
        """Run once."""
        ...

    def redrawn(self, departures: Departures, seed: int) -> Attempt:
        """Run by the default schedule, with the random numbers of `seed`."""
        ...

    def reordered(self, departures: Departures, seed: int) -> Attempt:
        """Run with the same random numbers, in an order drawn from `seed`."""
        ...

    def places(self, attempt: Attempt, steps: Any) -> Mapping[Any, Any]:
        """As `Retrial.places`."""
        ...


@runtime_checkable
class Draws(Protocol):
    """A `Redraws` that also runs as a seed draws it, such as `Retrial`."""

    @property
    def choices(self) -> Collection[tuple[str, str]]:
        """The choices, by label and key, that any run so far was to make."""
        ...

    def drawn(self, seed: int) -> Attempt:
        """Run by the default schedule, with everything drawn from `seed`, choices too."""
        ...


@attrs.frozen
class Drawn:
    """What becomes of the first seeds, where a run has choices to make and fails with all of them at their defaults."""

    choices: tuple[tuple[str, str], ...]  # by label and key, sorted
    seeds: int
    passed: int

    @property
    def told(self) -> str:
        """How many pass."""
        return (
            f"of the first {self.seeds} seeds, which draw their choices, {self.passed} pass{'es' * (self.passed == 1)}"
        )

    def __str__(self) -> str:
        """The choices, as a run that departs in nothing makes them."""
        shown = ", ".join(f"{label}/{key}#0 = 0" for label, key in self.choices[:_SHOWN_MAX])
        return f"{shown}, …" if len(self.choices) > _SHOWN_MAX else shown


@attrs.frozen
class Other:
    """A run that differs in its chances, and does not fail in the same way."""

    seed: int
    attempt: Attempt = attrs.field(repr=False, eq=False)

    @property
    def fingerprint(self) -> Fingerprint | None:
        """How it fails; None: it passes."""
        return self.attempt.fingerprint


@attrs.frozen
class Chances:
    """What makes a difference to a run that departs in nothing."""

    numbers: Other | None = None  # the random numbers of another seed
    order: Other | None = None  # another order of its tasks
    tried: int = 0  # runs that were made
    complete: bool = True  # whether all fitted into the bound
    drawn: Drawn | None = None  # if neither makes a difference, and some of the first seeds pass: their choices do

    @property
    def decide(self) -> bool:
        """Whether the run fails by chance."""
        return self.numbers is not None or self.order is not None


def tried(again: Redraws, fingerprint: Fingerprint | None, runs: Runs) -> Chances:
    """Try other random numbers and other orders of a run that fails as `fingerprint` says, as far as `runs` allows it."""
    before = runs.made
    numbers = order = None
    complete = True
    try:
        numbers = _other(lambda seed: runs.make(lambda: again.redrawn({}, seed)), again.entropy, fingerprint)
        order = _other(lambda seed: runs.make(lambda: again.reordered({}, seed)), again.entropy, fingerprint)
        chances = Chances(numbers, order, runs.made - before)
        if not chances.decide and isinstance(again, Draws) and again.choices:
            return attrs.evolve(chances, drawn=_drawn(again, runs))
    except OverBudget:
        complete = False
    return Chances(numbers, order, runs.made - before, complete)


def _drawn(again: Draws, runs: Runs) -> Drawn | None:
    """How many of the first seeds pass with the choices that they draw; None where none does."""
    attempts = [runs.make(functools.partial(again.drawn, seed)) for seed in range(TRIED_MAX)]
    passed = sum(attempt.fingerprint is None for attempt in attempts)
    return Drawn(tuple(sorted(again.choices)), len(attempts), passed) if passed else None


def _other(run: Callable[[int], Attempt], own: int, fingerprint: Fingerprint | None) -> Other | None:
    """The first that passes, else the first that fails in another way."""
    found = None
    for seed in [seed for seed in range(TRIED_MAX + 1) if seed != own][:TRIED_MAX]:
        attempt = run(seed)
        if attempt.fingerprint is None:
            return Other(seed, attempt)
        if found is None and attempt.fingerprint != fingerprint:
            found = Other(seed, attempt)
    return found


class Passing:
    """Turned round, so that a run that passes can be shrunk and explained: it "fails" when it passes, and the other way."""

    def __init__(self, again: Redraws) -> None:
        self._again = again

    def __call__(self, departures: Departures, plan: Plan) -> Attempt:
        """Run once."""
        attempt = self._again(departures, plan)
        return attrs.evolve(attempt, fingerprint=_PASSES if attempt.fingerprint is None else None)

    def places(self, attempt: Attempt, steps: Any) -> Mapping[Any, Any]:
        """As the other."""
        return self._again.places(attempt, steps)
