"""Space-time tables: the few rows of a history that tell why a violation is one. Pure functions of the history.

A row is one event in one lane (`kit`, `worker 1`, a service). Evidence always shows; around it come faults and deaths, then
what belongs to the same calls and asks, then neighbours, until `limit` rows are full. Left-out stretches are counted, and
like answers to the same question, one after the other, are one row.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from conformance.events import Row
from scenarios import history as h
from scenarios.interruption import actions_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from collections.abc import Set as AbstractSet

#: Rows of one table, counted without the rows that stand for left-out ones.
ROWS_MAX = 14
KIT = "kit"
_TIMES = " × "
_KEY_MAX = 24


def rows(history: h.History, evidence: Collection[int], limit: int = ROWS_MAX) -> tuple[Row, ...]:
    """The table of `history` around the events at the indexes `evidence`, in order of observation, times from the first."""
    chosen = _choose(history.events, evidence, limit)
    units, calls, asks = _names(history.events)
    first_ns = history.events[0].at_ns if history.events else 0
    table: list[Row] = []
    expected = 0
    for index in chosen:
        event = history.events[index]
        if index > expected:
            table.append(_gap(history.events[expected:index], event.at_ns - first_ns))
        lane, text = _tell(event, units, calls, asks)
        text += _lag(history.events, index)
        table.append(Row(event.at_ns - first_ns, lane, text, index in evidence, index))
        expected = index + 1
    if chosen and len(history.events) > expected:
        table.append(_gap(history.events[expected:], history.events[-1].at_ns - first_ns))
    return tuple(table)


def whole(history: h.History) -> tuple[Row, ...]:
    """Every event of `history`; only statuses that repeat the one before are folded into its row."""
    units, calls, asks = _names(history.events)
    polls = _polls(history.events)
    first_ns = history.events[0].at_ns if history.events else 0
    answered = {event.ask for event in history.events if isinstance(event, h.Answered)}
    table: list[Row] = []
    repeated = 0
    for index, event in enumerate(history.events):
        if isinstance(event, h.Asked) and event.ask in polls & answered:
            continue  # its answer says as much
        lane, text = _tell(event, units, calls, asks)
        if _is_poll(event, polls) and repeated and _unfolded(table[-1].text) == text:
            repeated += 1
            table[-1] = Row(table[-1].at_ns, lane, _folded(text, repeated), index=table[-1].index)
            continue
        repeated = int(_is_poll(event, polls))
        table.append(Row(event.at_ns - first_ns, lane, text + _lag(history.events, index), index=index))
    return tuple(table)


def why(history: h.History, evidence: Collection[int]) -> str:
    """The fault and the ordering that decide: which interruptions fired, and between which proving events."""
    units, calls, asks = _names(history.events)
    proof = sorted(index for index in evidence if 0 <= index < len(history.events))
    faults = [(index, event.label) for index, event in enumerate(history.events) if isinstance(event, h.Fired)]

    def said(index: int) -> str:
        return ": ".join(_tell(history.events[index], units, calls, asks))

    if not faults:
        order = ", then ".join(said(index) for index in proof)
        return f"no fault was needed: {order}" if order else "no fault was needed"
    sentences = [_placed(label, index, proof, said) for index, label in faults]
    return "; ".join(sentences)


def lanes(table: Sequence[Row]) -> tuple[str, ...]:
    """Lanes in reading order: the kit, the target's processes, the services; each group by first appearance."""
    seen = list(dict.fromkeys(row.lane for row in table if row.lane))
    services = [lane for lane in seen if lane != KIT and not lane[-1:].isdigit()]
    return tuple(sorted(seen, key=lambda lane: (lane != KIT, lane in services, seen.index(lane))))


def _placed(label: str, index: int, proof: Sequence[int], said: Callable[[int], str]) -> str:
    before = [one for one in proof if one < index]
    after = [one for one in proof if one > index]
    parts = [f"{label} struck"]
    if before:
        parts.append(f"after [{said(before[-1])}]")
    if after:
        parts.append(f"{'and ' if before else ''}before [{said(after[0])}]")
    return " ".join(parts)


def _gap(skipped: Sequence[h.Event], at_ns: int) -> Row:
    states = Counter(_folded_state(one) for one in skipped if isinstance(one, h.Answered) and one.status is not None)
    statuses = ", ".join(_folded(text, count) for text, count in states.items())
    noun = "event" if len(skipped) == 1 else "events"
    return Row(at_ns, "", f"… {len(skipped)} more {noun}" + (f" ({statuses})" if statuses else ""))


def _folded_state(answer: h.Answered) -> str:
    return f"status: {answer.status.state}" if answer.status else ""


def _folded(text: str, times: int) -> str:
    return text if times == 1 else f"{text}{_TIMES}{times}"


def _unfolded(text: str) -> str:
    return text.rpartition(_TIMES)[0] or text


# ---- choosing


def _choose(events: Sequence[h.Event], evidence: Collection[int], limit: int) -> list[int]:
    proof = sorted(index for index in evidence if 0 <= index < len(events))
    related = {_group(events[index]) for index in proof} - {None}
    polls = _polls(events)

    def rank(index: int) -> tuple[int, int, int]:
        distance = min((abs(index - one) for one in proof), default=len(events) - index)
        return (_weight(index, events[index], evidence, related, polls), distance, index)

    best = sorted(range(len(events)), key=rank)[: max(limit, len(proof))]
    return sorted(index for index in best if index in evidence or not _is_poll(events[index], polls))


def _weight(
    index: int, event: h.Event, evidence: Collection[int], related: Collection[object], polls: Collection[int]
) -> int:
    if index in evidence:
        return 0
    if _is_poll(event, polls):
        return 9
    if isinstance(event, h.Fired | h.Died | h.Paused | h.Resumed):
        return 1
    if _group(event) in related:
        return 2
    return 3 if isinstance(event, h.Started | h.Applied) else 4


def _group(event: h.Event) -> tuple[str, int] | None:
    """What joins events of one exchange: the call at a service or the ask of the adapter."""
    match event:
        case h.Received(call=call) | h.Applied(call=call) | h.Replied(call=call):
            return ("call", call)
        case h.Asked(ask=ask) | h.Answered(ask=ask):
            return ("ask", ask)
    return None


def _polls(events: Sequence[h.Event]) -> AbstractSet[int]:
    return {event.ask for event in events if isinstance(event, h.Asked) and event.verb == "status"}


def _is_poll(event: h.Event, polls: Collection[int]) -> bool:
    return isinstance(event, h.Asked | h.Answered) and event.ask in polls


# ---- telling


def _names(
    events: Sequence[h.Event],
) -> tuple[Mapping[int, str], Mapping[int, h.Received], Mapping[int, h.Asked]]:
    units = {event.incarnation: event.unit for event in events if isinstance(event, h.Started)}
    calls = {event.call: event for event in events if isinstance(event, h.Received)}
    asks = {event.ask: event for event in events if isinstance(event, h.Asked)}
    return units, calls, asks


def _tell(
    event: h.Event, units: Mapping[int, str], calls: Mapping[int, h.Received], asks: Mapping[int, h.Asked]
) -> tuple[str, str]:
    """The lane and the words of one event."""
    match event:
        case h.Received():
            return event.service, _received(event, units)
        case h.Applied():
            call = calls.get(event.call)
            return _service(call), f"{_op(call)} applied, effect {event.effect}, nonce {event.nonce[:6]}"
        case h.Replied():
            call = calls.get(event.call)
            return _service(call), _replied(event, call)
        case h.Started():
            return _unit(event.incarnation, units), "started"
        case h.Died():
            return _unit(event.incarnation, units), {"power": "lost power"}.get(event.cause, event.cause)
        case h.Paused():
            return _unit(event.incarnation, units), "paused"
        case h.Resumed():
            return _unit(event.incarnation, units), "continued"
        case h.Asked():
            return KIT, _asked(event)
        case h.Answered():
            return KIT, _answered(event, asks.get(event.ask))
        case h.Stored():
            return "store", f"{event.location} {event.state}"
        case h.Closed():
            return KIT, _CLOSED[event.reason]
        case _:
            return KIT, _kit(event)


def _lag(events: Sequence[h.Event], index: int) -> str:
    """How long after the signal a killed process was seen to be gone, in words; empty for no time, and for other events.

    What the table shows in between had been sent before the signal, or in the moment that it took to arrive.
    """
    event = events[index]
    if not isinstance(event, h.Died) or event.cause != "killed":
        return ""
    last = next((one for one in reversed(events[:index]) if isinstance(one, h.Fired | h.Died)), None)
    if not isinstance(last, h.Fired) or actions_of(last.label)[:1] != ("kill",):
        return ""
    ms = (event.at_ns - last.at_ns) // 1_000_000
    return f", seen to be gone {ms} ms after the signal" if ms else ""


_CLOSED = {
    "settled": "settled",
    "slow": "settled, slowly",
    "bound": "never settled",
    "stopped": "the target stopped over what was damaged",
}


def _kit(event: h.Authority | h.Scanned | h.Fetched | h.Down | h.Fired | h.Quiet | h.Stalled) -> str:
    """What the kit did or found out by itself."""
    match event:
        case h.Authority():
            return f"{event.actor} {'may' if event.granted else 'may not'} decide"
        case h.Scanned():
            found = f"found {', '.join(event.found)}" if event.found else "nothing found"
            return f"searched {', '.join(event.places)} for secrets: {found}"
        case h.Fetched():
            content = f"{event.size} bytes, digest {_head(event.digest)}" if event.found else "not there"
            return f"fetched {event.name}@{event.version}: {content}"
        case h.Down():
            return f"{event.unit} stays down for {event.ns / 1_000_000:g} ms"
        case h.Fired():
            return f"fault: {event.label}"
        case h.Quiet():
            return "no more faults"
        case h.Stalled():
            return f"this machine stood still for {event.ns // 1_000_000} ms"


def _unit(incarnation: int, units: Mapping[int, str]) -> str:
    return f"{units.get(incarnation, 'worker')} {incarnation}"


def _service(call: h.Received | None) -> str:
    return call.service if call else "service"


def _op(call: h.Received | None) -> str:
    return call.op if call else "?"


def _received(event: h.Received, units: Mapping[int, str]) -> str:
    key = f", key {_head(event.key)}" if event.key else ""
    verb = "looked up" if event.lookup else "received"
    facts = {"part": event.part, "token": event.token, "subject": event.subject}
    more = "".join(f", {name} {value}" for name, value in facts.items() if value is not None)
    return f"{event.op} {verb} from {_unit(event.incarnation, units)}{key}{more}"


def _head(key: str) -> str:
    return key if len(key) <= _KEY_MAX else f"{key[:_KEY_MAX]}…"


def _replied(event: h.Replied, call: h.Received | None) -> str:
    answer = f"{event.status} {event.kind}" + (f", found {event.outcome}" if event.outcome else "")
    if event.delivery == "sent":
        return f"{_op(call)} replied {answer}"
    return f"{_op(call)} reply {event.delivery} ({answer})"


def _asked(event: h.Asked) -> str:
    words = ("asks", event.verb, event.name, event.decision, event.operation, event.actor and f"as {event.actor}")
    return " ".join(word for word in words if word)


def _answered(event: h.Answered, ask: h.Asked | None) -> str:
    verb = ask.verb if ask else "?"
    if event.status is not None:
        return f"{verb}: {_status(event.status)}"
    detail = f": {event.detail}" if event.detail and event.outcome != "ok" else ""
    return f"{verb} answered {event.outcome}{detail[:60]}"


def _status(status: h.Status) -> str:
    words = status.state + (f" on {status.on}" if status.on else "")
    if status.result:
        words += " " + ", ".join(f"{op}={nonce[:6]}" for op, nonce in status.result.items())
    why = status.error or status.reason
    return words + (f": {why[:60]}" if why else "")
