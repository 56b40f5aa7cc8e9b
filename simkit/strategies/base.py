"""What all strategies that make many runs are built on: the interface, and the book-keeping of one run.

An `Exploration` gives a strategy for each run and hears what came of it. `Sampler` is the base of those that draw their
schedules: it keeps what each step was, gives tasks identities that last from run to run, and ends every run fairly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import attrs

from simkit.effects import Footprint
from simkit.strategies.knowledge import Knowledge, Record, labels
from simkit.strategy import Strategy, TaskView
from simkit.tape import Stream
from simkit.world import Outcome

#: The kernel's root task, which starts the main task and takes the last step; no program's order depends on it.
ROOT = 0
#: A run goes on fairly once it is longer than this many times what runs were long so far, plus the slack.
_FAIR_FACTOR = 3
_FAIR_SLACK = 300


@runtime_checkable
class Exploration(Protocol):
    """Explores the schedules of one program, run by run.

    One that draws nothing and gives no schedule twice may say so, by a true attribute `systematic`; it is searched faster.
    """

    @property
    def name(self) -> str:
        """How it is called in reports."""
        ...

    @property
    def same_world(self) -> bool:
        """Whether every run must get the same tape, because it counts on the same program."""
        ...

    def begin(self, stream: Stream) -> Strategy | None:
        """Return the strategy of the next run, its chances drawn from `stream`; None when there is nothing left to try."""
        ...

    def end(self, outcome: Outcome[Any]) -> None:
        """Hear what came of that run."""
        ...


class RedundantError(BaseException):
    """Raised by a strategy to drop a run whose rest is known from others. Never seen by the program."""


@attrs.frozen
class Waiting:
    """What a task that waits for its step will do, looked at once."""

    number: int
    footprint: Footprint | None
    site: str  # where it waits; empty when nothing that is to be learnt depends on it
    labels: tuple[str, ...]  # what it counts for

    @property
    def declared(self) -> Footprint:
        """What it said it will touch; nothing, if it did not say."""
        return self.footprint or ()


class Sampler:
    """Base of strategies that draw one schedule at a time. Subclasses say `choose`, and may listen to the rest.

    Drawn schedules need not be fair: a task that spins until another has done something may be preferred for ever. So
    after so many steps (see `Knowledge.length`) every runnable task becomes equally likely.
    """

    every_step = True
    same_world = False
    name = "sampler"
    #: Whether the first run, when nothing is known, is a random walk.
    needs_probe = False

    def __init__(self, knowledge: Knowledge | None = None) -> None:
        self.knowledge = Knowledge() if knowledge is None else knowledge

    # ---- one run

    def begin(self, stream: Stream) -> Strategy | None:
        """Start a run."""
        self.draw = stream.random_source(self.name).random
        self.record = Record()
        self._waiting: dict[int, Waiting] = {}
        self._last = -1
        knowledge = self.knowledge
        self._learns = knowledge.needs_more
        self._fair_from = knowledge.length * _FAIR_FACTOR + _FAIR_SLACK if knowledge.runs or not self.needs_probe else 0
        self._places = False
        self.start()
        if self._learns and (knowledge.counts is not None or knowledge.pairs is not None):
            self._places = True
        return self

    def end(self, outcome: Outcome[Any]) -> None:
        """Learn from the run."""
        if self._learns:
            self.knowledge.learn(self.record)
        else:
            self.knowledge.runs += 1

    def pick(self, runnable: Sequence[TaskView], step: int) -> int:
        """Return who takes the next step, and keep what it was."""
        waiting = self._waiting
        fresh = [task for task in runnable if task.number not in waiting]
        if fresh:
            self._meet(fresh)
        if len(runnable) == 1:
            index = 0
        elif step >= self._fair_from:
            index = int(self.draw() * len(runnable))
        else:
            index = self.choose(runnable)
        taken = waiting.pop(runnable[index].number)
        self._last = taken.number
        self.record.step(taken)
        self.taken(taken, runnable)
        return index

    def look(self, task: TaskView) -> Waiting:
        """What a runnable task waits to do."""
        return self._waiting[task.number]

    def looked(self, task: TaskView) -> Waiting:
        """Look what a task waits to do, which has become runnable."""
        if task.peek is None:
            return Waiting(task.number, None, "", ())
        footprint = task.peek.pending()
        if not self._places:
            return Waiting(task.number, footprint, "", ())
        site = task.peek.site()
        return Waiting(task.number, footprint, site, labels(footprint, site))

    def needs_places(self) -> None:
        """Say, from `start`, that places in the program and what steps count for matter in this run."""
        self._places = True

    def _meet(self, fresh: Sequence[TaskView]) -> None:
        """Look at those that have become runnable, and take note of tasks not seen before.

        The last step made these (or resumed the process that they belong to).
        """
        paths = self.record.paths
        new = [task for task in fresh if task.number not in paths]
        if new:
            new.sort(key=_number)
            for task in new:
                self.record.spawned(task.number, self._last)
            self.met(new, self._last)
        for task in fresh:
            self._waiting[task.number] = self.looked(task)

    def likely(self, weights: Sequence[int]) -> int:
        """Draw an index, each as likely as its weight; the weights must not all be 0."""
        rest = int(self.draw() * sum(weights))
        for index, weight in enumerate(weights):
            rest -= weight
            if rest < 0:
                return index
        return len(weights) - 1

    # ---- for subclasses

    def start(self) -> None:
        """A run begins."""

    def met(self, tasks: Sequence[TaskView], parent: int) -> None:
        """These tasks are new; the step of task `parent` made them (-1: nobody's)."""

    def choose(self, runnable: Sequence[TaskView]) -> int:
        """Return the index of the task to run, of at least two."""
        raise NotImplementedError

    def taken(self, waiting: Waiting, runnable: Sequence[TaskView]) -> None:
        """This step is about to be taken, also when there was no choice; `runnable` still has it."""


def _number(task: TaskView) -> int:
    return task.number
