"""Named points: counted, switched per run, struck at; what never held is told; faults end before liveness is judged."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

import simkit
from simkit.disk import DiskFaults
from simkit.network import NetworkOptions
from simkit.point_coverage import Coverage, DeclaredPoint, declared
from simkit.points import PointError
from simkit.process import ProcessDead
from simkit.tape import Tape
from simkit.world import Outcome, World, run
from tests.simkit.network_rig import connected, serve
from tests.simkit.rig import outcome_of, simulate


def test_outside_a_simulation_points_do_nothing() -> None:
    """A program keeps them in production."""
    assert not simkit.maybe("rare", 1, 1)
    simkit.always("never true", condition=False)
    simkit.sometimes("never true", condition=False)
    simkit.reachable("here")
    simkit.unreachable("here")
    trio.run(simkit.eventually, "never true", lambda: False)


async def hundred(world: World) -> int:
    return sum(simkit.maybe("rare") for _ in range(100))


def test_a_maybe_is_switched_per_run_and_drawn_each_time() -> None:
    """Off in about half of the runs; in the others True about one time in four; the same seed, the same answers."""
    fired = [simulate(hundred, seed) for seed in range(40)]
    on = [count for count in fired if count]
    assert 10 <= len(on) <= 30
    assert all(10 <= count <= 40 for count in on)
    assert fired == [simulate(hundred, seed) for seed in range(40)]


def test_a_maybe_is_replayed_from_departures_and_shrinks_to_false() -> None:
    """The departures bring back the same answers; without them nothing fires."""
    seed = next(seed for seed in range(40) if simulate(hundred, seed))
    outcome = outcome_of(hundred, seed)
    again = run(hundred, tape=Tape.from_departures(outcome.departures, entropy=seed))
    assert (again.value, again.digest) == (outcome.value, outcome.digest)
    assert run(hundred, tape=Tape.from_departures({}, entropy=seed)).value == 0


def test_points_are_counted_in_the_outcome() -> None:
    """How often reached, how often held, which kind, and where it stands."""

    async def main(_: World) -> None:
        for number in range(5):
            simkit.always("small", number < 10)
            simkit.sometimes("four", number == 4)
            if number > 2:
                simkit.reachable("large")

    points = outcome_of(main).points
    assert {name: (count.kind, count.reached, count.held) for name, count in points.items()} == {
        "small": ("always", 5, 5),
        "four": ("sometimes", 5, 1),
        "large": ("reachable", 2, 2),
    }
    assert all(count.where.startswith(f"{__file__}:") for count in points.values())


@pytest.mark.parametrize("swallow", [False, True])
@pytest.mark.parametrize("kind", ["always", "unreachable"])
def test_what_must_hold_fails_the_run_also_when_the_program_swallows_it(kind: str, *, swallow: bool) -> None:
    """The error names the point and the line; a process that catches everything does not hide it."""

    async def program() -> None:
        try:
            simkit.always("sum", condition=False) if kind == "always" else simkit.unreachable("sum")
        except AssertionError:
            if not swallow:
                raise

    async def main(world: World) -> str:
        return (await world.host("a").start(program).wait()).kind

    outcome = outcome_of(main)
    assert isinstance(outcome.error, PointError)
    assert outcome.error.name == "sum"
    assert f"{__file__}:" in str(outcome.error)
    assert len(outcome.failures) == (0 if swallow else 1)


def test_one_name_is_one_kind_of_point() -> None:
    """Two points that share a name by mistake are told apart."""

    async def main(_: World) -> None:
        simkit.reachable("x")
        simkit.sometimes("x", condition=True)

    with pytest.raises(ValueError, match=r"'x' is reachable at .*, and sometimes at"):
        simulate(main)


async def counter(reached: list[int]) -> None:
    for number in range(10):
        simkit.reachable("loop")
        reached.append(number)
        await trio.sleep(1)


def test_a_process_is_killed_at_a_named_point_as_if_out_of_memory() -> None:
    """The third time it gets there, on that host, and its code goes no further."""

    async def main(world: World) -> tuple[list[list[int]], list[str]]:
        world.points.out_of_memory_at("loop", nth=3, host="b")
        logs: dict[str, list[int]] = {"a": [], "b": []}
        processes = [world.host(name).start(counter, log) for name, log in logs.items()]
        return list(logs.values()), [(await process.wait()).kind for process in processes]

    outcome = outcome_of(main)
    assert outcome.unwrap() == ([list(range(10)), [0, 1]], ["exited", "killed"])
    assert [event.detail for event in outcome.trace.events() if event.kind == "out-of-memory"] == ["b/main#102"]


def test_memory_pressure_can_be_drawn_for_all_points() -> None:
    """Over seeds some processes die at the point and some get through."""

    async def main(world: World) -> str:
        world.points.out_of_memory = (1, 10)
        return (await world.host("a").start(counter, []).wait()).kind

    assert {simulate(main, seed) for seed in range(20)} == {"killed", "exited"}


def test_memory_errors_are_raised_where_they_are_asked_for_or_drawn() -> None:
    """The process may catch it and goes on; calm ends them; another host is not concerned."""

    async def program() -> int:
        failed = 0
        for _ in range(200):
            try:
                simkit.reachable("allocates")
            except MemoryError:
                failed += 1
        return failed

    async def main(world: World) -> list[object]:
        a, b = world.host("a"), world.host("b")
        world.points.memory_error_at("allocates", nth=3, host="a")
        seen = [(await host.start(program).wait()).value for host in (a, b)]
        world.points.memory_errors = (1, 4)
        seen.append(20 < (await a.start(program).wait()).value < 90)
        world.calm()
        return [*seen, (await a.start(program).wait()).value]

    assert simulate(main) == [1, 0, True, 0]


def test_anything_can_be_done_at_a_named_point() -> None:
    """An action at a point; when it takes the power, the code there is gone at once."""
    reached: list[int] = []
    seen: list[str] = []

    async def main(world: World) -> None:
        host = world.host("a")

        async def program() -> None:
            try:
                await counter(reached)
            except ProcessDead:
                seen.append("dead")
                raise

        world.points.at("loop", host.power_loss, nth=2)
        with pytest.raises(ValueError, match="from 1 on"):
            world.points.at("loop", host.power_loss, nth=0)
        await host.start(program).wait()
        await trio.sleep(5)

    simulate(main)
    assert reached == [0]
    assert seen == ["dead"]


def test_eventually_turns_the_faults_off_first() -> None:
    """A cut link, a paused server, a failing disk: all are well again, and the condition comes true."""

    async def main(world: World) -> int:
        host = world.host("server")
        host.disk.faults = DiskFaults(write_eio=(1, 1))
        host.clock.jump(10**12)
        world.network.options = NetworkOptions(breaks=(1, 1))
        process = serve(host)
        done: list[int] = []

        async def client() -> None:
            stream = await connected()
            await stream.send_all(b"x")
            done.append(len(await stream.receive_some()))
            host.disk.open("/f", create=True).write(b"x", 0)

        world.network.partition("client", "server")
        process.pause()
        world.host("client").start(client)
        await trio.sleep(20)
        assert not done
        await simkit.eventually("served", lambda: bool(done) and host.disk.exists("/f"))
        assert host.clock.skew_ns == 0
        return world.now_ns

    outcome = outcome_of(main)
    assert outcome.unwrap() < 60 * 10**9
    assert outcome.points["served"].held == 1


def test_what_never_comes_true_is_a_violation_after_the_bound() -> None:
    """`eventually` gives up after its time, not before; async conditions are awaited."""

    async def never() -> bool:
        await trio.sleep(0.001)
        return False

    async def main(world: World) -> None:
        try:
            await simkit.eventually("rain", never, within_ns=5 * 10**9)
        finally:
            assert 5 * 10**9 <= world.now_ns < 6 * 10**9

    with pytest.raises(PointError, match="rain: eventually does not hold"):
        simulate(main)


SOURCE = """
import simkit
import simkit as sk
from simkit import points, reachable as got
from simkit.points import maybe

simkit.maybe("a", 1, 2)
sk.sometimes("b", x)
got("c")
maybe(name="d")
points.always("e", True)
await simkit.eventually("f", x)
simkit.maybe(variable)
other.maybe("no")
simkit.run("no")
"""


def test_declared_points_are_read_from_the_source(tmp_path: Path) -> None:
    """However they were imported; only literal names, only our functions."""
    (tmp_path / "program.py").write_text(SOURCE, encoding="utf-8")
    found = declared(tmp_path)
    assert [(point.name, point.kind) for point in found] == [
        ("a", "maybe"),
        ("b", "sometimes"),
        ("c", "reachable"),
        ("d", "maybe"),
        ("e", "always"),
        ("f", "eventually"),
    ]
    assert found[0].where == f"{tmp_path / 'program.py'}:7"


def test_a_campaign_tells_which_points_were_never_hit() -> None:
    """Counts add up over runs; missing are points nobody reached, and those that were reached and never held."""

    async def main(world: World) -> None:
        simkit.maybe("tried")
        simkit.sometimes("false", condition=False)
        simkit.sometimes("true", condition=True)

    outcomes: list[Outcome[None]] = [outcome_of(main, seed) for seed in range(20)]
    coverage = Coverage.of(outcomes)
    assert coverage.runs == 20
    assert coverage.points["true"].held == 20
    assert 0 < coverage.points["tried"].held < 20
    points = [DeclaredPoint(name, "reachable", "x.py:1") for name in ("true", "nowhere")]
    points.append(DeclaredPoint("wrong", "unreachable", "x.py:2"))
    assert [point.name for point in coverage.never(points)] == ["false", "nowhere"]
    assert Coverage().merge(coverage) == coverage


def test_a_search_tells_which_points_were_never_hit() -> None:
    """Over all schedules it has tried; a point that only some of them reach is hit."""

    async def main(_world: World) -> None:
        order: list[int] = []

        async def run(number: int) -> None:
            await trio.lowlevel.checkpoint()
            order.append(number)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(run, 1)
            nursery.start_soon(run, 2)
        if order == [2, 1]:
            simkit.reachable("overtaken")
        simkit.sometimes("out of three", len(order) == 3)

    counts = simkit.search(main, "random", runs_max=20).counts
    assert 0 < counts.points.points["overtaken"].reached < 20
    assert [(point.name, point.kind) for point in counts.never()] == [("out of three", "sometimes")]
    assert [point.name for point in counts.never([DeclaredPoint("nowhere", "reachable", "x.py:1")])] == [
        "nowhere",
        "out of three",
    ]
