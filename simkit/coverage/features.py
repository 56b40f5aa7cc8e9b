"""`Features` collects what is new about a run: edges of code, points, faults, pairs of events, shapes of disks.

A feature is a string that is the same in every process, under every hash seed and on every machine; edges are those of
one version of Python.
"""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self

from simkit.coverage.edges import Edges, EdgesSkippedWarning, edges_of
from simkit.coverage.events import of_outcome, steps_at
from simkit.coverage.scope import Scope
from simkit.coverage.shapes import shapes
from simkit.watching import watched

if TYPE_CHECKING:
    from simkit.host import Host
    from simkit.world import Outcome, World

#: Of so many runs one is traced for edges; `sys.monitoring` is cheap enough for each, `sys.settrace` is not.
EVERY = 1 if sys.version_info >= (3, 12) else 4
_FEATURES_MAX = 100_000


class Features:
    """Watches runs, `with Features.of(program) as features: run(program, …)`, and says what each showed.

    Args:
        prefixes: files and folders whose code counts; those of simkit, trio and the standard library never do.
        edges: whether to collect edges at all.
        every: edges are collected in every so many runs, the first included.
    """

    def __init__(
        self, prefixes: Iterable[str | os.PathLike[str]] = (), *, edges: bool = True, every: int = EVERY
    ) -> None:
        if every < 1:
            raise ValueError(f"edges are collected in every so many runs, 1 or more, not {every}")
        self.every = every
        #: How many runs were watched, and in how many edges were collected.
        self.runs = 0
        self.runs_with_edges = 0
        #: What the last run showed.
        self.seen: frozenset[str] = frozenset()
        #: How many steps the last run had taken when it first took each edge, without how often.
        self.moments: Mapping[str, int] = {}
        self._scope = Scope.below(prefixes)
        self._wanted = edges
        self._edges: Edges | None = None
        self._now = False
        self._found: dict[str, None] = {}
        self._stack = contextlib.ExitStack()

    @classmethod
    def of(
        cls,
        program: object,
        *,
        prefixes: Iterable[str | os.PathLike[str]] = (),
        edges: bool = True,
        every: int = EVERY,
    ) -> Features:
        """Collect the edges of the module that `program` is defined in and of that module's package, and of `prefixes`."""
        features = cls(prefixes, edges=edges, every=every)
        features._scope = Scope((*Scope.of(program).places, *features._scope.places))
        return features

    @property
    def blind(self) -> str:
        """Why no edges are collected; empty when they are. For reports."""
        if not self._wanted:
            return "switched off"
        if not self._scope.places:
            return "no file of the program is known"
        return "" if self._edges is None else self._edges.blind

    def take(self) -> frozenset[str]:
        """What the last run showed; nothing when it is asked for again before another has ended."""
        seen, self.seen = self.seen, frozenset()
        return seen

    def __enter__(self) -> Self:
        self._stack.enter_context(watched(self))
        if self._wanted and self._scope.places:
            self._edges = edges_of(self._scope)
            self._edges.install()
            self._stack.callback(self._edges.remove)
            self._warn()
        return self

    def __exit__(self, *_exc_info: object) -> None:
        self._stack.close()

    # ---- as a watcher

    def begins(self, world: World) -> None:
        self._found = {}
        self.moments = {}
        self._now = self._edges is not None and self.runs % self.every == 0
        self.runs += 1
        if self._now and self._edges is not None:
            self._edges.begin(world.trace.__len__)
            self._warn()
            self._now = not self._edges.blind

    def starts(self, host: Host) -> None:
        self._note(shapes(host, "restart"))

    def loses_power(self, host: Host) -> None:
        self._note(shapes(host, "crash"))

    def ends(self, world: World, outcome: Outcome[Any]) -> None:
        if self._now and self._edges is not None:
            self._note(self._edges.end())
            self.moments = steps_at(world.trace, self._edges.moments)
            self.runs_with_edges += 1
        for host in world.hosts.values():
            self._note(shapes(host, "end"))
        self._note(of_outcome(outcome))
        self.seen = frozenset(self._found)

    def _note(self, features: Iterable[str]) -> None:
        for feature in features:
            if len(self._found) < _FEATURES_MAX:
                self._found[feature] = None

    def _warn(self) -> None:
        if self._edges is not None and self._edges.blind:
            text = f"edges of the program are not collected: {self._edges.blind}"
            warnings.warn(text, EdgesSkippedWarning, stacklevel=3)
