"""What was observed, joined: a request with its reply, a question with its answer, a status, a signal with all its sendings.

Values only, each made from a few events of one history; `scenarios.index` collects them. Indexes are places in
`History.events`.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from scenarios.history import ACCEPTED, Answered, Asked, OperationStatus, Received, Replied, Status


@attrs.frozen
class Request:
    """One request at a service with what became of it; `at` is the index of its Received."""

    at: int
    event: Received
    applied_at: int | None = None
    replied_at: int | None = None
    reply: Replied | None = None

    @property
    def op(self) -> str:
        return self.event.op

    @property
    def answer(self) -> str | None:
        """The nonce that was handed to the network for this request, if any: the harness *may* have it."""
        return (
            self.reply.nonce if self.reply and self.reply.delivery == "sent" and _carries_answer(self.reply) else None
        )

    @property
    def refused(self) -> bool:
        """Was a definite refusal sent? (A saved failure is one.)"""
        return self.reply is not None and self.reply.delivery == "sent" and _is_refusal(self.reply)

    @property
    def idle(self) -> bool:
        """Did the service say that this request did nothing: refused, busy with another one, nothing to be found?"""
        reply = self.reply
        return self.refused or (reply is not None and reply.delivery == "sent" and reply.kind in {"busy", "missing"})

    @property
    def unanswered(self) -> bool:
        """Was nothing definite ever sent: no reply, a lost one, or a 5xx?"""
        return self.answer is None and not self.idle

    def settled_before(self, index: int) -> bool:
        """Had an answer or a definite refusal been sent before event `index`?"""
        return (self.answer is not None or self.refused) and self.replied_at is not None and self.replied_at < index


@attrs.frozen
class Ask:
    """One thing the kit asked, with its answer when there was one."""

    at: int
    event: Asked
    answered_at: int | None = None
    answer: Answered | None = None

    @property
    def outcome(self) -> str:
        """`ok`, `error` (definite) or `indefinite`; no answer at all is indefinite."""
        return self.answer.outcome if self.answer else "indefinite"


@attrs.frozen
class Seen:
    """One status that was answered: asked at one event, answered at another, true at an instant in between."""

    asked: int
    answered: int
    status: Status

    def operation(self, op: str) -> OperationStatus | None:
        return next((shown for shown in self.status.operations if shown.id == op), None)

    def accepted(self) -> Mapping[str, str | None]:
        """Leaf id → nonce of everything this status shows as accepted."""
        shown: dict[str, str | None] = {op.id: op.nonce for op in self.status.operations if op.state in ACCEPTED}
        if self.status.state == "done":
            shown.update(self.status.result or {})
        return shown


@attrs.frozen
class Signal:
    """One signal by its command id: every time it was asked, and the payload's nonce."""

    id: str
    name: str
    nonce: str | None
    asks: tuple[Ask, ...]

    @property
    def asked_at(self) -> int:
        return self.asks[0].at

    @property
    def ok_at(self) -> int | None:
        """Index of the first acknowledgement."""
        return next((ask.answered_at for ask in self.asks if ask.outcome == "ok"), None)

    @property
    def refused(self) -> bool:
        """Was every one of its asks answered with a definite error?"""
        return all(ask.outcome == "error" for ask in self.asks)


def _carries_answer(reply: Replied) -> bool:
    return reply.nonce is not None and reply.kind in {"executed", "saved", "found"}


def _is_refusal(reply: Replied) -> bool:
    if reply.kind in {"rejected", "mismatch"}:
        return True
    return reply.kind in {"executed", "saved"} and reply.nonce is None and 400 <= reply.status < 500
