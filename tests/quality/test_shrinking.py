"""What the yardstick's searches find becomes small and is explained, within the bars.

The bars of a tape of a thousand choices, and of a shrink of plain trio tasks, are in tests/simkit/test_shrink.py.
"""

from __future__ import annotations

import pytest

from simkit import Found, Retrial, explain, search, shrink
from simkit.shrinking import Shrunk
from tests.quality.table import ALL, TOO_HARD

RUNS_MAX = 300
EXPLANATION_RUNS_MAX = 250
#: Pre-emptions that programs still need when they are shrunk; most need one.
SOME = {
    "circular_buffer": 2,
    "queue": 2,
    "qsort_mt": 2,
    "stringbuffer-jdk1.4": 5,
    "WorkStealQueue": 4,
    "InterlockedWorkStealQueue": 3,
    "InterlockedWorkStealQueueWithState": 3,
    "bug4": 3,
    "bug6": 2,
    "philosophers": 3,
    "plain_philosophers": 2,
    "treiber": 2,
    "bounded_buffer": 2,
    "peterson": 2,
    "free_list": 3,
    "missed_signal": 2,
}


def shrunk(name: str, strategy: str = "portfolio", seed: int = 1) -> tuple[Retrial, Shrunk]:
    program = ALL[name]
    found = search(program, strategy, seed=seed, guard=program.needs_world)
    assert isinstance(found, Found)
    retrial = Retrial(program, entropy=found.case.seed or 0, guard=program.needs_world)
    return retrial, shrink(retrial, found.case.departures, found.case.schedule)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 5))
def test_reorder_100_comes_down_to_one_preemption(seed: int) -> None:
    """The bar: a hundred tasks, some 300 pre-emptions, one left after at most 300 runs, whatever schedule it was."""
    retrial, found = shrunk("reorder_100", seed=seed)
    assert found.first.preemptions > 30
    assert (found.best.preemptions, len(found.best.moves)) == (1, 1)
    assert found.stopped is None
    assert found.runs <= RUNS_MAX, found
    explanation = explain(retrial, found.best)
    assert explanation.complete
    assert explanation.runs <= EXPLANATION_RUNS_MAX
    assert len(explanation.orderings) == 2


@pytest.mark.slow
def test_whatever_is_found_shrinks_and_is_explained() -> None:
    """Every program: few pre-emptions are left, no bound is met, and what decides is told within 250 runs."""
    for name in ALL:
        if name in {TOO_HARD, "hasty_deque", "reorder_100"}:
            continue
        retrial, found = shrunk(name)
        assert found.stopped is None, name
        assert found.runs <= RUNS_MAX, name
        assert found.best.preemptions <= SOME.get(name, 1), f"{name}: {found}"
        explanation = explain(retrial, found.best)
        assert explanation.complete, name
        decides = bool(explanation.orderings or explanation.causes)
        assert decides == bool(found.best.moves or found.best.departures), f"{name}: {explanation}"


@pytest.mark.slow
def test_orders_that_nobody_would_read_are_not_told_one_by_one() -> None:
    """Where a failure needs no departure and many orders of two steps would each have to be others: that it passes in one."""
    retrial, found = shrunk("barrier")
    explanation = explain(retrial, found.best)
    assert explanation.passing == ()
    assert str(explanation).endswith("by the order of its tasks (in another it passes).")
