"""Certificates: what was certified, under what, by which build of the kit, and the result.

A certificate is a value (`Certificate`); `to_json` adds the footer with its counts and digest. `judgement` is the exit code
it earns, with the reason in one sentence. Its file is the affair of `conformance.certificate_file`.
"""

from __future__ import annotations

import datetime as dt
import platform
import sys
from collections import Counter
from collections.abc import Mapping
from typing import Any, Literal, get_args

import attrs
import cattrs

from conformance.files import LATER, digest
from scenarios.verdict import Level, Outcome
from simkit.errors import ExitCode

SCHEMA = "simkit/certificate/1"
#: Between the values here and JSON; what it does not know it refuses.
CONVERTER = cattrs.Converter(forbid_extra_keys=True)

Durability = Literal["kill", "power", "never-corrupt"]


@attrs.frozen
class Subject:
    """What was certified: a configuration of a version, not a brand. `digest` covers adapter, requirements and
    settings.
    """

    name: str
    version: str
    configuration: str
    storage: str
    digest: str


@attrs.frozen
class Kit:
    """Who certified. `requirements` is the frozen set, e.g. "2026.1"; `digest` covers the set's ids, levels and
    minimums.
    """

    version: str
    requirements: str
    digest: str


@attrs.frozen
class Claim:
    """One promise the subject makes, in its vendor's words, and where they are to be read."""

    id: str
    statement: str
    source: str


@attrs.frozen
class ObligationRow:
    """One obligation's verdict. `evidence` is the digest of the findings behind it."""

    id: str
    level: Level
    verdict: Outcome
    exercised: int
    minimum: int
    evidence: str
    name: str = ""
    observed: Literal["held", "violated", "nothing"] = "nothing"
    anomalies: tuple[str, ...] = ()
    reason: str = ""


@attrs.frozen
class Mutants:
    """How many broken runtimes this build's judges were shown, and how many they caught; `unproven` are the obligations that
    let one of theirs go, or have none.
    """

    caught: int
    total: int
    unproven: tuple[str, ...] = attrs.field(default=(), metadata={LATER: True})


@attrs.frozen
class Deviation:
    """A violation known and accepted until `expiry` (ISO date). It is stale once expired or no longer observed."""

    id: str
    reason: str
    expiry: str


@attrs.frozen
class Environment:
    """Where it was certified. `settings` are the limits and shortened intervals the verdicts depend on."""

    python: str
    platform: str
    packages: Mapping[str, str]
    settings: Mapping[str, Any]


@attrs.frozen
class Profile:
    """A group of promises, granted whole or not at all; `reason` says why not. It is granted as far as the world goes: nothing
    is said of the obligations under `uncovered`, which nothing in that world puts to the test.
    """

    name: str
    granted: bool
    reason: str = ""
    uncovered: tuple[str, ...] = attrs.field(default=(), metadata={LATER: True})


@attrs.frozen
class Certificate:
    """Everything a certificate states, without its footer."""

    subject: Subject
    kit: Kit
    world: Literal["process", "simulated"]
    durability: Durability
    tier: str
    claims: tuple[Claim, ...]
    obligations: tuple[ObligationRow, ...]
    mutants: Mutants
    environment: Environment
    profiles: tuple[Profile, ...]
    runs: int
    seeds: str = ""  # as given, e.g. "0-999"; empty when scenarios are enumerated, not drawn
    cases: tuple[str, ...] = ()
    deviations: tuple[Deviation, ...] = ()
    issued: str = ""  # ISO date, UTC
    complete: bool = True  # False: interrupted, says only what was judged until then

    def to_json(self) -> dict[str, Any]:
        """The file's content, footer included."""
        body = {"schema": SCHEMA, **CONVERTER.unstructure(self)}
        footer: dict[str, Any] = {"counts": self.counts()}
        return {**body, "footer": {**footer, "digest": digest({**body, "footer": footer})}}

    def counts(self) -> dict[str, int]:
        """How much of everything it states, as its footer says."""
        verdicts = Counter(row.verdict for row in self.obligations)
        return {
            "claims": len(self.claims),
            "obligations": len(self.obligations),
            **{verdict: verdicts[verdict] for verdict in get_args(Outcome)},
            "profiles": len(self.profiles),
            "cases": len(self.cases),
            "deviations": len(self.deviations),
            "runs": self.runs,
        }


def environment(packages: Mapping[str, str], settings: Mapping[str, Any]) -> Environment:
    """The environment of this process, with the target's resolved `packages` and the `settings` in force."""
    return Environment(
        python=f"{platform.python_implementation()} {platform.python_version()}",
        platform=f"{sys.platform} {platform.machine()}",
        packages=dict(sorted(packages.items())),
        settings=settings,
    )


def stale(certificate: Certificate, today: dt.date) -> tuple[Deviation, ...]:
    """Deviations that no longer excuse anything: expired, with an expiry that is no date, or no longer observed."""
    failing = {row.id for row in certificate.obligations if row.verdict == "fail"}
    return tuple(one for one in certificate.deviations if one.id not in failing or _expired(one, today))


def _expired(deviation: Deviation, today: dt.date) -> bool:
    try:
        return dt.date.fromisoformat(deviation.expiry) < today
    except ValueError:
        return True


def judgement(certificate: Certificate, today: dt.date) -> tuple[ExitCode, str]:
    """The exit code the certificate earns, and why. Only MUST rows decide; SHOULD rows are reported."""
    rows = [row for row in certificate.obligations if row.level == "MUST"]
    old = stale(certificate, today)
    excused = {one.id for one in certificate.deviations} - {one.id for one in old}
    failed = [row for row in rows if row.verdict == "fail" and row.id not in excused]
    if failed:
        return ExitCode.VIOLATION, "violated: " + ", ".join(" ".join([row.id, *row.anomalies]) for row in failed)
    if old:
        return ExitCode.VIOLATION, "stale deviation: " + ", ".join(f"{one.id} ({one.expiry})" for one in old)
    if broken := [row.id for row in rows if row.verdict == "error"]:
        return ExitCode.TARGET, "kit or adapter broke protocol: " + ", ".join(broken)
    if unsure := [row.id for row in rows if row.verdict == "inconclusive"]:
        return ExitCode.INCONCLUSIVE, "inconclusive: " + ", ".join(unsure)
    if not certificate.complete:
        return ExitCode.INCONCLUSIVE, "interrupted before everything was judged"
    passed = sum(row.verdict == "pass" for row in rows)
    if not passed and not excused:
        return ExitCode.NOTHING_SELECTED, "no claimed obligation was judged"
    known = f", {len(excused)} known deviations" if excused else ""
    beyond = [row.id for row in rows if row.verdict == "not-covered"]
    left = f"; not covered by the {certificate.world} world: {', '.join(beyond)}" if beyond else ""
    all_ = "all covered" if beyond else f"all {passed + len(excused)} claimed"
    return ExitCode.PASSED, f"{all_} obligations judged, {passed} held{known}{left}"
