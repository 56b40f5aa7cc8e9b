"""What became of artifacts: as the store service saw it, as the harness lists them, and what checkers said of them.

Derived from one history for the judges of artifacts and completion checks; nothing here blames anybody. An entry is
*published* once it was accepted, also when a newer version supersedes it.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping

import attrs

from scenarios.bodies import ArtifactEntry
from scenarios.history import TERMINAL, Fetched, Stored
from scenarios.index import Facts
from scenarios.joining import of_kind
from scenarios.observed import Request, Said, Seen
from scenarios.plan import Artifact, Check, content

#: States of entries that were accepted once.
PUBLISHED = frozenset({"accepted", "superseded"})
Listing = Said[tuple[ArtifactEntry, ...]]


@attrs.frozen
class Place:
    """A location of the store with everything that became of it, in order; `op`: whose it is, where that is certain."""

    location: str
    op: str | None
    facts: tuple[tuple[int, str], ...]

    def first(self, state: str) -> int | None:
        """Index of the first event that left it so."""
        return next((at for at, one in self.facts if one == state), None)


# --- of the plan ------------------------------------------------------------------------------------------------------


def artifacts_of_run(facts: Facts) -> Mapping[str, Artifact]:
    """The artifacts that the run itself publishes, by id: those of its children are listed with them."""
    inner = facts.history.plan.operations_of_children()
    return {one.id: one for one in facts.history.plan.artifacts() if one.id not in inner}


def checks_of_run(facts: Facts) -> tuple[tuple[Check, Artifact], ...]:
    """The run's own required checks, each with the artifact it is about."""
    mine = artifacts_of_run(facts)
    return tuple((one, mine[one.of]) for one in facts.history.plan.checks() if one.required and one.of in mine)


def digest_of(facts: Facts, artifact: Artifact) -> str:
    """SHA-256 of what an artifact of the run publishes."""
    return hashlib.sha256(content(facts.history.run, artifact.id, artifact.size)).hexdigest()


# --- as the store saw it ----------------------------------------------------------------------------------------------


def puts(facts: Facts, op: str) -> tuple[Request, ...]:
    """The parts that were sent of an upload, in order."""
    return tuple(one for one in facts.dispatches(op) if one.event.part is not None)


def commit_of(facts: Facts, op: str) -> Request | None:
    """The request that committed what an artifact publishes."""
    return next((one for one in facts.dispatches(op) if one.event.part is None and one.applied_at is not None), None)


def committed_at(facts: Facts, op: str) -> int:
    """Event at which the content of an artifact became whole in the store; the number of all events when it never did."""
    commit = commit_of(facts, op)
    return len(facts.history.events) if commit is None or commit.applied_at is None else commit.applied_at


def was_cut_off(facts: Facts, op: str) -> bool:
    """Was something stored when its worker was stopped, or its answer lost, and did it become whole?"""
    sent, commit = puts(facts, op), commit_of(facts, op)
    if not sent or commit is None:
        return False
    known = facts.accepted_at.get(op, len(facts.history.events))
    return facts.uncertain(commit) or facts.halted(sent[0].at, min(known, commit.at))


def removals(facts: Facts) -> tuple[Request, ...]:
    """Requests to the store that ask for staged parts to be removed: neither parts nor commits, refused ones included."""
    return tuple(
        one
        for one in facts.others
        if one.event.service == "store"
        and not one.event.lookup
        and one.event.part is None
        and one.applied_at is None
        and (one.reply is None or (one.reply.nonce is None and one.reply.kind in {"executed", "error"}))
    )


def places(facts: Facts) -> tuple[Place, ...]:
    """Every location that the store heard of, in order of its first use."""
    found: dict[str, list[tuple[int, str]]] = {}
    owners: dict[str, str] = {}
    for index, event in of_kind(facts.history, Stored):
        found.setdefault(event.location, []).append((index, event.state))
        under_way = _under_way(facts, index)
        if event.location not in owners and len(under_way) == 1:
            owners[event.location] = next(iter(under_way))
    return tuple(Place(location, owners.get(location), tuple(states)) for location, states in found.items())


def _under_way(facts: Facts, index: int) -> frozenset[str]:
    """The operations whose requests the store had in hand at event `index`."""
    end = len(facts.history.events)
    return frozenset(
        one.op
        for one in facts.others
        if one.event.service == "store" and not one.event.lookup and one.at < index < (one.replied_at or end)
    )


def fetches(facts: Facts) -> tuple[tuple[int, Fetched], ...]:
    """What the kit fetched from the store at the end, and when."""
    return tuple(of_kind(facts.history, Fetched))


# --- as the harness tells ---------------------------------------------------------------------------------------------


def published(listing: Listing) -> tuple[ArtifactEntry, ...]:
    return tuple(one for one in listing.body if one.state in PUBLISHED and one.version is not None)


def end_of(facts: Facts) -> Seen | None:
    """The first of the statuses that show the run ended and are followed by no other; None when the last does not."""
    last: Seen | None = None
    for seen in reversed(facts.statuses):
        if seen.status.state not in TERMINAL:
            break
        last = seen
    return last


def final_listing(facts: Facts) -> Listing | None:
    """The last listing of a run that had ended when it was asked for."""
    end, last = end_of(facts), facts.listings[-1] if facts.listings else None
    return last if end is not None and last is not None and last.asked > end.answered else None


def current(listing: Listing, name: str) -> ArtifactEntry | None:
    """The newest version of a name."""
    versions = [one for one in published(listing) if one.name == name]
    return max(versions, key=lambda one: one.version or 0, default=None)


# --- what checkers said -----------------------------------------------------------------------------------------------


@attrs.frozen(slots=False)  # see `index.Facts`
class Verdict:
    """What a checker said to one request, and what it was asked about: `name@version#digest`."""

    request: Request
    outcome: str
    subject: str | None
    at: int  # when it was said

    @functools.cached_property
    def parts(self) -> tuple[str, int | None, str]:
        """Name, version and digest of the subject."""
        return parse_subject(self.subject)


def verdicts(facts: Facts, check: str) -> tuple[Verdict, ...]:
    """The verdicts that were handed to the network, in order."""
    found = []
    for one in facts.dispatches(check):
        reply = one.reply
        if reply is not None and reply.outcome is not None and reply.delivery == "sent" and one.replied_at is not None:
            found.append(Verdict(one, reply.outcome, one.event.subject, one.replied_at))
    return tuple(sorted(found, key=lambda verdict: verdict.at))


def parse_subject(text: str | None) -> tuple[str, int | None, str]:
    """Name, version and digest in `name@version#digest`; what cannot be read is empty or None."""
    rest, _, digest = (text or "").rpartition("#")
    name, _, version = rest.rpartition("@")
    return name, int(version) if version.isdecimal() else None, digest
