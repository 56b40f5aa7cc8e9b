"""The plain ones, for comparison and as probes: a random walk, first come first served, and trio's own order.

`TrioBatches` is what `trio.run` does by itself: each round takes everybody who is runnable, forwards or backwards by a
coin, one step each; so no task ever gets two steps ahead of another runnable one, which hides most faults.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from simkit.strategies.base import Sampler
from simkit.strategy import Fifo, RandomWalk, Strategy, TaskView
from simkit.tape import Stream
from simkit.world import Outcome


class RandomWalks:
    """Every runnable task is equally likely at every step, in every run anew. Fair with probability 1."""

    name = "random"
    same_world = False

    def begin(self, stream: Stream) -> Strategy | None:
        """Return a new walk."""
        return RandomWalk(stream)

    def end(self, outcome: Outcome[Any]) -> None:
        """Nothing is learnt."""


class FirstCome:
    """One run, first come first served: how the program runs by default."""

    name = "fifo"
    same_world = True

    def __init__(self) -> None:
        self._made = False

    def begin(self, stream: Stream) -> Strategy | None:
        """Return the one run there is."""
        made, self._made = self._made, True
        return None if made else Fifo()

    def end(self, outcome: Outcome[Any]) -> None:
        """Nothing is learnt."""


class Probe(Sampler):
    """A random walk that learns: the first run of a portfolio."""

    name = "probe"

    def choose(self, runnable: Sequence[TaskView]) -> int:
        """Return any index."""
        return int(self.draw() * len(runnable))


class TrioBatches(Sampler):
    """The order of `trio.run`: whole batches, forwards or backwards (trio 0.35, `unrolled_run`)."""

    name = "trio"

    def start(self) -> None:
        """No batch yet."""
        self._batch: list[int] = []

    def choose(self, runnable: Sequence[TaskView]) -> int:
        """Return the next of the batch, or of a new one."""
        places = {task.number: index for index, task in enumerate(runnable)}
        self._batch = [number for number in self._batch if number in places]
        if not self._batch:
            self._batch = list(places)
            if self.draw() < 0.5:
                self._batch.reverse()
        return places[self._batch.pop(0)]
