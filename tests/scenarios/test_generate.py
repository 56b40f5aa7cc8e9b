"""Drawn plans and interruptions: always legal, driven by one source of choice, smallest when every choice is 0."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from scenarios.generate import ALL_OPERATIONS, BASIC_OPERATIONS, Choose, draw_plan
from scenarios.generate_interruptions import draw_interruptions
from scenarios.interruption import BASIC_VERBS, VERBS_OF, Interruption, fits
from scenarios.plan import Call, Plan, Sleep, Wait
from scenarios.strategies import plans, scenarios


@given(plans())
def test_a_drawn_plan_is_legal_and_survives_json(plan: Plan) -> None:
    """`Plan` checks itself on construction; JSON gives the same plan back."""
    assert Plan.from_json(plan.to_json()) == plan


@given(plans({"call", "seq"}))
def test_only_supported_operations_are_drawn(plan: Plan) -> None:
    """An adapter without `par`, `wait` and `sleep` never gets one."""
    assert plan.kinds() <= {"call", "seq"}


@given(scenarios(simulated=True))
@settings(max_examples=200)
def test_a_drawn_interruption_survives_json_and_names_what_the_plan_has(scenario: object) -> None:
    """Sites name operations of the plan, or none."""
    names = {leaf.id for leaf in scenario.plan.leaves()} | {None, "none"}  # type: ignore[attr-defined]
    for one in scenario.interruptions:  # type: ignore[attr-defined]
        assert Interruption.from_json(one.to_json()) == one
        assert {link.site.op for link in one.chain()} <= names


def test_the_plainest_choices_draw_the_smallest_plan() -> None:
    """Zero everywhere is two ledger calls in sequence and no interruption."""
    plan = draw_plan(lambda _label, _n: 0)
    assert [leaf.id for leaf in plan.leaves()] == ["c1", "c2"]
    assert {call.service for call in plan.calls()} == {"ledger"}
    assert draw_interruptions(lambda _label, _n: 0, plan) == ()


@given(st.randoms(use_true_random=False))
def test_every_label_is_asked_at_most_once(random: object) -> None:
    """A label names one choice, so that a recorded choice can be found again by its label alone."""
    asked: list[str] = []

    def choose(label: str, n: int) -> int:
        asked.append(label)
        return random.randrange(n)  # type: ignore[attr-defined, no-any-return]

    draw_interruptions(choose, draw_plan(choose, ALL_OPERATIONS), simulated=True)
    assert len(asked) == len(set(asked))


VERBS = (*BASIC_VERBS, "decide", "cancel", "pause", "unpause", "events", "artifacts", "journal")


def source(seed: int) -> Choose:
    numbers = random.Random(seed)
    return lambda _label, n: numbers.randrange(n)


def test_every_operation_and_option_is_drawn() -> None:
    """Before long, where everything is supported; calls, waits and sleeps are most of it."""
    drawn = [draw_plan(source(seed)) for seed in range(1500)]
    assert frozenset().union(*(plan.needs() for plan in drawn)) == ALL_OPERATIONS - {"code"}
    leaves = [leaf for plan in drawn for leaf in plan.leaves()]
    assert sum(isinstance(leaf, Call | Wait | Sleep) for leaf in leaves) > len(leaves) / 2
    sizes = {call.params.get("answer_bytes") for call in leaves if isinstance(call, Call)}
    assert {4096, 65_536, 65_537} <= sizes
    assert any(len(plan.calls()) > 16 for plan in drawn)


@given(plans(BASIC_OPERATIONS), plans(ALL_OPERATIONS - {"retries", "child", "loop"}))
def test_no_option_is_drawn_that_is_not_supported(basic: Plan, some: Plan) -> None:
    """Neither by the way nor inside a child."""
    assert basic.needs() <= BASIC_OPERATIONS
    assert not some.needs() & {"retries", "child", "loop"}


def test_a_target_without_the_verbs_is_never_asked_them() -> None:
    """Every action of the catalogue that a draw makes fits what the target answers; the new ones come where it does."""
    plain, rich = (actions(verbs) for verbs in (BASIC_VERBS, VERBS))
    assert not plain & set(VERBS_OF)
    assert {"cancel", "halt", "steer", "deny", "forge", "revoke", "cross", "stale-decision", "crowd", "misuse"} <= rich
    assert {"second", "jump", "full", "eio", "unmatched", "late-signal"} <= rich


def actions(verbs: tuple[str, ...]) -> set[str]:
    found: set[str] = set()
    for seed in range(3000):
        choose = source(seed)
        drawn = draw_interruptions(choose, draw_plan(choose), units=("engine", "worker"), simulated=True, verbs=verbs)
        assert all(fits(one, verbs=verbs, units=("engine", "worker"), simulated=True, workers=True) for one in drawn)
        found |= {link.action for one in drawn for link in one.chain()}
    return found
