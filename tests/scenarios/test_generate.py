"""Drawn plans and interruptions: always legal, driven by one source of choice, smallest when every choice is 0."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from scenarios.generate import ALL_OPERATIONS, draw_plan
from scenarios.generate_interruptions import draw_interruptions
from scenarios.interruption import Interruption
from scenarios.plan import Plan
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
