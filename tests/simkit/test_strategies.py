"""Strategies on programs small enough to count by hand: how many schedules there are, and which of them fail."""

from __future__ import annotations

import math
from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from simkit import Limits, World, search, step, touch
from simkit.errors import SimkitError
from simkit.searching import Found, NotFound, Program
from simkit.strategies import (
    NAMES,
    PCT,
    DelayBounded,
    Exhaustive,
    Exploration,
    FirstCome,
    Measured,
    Portfolio,
    RandomWalks,
    Reduced,
    TrioBatches,
    Twice,
    named,
)
from simkit.strategy import StrategyError, TaskView

SAMPLERS = ("random", "trio", "pct1", "pct3", "pos", "surw", "reads-from", "portfolio")


def rows(*lengths: int) -> Program:
    """Tasks that take so many undeclared steps each; everything else takes its steps alone."""

    async def program(_world: World) -> None:
        async def row(steps: int) -> None:
            for _ in range(steps - 1):
                await trio.lowlevel.checkpoint()

        async with trio.open_nursery() as nursery:
            for length in lengths:
                nursery.start_soon(row, length)

    return program


Access = tuple[str, str]


def scripts(*tasks: tuple[Access, ...], ends: list[tuple[Any, ...]] | None = None) -> Program:
    """Tasks that read and write as told; a write writes what the task has read so far, so that every order shows.

    Each appends what it read; `ends` gets what all of them read and wrote in each run.
    """

    async def program(_world: World) -> None:
        memory: dict[str, Any] = {}
        seen: list[list[Any]] = [[] for _ in tasks]

        async def follow(number: int, script: tuple[Access, ...]) -> None:
            for place, (kind, name) in enumerate(script):
                await step(kind, name)  # type: ignore[arg-type]
                if kind in {"read", "update"}:
                    seen[number].append(memory.get(name))
                if kind in {"write", "update"}:
                    memory[name] = (number, place)

        async with trio.open_nursery() as nursery:
            for number, script in enumerate(tasks):
                nursery.start_soon(follow, number, script)
        if ends is not None:
            ends.append((tuple(map(tuple, seen)), tuple(sorted(memory.items()))))

    return program


async def lost_update(_world: World) -> None:
    """Two tasks add one, each in two steps."""
    value = 0

    async def add() -> None:
        nonlocal value
        await step("read", "value")
        seen = value
        await step("write", "value")
        value = seen + 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(add)
        nursery.start_soon(add)
    assert value == 2, "lost"


def explored(program: Program, strategy: Exploration | str, **options: Any) -> NotFound:
    found = search(program, strategy, guard=False, **options)
    assert isinstance(found, NotFound)
    return found


# --------------------------------------------------------------------------------------------------------- exhaustive
def interleavings(*lengths: int) -> int:
    return math.factorial(sum(lengths)) // math.prod(math.factorial(length) for length in lengths)


@pytest.mark.parametrize("lengths", [(1,), (3, 3), (2, 2, 2), (4, 1, 2), (1, 1, 1, 1)])
def test_every_interleaving_is_run_once(lengths: tuple[int, ...]) -> None:
    """Rows of steps have as many schedules as the multinomial says, and each run shows another."""
    found = explored(rows(*lengths), Exhaustive())
    assert found.exhausted
    assert (found.counts.runs, found.counts.schedules) == (interleavings(*lengths),) * 2


def schedules_by_delays(lengths: tuple[int, ...], delays: int, current: int = 0) -> int:
    """Schedules with at most so many delays, counted on paper: run on, and at each choice skip up to so many."""
    ready = [number for number, left in enumerate(lengths) if left]
    if not ready:
        return 1
    ring = sorted(ready, key=lambda number: (number < current, number))
    total = 0
    for skipped, number in enumerate(ring[: delays + 1]):
        after = tuple(left - (each == number) for each, left in enumerate(lengths))
        total += schedules_by_delays(after, delays - skipped, number)
    return total


@pytest.mark.parametrize("delays", range(5))
@pytest.mark.parametrize("lengths", [(3, 3), (2, 2, 2), (3, 1, 2)])
def test_delay_bounds_count_exactly(lengths: tuple[int, ...], delays: int) -> None:
    """Each schedule within the bound is run once, and none beyond it."""
    found = explored(rows(*lengths), DelayBounded(delays))
    assert found.exhausted
    assert (found.counts.runs, found.counts.schedules) == (schedules_by_delays(lengths, delays),) * 2


def test_fewer_delays_come_first() -> None:
    """The default order comes first, so that what fails there is told without a search."""

    async def fails(_world: World) -> None:
        raise ValueError

    found = search(fails, DelayBounded(3))
    assert isinstance(found, Found)
    assert found.counts.runs == 1


def test_a_program_that_does_not_repeat_itself_is_told() -> None:
    """State that outlives a run makes the next one another program, and an exhaustive search says so."""
    runs = 0

    async def changing(world: World) -> None:
        nonlocal runs
        runs += 1
        await rows(*[2] * (1 + runs))(world)

    for strategy in (Exhaustive(), Reduced(), Twice(RandomWalks())):
        with pytest.raises(SimkitError, match="did not repeat itself"):
            search(changing, strategy)


# ------------------------------------------------------------------------------------------------------------- reduced
W, R = "write", "read"


@pytest.mark.parametrize(
    ("tasks", "classes"),
    [
        ((((W, "x"),), ((W, "y"),)), 1),
        ((((W, "x"),), ((R, "x"),)), 2),
        ((((R, "x"),), ((R, "x"),)), 1),
        ((((W, "x"), (W, "y")), ((W, "y"), (W, "x"))), 3),  # both orders of x and of y, less the one that is a cycle
        ((((W, "x"),) * 2, ((W, "x"),) * 2), 6),
        ((((W, "x"), (W, "y"), (W, "z")),) * 2, 8),
        ((((W, "x"),), ((W, "x"),), ((W, "x"),)), 6),
    ],
)
def test_reduction_runs_each_class_once(tasks: tuple[tuple[Access, ...], ...], classes: int) -> None:
    """As many runs as there are orders of dependent steps, where sleep sets drop none half-way."""
    found = explored(scripts(*tasks), Reduced(declared=True))
    assert found.exhausted
    assert found.counts.runs == classes


def test_undeclared_steps_are_reduced_by_nothing() -> None:
    """Whoever declares nothing depends on everything: as many runs as without reduction."""
    assert explored(rows(3, 3), Reduced()).counts.runs == explored(rows(3, 3), Exhaustive()).counts.runs


accesses = st.tuples(st.sampled_from(["read", "write", "update", "local"]), st.sampled_from(["x", "y", "z"]))
programs = st.lists(st.lists(accesses, min_size=1, max_size=3).map(tuple), min_size=2, max_size=3).filter(
    lambda tasks: interleavings(*(len(task) + 1 for task in tasks)) <= 1_700
)


@settings(max_examples=10)
@given(programs)
def test_reduction_misses_no_end(tasks: list[tuple[Access, ...]]) -> None:
    """Whatever every schedule together can lead to, the reduced ones lead to, in no more runs."""
    everywhere: list[tuple[Any, ...]] = []
    reduced: list[tuple[Any, ...]] = []
    full = explored(scripts(*tasks, ends=everywhere), Exhaustive(), runs_max=2_000)
    less = explored(scripts(*tasks, ends=reduced), Reduced(declared=True), runs_max=2_000)
    assert full.exhausted
    assert less.exhausted
    assert set(reduced) == set(everywhere)
    assert less.counts.runs + less.counts.redundant <= full.counts.runs


def locked(*orders: str) -> Program:
    """Tasks that take trio locks by name, in order, and let go of them all; declared as acquisitions."""

    async def program(_world: World) -> None:
        locks = {name: trio.Lock() for name in sorted(set("".join(orders)))}

        async def take(order: str) -> None:
            for name in order:
                await step("acquire", name)
                await locks[name].acquire()
            for name in order:
                await step("release", name)
                locks[name].release()

        async with trio.open_nursery() as nursery:
            for order in orders:
                nursery.start_soon(take, order)

    return program


@settings(max_examples=8)
@given(st.lists(st.sampled_from(["a", "b", "ab", "ba"]), min_size=2, max_size=2))
def test_reduction_finds_every_deadlock(orders: list[str]) -> None:
    """Where some schedule deadlocks, a reduced search finds one that does; where none does, both say so."""
    full = search(locked(*orders), Exhaustive(), guard=False, runs_max=20_000)
    less = search(locked(*orders), Reduced(), guard=False, runs_max=20_000)
    assert bool(full) == bool(less)
    assert bool(full) == (sorted(orders) == ["ab", "ba"])


# ------------------------------------------------------------------------------------------------------------ samplers
@pytest.mark.parametrize("name", [name for name in SAMPLERS if name not in {"trio", "pct1"}])
def test_samplers_find_a_lost_update(name: str) -> None:
    """Every sampler that pre-empts finds the smallest of faults, under twenty seeds."""
    for seed in range(20):
        found = search(lost_update, name, runs_max=100, seed=seed, guard=False)
        assert isinstance(found, Found), f"{name} with seed {seed}"


def test_pct_of_depth_one_never_preempts() -> None:
    """Without a change of priorities no task is interrupted, and no update lost, but by the probe."""
    found = search(lost_update, PCT(1), runs_max=200, seed=1, guard=False)
    assert isinstance(found, NotFound) or found.counts.runs == 1


def test_trio_takes_everybody_once_a_round() -> None:
    """In trio's own order two tasks of three steps have two schedules a round, eight in all, not twenty."""
    assert explored(rows(3, 3), TrioBatches(), runs_max=300).counts.schedules == 8
    assert explored(rows(3, 3), "random", runs_max=300).counts.schedules == 20


@pytest.mark.parametrize("name", SAMPLERS)
def test_the_same_seed_searches_the_same(name: str) -> None:
    """Two searches with one seed agree in every count; with another seed in some they do not."""
    one, same, other = (explored(rows(2, 3, 2), name, runs_max=20, seed=seed).counts for seed in (5, 5, 6))
    assert one == same
    assert name == "trio" or one != other


@pytest.mark.parametrize("name", [*SAMPLERS, "delays2", "exhaustive", "reduced"])
def test_unfair_strategies_end_fairly(name: str) -> None:
    """A task that spins until another has done something cannot hold up a run: it ends, within bounds."""

    async def spinning(_world: World) -> None:
        ready = False

        async def spin() -> None:
            while not ready:
                await step("read", "ready")

        async def tell() -> None:
            nonlocal ready
            await step("write", "ready")
            ready = True

        async with trio.open_nursery() as nursery:
            nursery.start_soon(spin)
            nursery.start_soon(spin)
            nursery.start_soon(tell)

    assert explored(spinning, name, runs_max=30).counts.inconclusive == 0


@pytest.mark.parametrize("name", [*SAMPLERS, "delays1", "reduced"])
def test_strategies_survive_kills_and_pauses(name: str) -> None:
    """Tasks that vanish, are held back before their first step, or come back, confuse no strategy."""

    async def worker() -> None:
        while True:
            await step("update", "work")

    async def turbulent(world: World) -> None:
        host = world.host("h")
        for _ in range(2):
            held, killed, left = (host.start(worker) for _ in range(3))
            held.pause()
            await step("read", "work")
            killed.kill()
            held.resume()
            await step("read", "work")
            left.pause()
            left.kill()
            held.kill()

    counts = explored(turbulent, name, runs_max=10, limits=Limits(steps=2_000)).counts
    assert counts.runs + counts.redundant > 0


def test_surw_is_uniform_over_what_it_selects() -> None:
    """Three writes against one: where the one comes is one of four places, each about as likely; not so in a random walk."""
    ends: list[tuple[Any, ...]] = []
    tasks = (((W, "x"),) * 3, ((R, "x"),))
    explored(scripts(*tasks, ends=ends), "surw", runs_max=400, seed=3)
    seen = [reads[1][0] for reads, _ in ends]
    shares = [seen.count(value) / len(seen) for value in (None, (0, 0), (0, 1), (0, 2))]
    assert min(shares) > 0.15


def test_pos_draws_anew_only_in_a_race() -> None:
    """With 1 writer and many readers of other things, POS lets the reader of its own thing see both values."""
    ends: list[tuple[Any, ...]] = []
    explored(scripts(((W, "x"),), ((R, "x"),), ((R, "y"),), ends=ends), "pos", runs_max=40)
    assert {reads[1][0] for reads, _ in ends} == {None, (0, 0)}


class Broken:
    """An exploration, and a strategy, that is wrong in one place."""

    name = "broken"
    same_world = False

    def __init__(self, where: str, answer: Any = None) -> None:
        self.where = where
        self.answer = answer

    def begin(self, stream: object) -> Any:
        return self.wrong("begin", self)

    def end(self, outcome: object) -> None:
        self.wrong("end", None)

    def pick(self, runnable: list[TaskView], step: int) -> int:
        return int(self.wrong("pick", 0)) if self.answer is None else self.answer

    def wrong(self, where: str, right: Any) -> Any:
        if where == self.where:
            raise KeyError(where)
        return right


@pytest.mark.parametrize(
    ("where", "told"),
    [("begin", "beginning of run 0"), ("pick", "step 2 of the schedule"), ("end", "end of run 1")],
)
def test_a_strategy_that_raises_is_told_apart_from_a_failure(where: str, told: str) -> None:
    """What a strategy gets wrong, in a run or around it, is not found in the program; the next search is none the worse."""
    with pytest.raises(StrategyError, match=rf"the strategy .*Broken raised KeyError: '{where}'\n +where: .*{told}"):
        search(rows(2, 2), Broken(where))
    assert not search(rows(2, 2), "random", runs_max=5)


@pytest.mark.parametrize("wrap", [Measured, Twice])
@pytest.mark.parametrize(("answer", "told"), [(7, "picked 7"), (-1, "picked -1"), ("0", "picked '0', which is no int")])
def test_a_wrapped_strategy_is_the_one_that_is_named(wrap: Any, answer: Any, told: str) -> None:
    """Whoever wraps it is not blamed."""
    with pytest.raises(StrategyError, match=f"the strategy Broken {told}"):
        search(rows(2, 2), wrap(Broken("nowhere", answer)))


# ------------------------------------------------------------------------------------------ portfolios and wrappings
def test_a_portfolio_takes_turns_and_lets_the_done_go() -> None:
    """A member with nothing left leaves; when all have left, the search is over."""
    both = Portfolio([FirstCome(), Exhaustive()])
    found = explored(rows(3, 3), both)
    assert found.exhausted
    assert (found.counts.runs, found.counts.schedules) == (21, 20)


def test_metrics_count_what_a_strategy_does() -> None:
    """Twenty schedules of two rows: six steps of theirs each, and a decision wherever both can go on."""
    measured = Measured(Exhaustive())
    found = explored(rows(3, 3), measured)
    assert measured.measures.runs == 20
    assert measured.measures.steps == found.counts.steps
    assert measured.measures.width_max == 2
    plain = Measured(FirstCome())
    explored(rows(3, 3), plain)
    assert (plain.measures.decisions, plain.measures.preemptions) == (5, 4)
    assert "1 runs" in str(plain.measures)


@pytest.mark.parametrize("name", ["random", "surw", "exhaustive", "delays2"])
def test_twice_passes_what_repeats_itself(name: str) -> None:
    """A deterministic program survives the check, at two runs each."""
    found = explored(rows(2, 2), Twice(named(name)), runs_max=12)
    assert found.counts.runs % 2 == 0


def test_twice_sees_what_a_task_is_about_to_do() -> None:
    """A difference in a declared effect is told at the step before it happens, though every schedule is the same."""
    runs = 0

    async def sly(_world: World) -> None:
        nonlocal runs
        runs += 1
        touch("write", f"thing {runs}")
        await trio.lowlevel.checkpoint()

    with pytest.raises(SimkitError, match="write thing 2"):
        search(sly, Twice(FirstCome()))


def test_names_make_strategies() -> None:
    """Every listed name makes a strategy of that name; others are told with what there is."""
    assert [named(name).name for name in NAMES] == list(NAMES)
    assert named("pct7").name == "pct7"
    for wrong in ("pct", "pct0", "nothing", "delays-1"):
        with pytest.raises(SimkitError, match="there is no strategy called"):
            named(wrong)
