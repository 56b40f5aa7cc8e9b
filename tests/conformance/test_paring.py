"""What is left of any plan when anything is left out of it: a plan, a smaller one, and in the end one operation."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import attrs
import pytest
from hypothesis import Phase, assume, given, reject, settings
from hypothesis import strategies as st

from conformance.reduction import DETAIL, GROUP, INTERRUPTION, OPERATION, departures_of, reduced, taken
from scenarios import catalogue
from scenarios.generate import ALL_OPERATIONS
from scenarios.interruption import Interruption, Scenario, Site
from scenarios.plan import (
    Allowance,
    Approve,
    Artifact,
    Branch,
    Call,
    Check,
    Child,
    Compensate,
    Loop,
    Model,
    Op,
    Par,
    Plan,
    PlanError,
    Race,
    Seq,
    Sleep,
    Wait,
)
from scenarios.strategies import interruptions, plans
from scenarios.unrolling import renamed, walk
from simkit import Tape, World, run
from simkit.tape import Site as Choice
from tests.scenarios.any_history import PLANS

#: Shrinking these takes Hypothesis minutes, and the scenario that is shown tells enough.
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)
_Take = Callable[[str, str, int], int]


def without(scenario: Scenario, lowered: Mapping[tuple[str, str], int]) -> Scenario:
    """The scenario with a few of its choices made otherwise."""
    return taken(scenario, lambda label, key, n: lowered.get((label, key), n - 1))


def left(plan: Plan, *gone: str, label: str = OPERATION) -> Plan:
    """The plan without some of what is in it."""
    return without(Scenario("s", plan), {(label, key): 0 for key in gone}).plan


def size(scenario: Scenario) -> int:
    """How much there is to a scenario, from its JSON: operations, most of all those that are more than a sequence; what they
    name and hand on; their numbers.
    """
    return _size(scenario.plan.to_json()) + _size([one.to_json() for one in scenario.interruptions])


def _size(value: object) -> int:
    match value:
        case str() if value.isdecimal():
            return int(value)
        case bool() | str():
            return int(value is not False)
        case int():
            return 1 + abs(value)
        case Mapping():
            own = 9 * ("op" in value or "site" in value) - 4 * (value.get("op") == "seq")
            return own + sum(
                _size(inner) for name, inner in value.items() if name not in {"id", "op", "version", "label"}
            )
        case list() | tuple():
            return sum(_size(inner) for inner in value)
        case _:
            return 0


def _apart(root: Op, mark: str) -> Op:
    """The same with other ids."""
    return renamed(root, lambda name: mark + name)


def _within(kind: str, inner: Op, outer: Op) -> Op:
    """One plan inside another."""
    match kind:
        case "child":
            return Seq("all", (outer, Child("kid", inner, detached=True, share=Allowance(9))))
        case "race":
            return Seq("all", (Race("either", (outer, inner)), Call("z", "ledger")))
        case "par":
            return Par("all", (outer, inner))
        case "loop":
            return Seq("all", (Loop("again", (inner, Call("z", "reader")), "z", 3), outer))
        case _:
            return Seq("all", (Call("z", "reader"), Branch("way", "z", (outer, inner))))


@st.composite
def rich_plans(draw: st.DrawFn) -> Plan:
    """Plans of every operation, one inside another."""
    known = st.sampled_from([*(story.plan for story in catalogue.STORIES.values()), *PLANS])
    whole = draw(plans() | known)
    if draw(st.booleans()):
        return whole
    kind = draw(st.sampled_from(("child", "race", "par", "loop", "branch")))
    inner = draw(plans(ALL_OPERATIONS - {"approve"}, leaves_max=4) | known)
    assume(kind != "child" or not any(isinstance(op, Approve) for op in walk(inner.root)))
    try:
        return attrs.evolve(whole, root=_within(kind, _apart(inner.root, "i-"), _apart(whole.root, "o-")))
    except PlanError:  # a loop in a loop, of which something outside the inner one is told
        reject()


@st.composite
def rich_scenarios(draw: st.DrawFn) -> Scenario:
    plan = draw(rich_plans())
    return Scenario("drawn", plan, draw(interruptions(plan, simulated=True, verbs=catalogue_verbs())))


def catalogue_verbs() -> tuple[str, ...]:
    return ("start", "status", "signal", "resume", "decide", "cancel", "pause", "unpause")


@settings(phases=PHASES, deadline=None, max_examples=60)
@given(rich_scenarios())
def test_every_choice_kept_keeps_the_scenario(scenario: Scenario) -> None:
    """Of every kind of operation, one inside another."""
    sites = departures_of(scenario)
    assert replayed(scenario, sites) == scenario


@settings(phases=PHASES, deadline=None, max_examples=25)
@given(rich_scenarios())
def test_every_step_is_smaller(scenario: Scenario) -> None:
    """Each single thing that can be left out, or made less, leaves a plan (it checks itself) that is smaller."""
    whole = size(scenario)
    for (label, key, _), value in departures_of(scenario).items():
        for lower in {0, value // 2, value - 1}:
            candidate = without(scenario, {(label, key): lower})
            assert size(candidate) < whole, (label, key, lower)
            _fits(candidate, scenario)


@settings(phases=PHASES, deadline=None, max_examples=60)
@given(rich_scenarios(), st.data())
def test_any_part_is_a_scenario(scenario: Scenario, data: st.DataObject) -> None:
    """Whatever goes together; nothing but what is asked for on the tape decides, and of it only what was asked."""
    sites = departures_of(scenario)
    some = data.draw(st.sets(st.sampled_from(sorted(sites))))
    part = replayed(scenario, {site: data.draw(st.integers(1, sites[site])) for site in sorted(some)})
    assert size(part) <= size(scenario)
    _fits(part, scenario)


@settings(phases=PHASES, deadline=None, max_examples=15)
@given(rich_scenarios(), st.randoms(use_true_random=False))
def test_a_shrink_ends_with_one_operation(scenario: Scenario, random: Any) -> None:
    """Going on from any smaller scenario, where everything can go."""
    steps = 0
    while sites := departures_of(scenario):
        (label, key, _), value = random.choice(sorted(sites.items()))
        smaller = without(scenario, {(label, key): random.randrange(value)})
        assert size(smaller) < size(scenario)
        scenario, steps = smaller, steps + 1
    assert scenario.interruptions == ()
    leaves = [op for op in scenario.plan.operations() if not isinstance(op, Seq)]
    assert len(leaves) == 1


def _fits(part: Scenario, whole: Scenario) -> None:
    """What strikes at an operation strikes at one that is still there."""
    for one in part.interruptions:
        for link in one.chain():
            for name in (link.site.op, link.target):
                assert name is None or part.plan.leaf(name) is not None or whole.plan.leaf(name) is None
    assert part.plan.needs() <= whole.plan.needs() | {"seq"}


def replayed(scenario: Scenario, departures: Mapping[Choice, int]) -> Scenario:
    async def main(world: World) -> Scenario:
        return reduced(scenario, world)

    return run(main, tape=Tape.from_departures(departures)).unwrap()


# --- one by one ---------------------------------------------------------------------------------------------------------

LEDGER = functools.partial(Call, service="ledger")


def seq(*children: Op) -> Plan:
    return Plan(Seq("main", children))


def names(plan: Plan) -> list[str]:
    return [leaf.id for leaf in plan.leaves()]


def test_a_branch_without_its_answer_is_both_its_ways() -> None:
    """Nothing decides any more, and what stood in them stays."""
    plan = seq(LEDGER("a"), Branch("b", "a", (LEDGER("l"), Par("r", (LEDGER("r1"), LEDGER("r2"))))), LEDGER("z"))
    assert left(plan, "a").root == Seq("main", (LEDGER("l"), Par("r", (LEDGER("r1"), LEDGER("r2"))), LEDGER("z")))
    assert left(plan, "l").root == attrs.evolve(
        plan.root,
        children=(LEDGER("a"), Branch("b", "a", (Seq("l", ()), plan.root.children[1].children[1])), LEDGER("z")),  # type: ignore[arg-type,union-attr]
    )
    assert names(left(plan, "b", label=GROUP)) == ["a", "l", "r1", "r2", "z"]


def test_an_empty_way_is_not_what_a_plan_ends_with() -> None:
    """Once nothing decides any more, the way stands by itself, and there is nothing in it to work."""
    plan = seq(LEDGER("a"), Branch("b", "a", (LEDGER("l"), Seq("r", ()))), LEDGER("z"))
    assert left(plan, "a").root == Seq("main", (LEDGER("l"), Seq("r", ()), LEDGER("z")))
    assert left(plan, "a", "l", "z").root == Seq("main", (LEDGER("a"),))
    part = Scenario("s", seq(Seq("r", ()), LEDGER("z")))
    assert [key for label, key, _ in departures_of(part) if label == OPERATION] == ["r"]


def test_a_loop_without_what_repeats_it_is_gone_through_once() -> None:
    """What named its first round names what is left of it; later rounds are gone, for a fault too."""
    body = (LEDGER("x"), LEDGER("y", carries=("x",)))
    plan = seq(Loop("again", body, "y", 3), LEDGER("z", carries=("x@1", "y@1")), Compensate("u", "x@1", "ledger"))
    chain = Interruption("kill", Site("barrier", "x@1"), then=Interruption("kill", Site("barrier", "x@2")))
    scenario = Scenario("s", plan, (chain,))
    once = without(scenario, {(GROUP, "again"): 0})
    z, u = LEDGER("z", carries=("x", "y")), Compensate("u", "x", "ledger")
    assert once.plan.root == Seq("main", (*body, z, u))
    assert [one.label for one in once.interruptions] == ["kill@x#1.None"]
    assert left(plan, "y").root == Seq("main", (LEDGER("x"), LEDGER("z", carries=("x",)), u))
    assert names(without(scenario, {(DETAIL, "again.times"): 0}).plan) == ["x@1", "y@1", "z", "u"]


def test_a_race_is_its_ways_in_turn_or_what_is_left_of_them() -> None:
    """A way with nothing that ends is none."""
    plan = seq(LEDGER("a"), Race("r", (Seq("one", (LEDGER("x"), Compensate("u", "a", "ledger"))), LEDGER("y"))))
    assert left(plan, "r", label=GROUP).root == Seq(
        "main", (LEDGER("a"), Seq("one", (LEDGER("x"), Compensate("u", "a", "ledger"))), LEDGER("y"))
    )
    assert left(plan, "x").root == Seq("main", (LEDGER("a"), Race("r", (LEDGER("y"),))))


def test_a_child_is_left_out_made_smaller_or_taken_in() -> None:
    """Taken in, what it does has its name before its own, for a fault too."""
    inner = Seq(
        "in",
        (LEDGER("x"), Loop("l", (LEDGER("y"), LEDGER("o", carries=("y",))), "o", 2), LEDGER("w", carries=("y@2",))),
    )
    plan = seq(LEDGER("a"), Child("kid", inner, share=Allowance(3)), LEDGER("z", carries=("kid",)))
    scenario = Scenario("s", plan, (Interruption("kill", Site("barrier", "kid/y@2")),))
    assert left(plan, "kid").root == Seq("main", (LEDGER("a"), LEDGER("z")))
    assert left(plan, "kid/x", "kid/o", "kid/w").root == Seq(
        "main",
        (LEDGER("a"), Child("kid", Seq("in", (LEDGER("y"),)), share=Allowance(3)), LEDGER("z", carries=("kid",))),
    )
    assert names(left(plan, "kid/x", "kid/y", "kid/o", "kid/w")) == ["a", "kid/x", "kid", "z"]
    owned = without(scenario, {(GROUP, "kid"): 0})
    assert names(owned.plan) == ["a", "kid.x", "kid.y@1", "kid.o@1", "kid.l@2", "kid.y@2", "kid.o@2", "kid.w", "z"]
    assert [one.label for one in owned.interruptions] == ["kill@kid.y@2#1.None"]
    carries = {call.id: call.carries for call in owned.plan.calls()}
    assert carries["kid.w"] == ("kid.y@2",)
    assert carries["z"] == ()


def test_a_child_whose_names_are_taken_stays_one() -> None:
    """Two operations of one id are no plan."""
    plan = seq(LEDGER("kid.x"), Child("kid", LEDGER("x")))
    assert names(left(plan, "kid", label=GROUP)) == ["kid.x", "kid/x", "kid"]


def test_an_approval_is_asked_for_on_every_way_to_its_call() -> None:
    """Where the group is gone in which both are, they stay; it never stays in one of which its call is taken out."""
    both = Race("r", (Seq("one", (Approve("ok", "pay"), LEDGER("pay"))), LEDGER("y")))
    assert names(left(seq(LEDGER("a"), both), "r", label=GROUP)) == ["a", "ok", "pay", "y"]
    inner = Race("r", (Seq("one", (Approve("ok", "pay"), Race("q", (LEDGER("pay"), LEDGER("x"))))), LEDGER("y")))
    assert names(left(seq(LEDGER("a"), inner), "q", label=GROUP)) == ["a", "ok", "pay", "x", "y", "r"]


def test_what_is_of_no_use_goes_with_what_it_is_about() -> None:
    """An approval, a check and a compensation; what carried them carries them no more."""
    plan = seq(
        Approve("ok", "pay"),
        LEDGER("pay", carries=("ok",)),
        Artifact("p", "report", 9),
        Check("q", "p"),
        Compensate("u", "pay", "ledger"),
        LEDGER("z", carries=("ok", "pay", "p")),
    )
    assert names(left(plan, "pay")) == ["p", "q", "z"]
    assert [call.carries for call in left(plan, "pay").calls()] == [("p",)]
    assert names(left(plan, "p")) == ["ok", "pay", "u", "z"]
    assert names(left(plan, "pay", "p", "z")) == ["pay"]


@pytest.mark.parametrize(
    ("op", "field", "values"),
    [
        (Call("a", "flaky", script=("error-before", "ok")), "script", [(), ("error-before",)]),
        (Call("a", "ledger", tries=3), "tries", [None]),
        (Call("a", "ledger", tolerate=True), "tolerate", [False]),
        (
            Call("a", "ledger", {"amount": 1, "answer_bytes": 60}),
            "params",
            [{"amount": 1}, {"amount": 1, "answer_bytes": 1}, {"amount": 1, "answer_bytes": 8}],
        ),
        (Call("a", "ledger", {"poison": True}), "params", [{}]),
        (Wait("a", "go", 5), "timeout_ns", [None]),
        (Sleep("a", 70), "ns", [0, 1, 8, 64]),
        (Model("a", "go on", 60), "tokens", [1, 8]),
        (Artifact("a", "report", 3, 12), "parts", [1, 8]),
        (Child("a", Call("x", "ledger"), detached=True), "detached", [False]),
    ],
)
def test_details_are_made_less(op: Op, field: str, values: list[object]) -> None:
    """Options go, scripts and numbers get shorter; the plainest is tried first."""
    scenario = Scenario("s", seq(op, LEDGER("z")))
    found = [without(scenario, {(DETAIL, f"a.{field}"): n}).plan.operations() for n in range(len(values))]
    assert [getattr(next(one for one in plan if one.id == "a"), field) for plan in found] == values
    assert without(scenario, {(DETAIL, f"a.{field}"): len(values)}) == scenario


def test_limits_of_the_whole_plan_go() -> None:
    """And what is only a matter of degree in a fault."""
    plan = attrs.evolve(seq(LEDGER("a"), LEDGER("b")), allowance=Allowance(4), deadline_ns=5, code="2")
    faults = (Interruption("kill", Site("end"), ns=9), Interruption("crowd", Site("ack", verb="start"), arg="20"))
    scenario = Scenario("s", plan, faults)
    assert {key for label, key, _ in departures_of(scenario) if label == DETAIL} == {
        "plan.allowance",
        "plan.deadline_ns",
        "plan.code",
        "kill@end~9ns.ns",
        "crowd@ack:start=20.arg",
    }
    part = taken(scenario, lambda label, _key, n: 0 if label == DETAIL else n - 1)
    assert (part.plan.allowance, part.plan.deadline_ns, part.plan.code) == (None, None, None)
    assert [one.label for one in part.interruptions] == ["kill@end", "crowd@ack:start=1"]


def test_neighbours_that_would_depend_on_each_other_too_much_are_put_in_sequence() -> None:
    """A plan has a bound on its dependencies; the one operation between two wide fan-outs keeps them apart."""
    wide = [Par(name, tuple(LEDGER(f"{name}{n}") for n in range(320))) for name in ("p", "q")]
    plan = seq(wide[0], LEDGER("between"), wide[1])
    part = left(plan, "between")
    assert len(part.leaves()) == 640
    assert len(part.dependencies().edges) == 639


def test_links_are_named_once() -> None:
    """One interruption that follows itself is two choices of one name."""
    again = Interruption("kill", Site("end"))
    scenario = Scenario("s", seq(LEDGER("a")), (attrs.evolve(again, then=again),))
    assert departures_of(scenario) == {(INTERRUPTION, "kill@end", 0): 1, (INTERRUPTION, "kill@end", 1): 1}
