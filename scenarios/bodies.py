"""What a harness says of itself beside its status, as typed values: its journal, its events, its artifacts.

Read from the `body` of an `Answered`, leniently: what is missing or of another shape gets its field's default, and rows that
are no objects are left out, as no judge may stumble over what a harness says.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, TypeVar

import attrs

T = TypeVar("T")
_Body = Mapping[str, Any] | None


def _field(default: Any, kind: type, name: str = "") -> Any:
    return attrs.field(default=default, metadata={"kind": kind, "name": name})


def _text(name: str = "") -> Any:
    return _field("", str, name)


def _number() -> Any:
    return _field(0, int)


def _maybe(kind: type) -> Any:
    return _field(None, kind)


@attrs.frozen
class Transition:
    """One transition of one operation."""

    sequence: int = _number()
    operation: str = _text()
    from_state: str = _text("from")
    to_state: str = _text("to")
    move: str = _text()
    reason: str | None = _maybe(str)
    generation: int | None = _maybe(int)


@attrs.frozen
class Invocation:
    """One try at one operation: `action` (call, lookup, …), the key and digest it was sent with, the receiver's own id of it
    (`external`), and what the worker reported, if it did.
    """

    generation: int = _number()
    operation: str = _text()
    action: str = _text()
    key: str | None = _maybe(str)
    digest: str | None = _maybe(str)
    execution: str | None = _maybe(str)
    attempt: str | None = _maybe(str)
    external: str | None = _maybe(str)
    report: str | None = _maybe(str)


@attrs.frozen
class Rejection:
    """A report that was refused, kept for diagnosis."""

    generation: int = _number()
    operation: str = _text()
    report: str = _text()
    nonce: str | None = _maybe(str)


@attrs.frozen
class AuditEntry:
    """Who did what to what, by which authority, and when."""

    sequence: int = _number()
    actor: str = _text()
    authority: str = _text()
    action: str = _text()
    target: str = _text()
    at_ns: int = _number()
    detail: str = _text()


@attrs.frozen
class Verdict:
    """What one invocation of a check was about, who made it, and what it found; `outcome` is empty until then."""

    operation: str = _text()
    generation: int | None = _maybe(int)
    checker: str = _text()
    subject: str = _text()
    version: int | None = _maybe(int)
    digest: str = _text()
    outcome: str = _text()


@attrs.frozen
class HistoryEntry:
    """One thing that the code of a run has asked for, in its place; a history that was cut begins a new segment."""

    number: int = _number()
    segment: int = _number()
    branch: str = _text()
    sequence: int = _number()
    kind: str = _text()
    operation: str = _text()
    digest: str = _text()
    attempt: str | None = _maybe(str)


@attrs.frozen
class Journal:
    """All that the verb `journal` tells; `tells` names the lists that were there, empty ones too."""

    transitions: tuple[Transition, ...] = ()
    invocations: tuple[Invocation, ...] = ()
    rejected: tuple[Rejection, ...] = ()
    audit: tuple[AuditEntry, ...] = ()
    deliveries: tuple[Mapping[str, Any], ...] = ()
    tells: frozenset[str] = attrs.field(factory=frozenset, eq=False)
    verdicts: tuple[Verdict, ...] = ()
    history: tuple[HistoryEntry, ...] = ()


@attrs.frozen
class EventEntry:
    """One event of a run's stream."""

    cursor: int = _number()
    kind: str = _text()
    operation: str | None = _maybe(str)
    version: int | None = _maybe(int)


@attrs.frozen
class EventPage:
    """The events after a cursor, the cursor to go on from, and what came by the control channel beside them."""

    events: tuple[EventEntry, ...] = ()
    next: int | None = None
    control: tuple[Mapping[str, Any], ...] = ()


@attrs.frozen
class ArtifactEntry:
    """One version of one artifact as the harness lists it, or an upload that was never accepted, which has no version.

    `state` is accepted, superseded (by a newer version), partial (under way, or not cleared away yet), or abandoned (what may
    lie at the location could not be cleared away).
    """

    name: str = _text()
    version: int | None = _maybe(int)
    digest: str = _text()
    size: int = _number()
    operation: str = _text()
    location: str = _text()
    state: str = _text()


def journal_of(body: _Body) -> Journal:
    return Journal(
        _rows(Transition, body, "transitions"),
        _rows(Invocation, body, "invocations"),
        _rows(Rejection, body, "rejected"),
        _rows(AuditEntry, body, "audit"),
        _objects(body, "deliveries"),
        frozenset(name for name, rows in (body or {}).items() if isinstance(rows, list | tuple)),
        _rows(Verdict, body, "verdicts"),
        _rows(HistoryEntry, body, "history"),
    )


def events_of(body: _Body) -> EventPage:
    cursor = (body or {}).get("next")
    return EventPage(
        _rows(EventEntry, body, "events"), cursor if isinstance(cursor, int) else None, _objects(body, "control")
    )


def artifacts_of(body: _Body) -> tuple[ArtifactEntry, ...]:
    return _rows(ArtifactEntry, body, "artifacts")


def _objects(body: _Body, name: str) -> tuple[Mapping[str, Any], ...]:
    rows = (body or {}).get(name)
    return tuple(row for row in rows if isinstance(row, dict | Mapping)) if isinstance(rows, list | tuple) else ()


def _rows(cls: type[T], body: _Body, name: str) -> tuple[T, ...]:
    return tuple(_row(cls, row) for row in _objects(body, name))


def _row(cls: type[T], row: Mapping[str, Any]) -> T:
    values: dict[str, Any] = {}
    for field, name, kind in _columns(cls):  # type: ignore[arg-type]
        value = row.get(name)
        if type(value) is kind or (value is not None and isinstance(value, kind) and not isinstance(value, bool)):
            values[field] = value
    return cls(**values)


@functools.cache
def _columns(cls: type) -> tuple[tuple[str, str, Any], ...]:
    """Of each field its name, its name in a row, and what it may be."""
    fields = attrs.fields(cls)
    return tuple((field.name, field.metadata["name"] or field.name, field.metadata["kind"]) for field in fields)
