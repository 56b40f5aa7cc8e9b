"""A certificate as events: what `certify` says of the one it made, and `verify` and `explain` of one that was kept."""

from __future__ import annotations

import datetime as dt
import json
from typing import TYPE_CHECKING

from conformance import events as e
from conformance import invocation
from conformance.certificate import judgement
from conformance.certificate_file import load
from conformance.cli.session import short
from conformance.recomputed import demanded_by
from scenarios.verdict import Verdict
from simkit.errors import SimkitError, worst

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from conformance.certificate import Certificate, ObligationRow
    from conformance.cli.session import Done, Session


def keep(session: Session, certificate: Certificate, out: Path | None) -> Done:
    """Write the certificate that was made and tell it; what it earns."""
    path = ""
    try:
        path = short(session.store.save_certificate(certificate, out))
    except SimkitError as error:
        session.trouble(error.problem)
    session.emit(certified(certificate, path))
    return judgement(certificate, dt.datetime.now(dt.UTC).date())


def verify(session: Session, paths: Sequence[Path]) -> Done:
    """Check and tell certificates one by one; what they earn together. One that is refused keeps none from being told."""
    earned: list[tuple[Path, Done]] = []
    for path in paths:
        try:
            certificate = load(path)
        except SimkitError as error:
            session.trouble(error.problem)
            continue
        for event in told(certificate, path):
            session.emit(event)
        earned.append((path, judgement(certificate, dt.datetime.now(dt.UTC).date())))
    code = worst([code for _, (code, _) in earned])
    if len(paths) == 1:
        return code, "".join(reason for _, (_, reason) in earned)
    named = [f"{path}: {reason}" for path, (one, reason) in earned if one is code]
    return code, f"{len(earned)} of {len(paths)} are whole and unchanged; {'; '.join(named)}".rstrip("; ")


def certified(certificate: Certificate, path: str, digest: str = "") -> e.Certified:
    """What it grants and refuses. `path`: where it is, empty where it could not be written; `digest`: of the file, where it is
    another than this build would write: that of an earlier one has fewer counts.
    """
    return e.Certified(
        subject=f"{certificate.subject.name} {certificate.subject.version} {certificate.subject.configuration}",
        digest=digest or str(certificate.to_json()["footer"]["digest"]),
        path=path,
        granted=tuple(one.name for one in certificate.profiles if one.granted),
        refused={one.name: one.reason for one in certificate.profiles if not one.granted},
        uncovered={one.name: one.uncovered for one in certificate.profiles if one.granted and one.uncovered},
        mutants_caught=certificate.mutants.caught,
        mutants_total=certificate.mutants.total,
        durability=certificate.durability,
        demanded=demanded_by(certificate),
    )


def told(certificate: Certificate, path: Path) -> Iterator[e.Event]:
    """Everything a checked certificate states: of what, by whom, its table, what it grants."""
    digest = str(json.loads(path.read_text(encoding="utf-8"))["footer"]["digest"])
    yield e.Noted(f"{_title(certificate)}\n{_origin(certificate)}\nwhole and unchanged: digest {digest}")
    for row in certificate.obligations:
        yield e.VerdictReached(_verdict(row), row.name, row.level)
    yield certified(certificate, str(path), digest)


def explained(path: Path) -> e.Explained:
    """What a certificate says, in short. Raises `SimkitError` when it is truncated, altered or of another schema."""
    certificate = load(path)
    code, reason = judgement(certificate, dt.datetime.now(dt.UTC).date())
    sections = {
        "certified": f"{_title(certificate)}\n{_origin(certificate)}",
        "states": f"exit {int(code)}: {reason}",
        "granted": ", ".join(one.name for one in certificate.profiles if one.granted) or "no profile",
        "check it": invocation.line("verify", str(path)),
    }
    return e.Explained("certificate", str(path), certificate.subject.name, sections)


def _title(certificate: Certificate) -> str:
    subject = certificate.subject
    return (
        f"{subject.name} {subject.version} ({subject.configuration}, {subject.storage}) at tier {certificate.tier} "
        f"in the {certificate.world} world, {certificate.runs} runs"
    )


def _origin(certificate: Certificate) -> str:
    issued = f", issued {certificate.issued}" if certificate.issued else ""
    whole = "" if certificate.complete else "; interrupted, so it says only what was judged until then"
    return f"by simkit {certificate.kit.version}, requirement set {certificate.kit.requirements}{issued}{whole}"


def _verdict(row: ObligationRow) -> Verdict:
    return Verdict(row.id, row.verdict, row.exercised, row.minimum, row.reason, row.observed, row.anomalies)
