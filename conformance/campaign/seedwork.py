"""The work of one seed: its run, judged; crashed at every storage boundary, or swept, when that is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import attrs

from conformance import targets
from conformance.campaign import parallel, sweeping
from conformance.campaign.judged import Judged
from conformance.campaign.judging import judge_simulated
from conformance.order import Order
from conformance.simulate import Simulated, draw, simulate
from conformance.targets import Target
from scenarios.interruption import Interruption, Site
from simkit.crashes import CrashPoint, crash_points
from simkit.errors import SimkitError
from simkit.tape import Tape

if TYPE_CHECKING:
    from conformance.campaign.sweeping import Crash, Sweep
    from simkit.world import World

#: Boundaries tried of one seed; more are thinned out evenly.
BOUNDARIES_MAX = 400
#: Storage boundaries whose crash states are looked for.
_LOSSES_AT_MAX = 100


def judged_seed(order: Order, seed: int) -> list[Judged]:
    """All runs of a seed, for another process; fewer when the campaign is asked to stop meanwhile."""
    return list(run_seed(order, seed, parallel.stopped))


def run_seed(order: Order, seed: int, stopping: Callable[[], bool]) -> Iterator[Judged]:
    """Run and judge one seed, and all that is tried of it."""
    if not stopping():
        target = targets.parse(order.target, order.configuration)
        yield from _Work(target, order, seed, stopping).results()


@attrs.frozen
class _Work:
    """One seed."""

    target: Target
    order: Order
    seed: int
    stopping: Callable[[], bool]

    def results(self) -> Iterator[Judged]:
        """The probe run first."""
        try:
            probe = self._simulate()
        except SimkitError as error:
            yield Judged(self._name, self.seed, {}, problem=error.problem)
            return
        yield self._judged(probe)
        if self.order.boundaries and self.order.sweep is None:
            points = crash_points(probe.outcome, most=BOUNDARIES_MAX)
            crashes = [Interruption("power", Site("boundary", nth=one.number, unit=one.host)) for one in points]
            for crash in crashes:
                yield from (judged for judged, _ in self._crashed((crash,)))
        if self.order.sweep is not None:
            yield from self._swept(probe, self.order.sweep)

    def _swept(self, probe: Simulated, budget: int) -> Iterator[Judged]:
        units = [name for name, unit in self.target.manifest.units.items() if unit.killable]
        singles = sweeping.single(probe, units)
        crossed: dict[CrashPoint, int] = {}
        for crash, judged, outcome in self._all(singles):
            if crash.kind == "storage boundaries" and outcome is not None:
                point = sweeping.point_of(crash.interruptions[0])
                crossed[point] = outcome.outcome.boundaries.get(point.host, 0)
            yield judged
        yield from (judged for _, judged, _ in self._all(sweeping.pairs(crossed, budget)))
        states: dict[CrashPoint, Sequence[str]] = {}
        points = sweeping.thinned(list(crossed), _LOSSES_AT_MAX)
        if not self.stopping():
            self._simulate(watch=sweeping.watching(points, states))
        yield from (judged for _, judged, _ in self._all(sweeping.losses(states, budget)))

    def _all(self, sweep: Sweep) -> Iterator[tuple[Crash, Judged, Simulated | None]]:
        """Each run of a sweep; the first one tells how much there would be."""
        total = sweep.total
        for crash in sweep.crashes:
            for judged, outcome in self._crashed(crash.interruptions):
                yield crash, attrs.evolve(judged, swept=crash.kind, sweep=total), outcome
            total = {}

    def _crashed(self, crashes: tuple[Interruption, ...]) -> Iterator[tuple[Judged, Simulated | None]]:
        """One run with more interruptions; none once the campaign is to stop."""
        if self.stopping():
            return
        try:
            simulated = self._simulate(extra=crashes)
        except SimkitError as error:
            label = "+".join(crash.label for crash in crashes)
            yield Judged(f"{self._name}+{label}", self.seed, {}, problem=error.problem), None
            return
        yield self._judged(simulated), simulated

    def _simulate(
        self, extra: tuple[Interruption, ...] = (), watch: Callable[[World], object] | None = None
    ) -> Simulated:
        order = self.order
        return simulate(
            self.target,
            self.seed,
            mutant=order.mutant,
            kernel=order.kernel,
            swarm=order.swarm,
            extra=extra,
            watch=watch,
        )

    def _judged(self, simulated: Simulated) -> Judged:
        return judge_simulated(self.target, self.seed, simulated, self.order.mutant, whole=self.order.show)

    @property
    def _name(self) -> str:
        return draw(self.target.manifest, Tape.from_seed(self.seed), self.seed).name
