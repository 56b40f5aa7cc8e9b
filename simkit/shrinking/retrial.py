"""`Retrial`: a simkit program, run again with other departures and another schedule. And what makes two failures the same."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

from simkit.blame import places_of
from simkit.errors import SimkitError
from simkit.shrinking.loose import DrawnOrder, LooseSchedule
from simkit.shrinking.search import Attempt, Departures, Fingerprint, Plan
from simkit.shrinking.witness import Witness, Witnessed
from simkit.tape import Tape
from simkit.world import KernelName, Limits, Outcome, World, run


class Retrial:
    """Runs `main` with given departures and a loosely followed plan.

    Args:
        main: the program, as for `simkit.run`.
        entropy: the seed of the first run, for the same meaningless bytes.
        steps_max: a run that takes more steps does not count as failed; several times those of the first run.
        failure: what an outcome's failure is; None for a run that did not fail.
    """

    def __init__(
        self,
        main: Callable[[World], Awaitable[Any]],
        *,
        entropy: int = 0,
        steps_max: int = 100_000,
        failure: Callable[[Outcome[Any]], Fingerprint | None] | None = None,
        kernel: KernelName = "fast",
        guard: bool = True,
    ) -> None:
        self._main = main
        self.entropy = entropy
        self._limits = Limits(steps=steps_max)
        self._failure = failure or _by_error
        self._kernel: KernelName = kernel
        self._guard = guard
        #: The choices, by label and key, that any run so far was to make.
        self.choices: set[tuple[str, str]] = set()

    def __call__(self, departures: Departures, plan: Plan) -> Attempt:
        """Run once."""
        return self.run(departures, plan)[0]

    def run(self, departures: Departures, plan: Plan) -> tuple[Attempt, Outcome[Any]]:
        """Run once, and give the whole outcome as well; its schedule and departures make a case."""
        return self._run(Tape.from_departures(departures, entropy=self.entropy), LooseSchedule(plan))

    def redrawn(self, departures: Departures, seed: int) -> Attempt:
        """Run once by the default schedule, with the random numbers of `seed` in place of the first run's."""
        return self._run(Tape.from_departures(departures, entropy=seed), LooseSchedule())[0]

    def drawn(self, seed: int) -> Attempt:
        """Run once by the default schedule, with everything drawn from `seed`, choices too."""
        return self._run(Tape.from_seed(seed), LooseSchedule())[0]

    def reordered(self, departures: Departures, seed: int) -> Attempt:
        """Run once in an order drawn from `seed`."""
        uniform = Tape.from_seed(seed).stream("order").random_source("walk").random
        return self._run(Tape.from_departures(departures, entropy=self.entropy), DrawnOrder(uniform))[0]

    def _run(self, tape: Tape, strategy: LooseSchedule) -> tuple[Attempt, Outcome[Any]]:
        outcome = run(
            self._main,
            tape=tape,
            strategy=strategy,
            kernel=self._kernel,
            limits=self._limits,
            guard=self._guard,
        )
        self.choices |= tape.asked().keys()
        attempt = Attempt(
            self._failure(outcome), outcome.departures, strategy.plan(), tuple(strategy.moves), outcome.steps
        )
        return attempt, outcome

    def places(self, attempt: Attempt, steps: Iterable[tuple[int, int]]) -> dict[tuple[int, int], Witnessed]:
        """Run once more, and tell of each step (task number, which of its steps) whose it was and where it stood before."""
        witness = Witness(attempt.plan, steps)

        async def main(world: World) -> Any:
            witness.kernel = world.kernel
            return await self._main(world)

        tape = Tape.from_departures(attempt.departures, entropy=self.entropy)
        run(main, tape=tape, strategy=witness, kernel=self._kernel, limits=self._limits, guard=self._guard)
        return witness.seen


def _by_error(outcome: Outcome[Any]) -> Fingerprint | None:
    return None if outcome.error is None else fingerprint_of(outcome.error)


def fingerprint_of(error: BaseException) -> Fingerprint:
    """Type and place of an exception: two that were raised by the same line are the same failure, whatever they say.

    The line is the program's, see `simkit.blame`; of a deadlock they are those where tasks wait. Messages hold values
    (`assert 166 == 167`), which a simpler run changes; of a group, its distinct members count.
    """
    if isinstance(error, BaseExceptionGroup):
        return ("group", tuple(sorted({repr(fingerprint_of(one)) for one in error.exceptions})))
    code = (error.problem.code,) if isinstance(error, SimkitError) else ()
    places = [part for place in places_of(error) for part in (place.filename, place.lineno)]
    return (type(error).__qualname__, *code, *places)


def worded(fingerprint: Fingerprint) -> str:
    """What `fingerprint_of` gave, or its repr, for people: "AssertionError at bank.py:12"; any other as it is."""
    if isinstance(fingerprint, str):
        try:
            fingerprint = ast.literal_eval(fingerprint) if fingerprint.startswith("(") else (fingerprint,)
        except (SyntaxError, ValueError):
            return str(fingerprint)
    if not isinstance(fingerprint, tuple) or not fingerprint:
        return str(fingerprint)
    name, *rest = fingerprint
    if name == "group":
        return " and ".join(worded(one) for one in rest[0])
    lines = [f"{Path(file).name}:{line}" for file, line in itertools.pairwise(rest) if isinstance(line, int)]
    return f"{name} at {' and '.join(lines)}" if lines else str(name)
