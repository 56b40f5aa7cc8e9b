"""Machines of rules as workloads: hypothesis draws which rule comes next and with what, each example is one simulated run.

A class of rules, which may be async. The decorators are hypothesis's own; those here are typed for async methods:

    class Machine(simkit.StateMachine):
        async def begin(self): …             # hosts, processes
        @rule(key=st.sampled_from("ab"))
        async def put(self, key): …
        @invariant()
        async def agrees(self): …

    test_machine = Machine.as_test()

Rules are drawn while the run goes on, so that preconditions and bundles see what it has come to. A failing example is shrunk
by hypothesis, to the fewest and simplest steps; then the steps are fixed, and the run is shrunk as any other. A case holds
the steps, so that it is replayed without hypothesis choosing anything. Steps whose precondition no longer holds, or whose
value was never made, are passed over then.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

import attrs
import hypothesis
import hypothesis.stateful
from hypothesis import strategies as st
from hypothesis.errors import UnsatisfiedAssumption
from hypothesis.stateful import (
    INITIALIZE_RULE_MARKER,
    INVARIANT_MARKER,
    RULE_MARKER,
    Bundle,
    MultipleResults,
    VarReference,
    consumes,
    invariant,
    multiple,
    precondition,
)

from simkit import testing
from simkit._guard import state
from simkit.errors import Problem, SimkitError
from simkit.examples import Reference
from simkit.settings import parse_seeds
from simkit.trials import MAKERS, StrategyMaker

if TYPE_CHECKING:
    from simkit.world import World

__all__ = [
    "Bundle",
    "StateMachine",
    "Step",
    "consumes",
    "initialize",
    "invariant",
    "multiple",
    "precondition",
    "rule",
]

_F = TypeVar("_F", bound=Callable[..., Any])

#: One step: the name of a rule, and its arguments; those that come from a bundle as references.
Step = Sequence[Any]
#: About one in so many steps is the last, so that hypothesis can leave out all that follow. Of a range of more than 127
#: numbers hypothesis draws the ends more often than others.
_ENDS = 120


def rule(*, target: Any = None, targets: Sequence[Any] = (), **arguments: Any) -> Callable[[_F], _F]:
    """As `hypothesis.stateful.rule`; what an async rule returns, once it has ended, goes to its targets."""
    named = {"target": target} if target is not None else {"targets": targets}
    return cast("Callable[[_F], _F]", hypothesis.stateful.rule(**named, **arguments))


def initialize(*, target: Any = None, targets: Sequence[Any] = (), **arguments: Any) -> Callable[[_F], _F]:
    """As `hypothesis.stateful.initialize`: a rule that runs once, before all others."""
    named = {"target": target} if target is not None else {"targets": targets}
    return cast("Callable[[_F], _F]", hypothesis.stateful.initialize(**named, **arguments))


class StateMachine:
    """A workload: rules that are carried out one after another inside a simulated world, and invariants between them."""

    world: World
    #: For hypothesis's bundles: names by bundle, and values by name.
    bundles: dict[str, list[VarReference]]
    names_to_values: dict[str, Any]

    def __init__(self, world: World) -> None:
        self.world = world
        self.bundles = {}
        self.names_to_values = {}

    async def begin(self) -> None:
        """Called before the first rule."""

    async def end(self) -> None:
        """Called after the last rule, unless one failed: for what must hold in the end."""

    def bundle(self, name: str) -> list[VarReference]:
        """What a bundle holds; hypothesis asks."""
        return self.bundles.setdefault(name, [])

    @classmethod
    def as_test(
        cls,
        *,
        settings: hypothesis.settings | None = None,
        seeds: int | str | Sequence[int] | None = None,
        strategy: str | StrategyMaker | None = None,
        processes_may_fail: bool = False,
    ) -> Callable[[], None]:
        """A test function for pytest; calling it runs the examples.

        Args:
            settings: of hypothesis; default: its own, without deadline and health checks. `stateful_step_count` bounds rules.
            seeds: the tapes that hypothesis may choose from, as for `simkit.test`; None for what settings say.
            strategy: who takes the next step: "random", "fifo", or a function from a tape's stream to a `Strategy`.
            processes_may_fail: as for `simkit.test`.
        """
        if isinstance(strategy, str) and strategy not in MAKERS:
            raise _misused(cls, f"its runs cannot be those of the strategy {strategy!r}", f"one of {', '.join(MAKERS)}")
        rules = _Rules.of(cls)
        if isinstance(seeds, int | str):
            seeds = parse_seeds(str(seeds))

        async def play(steps: Script | Sequence[Step], world: World) -> None:
            __tracebackhide__ = True
            script = steps if isinstance(steps, _Drawn) else _Fixed(steps)  # type: ignore[arg-type]
            await _play(cls(world), rules, script)

        spec = testing.Spec(play, seeds, strategy, processes_may_fail)
        chosen = settings or hypothesis.settings(
            deadline=None,
            suppress_health_check=list(hypothesis.HealthCheck),
            phases=[phase for phase in hypothesis.Phase if phase is not hypothesis.Phase.explain],  # we explain the run
        )

        def machine(data: st.DataObject) -> None:
            __tracebackhide__ = True
            _run_example(spec, data, chosen.stateful_step_count)

        machine.__module__, machine.__qualname__ = cls.__module__, f"{cls.__qualname__}.as_test"
        with contextlib.suppress(OSError, TypeError):  # reports show the class, as it is what was written for this test
            line = inspect.getsourcelines(cls)[1]
            machine.__code__ = machine.__code__.replace(co_filename=inspect.getfile(cls), co_firstlineno=line)
        machine.simkit_spec = spec  # type: ignore[attr-defined]
        test: Callable[[], None] = chosen(hypothesis.given(data=st.data())(machine))
        return test


# ---- playing


class Script(Protocol):
    """Says what to do next."""

    def next(self, machine: StateMachine, rules: Sequence[Any], *, swarm: bool) -> Step | None:
        """The next step, one of `rules` by name; None for the end. `swarm`: some of these may be left out of the run."""
        ...


@attrs.frozen
class _Rules:
    """What the decorators said of a class."""

    rules: Mapping[str, Any]
    initial: Mapping[str, Any]
    invariants: Sequence[Any]

    @classmethod
    def of(cls, machine: type[StateMachine]) -> _Rules:
        def marked(marker: str) -> dict[str, Any]:
            found = [(name, getattr(member, marker, None)) for name, member in inspect.getmembers(machine)]
            return {name: mark for name, mark in found if mark is not None}

        rules = marked(RULE_MARKER)
        if not rules:
            raise _misused(machine, "it has no rules", "at least one method with hypothesis.stateful.rule")
        return cls(rules, marked(INITIALIZE_RULE_MARKER), list(marked(INVARIANT_MARKER).values()))


async def _play(machine: StateMachine, rules: _Rules, script: Script) -> None:
    __tracebackhide__ = True
    waiting = dict(rules.initial)
    await machine.begin()
    await _check(machine, rules, begun=not waiting)
    while True:
        step = script.next(machine, list((waiting or rules.rules).values()), swarm=not waiting)
        if step is None:
            break
        name, arguments = step
        rule = waiting.pop(name, None) or rules.initial.get(name) or rules.rules.get(name)
        if rule is None:
            raise _misused(type(machine), f"it has no rule {name!r}", "the rules that it had when the case was saved")
        if await _step(machine, rule, arguments):
            await _check(machine, rules, begun=not waiting)
    await machine.end()


async def _step(machine: StateMachine, rule: Any, arguments: Mapping[str, Any]) -> bool:
    """Carry out a rule; False for one that cannot be."""
    __tracebackhide__ = True
    missing = [
        one for one in arguments.values() if isinstance(one, Reference) and one.name not in machine.names_to_values
    ]
    if missing or not all(holds(machine) for holds in rule.preconditions):
        return False
    values = {
        name: machine.names_to_values[one.name] if isinstance(one, Reference) else copy.deepcopy(one)
        for name, one in arguments.items()
    }
    machine.world.trace.aside("note", _told((rule.function.__name__, arguments)))
    result = await _awaited(rule.function(machine, **values))
    if rule.targets:
        for target in rule.targets:
            for value in result.values if isinstance(result, MultipleResults) else [result]:
                name = f"{target}_{sum(known.startswith(f'{target}_') for known in machine.names_to_values)}"
                machine.names_to_values[name] = value
                machine.bundle(target).append(VarReference(name))
    return True


async def _check(machine: StateMachine, rules: _Rules, *, begun: bool) -> None:
    __tracebackhide__ = True
    for one in rules.invariants:
        if (begun or one.check_during_init) and all(holds(machine) for holds in one.preconditions):
            await _awaited(one.function(machine))


async def _awaited(result: Any) -> Any:
    __tracebackhide__ = True
    return await result if isinstance(result, Awaitable) else result


# ---- where steps come from


class _Fixed:
    """Steps of an earlier run."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps = iter(steps)

    def next(self, machine: StateMachine, rules: Sequence[Any], *, swarm: bool) -> Step | None:
        return next(self._steps, None)


class _Drawn:
    """Steps that hypothesis draws; the guard is off meanwhile, as hypothesis looks at its clock and reads its tables."""

    def __init__(self, data: st.DataObject, steps_max: int) -> None:
        self.steps: list[Step] = []
        #: With what hypothesis ended the example.
        self.ended_with: BaseException | None = None
        self._data = data.conjecture_data
        self._steps_max = steps_max
        self._off: frozenset[str] | None = None

    def next(self, machine: StateMachine, rules: Sequence[Any], *, swarm: bool) -> Step | None:
        if len(self.steps) >= self._steps_max:
            return None
        with state.off():
            try:
                self._data.hypothesis_runner = machine
                step = self._data.draw(self._step(machine, rules, swarm=swarm))
            except BaseException as raised:
                self.ended_with = raised
                raise
            if step is not None:
                hypothesis.note(_told(step))
        if step is not None:
            self.steps.append(copy.deepcopy(step))
        return step

    def _step(self, machine: StateMachine, rules: Sequence[Any], *, swarm: bool) -> st.SearchStrategy[Step | None]:
        """One draw for a whole step, so that hypothesis can leave it out as a whole."""
        possible = [rule for rule in rules if _is_possible(machine, rule)]

        @st.composite
        def step(draw: st.DrawFn) -> Step | None:
            if not possible or draw(st.integers(0, _ENDS)) == 0:
                return None
            if (
                swarm and self._off is None
            ):  # swarm testing (Groce et al., ISSTA 2012): some rules are left out of the run
                names = sorted(rule.function.__name__ for rule in rules)
                self._off = draw(st.frozensets(st.sampled_from(names), max_size=len(names) - 1))
            on = [rule for rule in possible if rule.function.__name__ not in (self._off or ())]
            rule = draw(st.sampled_from(on or possible))
            drawn = draw(st.fixed_dictionaries(dict(rule.arguments_strategies)))
            return [rule.function.__name__, {name: _referred(value) for name, value in drawn.items()}]

        return step()


def _is_possible(machine: StateMachine, rule: Any) -> bool:
    return all(machine.bundle(one.name) for one in rule.bundles) and all(holds(machine) for holds in rule.preconditions)


def _referred(value: Any) -> Any:
    return Reference(value.name) if isinstance(value, VarReference) else value


def _told(step: Step) -> str:
    name, arguments = step
    told = [f"{key}={one.name if isinstance(one, Reference) else repr(one)}" for key, one in arguments.items()]
    return f"await machine.{name}({', '.join(told)})"


def _run_example(spec: testing.Spec, data: st.DataObject, steps_max: int) -> None:
    """One example: a tape and its steps."""
    __tracebackhide__ = True
    ambient = testing.current()
    if ambient.instead is not None:
        ambient.instead(spec, {})
        return
    seeds = ambient.seeds or spec.seeds or ambient.settings.seeds
    seed = data.conjecture_data.draw(st.sampled_from(seeds))
    drawn = _Drawn(data, steps_max)
    trial = next(_runs(spec, drawn, seed, ambient))
    error = testing.failure_of(spec, trial.outcome)
    if drawn.ended_with is not None:
        raise drawn.ended_with
    if error is None:
        ambient.passed.append(seed)
        return
    if not isinstance(error, UnsatisfiedAssumption):
        hypothesis.note(f"on the tape of seed {seed}")
        arguments = {"steps": drawn.steps}
        ambient.failures.append(testing.Failed(spec, seed, seed, arguments, trial.outcome, error))
    raise error.with_traceback(testing.of_program(error, spec))


def _runs(spec: testing.Spec, drawn: _Drawn, seed: int, ambient: testing.Ambient) -> Iterator[Any]:
    """The run of a seed; strategies that explore need many runs of one program, and each example is another."""
    strategy = testing.strategy_of(spec, ambient.settings)
    if isinstance(strategy, str) and strategy not in MAKERS:
        spec = attrs.evolve(spec, strategy="random")
    return testing.runs_of(spec, {"steps": drawn}, [seed], ambient.settings)


def _misused(machine: type[StateMachine], what: str, expected: str) -> SimkitError:
    name = machine.__qualname__
    return SimkitError(
        Problem("machine-misused", f"{name} cannot be run: {what}", name, expected, "see simkit.stateful")
    )
