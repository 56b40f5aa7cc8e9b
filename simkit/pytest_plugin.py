"""The pytest plugin: seeds of `@simkit.test`, failing seeds under ids of their own, replay of cases, the failure block.

A test runs its seeds one after another inside one item; the first that fails is shrunk, explained, saved, drawn, and reported
under the id `test_x[seed=17]`, which `--lf` and the command line find again. Where xdist has several processes, a test of many
seeds is an item for each. Importing this loads neither trio nor hypothesis, apsw or networkx: whoever does not simulate does
not wait.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

if TYPE_CHECKING:
    from simkit._pytest.inquest import Found
    from simkit._pytest.replay import Replayed
    from simkit.case import Case
    from simkit.settings import Settings
    from simkit.testing import Failed, Spec
    from simkit.trials import Explored

_SEED = "_simkit_seed"
_Parsed = TypeVar("_Parsed")
#: What ends a test without saying that it found something.
_NO_FAILURE = (KeyboardInterrupt, SystemExit, pytest.skip.Exception, pytest.xfail.Exception, pytest.exit.Exception)
_FOUND: pytest.StashKey[Found] = pytest.StashKey()
_REPLAYED: pytest.StashKey[Replayed] = pytest.StashKey()
_REDRAWN: pytest.StashKey[str] = pytest.StashKey()
_PASSED: pytest.StashKey[list[int]] = pytest.StashKey()
_PLAN: pytest.StashKey[_Plan] = pytest.StashKey()
_EXPLORED: pytest.StashKey[Sequence[Explored]] = pytest.StashKey()
_POINTS: pytest.StashKey[list[Any]] = pytest.StashKey()
_STANDING: pytest.StashKey[str] = pytest.StashKey()


class _Plan:
    """What the command line and pyproject.toml want of this session."""

    def __init__(self, config: pytest.Config) -> None:
        from simkit import settings

        self.profile: str | None = config.getoption("simkit_profile")
        self.settings: Settings = settings.load(config.rootpath, self.profile)
        self.store = config.rootpath / self.settings.store
        seeds, seed = config.getoption("simkit_seeds"), config.getoption("simkit_seed")
        if seeds is not None and seed is not None:
            raise pytest.UsageError(
                f"--simkit-seed {seed} and --simkit-seeds {seeds} both say which seeds to run: give one"
            )
        #: Overrides what tests say themselves.
        self.seeds: range | None = None if seeds is None else _parsed(settings.parse_seeds, "--simkit-seeds", seeds)
        self.seed: int | None = None if seed is None else _parsed(settings.parse_seed, "--simkit-seed", seed)
        from simkit._pytest import splitting

        self.parts = splitting.wanted(config.getoption("simkit_split"))
        self.pages: Path | None = None
        if config.getoption("simkit_html") is not None:
            from simkit._pytest import page

            self.pages = page.folder(config.getoption("simkit_html"), config.invocation_params.dir, self.store)
        self.case: Case | None = None
        name = config.getoption("simkit_replay")
        if name is not None:
            from simkit._pytest import replay

            self.case = replay.find(name, self.store)
        from simkit._pytest.looking import OPTIONS, Look, check_terminal

        self.look = Look(**{to: config.getoption(option[2:].replace("-", "_")) for to, option in OPTIONS.items()})
        self.look.check(replays=self.case is not None)
        if self.look.break_at is not None:
            check_terminal(config)


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options."""
    group = parser.getgroup("simkit", "simulated tests (simkit)")
    group.addoption("--simkit-seeds", metavar="N|A-B", help="seeds of every simulated test: the first N, or A to B")
    group.addoption("--simkit-seed", metavar="N", help="run simulated tests with this one seed")
    group.addoption("--simkit-replay", metavar="CASE", help="replay a case: its id, the beginning of it, or its file")
    group.addoption(
        "--simkit-until", metavar="N", type=int, help="stop the replay before event N, and tell what stands where"
    )
    group.addoption("--simkit-break", metavar="N", type=int, help="open the debugger in the replay before event N")
    group.addoption("--simkit-trace", metavar="FILE", help="write the events of the replay, one JSON object a line")
    group.addoption("--simkit-profile", metavar="NAME", help="settings of [tool.simkit.profiles.NAME]")
    group.addoption(
        "--simkit-html", metavar="DIR", nargs="?", const="", help="a page for each failing simulated test, in DIR"
    )
    group.addoption(
        "--simkit-split", metavar="N|auto|off", help="make the seeds of a test N items (auto: as xdist has processes)"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Read the settings when an option asks for them; else at the first simulated test."""
    options = ("seeds", "seed", "replay", "until", "break", "trace", "profile", "html", "split")
    if any(config.getoption(f"simkit_{option}") is not None for option in options):
        _plan(config)


def _plan(config: pytest.Config) -> _Plan:
    plan = config.stash.get(_PLAN, None)
    if plan is None:
        from simkit.errors import SimkitError

        try:
            plan = config.stash[_PLAN] = _Plan(config)
        except SimkitError as error:
            raise pytest.UsageError(str(error)) from None
    return plan


def _parsed(parse: Callable[[str], _Parsed], option: str, text: str) -> _Parsed:
    try:
        return parse(text)
    except ValueError as error:
        raise pytest.UsageError(f"{option}: {error}") from None


# ---------------------------------------------------------------------------------------------------------- collecting


def _spec(function: Any) -> Spec | None:
    """Without loading simkit.testing when nobody else has: then there is nothing to find."""
    testing = sys.modules.get("simkit.testing")
    spec: Spec | None = None if testing is None else testing.spec_of(function)
    return spec


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(obj: object) -> list[pytest.Item] | None:
    """The decorator, imported by its name, looks like a test and is none."""
    testing = sys.modules.get("simkit.testing")
    return [] if testing is not None and obj is testing.test else None


@pytest.fixture
def _simkit_seed(request: pytest.FixtureRequest) -> int | range | None:
    """The seed, or the seeds, that an item of its own runs; None for all."""
    seed: int | range | None = getattr(request, "param", None)
    return seed


@pytest.hookimpl(trylast=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Items of their own: for the seeds that `--lf`, the command line or `--simkit-seed` name, and for parts of many seeds."""
    spec = _spec(metafunc.function)
    if spec is None:
        return
    plan = _plan(metafunc.config)
    if plan.case is not None:
        return
    from simkit._pytest import nodes

    values: list[int | range | None]
    if plan.seed is not None:
        values = [plan.seed]
    else:
        named = _named_seeds(metafunc.config, metafunc.definition.nodeid)
        parts = _parts(metafunc, spec, plan)
        if not parts and not named:
            return
        values = [*parts, *named] if parts else [None, *named]
    ids = [pytest.HIDDEN_PARAM if value is None else nodes.id_of(value) for value in values]
    metafunc.fixturenames.append(_SEED)
    metafunc.parametrize(_SEED, values, indirect=True, ids=ids)


def _parts(metafunc: pytest.Metafunc, spec: Spec, plan: _Plan) -> list[range]:
    """The seeds of a test in parts, if it is to be split; hypothesis needs its examples in one place."""
    if hasattr(metafunc.function, "hypothesis"):
        return []
    from simkit._pytest import splitting

    processes = int(getattr(metafunc.config, "workerinput", {}).get("workercount", 1))
    return splitting.parts(spec, plan.settings, plan.seeds, plan.parts, processes)


def _named_seeds(config: pytest.Config, nodeid: str) -> list[int]:
    from simkit._pytest import nodes

    function = nodes.function_of(nodeid)
    named = [_from_root(config, argument) for argument in config.args if "seed=" in argument]
    if config.getoption("lf", default=False):
        named += _last_failed(config)
    return nodes.seeds_of(function, named)


def _last_failed(config: pytest.Config) -> list[str]:
    cache = getattr(config, "cache", None)
    return [] if cache is None else list(cache.get("cache/lastfailed", {}))


def _from_root(config: pytest.Config, argument: str) -> str:
    """An id as the command line has it, as an id from the root folder."""
    path, sep, rest = argument.partition("::")
    relative = os.path.relpath(config.invocation_params.dir / path, config.rootpath)
    return Path(relative).as_posix() + sep + rest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A replay runs the test of its case and nothing else."""
    case = config.stash[_PLAN].case if _PLAN in config.stash else None
    if case is None:
        return
    from simkit._pytest import nodes

    wanted = case.target["test"]
    found = nodes.find(wanted, [item.nodeid for item in items])
    if found is None:
        near = nodes.nearest(wanted, [item.nodeid for item in items])
        told = f"; near it are {', '.join(near)}" if near else ""
        raise pytest.UsageError(
            f"case {case.id} is of the test {wanted}, which is not among those collected here{told}"
        )
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid != found])
    items[:] = [item for item in items if item.nodeid == found]


# ------------------------------------------------------------------------------------------------------------- running


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Run a simulated test as the session wants it, and look into its failure."""
    spec = _spec(pyfuncitem.obj)
    if spec is None:
        _refuse_misuse(pyfuncitem.obj)
        return (yield)
    from simkit import testing

    plan = _plan(pyfuncitem.config)
    if plan.case is not None:
        return (yield from _replaying(pyfuncitem, plan, plan.case))
    own = _own_seeds(pyfuncitem)
    hypothesis = _is_hypothesis(pyfuncitem)
    seeds: Sequence[int] | None = [own] if isinstance(own, int) else own if isinstance(own, range) else plan.seeds
    ambient = testing.Ambient(plan.settings, seeds=seeds, quiet=not hypothesis)
    if not isinstance(own, int):
        ambient.first = _failed_before(pyfuncitem, own)
    try:
        with testing.surrounded(ambient):
            return (yield)
    except BaseException as error:
        failed = _failure_behind(error, ambient.failures)
        if failed is None or isinstance(error, _NO_FAILURE):
            _raise_misuse(error)
            raise
        found = _investigated(pyfuncitem, failed, plan)
        if hypothesis:  # its report speaks of the error as it raised it
            raise
        sys.stdout.write(found.output)  # captured: what the shrunk run printed belongs to the failure
        from simkit._pytest import telling

        raise telling.raisable(found.error) from None
    finally:
        pyfuncitem.stash[_PASSED] = sorted({seed for seed in ambient.first if seed in ambient.passed})
        if not hypothesis and not isinstance(own, int):
            pyfuncitem.stash[_EXPLORED] = ambient.explored
        if any(ambient.points):
            from simkit._pytest import never

            pyfuncitem.stash[_POINTS] = never.packed(ambient.points)


def _refuse_misuse(function: Any) -> None:
    """A test that cannot be run fails with the words for it, as it was found out in no line of its own."""
    testing = sys.modules.get("simkit.testing")
    if testing is not None:
        _raise_misuse(testing.misuse_of(function))


def _raise_misuse(error: BaseException | None) -> None:
    """Raise what is wrong with a test before it ran, fit to be shown; nothing for any other error."""
    from simkit.errors import SimkitError

    if isinstance(error, SimkitError):
        from simkit._pytest import telling

        raise telling.raisable(error) from None


def _investigated(item: pytest.Function, failed: Failed, plan: _Plan) -> Found:
    from simkit._pytest import inquest, nodes

    test = nodes.parsed(item.nodeid).base
    found = inquest.investigate(failed, test, _fixtures(item), plan.settings, plan.store)
    item.stash[_FOUND] = found
    return found


def _replaying(item: pytest.Function, plan: _Plan, case: Case) -> Generator[None, object, object]:
    """Run the case in place of seeds. Inside `@given` hypothesis is passed over: the case holds the example."""
    from simkit import testing
    from simkit._pytest import looking, telling
    from simkit._pytest.redrawing import redrawn
    from simkit._pytest.replay import replay, standstill

    def instead(spec: Spec, arguments: Any) -> None:
        __tracebackhide__ = True
        with looking.misuse_ends_the_session(), looking.Debugger(item.config) as debugger:
            if plan.look.until is not None:
                item.stash[_STANDING] = str(standstill(case, spec, arguments, plan.settings.limits, plan.look))
                pytest.skip(f"stopped before event {plan.look.until}")
            replayed = replay(case, spec, arguments, plan.settings.limits, plan.look, debugger)
        item.stash[_REPLAYED] = replayed
        if replayed.verdict.answer == "stopped":
            pytest.skip("the replay was ended in the debugger")
        if replayed.error is not None:
            item.stash[_REDRAWN] = redrawn(replayed, spec, arguments, plan.settings)
            raise telling.raisable(replayed.error.with_traceback(testing.of_program(replayed.error, spec))) from None
        if replayed.fails:
            seeds = spec.seeds or plan.settings.seeds
            pytest.fail(f"{replayed}; run `{telling.all_seeds(item, len(seeds))}`", pytrace=False)

    if _is_hypothesis(item):
        spec = _spec(item.obj)
        assert spec is not None
        instead(spec, _fixtures(item))
        return True
    with testing.surrounded(testing.Ambient(plan.settings, instead=instead)):
        return (yield)


def _failure_behind(error: BaseException, failures: Sequence[Failed]) -> Failed | None:
    """The simulated failure that `error` is, or that is in the group that it is."""
    inside = list(error.exceptions) if isinstance(error, BaseExceptionGroup) else []
    for failed in reversed(failures):
        if failed.error is error or any(failed.error is one for one in inside):
            return failed
    for one in inside:
        deeper = _failure_behind(one, failures)
        if deeper is not None:
            return deeper
    return None


def _own_seeds(item: pytest.Item) -> int | range | None:
    """The seed, or the part of the seeds, that an item is for; None for all of a test's."""
    callspec = getattr(item, "callspec", None)
    return None if callspec is None else callspec.params.get(_SEED)


def _is_hypothesis(item: pytest.Function) -> bool:
    return hasattr(item.obj, "hypothesis")


def _fixtures(item: pytest.Function) -> dict[str, Any]:
    names = item._fixtureinfo.argnames  # noqa: SLF001  # what pytest itself passes to the function
    fixtures = {name: item.funcargs[name] for name in names}
    if item.instance is not None:
        fixtures["self"] = item.instance
    return fixtures


def _failed_before(item: pytest.Item, part: range | None) -> list[int]:
    from simkit._pytest import nodes

    base = nodes.parsed(item.nodeid).base
    known = [nodes.parsed(nodeid) for nodeid in _last_failed(item.config)]
    seeds = sorted({node.seed for node in known if node.base == base and node.seed is not None})
    return [seed for seed in seeds if part is None or seed in part]


# ----------------------------------------------------------------------------------------------------------- reporting


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the block, and report a failing seed under its own id. What is put into the report goes along from a worker."""
    report = yield
    if report.when != "call":
        return report
    passed = item.stash.get(_PASSED, [])
    if passed:
        vars(report)["simkit_passed"] = passed
    if report.passed and _POINTS in item.stash:
        vars(report)["simkit_points"] = item.stash[_POINTS]
    if _STANDING in item.stash:
        vars(report)["simkit_answer"] = item.stash[_STANDING]
    found, replayed = item.stash.get(_FOUND, None), item.stash.get(_REPLAYED, None)
    if found is not None and report.failed:
        from simkit._pytest import telling

        plan = _plan(item.config)
        telling.tell(item, report, found, plan.settings, plan.profile, plan.pages)
        if not isinstance(_own_seeds(item), int) and not (isinstance(item, pytest.Function) and _is_hypothesis(item)):
            vars(report)["simkit_seed"] = found.failed.seed
    elif replayed is not None:
        if item.stash.get(_REDRAWN, ""):
            report.sections.append(("simkit", item.stash[_REDRAWN]))
        vars(report)["simkit_answer"] = str(replayed)
        case = replayed.verdict.case
        if report.failed and not (isinstance(item, pytest.Function) and _is_hypothesis(item)):
            vars(report)["simkit_seed"] = case.options.get("run", case.seed)
    elif report.passed and item.stash.get(_EXPLORED, []):
        from simkit._pytest import telling

        telling.tell_explored(item, report, item.stash[_EXPLORED])
    return report


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Listen to reports."""
    from simkit._pytest.session import Session

    session.config.pluginmanager.register(Session(session.config), "simkit-session")
