"""The outside's services: contracts, barriers, faults at barriers, the order of facts, and the simulated wire."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from scenarios import plan
from simkit.services import (
    CONTRACTS,
    KEY_LIFETIME_NS,
    LOOKUP_ENTRIES,
    SCRIPT_ENTRIES,
    Barrier,
    Fault,
    Reply,
    Request,
    Services,
)
from tests.service_rig import World, at, counted, kinds, replies


def ledger(op: str = "a", key: str | None = "k", **fields: Any) -> Request:
    return Request("ledger", "r1", op, key, **fields)


def test_services_and_script_entries_are_those_plans_may_name() -> None:
    """Every service a plan can name is served, by the semantics that the plan believes in, and so is every script entry."""
    assert list(CONTRACTS) == list(plan.SEMANTICS)
    for name, contract in CONTRACTS.items():
        if plan.SEMANTICS[name] == "keyed":
            assert contract.keyed or name == "store", name  # the store's commits are keyed by their location
        elif plan.SEMANTICS[name] == "lookup":
            assert contract.looked_up, name
        else:
            assert not contract.keyed, name
    assert set(plan.SCRIPT_ENTRIES) <= set(SCRIPT_ENTRIES)
    assert set(plan.MODEL_ENTRIES) <= {*SCRIPT_ENTRIES, *CONTRACTS["model"].entries}
    assert CONTRACTS["checker"].entries == plan.CHECK_ENTRIES
    assert plan.LOOKUP_ENTRIES == LOOKUP_ENTRIES


def test_a_key_gives_its_first_answer_again() -> None:
    """A ledger executes a key once and gives status, body and nonce again as saved."""
    first, second = replies(ledger(), ledger())
    assert (first, second) == (
        Reply(200, {"nonce": "n1"}, "executed", "n1").identified(1),
        Reply(200, {"nonce": "n1"}, "saved", "n1").identified(2),
    )


@pytest.mark.parametrize("change", [{"params": {"x": 1}}, {"carries": {"z": "other"}}])
def test_other_parameters_under_a_known_key_are_refused(change: Mapping[str, Any]) -> None:
    """Parameters and carried nonces are what a key stands for; either differing is a mismatch."""
    assert kinds(ledger(), ledger(**change), ledger()) == ["executed", "mismatch", "saved"]


def test_a_ledger_without_a_key_executes_every_time() -> None:
    """Without a key there is nothing to recognise a repetition by."""
    assert kinds(ledger(key=None), ledger(key=None)) == ["executed", "executed"]


def test_keys_are_forgotten_after_a_day_and_start_anew() -> None:
    """A key is pruned when its saved answer is 24 hours old, not a nanosecond before."""
    now_ns = 0
    services = Services(counted(), lambda: now_ns)
    first = services.settle(services.begin(1, ledger()))
    now_ns = KEY_LIFETIME_NS - 1
    kept = services.settle(services.begin(2, ledger()))
    now_ns = KEY_LIFETIME_NS
    anew = services.settle(services.begin(3, ledger(params={"x": 1})))
    assert [s.reply.kind for s in (first, kept, anew)] == ["executed", "saved", "executed"]


def test_a_ledger_saves_failures_and_flaky_does_not() -> None:
    """A ledger's executed failure is its key's answer for good; a flaky refusal leaves the key free."""
    failing = ledger(script=("reject",))
    assert replies(failing, failing)[1] == Reply(400, {"error": "rejected"}, "saved").identified(2)
    assert kinds(attrs.evolve(failing, service="flaky"), attrs.evolve(failing, service="flaky")) == [
        "rejected",
        "executed",
    ]


def test_a_registry_finds_the_first_effect_by_reference_and_forgets_none() -> None:
    """Lookups find nothing before the effect, and the first of several after; keys are of no use there."""
    do = Request("registry", "r1", "a", "k")
    look = attrs.evolve(do, lookup=True)
    missing, one, two, found = replies(look, do, do, look)
    assert isinstance(missing, Reply)
    assert (missing.status, missing.kind) == (404, "missing")
    assert found == Reply(200, {"nonce": "n1"}, "found", "n1").identified(4)
    assert one != two


@pytest.mark.parametrize("service", ["mailer", "reader"])
def test_mailer_and_reader_answer_freshly_every_time(service: str) -> None:
    """Neither keys nor equal parameters make two of their answers one."""
    request = Request(service, "r1", "a", "k")
    first, second = replies(request, request)
    assert isinstance(first, Reply)
    assert isinstance(second, Reply)
    assert (first.kind, second.kind) == ("executed", "executed")
    assert first.nonce != second.nonce


def test_a_script_is_followed_request_by_request() -> None:
    """Each request of an operation takes its entry; an effect made behind a 503 or reset is found by its key later."""
    request = Request("flaky", "r1", "a", "k", script=("error-before", "reset-before", "reject", "error-after", "slow"))
    assert kinds(*[request] * 6) == ["error", "reset", "rejected", "error", "saved", "saved"]
    assert kinds(*[attrs.evolve(request, script=("reset-after", "reject"))] * 2) == ["reset", "saved"]


RECEIVED, APPLIED, REPLIED = "received", "applied", "replied"


@pytest.mark.parametrize(
    ("barrier", "fault", "came_back", "facts", "retried"),
    [
        ("received", Fault("drop"), "dropped", [RECEIVED, REPLIED], "executed"),
        ("received", Fault("reset"), "reset", [RECEIVED, REPLIED], "executed"),
        ("received", Fault("error-before"), "error", [RECEIVED, REPLIED], "executed"),
        ("received", Fault("error-after"), "error", [RECEIVED, APPLIED, REPLIED], "saved"),
        ("received", Fault("delay", 1_000), "executed", [RECEIVED, APPLIED, REPLIED], "saved"),
        ("received", Fault("gone"), None, [RECEIVED], "executed"),
        ("applied", Fault("drop"), "dropped", [RECEIVED, APPLIED, REPLIED], "saved"),
        ("applied", Fault("reset"), "reset", [RECEIVED, APPLIED, REPLIED], "saved"),
        ("applied", Fault("error-after"), "error", [RECEIVED, APPLIED, REPLIED], "saved"),
        ("applied", Fault("cut"), "cut", [RECEIVED, APPLIED, REPLIED], "saved"),
        ("applied", Fault("delay", 1_000), "executed", [RECEIVED, APPLIED, REPLIED], "saved"),
        ("applied", Fault("gone"), None, [RECEIVED, APPLIED], "saved"),
        ("replied", Fault("gone"), "executed", [RECEIVED, APPLIED, REPLIED], "saved"),
    ],
)
def test_faults_at_barriers(
    barrier: Barrier, fault: Fault, came_back: str | None, facts: list[str], retried: str
) -> None:
    """Each fault leaves exactly the facts it should, and the next request under the key meets what was left behind."""

    async def main() -> tuple[list[str | None], list[str]]:
        world = World()
        gate = at(barrier, fault)
        got = [await world.ask(ledger(), gate) for _ in range(2)]
        return [reply.kind if isinstance(reply, Reply) else reply for reply in got], world.facts.of(1)

    assert trio.run(main) == ([came_back, retried], facts)


@pytest.mark.parametrize(("barrier", "kind"), [("applied", "error-before"), ("received", "cut"), ("replied", "drop")])
def test_a_fault_that_cannot_be_is_an_error_of_the_kit(barrier: Barrier, kind: Any) -> None:
    """Nothing is undone at `applied` or `replied`; asking for it is refused rather than ignored."""
    with pytest.raises(ValueError, match=f"{kind} cannot happen at {barrier}"):
        replies(ledger(), gate=at(barrier, Fault(kind)))


def test_what_was_not_sent_is_recorded_with_what_it_would_have_been() -> None:
    """A dropped reply keeps its nonce in the facts: the judges know what the caller could not."""

    async def main() -> tuple[Any, ...]:
        world = World()
        await world.ask(ledger(), at("applied", Fault("drop")))
        return world.facts.rows[-1]

    assert trio.run(main) == ("replied", 1, 200, "executed", "n1", "dropped")


def test_a_key_held_by_an_executing_request_is_busy_until_it_settles() -> None:
    """Between `received` and `applied` the key is in progress; held at `applied`, its answer is saved already."""

    async def main() -> list[str | None]:
        world, got = World(), []
        reached: dict[str, trio.Event] = {name: trio.Event() for name in ("received", "applied")}
        release: dict[str, trio.Event] = {name: trio.Event() for name in ("received", "applied")}

        async def hold(_call: int, request: Request, nth: int, barrier: Barrier) -> Fault | None:
            if request.op == "a" and nth == 1 and barrier in reached:
                reached[barrier].set()
                await release[barrier].wait()
            return None

        async with trio.open_nursery() as nursery:
            nursery.start_soon(world.ask, ledger(), hold)
            for barrier in ("received", "applied"):
                await reached[barrier].wait()
                got += [await world.ask(ledger(), hold), await world.ask(ledger(params={"x": 1}), hold)]
                got.append(await world.ask(ledger("b", "other"), hold) if barrier == "applied" else None)
                release[barrier].set()
        return [reply.kind if isinstance(reply, Reply) else reply for reply in got]

    assert trio.run(main) == ["busy", "mismatch", None, "saved", "mismatch", "executed"]


def test_a_call_cut_off_while_it_waits_frees_its_key() -> None:
    """A request cancelled at its gate was not applied, so its key is neither busy nor saved afterwards."""

    async def main() -> Reply | str | None:
        world = World()

        async def forever(*_: object) -> Fault | None:
            await trio.sleep_forever()
            raise AssertionError

        with trio.move_on_after(0.001):
            await world.ask(ledger(), forever)
        return await world.ask(ledger())

    reply = trio.run(main)
    assert isinstance(reply, Reply)
    assert reply.kind == "executed"


def test_gates_count_requests_of_an_operation_and_lookups_apart() -> None:
    """`nth` counts from 1 per run and operation; lookups have a count of their own."""

    async def main() -> list[tuple[int, str, bool, int]]:
        world, seen = World(), []

        async def gate(call: int, request: Request, nth: int, barrier: Barrier) -> Fault | None:
            if barrier == "received":
                seen.append((call, request.op, request.lookup, nth))
            return None

        do = Request("registry", "r1", "a")
        for request in (do, attrs.evolve(do, lookup=True), do, attrs.evolve(do, op="b"), attrs.evolve(do, run="r2")):
            await world.ask(request, gate)
        return seen

    assert trio.run(main) == [
        (1, "a", False, 1),
        (2, "a", True, 1),
        (3, "a", False, 2),
        (4, "b", False, 1),
        (5, "a", False, 1),
    ]


def test_the_applied_barrier_is_only_for_what_was_executed() -> None:
    """Saved answers and lookups pass from `received` to `replied`; a failure that is saved was executed."""

    async def main() -> list[tuple[int, str]]:
        world = World()
        seen: list[tuple[int, str]] = []

        async def gate(call: int, _request: Request, _nth: int, barrier: Barrier) -> Fault | None:
            seen.append((call, barrier))
            return None

        for request in (ledger(), ledger(), ledger("b", "k2", script=("reject",))):
            await world.ask(request, gate)
        return seen

    assert trio.run(main) == [
        *((1, barrier) for barrier in (RECEIVED, APPLIED, REPLIED)),
        *((2, barrier) for barrier in (RECEIVED, REPLIED)),
        *((3, barrier) for barrier in (RECEIVED, APPLIED, REPLIED)),
    ]


REQUESTS = st.builds(
    Request,
    service=st.sampled_from(["ledger", "registry", "mailer", "reader", "flaky", "fenced", "model", "operation"]),
    token=st.sampled_from([None, 1, 2]),
    run=st.just("r1"),
    op=st.sampled_from(["a", "b"]),
    key=st.sampled_from([None, "k1", "k2"]),
    params=st.sampled_from([{}, {"x": 1}]),
    script=st.lists(st.sampled_from([e for e in SCRIPT_ENTRIES if e != "slow"]), max_size=3).map(tuple),
)
FAULTS = st.one_of(
    st.none(),
    st.tuples(
        st.sampled_from(["received", "applied"]),
        st.sampled_from(["drop", "reset", "error-after", "gone"]).map(Fault),  # type: ignore[arg-type]
    ),
)


@given(st.lists(st.tuples(REQUESTS, FAULTS), max_size=12))
def test_whatever_is_asked_a_key_has_at_most_one_effect(
    asked: list[tuple[Request, tuple[Barrier, Fault] | None]],
) -> None:
    """Over any requests and faults: one effect per key, one nonce per effect, and every answered nonce was applied."""

    async def main() -> World:
        world = World()

        for request, fault in asked:

            async def gate(
                _call: int, _req: Request, _nth: int, barrier: Barrier, fault: tuple[Barrier, Fault] | None = fault
            ) -> Fault | None:
                return fault[1] if fault and fault[0] == barrier else None

            await world.ask(request, gate)
        return world

    rows = trio.run(main).facts.rows
    applied = {row[1]: row[3] for row in rows if row[0] == "applied"}
    assert len(set(applied.values())) == len(applied)
    assert [row[2] for row in rows if row[0] == "applied"] == list(range(1, len(applied) + 1))
    keys = [(asked[call - 1][0].service, asked[call - 1][0].key) for call in applied]
    keyed = [(service, key) for service, key in keys if key is not None and CONTRACTS[service].keyed]
    assert len(set(keyed)) == len(keyed)
    assert {row[4] for row in rows if row[0] == "replied" and row[4]} <= set(applied.values())
