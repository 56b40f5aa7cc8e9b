"""A table of a run: its rows in their columns, with what decides marked, and no more of them than fit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import attrs

from simkit.spacetime import disks
from simkit.spacetime.lanes import Lanes, lanes_of
from simkit.spacetime.model import OUTSIDE, Draft, Life, Place, Row, Stack, Table
from simkit.spacetime.reading import MAIN, last_step, read, short_name
from simkit.spacetime.watch import Known

if TYPE_CHECKING:
    from simkit.explanation import Event, Explanation
    from simkit.trace import Trace

ROWS_MAX = 400
LANES_MAX = 8
#: Rows that are always shown, whatever they are: the first ones, and the last ones before the end.
_FIRST, _LAST = 2, 3
_LOUD = ("fault", "death", "failure", "point", "pause", "resume")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def table(
    trace: Trace,
    known: Known = Known(),  # noqa: B008  # frozen
    explanation: Explanation | None = None,
    *,
    failure: str = "",
    rows_max: int = ROWS_MAX,
    lanes_max: int = LANES_MAX,
) -> Table:
    """Draw a run; the same arguments give the same table.

    Args:
        trace: of the run; of a watched one (`Watch`) it also tells what messages say and where choices were drawn.
        known: who owns the tasks, from `Watch.known`.
        explanation: what decides; its events and departures are marked, and their stacks kept.
        failure: how the run fails, in a few words; the last row.
        rows_max: no more rows than this; what is left out is counted where it would stand.
        lanes_max: no more columns than this; the last one is shared by what is left.
    """
    events = _events(explanation)
    tags = {(event.task, event.nth): tag for event, tag in events.items()}
    drafts = read(trace, known, tags)
    if failure:
        last_ns = drafts[-1].at_ns if drafts else 0
        event = last_step(trace, MAIN)
        drafts.append(Draft(last_ns, "failure", Place(task=MAIN), failure, decides=True, event=event))
    _mark(drafts, explanation, events)

    def name(task: int) -> str:
        return short_name(known.names.get(task, ""), task)

    lanes = lanes_of(drafts, {event.task for event in events}, name, lanes_max=lanes_max)
    folded = disks.folded(_folded(drafts, lanes))
    rows = _joined(folded, lanes)
    routine = 0
    if len(rows) > rows_max:
        told = [draft for draft in folded if not draft.minor]
        routine, rows = len(folded) - len(told), _joined(told, lanes)
    orders = () if explanation is None else explanation.orderings
    return Table(
        lanes.lanes,
        tuple(_chosen(rows, rows_max)),
        tuple((_tag(tags, one.first), _tag(tags, one.second)) for one in orders),
        tuple(_stack(event, tag) for event, tag in events.items()),
        routine,
    )


# ---- what decides


def _stack(event: Event, tag: str) -> Stack:
    return Stack(event.task, event.nth, tag, f"step {event.nth} of {event.name} #{event.task}", event.stack)


def _events(explanation: Explanation | None) -> dict[Event, str]:
    """The events of the deciding orderings, each with a letter."""
    orderings = () if explanation is None else (*explanation.orderings, *explanation.passing)
    events = dict.fromkeys(event for one in orderings for event in (one.first, one.second))
    return {event: _LETTERS[at] if at < len(_LETTERS) else str(at) for at, event in enumerate(events)}


def _tag(tags: dict[tuple[int, int], str], event: Event) -> str:
    return tags[event.task, event.nth]


def _mark(drafts: Iterable[Draft], explanation: Explanation | None, events: dict[Event, str]) -> None:
    """Say of rows that they decide: steps by number, choices by their site."""
    causes = () if explanation is None else explanation.causes
    sites = {f"{label}/{key}#{nth}" for (label, key, nth) in (cause.site for cause in causes)}
    at_step = {(event.task, event.nth): (event, tag) for event, tag in events.items()}
    for draft in drafts:
        if draft.kind == "steps" and draft.decides and draft.place.task is not None:
            event, tag = at_step[draft.place.task, draft.nth]
            where = f", at {event.stack[-1].removesuffix(f' in {event.name}')}" if event.stack else ""
            draft.text, draft.tags = f"{draft.text}{where}", (tag,)
        elif draft.kind == "fault":
            draft.decides = any(tag in sites for tag in draft.tags)
            draft.minor = draft.minor and not draft.decides
            draft.tags = ()


# ---- folding and joining


def _folded(drafts: Iterable[Draft], lanes: Lanes) -> list[Draft]:
    """Steps of one task in a row are one row; where tasks have no column of their own, only the deciding ones are told."""
    kept: list[Draft] = []
    for draft in drafts:
        if draft.kind != "steps" or draft.decides:
            kept.append(draft)
            continue
        if not lanes.in_split(draft.place):
            continue
        last = kept[-1] if kept else None
        if last is not None and last.kind == "steps" and last.place == draft.place and not last.decides:
            kept[-1] = attrs.evolve(last, steps=last.steps + draft.steps)
        else:
            kept.append(attrs.evolve(draft, minor=False))
    for draft in kept:
        if draft.steps > 1:
            draft.text = f"{draft.steps} steps of {draft.text.partition(' of ')[2]}"
    return kept


def _joined(drafts: Sequence[Draft], lanes: Lanes) -> list[Row]:
    """Rows in their columns. A message that arrives before anything else happens is one row."""
    arrivals = {draft.message for draft in drafts if draft.kind == "receive"}
    sends = [draft for draft in drafts if draft.kind == "send" and draft.message is not None]
    texts: dict[int | None, str] = {draft.message: draft.text for draft in sends}
    rows: list[Row] = []
    lives = _first_lives(lanes)
    for draft in drafts:
        for place, life in (draft.alive or {}).items():
            for lane in lanes.all_of(place):
                lives[lane] = life
        row = _row(draft, lanes, tuple(lives), texts, arrivals)
        last = rows[-1] if rows else None
        if row.kind == "receive" and last is not None and last.kind == "send" and last.message == row.message:
            rows[-1] = attrs.evolve(last, kind="message")
        else:
            rows.append(row)
    return rows


def _first_lives(lanes: Lanes) -> list[Life]:
    """The outside lives from the beginning; processes begin when they are started."""
    return ["alive" if lane.host in {OUTSIDE, ""} else "none" for lane in lanes.lanes]


def _row(
    draft: Draft, lanes: Lanes, lives: tuple[Life, ...], texts: dict[int | None, str], arrivals: Iterable[int | None]
) -> Row:
    return Row(
        at_ns=draft.at_ns,
        lane=lanes.of(draft.place),
        kind=draft.kind,
        text=texts.get(draft.message, "") if draft.kind == "receive" else draft.text,
        to=None if draft.to is None else lanes.of(draft.to),
        message=draft.message,
        arrives=draft.message is None or draft.message in arrivals,
        tags=draft.tags,
        decides=draft.decides,
        minor=draft.minor,
        lives=lives,
        event=draft.event,
    )


# ---- choosing


def _chosen(rows: list[Row], rows_max: int) -> list[Row]:
    """All of the rows, or those that tell most; what is left out between them is counted."""
    if len(rows) <= rows_max:
        return rows
    nearness = _nearness(rows)
    ranked = sorted(range(len(rows)), key=lambda at: (_rank(rows, at), nearness[at], at))
    chosen = sorted(ranked[: max(rows_max, 1)])
    shown: list[Row] = []
    expected = 0
    for at in [*chosen, len(rows)]:
        if at > expected:
            before = rows[at - 1]
            shown.append(Row(rows[expected].at_ns, -1, "gap", "", lives=before.lives, left_out=at - expected))
        if at < len(rows):
            shown.append(rows[at])
        expected = at + 1
    return shown


def _rank(rows: Sequence[Row], at: int) -> int:
    """The lower, the sooner it is shown."""
    row = rows[at]
    if row.decides:
        return 0
    if row.kind in _LOUD and not row.minor:
        return 1
    if row.kind == "note" or at < _FIRST or at >= len(rows) - _LAST:
        return 2
    if row.minor:
        return 5
    return 4 if row.kind == "steps" else 3


def _nearness(rows: Sequence[Row]) -> list[int]:
    """How many rows each is away from the nearest that decides or is loud."""
    loud = [at for at, row in enumerate(rows) if row.decides or (row.kind in _LOUD and not row.minor)]
    if not loud:
        return [len(rows) - at for at in range(len(rows))]
    nearest: list[int] = []
    later = 0
    for at in range(len(rows)):
        while later < len(loud) - 1 and loud[later] < at:
            later += 1
        ways = [abs(loud[later] - at), abs(loud[max(0, later - 1)] - at)]
        nearest.append(min(ways))
    return nearest
