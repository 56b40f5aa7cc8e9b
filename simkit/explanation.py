"""Why a shrunk run fails: which departure, or which ordering of two events, decides.

By counterfactual runs: each departure is left out; each pre-emption is moved over the steps of the task that it stops,
to and fro, until the run no longer fails so: it passes, or it fails in another way, which is told. What makes a difference
decides; a pre-emption that fails only between two steps of a task is told as the two orderings that it stands for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import attrs

from simkit.chances import Chances, Other, Passing, Redraws, tried
from simkit.shrinking.loose import Move
from simkit.shrinking.minimiser import shrink
from simkit.shrinking.retrial import worded
from simkit.shrinking.search import Attempt, Budget, Fingerprint, OverBudget, Plan, Runs, RunWith, merged
from simkit.tape import Site

RUNS_MAX = 250
#: How far a pre-emption is moved to each side, at most.
_WINDOW_MAX = 40
#: How many deciding things the sentence tells.
_TOLD_MAX = 6

#: A step of a run: (task number, which of its steps, from 1).
Step = tuple[int, int]
#: The task's name and where it stood before the step, outermost first, as "file:line in function".
Place = tuple[str, tuple[str, ...]]


@attrs.frozen
class Event:
    """One step of one task."""

    task: int
    nth: int  # from 1
    name: str = ""
    stack: tuple[str, ...] = ()  # where it stood before the step, outermost first; empty when not known

    def __str__(self) -> str:
        where = f" ({self.stack[-1]})" if self.stack else ""
        return f"step {self.nth} of {self.name or 'task'} #{self.task}{where}"


@attrs.frozen
class Ordering:
    """The run fails so while `first` comes before `second`, and no longer when they change places."""

    first: Event
    second: Event
    otherwise: Fingerprint | None = None  # how it fails when they change places; None: it does not fail

    def __str__(self) -> str:
        return f"{self.first} comes before {self.second}"


@attrs.frozen
class Cause:
    """The run fails so with this departure, and no longer when its value is `passes_with` (0: nothing special)."""

    site: Site
    value: int
    passes_with: int = 0
    otherwise: Fingerprint | None = None  # how it fails without the departure; None: it does not fail

    def __str__(self) -> str:
        label, key, occurrence = self.site
        instead = "" if self.passes_with == 0 else f" (not with {self.passes_with})"
        return f"{label}/{key}#{occurrence} = {self.value}{instead}"


@attrs.frozen
class Explanation:
    """What decides whether a run fails."""

    fingerprint: Fingerprint
    causes: tuple[Cause, ...]
    orderings: tuple[Ordering, ...]
    indifferent: tuple[Site, ...]  # departures that make no difference on their own
    runs: int
    complete: bool  # whether every counterfactual fitted into the bound
    by_default: bool = False  # whether the run departs from the default one in nothing, and chance does not decide
    chances: Chances = Chances()  # noqa: RUF009  # frozen; of a run that departs in nothing: which chance decides
    passing: tuple[Ordering, ...] = ()  # if the order of its tasks decides: it passes only while these hold

    @property
    def fails_otherwise(self) -> bool:
        """Whether a run without one of the things that decide fails too, in another way."""
        kinds: list[Cause | Ordering] = [*self.causes, *self.orderings]
        return any(one.otherwise is not None for one in kinds)

    def __str__(self) -> str:
        """One sentence."""
        return self.sentence(str)

    def sentence(self, name: Callable[[Event], str]) -> str:
        """One sentence, with the events called as `name` says. Where it tells nothing else, nothing fails otherwise."""
        parts = [f"with {cause}{_otherwise('without it', cause.otherwise)}" for cause in self.causes]
        parts += [
            f"while {name(one.first)} comes before {name(one.second)}{_otherwise('else', one.otherwise)}"
            for one in self.orderings
        ]
        short = "" if self.complete else f", as far as {self.runs} runs tell"
        if self.by_default:
            as_well = f", and {self.chances.tried} runs with other random numbers or in other orders fail as well"
            as_well *= self.chances.tried > 0
            if (drawn := self.chances.drawn) is not None:
                all_at_0 = f"with all choices at their default ({drawn}), without a fault or pre-emption"
                return f"It fails {all_at_0}{as_well}; {drawn.told}."
            return f"It fails by default: no fault, no choice and no pre-emption is needed{as_well}."
        if self.chances.decide:
            return self._by_chance(name)
        if not parts:
            return f"No single departure and no single ordering of two events decides{short}."
        if len(parts) > _TOLD_MAX:
            parts = [*parts[:_TOLD_MAX], f"with {len(parts) - _TOLD_MAX} more that decide as well"]
        told = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
        return f"It fails {'so ' * self.fails_otherwise}only {told}{short}."

    def _by_chance(self, name: Callable[[Event], str]) -> str:
        numbers, order, parts = self.chances.numbers, self.chances.order, []
        if numbers is not None:
            parts.append(f"by the random numbers of its seed (with those of seed {numbers.seed}{_instead(numbers)})")
        if order is not None:
            only = " and ".join(f"while {name(one.first)} comes before {name(one.second)}" for one in self.passing)
            parts.append(
                f"by the order of its tasks ({f'it passes only {only}' if only else f'in another{_instead(order)}'})"
            )
        return f"It fails without any fault, choice or pre-emption, {' and '.join(parts)}."


def explain(run_with: RunWith, shrunk: Attempt, *, runs_max: int = RUNS_MAX) -> Explanation:
    """Find out what decides whether the run `shrunk` fails.

    Args:
        run_with: runs once, as for `shrink`. One with a method `places`, such as `Retrial`, also tells where tasks stood.
        shrunk: the run, as `Shrunk.best`.
        runs_max: how many counterfactual runs to make at most.
    """
    runs = Runs(run_with, Budget(runs=runs_max))
    inquiry = _Inquiry(runs, shrunk)
    if not shrunk.departures and not shrunk.moves:
        return _of_the_default(run_with, shrunk, runs)
    complete = True
    try:
        inquiry.departures()
        inquiry.moves()
    except OverBudget:
        complete = False
    orderings = _placed(inquiry.orderings, run_with, shrunk)
    return Explanation(
        shrunk.fingerprint,
        tuple(inquiry.causes),
        orderings,
        tuple(inquiry.indifferent),
        runs.made,
        complete,
    )


def _of_the_default(run_with: RunWith, shrunk: Attempt, runs: Runs) -> Explanation:
    """Of a run that departs in nothing: whether its random numbers or the order of its tasks decide."""
    chances = tried(run_with, shrunk.fingerprint, runs) if isinstance(run_with, Redraws) else Chances()
    found = Explanation(
        shrunk.fingerprint, (), (), (), runs.made, chances.complete, by_default=not chances.decide, chances=chances
    )
    left = runs.budget.runs - runs.made
    order = chances.order
    if not isinstance(run_with, Redraws) or order is None or order.fingerprint is not None or left < 1:
        return found
    turned = Passing(run_with)
    simplest = shrink(turned, {}, order.attempt.plan, budget=Budget(runs=left))
    why = explain(turned, simplest.best, runs_max=left - simplest.runs)
    found = attrs.evolve(found, runs=runs.made + simplest.runs + why.runs)
    if (
        len(why.orderings) > _TOLD_MAX
    ):  # more than anybody reads, however many more there are; in another order it passes
        return found
    if not why.complete:  # a part of what it takes would mislead
        return attrs.evolve(found, complete=False)
    return attrs.evolve(found, passing=_placed(list(why.orderings), run_with, shrunk))


class _Inquiry:
    """Makes the counterfactual runs, and notes what they show."""

    def __init__(self, runs: Runs, shrunk: Attempt) -> None:
        self._runs = runs
        self._shrunk = shrunk
        self.causes: list[Cause] = []
        self.indifferent: list[Site] = []
        self.orderings: list[Ordering] = []

    def departures(self) -> None:
        """Leave one out; where that decides, see whether the next smaller value would do as well."""
        given = self._shrunk.departures
        for site, value in sorted(given.items()):
            without = self._run(departures={other: kept for other, kept in given.items() if other != site}).fingerprint
            if without == self._shrunk.fingerprint:
                self.indifferent.append(site)
                continue
            nearest = value > 1 and not self._fails(departures={**given, site: value - 1})
            self.causes.append(Cause(site, value, value - 1 if nearest else 0, without))

    def moves(self) -> None:
        """Move every pre-emption, turn every free choice."""
        begins = 0
        by_step = {move.step: move for move in self._shrunk.moves}
        for at, (_, steps) in enumerate(self._shrunk.plan):
            move = by_step.get(begins)
            if move is not None:
                orderings = self._window(at) if move.preempts else self._choice(at, move)
                self.orderings += [one for one in orderings if one not in self.orderings]
            begins += steps

    def _window(self, at: int) -> Iterator[Ordering]:
        """How far the beginning of segment `at` can be moved over the steps of the task that it stops."""
        plan = self._shrunk.plan
        (stopped, steps), (taken, _) = plan[at - 1], plan[at]
        before = _count(plan[: at - 1], stopped)
        begun = _count(plan[:at], taken)
        earliest = self._edge(at, range(steps - 1, -1, -1))
        if earliest is not None:
            length, otherwise = earliest
            yield Ordering(Event(stopped, before + length + 1), Event(taken, begun + 1), otherwise)
        latest = self._edge(at, range(steps + 1, steps + _WINDOW_MAX))
        if latest is not None:
            length, otherwise = latest
            yield Ordering(Event(taken, begun + self._needed(at)), Event(stopped, before + length), otherwise)

    def _edge(self, at: int, lengths: Iterable[int]) -> tuple[int, Fingerprint | None] | None:
        """The first of `lengths` for the segment before `at` with which the run does not fail so, and how it fails then."""
        plan = self._shrunk.plan
        task, steps = plan[at - 1]
        for length in lengths:
            rest = _shifted(plan[at:], task, steps - length)
            changed = (*plan[: at - 1], (task, length), *rest)
            attempt = self._run(plan=changed)
            if attempt.fingerprint != self._shrunk.fingerprint:
                return length, attempt.fingerprint
            if length > steps and not _begins_with(attempt, changed[:at]):
                return None  # the task could not go on so long: there is nothing to move over
        return None

    def _needed(self, at: int) -> int:
        """How many steps of segment `at` must come before the stopped task goes on, for the run to fail."""
        plan = self._shrunk.plan
        task, steps = plan[at]
        if at + 1 < len(plan):
            return steps
        for length in range(1, _WINDOW_MAX):
            if self._fails(plan=(*plan[:at], (task, length), (plan[at - 1][0], 1))):
                return length
        return steps

    def _choice(self, at: int, move: Move) -> Iterator[Ordering]:
        """Who was chosen when the running task could not go on: let the default one go first."""
        plan = self._shrunk.plan
        turned = self._run(plan=(*plan[:at], (move.instead_of, plan[at][1]), *plan[at + 1 :])).fingerprint
        if turned != self._shrunk.fingerprint:
            first = Event(move.task, _count(plan[:at], move.task) + 1)
            yield Ordering(first, Event(move.instead_of, _count(plan[:at], move.instead_of) + 1), turned)

    def _fails(self, departures: Mapping[Site, int] | None = None, plan: Plan | None = None) -> bool:
        return self._run(departures, plan).fingerprint == self._shrunk.fingerprint

    def _run(self, departures: Mapping[Site, int] | None = None, plan: Plan | None = None) -> Attempt:
        departures = self._shrunk.departures if departures is None else departures
        return self._runs.run(departures, merged(self._shrunk.plan if plan is None else plan))


def _count(plan: Plan, task: int) -> int:
    return sum(steps for number, steps in plan if number == task)


def _shifted(rest: Plan, task: int, more: int) -> Plan:
    """The rest of a plan, in which the next segment of `task` makes up for what an earlier one took."""
    for at, (number, steps) in enumerate(rest):
        if number == task:
            return (*rest[:at], (task, max(0, steps + more)), *rest[at + 1 :])
    return rest


def _begins_with(attempt: Attempt, prefix: Plan) -> bool:
    """Whether the run took these segments in fact; a run without any move left is its own default."""
    return attempt.plan[: len(merged(prefix))] == merged(prefix)


def _placed(orderings: list[Ordering], run_with: RunWith, shrunk: Attempt) -> tuple[Ordering, ...]:
    """Orderings with names and stacks, when `run_with` can tell them. That takes one run more."""
    places: Callable[[Attempt, list[Step]], Mapping[Step, Place]] | None = getattr(run_with, "places", None)
    if places is None or not orderings:
        return tuple(orderings)
    events = [event for ordering in orderings for event in (ordering.first, ordering.second)]
    known = places(shrunk, [(event.task, event.nth) for event in events])

    def placed(event: Event) -> Event:
        name, stack = known.get((event.task, event.nth), (event.name, event.stack))
        return attrs.evolve(event, name=name, stack=stack)

    return tuple(Ordering(placed(one.first), placed(one.second), one.otherwise) for one in orderings)


def _otherwise(when: str, failure: Fingerprint | None) -> str:
    return "" if failure is None else f" ({when}: {worded(failure)})"


def _instead(other: Other) -> str:
    """What happens with other chances, for a sentence that names them."""
    return " it passes" if other.fingerprint is None else f": {worded(other.fingerprint)}"
