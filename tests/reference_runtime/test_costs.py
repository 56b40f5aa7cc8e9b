"""What a step costs, counted in instructions of SQLite's machine: the same beside many operations and many finished tasks."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from reference_runtime import Store
from reference_runtime.model import Json
from tests.benchmarks.finished import store_with, submit_and_dispatch
from tests.runtime_plans import child, wanting
from tests.runtime_rig import call, finish, par, plan, wait

#: Instructions of one more than the fewest, as a factor: trees are a level deeper, nothing is longer.
SLACK = 1.5


def instructions(store: Store, work: Callable[[], object]) -> int:
    """How many instructions the store's database carries out for some work."""
    count = 0

    def tick() -> bool:
        nonlocal count
        count += 1
        return False

    store.db.set_progress_handler(tick, 1)
    try:
        work()
    finally:
        store.db.set_progress_handler(None)
    return count


def chain(length: int) -> Json:
    """A sequence of calls."""
    return plan(*(call(f"c{number}") for number in range(length)))


def fan(length: int) -> Json:
    """Calls side by side with an open wait, and one call after them."""
    return plan(par(*(call(f"c{number}") for number in range(length)), wait("w", "go")), call("z"))


@pytest.mark.parametrize("shape", [chain, fan])
def test_a_step_costs_the_same_in_a_long_plan(tmp_path, shape):
    """Claim, intent and acceptance of one call do not look at all the others of its task."""
    costs = []
    for length in (10, 1000):
        store = Store.open(str(tmp_path / f"{length}.db"))
        store.submit("t", shape(length))
        for _ in range(3):
            finish(store)
        costs.append(instructions(store, lambda store=store: finish(store)))  # type: ignore[misc]
        store.close()
    assert costs[1] <= costs[0] * SLACK, costs


def test_a_task_costs_the_same_beside_finished_ones():
    """Admission, dispatch and acceptance do not look at what is over."""
    costs = []
    for finished in (0, 2000):
        with store_with(finished) as path:
            store = Store.open(path)
            submit_and_dispatch(store, "warm")
            costs.append(instructions(store, lambda store=store: submit_and_dispatch(store, "t")))  # type: ignore[misc]
            store.close()
    assert costs[1] <= costs[0] * SLACK, costs


def test_a_stop_costs_the_same_beside_the_children_of_others(tmp_path):
    """What was set aside for a call that is taken back is found without a look at all the children that there are."""
    costs = []
    for count in (5, 500):
        store = Store.open(str(tmp_path / f"{count}.db"))
        store.submit("other", plan(par(*(child(f"k{number}", wait("w", "go")) for number in range(count)))))
        store.submit("t", wanting(plan(call("a", "mailer")), allowance={"calls": 3}))
        assert len(store.claim("w", [], 1)) == 1
        costs.append(instructions(store, lambda store=store: store.cancel("t", "c")))  # type: ignore[misc]
        store.close()
    assert costs[1] <= costs[0] * SLACK, costs
