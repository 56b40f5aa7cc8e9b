"""Mutants of EFF-7, EFF-9 and EFF-10: what receivers say is taken for something else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from conformance.mutants import Patch, mutant
from reference_runtime.acceptance import Acceptance
from reference_runtime.control import Control
from reference_runtime.tools import Busy, Rejected
from reference_runtime.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reference_runtime.model import Remedy, Report, Ticket
    from reference_runtime.retries import Limits, Past
    from reference_runtime.rows import Operation

#: A limit that nothing comes to in the time that a run is watched.
ENDLESS = 10**18
_LAST_USE = "SELECT max(started_ns) FROM invocation WHERE attempt = ? AND operation = ? AND action = 'call'"


@mutant("conflict-is-failure", "EFF-7", shown_by="slowpoke/delay@pay#1.received")
def conflict_is_failure(patch: Patch) -> None:
    """A receiver that is still executing a key's first request is taken to have refused it."""

    def outcome_of(self: Worker, error: Exception, ticket: Ticket) -> Report:
        return "failed" if isinstance(error, Busy) else original(self, error, ticket)

    original = Worker.outcome_of
    patch.replace(Worker, "outcome_of", outcome_of)


@mutant("saved-failure-repeated", "EFF-7", shown_by="declined/drop@charge#1.applied")
def saved_failure_repeated(patch: Patch) -> None:
    """A failure that a repeat is told of is taken for one more unclear outcome."""

    def outcome_of(self: Worker, error: Exception, ticket: Ticket) -> Report:
        is_repeat = isinstance(error, Rejected) and ticket.invocation > 1
        return "unknown" if is_repeat else original(self, error, ticket)

    original = Worker.outcome_of
    patch.replace(Worker, "outcome_of", outcome_of)


@mutant("expired-key-repeated", "EFF-7", shown_by="lapse/power@pay#1.applied~40000000000ns")
def expired_key_repeated(patch: Patch) -> None:
    """An unknown outcome is repeated under its key, however old the key is."""

    def limits_of(self: Acceptance, op: Operation) -> Limits:
        return attrs.evolve(original(self, op), key_lifetime_ns=ENDLESS)

    original = Acceptance.limits_of
    patch.replace(Acceptance, "limits_of", limits_of)


@mutant(
    "key-age-from-last-try",
    "EFF-7",
    shown_by="gazette/kill@fee#1.applied~18000000000ns+kill@fee#2.received~18000000000ns",
)
def key_age_from_last_try(patch: Patch) -> None:
    """The age of a key is counted from its last use."""

    def past_of(self: Acceptance, op: Operation, remedy: Remedy) -> Past:
        last_ns = self._value(_LAST_USE, op.attempt, op.id)
        return attrs.evolve(original(self, op, remedy), first_ns=last_ns)

    original = Acceptance.past_of
    patch.replace(Acceptance, "past_of", past_of)


@mutant("notice-settles-all", "EFF-9", shown_by="postcards/notice@end>letter")
def notice_settles_all(patch: Patch) -> None:
    """A receiver's word about one effect settles everything that is unknown in its run."""

    def notice(self: Control, attempt: str, payload: Mapping[str, Any]) -> str:
        disposition = original(self, attempt, payload)
        if disposition == "released":
            for op in self._operations("WHERE o.attempt = ? AND o.state IN ('unknown', 'unresolved')", attempt):
                original(self, attempt, {**payload, "operation": op.id})
        return disposition

    original = Control.notice
    patch.replace(Control, "notice", notice)


@mutant("notice-thrown-away", "EFF-9", shown_by="postcards/notice@end>parcel")
def notice_thrown_away(patch: Patch) -> None:
    """A receiver's word is acknowledged, and nothing is made of it."""
    patch.replace(Control, "notice", lambda _self, _attempt, _payload: "released")


@mutant("search-without-end", "EFF-10", shown_by="archive/undisturbed")
def search_without_end(patch: Patch) -> None:
    """Look-ups that fail are asked again for ever."""

    def limits_of(self: Acceptance, op: Operation) -> Limits:
        return attrs.evolve(original(self, op), lookups=ENDLESS)

    original = Acceptance.limits_of
    patch.replace(Acceptance, "limits_of", limits_of)


@mutant("lookups-count-as-tries", "EFF-10", shown_by="archive/undisturbed")
def lookups_count_as_tries(patch: Patch) -> None:
    """Requests and questions about them are counted by one counter."""

    def past_of(self: Acceptance, op: Operation, remedy: Remedy) -> Past:
        asked = self._value("SELECT total(tries) FROM reconcile WHERE attempt = ? AND operation = ?", op.attempt, op.id)
        past = original(self, op, remedy)
        return attrs.evolve(past, tries=past.tries + int(asked))

    original = Acceptance.past_of
    patch.replace(Acceptance, "past_of", past_of)
