"""The judge of histories: right against every order tried by hand, honest about bounds, telling where it goes wrong."""

from __future__ import annotations

import itertools
import re
from typing import Any

import attrs
import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from simkit import History, Tape, World, check, run
from simkit.checking import REFUSED, UNKNOWN, WHOLE, Bounds, Model, NotLinearizableError, Operation, models
from simkit.errors import SimkitError

Raw = tuple[tuple[Any, ...], Any, int, int | None]


def history(*raw: Raw) -> list[Operation]:
    return [
        Operation(f"client {number}", asked, answer if returned is not None else UNKNOWN, called, returned)
        for number, (asked, answer, called, returned) in enumerate(raw)
    ]


# ---------------------------------------------------------------------------------------------- against all permutations
def by_permutations(operations: list[Operation], model: Model) -> bool:
    """The definition itself, for each part: linearizability is local."""
    parts: dict[Any, list[Operation]] = {}
    for one in operations:
        parts.setdefault(model.partition(one.asked), []).append(one)
    return all(_some_order(part, model) for part in ([operations] if WHOLE in parts else parts.values()))


def _some_order(operations: list[Operation], model: Model) -> bool:
    """Some order of those that returned, and of any of the others, in which every answer is right."""
    done = [one for one in operations if one.definite]
    unknown = [one for one in operations if not one.definite]
    for extra in itertools.chain.from_iterable(itertools.combinations(unknown, n) for n in range(len(unknown) + 1)):
        for order in itertools.permutations([*done, *extra]):
            if _in_time(order) and _right(order, model):
                return True
    return False


def _in_time(order: tuple[Operation, ...]) -> bool:
    return not any(
        later.returned is not None and later.returned < earlier.called
        for earlier, later in itertools.combinations(order, 2)
    )


def _right(order: tuple[Operation, ...], model: Model) -> bool:
    state = model.initial
    for one in order:
        state = model.step(state, one.asked, one.answer)
        if state is REFUSED:
            return False
    return True


VALUE = st.integers(0, 2)
REGISTER = st.one_of(
    st.tuples(st.just(("read",)), VALUE),
    st.tuples(st.tuples(st.just("write"), VALUE), st.none()),
    st.tuples(st.tuples(st.just("cas"), VALUE, VALUE), st.booleans()),
)
QUEUE = st.one_of(
    st.tuples(st.tuples(st.just("enqueue"), VALUE), st.none()),
    st.tuples(st.just(("dequeue",)), st.one_of(st.none(), VALUE)),
)
SET = st.one_of(
    st.tuples(st.tuples(st.sampled_from(["add", "remove"]), VALUE), st.one_of(st.none(), st.booleans())),
    st.tuples(st.tuples(st.just("contains"), VALUE), st.booleans()),
    st.tuples(st.just(("read",)), st.frozensets(VALUE)),
)
LOCK = st.one_of(
    st.tuples(st.tuples(st.just("acquire"), VALUE), st.booleans()),
    st.tuples(st.tuples(st.just("release"), VALUE), st.none()),
)
KEYS = st.sampled_from("ab")
TEXT = st.sampled_from(["x", "y"])
STORE = st.one_of(
    st.tuples(st.tuples(st.just("get"), KEYS), st.sampled_from(["", "x", "y", "xy", "yx", "xx"])),
    st.tuples(st.tuples(st.just("append"), KEYS, TEXT), st.none()),
    st.tuples(st.tuples(st.just("append"), KEYS, TEXT), st.none()),
    st.tuples(st.tuples(st.just("put"), KEYS, TEXT), st.none()),
)
CASES = {
    "register": (REGISTER, models.cas_register(0)),
    "queue": (QUEUE, models.queue()),
    "set": (SET, models.set_()),
    "lock": (LOCK, models.lock()),
    "store": (STORE, models.key_value(missing="")),
}


def histories(operation: st.SearchStrategy[Any], most: int) -> st.SearchStrategy[list[Operation]]:
    moments = st.tuples(st.integers(0, 8), st.one_of(st.none(), *[st.integers(0, 5)] * 4))
    return st.lists(st.tuples(operation, moments), min_size=1, max_size=most).map(_placed)


def _placed(drawn: list[tuple[tuple[Any, Any], tuple[int, int | None]]]) -> list[Operation]:
    return history(
        *[
            (asked, answer, called, None if taken is None else called + taken)
            for (asked, answer), (called, taken) in drawn
        ]
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_verdicts_are_those_of_all_permutations(name: str, data: st.DataObject) -> None:
    """What is cut from the search is cut without losing an order: the same verdict as trying every order there is."""
    operations, model = CASES[name]
    drawn = data.draw(histories(operations, 6))
    verdict = check(drawn, model)
    if any(one.definite for one in drawn):
        assert bool(verdict) == by_permutations(drawn, model)
    else:
        assert verdict.answer == "inconclusive"


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_evidence_is_the_first_return_that_no_order_allows(name: str, data: st.DataObject) -> None:
    """Up to the operation that is blamed there is no order, up to the one before there is, and the order told is one."""
    operations, model = CASES[name]
    drawn = data.draw(histories(operations, 6))
    evidence = check(drawn, model).evidence
    if evidence is None:
        return
    blamed = evidence.misplaced
    its_part = [one for one in drawn if model.partition(one.asked) == model.partition(blamed.asked)]
    if evidence.operations == len([one for one in drawn if one.definite or not model.reads(one.asked, UNKNOWN)]):
        its_part = drawn
    assert not by_permutations(_until(its_part, blamed, with_it=True), model)
    assert by_permutations(_until(its_part, blamed, with_it=False), model)
    assert _right(evidence.order, model)
    assert _in_time(evidence.order)


def _until(operations: list[Operation], last: Operation, *, with_it: bool) -> list[Operation]:
    """What had returned when `last` did, or right before; what returned later may be placed, with the answer that it got."""
    order = sorted((one for one in operations if one.definite), key=lambda one: one.returned or 0)
    known = order[: order.index(last) + with_it]
    moment = last.returned or 0
    called = [one for one in operations if one.called <= moment and one not in known]
    return [*known, *[attrs.evolve(one, returned=None) for one in called]]


# -------------------------------------------------------------------------------------------------------------- verdicts
def test_a_stale_read_is_told_with_its_evidence() -> None:
    """The operation that has no place, the order before it, the state it met, and what was going on at the time."""
    verdict = check(
        history(
            (("write", 1), None, 1, 2),
            (("write", 2), None, 3, 6),
            (("read",), 2, 4, 5),
            (("read",), 1, 7, 9),
            (("write", 3), None, 8, None),
        ),
        models.register(),
    )
    assert not verdict
    assert str(verdict).splitlines() == [
        "not linearizable, as a register: 5 operations in 1 part",
        "  client 3: read() → 1",
        "has no place, after 3 of 5 operations in order, the last of them:",
        "  client 0: write(1) → None",
        "  client 1: write(2) → None",
        "  client 2: read() → 2",
        "which may end in the state: 2 or 3",
        "at the same time:",
        "  client 4: write(3) → ?",
    ]
    with pytest.raises(NotLinearizableError, match="has no place"):
        verdict.confirm()


def test_a_first_answer_that_is_wrong_is_told() -> None:
    """Before anything else happened there is no order to show."""
    told = str(check(history((("get", "x"), 7, 1, 2)), models.key_value()))
    assert told.splitlines()[1:] == [
        "  client 0: get('x') → 7",
        "has no place, before any other of 1 operations",
        "the state being: None",
    ]


def test_what_did_not_return_may_have_happened_or_not() -> None:
    """Both answers are right while a write is unknown; once it was seen, it cannot be unseen."""
    write = (("write", 1), None, 1, None)
    seen, unseen = (("read",), 1, 5, 6), (("read",), 0, 3, 4)
    later = (("read",), 0, 7, 8)
    model = models.register(0)
    assert check(history(write, unseen), model)
    assert check(history(write, seen), model)
    assert check(history(write, unseen, seen), model)
    assert not check(history(write, seen, later), model)


def test_equal_moments_overlap() -> None:
    """A call and a return at one moment may be in either order."""
    write, read = (("write", 1), None, 0, 5), (("read",), 0, 5, 9)
    assert check(history(write, read), models.register(0))
    assert not check(history((("write", 1), None, 0, 4), read), models.register(0))


@pytest.mark.parametrize("raw", [(), ((("write", 1), None, 0, None),)], ids=["empty", "nothing returned"])
def test_nothing_to_judge_is_not_a_pass(raw: tuple[Raw, ...]) -> None:
    """Zero evidence is inconclusive, never a pass."""
    verdict = check(history(*raw), models.register())
    assert verdict.answer == "inconclusive"
    assert not verdict
    with pytest.raises(SimkitError, match="nothing to judge"):
        verdict.confirm()


def hard(writers: int) -> list[Operation]:
    """Writes of everybody at once, and a read of what nobody wrote."""
    raw: list[Raw] = [(("enqueue", number), None, 0, 100 + number) for number in range(writers)]
    return history(*raw, (("dequeue",), "nobody's", 200, 201))


def test_a_bound_is_inconclusive() -> None:
    """On operations, situations or time: no verdict, and the reason."""
    model, operations = models.queue(), hard(9)
    few = check(operations, model, bounds=Bounds(operations=9))
    assert (few.answer, few.reason) == ("inconclusive", "10 operations, and the bound is 9")
    assert check(operations, model, bounds=Bounds(situations=1_000)).reason == "the bound of 1000 situations"
    ticks = itertools.count()
    late = check(operations, model, bounds=Bounds(time_s=3, clock=lambda: float(next(ticks))))
    assert (late.answer, late.reason) == ("inconclusive", "the bound of 3 seconds")
    assert check(operations[-3:], model).answer == "not linearizable"


def test_a_part_without_order_refutes_whatever_the_others_cost() -> None:
    """Parts take turns, so that a hard one does not keep an easy one from showing the fault."""
    keys = [Operation(1, ("put", "hard", n), None, 0, 100 + n) for n in range(12)]
    keys += [Operation(1, ("get", "hard"), "nobody's", 200, 201), Operation(2, ("get", "easy"), 7, 300, 301)]
    verdict = check(keys, models.key_value(), bounds=Bounds(situations=5_000))
    assert verdict.answer == "not linearizable"
    assert verdict.parts == 2


def test_many_operations_of_unknown_outcome_are_no_burden() -> None:
    """Fifty writes that nobody heard of again: which of them happened is not tried in every combination."""
    raw: list[Raw] = [(("write", number % 5), None, number, None) for number in range(50)]
    raw += [(("read",), answer, 100 + 2 * at, 101 + 2 * at) for at, answer in enumerate([3, 1, 3, 0, 9])]
    verdict = check(history(*raw), models.register(0), bounds=Bounds(situations=10_000))
    assert verdict.answer == "not linearizable"
    assert str(verdict.evidence).splitlines()[0].endswith("read() → 9")


def test_a_foolish_model_is_told() -> None:
    """An operation that the model does not know, or a state that is not hashable, is an error and no verdict."""
    with pytest.raises(SimkitError, match="knows no operation 'wriet'"):
        check(history((("wriet", 1), None, 0, 1)), models.register())
    listing = Model("list", (), lambda state, asked, answer: [*state, asked])
    with pytest.raises(SimkitError, match="unhashable"):
        check(history((("add",), None, 0, 5), (("more",), None, 0, 6)), listing)


@pytest.mark.parametrize(
    ("asked", "model", "operations"),
    [
        (("read", "x"), models.key_value(), "get(key), put(key, value), append(key, more)"),
        (("put", "x"), models.key_value(), "put(key, value)"),
        (("get", "x"), models.register(), "read(), write(value)"),
        (("cas", 1, 2), models.register(), "read(), write(value)"),
        (("push", 1), models.queue(), "enqueue(element), dequeue()"),
        (("has", 1), models.set_(), "contains(element), read()"),
        (("acquire",), models.lock(), "acquire(owner), release(owner)"),
    ],
)
def test_an_operation_of_another_model_is_no_violation(asked: tuple[Any, ...], model: Model, operations: str) -> None:
    """It is a mistake of whoever recorded it: the error names the operations that there are."""
    with pytest.raises(SimkitError, match=re.escape(operations)) as caught:
        check(history((asked, 1, 0, 1)), model)
    assert caught.value.problem.code == "operation-unknown"
    assert repr(asked[0]) in caught.value.problem.what


def test_what_is_no_history_or_no_model_is_refused() -> None:
    """A call that was forgotten is named."""
    known = history((("get", "x"), 1, 0, 1))
    with pytest.raises(SimkitError, match=re.escape("call it: models.key_value()")):
        check(known, models.key_value)  # type: ignore[arg-type]
    with pytest.raises(SimkitError, match="check: model"):
        check(known, len)  # type: ignore[arg-type]
    for wrong in (7, ["get"]):
        with pytest.raises(SimkitError, match="check: history"):
            check(wrong, models.key_value())  # type: ignore[arg-type]


def test_an_impossible_history_is_told() -> None:
    """A return before the call is refused where it is made."""
    with pytest.raises(SimkitError, match="before its call"):
        Operation(1, ("read",), 1, 5, 4)


# ------------------------------------------------------------------------------------------------------------- recording
def test_a_history_is_recorded_in_a_simulated_program() -> None:
    """Calls, answers and virtual time; a caller that fails, is cancelled or killed leaves its operation unknown."""
    histories: list[History] = []

    async def main(world: World) -> None:
        log = History(world)
        histories.append(log)

        async def killed() -> None:
            with log.call("killed", "write", 3):
                await trio.sleep(100)

        with log.call("one", "write", 1) as op:
            await trio.sleep(1)
            op.returns()
        with log.call("two", "read") as op:
            op.returns(1)
        with log.call("three", "write", 2):
            pass
        with pytest.raises(ValueError, match="no"), log.call("four", "write", 4):
            raise ValueError("no")
        with trio.move_on_after(1), log.call("five", "write", 5):
            await trio.sleep(5)
        with log.call("six", "write", 6) as op:
            op.failed()
        with log.call("seven", "write", 7) as op:
            op.unknown()
        process = world.host("a").start(killed)
        await trio.sleep(1)
        process.kill()

    run(main, tape=Tape.from_seed(0)).unwrap()
    operations = histories[0].operations()
    told = [(one.process, one.answer, one.definite) for one in operations]
    assert told == [
        ("one", None, True),
        ("two", 1, True),
        ("three", None, True),
        ("four", UNKNOWN, False),
        ("five", UNKNOWN, False),
        ("seven", UNKNOWN, False),
        ("killed", UNKNOWN, False),
    ]
    assert (operations[0].called_ns, operations[0].returned_ns) == (0, 1_000_000_000)
    moments = [moment for one in operations for moment in (one.called, one.returned) if moment is not None]
    assert len(set(moments)) == len(moments)
    assert check(histories[0], models.register())


def test_an_operation_returns_once() -> None:
    """A second answer is a mistake of the recording, and told."""
    log = History()
    with log.call("one", "read") as op:
        op.returns(1)
        with pytest.raises(SimkitError, match="a second time"):
            op.returns(2)
