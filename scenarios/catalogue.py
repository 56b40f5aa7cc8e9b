"""The named scenarios: plans with a story each, every interruption that fits them, and the tiers that pick from both.

A scenario is named `<plan>/<interruption label>`, and `<plan>/undisturbed` for the run without any. Names are stable:
certificates and replay lines quote them.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Literal

import attrs

from scenarios.generate import Choose, draw_interruptions, draw_plan
from scenarios.interruption import Barrier, Interruption, Scenario, Site
from scenarios.plan import Call, Par, Plan, Requester, Seq, Sleep, Wait

Tier = Literal["smoke", "core", "full"]
TIERS: tuple[Tier, ...] = ("smoke", "core", "full")
#: Seeds whose drawn scenarios belong to the full tier too.
FULL_SEEDS = range(100)
BARRIERS: tuple[Barrier, ...] = ("received", "applied", "replied")

_NAP_NS = 150_000_000
#: Longer than a lease shortened for testing, shorter than the time a caller waits for an answer: the stale worker comes back
#: with a good answer in its hands when another has already taken over.
_PAUSE_NS = 800_000_000


@attrs.frozen
class Story:
    """A named plan, what it is about, and the tiers it belongs to from which on."""

    name: str
    story: str
    plan: Plan


def _seq(*children: Call | Wait | Sleep | Par | Seq) -> Plan:
    return Plan(Seq("main", children))


def _ledger(name: str, *carries: str, amount: int = 1) -> Call:
    return Call(name, "ledger", {"amount": amount}, carries)


STORIES: Mapping[str, Story] = {
    story.name: story
    for story in (
        Story(
            "tour",
            "An order: reserve, pay two equal instalments side by side, wait for the go-ahead, let it settle, ship.",
            _seq(
                _ledger("reserve"),
                Par("pay", (_ledger("first", "reserve", amount=7), _ledger("second", "reserve", amount=7))),
                Wait("release", "go"),
                Sleep("settle", _NAP_NS),
                _ledger("ship", "first", "second", "release"),
            ),
        ),
        Story(
            "chain",
            "Each step pays with the receipt of the one before; a recomputed step would fork the receipts.",
            _seq(
                Call("quote", "reader", {"item": 1}),
                _ledger("buy", "quote"),
                _ledger("book", "buy"),
                _ledger("bill", "book"),
            ),
        ),
        Story(
            "receivers",
            "Read a price, register a shipment that can be looked up, send a mail that can be neither looked up nor repeated.",
            _seq(
                Call("price", "reader", {"item": 2}),
                Call("shipment", "registry", {"box": 1}, ("price",)),
                Call("mail", "mailer", {"to": 1}, ("shipment",)),
            ),
        ),
        Story(
            "twice",
            "Two approvals of one name, one after the other: a repeated approval must not open the second gate.",
            _seq(
                _ledger("draft"),
                Wait("review", "go"),
                _ledger("publish", "review"),
                Wait("announce", "go"),
                _ledger("post", "announce"),
            ),
        ),
        Story(
            "timer",
            "A payment, a cooling-off period, a second payment: the timer neither fires early nor is forgotten.",
            _seq(_ledger("hold"), Sleep("cool", 2 * _NAP_NS), _ledger("capture", "hold")),
        ),
        Story(
            "outage",
            "A receiver that applies the order and then answers 503; the same order again must not ship twice.",
            _seq(
                Call("order", "flaky", {"sku": 1}, (), ("error-after",)),
                Call("confirm", "flaky", {"sku": 2}, ("order",), ("reset-after", "error-before")),
                _ledger("close", "order", "confirm"),
            ),
        ),
        Story(
            "survey",
            "Three sources are read side by side, never answering the same twice; the order quotes what was accepted.",
            _seq(
                Par("sources", tuple(Call(name, "reader", {"source": name}) for name in ("north", "south", "west"))),
                Call("note", "reader", {"source": "all"}, ("north", "south", "west")),
                _ledger("order", "north", "note"),
            ),
        ),
        Story(
            "branches",
            "Two branches of two steps: finished siblings stay finished when one of them dies.",
            _seq(
                Par(
                    "both",
                    (
                        Seq("left", (_ledger("l1"), _ledger("l2", "l1"))),
                        Seq("right", (_ledger("r1"), Wait("gate", "go"), _ledger("r2", "r1", "gate"))),
                    ),
                ),
                _ledger("join", "l2", "r2"),
            ),
        ),
    )
}

#: The smoke tier: what it takes from which story, as beginnings of interruption labels; it has to end within a minute.
_SMOKE: Mapping[str, tuple[str, ...]] = {
    "tour": (
        "kill@reserve#1.", "kill@first#1.", "kill@second#1.applied", "kill@ship#1.", "kill@ack", "kill@waiting", "kill@end",
        "kill@first#1.applied+", "drop@reserve", "reset@ship", "error-after@first", "lose-ack", "repeat", "early",
        "pause@reserve",
    ),
    "chain": ("kill@quote#1.", "kill@buy#1.applied", "kill@bill#1.replied", "drop@quote", "reset@buy", "pause@quote"),
    "twice": ("repeat@ack", "kill@ack:signal:review", "early@ack:start:announce"),
    "receivers": ("kill@shipment#1.applied", "reset@shipment", "drop@mail", "reset@mail", "kill@price#1.replied"),
}  # fmt: skip


def interruptions_of(
    plan: Plan, *, workers: bool = False, units: Sequence[str] = ("worker",), thorough: bool = False
) -> Iterator[Interruption]:
    """Every single interruption that fits `plan`, then the second crashes in recovery.

    `workers`: two may share one store. `units` beside the worker, such as a server, are killed at the same moments.
    `thorough`: a second crash after the kill at every barrier, and of every unit, not only where an effect was just made.
    """
    yield from _at_calls(plan)
    yield from _at_asks(plan)
    for leaf in plan.leaves():
        if isinstance(leaf, Wait | Sleep):
            yield Interruption("kill", Site("waiting", leaf.id))
    yield Interruption("kill", Site("end"))
    for unit in units:
        if unit != "worker":
            yield from (attrs.evolve(kill, site=attrs.evolve(kill.site, unit=unit)) for kill in _moments(plan))
    if workers:
        for call in plan.calls():
            yield Interruption("pause", Site("barrier", call.id, 1, "applied"), ns=_PAUSE_NS)
    for call in plan.calls():
        yield _twice(Site("barrier", call.id, 1, "applied"))
    if thorough:
        for call in plan.calls():
            yield from (_twice(Site("barrier", call.id, 1, one)) for one in passed(call) if one != "applied")
            yield from (_twice(Site("barrier", call.id, 1, "applied", unit=unit)) for unit in units if unit != "worker")


def _twice(site: Site) -> Interruption:
    """A kill, and another of the same unit as soon as its recovery has made an effect."""
    return Interruption("kill", site, then=Interruption("kill", Site("barrier", None, 1, "applied", unit=site.unit)))


def _moments(plan: Plan) -> Iterator[Interruption]:
    """Kills at the moments when something has just become durable, or is being waited for."""
    yield Interruption("kill", Site("ack", verb="start"))
    for call in plan.calls():
        yield Interruption("kill", Site("barrier", call.id, 1, "applied"))
    for leaf in plan.leaves():
        if isinstance(leaf, Wait | Sleep):
            yield Interruption("kill", Site("waiting", leaf.id))
    for wait in plan.waits():
        yield Interruption("kill", Site("ack", wait.id, verb="signal"))
    yield Interruption("kill", Site("end"))


def passed(call: Requester) -> tuple[Barrier, ...]:
    """The barriers its first request comes to: one that its script resets is never replied to."""
    match call.script[:1]:
        case ("reset-before",):
            return ("received",)
        case ("reset-after",):
            return ("received", "applied")
        case ("error-before" | "reject",):
            return ("received", "replied")
        case _:
            return BARRIERS


def _at_calls(plan: Plan) -> Iterator[Interruption]:
    for call in plan.calls():
        for barrier in passed(call):
            yield Interruption("kill", Site("barrier", call.id, 1, barrier))
    for call in plan.calls():
        yield Interruption("drop", Site("barrier", call.id, 1, "applied"))
        yield Interruption("reset", Site("barrier", call.id, 1, "applied"))
        yield Interruption("error-after", Site("barrier", call.id, 1, "applied"))
        yield Interruption("error-before", Site("barrier", call.id, 1, "received"))
        yield Interruption("delay", Site("barrier", call.id, 1, "applied"), ns=100_000_000)


def _at_asks(plan: Plan) -> Iterator[Interruption]:
    yield Interruption("kill", Site("ack", verb="start"))
    yield Interruption("lose-ack", Site("ack", verb="start"))
    if calls := plan.calls():
        yield Interruption("repeat", Site("barrier", calls[0].id, 1, "received", verb="start"))
        yield Interruption("repeat", Site("barrier", calls[-1].id, 1, "received", verb="start"))
    for wait in plan.waits():
        yield Interruption("early", Site("ack", wait.id, verb="start"))
        yield Interruption("repeat", Site("ack", wait.id, verb="signal"))
        yield Interruption("kill", Site("ack", wait.id, verb="signal"))


def scenarios_of(
    name: str, *, workers: bool = False, units: Sequence[str] = ("worker",), thorough: bool = False
) -> Iterator[Scenario]:
    """The undisturbed run of story `name`, then one scenario for each interruption that fits."""
    plan = STORIES[name].plan
    yield Scenario(f"{name}/undisturbed", plan)
    for interruption in interruptions_of(plan, workers=workers, units=units, thorough=thorough):
        yield Scenario(f"{name}/{interruption.label}", plan, (interruption,))


def tier(
    which: Tier, supported: Collection[str], *, workers: bool = False, units: Sequence[str] = ("worker",)
) -> list[Scenario]:
    """The scenarios of a tier for a target that supports these plan operations (others fall away).

    `smoke` picks from `core`; `full` adds second crashes to it, and `FULL_SEEDS` drawn scenarios, which need a tape and are
    for the caller to draw.
    """
    return [
        scenario
        for name, story in STORIES.items()
        if story.plan.kinds() <= set(supported)
        for scenario in scenarios_of(name, workers=workers, units=units, thorough=which == "full")
        if which != "smoke" or _in_smoke(name, scenario)
    ]


def _in_smoke(story: str, scenario: Scenario) -> bool:
    if story not in _SMOKE:
        return False
    return all(
        any(one.label.startswith(start) and ("+" in start) == (one.then is not None) for start in _SMOKE[story])
        for one in scenario.interruptions
    )


def drawn(
    choose: Choose,
    supported: Collection[str],
    seed: int,
    *,
    units: tuple[str, ...],
    simulated: bool,
    workers: bool = True,
) -> Scenario:
    """The scenario of a seed, drawn from `choose`: a drawn plan, or one of the stories with one of its own interruptions
    (which meet promises that a drawn plan seldom comes near, such as a repeated signal), and drawn faults in either case.
    """
    draw = functools.partial(draw_interruptions, choose, units=units, simulated=simulated, workers=workers)
    if choose("scenario.kind", 2) == 0 or not (families := _families(frozenset(supported), units, workers)):
        plan = draw_plan(choose, supported)
        return Scenario(f"seed/{seed}", plan, draw(plan))
    family = families[choose("scenario.family", len(families))]
    story, first = family[choose("scenario.interruption", len(family))]
    plan = STORIES[story].plan
    return Scenario(f"seed/{seed}", plan, (first, *draw(plan, count_max=1)))


@functools.cache
def _families(supported: frozenset[str], units: tuple[str, ...], workers: bool) -> list[list[tuple[str, Interruption]]]:
    """The stories' interruptions by action, place and unit, so that the rare kinds are drawn as often as the many kills."""
    families: dict[tuple[str, ...], list[tuple[str, Interruption]]] = {}
    for name, story in STORIES.items():
        if story.plan.kinds() <= supported:
            for one in interruptions_of(story.plan, workers=workers, units=units):
                families.setdefault((one.action, one.site.where, one.site.unit), []).append((name, one))
    return list(families.values())


def by_name(name: str, *, workers: bool = True, units: Sequence[str] = ("worker", "engine")) -> Scenario | None:
    """The catalogue scenario called `name`, or None. Wherever a unit is killed, its power may be cut: `tour/power@end`."""
    story, _, label = name.partition("/")
    if story not in STORIES:
        return None
    if label.startswith("power@") and (killed := by_name(f"{story}/kill{label[5:]}", workers=workers, units=units)):
        cuts = tuple(attrs.evolve(one, action="power") for one in killed.interruptions)
        return attrs.evolve(killed, name=name, interruptions=cuts)
    return next(
        (one for one in scenarios_of(story, workers=workers, units=units, thorough=True) if one.name == name), None
    )
