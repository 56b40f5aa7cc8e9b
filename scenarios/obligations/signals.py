"""SIG-1 2: an acknowledged signal is kept until it is used, and is used once."""

from __future__ import annotations

from collections.abc import Iterator

from scenarios.history import History
from scenarios.index import Facts, look
from scenarios.lineage import Use, uses
from scenarios.obligations.registry import blame, obligation
from scenarios.observed import Ask, Request, Signal
from scenarios.outlived import went_on
from scenarios.plan import Wait
from scenarios.verdict import Finding, Violation

#: Dispositions of signals that no wait is going to take.
SET_ASIDE = frozenset({"late", "unmatched", "refused"})


def taken(facts: Facts, name: str) -> list[Use]:
    """Every use of an answer of a wait for `name`: which signals those waits ended with, as far as it can be seen."""
    waits = {wait.id for wait in _waits(facts, name)}
    return [use for use in uses(facts) if use.op in waits]


def _waits(facts: Facts, name: str) -> list[Wait]:
    return [wait for wait in facts.history.plan.waits() if wait.signal == name]


def was_early(facts: Facts, ask: Ask, name: str) -> bool:
    """Was this ask certainly answered before any wait for `name` can have begun?"""
    waits = _waits(facts, name)
    return (
        ask.answered_at is not None
        and bool(waits)
        and all(any(facts.missing(wait.id, ask.answered_at)) for wait in waits)
    )


def deciding_ask(signal: Signal) -> Ask:
    """The ask that settled what the kit knows of a signal: the first acknowledged, else the last."""
    return next((ask for ask in signal.asks if ask.outcome == "ok"), signal.asks[-1])


def lost(facts: Facts) -> Iterator[tuple[Signal, ...]]:
    """Per name, acknowledged signals of which at least one is gone.

    The run was still waiting for that name at the very end, though as many signals were acknowledged as it can have come
    to waits for it.
    """
    last = facts.last_seen()
    if facts.closed_as() != "bound" or facts.quiet is None or last is None or last.status.state != "waiting":
        return
    names = list(dict.fromkeys(wait.signal for wait in facts.history.plan.waits()))
    for name in names:
        if last.status.on != name and not (last.status.on is None and len(names) == 1):
            continue
        named = [one for one in facts.signals if one.name == name and one.disposition not in SET_ASIDE]
        kept = [one for one in named if one.ok_at is not None and one.ok_at < last.asked]
        used = {use.nonce for use in taken(facts, name)}
        suspects = tuple(one for one in kept if one.nonce not in used)
        reached = [wait for wait in _waits(facts, name) if facts.may_have_begun(wait.id)]
        if suspects and reached and len(kept) >= len(reached):
            yield suspects


def loss(facts: Facts, suspects: tuple[Signal, ...], what: str) -> Violation:
    """The violation that says so."""
    last = facts.last_seen()
    names = ", ".join(repr(one.id) for one in suspects)
    sentence = f"Signal {names} ({suspects[0].name}) {what}, but the run was still waiting for it at the end."
    oks = (one.ok_at for one in suspects if one.ok_at is not None)
    end = [at for at in (last.answered if last else None, facts.closed) if at is not None]
    return blame("amnesia", sentence, (*oks, *end))


@obligation(
    "SIG-1",
    kind="safety",
    profile="Control",
    promise="A signal that was acknowledged is not lost, whatever crashes afterwards.",
    tested_by="signal acknowledged while its wait is on, then kill",
    anomaly="amnesia",
    minimum=2,
    causes=(
        "the signal is acknowledged before it is stored",
        "the signal is handed to a waiter in memory and counts as delivered",
        "recovery waits anew without looking at what has arrived",
    ),
    learnt_from=("F29", "F34", "F35", "F41"),
)
def acknowledged_signal_is_kept(history: History) -> Finding:
    facts = look(history)
    tested = [
        signal
        for signal in facts.signals
        if signal.ok_at is not None
        and any(death > signal.ok_at and went_on(facts, death) for death in facts.deaths)
        and not was_early(facts, deciding_ask(signal), signal.name)
    ]
    gone = [
        loss(facts, suspects, "was acknowledged")
        for suspects in lost(facts)
        if not all(was_early(facts, deciding_ask(one), one.name) for one in suspects)
    ]
    return Finding(len(tested), (*gone, *_displaced(facts)))


def _displaced(facts: Facts) -> Iterator[Violation]:
    """A wait that was on when a signal was acknowledged, and ended with one sent only later."""
    for signal in facts.signals:
        used = taken(facts, signal.name)
        ended = {use.op for use in used}
        if signal.ok_at is None or signal.disposition in SET_ASIDE or any(use.nonce == signal.nonce for use in used):
            continue
        if not _was_awaited(facts, signal):
            continue
        newer = {one.nonce for one in facts.signals if one.name == signal.name and one.asked_at > signal.ok_at}
        other = next((use for use in used if use.nonce in newer), None)
        if other is not None and len(ended) == len(_waits(facts, signal.name)):
            sentence = (
                f"Signal {signal.id!r} ({signal.name}) was acknowledged while {other.op!r} waited, but the wait ended with a "
                "signal that was sent only later."
            )
            yield blame("amnesia", sentence, (signal.ok_at, other.at), other.op)


def _was_awaited(facts: Facts, signal: Signal) -> bool:
    """Did a status show a wait for this signal before it was sent, with no earlier signal still unused?"""
    earlier = [one for one in facts.signals if one.name == signal.name and one.asked_at < signal.asked_at]
    used = taken(facts, signal.name)
    return any(
        seen.answered < signal.asked_at
        and (seen.status.state, seen.status.on) == ("waiting", signal.name)
        and all(any(use.nonce == one.nonce and use.at < seen.asked for use in used) for one in earlier)
        for seen in facts.statuses
    )


@obligation(
    "SIG-2",
    kind="safety",
    profile="Control",
    promise="One signal id takes effect once: it releases at most one wait, however often it is sent.",
    tested_by="signal repeated with the same id, in plans with several waits for one name",
    anomaly="duplicate effect",
    minimum=1,
    causes=(
        "signals are stored by name without their id, so that a repeat is one more signal",
        "a delivered signal is not marked in the same transaction that ends the wait",
        "waking one waiter wakes all of that name",
    ),
    learnt_from=("F16", "F21", "F37"),
)
def one_signal_releases_one_wait(history: History) -> Finding:
    facts = look(history)
    shared = [signal for signal in facts.signals if len(_waits(facts, signal.name)) > 1]
    tested = sum(len(signal.asks) - 1 for signal in shared)
    return Finding(tested, (*used_twice(facts, shared), *_one_too_few(facts)))


def used_twice(facts: Facts, signals: list[Signal]) -> Iterator[Violation]:
    """Signals that two waits ended with."""
    for signal in signals:
        took = [use for use in taken(facts, signal.name) if use.nonce == signal.nonce]
        other = next((use for use in took if use.op != took[0].op), None)
        if other is not None:
            sentence = f"Signal {signal.id!r} ({signal.name}) released both {took[0].op!r} and {other.op!r}."
            yield blame("duplicate effect", sentence, (signal.asked_at, took[0].at, other.at), other.op)


def _one_too_few(facts: Facts) -> Iterator[Violation]:
    """Work after more waits than signals had been sent: one of them released two, though no status shows which."""
    for op in facts.calls:
        request = next(iter(facts.dispatches(op)), None)
        waits = [wait for wait in facts.history.plan.waits() if wait.timeout_ns is None]
        names = [wait.signal for wait in waits if wait.id in facts.ancestors[op]]
        for name in dict.fromkeys(names):
            if request is not None and 0 < (sent := _sent_before(facts, name, request)) < names.count(name):
                sentence = (
                    f"{op!r} was dispatched after {names.count(name)} waits for {name!r}, but only {sent} such "
                    f"{'signal' if sent == 1 else 'signals'} had been sent."
                )
                yield blame("duplicate effect", sentence, (request.at,), op)


def _sent_before(facts: Facts, name: str, request: Request) -> int:
    return sum(signal.name == name and signal.asked_at < request.at for signal in facts.signals)
