"""The named scenarios: plans with a story each, every interruption that fits them, and the tiers that pick from both.

The stories themselves are in `scenarios.stories`.
A scenario is named `<plan>/<interruption label>`, and `<plan>/undisturbed` for the run without any. Names are stable:
certificates and replay lines quote them.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Literal

import attrs

from scenarios.generate import Choose, draw_plan
from scenarios.generate_interruptions import draw_interruptions
from scenarios.interruption import BASIC_VERBS, NOTHING_MORE, Action, Barrier, Interruption, Scenario, Site, fits
from scenarios.plan import Approve, Compensate, Fail, Leaf, Plan, Requester, Sleep, Wait
from scenarios.stories import STORIES
from scenarios.story import Story

__all__ = [
    "BARRIERS", "FULL_SEEDS", "STORIES", "TIERS", "Story", "Tier", "by_name", "drawn", "interruptions_for", "interruptions_of",
    "passed", "scenarios_of", "sure", "tier",
]  # fmt: skip

Tier = Literal["smoke", "core", "full"]
TIERS: tuple[Tier, ...] = ("smoke", "core", "full")
#: Seeds whose drawn scenarios belong to the full tier too.
FULL_SEEDS = range(100)
BARRIERS: tuple[Barrier, ...] = ("received", "applied", "replied")

#: Longer than a lease shortened for testing, shorter than the time a caller waits for an answer: the stale worker comes back
#: with a good answer in its hands when another has already taken over.
_PAUSE_NS = 800_000_000
#: How many times as often as a drawn plan a story is drawn with one of its own interruptions: there are hundreds of these, and
#: many are the only ones to meet their promise.
_EXTRA_WEIGHT = 3


#: The smoke tier: what it takes from which story, as beginnings of interruption labels; it has to end within a minute.
#: A harness that lists no operations shows its results at the end alone, and one that knows nothing but calls in a row carries
#: out three of these stories: so each is killed when its end has just been shown, and what DUR-2 asks for comes together.
_SMOKE: Mapping[str, tuple[str, ...]] = {
    "tour": (
        "kill@reserve#1.", "kill@first#1.", "kill@second#1.applied", "kill@ship#1.", "kill@ack", "kill@waiting", "kill@end",
        "kill@first#1.applied+", "drop@reserve", "reset@ship", "error-after@first", "lose-ack", "repeat", "early",
        "pause@reserve",
    ),
    "chain": (
        "kill@quote#1.", "kill@buy#1.applied", "kill@bill#1.replied", "kill@ack", "kill@end", "drop@quote", "reset@buy",
        "pause@quote",
    ),
    "timer": ("kill@waiting", "kill@end"),
    "twice": ("repeat@ack", "kill@ack:signal:review", "kill@end", "early@ack:start:announce"),
    "receivers": (
        "kill@shipment#1.applied", "reset@shipment", "drop@mail", "reset@mail", "kill@price#1.replied", "kill@end",
    ),
    "outage": ("kill@end",),
}  # fmt: skip


def interruptions_of(
    plan: Plan, *, workers: bool = False, units: Sequence[str] = ("worker",), thorough: bool = False
) -> Iterator[Interruption]:
    """Every single interruption that fits `plan`, then the second crashes in recovery.

    `workers`: two may share one store. `units` beside the worker, such as a server, are killed at the same moments.
    `thorough`: a second crash after the kill at every barrier, and of every unit, not only where an effect was just made.
    """
    calls = sure(plan)
    yield from _at_calls(calls)
    yield from _at_asks(plan)
    yield from _early(plan, units)
    yield from (Interruption("kill", Site("waiting", leaf.id)) for leaf in _held(plan))
    yield Interruption("kill", Site("end"))
    for unit in units:
        if unit != "worker":
            yield from (attrs.evolve(kill, site=attrs.evolve(kill.site, unit=unit)) for kill in _moments(plan))
    if workers:
        for call in calls:
            yield Interruption("pause", Site("barrier", call.id, 1, "applied"), ns=_PAUSE_NS)
    again = [call for call in calls if "applied" in passed(call)]
    for call in again:
        yield _twice(Site("barrier", call.id, 1, "applied"))
    if thorough:
        for call in calls:
            yield from (_twice(Site("barrier", call.id, 1, one)) for one in passed(call) if one != "applied")
        for call in again:
            yield from (_twice(Site("barrier", call.id, 1, "applied", unit=unit)) for unit in units if unit != "worker")


def sure(plan: Plan) -> tuple[Requester, ...]:
    """The calls that certainly come to be sent when nothing happens: no decision leaves them out, and nothing fails before.

    Compensations are among them where the plan certainly fails after what they undo.
    """
    fails = [leaf.id for leaf in plan.leaves() if isinstance(leaf, Fail) and not plan.guards(leaf.id)]
    before = frozenset[str]().union(*(plan.certain()[fail] for fail in fails))

    def comes(call: Requester) -> bool:
        if isinstance(call, Compensate):
            return call.of in before
        refused = any(entry in {"reject", "wrong"} for entry in call.script)
        poisoned = "poison" in call.params
        return not (plan.guards(call.id) or refused or poisoned or plan.certain()[call.id] & set(fails))

    return tuple(call for call in plan.calls() if comes(call))


def _held(plan: Plan) -> Iterator[Leaf]:
    """Leaves that keep a run waiting whatever is decided."""
    return (leaf for leaf in plan.leaves() if isinstance(leaf, Wait | Sleep | Approve) and not plan.guards(leaf.id))


def _twice(site: Site) -> Interruption:
    """A kill, and another of the same unit as soon as its recovery has made an effect."""
    return Interruption("kill", site, then=Interruption("kill", Site("barrier", None, 1, "applied", unit=site.unit)))


def _moments(plan: Plan) -> Iterator[Interruption]:
    """Kills at the moments when something has just become durable, or is being waited for."""
    yield Interruption("kill", Site("ack", verb="start"))
    for call in sure(plan):
        if "applied" in passed(call):
            yield Interruption("kill", Site("barrier", call.id, 1, "applied"))
    yield from (Interruption("kill", Site("waiting", leaf.id)) for leaf in _held(plan))
    for wait in plan.waits():
        yield Interruption("kill", Site("ack", wait.id, verb="signal"))
    yield Interruption("kill", Site("end"))


def passed(call: Requester) -> tuple[Barrier, ...]:
    """The barriers its first request comes to: one that its script resets is never replied to."""
    match call.script[:1]:
        case ("reset-before",):
            return ("received",)
        case ("reset-after" | "cut",):
            return ("received", "applied")
        case ("error-before" | "reject" | "429" | "529",):
            return ("received", "replied")
        case _:
            return BARRIERS


def _at_calls(calls: Sequence[Requester]) -> Iterator[Interruption]:
    for call in calls:
        for barrier in passed(call):
            yield Interruption("kill", Site("barrier", call.id, 1, barrier))
    for call in calls:
        if "applied" in passed(call):
            yield Interruption("drop", Site("barrier", call.id, 1, "applied"))
            yield Interruption("reset", Site("barrier", call.id, 1, "applied"))
            yield Interruption("error-after", Site("barrier", call.id, 1, "applied"))
        yield Interruption("error-before", Site("barrier", call.id, 1, "received"))
        if "applied" in passed(call):
            yield Interruption("delay", Site("barrier", call.id, 1, "applied"), ns=100_000_000)


def _at_asks(plan: Plan) -> Iterator[Interruption]:
    yield Interruption("kill", Site("ack", verb="start"))
    yield Interruption("lose-ack", Site("ack", verb="start"))
    if calls := sure(plan):
        yield Interruption("repeat", Site("barrier", calls[0].id, 1, "received", verb="start"))
        yield Interruption("repeat", Site("barrier", calls[-1].id, 1, "received", verb="start"))
    for wait in plan.waits():
        yield Interruption("repeat", Site("ack", wait.id, verb="signal"))
        yield Interruption("kill", Site("ack", wait.id, verb="signal"))


def _early(plan: Plan, units: Sequence[str]) -> Iterator[Interruption]:
    """Each signal before its wait; also with a kill of each unit while nothing can have taken it yet."""
    first = next((call for call in sure(plan) if "applied" in passed(call)), None)
    for wait in plan.waits():
        early = Interruption("early", Site("ack", wait.id, verb="start"))
        yield early
        if first is not None and first.id in plan.certain()[wait.id]:
            for unit in units:
                kill = Interruption("kill", Site("barrier", first.id, 1, "applied", unit=unit))
                yield attrs.evolve(early, then=kill)


def scenarios_of(
    name: str, *, workers: bool = False, units: Sequence[str] = ("worker",), thorough: bool = False
) -> Iterator[Scenario]:
    """The undisturbed run of story `name`, then one scenario for each interruption that fits, its own extras last."""
    story = STORIES[name]
    yield Scenario(f"{name}/undisturbed", story.plan)
    seen: set[str] = set()
    for interruption in (*interruptions_for(story, workers=workers, units=units, thorough=thorough), *story.extras):
        if interruption.label not in seen:
            seen.add(interruption.label)
            yield Scenario(f"{name}/{interruption.label}", story.plan, (interruption,))


def interruptions_for(story: Story, *, workers: bool, units: Sequence[str], thorough: bool) -> Iterator[Interruption]:
    """What is done to the plan of every story; of one that is not `generic`, only the kills after its first effect."""
    if story.generic:
        yield from interruptions_of(story.plan, workers=workers, units=units, thorough=thorough)
        return
    first = next((call for call in sure(story.plan) if "applied" in passed(call)), None)
    if first is not None:
        for unit in dict.fromkeys(("worker", *(unit for unit in units if unit == "engine"))):
            yield Interruption("kill", Site("barrier", first.id, 1, "applied", unit=unit))


def tier(
    which: Tier,
    supported: Collection[str],
    *,
    workers: bool = False,
    units: Sequence[str] = ("worker",),
    verbs: Collection[str] = BASIC_VERBS,
    simulated: bool = False,
    real: Mapping[Action, Collection[str]] = NOTHING_MORE,
) -> list[Scenario]:
    """The scenarios of a tier for a target that supports these plan operations and answers these verbs (others fall away);
    `real`: see `scenarios.interruption.fits`.

    `smoke` picks from `core`; `full` adds second crashes to it, and `FULL_SEEDS` drawn scenarios, which need a tape and are
    for the caller to draw.
    """
    fitting = functools.partial(fits, verbs=verbs, units=units, simulated=simulated, workers=workers, real=real)
    return [
        scenario
        for name, story in STORIES.items()
        if story.plan.needs() <= set(supported)
        for scenario in scenarios_of(name, workers=workers, units=units, thorough=which == "full")
        if all(fitting(one) for one in scenario.interruptions) and (which != "smoke" or _in_smoke(name, scenario))
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
    verbs: Collection[str] = BASIC_VERBS,
) -> Scenario:
    """The scenario of a seed, drawn from `choose`: a drawn plan, or one of the stories with one of the interruptions that fit
    any plan, or with one of its own (both meet promises that a drawn plan seldom comes near), and drawn faults in each case.
    """
    draw = functools.partial(
        draw_interruptions, choose, units=units, simulated=simulated, workers=workers, verbs=tuple(verbs)
    )
    generic, extras = _families(frozenset(supported), units, workers, tuple(verbs), simulated)
    kind = choose("scenario.kind", 2 + (_EXTRA_WEIGHT if extras else 0))
    if kind == 0 or not generic:
        plan = draw_plan(choose, supported)
        return Scenario(f"seed/{seed}", plan, draw(plan))
    families = generic if kind == 1 else extras
    family = families[choose("scenario.family", len(families))]
    story, first = family[choose("scenario.interruption", len(family))]
    plan = STORIES[story].plan
    return Scenario(f"seed/{seed}", plan, (first, *draw(plan, count_max=1)))


_Family = list[tuple[str, Interruption]]


@functools.cache
def _families(
    supported: frozenset[str], units: tuple[str, ...], workers: bool, verbs: tuple[str, ...], simulated: bool
) -> tuple[list[_Family], list[_Family]]:
    """The stories' interruptions: the generic ones by action, place and unit, so that the rare kinds are drawn as often as the
    many kills; and each story's own.
    """
    fitting = functools.partial(fits, verbs=verbs, units=units, simulated=simulated, workers=workers)
    generic: dict[tuple[str, ...], _Family] = {}
    extras: list[_Family] = []
    for name, story in STORIES.items():
        if story.plan.needs() <= supported:
            for one in interruptions_for(story, workers=workers, units=units, thorough=False):
                if fitting(one):
                    generic.setdefault((one.action, one.site.where, one.site.unit), []).append((name, one))
            own = [(name, one) for one in story.extras_for(units, simulated=simulated) if fitting(one)]
            extras += [own] if own else []
    return list(generic.values()), extras


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
