"""Worlds that cannot be: every wrong option is refused where it is given, by an error that names it, its value and what was
expected; and names that lead nowhere, code that is no program, a world that is over.
"""

from __future__ import annotations

import inspect
import math
import pickle
from collections.abc import Callable
from typing import Any

import attrs
import pytest
import trio

import simkit
from simkit import aio, points, threaded
from simkit._storage.faults import DiskFaults
from simkit.copies import Copies
from simkit.disk import Disk
from simkit.errors import ExitCode, OptionError, Problem
from simkit.exploring.running import Budget
from simkit.network import NetworkOptions
from simkit.tape import Tape
from simkit.world import Limits, World, run
from tests.simkit.rig import outcome_of, simulate

OPTIONS: list[tuple[Callable[[], object], str, str]] = [
    (lambda: NetworkOptions(latency_ns=-1), "NetworkOptions.latency_ns cannot be -1", "from 0 on"),
    (lambda: NetworkOptions(latency_ns=math.nan), "NetworkOptions.latency_ns cannot be nan", "a whole number"),  # type: ignore[arg-type]
    (lambda: NetworkOptions(stall_ns=True), "NetworkOptions.stall_ns cannot be True", "a whole number"),
    (lambda: NetworkOptions(breaks=(3, 2)), "NetworkOptions.breaks cannot be (3, 2)", "between 0 and 1"),
    (lambda: NetworkOptions(datagram_losses=(1, 0)), "datagram_losses cannot be (1, 0)", "between 0 and 1"),
    (lambda: NetworkOptions(stalls=0.5), "NetworkOptions.stalls cannot be 0.5", "(numerator, denominator)"),  # type: ignore[arg-type]
    (lambda: NetworkOptions(clogs=(-1, 5)), "NetworkOptions.clogs cannot be (-1, 5)", "between 0 and 1"),
    (lambda: NetworkOptions(bytes_per_s=0), "NetworkOptions.bytes_per_s cannot be 0", "from 1 on or None"),
    (lambda: NetworkOptions(buffer_bytes=0), "NetworkOptions.buffer_bytes cannot be 0", "from 1 on"),
    (lambda: NetworkOptions(death="slow"), "NetworkOptions.death cannot be 'slow'", "one of reset, eof, sampled"),  # type: ignore[arg-type]
    (lambda: NetworkOptions(spread=(1, 2)), "NetworkOptions.spread, spread_weights cannot be", "as many factors"),
    (lambda: NetworkOptions(spread=(1,), spread_weights=(0,)), "NetworkOptions.spread", "one weight above 0"),
    (lambda: DiskFaults(read_eio=(1, 0)), "DiskFaults.read_eio cannot be (1, 0)", "between 0 and 1"),
    (lambda: DiskFaults(slow_ns=-5), "DiskFaults.slow_ns cannot be -5", "from 0 on"),
    (lambda: Limits(steps=0), "Limits.steps cannot be 0", "from 1 on"),
    (lambda: Limits(steps=10.5), "Limits.steps cannot be 10.5", "a whole number"),  # type: ignore[arg-type]
    (lambda: Limits(time_ns=-1), "Limits.time_ns cannot be -1", "from 0 on"),
    (lambda: Limits(step_s=math.nan), "Limits.step_s cannot be nan", "seconds above 0"),
    (lambda: Limits(memory_bytes=0), "Limits.memory_bytes cannot be 0", "from 1 on"),
    (lambda: Limits(events="many"), "Limits.events cannot be 'many'", "a whole number"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("make", "what", "expected"), OPTIONS, ids=[what for _, what, _ in OPTIONS])
def test_options_that_make_no_sense(make: Callable[[], object], what: str, expected: str) -> None:
    """Refused as they are made, before any run; a ValueError as well, and fit to be sent between processes."""
    with pytest.raises(ValueError, match="option-wrong") as caught:
        make()
    error = caught.value
    assert isinstance(error, OptionError)
    assert what in error.problem.what
    assert expected in error.problem.expected
    assert error.problem.exit_code is ExitCode.USAGE
    assert pickle.loads(pickle.dumps(error)).problem == error.problem


async def idle() -> None:
    await trio.sleep(1)


WORLDS: list[tuple[Callable[[World], object], str]] = [
    (lambda world: world.add_host("a"), "World.host: name cannot be 'a'"),
    (lambda world: world.add_host("b", address="10.0.0.1"), "World.add_host: address cannot be '10.0.0.1'"),
    (lambda world: world.add_host("b", address="10.255.255.254"), "cannot be '10.255.255.254'"),
    (lambda world: world.add_host("b", address="127.0.0.1"), "World.add_host: address cannot be '127.0.0.1'"),
    (lambda world: world.add_host("b", address="10.0.0.999"), "World.add_host: address cannot be '10.0.0.999'"),
    (lambda world: world.host(""), "World.host: name cannot be ''"),
    (lambda world: world.host("a b"), "World.host: name cannot be 'a b'"),
    (lambda world: world.host("-a"), "World.host: name cannot be '-a'"),
    (lambda world: world.host("x" * 254), "World.host: name cannot be 'xxx"),
    (lambda world: world.host("outside"), "World.host: name cannot be 'outside'"),
    (lambda world: world.host("localhost"), "World.host: name cannot be 'localhost'"),
    (lambda world: world.host("10.0.0.7"), "World.host: name cannot be '10.0.0.7'"),
    (lambda world: world.host(7), "World.host: name cannot be 7"),  # type: ignore[arg-type]
    (lambda world: world.call_later(math.nan, print), "World.call_later: delay_ns cannot be nan"),  # type: ignore[arg-type]
    (lambda world: world.host("a").clock.adjust(drift_ppb=-2_000_000_000), "drift_ppb cannot be -2000000000"),
    (lambda world: world.host("a").clock.adjust(drift_ppb=0.5), "drift_ppb cannot be 0.5"),  # type: ignore[arg-type]
    (lambda world: world.host("a").clock.jump(-(10**20)), "Host.clock: nanoseconds cannot be -1000"),
    (lambda world: world.host("a").at_boundary(0, print), "Host.at_boundary: number cannot be 0"),
    (lambda world: world.host("a").start(idle()), "Host.start: fn cannot be <coroutine"),  # type: ignore[arg-type]
    (lambda world: world.host("a").start("idle"), "Host.start: fn cannot be 'idle'"),  # type: ignore[arg-type]
    (lambda world: world.host("a").start(idle).stall(-1), "Process.stall: ns cannot be -1"),
    (lambda world: setattr(world.host("a").disk, "capacity_bytes", -1), "Disk.capacity_bytes cannot be -1"),
    (lambda world: world.host("a").disk.fail_next("reed", 5), "Disk.fail_next: kind cannot be 'reed'"),
    (lambda world: world.host("a").disk.fail_next("read", 5, times=0), "Disk.fail_next: times cannot be 0"),
    (lambda world: world.host("a").disk.strike_next("rot"), "Disk.strike_next: fault cannot be 'rot'"),
    (lambda world: world.network.partition("a", "a"), "Network.partition cannot be ('a', 'a')"),
    (lambda world: world.network.clog("a", "outside", -1), "Network.clog: ns cannot be -1"),
    (lambda world: world.network.slow_reader("a", pause_ns=1, bytes_max=0), "bytes_max cannot be 0"),
    (lambda world: world.network.strike_next("loss"), "Network.strike_next: what cannot be 'loss'"),  # type: ignore[arg-type]
    (lambda world: world.network.strike_next("break", times=0), "Network.strike_next: times cannot be 0"),
    (lambda world: world.points.at("x", print, nth=0), "Points.at: nth cannot be 0"),
    (lambda world: setattr(world.points, "out_of_memory", (2, 1)), "Points.out_of_memory cannot be (2, 1)"),
    (lambda _world: points.maybe("x", 1, 0), "maybe('x') cannot be (1, 0)"),
    (lambda _world: points.maybe("x", 3, 2), "maybe('x') cannot be (3, 2)"),
]


@pytest.mark.parametrize(("do", "what"), WORLDS, ids=[what for _, what in WORLDS])
def test_worlds_that_cannot_be(do: Callable[[World], object], what: str) -> None:
    """The run ends there, with the option, the value and what to do; and the next run is well."""

    async def main(world: World) -> None:
        world.host("a")
        do(world)

    error = outcome_of(main).error
    assert isinstance(error, OptionError), error
    assert what in error.problem.what
    assert error.problem.expected
    simulate(lambda _world: idle())


def test_addresses_are_given_out_beside_those_that_were_asked_for() -> None:
    """Hosts made by name take the next free address; one made with an address is reached by it."""

    async def main(world: World) -> list[str]:
        second = world.add_host("second", address="10.0.0.2")
        return [
            world.host("first").address,
            world.host("third").address,
            world.network.resolve("second"),
            second.address,
        ]

    assert simulate(main) == ["10.0.0.1", "10.0.0.3", "10.0.0.2", "10.0.0.2"]


@pytest.mark.parametrize(
    ("name", "hint"), [("clinet", "did you mean 'client'?"), ("zzz", "world.host(name) makes a host")]
)
def test_a_fault_between_hosts_that_never_were(name: str, hint: str) -> None:
    """A link may be cut before its hosts are made; a name that no host ever had was a slip, said when the run is over."""

    async def main(world: World) -> None:
        world.network.partition(name, "server")
        world.host("server")
        world.host("client")

    error = outcome_of(main).error
    assert isinstance(error, OptionError)
    assert error.problem.what == f"Network.partition cannot be {name!r}"
    assert error.problem.hint == hint

    async def sound(world: World) -> None:
        world.network.partition("client", "server")
        world.host("server")
        world.host("client")

    assert outcome_of(sound).error is None


def test_a_process_that_is_no_async_function() -> None:
    """It would do nothing, and nobody would notice: the run ends with its name."""

    def forgot_async() -> int:
        return 7

    async def main(world: World) -> None:
        await world.host("a").start(forgot_async).wait()  # type: ignore[arg-type]

    error = outcome_of(main).error
    assert isinstance(error, OptionError)
    assert "forgot_async returned int, which nobody can await" in error.problem.expected


def test_a_world_that_is_over() -> None:
    """Starting something in it afterwards is refused; looking at its disks is not."""
    kept: list[World] = []

    async def main(world: World) -> None:
        kept.append(world)
        world.host("a").disk.load({"/x": b"1"})

    simulate(main)
    with pytest.raises(OptionError, match="a world that goes on"):
        kept[0].host("a").start(idle)
    assert kept[0].host("a").disk.read_file("/x") == b"1"


def test_copies_that_are_none() -> None:
    """As many must stay good as there are, at least one."""
    with pytest.raises(ValueError, match="2 good copies of 1"):
        Copies().declare("log", [("a", "/log")], good=2)


def test_a_disk_of_negative_size() -> None:
    """Also when it is made by hand."""
    with pytest.raises(OptionError, match="capacity_bytes"):
        Disk("disk", Tape.from_seed(0).stream("disk"), capacity_bytes=-1)


def test_main_that_is_no_async_function() -> None:
    """What cannot be awaited is the run's error."""
    assert isinstance(run(lambda _world: 7, tape=Tape.from_seed(0)).error, TypeError)  # type: ignore[arg-type,return-value]


def test_long_values_are_cut() -> None:
    """An error stays readable whatever it is about."""
    with pytest.raises(OptionError) as caught:
        Limits(steps="x" * 500)  # type: ignore[arg-type]
    assert isinstance(caught.value.problem, Problem)
    assert len(caught.value.problem.what) < 120


async def _nothing(_world: World) -> None:
    """Ends at once."""


SEARCHES: list[tuple[Callable[[], object], str]] = [
    (lambda: simkit.search(_nothing, runs_max=0), "search: runs_max cannot be 0"),
    (lambda: simkit.search(_nothing, runs_max=math.nan), "search: runs_max cannot be nan"),  # type: ignore[arg-type]
    (lambda: simkit.search(_nothing, seed="5"), "search: seed cannot be '5'"),  # type: ignore[arg-type]
    (lambda: simkit.search(None), "search: program cannot be None"),  # type: ignore[arg-type]
    (lambda: simkit.guided(_nothing, runs=-1), "guided: runs cannot be -1"),
    (lambda: simkit.guided(_nothing, seed=-1), "guided: seed cannot be -1"),
    (lambda: simkit.guided("_nothing"), "guided: program cannot be '_nothing'"),  # type: ignore[arg-type]
    (lambda: simkit.campaign(_nothing, 1.5), "campaign: seeds (how many, or which) cannot be 1.5"),  # type: ignore[arg-type]
    (lambda: simkit.campaign(_nothing, [0, -1]), "campaign: a seed cannot be -1"),
    (lambda: simkit.campaign(_nothing, b"12"), "campaign: seeds (how many, or which) cannot be b'12'"),  # type: ignore[arg-type]
    (lambda: simkit.campaign(_nothing, jobs=math.nan), "campaign: jobs cannot be nan"),  # type: ignore[arg-type]
    (lambda: simkit.campaign(_nothing, stop_after=0), "campaign: stop_after cannot be 0"),
    (lambda: simkit.campaign(_nothing, stall_s=-1), "campaign: stall_s cannot be -1"),
    (lambda: simkit.campaign(3), "campaign: program cannot be 3"),  # type: ignore[arg-type]
    (lambda: Budget(runs=1), "cannot be 1"),
    (lambda: Budget(runs=math.nan), "cannot be nan"),  # type: ignore[arg-type]
    (lambda: Budget(explain=-1), "budget: explain cannot be -1"),
    (lambda: Budget(seconds=0), "budget: seconds cannot be 0"),
    (lambda: simkit.explore(_nothing, seed=1.5), "explore: seed cannot be 1.5"),  # type: ignore[arg-type]
    (lambda: simkit.explore([]), "explore: program cannot be []"),  # type: ignore[arg-type]
]


def case_of(program: Callable[[World], Any]) -> simkit.Case:
    outcome = run(program, tape=Tape.from_seed(0))
    return simkit.Case(
        world="simulated",
        target={},
        scenario={},
        seed=0,
        options={},
        departures={},
        schedule=outcome.schedule,
        expect=None,
        digest=outcome.digest,
    )


def test_a_digest_that_was_edited_is_told() -> None:
    """The run agrees with all that the case keeps but for its digest: then that is what differs."""

    async def fail(_world: World) -> None:
        raise LookupError

    case = attrs.evolve(case_of(fail), digest="0" * 32, expect={"anomaly": "LookupError"})
    told = str(simkit.replay(case, fail))
    assert "None" not in told
    assert "diverged where the case keeps no event: its digest is another" in told


def in_a_world(act: Callable[[World], Any]) -> Any:
    async def main(world: World) -> Any:
        answer = act(world)
        return await answer if inspect.isawaitable(answer) else answer

    return run(main, tape=Tape.from_seed(0)).unwrap()


ARGUMENTS: list[tuple[Callable[[], Any], str]] = [
    (lambda: run(None, tape=Tape.from_seed(0)), "run: main cannot be None"),  # type: ignore[arg-type]
    (lambda: run(_nothing, tape=3), "run: tape cannot be 3"),  # type: ignore[arg-type]
    (lambda: run(_nothing, tape=Tape.from_seed(0), kernel="slow"), "run: kernel cannot be 'slow'"),  # type: ignore[arg-type]
    (lambda: run(_nothing, tape=Tape.from_seed(0), limits=None), "run: limits cannot be None"),  # type: ignore[arg-type]
    (lambda: simkit.replay("case.json", _nothing), "replay: case cannot be 'case.json'"),  # type: ignore[arg-type]
    (lambda: simkit.replay_until(case_of(_nothing), _nothing, 1.5), "replay: event cannot be 1.5"),  # type: ignore[arg-type]
    (lambda: simkit.replay_until(3, _nothing, 1), "replay: case cannot be 3"),  # type: ignore[arg-type]
    (lambda: in_a_world(lambda world: world.host("a").power_loss("some")), "Host.power_loss: mode cannot be 'some'"),  # type: ignore[arg-type]
    (lambda: in_a_world(lambda _: aio.run(3)), "aio.run: main cannot be 3"),  # type: ignore[arg-type]
    (lambda: in_a_world(lambda _: aio.run(_nothing, order="lifo")), "aio.run: order cannot be 'lifo'"),  # type: ignore[arg-type]
    (lambda: in_a_world(lambda _: aio.run(_nothing, unhandled="")), "aio.run: unhandled cannot be ''"),  # type: ignore[arg-type]
    (lambda: in_a_world(lambda _: threaded.run(None)), "threaded.run: main cannot be None"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("call", "what"), ARGUMENTS, ids=[what for _, what in ARGUMENTS])
def test_an_argument_of_the_wrong_kind_is_named(call: Callable[[], Any], what: str) -> None:
    """At once, not by what it makes of the run."""
    with pytest.raises(OptionError) as caught:
        call()
    assert what in caught.value.problem.what
    assert caught.value.problem.expected


@pytest.mark.parametrize(("search", "what"), SEARCHES, ids=[what for _, what in SEARCHES])
def test_a_search_that_would_run_nothing_is_refused(search: Callable[[], object], what: str) -> None:
    """No runs find no failure: that must not look like a pass."""
    with pytest.raises(OptionError) as caught:
        search()
    assert what in caught.value.problem.what
    assert caught.value.problem.expected
