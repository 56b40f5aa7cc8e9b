"""Certificates: whole and unchanged or refused; the exit code they earn."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import attrs
import jsonschema
import pytest

from conformance import certificate as c
from scenarios.requirements import REQUIREMENT_SETS
from simkit.errors import ExitCode, SimkitError
from tests.report_samples import certificate

EXCUSED = "all 1 claimed obligations judged, 0 held, 1 known deviations"
TODAY = dt.date(2026, 2, 1)
#: Written by a build that knew requirement set 2026.1 only.
EARLIER = Path(__file__).parent / "certificate-2026.1.json"
SCHEMA = json.loads((resources.files("conformance") / "schemas" / "certificate.schema.json").read_text())


def refused(text: str) -> str:
    """The error a text gets when read as a certificate."""
    with pytest.raises(SimkitError) as caught:
        c.parse(text, "toy.json")
    return str(caught.value)


def changed(change: Callable[[dict[str, Any]], object]) -> str:
    """The sample certificate's text after `change`."""
    data = json.loads(c.dump(certificate()))
    change(data)
    return json.dumps(data)


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    """A certificate survives its file, and equal certificates are equal byte for byte."""
    path = tmp_path / "new" / "folder" / "toy.json"
    c.write(certificate(), path)
    assert c.load(path) == certificate()
    assert path.read_text() == c.dump(certificate())
    assert [file.name for file in path.parent.iterdir()] == ["toy.json"]


def test_the_file_matches_the_shipped_schema() -> None:
    """Readers may rely on the schema."""
    data = json.loads(c.dump(certificate()))
    jsonschema.Draft202012Validator(SCHEMA).validate(data)
    del data["footer"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(SCHEMA).validate(data)


def test_a_certificate_of_an_earlier_set_is_still_good() -> None:
    """One that was written before there were uncovered promises is taken as it is, fits the schema, and says which set it is
    for; an alteration of it is found out.
    """
    text = EARLIER.read_text()
    read = c.parse(text, "earlier.json")
    assert (read.kit.requirements, read.kit.digest) == ("2026.1", REQUIREMENT_SETS["2026.1"].digest)
    assert [one.uncovered for one in read.profiles] == [(), ()]
    assert c.judgement(read, TODAY) == (ExitCode.PASSED, "all 1 claimed obligations judged, 1 held")
    jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(text))
    assert "certificate-altered" in refused(text.replace('"verdict": "not-claimed"', '"verdict": "not-covered"'))


def test_every_truncation_is_refused() -> None:
    """A file that breaks off anywhere is refused (only the last line end may be missing)."""
    text = c.dump(certificate())
    for length in range(0, len(text) - 1, 7):
        assert "error[certificate-truncated]" in refused(text[:length])
    assert c.parse(text[:-1], "toy.json") == certificate()


BAD: dict[str, Callable[[dict[str, Any]], object]] = {
    "no-footer": lambda data: data.pop("footer"),
    "footer-without-digest": lambda data: data["footer"].pop("digest"),
    "other-schema": lambda data: data.update(schema="simkit/certificate/9"),
    "counts-off": lambda data: data["obligations"].pop(),
    "counts-edited-too": lambda data: (data["cases"].clear(), data["footer"]["counts"].update(cases=0)),
    "verdict-edited": lambda data: data["subject"].update(version="2.0"),
    "field-missing": lambda data: data["subject"].pop("version"),
    "field-unknown": lambda data: data["kit"].update(licence="x"),
    "wrong-type": lambda data: data.update(runs="many"),
}


@pytest.mark.parametrize("name", BAD)
def test_an_altered_file_is_refused(name: str, snapshot: Any) -> None:
    """Every way to alter a certificate gets an error that names what, where, what was expected and what to do."""
    assert refused(changed(BAD[name])) == snapshot


def test_json_that_is_no_object_is_refused() -> None:
    """A list is not a certificate."""
    assert "error[certificate-schema]: schema is None" in refused("[]")


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    """A path that leads nowhere is told as such."""
    with pytest.raises(SimkitError, match="certificate-missing"):
        c.load(tmp_path / "nowhere.json")


def row(verdict: str, level: str = "MUST", id_: str = "DUR-3") -> c.ObligationRow:
    """One row with this verdict."""
    anomalies = ("recomputed",) if verdict == "fail" else ()
    return c.ObligationRow(id_, level, verdict, 3, 3, "00", anomalies=anomalies)  # type: ignore[arg-type]


def deviation(expiry: str) -> c.Deviation:
    """A known deviation of DUR-3."""
    return c.Deviation("DUR-3", "issue 7", expiry)


@pytest.mark.parametrize(
    ("rows", "deviations", "code", "reason"),
    [
        ([row("pass")], [], ExitCode.PASSED, "all 1 claimed obligations judged, 1 held"),
        ([row("fail"), row("error")], [], ExitCode.VIOLATION, "violated: DUR-3 recomputed"),
        ([row("pass"), row("error")], [], ExitCode.TARGET, "kit or adapter broke protocol: DUR-3"),
        ([row("pass"), row("inconclusive")], [], ExitCode.INCONCLUSIVE, "inconclusive: DUR-3"),
        ([row("not-claimed")], [], ExitCode.NOTHING_SELECTED, "no claimed obligation was judged"),
        ([row("not-covered")], [], ExitCode.NOTHING_SELECTED, "no claimed obligation was judged"),
        (
            [row("pass"), row("not-covered", id_="OWN-6")],
            [],
            ExitCode.PASSED,
            "all covered obligations judged, 1 held; not covered by the process world: OWN-6",
        ),
        ([row("inconclusive"), row("not-covered", id_="OWN-6")], [], ExitCode.INCONCLUSIVE, "inconclusive: DUR-3"),
        ([], [], ExitCode.NOTHING_SELECTED, "no claimed obligation was judged"),
        (
            [row("pass"), row("fail", "SHOULD", "DUR-13")],
            [],
            ExitCode.PASSED,
            "all 1 claimed obligations judged, 1 held",
        ),
        (
            [row("fail")],
            [deviation("2026-02-01")],
            ExitCode.PASSED,
            "all 1 claimed obligations judged, 0 held, 1 known deviations",
        ),
        ([row("fail")], [deviation("2026-01-31")], ExitCode.VIOLATION, "violated: DUR-3 recomputed"),
        ([row("pass")], [deviation("2026-02-01")], ExitCode.VIOLATION, "stale deviation: DUR-3 (2026-02-01)"),
        ([row("fail")], [deviation("soon")], ExitCode.VIOLATION, "violated: DUR-3 recomputed"),
    ],
)
def test_the_exit_code_it_earns(
    rows: list[c.ObligationRow], deviations: list[c.Deviation], code: ExitCode, reason: str
) -> None:
    """MUST rows decide, worst first; a known deviation excuses its violation until it is stale."""
    judged = certificate(obligations=tuple(rows), deviations=tuple(deviations))
    assert c.judgement(judged, TODAY) == (code, reason)


def test_an_interrupted_campaign_never_passes() -> None:
    """What was not judged is not passed."""
    part = attrs.evolve(certificate(), complete=False)
    assert c.judgement(part, TODAY) == (ExitCode.INCONCLUSIVE, "interrupted before everything was judged")
