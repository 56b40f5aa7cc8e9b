"""Machines of rules: hypothesis draws the steps while the run goes on, a case holds them."""

from __future__ import annotations

import json
from typing import Any

import hypothesis
import pytest
import trio
from hypothesis import strategies as st

import simkit
from simkit.examples import NotJsonError, Reference, decoded, encoded
from simkit.stateful import Bundle, consumes, initialize, invariant, multiple, precondition, rule
from simkit.testing import Ambient, spec_of, surrounded
from tests.plugin.rig import cases, run, told

pytest_plugins = ["pytester"]

QUICK = hypothesis.settings(
    max_examples=20,
    stateful_step_count=12,
    database=None,
    derandomize=True,
    deadline=None,
    phases=(hypothesis.Phase.generate, hypothesis.Phase.shrink),
    suppress_health_check=list(hypothesis.HealthCheck),
)


@pytest.mark.parametrize(
    "value", [None, 1, "a", [1, [2.5]], {"k": b"\x00\xff"}, (1, (b"",)), Reference("keys_0"), True]
)
def test_arguments_come_back_from_json_as_they_were(value: Any) -> None:
    """Of the same types, through text."""
    back = decoded(json.loads(json.dumps(encoded(value))))
    assert back == value
    assert type(back) is type(value)


@pytest.mark.parametrize("value", [object(), float("nan"), {1: 2}, {"$simkit": "bytes"}, {1, 2}, [object()]])
def test_what_cannot_come_back_is_refused(value: Any) -> None:
    """Rather than come back as something else."""
    with pytest.raises(NotJsonError):
        encoded(value)


def test_rules_run_in_the_world_one_after_another() -> None:
    """Time is virtual, bundles give what rules made, preconditions and invariants see the machine."""
    seen: list[str] = []

    class Machine(simkit.StateMachine):
        made = Bundle("made")
        taken = 0

        async def begin(self) -> None:
            await trio.sleep(1)
            assert self.world.now_ns == 10**9
            self.values: list[int] = []
            seen.append("begin")

        @initialize(first=st.integers(5, 5))
        async def prepare(self, first: int) -> None:
            assert not self.values
            self.values.append(first)

        @rule(target=made, n=st.integers(0, 9))
        async def make(self, n: int) -> int:
            assert self.values, "what initializes comes first"
            await trio.sleep(0.5)
            self.values.append(n)
            return n

        @rule(target=made)
        def make_two(self) -> Any:
            self.values += [1, 2]
            return multiple(1, 2)

        @precondition(lambda self: self.taken < 2)
        @rule(value=consumes(made))
        async def take(self, value: int) -> None:
            assert value in self.values
            self.taken += 1

        @invariant()
        async def few_taken(self) -> None:
            await trio.lowlevel.checkpoint()
            assert self.taken <= 2

        @invariant()
        def sync_too(self) -> None:
            assert self.values

        async def end(self) -> None:
            seen.append("end")

    Machine.as_test(settings=QUICK)()
    assert seen.count("begin") >= seen.count("end") >= 10


def test_a_failure_is_shrunk_to_its_steps_and_noted() -> None:
    """To the fewest rules with the simplest arguments, on the simplest tape."""

    class Machine(simkit.StateMachine):
        total = 0

        @rule(n=st.integers(0, 100))
        async def add(self, n: int) -> None:
            await trio.sleep(1)
            self.total += n

        @rule()
        async def nothing(self) -> None:
            await trio.sleep(1)

        @invariant()
        async def small(self) -> None:
            assert self.total < 150

    ambient = Ambient()
    with surrounded(ambient), pytest.raises(AssertionError) as caught:
        Machine.as_test(settings=QUICK)()
    steps = ambient.failures[-1].arguments["steps"]
    assert [name for name, _ in steps] == ["add", "add"]
    assert sum(arguments["n"] for _, arguments in steps) == 150
    assert ambient.failures[-1].seed == 0
    assert any("await machine.add(n=" in note for note in caught.value.__notes__)


def test_fixed_steps_pass_over_what_cannot_be_done() -> None:
    """A step whose precondition does not hold, or whose value was never made; an unknown rule is told."""
    done: list[str] = []

    class Machine(simkit.StateMachine):
        things = Bundle("things")

        @precondition(lambda self: not done)
        @rule(target=things)
        async def make(self) -> str:
            done.append("made")
            return "thing"

        @rule(thing=things)
        async def use(self, thing: str) -> None:
            done.append(thing)

    spec = spec_of(Machine.as_test(settings=QUICK))
    assert spec is not None
    use = ["use", {"thing": Reference("things_0")}]
    steps = [use, ["make", {}], ["make", {}], use, ["use", {"thing": Reference("things_1")}]]
    simkit.run(lambda world: spec.function(steps=steps, world=world), tape=simkit.Tape.from_seed(0)).unwrap()
    assert done == ["made", "thing"]
    outcome = simkit.run(lambda world: spec.function(steps=[["gone", {}]], world=world), tape=simkit.Tape.from_seed(0))
    assert "it has no rule 'gone'" in str(outcome.error)


def test_drawing_is_not_guarded_and_draws_nothing_from_the_world() -> None:
    """Hypothesis reads its clock and its tables; the run is the same as one with the steps fixed."""
    digests: list[str] = []

    class Machine(simkit.StateMachine):
        @rule(text=st.text(max_size=5), number=st.floats(allow_nan=False))
        async def say(self, text: str, number: float) -> None:
            await trio.sleep(0.1)

        async def end(self) -> None:
            digests.append(self.world.trace.digest())

    test = Machine.as_test(settings=hypothesis.settings(QUICK, max_examples=5))
    test()
    spec = spec_of(test)
    assert spec is not None
    assert digests
    simkit.run(lambda world: spec.function(steps=[], world=world), tape=simkit.Tape.from_seed(0)).unwrap()
    assert digests[-1] in digests[:-1]


def test_assumptions_and_misuse() -> None:
    """`hypothesis.assume` drops an example; a machine without rules and a strategy that explores are told."""

    class Picky(simkit.StateMachine):
        @rule(n=st.integers(0, 1))
        async def pick(self, n: int) -> None:
            hypothesis.assume(n == 0)

    Picky.as_test(settings=hypothesis.settings(QUICK, max_examples=3, stateful_step_count=2))()

    class Empty(simkit.StateMachine):
        pass

    with pytest.raises(simkit.SimkitError, match="it has no rules"):
        Empty.as_test()
    with pytest.raises(simkit.SimkitError, match="strategy 'portfolio'"):
        Picky.as_test(strategy="portfolio")


MACHINE = """
import hypothesis
import simkit
import trio
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, invariant, rule

class Notes(simkit.StateMachine):
    names = Bundle("names")

    async def begin(self):
        self.host = self.world.host("desk")
        self.written = {}

    async def put(self, name, text):
        process = simkit.current_process()
        file = self.host.disk.open(f"/notes/{name}", owner=process, create=True)
        file.write(text, 0)
        file.fsync()

    @rule(target=names, name=st.sampled_from(["a", "b"]), text=st.binary(min_size=1, max_size=2))
    async def write(self, name, text):
        await self.host.start(self.put, name, text).wait()
        self.written[name] = text
        return name

    @rule()
    async def cut(self):
        self.host.power_loss("lose")

    @rule(name=names)
    async def read(self, name):
        assert self.host.disk.exists(f"/notes/{name}"), "its name was never synced"

test_notes = Notes.as_test(settings=hypothesis.settings(
    max_examples=50, database=None, derandomize=True, deadline=None, suppress_health_check=list(hypothesis.HealthCheck),
    phases=(hypothesis.Phase.generate, hypothesis.Phase.shrink)))
"""


@pytest.mark.slow
def test_a_machine_is_a_test_whose_case_replays_without_hypothesis(pytester: pytest.Pytester) -> None:
    """Steps by hypothesis, tape and schedule by the kit; the case has the steps, with references and bytes; rules are drawn."""
    pytester.makepyfile(test_notes=MACHINE)
    result = run(pytester)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["E*await machine.write(name='a', text=*", "E*await machine.cut()", "E*await machine.read(name=names_0)"]
    )
    result.stdout.fnmatch_lines(["*◆*await machine.cut()", "*power loss, all that is not synced is lost"])
    result.stdout.no_fnmatch_line("*simkit/stateful.py*")
    (case,) = cases(pytester)
    data = json.loads(case.read_text(encoding="utf-8"))
    steps = data["scenario"]["arguments"]["steps"]
    assert [name for name, _ in steps] == ["write", "cut", "read"]
    assert steps[0][1]["text"]["$simkit"] == "bytes"
    assert steps[2] == ["read", {"name": {"$simkit": "reference", "name": "names_0"}}]
    again = run(pytester, "--simkit-replay", case.stem)
    again.assert_outcomes(failed=1)
    told(case, again, f"reproduced, *, with the same digest {data['digest']}")
    assert "Failing test case" not in again.stdout.str()
    source = MACHINE.replace(
        "        file.fsync()", '        file.fsync()\n        self.host.disk.sync_dir("/notes", owner=process)'
    )
    pytester.makepyfile(test_notes=source)
    run(pytester).assert_outcomes(passed=1)
