"""What of a certificate follows from the rest of it: whom its claims cover, what its rows grant, the digest of evidence.

`certify` states it by these functions, and whoever reads a certificate back compares: `contradictions` names everything that
cannot be true together. They need nothing but the certificate and the published requirement sets; of a set that this build does
not know, as the draft of another one, only what holds of every set is compared.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from scenarios.obligations import OBLIGATIONS
from scenarios.requirements import REQUIREMENT_SETS
from scenarios.rules import Grant, grants
from scenarios.verdict import Verdict

if TYPE_CHECKING:
    from conformance.certificate import Certificate, ObligationRow
    from scenarios.requirements import RequirementSet


def claimed_by(claims: Collection[str]) -> frozenset[str]:
    """The obligations that these claims cover; a claimed profile stands for all its obligations."""
    return frozenset(one.id for one in OBLIGATIONS.values() if one.id in claims or one.profile in claims)


def evidence_of(exercised: int, violations: int, anomalies: Iterable[str], *, slow: bool) -> str:
    """The digest of what was seen of one obligation, 16 bytes of blake2b in hex."""
    evidence = json.dumps([exercised, violations, list(anomalies), slow], separators=(",", ":"))
    return hashlib.blake2b(evidence.encode(), digest_size=16).hexdigest()


def grants_told(verdicts: Mapping[str, Verdict], demands: RequirementSet, claims: Collection[str]) -> tuple[Grant, ...]:
    """What is said of profiles: of each in which anything is claimed."""
    covered = claimed_by(claims)
    told = {one.profile for id_, one in OBLIGATIONS.items() if id_ in covered}
    return tuple(one for one in grants(verdicts, demands) if one.profile in told)


def demanded_by(certificate: Certificate) -> Mapping[str, int]:
    """How many promises each profile that is spoken of demands: by its requirement set, or where this build knows none of that
    name, by the rows.
    """
    known = REQUIREMENT_SETS.get(certificate.kit.requirements)
    if known is not None:
        found = [one.profile for one in known.requirements if one.level == "MUST"]
    else:
        rows = (row.id for row in certificate.obligations if row.id in OBLIGATIONS and row.level == "MUST")
        found = [str(OBLIGATIONS[id_].profile) for id_ in rows]
    return {one.name: found.count(one.name) for one in certificate.profiles}


def why_not(grant: Grant, verdicts: Mapping[str, Verdict], *, complete: bool) -> str:
    """What keeps a profile from being granted; empty when nothing does. A campaign that was cut short grants nothing: what it
    left out could have broken what it did not.
    """
    missing = [f"{id_} {verdicts[id_].outcome if id_ in verdicts else 'not judged'}" for id_ in grant.missing]
    return "; ".join(missing if complete else [*missing, "interrupted before everything was judged"])


def contradictions(certificate: Certificate) -> Iterator[str]:
    """Everything in a certificate that cannot be so, given the rest of it, one sentence each."""
    yield from _twice(certificate)
    for row in certificate.obligations:
        yield from (f"{row.id}: {what}" for what in (*_of_row(row), *_of_claim(row, certificate)))
    yield from _of_mutants(certificate)
    yield from _of_runs(certificate)
    yield from _of_set(certificate)


def _twice(certificate: Certificate) -> Iterator[str]:
    lists = {
        "row": [one.id for one in certificate.obligations],
        "claim": [one.id for one in certificate.claims],
        "profile": [one.name for one in certificate.profiles],
        "deviation": [one.id for one in certificate.deviations],
        "case": list(certificate.cases),
    }
    for kind, names in lists.items():
        yield from (f"the {kind} {name} is there {n} times" for name, n in Counter(names).items() if n > 1)


def _of_row(row: ObligationRow) -> Iterator[str]:
    """What contradicts itself in one row, by the rules of `scenarios.rules`."""
    if row.exercised < 0 or row.minimum < 1:
        yield f"exercised {row.exercised} times of at least {row.minimum}"
    seen = "violated" if row.anomalies else "held" if row.exercised else "nothing"
    if row.observed != seen:
        named = ", ".join(row.anomalies) or "no anomaly"
        yield f"observed {row.observed}, though it was exercised {row.exercised} times and shows {named}"
    match row.verdict:
        case "pass":
            yield from _of_pass(row)
        case "fail" if not row.anomalies:
            yield "fail, and no anomaly is named"
        case "inconclusive" | "not-covered" if row.anomalies:
            yield f"{row.verdict}, though it shows {', '.join(row.anomalies)}"
        case "not-covered" if row.exercised:
            yield f"not-covered, though it was exercised {row.exercised} times"


def _of_pass(row: ObligationRow) -> Iterator[str]:
    if row.anomalies:
        yield f"pass, though it shows {', '.join(row.anomalies)}"
    elif row.exercised < row.minimum:
        yield f"pass, exercised {row.exercised} times of at least {row.minimum}"
    elif row.evidence != evidence_of(row.exercised, 0, (), slow=False):
        yield f"pass, and the evidence is not that of {row.exercised} times without a violation"


def _of_claim(row: ObligationRow, certificate: Certificate) -> Iterator[str]:
    """Only what is claimed has a verdict. Of an obligation that this build does not know nobody can tell."""
    if row.id not in OBLIGATIONS:
        return
    covered = row.id in claimed_by([one.id for one in certificate.claims])
    if covered is (row.verdict == "not-claimed"):
        yield f"{row.verdict}, though the claims {'cover' if covered else 'do not cover'} it"


def _of_mutants(certificate: Certificate) -> Iterator[str]:
    mutants = certificate.mutants
    passed = [row.id for row in certificate.obligations if row.verdict == "pass"]
    if not 0 <= mutants.caught <= mutants.total:
        yield f"{mutants.caught} of {mutants.total} mutants were caught"
    elif len(passed) > mutants.caught:
        yield f"{len(passed)} obligations passed, each proven by a mutant of its own, and {mutants.caught} were caught"
    if mutants.caught < mutants.total and certificate.complete and not mutants.unproven:
        yield f"{mutants.total - mutants.caught} mutants were not caught, and no obligation is called unproven"
    yield from (f"{id_}: pass, though its mutants were not caught" for id_ in passed if id_ in mutants.unproven)


def _of_runs(certificate: Certificate) -> Iterator[str]:
    busy = [row.id for row in certificate.obligations if row.exercised or row.anomalies]
    if certificate.world == "process" and certificate.durability != "kill":
        yield f"real processes are killed, and never lose power: nothing of {certificate.durability} is seen of them"
    if certificate.runs < 0 or (busy and not certificate.runs):
        yield f"{certificate.runs} runs, in which {busy[0] if busy else 'nothing'} was exercised"
    try:
        dt.date.fromisoformat(certificate.issued or "2000-01-01")
    except ValueError:
        yield f"issued {certificate.issued!r}, which is no date"


def _of_set(certificate: Certificate) -> Iterator[str]:
    """What its requirement set demands of it, and whether what is said of profiles follows from its rows."""
    verdicts = {
        row.id: Verdict(row.id, row.verdict, row.exercised, row.minimum, observed=row.observed)
        for row in certificate.obligations
    }
    demands = REQUIREMENT_SETS.get(certificate.kit.requirements)
    if demands is None:
        yield from _of_any_set(certificate)
        return
    if certificate.kit.digest != demands.digest:
        yield f"requirement set {demands.name} has the digest {demands.digest}, not {certificate.kit.digest}"
        return
    yield from _demanded(certificate, demands)
    told = {one.name: (one.granted, one.reason, one.uncovered) for one in certificate.profiles}
    due = {
        one.profile: (
            one.granted and certificate.complete,
            why_not(one, verdicts, complete=certificate.complete),
            one.uncovered,
        )
        for one in grants_told(verdicts, demands, [one.id for one in certificate.claims])
    }
    for name in dict.fromkeys((*told, *due)):
        if told.get(name) != due.get(name):
            yield f"profile {name}: {_standing(told.get(name))}; by the rows it is {_standing(due.get(name))}"


def _standing(stand: tuple[bool, str, tuple[str, ...]] | None) -> str:
    if stand is None:
        return "not spoken of"
    granted, reason, uncovered = stand
    beside = f", not covering {', '.join(uncovered)}" if uncovered else ""
    return f"{'granted' if granted else 'refused'}{beside}{f' ({reason})' if reason else ''}"


def _demanded(certificate: Certificate, demands: RequirementSet) -> Iterator[str]:
    rows = {row.id: row for row in certificate.obligations}
    for one in demands.requirements:
        row = rows.get(one.id)
        if row is None:
            yield f"{one.id}: requirement set {demands.name} demands it, and there is no row of it"
        elif (row.level, row.minimum) != (one.level, one.minimum):
            yield (
                f"{one.id}: {row.level}, at least {row.minimum} times; requirement set {demands.name} says "
                f"{one.level}, at least {one.minimum}"
            )


def _of_any_set(certificate: Certificate) -> Iterator[str]:
    """A profile is granted by what passed, over nothing that did not."""
    for profile in certificate.profiles:
        rows = [
            row
            for row in certificate.obligations
            if row.id in OBLIGATIONS and OBLIGATIONS[row.id].profile == profile.name and row.level == "MUST"
        ]
        bad = [row.id for row in rows if row.verdict not in {"pass", "not-covered"}]
        if profile.granted and not certificate.complete:
            yield f"profile {profile.name}: granted by a campaign that was interrupted"
        elif profile.granted and rows and (bad or all(row.verdict != "pass" for row in rows)):
            yield f"profile {profile.name}: granted, though {', '.join(bad) or 'all it demands'} did not pass"


def misread(read: Any, meant: Any, place: str = "") -> Iterator[str]:
    """Where what stands in the file was taken for something else, such as "4" or 4.2 for 4."""
    if isinstance(read, Mapping) and isinstance(meant, Mapping):
        for key, value in read.items():
            yield from misread(value, meant.get(key), f"{place}.{key}".lstrip("."))
    elif isinstance(read, list) and isinstance(meant, list | tuple):
        for number, (one, other) in enumerate(zip(read, meant, strict=True)):
            yield from misread(one, other, f"{place}[{number}]")
    elif type(read) is not type(meant) or read != meant:
        yield f"{place} is {json.dumps(read)}, read as {json.dumps(meant)}"
