"""Certificates: what was certified, under what, by which build of the kit, and the result. Written whole or not at all.

A certificate is a value (`Certificate`); `to_json` adds the footer with its counts and digest, `write` stores it
atomically and `load` takes back only a file that is complete and unchanged: one without footer, or whose counts or
digest disagree, is refused. `judgement` is the exit code a certificate earns, with the reason in one sentence.
"""

from __future__ import annotations

import datetime as dt
import json
import platform
import re
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import attrs
import cattrs

from conformance.files import LATER, NotPlainError, digest, parse_plain, telling, write_atomic
from conformance.recomputed import contradictions, misread
from scenarios.verdict import Level, Outcome
from simkit.errors import ExitCode, Problem, SimkitError

SCHEMA = "simkit/certificate/1"
_SHOWN_CHARS = 40  # of a file that is none
_NAMED_MAX = 5  # contradictions that an error names
_RETRY = "certify again; a certificate is never repaired by hand"

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
        body = {"schema": SCHEMA, **_CONVERTER.unstructure(self)}
        footer: dict[str, Any] = {"counts": _counts(self)}
        return {**body, "footer": {**footer, "digest": digest({**body, "footer": footer})}}


_CONVERTER = cattrs.Converter(forbid_extra_keys=True)


#: What certificates of the first builds had none of, and do not count.
_LATER = ("not-covered",)


def _counts(certificate: Certificate) -> dict[str, int]:
    verdicts = Counter(row.verdict for row in certificate.obligations)
    return {
        "claims": len(certificate.claims),
        "obligations": len(certificate.obligations),
        **{verdict: verdicts[verdict] for verdict in get_args(Outcome)},
        "profiles": len(certificate.profiles),
        "cases": len(certificate.cases),
        "deviations": len(certificate.deviations),
        "runs": certificate.runs,
    }


def environment(packages: Mapping[str, str], settings: Mapping[str, Any]) -> Environment:
    """The environment of this process, with the target's resolved `packages` and the `settings` in force."""
    return Environment(
        python=f"{platform.python_implementation()} {platform.python_version()}",
        platform=f"{sys.platform} {platform.machine()}",
        packages=dict(sorted(packages.items())),
        settings=settings,
    )


# ---- files


def dump(certificate: Certificate) -> str:
    """The file's text: readable, keys sorted, newline last."""
    return json.dumps(certificate.to_json(), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def write(certificate: Certificate, path: Path) -> None:
    """Write atomically. Raises SimkitError when the disk is full or the folder may not be written."""
    write_atomic(path, dump(certificate))


def load(path: Path) -> Certificate:
    """Read a certificate back. Raises SimkitError when missing, truncated, altered or of another schema."""
    return parse(_read(path), str(path))


def _read(path: Path) -> str:
    if not path.is_file():
        raise SimkitError(
            Problem(
                "certificate-missing",
                "there is no such certificate",
                str(path),
                "a file written by `simkit certify`",
                "certificates are kept in .simkit/certificates unless --out says otherwise",
            )
        )
    with telling(path):
        return path.read_text(encoding="utf-8", errors="replace")


def is_certificate(path: Path) -> bool:
    """Whether this file is a certificate, or was one before it was cut short or changed. Its keys are sorted, so that a
    beginning shows no schema; a case begins with its own.
    """
    try:
        text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    except OSError:
        return False
    return bool(re.match(r'\s*\{\s*"cases"', text)) or bool(re.search(r'"schema": ?"simkit/certificate/', text))


def parse(text: str, where: str) -> Certificate:
    """Check and read the text of a certificate; `where` is named in errors."""
    _check_is_one(text, where)
    data = _parse_json(text, where)
    _check_schema(data, where)
    footer = _check_footer(data, where)
    try:
        body = {key: value for key, value in data.items() if key not in {"schema", "footer"}}
        certificate = _CONVERTER.structure(body, Certificate)
    except Exception as error:  # cattrs groups its errors; every one of them names its path
        raise SimkitError(
            Problem(
                "certificate-malformed",
                "; ".join(cattrs.transform_error(error, path="certificate", format_exception=_describe)),
                where,
                "the fields of conformance/schemas/certificate.schema.json",
                _RETRY,
            )
        ) from error
    _check_unchanged(data, footer, certificate, where)
    _check_consistent(data, certificate, where)
    return certificate


def _describe(error: BaseException, wanted: type | None) -> str:
    if get_origin(wanted) is Literal:
        return f"none of {', '.join(map(str, get_args(wanted)))}"
    return cattrs.v.format_exception(error, wanted)


def _check_is_one(text: str, where: str) -> None:
    """One that breaks off begins as one all the same; a list is some other JSON, or the head of a file of settings."""
    if text.lstrip()[:1] == "{" or (text.lstrip()[:1] == "[" and _is_json(text)):
        return
    first = next((line for line in text.splitlines() if line.strip()), "")
    what = f"the file begins with {first[:_SHOWN_CHARS]!r}" if first else "the file is empty"
    raise SimkitError(
        Problem(
            "not-a-certificate",
            f"{what}: this is no certificate",
            where,
            f'one whole JSON object with schema "{SCHEMA}" and a footer, as `simkit certify` writes it',
            "certificates are kept in .simkit/certificates unless --out says otherwise",
        )
    )


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _parse_json(text: str, where: str) -> Any:
    try:
        return parse_plain(text)
    except NotPlainError as error:
        raise SimkitError(
            Problem("certificate-malformed", str(error), where, "JSON in which every key occurs once", _RETRY)
        ) from error
    except json.JSONDecodeError as error:
        raise SimkitError(
            Problem(
                "certificate-truncated",
                f"the file breaks off or is not JSON: {error.msg} at line {error.lineno}, column {error.colno}",
                where,
                f'one whole JSON object with schema "{SCHEMA}" and a footer',
                _RETRY,
            )
        ) from error


def _check_schema(data: Any, where: str) -> None:
    found = data.get("schema") if isinstance(data, dict) else None
    if str(found).startswith("simkit/case/"):
        hint = "`simkit replay CASE` runs it again, `simkit explain CASE` tells what is known of it"
        raise SimkitError(Problem("not-a-certificate", "this is a case", where, f'"{SCHEMA}"', hint))
    if found != SCHEMA:
        raise SimkitError(
            Problem(
                "certificate-schema",
                f"schema is {found!r}",
                where,
                f'"{SCHEMA}"',
                "read it with the version of simkit that wrote it, or certify again with this one",
            )
        )


def _check_footer(data: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    footer = data.get("footer")
    if isinstance(footer, dict) and isinstance(footer.get("counts"), dict) and isinstance(footer.get("digest"), str):
        if more := sorted(footer.keys() - {"counts", "digest"}):
            raise SimkitError(
                Problem(
                    "certificate-malformed",
                    f"the footer has {', '.join(more)}",
                    where,
                    "counts and digest only",
                    _RETRY,
                )
            )
        return footer
    raise SimkitError(
        Problem(
            "certificate-unfinished",
            "there is no whole footer, so nothing says that the file is complete",
            where,
            "a footer with counts and digest",
            _RETRY,
        )
    )


def _check_unchanged(data: Mapping[str, Any], footer: Mapping[str, Any], certificate: Certificate, where: str) -> None:
    counts, told = _counts(certificate), {**dict.fromkeys(_LATER, 0), **footer["counts"]}
    if off := [name for name in dict.fromkeys((*counts, *told)) if told.get(name) != counts.get(name)]:
        found = ", ".join(f"{counts.get(name, 'no')} {name}" for name in off)
        stated = ", ".join(f"{told.get(name)} {name}" for name in off)
        raise SimkitError(
            Problem("certificate-altered", f"the file has {found}; its footer says {stated}", where, stated, _RETRY)
        )
    computed = digest({**data, "footer": {"counts": footer["counts"]}})
    if computed != footer["digest"]:
        raise SimkitError(
            Problem(
                "certificate-altered",
                f"the content's digest is {computed[:12]}…; its footer says {footer['digest'][:12]}…",
                where,
                "content and digest that agree",
                _RETRY,
            )
        )


def _check_consistent(data: Mapping[str, Any], certificate: Certificate, where: str) -> None:
    """Is everything in it as it was written, of the right type, and can it all be true together?"""
    read = {key: value for key, value in data.items() if key != "footer"}
    found = [*misread(read, certificate.to_json()), *contradictions(certificate)]
    if found:
        more = f"; and {len(found) - _NAMED_MAX} more" if len(found) > _NAMED_MAX else ""
        raise SimkitError(
            Problem(
                "certificate-inconsistent",
                "; ".join(found[:_NAMED_MAX]) + more,
                where,
                "contents that follow from one another, as `simkit certify` writes them",
                _RETRY,
            )
        )


# ---- what it earns


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
