"""CPL-1 to CPL-4: what it takes for a run to be over, and for its result to have been handed over."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from scenarios.bodies import ArtifactEntry
from scenarios.bodies import Verdict as Row
from scenarios.endings import may_be_escalated
from scenarios.history import ACCEPTED, TERMINAL, History
from scenarios.index import Facts, look
from scenarios.obligations.registry import blame, obligation
from scenarios.observed import Seen
from scenarios.plan import Artifact, Check, Fail
from scenarios.publishing import Verdict, artifacts_of_run, checks_of_run, current, digest_of, parse_subject, verdicts
from scenarios.repetition import is_calm
from scenarios.verdict import Finding, Violation

#: What a checker may say that is no pass.
_NO_PASS = ("failed", "unavailable", "timeout", "skipped")


@obligation(
    "CPL-1",
    kind="safety",
    profile="Artifacts",
    promise="A run is done only when each required check has passed the version that is current then.",
    tested_by="an artifact replaced while its check is under way",
    anomaly=("stale acceptance", "false certainty"),
    minimum=2,
    causes=(
        "a pass is kept by the check, not by the version it was about",
        "the version is looked up when the verdict comes, not when it was asked for",
        "nothing looks at the checks again when something is published after them",
    ),
    learnt_from=("F24",),
)
def success_needs_a_pass_of_the_current_version(history: History) -> Finding:
    facts = look(history)
    done = next((seen for seen in facts.statuses if seen.status.state == "done"), None)
    if done is None:
        return Finding()
    exercised = 0
    found: list[Violation] = []
    for check, artifact in checks_of_run(facts):
        if not facts.history.plan.is_owed(check.id):
            continue
        newest = _newest(facts, done, artifact)
        said = [one for one in verdicts(facts, check.id) if one.at < done.answered]
        version = newest[0] if newest is not None else None
        exercised += version is not None and any(one.parts[1] not in {version, None} for one in said)
        found += list(_passed_otherwise(facts, check, artifact, done, newest, said))[:1]
    return Finding(exercised, tuple(found))


def _newest(facts: Facts, done: Seen, artifact: Artifact) -> tuple[int | None, str] | None:
    """Version and digest of what was current when the run was done; the version is None where it is not told."""
    listing = next((one for one in reversed(facts.listings) if one.asked > done.answered), None)
    entry: ArtifactEntry | None = current(listing, artifact.name) if listing is not None else None
    if entry is not None:
        return entry.version, entry.digest
    named = [one for one in artifacts_of_run(facts).values() if one.name == artifact.name]
    return (None, digest_of(facts, artifact)) if len(named) == 1 and listing is None else None


def _passed_otherwise(
    facts: Facts,
    check: Check,
    artifact: Artifact,
    done: Seen,
    newest: tuple[int | None, str] | None,
    said: list[Verdict],
) -> Iterator[Violation]:
    """A run that is done without a pass of what is current; one whose checker never let it pass is CPL-2's."""
    sent = [one for one in facts.dispatches(check.id) if one.at < done.answered]
    if not sent:
        sentence = f"The run is done, and nobody was asked to check {artifact.name!r}, which {check.id!r} requires."
        yield blame("false certainty", sentence, (done.asked, done.answered), check.id)
    elif not said:
        sentence = (
            f"The run is done, and no checker had said anything of {artifact.name!r}, which {check.id!r} requires."
        )
        yield blame("false certainty", sentence, (sent[-1].at, done.asked, done.answered), check.id)
    passed = [one for one in said if one.outcome == "passed"]
    if newest is None or not passed or any(one.subject is None for one in passed):
        return
    version, digest = newest
    if not any(one.parts[2] == digest and version in {None, one.parts[1]} for one in passed):
        last = passed[-1]
        what = f"{artifact.name!r} at version {version}"
        sentence = f"The run is done with {what}; {check.id!r} passed version {last.parts[1]} only."
        yield blame("stale acceptance", sentence, (last.request.at, last.at, done.asked, done.answered), check.id)


@obligation(
    "CPL-2",
    kind="safety",
    profile="Artifacts",
    promise="A check that failed, one that nobody could make, one that took too long and one that was left out are told apart, "
    "and none of them lets a run succeed.",
    tested_by="checkers that say each of these, and workers killed as they say it",
    anomaly="false certainty",
    minimum=3,
    causes=(
        "whatever is no failure counts as a pass",
        "an error of the checker is taken for a word about its subject",
        "a check that was skipped is not among those that are looked at in the end",
    ),
    learnt_from=(),
)
def checks_that_did_not_pass_are_told_apart(history: History) -> Finding:
    facts = look(history)
    exercised = 0
    found: list[Violation] = []
    for check, _ in checks_of_run(facts):
        said = verdicts(facts, check.id)
        last = facts.statuses[-1].asked if facts.statuses else 0
        exercised += len({one.outcome for one in said if one.outcome in _NO_PASS and one.at < last})
        if said:
            found += [*_let_through(facts, check, said), *_called_failed(facts, check, said)][:1]
    if not found:
        found += list(_misnamed(facts))[:1]
    return Finding(exercised, tuple(found))


def _let_through(facts: Facts, check: Check, said: tuple[Verdict, ...]) -> Iterator[Violation]:
    """Statuses that show a success, or the check accepted, when nothing had passed."""
    for seen in facts.statuses:
        if any(one.outcome == "passed" and one.at < seen.answered for one in said):
            return
        told = [one for one in said if one.at < seen.answered]
        shown = seen.operation(check.id)
        accepted = shown is not None and shown.state in ACCEPTED
        succeeded = seen.status.state == "done" and facts.history.plan.is_owed(check.id)
        if told and (accepted or succeeded):
            what = "the run is done" if succeeded else f"it is shown as {shown.state}" if shown else ""
            sentence = f"All that was said of {check.id!r} is {told[-1].outcome!r}; {what}."
            yield blame("false certainty", sentence, (told[-1].at, seen.asked, seen.answered), check.id)


def _called_failed(facts: Facts, check: Check, said: tuple[Verdict, ...]) -> Iterator[Violation]:
    """Statuses that show a check as failed, of which every word was heard, and none was that it failed."""
    sent = facts.dispatches(check.id)
    if any(one.unanswered for one in sent) or _may_be_given_up(facts):
        return
    for seen in facts.statuses:
        shown = seen.operation(check.id)
        told = [one for one in said if one.at < seen.answered]
        if shown is not None and shown.state == "failed" and told and not any(one.outcome == "failed" for one in told):
            sentence = f"All that was said of {check.id!r} is {told[-1].outcome!r}; it is shown as failed."
            yield blame("false certainty", sentence, (told[-1].at, seen.asked, seen.answered), check.id)


def _may_be_given_up(facts: Facts) -> bool:
    """Was there a reason to end a check that no checker has to do with?"""
    plan = facts.history.plan
    stopped = any(one.verb in {"cancel", "decide"} for one in facts.commands)
    limited = plan.allowance is not None or plan.deadline_ns is not None
    failing = any(one.refused for one in facts.requests) or any(isinstance(leaf, Fail) for leaf in plan.leaves())
    escalated = may_be_escalated(facts, len(facts.history.events))
    return stopped or limited or failing or escalated or facts.code_changed()


def _misnamed(facts: Facts) -> Iterator[Violation]:
    """Ends whose reason is something that no checker has said."""
    asked = [one for check in facts.history.plan.checks() for one in facts.dispatches(check.id)]
    if any(one.unanswered for one in asked):
        return
    for seen in facts.statuses:
        if not is_calm(facts, seen.answered):
            return  # what a checker said may have been lost on its way, and then it took too long
        what = (seen.status.reason_code or "").removeprefix("check-")
        told = [one for one in asked if one.replied_at is not None and one.replied_at < seen.answered]
        outcomes = {one.reply.outcome for one in told if one.reply is not None}
        if seen.status.state in TERMINAL and what in _NO_PASS and told and what not in outcomes:
            sentence = (
                f"The run ended {seen.status.state} because of {seen.status.reason_code!r}, which no checker has said."
            )
            yield blame("false certainty", sentence, (told[-1].at, seen.asked, seen.answered), told[-1].op)


@obligation(
    "CPL-3",
    kind="safety",
    profile="Artifacts",
    promise="A check is about one version of one subject, and its result says so, names its checker, and outlives a crash.",
    tested_by="workers and servers killed as a check is asked for, made and accepted",
    anomaly=("amnesia", "torn view"),
    minimum=3,
    causes=(
        "verdicts are kept as a flag of the run",
        "what a check was about is worked out again when its verdict comes",
        "results of checks are kept in memory until the run has ended",
    ),
    learnt_from=(),
)
def check_results_are_complete_and_survive(history: History) -> Finding:
    facts = look(history)
    exercised = 0
    found: list[Violation] = []
    for check, artifact in checks_of_run(facts):
        exercised += _outlived_a_crash(facts, check)
        broken = (*_without_subject(facts, check, artifact), *_untold(facts, check), *_asked_again(facts, check))
        found += broken[:1]
    found += list(_rewritten(facts))[:1]
    return Finding(exercised, tuple(found))


def _outlived_a_crash(facts: Facts, check: Check) -> bool:
    """Did something die after a verdict, and was the run looked at later?"""
    said = verdicts(facts, check.id)
    if not said:
        return False
    died = next((at for at in facts.deaths if at > said[0].at), None)
    looks = [
        *(seen.asked for seen in facts.statuses),
        *(one.asked for one in facts.journals if "verdicts" in one.body.tells),
    ]
    return died is not None and any(asked > died for asked in looks)


def _without_subject(facts: Facts, check: Check, artifact: Artifact) -> Iterator[Violation]:
    """Requests that do not say which version of what they are about."""
    for request in facts.dispatches(check.id):
        name, version, digest = parse_subject(request.event.subject)
        if name != artifact.name or not version or digest in {"", "None"}:
            sentence = f"{check.id!r} is to check {artifact.name!r}; its request was about {request.event.subject!r}."
            yield blame("torn view", sentence, (request.at,), check.id)


def _untold(facts: Facts, check: Check) -> Iterator[Violation]:
    """Verdicts that a run had accepted, and that its journal does not have, or has otherwise."""
    said = verdicts(facts, check.id)
    known = next((seen for seen in facts.statuses if _is_accepted(seen, check)), None)
    if known is None or not said:
        return
    for journal in facts.journals:
        if journal.asked < known.answered or "verdicts" not in journal.body.tells:
            continue
        rows = [row for row in journal.body.verdicts if _leaf(row.operation) == check.id and row.outcome]
        evidence = (known.answered, journal.asked, journal.answered)
        for row in rows:
            is_given = any(_is_of(row, one) for one in said) or _is_own_word(facts, check, row)
            if not row.checker or not is_given:
                sentence = f"The journal has a verdict of {check.id!r} that was not given: {_told(row)}."
                yield blame("torn view", sentence, evidence, check.id)
        accepted = [one for one in said if one.at < known.answered and one.outcome == "passed"]
        if accepted and not any(_is_of(row, one) for row in rows for one in accepted):
            sentence = f"{check.id!r} was accepted, and the journal does not have the verdict."
            yield blame("amnesia", sentence, evidence, check.id)


def _is_accepted(seen: Seen, check: Check) -> bool:
    shown = seen.operation(check.id)
    return shown is not None and shown.state in ACCEPTED


def _leaf(operation: str) -> str:
    """The plan's operation behind one that the harness made for it, which it calls `<id>~…`."""
    return operation.partition("~")[0]


def _is_of(row: Row, verdict: Verdict) -> bool:
    return (row.subject, row.version, row.digest, row.outcome) == (*verdict.parts, verdict.outcome)


def _is_own_word(facts: Facts, check: Check, row: Row) -> bool:
    """May this be what a harness says itself of a check that nobody answered in time?"""
    return row.outcome in {"timeout", "unavailable"} and any(facts.uncertain(one) for one in facts.dispatches(check.id))


def _told(row: Row) -> str:
    return f"{row.outcome} of {row.subject}@{row.version}#{row.digest:.12} by {row.checker or 'nobody'}"


def _asked_again(facts: Facts, check: Check) -> Iterator[Violation]:
    """Requests about what had passed already, and was known to be accepted."""
    known = facts.accepted_at.get(check.id)
    if known is None or facts.is_stormy:
        return
    for request in facts.dispatches(check.id):
        passed = [
            one
            for one in verdicts(facts, check.id)
            if one.outcome == "passed" and one.subject is not None and one.subject == request.event.subject
        ]
        if request.at > known and passed and passed[0].at < known and not facts.late(request):
            sentence = (
                f"{check.id!r} had passed {passed[0].subject:.40}…, and that was accepted; it was asked for again."
            )
            yield blame("amnesia", sentence, (passed[0].at, known, request.at), check.id)


def _rewritten(facts: Facts) -> Iterator[Violation]:
    """Verdicts that a journal had, and that a later one has lost or tells otherwise."""
    known: dict[tuple[str, int | None], tuple[int, Row]] = {}
    for journal in facts.journals:
        if "verdicts" not in journal.body.tells:
            continue
        rows = {(row.operation, row.generation): row for row in journal.body.verdicts if row.outcome}
        for key, (at, row) in known.items():
            if rows.get(key) != row:
                now = _told(rows[key]) if key in rows else "nothing"
                sentence = f"The journal had {_told(row)}; later it has {now}."
                yield blame("amnesia", sentence, (at, journal.asked, journal.answered), _leaf(row.operation))
        known |= {key: (journal.answered, row) for key, row in rows.items() if key not in known}


@obligation(
    "CPL-4",
    kind="safety",
    profile="Artifacts",
    level="SHOULD",
    promise="That a result is there and that it was handed over are told apart, and one whose delivery got lost can be had "
    "again.",
    tested_by="the answer that hands the result over is lost, and servers killed before it is asked for again",
    anomaly=("false certainty", "amnesia"),
    minimum=3,
    causes=(
        "a result counts as delivered as soon as there is one",
        "what was handed over once is thrown away",
        "deliveries are kept in memory",
    ),
    learnt_from=(),
)
def prepared_and_delivered_are_told_apart(history: History) -> Finding:
    facts = look(history)
    shown = [seen for seen in facts.statuses if seen.status.delivered is not None]
    ended = [seen for seen in shown if seen.status.state in TERMINAL]
    exercised = int(bool(ended) and (len(ended) > 1 or _handed_out(facts, ended[0])))
    found = [*_too_early(facts, shown), *_forgotten(facts, ended), *_gone(facts)]
    return Finding(exercised, tuple(found[:1]))


def _handed_out(facts: Facts, seen: Seen) -> bool:
    """May a result have been given to somebody before this status was asked for?"""
    return any(
        ask.at < seen.asked
        and (ask.outcome == "indefinite" or (ask.answer and ask.answer.status and ask.answer.status.state in TERMINAL))
        for ask in facts.asked("status")
    )


def _too_early(facts: Facts, shown: list[Seen]) -> Iterator[Violation]:
    """Results said to have been handed over before anybody could have had them. On bad links a question may arrive twice."""
    for seen in shown:
        early = seen.status.state not in TERMINAL or not (facts.is_stormy or _handed_out(facts, seen))
        if seen.status.delivered and early:
            sentence = (
                f"The run is {seen.status.state}, and said to have delivered a result that nobody had been given."
            )
            yield blame("false certainty", sentence, (seen.asked, seen.answered))


def _forgotten(facts: Facts, ended: list[Seen]) -> Iterator[Violation]:
    """Results that were handed over, and are said not to have been, with nothing that could have lost the word of it. A run
    that was blocked may have gone on, to another end.
    """
    for earlier, later in itertools.pairwise(ended):
        same = earlier.status.state == later.status.state and earlier.answered < later.asked
        calm = not facts.halted(earlier.asked, later.answered)
        if (
            same
            and later.status.state != "blocked"
            and later.status.delivered is False
            and (calm or earlier.status.delivered)
        ):
            sentence = "The result had been handed over; it is said not to have been."
            yield blame("amnesia", sentence, (earlier.asked, earlier.answered, later.asked, later.answered))


def _gone(facts: Facts) -> Iterator[Violation]:
    """Results that can be had once only."""
    done = [seen for seen in facts.statuses if seen.status.state == "done"]
    for earlier, later in itertools.pairwise(done):
        if earlier.status.result and not later.status.result and earlier.answered < later.asked:
            sentence = "The result of the run was handed over; asked again, it has none."
            yield blame("amnesia", sentence, (earlier.answered, later.asked, later.answered))
