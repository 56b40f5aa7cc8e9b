"""What a run shows: edges of the program's code, points, faults, pairs of events, shapes of disks."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

import simkit
from simkit.coverage import EdgesSkippedWarning, Features
from simkit.coverage.edges import step
from simkit.coverage.scope import Scope
from simkit.coverage.shapes import folded
from simkit.disk import ALWAYS
from simkit.tape import Tape
from simkit.world import World, run

MONITORED = sys.version_info >= (3, 12)
needs_monitoring = pytest.mark.skipif(not MONITORED, reason="NOT TESTED: sys.monitoring is there from Python 3.12 on")
needs_tracing = pytest.mark.skipif(MONITORED, reason="NOT TESTED: sys.settrace is used before Python 3.12 only")
REPOSITORY = Path(simkit.__file__).parent.parent


@pytest.fixture(autouse=True)
def untraced() -> Iterator[None]:
    """Where edges need the trace function, nobody else has it, though coverage.py may measure the test suite."""
    tracer = sys.gettrace()
    sys.settrace(tracer if MONITORED else None)
    try:
        yield
    finally:
        sys.settrace(tracer)


def features_of(program: Any, seed: int = 0, **options: Any) -> frozenset[str]:
    with Features.of(program, **options) as features:
        run(program, tape=Tape.from_seed(seed)).unwrap()
        return features.take()


def edges(features: frozenset[str]) -> set[str]:
    """The edges among features, without how often."""
    return {feature.rpartition(" x")[0] for feature in features if feature.startswith("edge ")}


# --------------------------------------------------------------------------------------------------------------- edges
async def _turns(world: World, tasks: int) -> None:
    async def task(number: int) -> None:
        for turn in range(4):
            if turn % 2:
                await trio.lowlevel.checkpoint()
            else:
                await trio.sleep(number)

    async with trio.open_nursery() as nursery:
        for number in range(tasks):
            nursery.start_soon(task, number)


async def one_task(world: World) -> None:
    await _turns(world, 1)


async def three_tasks(world: World) -> None:
    await _turns(world, 3)


def test_tasks_that_take_turns_make_no_edges_between_their_lines() -> None:
    """Three tasks in the same lines, in turns, take the edges that one takes, and no other."""
    alone, together = edges(features_of(one_task, every=1)), edges(features_of(three_tasks, every=1))
    first = _turns.__code__.co_firstlineno
    lines = range(first + 2, first + 6)
    found = [{edge for edge in shown if _target(edge) in lines} for shown in (alone, together)]
    assert found[0] == found[1] != set()


def _target(edge: str) -> int:
    return int(edge.partition(">")[2].split(" ")[0].partition("+")[0])


def _numbers(n: int) -> Iterator[int]:
    for number in range(n):
        if number % 2:
            yield number
        else:
            yield -number


async def generators(world: World) -> None:
    """Two generators of the same code, in turns."""
    for one, other in zip(_numbers(4), _numbers(4), strict=True):
        assert one == other


async def a_generator(world: World) -> None:
    for one in _numbers(4):
        assert isinstance(one, int)


def test_generators_that_take_turns_make_no_edges_between_their_lines() -> None:
    """Two generators of one function, advanced in turns, take the edges of one."""
    lines = range(_numbers.__code__.co_firstlineno, _numbers.__code__.co_firstlineno + 6)
    found = [
        {edge for edge in edges(features_of(program, every=1)) if _target(edge) in lines}
        for program in (generators, a_generator)
    ]
    assert found[0] == found[1] != set()


async def counts(world: World) -> None:
    for _ in range(world.tape.stream("n").choose("times", 200)):
        pass


def test_how_often_is_told_in_steps() -> None:
    """A loop that runs once more is nothing new from four on; twice as often is."""
    assert [step(times) for times in (1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 127, 128, 9999)] == [
        *(1, 2, 3, 4, 4, 8, 8, 16, 16, 32, 32, 128, 128)
    ]

    def shown(times: int) -> frozenset[str]:
        with Features.of(counts, every=1) as features:
            run(counts, tape=Tape.from_departures({("n", "times", 0): times})).unwrap()
            return features.take()

    assert shown(40) == shown(100)
    assert shown(40) != shown(20)


async def raises(world: World) -> None:
    try:
        if world.tape.stream("n").choose("times", 2):
            int("x")
    except Exception:  # noqa: BLE001  # a handler without a condition is no branch
        pass


def test_a_handler_that_is_entered_is_an_edge() -> None:
    """An exception leads to its handler by an edge of its own."""
    shown = []
    for value in (0, 1):
        with Features.of(raises, every=1) as features:
            run(raises, tape=Tape.from_departures({("n", "times", 0): value} if value else {})).unwrap()
            shown.append(edges(features.take()))
    handler = raises.__code__.co_firstlineno + 4
    assert not any(_target(edge) == handler for edge in shown[0])
    assert any(_target(edge) == handler for edge in shown[1])


def test_only_the_code_of_the_program_counts(tmp_path: Path) -> None:
    """Nothing of simkit, trio and the standard library is an edge; other folders are when they are named."""
    library = tmp_path / "library"
    library.mkdir()
    (library / "sums.py").write_text("def total(numbers):\n    return sum(n for n in numbers if n)\n")
    sys.path.insert(0, str(tmp_path))
    try:
        from library.sums import total  # type: ignore[import-not-found]
    finally:
        sys.path.remove(str(tmp_path))

    async def program(world: World) -> None:
        trio.Path("x").joinpath("y")
        total([1, 0])

    here, both = features_of(program, every=1), features_of(program, every=1, prefixes=[library])
    assert {edge.partition(":")[0] for edge in edges(here)} == {"edge tests/simkit/test_coverage.py"}
    assert any(edge.startswith("edge library/sums.py:") for edge in edges(both))
    assert edges(here) <= edges(both)


def test_a_scope_names_files_alike_everywhere(tmp_path: Path) -> None:
    """A file is called by its path below the folder of its package; what is Python's own or ours has no name."""
    (tmp_path / "store").mkdir()
    scope = Scope.below([tmp_path / "store"])
    assert scope.name(str(tmp_path / "store" / "wal" / "log.py")) == "store/wal/log.py"
    assert scope.name(str(tmp_path / "storeroom.py")) is None
    everything = Scope.below(["/"])
    assert everything.name(simkit.world.__file__) is None
    assert everything.name(trio.__file__) is None
    assert everything.name(subprocess.__file__) is None
    assert everything.name("<frozen importlib._bootstrap>") is None


def test_edges_of_a_sample_of_runs() -> None:
    """With every=3, the first run has edges, the next two have not, and the count of them is told."""
    with Features.of(counts, every=3) as features:
        shown = []
        for _ in range(6):
            run(counts, tape=Tape.from_departures({})).unwrap()
            shown.append(bool(edges(features.take())))
        assert shown == [True, False, False, True, False, False]
        assert (features.runs, features.runs_with_edges) == (6, 2)
    with pytest.raises(ValueError, match="every"):
        Features.of(counts, every=0)


# --------------------------------------------------------------------------------------------------- nothing is left
def test_tracing_leaves_nothing_behind() -> None:
    """The trace function is what it was, also when a run is interrupted in the middle."""

    async def interrupted(world: World) -> None:
        raise KeyboardInterrupt

    before = sys.gettrace()
    with pytest.raises(KeyboardInterrupt), Features.of(interrupted, every=1):
        run(interrupted, tape=Tape.from_seed(0))
    assert sys.gettrace() is before


@needs_tracing
def test_a_tracer_that_is_there_is_left_alone() -> None:
    """Where somebody traces already, no edges are collected, which is told loudly, and the tracer goes on tracing."""
    calls: list[str] = []

    def tracer(frame: Any, event: str, _arg: Any) -> Any:
        calls.append(frame.f_code.co_name)

    with Features.of(counts, every=1) as features:
        sys.settrace(tracer)
        try:
            with pytest.warns(EdgesSkippedWarning, match="traces this thread"):
                run(counts, tape=Tape.from_seed(0)).unwrap()
            assert sys.gettrace() is tracer
        finally:
            sys.settrace(None)
        assert not edges(features.take())
        assert "traces this thread" in features.blind
        assert features.runs_with_edges == 0
    assert "counts" in calls


@needs_monitoring
def test_monitoring_leaves_nothing_behind() -> None:
    """Afterwards the tool id is free, and no event is on, neither everywhere nor in the program's code."""
    monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
    with Features.of(counts) as features:
        run(counts, tape=Tape.from_seed(0)).unwrap()
        assert edges(features.take())
        mine = [tool for tool in range(6) if monitoring.get_tool(tool) == "simkit coverage"]
        assert len(mine) == 1
    assert monitoring.get_tool(mine[0]) is None
    monitoring.use_tool_id(mine[0], "test")
    try:
        assert monitoring.get_events(mine[0]) == 0
        assert monitoring.get_local_events(mine[0], counts.__code__) == 0
        assert monitoring.register_callback(mine[0], monitoring.events.PY_START, None) is None
    finally:
        monitoring.free_tool_id(mine[0])


@needs_monitoring
def test_another_tool_id_is_taken_when_one_is_in_use() -> None:
    """A tool that has the id is not disturbed; when all are taken, no edges are collected, which is told loudly."""
    monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
    taken = [tool for tool in range(6) if monitoring.get_tool(tool) is None]
    for tool in taken[:-1]:
        monitoring.use_tool_id(tool, "other")
    try:
        with Features.of(counts) as features:
            run(counts, tape=Tape.from_seed(0)).unwrap()
            assert edges(features.take())
            assert features.blind == ""
        monitoring.use_tool_id(taken[-1], "other")
        with pytest.warns(EdgesSkippedWarning, match="every tool id"):
            assert not edges(features_of(counts))
        assert all(monitoring.get_tool(tool) == "other" for tool in taken)
    finally:
        for tool in taken:
            monitoring.free_tool_id(tool)


@needs_monitoring
def test_a_second_collector_sees_what_the_first_saw() -> None:
    """What the first has disabled, or its id, hides nothing from a later one, nor from one at the same time."""
    first = features_of(three_tasks)
    assert features_of(three_tasks) == first
    with Features.of(three_tasks) as outer, Features.of(three_tasks) as inner:
        run(three_tasks, tape=Tape.from_seed(0)).unwrap()
        assert outer.take() == inner.take() == first


# ----------------------------------------------------------------------------------------------------- other features
async def busy(world: World) -> None:
    """A host that writes, loses its power, and starts again."""

    async def write() -> None:
        for number in range(2):
            await trio.Path(f"/data/wal-{number:04}.log").write_bytes(bytes(700))
        simkit.sometimes("written", True)
        simkit.sometimes("odd", False)
        await trio.sleep_forever()

    host = world.host("store-1")
    host.disk.faults = attrs.evolve(host.disk.faults, fsync_lies=ALWAYS)
    host.start(write)
    await trio.sleep(1)
    host.disk.open("/data/wal-0000.log").fsync()
    host.power_loss("keep")
    host.start(write)
    await trio.sleep(1)


def test_points_faults_pairs_and_shapes_are_features() -> None:
    """Each kind of feature is there, in words that do not change from host to host or from file to file."""
    shown = features_of(busy, edges=False)
    assert {"point written on", "point odd off", "end returned"} <= shown
    assert "fault disk/store-#:lying-fsync" in shown
    assert {"pair power-loss > killed", "pair boundary create > boundary write"} <= shown
    assert "disk crash store-# /data/wal-#.log <1024 dirty many" in shown
    assert "disk restart store-# /data/wal-#.log <1024 zeroed many" in shown
    assert any(feature.startswith("disk end store-# ") for feature in shown)
    assert "switch main > store-#/main##" in shown
    assert not edges(shown)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("/data/wal-0017.log", "/data/wal-#.log"),
        ("/tmp/tmpk3v_9ab1/x", "/tmp/tmp*/x"),
        ("/blobs/3f2504e0-4f89-11d3-9a0c-0305e82c3301", "/blobs/#"),
        ("/blobs/54fbfacd064dc657.bin", "/blobs/#.bin"),
        ("/facade/defaced", "/facade/defaced"),
        ("replica-2", "replica-#"),
    ],
)
def test_names_are_folded(name: str, kind: str) -> None:
    """Numbers, digests and made-up names do not count; words do, also those of the letters a to f."""
    assert folded(name) == kind


def test_a_run_that_is_not_watched_pays_nothing_and_says_nothing() -> None:
    """After the block, runs are not looked at; `take` gives what was seen once."""
    with Features.of(busy, edges=False) as features:
        run(busy, tape=Tape.from_seed(0)).unwrap()
        assert features.seen
        assert features.take()
        assert not features.take()
    run(busy, tape=Tape.from_seed(0)).unwrap()
    assert not features.seen
    assert not simkit.watching.watchers


@pytest.mark.slow
def test_features_are_the_same_in_every_process() -> None:
    """Two processes with other seeds of hashing show the same features, and find the same by the same mutations."""
    program = (
        "import sys, warnings; warnings.simplefilter('error')\n"
        "from tests.simkit.test_coverage import busy, features_of\n"
        "from tests.simkit.test_guided import chain, guided\n"
        "print(*sorted(features_of(busy, every=1)), sep='\\n')\n"
        "found = guided(chain, 5, 120, every=1)\n"
        "print(found.curve, found.result.counts.runs, [entry.id for entry in found.corpus])\n"
    )
    told = [
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=REPOSITORY,
            env={"PYTHONHASHSEED": seed, "PATH": ""},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert told[0] == told[1]
    assert "edge " in told[0]


def test_no_warning_where_edges_are_seen() -> None:
    """Collecting edges says nothing where it works."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert edges(features_of(counts, every=1))
