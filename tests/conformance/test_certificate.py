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
from conformance import certificate_file as file
from conformance.files import digest
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
        file.parse(text, "toy.json")
    return str(caught.value)


def changed(change: Callable[[dict[str, Any]], object]) -> str:
    """The sample certificate's text after `change`."""
    data = json.loads(file.dump(certificate()))
    change(data)
    return json.dumps(data)


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    """A certificate survives its file, and equal certificates are equal byte for byte."""
    path = tmp_path / "new" / "folder" / "toy.json"
    file.write(certificate(), path)
    assert file.load(path) == certificate()
    assert path.read_text() == file.dump(certificate())
    assert [one.name for one in path.parent.iterdir()] == ["toy.json"]


def test_the_file_matches_the_shipped_schema() -> None:
    """Readers may rely on the schema."""
    data = json.loads(file.dump(certificate()))
    jsonschema.Draft202012Validator(SCHEMA).validate(data)
    del data["footer"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(SCHEMA).validate(data)


def test_a_certificate_of_an_earlier_set_is_still_good() -> None:
    """One that was written before there were uncovered promises is taken as it is, fits the schema, and says which set it is
    for; an alteration of it is found out.
    """
    text = EARLIER.read_text()
    read = file.parse(text, "earlier.json")
    assert (read.kit.requirements, read.kit.digest) == ("2026.1", REQUIREMENT_SETS["2026.1"].digest)
    assert [(one.name, one.uncovered) for one in read.profiles] == [("Durable", ())]
    assert c.judgement(read, TODAY) == (ExitCode.PASSED, "all 9 claimed obligations judged, 9 held")
    jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(text))
    assert "certificate-altered" in refused(text.replace('"verdict": "not-claimed"', '"verdict": "not-covered"'))


def test_every_truncation_is_refused() -> None:
    """A file that breaks off anywhere is refused (only the last line end may be missing)."""
    text = file.dump(certificate())
    assert "error[not-a-certificate]: the file is empty" in refused("")
    for length in range(1, len(text) - 1, 7):
        assert "error[certificate-truncated]" in refused(text[:length])
    assert file.parse(text[:-1], "toy.json") == certificate()


BAD: dict[str, Callable[[dict[str, Any]], object]] = {
    "no-footer": lambda data: data.pop("footer"),
    "footer-without-digest": lambda data: data["footer"].pop("digest"),
    "other-schema": lambda data: data.update(schema="simkit/certificate/9"),
    "counts-off": lambda data: data["obligations"].pop(),
    "counts-edited-too": lambda data: (data["cases"].clear(), data["footer"]["counts"].update(cases=0)),
    "verdict-edited": lambda data: data["subject"].update(version="2.0"),
    "field-missing": lambda data: data["subject"].pop("version"),
    "footer-with-more": lambda data: data["footer"].update(signed="yes"),
    "count-unknown": lambda data: data["footer"]["counts"].update(bogus=7),
    "field-unknown": lambda data: data["kit"].update(licence="x"),
    "wrong-type": lambda data: data.update(runs="many"),
}


@pytest.mark.parametrize("name", BAD)
def test_an_altered_file_is_refused(name: str, snapshot: Any) -> None:
    """Every way to alter a certificate gets an error that names what, where, what was expected and what to do."""
    assert refused(changed(BAD[name])) == snapshot


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ('"world": "process"', '"world": "simulated", "world": "process"', "the key 'world' occurs more than once"),
        ('"runs": 12', '"runs": NaN', "NaN is no JSON"),
        ('"runs": 12', '"runs": ' + '{"a":' * 100_000, "it is nested too deeply"),
    ],
)
def test_what_readers_may_take_in_two_ways_is_refused(old: str, new: str, what: str) -> None:
    """Most readers take the last of two equal keys, and some the first: a certificate has each once, and plain numbers."""
    text = json.dumps(certificate().to_json())
    assert old in text
    told = refused(text.replace(old, new))
    assert "error[certificate-malformed]" in told
    assert what in told


def resealed(change: Callable[[dict[str, Any]], object]) -> str:
    """The sample's text after `change`, with counts and digest made anew: as by somebody who edits it and knows how."""
    data = json.loads(file.dump(certificate()))
    change(data)
    counts = data["footer"]["counts"]
    for name in counts:
        rows = [row for row in data["obligations"] if row["verdict"] == name]
        counts[name] = len(data[name]) if isinstance(data.get(name), list) else data.get(name, len(rows))
    data["footer"]["digest"] = digest({**data, "footer": {"counts": counts}})
    return json.dumps(data)


def set_row(id_: str, **fields: Any) -> Callable[[dict[str, Any]], object]:
    """Changes fields of one row."""
    return lambda data: next(row for row in data["obligations"] if row["id"] == id_).update(fields)


#: What cannot be true, each with what is said of it.
IMPOSSIBLE: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "pass without evidence": (
        set_row("DUR-1", exercised=0, observed="nothing"),
        "DUR-1: pass, exercised 0 times of at least 3",
    ),
    "pass exercised too seldom": (set_row("DUR-1", exercised=2), "DUR-1: pass, exercised 2 times of at least 3"),
    "exercised more often than seen": (
        set_row("DUR-1", exercised=40),
        "DUR-1: pass, and the evidence is not that of 40 times",
    ),
    "pass over a violation": (set_row("DUR-1", observed="violated"), "DUR-1: observed violated, though"),
    "pass over an anomaly": (
        set_row("DUR-1", observed="violated", anomalies=["stuck"]),
        "DUR-1: pass, though it shows stuck",
    ),
    "fail without an anomaly": (set_row("DUR-1", verdict="fail"), "DUR-1: fail, and no anomaly is named"),
    "inconclusive over a violation": (
        set_row("DUR-1", verdict="inconclusive", observed="violated", anomalies=["stuck"]),
        "DUR-1: inconclusive, though it shows stuck",
    ),
    "not covered and exercised": (
        set_row("DUR-1", verdict="not-covered"),
        "DUR-1: not-covered, though it was exercised 4",
    ),
    "minimum lowered": (
        set_row("DUR-1", minimum=1),
        "DUR-1: MUST, at least 1 times; requirement set 2026.1 says MUST, at least 3",
    ),
    "level lowered": (
        set_row("DUR-1", level="SHOULD"),
        "DUR-1: SHOULD, at least 3 times; requirement set 2026.1 says MUST",
    ),
    "granted over a row that failed": (
        set_row("DUR-1", verdict="fail", observed="violated", anomalies=["amnesia"]),
        "profile Durable: granted; by the rows it is refused (DUR-1 fail)",
    ),
    "refused though all passed": (
        lambda data: data["profiles"][0].update(granted=False, reason="DUR-1 fail"),
        "profile Durable: refused (DUR-1 fail); by the rows it is granted",
    ),
    "a profile nobody claims": (
        lambda data: data["profiles"].append({"name": "Effects", "granted": True, "reason": "", "uncovered": []}),
        "profile Effects: granted; by the rows it is not spoken of",
    ),
    "a profile left out": (
        lambda data: data["profiles"].clear(),
        "profile Durable: not spoken of; by the rows it is granted",
    ),
    "passes without claims": (lambda data: data["claims"].clear(), "DUR-1: pass, though the claims do not cover it"),
    "claimed and not judged": (
        set_row("DUR-1", verdict="not-claimed"),
        "DUR-1: not-claimed, though the claims cover it",
    ),
    "a row twice": (lambda data: data["obligations"].append(data["obligations"][0]), "the row DUR-1 is there 2 times"),
    "a row left out": (
        lambda data: data["obligations"].pop(),
        "EFF-1: requirement set 2026.1 demands it, and there is no row of it",
    ),
    "a claim twice": (lambda data: data["claims"].append(data["claims"][0]), "the claim Durable is there 2 times"),
    "hardly any mutant caught": (
        lambda data: data["mutants"].update(caught=1, total=219),
        "9 obligations passed, each proven",
    ),
    "more caught than there are": (lambda data: data["mutants"].update(caught=31), "31 of 30 mutants were caught"),
    "nobody knows which survived": (
        lambda data: data["mutants"].update(caught=29),
        "1 mutants were not caught, and no",
    ),
    "pass though unproven": (
        lambda data: data["mutants"].update(caught=29, unproven=["DUR-1"]),
        "DUR-1: pass, though its mutants were not caught",
    ),
    "no runs": (lambda data: data.update(runs=0), "0 runs, in which DUR-1 was exercised"),
    "another set under its name": (
        lambda data: data["kit"].update(digest="cd34"),
        "requirement set 2026.1 has the digest",
    ),
    "power lost by real processes": (
        lambda data: data.update(world="process", durability="power"),
        "real processes are killed, and never lose power: nothing of power is seen of them",
    ),
    "no date": (lambda data: data.update(issued="soon"), "issued 'soon', which is no date"),
    "a number as text": (set_row("DUR-1", exercised="4"), 'obligations[0].exercised is "4", read as 4'),
    "a broken number": (set_row("DUR-1", exercised=4.5), "obligations[0].exercised is 4.5, read as 4"),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_contents_that_cannot_be_true_together_are_refused(name: str) -> None:
    """The digest is right, so it is no damage: what a certificate states must follow from its own rows and claims."""
    change, what = IMPOSSIBLE[name]
    told = refused(resealed(change))
    assert "error[certificate-inconsistent]" in told
    assert what in told


def test_resealing_by_itself_changes_nothing() -> None:
    """What the cases above change is what they are refused for."""
    assert file.parse(resealed(lambda _data: None), "toy.json") == certificate()


def test_profiles_of_a_set_that_nobody_knows_are_still_held_against_their_rows() -> None:
    """A draft, or a set of a later build: its minimums are not known here, and what failed is granted by none."""

    def unknown(data: dict[str, Any]) -> None:
        data["kit"].update(requirements="2031.1 (draft)", digest="cd34")

    def failed(data: dict[str, Any]) -> None:
        unknown(data)
        set_row("DUR-1", verdict="fail", observed="violated", anomalies=["amnesia"])(data)

    assert file.parse(resealed(unknown), "toy.json").kit.requirements == "2031.1 (draft)"
    assert "profile Durable: granted, though DUR-1 did not pass" in refused(resealed(failed))


def test_json_that_is_no_object_is_refused() -> None:
    """A list is not a certificate."""
    assert "error[certificate-schema]: schema is None" in refused("[]")


def test_a_file_of_settings_did_not_break_off() -> None:
    """It begins with a bracket, too, and nothing of it is missing."""
    assert "error[not-a-certificate]: the file begins with '[build-system]'" in refused(
        '[build-system]\nrequires = ["x"]\n'
    )


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    """A path that leads nowhere is told as such."""
    with pytest.raises(SimkitError, match="certificate-missing"):
        file.load(tmp_path / "nowhere.json")


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
