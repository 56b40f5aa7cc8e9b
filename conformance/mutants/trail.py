"""Mutants of JRN-5 to JRN-7: secrets let out, reasons left out, and a trail that decides."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import attrs

from conformance.mutants import Patch, mutant
from reference_runtime.acceptance import Acceptance
from reference_runtime.branching import Branching
from reference_runtime.intents import Intents
from reference_runtime.ownership import Ownership
from reference_runtime.rpc import LOST
from reference_runtime.tools import Unknown
from reference_runtime.wire import _Wire
from reference_runtime.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable

    import trio

    from reference_runtime.model import Remedy, Report, Ticket
    from reference_runtime.rows import Operation, Rows
    from reference_runtime.wire import Reader, Reply
    from reference_runtime.worker import Outcome


# ---- secrets

#: How many characters somebody masks who thinks that enough.
_MASKED = 8


@mutant("secret-stored-with-answer", "JRN-5", shown_by="courier/undisturbed")
def secret_stored_with_answer(patch: Patch) -> None:
    """A worker reports what it had sent together with the answer, credentials and all, and the store keeps both."""

    async def invoke(self: Worker, ticket: Ticket) -> Outcome:
        outcome = await original(self, ticket)
        if ticket.secret is None or not outcome.answer:
            return outcome
        credentials: Any = getattr(self.tools, "credentials")  # noqa: B009 - of the tools there are, if not of all tools
        sent = {"params": ticket.params, "secret": credentials.value(ticket.secret)}
        return attrs.evolve(outcome, answer={**outcome.answer, "sent": sent})

    original = Worker.invoke
    patch.replace(Worker, "invoke", invoke)


def _tell_of_secret(patch: Patch, said: Callable[[str], str]) -> None:
    """A worker that was given a secret says something of it with the answer."""

    async def invoke(self: Worker, ticket: Ticket) -> Outcome:
        outcome = await original(self, ticket)
        if ticket.secret is None or not outcome.answer:
            return outcome
        credentials: Any = getattr(self.tools, "credentials")  # noqa: B009 - as above
        return attrs.evolve(outcome, answer={**outcome.answer, "sent": said(credentials.value(ticket.secret))})

    original = Worker.invoke
    patch.replace(Worker, "invoke", invoke)


@mutant("header-with-answer", "JRN-5", shown_by="courier/undisturbed")
def header_with_answer(patch: Patch) -> None:
    """The header by which a worker identified itself is kept with the answer: name and secret, in Base64."""
    _tell_of_secret(patch, lambda value: "Basic " + base64.b64encode(f"worker:{value}".encode()).decode())


@mutant("secret-in-digits", "JRN-5", shown_by="courier/undisturbed")
def secret_in_digits(patch: Patch) -> None:
    """What was sent is kept byte by byte, as hexadecimal digits."""
    _tell_of_secret(patch, lambda value: value.encode().hex())


@mutant("secret-half-masked", "JRN-5", shown_by="courier/undisturbed")
def secret_half_masked(patch: Patch) -> None:
    """The last characters of a secret are masked, and all the others are there to be read."""
    _tell_of_secret(patch, lambda value: value[:-_MASKED] + "*" * _MASKED)


def _on_broken_exchange(patch: Patch, raises: type[Exception]) -> None:
    """An exchange that breaks off is told with the whole request in its text."""

    async def exchange(self: _Wire, stream: trio.SocketStream, message: bytes, read: Reader) -> Reply:
        try:
            return await original(self, stream, message, read)
        except (*LOST, ValueError) as error:
            raise raises(f"{error!r} after sending {message.decode()}") from None

    original = _Wire._exchange  # noqa: SLF001 - a mutant goes where it should not
    patch.replace(_Wire, "_exchange", exchange)


@mutant("secret-in-error-text", "JRN-5", shown_by="courier/undisturbed")
def secret_in_error_text(patch: Patch) -> None:
    """The text of a lost answer quotes the request, and becomes a reason that is stored and shown."""
    _on_broken_exchange(patch, Unknown)


@mutant("secret-in-last-words", "JRN-5", shown_by="courier/undisturbed")
def secret_in_last_words(patch: Patch) -> None:
    """A worker breaks down over an answer that breaks off, and its log ends with the request that it had sent."""

    def outcome_of(self: Worker, error: Exception, ticket: Ticket) -> Any:
        if isinstance(error, _BrokenDownError):
            raise error
        return original(self, error, ticket)

    _on_broken_exchange(patch, _BrokenDownError)
    original = Worker.outcome_of
    patch.replace(Worker, "outcome_of", outcome_of)


class _BrokenDownError(Exception):
    """Nobody handles it."""


# ---- reasons


@mutant("repeats-unexplained", "JRN-6", shown_by="detour/undisturbed")
def repeats_unexplained(patch: Patch) -> None:
    """What is sent again, looked up or undone is written down without its reason."""
    patch.replace(Intents, "reason_of_intent", lambda _self, _op: None)


@mutant("skips-unexplained", "JRN-6", shown_by="detour/undisturbed")
def skips_unexplained(patch: Patch) -> None:
    """What is skipped is written down without saying what decided against it."""
    original = Branching.skip
    patch.replace(Branching, "skip", lambda self, op, _reason: original(self, op, ""))


# ---- a trail that decides


def _first_claim(store: Rows, op: Operation) -> str | None:
    """By which authority the trail says that an operation was first claimed."""
    found: str | None = store._value(  # noqa: SLF001 - a mutant goes where it should not
        "SELECT authority FROM audit WHERE task = ? AND action = 'claim' AND target = ? ORDER BY sequence LIMIT 1",
        op.task,
        op.id,
    )
    return found


@mutant("key-from-audit", "JRN-7", shown_by="forgetful/kill@close#1.applied+forget@t+100000000ns(engine)")
def key_from_audit(patch: Patch) -> None:
    """The key of an operation has the lease in it that the audit trail says it was first claimed under."""

    def key_for(self: Ownership, op: Operation) -> str | None:
        key = original(self, op)
        return key if key is None else f"{key}:{_first_claim(self, op)}"

    original = Intents.key_for
    patch.replace(Intents, "key_for", key_for)


@mutant("remedy-from-audit", "JRN-7", shown_by="forgetful/kill@parcel#1.applied+forget@t+100000000ns(engine)")
def remedy_from_audit(patch: Patch) -> None:
    """What the audit trail does not say was ever claimed counts as never sent, and is simply sent."""

    def remedy_for(self: Acceptance, op: Operation, report: Report) -> Remedy:
        return original(self, op, report) if _first_claim(self, op) else "repeat"

    original = Acceptance.remedy_for
    patch.replace(Acceptance, "remedy_for", remedy_for)
