"""ART-1 to ART-6: what is published is whole, stays, and leaves nothing behind."""

from __future__ import annotations

from collections.abc import Iterator

from scenarios.bodies import ArtifactEntry
from scenarios.history import ACCEPTED, History
from scenarios.index import Facts, look
from scenarios.obligations.registry import blame, obligation
from scenarios.plan import Artifact
from scenarios.publishing import (
    Listing,
    Place,
    artifacts_of_run,
    committed_at,
    end_of,
    fetches,
    final_listing,
    places,
    published,
    puts,
    removals,
    was_cut_off,
)
from scenarios.verdict import Finding, Violation

#: States of an operation that has ended and will be accepted no more.
_OVER = frozenset({"failed", "unresolved", "skipped"})
#: How often somebody has to have tried to clear up before it may be left: what is lost once can be asked again.
_SWEEPS = 2


@obligation(
    "ART-1",
    kind="safety",
    profile="Artifacts",
    promise="Whatever is listed as accepted can be fetched from the store, byte for byte as its digest says, with its worker "
    "and the worker's disk gone.",
    tested_by="a worker killed and its folder emptied, after each upload; everything listed is fetched at the end",
    anomaly=("lost effect", "torn view"),
    minimum=2,
    causes=(
        "the entry names a file of the worker's own",
        "the upload goes on in the background when its entry is made",
        "the digest is computed from what was meant, and never compared with what is stored",
    ),
    learnt_from=(),
)
def accepted_content_can_be_fetched(history: History) -> Finding:
    facts = look(history)
    wiped = [at for at, action, _ in facts.fired if action == "wipe"]
    shown: dict[tuple[str, int | None], tuple[int, ArtifactEntry]] = {}
    for listing in facts.listings:
        for entry in published(listing):
            shown.setdefault((entry.name, entry.version), (listing.answered, entry))
    whole = {place.location: at for place in places(facts) if (at := place.first("committed")) is not None}
    exercised = 0
    found: list[Violation] = []
    for at, got in fetches(facts):
        if (got.name, got.version) not in shown:
            continue
        listed, entry = shown[got.name, got.version]
        exercised += any(min(listed, whole.get(entry.location, listed)) < wipe for wipe in wiped)
        what = f"{got.name!r}, version {got.version},"
        if not got.found:
            sentence = f"{what} is listed as {entry.state}, and there is nothing at {entry.location!r}."
            found.append(blame("lost effect", sentence, (listed, at), entry.operation))
        elif (got.digest, got.size) != (entry.digest, entry.size):
            sentence = f"{what} is listed with {entry.size} bytes of {entry.digest:.12}…; {got.size} of {got.digest:.12}… came."
            found.append(blame("torn view", sentence, (listed, at), entry.operation))
    return Finding(exercised, tuple(found))


@obligation(
    "ART-2",
    kind="safety",
    profile="Artifacts",
    promise="An upload that was cut short is never listed, shown or built upon as if it were accepted.",
    tested_by="workers killed between the parts of an upload, and before its commit",
    anomaly="false certainty",
    minimum=2,
    causes=(
        "a step counts as done because its output is there",
        "the entry is made before the upload, and not taken back",
        "a repeat that finds parts takes them for the whole",
    ),
    learnt_from=("F23", "F24"),
)
def partial_uploads_are_not_accepted(history: History) -> Finding:
    facts = look(history)
    exercised = 0
    found: list[Violation] = []
    for op in artifacts_of_run(facts):
        exercised += _was_seen_cut(facts, op)
        found += list(_taken_for_whole(facts, op))[:1]
    return Finding(exercised, tuple(found))


def _was_seen_cut(facts: Facts, op: str) -> bool:
    """Was an upload stopped half-way, and looked at before it was whole?"""
    sent, whole = puts(facts, op), committed_at(facts, op)
    if not sent or sent[0].at > whole or not facts.halted(sent[0].at, whole):
        return False
    cut = next((at for at in facts.halts if at > sent[0].at), sent[0].at)
    looks = [(seen.asked, seen.answered) for seen in facts.statuses] + [
        (one.asked, one.answered) for one in facts.listings
    ]
    return any(cut < asked and answered < whole for asked, answered in looks)


def _taken_for_whole(facts: Facts, op: str) -> Iterator[Violation]:
    """What was answered or sent before the content was whole, as if it were."""
    whole = committed_at(facts, op)
    for listing in facts.listings:
        if listing.answered < whole and any(one.operation == op for one in published(listing)):
            sentence = f"The upload of {op!r} had not been committed, and it is listed as accepted."
            yield blame("false certainty", sentence, (listing.asked, listing.answered), op)
    for seen in facts.statuses:
        shown = seen.operation(op)
        if seen.answered < whole and shown is not None and shown.state in ACCEPTED:
            sentence = f"The upload of {op!r} had not been committed, and it is shown as {shown.state}."
            yield blame("false certainty", sentence, (seen.asked, seen.answered), op)
    for request in facts.sent:
        if request.at < whole and op in facts.ancestors[request.op]:
            sentence = (
                f"The upload of {op!r} had not been committed, and {request.op!r}, which comes after it, was sent."
            )
            yield blame("false certainty", sentence, (request.at,), op)


@obligation(
    "ART-3",
    kind="liveness",
    profile="Artifacts",
    promise="Once a run is over, everything that it stored is either registered or removed again.",
    tested_by="workers killed between upload and acceptance, of runs that go on and of runs that were cancelled",
    anomaly="leak",
    minimum=3,
    causes=(
        "every try uploads to a new place, and forgets the old one",
        "what was committed is lost sight of with the answer to the commit",
        "a run that is cancelled leaves what is half uploaded where it is",
        "a stop ends whatever is to be tried again, and what clears up is among that",
    ),
    learnt_from=(),
)
def stored_content_is_registered_or_removed(history: History) -> Finding:
    facts = look(history)
    all_places, end = places(facts), end_of(facts)
    if not all_places or facts.quiet is None or end is None or end.status.state == "blocked":
        return Finding()
    cleared = sum(place.first("removed") is not None for place in all_places)
    is_listed = final_listing(facts) is not None
    exercised = cleared + (sum(was_cut_off(facts, op) for op in artifacts_of_run(facts)) if is_listed else 0)
    found = [violation for place in all_places if (violation := _left_behind(facts, place)) is not None]
    return Finding(
        exercised + len(found), tuple(found), slow=not found and facts.closed_as() == "slow" and exercised > 0
    )


def _left_behind(facts: Facts, place: Place) -> Violation | None:
    """What lies at a location of a run that has ended, and belongs to nobody. A blocked run may still own it, and what came
    after the end was not there to be cleared away.
    """
    end = end_of(facts)
    if end is None or end.status.state == "blocked" or facts.closed is None:
        return None
    at, state = place.facts[-1]
    whole = place.first("committed")
    if max(at, whole or 0) > end.asked:
        return None
    evidence = (at, end.asked, end.answered)
    if whole is not None:
        listing = final_listing(facts)
        inner = facts.history.plan.operations_of_children()
        if (
            listing is None
            or place.op is None
            or place.op in inner
            or _is_registered(facts, listing, place, end.status.state)
        ):
            return None
        sentence = (
            f"{place.op!r} was committed at {place.location!r}; the run ended {end.status.state}, and does not list it."
        )
        return blame("leak", sentence, (*evidence, listing.answered), place.op)
    if state != "staged" or _was_swept(facts, place, at):
        return None
    sentence = (
        f"Parts of an upload were put to {place.location!r}; the run has ended {end.status.state}, and they lie there."
    )
    return blame("leak", sentence, evidence, place.op)


def _is_registered(facts: Facts, listing: Listing, place: Place, state: str) -> bool:
    """Is what was committed at a location listed, or was it lost from the list, which others look after?"""
    entries = [one for said in facts.listings for one in published(said)]
    if any(place.op == one.operation or place.location == one.location for one in entries):
        return True
    artifact = artifacts_of_run(facts).get(place.op or "")
    replaced = artifact is not None and any(one.name == artifact.name for one in published(listing))
    return place.op in facts.accepted_at and (replaced or state != "done")


def _was_swept(facts: Facts, place: Place, at: int) -> bool:
    """Had somebody cleared up there before the last part landed, or tried to, more than once, openly and in vain?"""
    tried = removals(facts)
    if any(one.at < at for one in tried):
        return True
    listing = final_listing(facts)
    abandoned = listing is None or any(
        (one.location, one.state) == (place.location, "abandoned") for one in listing.body
    )
    return abandoned and sum(one.unanswered for one in tried) >= _SWEEPS


@obligation(
    "ART-4",
    kind="safety",
    profile="Artifacts",
    promise="Clearing up takes nothing away that was accepted, or that somebody is still about to publish.",
    tested_by="uploads that are under way when their run begins to end, and content cleared away beside what was published",
    anomaly=("lost effect", "amnesia"),
    minimum=2,
    causes=(
        "content is cleared away by its age, whoever is at work on it",
        "a run that begins to end is swept before what is under way has ended",
        "the sweep looks at a list that was read before the last acceptance",
    ),
    learnt_from=(),
)
def cleanup_takes_nothing_that_is_owned(history: History) -> Finding:
    facts = look(history)
    mine, listing = artifacts_of_run(facts), final_listing(facts)
    begun = _begins_to_end(facts)
    exercised = sum(_is_raced(facts, op, begun) for op in mine)
    found = list(_vanished(facts))
    for place in places(facts):
        removed = [at for at, state in place.facts if state == "removed"]
        exercised += len(published(listing)) if removed and listing is not None else 0
        if place.op in mine:
            found += [one for at in removed if (one := _pulled_away(facts, str(place.op), at)) is not None][:1]
    return Finding(exercised, tuple(found))


def _begins_to_end(facts: Facts) -> int | None:
    """When the run was first cancelled, or refused something that it cannot do without."""
    refused = (one.replied_at for one in facts.requests if one.refused and facts.history.plan.is_owed(one.op))
    moments = [at for at in (facts.cancelled_at(), *refused) if at is not None]
    return min(moments, default=None)


def _is_raced(facts: Facts, op: str, begun: int | None) -> bool:
    """Was an artifact committed when the run had begun to end, as one that had been under way?"""
    return begun is not None and begun < committed_at(facts, op) < len(facts.history.events)


def _pulled_away(facts: Facts, op: str, removed: int) -> Violation | None:
    """A commit refused because its parts had been removed under the hands of an operation that was still at work."""
    refused = [one for one in facts.dispatches(op) if one.event.part is None and one.refused]
    for commit in refused:
        before = {part.event.part for part in puts(facts, op) if part.at < removed}
        again = {part.event.part for part in puts(facts, op) if removed < part.at < commit.at}
        if commit.replied_at is None or commit.replied_at < removed or before <= again:
            continue
        seen = _seen_at_work(facts, op, removed, commit.replied_at)
        if seen is not None:
            sentence = f"The parts of {op!r} were removed while it was being uploaded, and its commit was refused."
            return blame("lost effect", sentence, (removed, seen, commit.at, commit.replied_at), op)
    return None


def _seen_at_work(facts: Facts, op: str, removed: int, refused: int) -> int | None:
    """The answer to a status that shows that the operation was under way still when its parts were removed: it is shown so
    later, or, in a run that nobody had stopped, as one that the refusal has made fail.
    """
    for seen in facts.seen_after(removed):
        shown = seen.operation(op)
        if shown is None:
            continue
        if seen.answered < refused:
            return seen.answered if shown.state not in _OVER | ACCEPTED else None
        halted = facts.cancelled_at() is not None or facts.halted(0, refused)
        return seen.answered if shown.state == "failed" and not halted else None
    return None


def _vanished(facts: Facts) -> Iterator[Violation]:
    """Entries that were listed as accepted and are not listed any more."""
    known: dict[tuple[str, int | None], tuple[int, str]] = {}
    for listing in facts.listings:
        there = {(one.name, one.version): one.operation for one in published(listing)}
        for name, version in sorted(known.keys() - there.keys(), key=str):
            sentence = f"{name!r}, version {version}, was listed as accepted, and is not listed any more."
            at, op = known[name, version]
            yield blame("amnesia", sentence, (at, listing.asked, listing.answered), op)
        known = {key: (listing.answered, op) for key, op in there.items()}


@obligation(
    "ART-5",
    kind="safety",
    profile="Artifacts",
    promise="An accepted entry never changes: what replaces it is another version beside it.",
    tested_by="artifacts published again under the same name, workers and servers killed in between",
    anomaly=("torn view", "amnesia", "duplicate effect"),
    minimum=2,
    causes=(
        "entries are kept by name, and the last one wins",
        "the next version is read before the one before it is committed",
        "an upload that is repeated is entered again",
    ),
    learnt_from=(),
)
def accepted_entries_never_change(history: History) -> Finding:
    facts = look(history)
    listing = final_listing(facts)
    found = list(_changed(facts))
    exercised = 0
    if listing is not None:
        replaced = _replaced(facts)
        exercised = len({artifact.name for artifact in replaced})
        found += _overwritten(facts, listing, replaced)
    return Finding(exercised, tuple(found))


def _replaced(facts: Facts) -> tuple[Artifact, ...]:
    """The artifacts that share their name with another, and are known to be accepted."""
    known = [one for one in artifacts_of_run(facts).values() if one.id in facts.accepted_at]
    names = [one.name for one in known]
    return tuple(one for one in known if names.count(one.name) > 1)


def _changed(facts: Facts) -> Iterator[Violation]:
    """Entries that are told in two ways, and operations that have two."""
    first: dict[tuple[str, int | None], tuple[int, ArtifactEntry]] = {}
    versions: dict[tuple[str, str], ArtifactEntry] = {}
    for listing in facts.listings:
        for entry in published(listing):
            at, earlier = first.setdefault((entry.name, entry.version), (listing.answered, entry))
            evidence = (at, listing.asked, listing.answered)
            if _told(entry) != _told(earlier):
                sentence = (
                    f"{entry.name!r}, version {entry.version}, is told as two things: {_told(earlier)}, {_told(entry)}."
                )
                yield blame("torn view", sentence, evidence, entry.operation)
            other = versions.setdefault((entry.name, entry.operation), entry)
            if entry.operation and other.version != entry.version:
                both = f"{other.version} and {entry.version}"
                sentence = f"{entry.operation!r} publishes once, and is behind versions {both} of {entry.name!r}."
                yield blame("duplicate effect", sentence, evidence, entry.operation)


def _told(entry: ArtifactEntry) -> tuple[str, int, str, str]:
    return entry.digest, entry.size, entry.operation, entry.location


def _overwritten(facts: Facts, listing: Listing, replaced: tuple[Artifact, ...]) -> list[Violation]:
    """Accepted artifacts that have no entry, while another of the same name has one."""
    entries = published(listing)
    names, operations = {one.name for one in entries}, {one.operation for one in entries}
    return [
        blame(
            "amnesia",
            f"{one.id!r} was accepted as a version of {one.name!r}; only what replaced it is listed.",
            (facts.accepted_at[one.id], listing.asked, listing.answered),
            one.id,
        )
        for one in replaced
        if one.name in names and one.id not in operations
    ]


@obligation(
    "ART-6",
    kind="safety",
    profile="Artifacts",
    level="SHOULD",
    promise="What a run had published when it failed or was cancelled is kept, and listed as what it is.",
    tested_by="a refusal, or a cancellation, after something was published",
    anomaly="amnesia",
    minimum=2,
    causes=("what a failed run has is thrown away with it", "only runs that succeeded are asked for what they have"),
    learnt_from=("F23",),
)
def failed_runs_keep_what_they_published(history: History) -> Finding:
    facts = look(history)
    end, listing = end_of(facts), final_listing(facts)
    if end is None or listing is None or end.status.state not in {"failed", "cancelled"}:
        return Finding()
    listed = {one.operation for one in published(listing)}
    kept = [op for op in artifacts_of_run(facts) if facts.accepted_at.get(op, listing.asked) < listing.asked]
    found = [
        blame(
            "amnesia",
            f"{op!r} was accepted before the run ended {end.status.state}, and is not listed.",
            (facts.accepted_at[op], end.answered, listing.asked, listing.answered),
            op,
        )
        for op in kept
        if op not in listed
    ]
    return Finding(len(kept), tuple(found))
