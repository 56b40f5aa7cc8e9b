"""`simkit.test`: an async function with an argument `world` becomes a test that runs in a world of its own, seed by seed.

The decorated function is a plain one, without `world` among its arguments: pytest gives it its fixtures, hypothesis its
examples, and a plain call runs its seeds. `Ambient` is what a test runner, such as `pytest_plugin`, wants to be different.
Importing this loads neither trio nor a simulated world.
"""

# ruff: noqa: PT028  # `test` is no test

from __future__ import annotations

import contextlib
import difflib
import functools
import inspect
import io
import sys
import types
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

import attrs

from simkit import unawaited
from simkit._options import is_seed
from simkit.errors import ExitCode, Problem, SimkitError
from simkit.settings import Settings, parse_seeds
from simkit.trials import Explored, StrategyMaker, Trial, explores, is_known, known_names, trials

if TYPE_CHECKING:
    from simkit.points import PointCount  # noqa: TC004  # as below
    from simkit.world import Outcome, World  # noqa: TC004  # nobody reads these annotations; loading them loads trio

TestFunction = Callable[..., Awaitable[object]]
#: Seeds for each example of hypothesis, unless the decorator says how many.
_SEEDS_AN_EXAMPLE = 5
_OPTIONS = ("seeds", "strategy", "processes_may_fail")
_SEEDS_EXPECTED = "as many as the first 50, a range as 100-199, or a list of them"


@attrs.frozen
class Spec:
    """What the decorator said of one test."""

    function: TestFunction
    seeds: Sequence[int] | None
    strategy: str | StrategyMaker | None
    processes_may_fail: bool


@attrs.frozen
class Failed:
    """A simulated run that failed inside a test."""

    spec: Spec
    seed: int
    world_seed: int  # of its tape; another one where an exploration wants the same world in each run
    arguments: Mapping[str, Any]
    outcome: Outcome[Any] = attrs.field(repr=False)
    error: BaseException


@attrs.define
class Ambient:
    """What surrounds a test: settings, seeds that override its own, seeds to try first; and what failed."""

    settings: Settings = Settings()  # noqa: RUF009  # frozen
    seeds: Sequence[int] | None = None
    first: Sequence[int] = ()
    #: Whether what passing seeds print is dropped; the failing one is run again for its words.
    quiet: bool = False
    #: Instead of any seed: a stand-in that is called with the program.
    instead: Callable[[Spec, Mapping[str, Any]], object] | None = None
    passed: list[int] = attrs.field(factory=list)
    failures: list[Failed] = attrs.field(factory=list)
    explored: list[Explored] = attrs.field(factory=list)
    #: The counts of named points, run by run.
    points: list[Mapping[str, PointCount]] = attrs.field(factory=list)


_ambient = Ambient()


@contextlib.contextmanager
def surrounded(ambient: Ambient) -> Iterator[None]:
    """Inside the block, tests run as `ambient` says."""
    global _ambient  # noqa: PLW0603  # the one thing that a plain function cannot be handed
    previous, _ambient = _ambient, ambient
    try:
        yield
    finally:
        _ambient = previous


def current() -> Ambient:
    """What surrounds the tests right now."""
    return _ambient


@overload
def test(function: TestFunction, /) -> Callable[..., None]: ...


@overload
def test(
    *,
    seeds: int | str | Sequence[int] | None = None,
    strategy: str | StrategyMaker | None = None,
    processes_may_fail: bool = False,
) -> Callable[[TestFunction], Callable[..., None]]: ...


def test(
    function: TestFunction | None = None,
    /,
    *,
    seeds: int | str | Sequence[int] | None = None,
    strategy: str | StrategyMaker | None = None,
    processes_may_fail: bool = False,
    **unknown: object,
) -> Any:
    """Make an async function with an argument `world` a test that runs in a simulated world, once for each seed.

    Args:
        function: the test; the decorator is used with or without brackets.
        seeds: how many (the first 50, say), a range as text ("100-199"), or the seeds; None for what settings say.
        strategy: who takes the next step: the name of one (`simkit.strategies.NAMES`), or a function from a tape's stream to
            a `Strategy`. "random" and "fifo" take each seed by itself; the seeds of any other are the runs of one exploration.
        processes_may_fail: whether a process may end with an exception of its own; else that fails the test.
        unknown: there are no other options; a test with one fails and says which was meant.

    Returns: a plain function with the other arguments, which raises what the first failing seed raised.
    """
    if function is None:
        options = {"seeds": seeds, "strategy": strategy, "processes_may_fail": processes_may_fail}
        return functools.partial(test, **options, **unknown)
    if not callable(function):
        raise _misused(function, "it is no function", "`@simkit.test(seeds=20)`, with the arguments by name")
    signature = inspect.signature(function)
    try:
        _check_names(function, unknown)
        _check(function, signature, strategy)
        seeds = _seeds(function, seeds)
    except SimkitError as error:
        return _failing(function, error)
    spec = Spec(function, seeds, strategy, processes_may_fail)

    @functools.wraps(function)
    def runs_its_seeds(*args: Any, **kwargs: Any) -> None:
        __tracebackhide__ = True
        bound = runs_its_seeds.__signature__.bind(*args, **kwargs)  # type: ignore[attr-defined]
        _run_seeds(spec, bound.arguments)

    others = [one for name, one in signature.parameters.items() if name != "world"]
    runs_its_seeds.__signature__ = signature.replace(parameters=others, return_annotation=None)  # type: ignore[attr-defined]
    runs_its_seeds.simkit_spec = spec  # type: ignore[attr-defined]
    return runs_its_seeds


def misuse_of(function: Any) -> SimkitError | None:
    """Why a decorated function cannot be run; None for any other."""
    error = getattr(function, "simkit_misuse", None)
    return error if isinstance(error, SimkitError) else None


def spec_of(function: Any) -> Spec | None:
    """The spec of a decorated function, also of one inside hypothesis's `@given`; None for any other."""
    inner = getattr(getattr(function, "hypothesis", None), "inner_test", function)
    spec = getattr(inner, "simkit_spec", None)
    return spec if isinstance(spec, Spec) else None


def program_of(spec: Spec, arguments: Mapping[str, Any]) -> Callable[[World], Awaitable[object]]:
    """The test as a program for `simkit.run`."""
    return functools.partial(_call, spec.function, dict(arguments))


def strategy_of(spec: Spec, settings: Settings) -> str | StrategyMaker:
    """Who takes the steps: what the test says, else what the settings say."""
    return settings.strategy if spec.strategy is None else spec.strategy


def runs_of(
    spec: Spec,
    arguments: Mapping[str, Any],
    seeds: Iterable[int],
    settings: Settings,
    explored: list[Explored] | None = None,
) -> Iterator[Trial]:
    """The runs of a test that belong to `seeds`."""
    return trials(program_of(spec, arguments), strategy_of(spec, settings), seeds, settings.limits, explored)


def run_seed(spec: Spec, arguments: Mapping[str, Any], seed: int, settings: Settings) -> Outcome[Any]:
    """One run of a test, drawn from `seed`."""
    return next(runs_of(spec, arguments, [seed], settings)).outcome


def failure_of(spec: Spec, outcome: Outcome[Any]) -> BaseException | None:
    """Why a run fails its test; None when it passes."""
    if outcome.error is None and outcome.bound is not None:
        return _bound_met(outcome)
    return raised_in(outcome, processes_may_fail=spec.processes_may_fail)


def raised_in(outcome: Outcome[Any], *, processes_may_fail: bool) -> BaseException | None:
    """What main raised, or the first failed process, where none may fail: what main says after that is a consequence.

    Errors of the kit, such as a refusal or a deadlock, and what is no `Exception`, such as the end of a test by its runner,
    stay first.
    """
    error = outcome.error
    if processes_may_fail or isinstance(error, SimkitError) or not isinstance(error, Exception | None):
        return error
    ended = (process.status.error for process in outcome.failures if process.status is not None)
    return next((raised for raised in ended if raised is not None), error)


async def _call(function: TestFunction, arguments: dict[str, Any], world: World) -> object:
    """By name, so that the place of `world` among the arguments does not matter; `self` is one of them."""
    with unawaited.refused():
        return await function(**arguments, world=world)


def _run_seeds(spec: Spec, arguments: Mapping[str, Any]) -> None:
    __tracebackhide__ = True
    ambient = _ambient
    if ambient.instead is not None:
        ambient.instead(spec, arguments)
        return
    runs = runs_of(spec, arguments, seeds_of(spec, ambient), ambient.settings, ambient.explored)
    while True:
        with hushed() if ambient.quiet else contextlib.nullcontext():
            trial = next(runs, None)
        if trial is None:
            return
        ambient.points.append(trial.outcome.points)
        error = failure_of(spec, trial.outcome)
        if error is not None:
            ambient.failures.append(Failed(spec, trial.seed, trial.world_seed, arguments, trial.outcome, error))
            raise error.with_traceback(of_program(error, spec))
        ambient.passed.append(trial.seed)


def seeds_of(spec: Spec, ambient: Ambient) -> Iterator[int]:
    """Those that failed before, unless the runs depend on each other; then all others."""
    seeds = ambient.seeds
    if seeds is None:
        seeds = spec.seeds
    if seeds is None:
        seeds = ambient.settings.seeds[:_SEEDS_AN_EXAMPLE] if in_hypothesis() else ambient.settings.seeds
    first = () if explores(strategy_of(spec, ambient.settings)) else ambient.first
    yield from first
    yield from (seed for seed in seeds if seed not in first)


@contextlib.contextmanager
def hushed(into: io.StringIO | None = None) -> Iterator[None]:
    """Keep what programs print out of the report."""
    sink = into or io.StringIO()
    with contextlib.redirect_stdout(sink), contextlib.redirect_stderr(sink):
        yield


def in_hypothesis() -> bool:
    """Whether a hypothesis test is running right now."""
    module = sys.modules.get("hypothesis")
    return module is not None and bool(module.currently_in_test_context())


def of_program(error: BaseException, spec: Spec) -> types.TracebackType | None:
    """The traceback from the test's own frame on; all of it when it is not in there."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_frame.f_code is not spec.function.__code__:
        traceback = traceback.tb_next
    return traceback or error.__traceback__


def _failing(function: Callable[..., Any], error: SimkitError) -> Callable[..., None]:
    """A test that fails with what is wrong with it; raised at once it would take all other tests of the file with it."""

    def fails(*_args: object, **_kwargs: object) -> None:
        __tracebackhide__ = True
        raise error.with_traceback(None)  # where it was found out says nothing

    functools.update_wrapper(fails, function)
    fails.simkit_misuse = error  # type: ignore[attr-defined]
    fails.__signature__ = inspect.Signature()  # type: ignore[attr-defined]  # it needs no fixtures to fail
    return fails


def _seeds(function: TestFunction, seeds: int | str | Sequence[int] | None) -> Sequence[int] | None:
    if isinstance(seeds, int | str):
        try:
            return parse_seeds(str(seeds))
        except ValueError as error:
            raise _misused(function, f"seeds={seeds!r}: {error}", _SEEDS_EXPECTED) from None
    if seeds is not None:
        _check_seeds(function, seeds)
    return seeds


def _check_seeds(function: TestFunction, seeds: Sequence[int]) -> None:
    if not isinstance(seeds, Sequence):  # whoever is not told by the types
        raise _misused(function, f"seeds={seeds!r}: these are no seeds", _SEEDS_EXPECTED)
    if len(seeds) == 0:  # no evidence is no pass
        raise _misused(function, "it has no seeds", "at least one seed")
    for seed in seeds[:: max(1, len(seeds) - 1)] if isinstance(seeds, range) else seeds:  # of a range its ends say it
        if not is_seed(seed):
            raise _misused(function, f"seeds={seeds!r}: {seed!r} is no seed", "whole numbers from 0 to 2**256 - 1")


def _check_names(function: TestFunction, unknown: Mapping[str, object]) -> None:
    """Refuse options that there are not, with the nearest of those that there are."""
    for name in unknown:
        near = difflib.get_close_matches(name, _OPTIONS, n=1)
        meant = f" (did you mean {near[0]!r}?)" if near else ""
        raise _misused(
            function, f"there is no option {name!r}{meant}", f"of {', '.join(_OPTIONS)} those that are wanted"
        )


def _check(function: TestFunction, signature: inspect.Signature, strategy: object) -> None:
    if not inspect.iscoroutinefunction(function):
        raise _misused(function, "it is not an async function", "async def, with an argument `world`")
    if "world" not in signature.parameters:
        raise _misused(function, "it has no argument `world`", "an argument `world`, which gets the simulated world")
    if not (strategy is None or callable(strategy) or (isinstance(strategy, str) and is_known(strategy))):
        raise _misused(function, f"there is no strategy {strategy!r}", f"one of {known_names()}, or a function")


def _misused(function: object, what: str, expected: str) -> SimkitError:
    """The error, which says where the function stands."""
    name = getattr(function, "__qualname__", repr(function))
    code = getattr(inspect.unwrap(function) if callable(function) else function, "__code__", None)
    where = f"{code.co_filename}:{code.co_firstlineno} in {name}" if code is not None else name
    hint = "see `simkit.test`; with hypothesis, @given stands above @simkit.test"
    return SimkitError(Problem("test-misused", f"@simkit.test cannot run {name}: {what}", where, expected, hint))


def _bound_met(outcome: Outcome[Any]) -> SimkitError:
    hint = "something runs away, or `steps_max` in [tool.simkit] is too low"
    return SimkitError(
        Problem(
            "simulation-bound",
            f"inconclusive: the run met its bound on {outcome.bound} after {outcome.steps} steps",
            f"virtual time {outcome.now_ns} ns",
            "a run that ends",
            f"{hint}; the program stood here:\n{outcome.stack}" if outcome.stack else hint,
            ExitCode.INCONCLUSIVE,
        )
    )
