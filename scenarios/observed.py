"""What was observed, joined: a request with its reply, a question with its answer, a status, a command with all its sendings.

Values only, each made from a few events of one history; `scenarios.index` collects them. Indexes are places in
`History.events`.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from typing import Any, Generic, TypeAlias, TypeVar

import attrs

from scenarios.history import ACCEPTED, Answered, Asked, OperationStatus, Received, Replied, Status

Body = TypeVar("Body")
#: Replies that say that the request did nothing: executing already, no room now, nothing to be found, an old token.
IDLE_KINDS = frozenset({"busy", "limited", "missing", "fenced"})


@attrs.frozen(slots=False)  # see `index.Facts`
class Request:
    """One request at a service with what became of it; `at` is the index of its Received.

    `carries`: the answers that it hands on, by the operations of the whole plan. (In the event a child calls its operations as
    its own plan does.)
    """

    at: int
    event: Received
    applied_at: int | None = None
    replied_at: int | None = None
    reply: Replied | None = None
    carries: Mapping[str, str] = attrs.field(factory=dict)

    @functools.cached_property
    def op(self) -> str:
        return self.event.op

    @functools.cached_property
    def answer(self) -> str | None:
        """The nonce that was handed to the network for this request, if any: the harness *may* have it."""
        return (
            self.reply.nonce if self.reply and self.reply.delivery == "sent" and _carries_answer(self.reply) else None
        )

    @functools.cached_property
    def refused(self) -> bool:
        """Was a definite refusal sent? (A saved failure is one.)"""
        return self.reply is not None and self.reply.delivery == "sent" and _is_refusal(self.reply)

    @functools.cached_property
    def idle(self) -> bool:
        """Did the service say that this request did nothing: refused, or one of `IDLE_KINDS`?"""
        reply = self.reply
        return self.refused or (reply is not None and reply.delivery == "sent" and reply.kind in IDLE_KINDS)

    @functools.cached_property
    def unanswered(self) -> bool:
        """Was nothing definite ever sent: no reply, a lost one, or a 5xx?"""
        return self.answer is None and not self.idle and not self.told

    @property
    def told(self) -> bool:
        """Was it answered by what has no nonce: the desk's word, a part that is staged, work that is still under way?"""
        reply = self.reply
        return reply is not None and reply.delivery == "sent" and reply.nonce is None and _is_word(reply)

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

    @property
    def body(self) -> Mapping[str, Any]:
        """What was answered beside a status; empty when nothing was."""
        return (self.answer.body if self.answer else None) or {}

    @property
    def disposition(self) -> str | None:
        """What the harness says became of a signal, a decision or a cancellation."""
        found = self.body.get("disposition")
        return found if isinstance(found, str) else None

    @property
    def payload(self) -> Mapping[str, Any]:
        """The payload that was sent, decoded; empty when there was none."""
        try:
            found = json.loads(self.event.payload or "{}")
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    @property
    def about(self) -> str | None:
        """The operation that is decided, steered, or whose effect is noticed."""
        named = self.event.operation or self.payload.get("operation")
        return named if isinstance(named, str) else None

    @property
    def nonce(self) -> str | None:
        """The nonce that was sent with it."""
        found = self.event.nonce or self.payload.get("nonce")
        return found if isinstance(found, str) else None


@attrs.frozen(slots=False)  # see `index.Facts`
class Seen:
    """One status that was answered: asked at one event, answered at another, true at an instant in between."""

    asked: int
    answered: int
    status: Status

    def operation(self, op: str) -> OperationStatus | None:
        return self._operations.get(op)

    @functools.cached_property
    def _operations(self) -> Mapping[str, OperationStatus]:
        return {
            shown.id: shown for shown in reversed(self.status.operations)
        }  # of two that share an id the first counts

    def accepted(self) -> Mapping[str, str | None]:
        """Leaf id → nonce of everything this status shows as accepted."""
        return self._accepted

    @functools.cached_property
    def _accepted(self) -> Mapping[str, str | None]:
        shown: dict[str, str | None] = {op.id: op.nonce for op in self.status.operations if op.state in ACCEPTED}
        if self.status.state == "done":
            shown.update(self.status.result or {})
        return shown


@attrs.frozen
class Said(Generic[Body]):
    """What a harness said of itself when asked for its journal, events or artifacts; `after`: the cursor asked from."""

    asked: int
    answered: int
    body: Body
    after: int | None = None


@attrs.frozen
class Command:
    """One command by its id, with every time it was asked: a signal, a decision, a cancellation, a pause.

    `name` is a signal's (`steer` for a direction, `notice` for a receiver's word), `nonce` that of its payload.
    """

    verb: str
    id: str
    name: str
    nonce: str | None
    asks: tuple[Ask, ...]

    @property
    def about(self) -> str | None:
        """The operation that is decided, steered, or whose effect is noticed."""
        return self.asks[0].about

    @property
    def decision(self) -> str | None:
        """`approve` or `deny`."""
        return self.asks[0].event.decision

    @property
    def digest(self) -> str | None:
        """What a decision is bound to."""
        return self.asks[0].event.digest

    @property
    def actor(self) -> str | None:
        return self.asks[0].event.actor

    @property
    def payload(self) -> Mapping[str, Any]:
        return self.asks[0].payload

    @property
    def disposition(self) -> str | None:
        """What the harness said first that became of it."""
        return next((ask.disposition for ask in self.asks if ask.disposition is not None), None)

    @property
    def dispositions(self) -> tuple[str, ...]:
        """What it said, each time it was asked."""
        return tuple(ask.disposition for ask in self.asks if ask.disposition is not None)

    @property
    def asked_at(self) -> int:
        return self.asks[0].at

    @property
    def ok_at(self) -> int | None:
        """Index of the first acknowledgement."""
        return next((ask.answered_at for ask in self.asks if ask.outcome == "ok"), None)

    def precedes(self, later: Command) -> bool:
        """Was it acknowledged before `later` was asked for the first time?

        A command is taken at some instant between its first asking and its first acknowledgement. One that had to be asked
        again can have been taken after another that was given later; which of the two came first nobody can say then.
        """
        return self.ok_at is not None and self.ok_at < later.asked_at

    @property
    def refused(self) -> bool:
        """Was every one of its asks answered with a definite error?"""
        return all(ask.outcome == "error" for ask in self.asks)


Signal: TypeAlias = Command


def _carries_answer(reply: Replied) -> bool:
    return reply.nonce is not None and reply.kind in {"executed", "saved", "found"}


def _is_word(reply: Replied) -> bool:
    return reply.kind in {"executed", "saved", "found"} and reply.status < 400


def _is_refusal(reply: Replied) -> bool:
    if reply.kind in {"rejected", "mismatch"}:
        return True
    return reply.kind in {"executed", "saved"} and reply.nonce is None and 400 <= reply.status < 500
