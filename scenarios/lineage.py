"""Lineage: which answer of which operation was used where.

Every answer and every signal carries a fresh nonce, and plans say which later call hands it on. That makes the origin of
each effect checkable without trusting anybody's word. An answer is used where a request carried it, and where a status showed
it as accepted; `uses` lists every use in order of observation. An operation has *forked* when two of its answers were used.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import attrs

from scenarios.history import Applied, Replied
from scenarios.index import Facts
from scenarios.joining import of_kinds
from scenarios.remembered import latest


@attrs.frozen
class Use:
    """One use of one operation's answer: handed on by a request, or shown as accepted by a status."""

    op: str
    nonce: str
    at: int
    by: Literal["request", "status"]
    user: str = ""  # the operation that handed it on

    @property
    def where(self) -> str:
        return f"handed on by {self.user!r}" if self.by == "request" else "shown as accepted"


def uses(facts: Facts, op: str | None = None) -> tuple[Use, ...]:
    """Every use of an answer (of `op`, or of any operation of the plan), in order of observation."""
    return _uses(facts).get(op, ())


@latest
def _uses(facts: Facts) -> Mapping[str | None, tuple[Use, ...]]:
    """The uses of each operation's answers, and under None those of all."""
    known = facts.ancestors
    handed = [
        Use(name, nonce, request.at, "request", request.op)
        for request in facts.sent
        if not request.event.lookup
        for name, nonce in request.carries.items()
    ]
    shown = [
        Use(name, nonce, seen.answered, "status")
        for seen in facts.statuses
        for name, nonce in seen.accepted().items()
        if nonce is not None
    ]
    ordered = sorted((use for use in (*handed, *shown) if use.op in known), key=lambda use: use.at)
    found: dict[str | None, list[Use]] = {None: ordered}
    for use in ordered:
        found.setdefault(use.op, []).append(use)
    return {op: tuple(used) for op, used in found.items()}


def fork(facts: Facts, op: str) -> tuple[Use, Use] | None:
    """The first use of one answer of `op` and the first use of another one; None while only one was ever used.

    What may be taken back may be answered anew, and does not fork by it.
    """
    if facts.is_revocable(op):
        return None
    found = uses(facts, op)
    other = next((use for use in found if use.nonce != found[0].nonce), None)
    return (found[0], other) if other else None


def given(facts: Facts) -> dict[str, dict[str, int]]:
    """Call, artifact or wait → every answer that anybody gave of it, with the first event at which it may have been known.

    What a service made counts as given though its reply was lost: it may have been asked for it again.
    """
    found: dict[str, dict[str, int]] = {}
    by_call = {request.event.call: request.op for request in facts.sent}
    for at, event in of_kinds(facts.history, Applied, Replied):
        if event.call in by_call and event.nonce is not None:
            found.setdefault(by_call[event.call], {}).setdefault(event.nonce, at)
    for notice in facts.notices():
        if notice.about is not None and notice.nonce is not None:
            found.setdefault(notice.about, {}).setdefault(notice.nonce, notice.asked_at)
    for wait in facts.history.plan.waits():
        sent = {one.nonce: one.asked_at for one in facts.signals if one.name == wait.signal and one.nonce is not None}
        found.setdefault(wait.id, {}).update(sent)
    return found
