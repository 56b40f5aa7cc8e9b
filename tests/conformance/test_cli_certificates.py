"""`simkit verify`, and what `explain` and `replay` say of a certificate."""

from __future__ import annotations

import datetime as dt
import json
import shutil
from pathlib import Path
from typing import Any

import attrs
import pytest

from conformance import certificate as c
from conformance import certificate_file as file
from conformance import cli
from conformance import events as e
from conformance.reporters import wording
from scenarios.requirements import REQUIREMENT_SETS
from simkit.errors import worst
from tests.report_samples import certificate

TODAY = dt.datetime.now(dt.UTC).date()
EARLIER = Path(__file__).parent / "certificate-2026.1.json"


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    path = tmp_path / "toy.json"
    file.write(certificate(), path)
    return path


def test_a_certificate_is_checked_and_shown(kept: Path, capsys: Any) -> None:
    """Its table, what it grants, of which durability; and the exit code that it states, an earlier set's included."""
    shutil.copy(EARLIER, kept)
    stated, reason = c.judgement(file.load(kept), TODAY)
    assert cli.main(["verify", str(kept), "--format", "plain"]) == int(stated)
    out = capsys.readouterr().out
    assert "whole and unchanged: digest " + json.loads(kept.read_text())["footer"]["digest"] in out
    assert "durability   process kill; power loss was not tried" in out
    assert all(row.id in out for row in file.load(kept).obligations if row.verdict != "not-claimed")
    assert out.endswith(f"exit {int(stated)}: {reason}\n")


def test_a_refusal_tells_how_much_of_a_profile_is_not_claimed(kept: Path, capsys: Any) -> None:
    """Of a product that promises three of its promises, and keeps them, nobody is told that none is claimed."""
    told = ("DUR-1", "DUR-2", "DUR-3")
    rows = tuple(
        row
        if row.verdict == "not-claimed" or row.id in told
        else attrs.evolve(row, verdict="not-claimed", exercised=0, observed="nothing", evidence="00fe")
        for row in certificate().obligations
    )
    demands = REQUIREMENT_SETS["2026.1"].requirements
    every = [one.id for one in demands if one.profile == "Durable" and one.level == "MUST"]
    reason = "; ".join(f"{id_} not-claimed" for id_ in every if id_ not in told)
    made = certificate(
        claims=tuple(c.Claim(id_, "kept", "the docstring") for id_ in told),
        obligations=rows,
        profiles=(c.Profile("Durable", granted=False, reason=reason),),
    )
    file.write(made, kept)
    assert cli.main(["verify", str(kept), "--format", "plain"]) == int(c.judgement(made, TODAY)[0])
    assert f"Durable: {len(every) - 3} of its {len(every)} promises are not claimed\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ('"verdict": "pass"', '"verdict": "fail"', "certificate-altered"),
        ("simkit/certificate/1", "simkit/certificate/9", "certificate-schema"),
        ('"tier"', '"teir"', "certificate-malformed"),
    ],
)
@pytest.mark.parametrize("command", ["verify", "explain"])
def test_a_certificate_that_was_changed_is_refused(
    kept: Path, capsys: Any, command: str, old: str, new: str, code: str
) -> None:
    """It is told for what it is by both, never for a case of another version."""
    text = kept.read_text()
    assert old in text
    kept.write_text(text.replace(old, new))
    assert cli.main([command, str(kept), "--format", "plain"]) == 2
    assert code in capsys.readouterr().err


@pytest.mark.parametrize("command", ["verify", "explain"])
def test_a_certificate_that_breaks_off_is_refused(kept: Path, capsys: Any, command: str) -> None:
    """Its keys are sorted, so what is left of it shows no schema; it is known by how it begins."""
    kept.write_text(kept.read_text()[:300])
    assert cli.main([command, str(kept), "--format", "plain"]) == 2
    assert "certificate-truncated" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "the file is empty: this is no certificate"),
        ("\n# of mine\nprotocol = 1\n", "the file begins with '# of mine': this is no certificate"),
        ('{"schema": "simkit/case/2"}', "this is a case"),
    ],
)
def test_what_is_no_certificate_is_told_as_that(tmp_path: Path, capsys: Any, text: str, told: str) -> None:
    """An empty file and a manifest do not break off: they have never been one."""
    (tmp_path / "other").write_text(text)
    assert cli.main(["verify", str(tmp_path / "other"), "--format", "plain"]) == 2
    assert f"error[not-a-certificate]: {told}\n" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["plain", "pretty"])
def test_several_certificates_are_checked_at_once(kept: Path, tmp_path: Path, capsys: Any, kind: str) -> None:
    """Each is shown with its own table; the exit code is the one that outranks the others, and a bad one hides none."""
    stated = {path: c.judgement(file.load(path), TODAY)[0] for path in (kept, EARLIER)}
    assert cli.main(["verify", str(kept), str(EARLIER), "--format", kind]) == int(worst([*stated.values()]))
    out = capsys.readouterr().out
    assert out.count("whole and unchanged: digest") == 2
    assert out.count("exercised a/b") == 2
    assert "2 of 2 are whole and unchanged" in " ".join(out.split())
    (tmp_path / "none.json").touch()
    assert cli.main(["verify", str(tmp_path / "none.json"), str(EARLIER), "--format", kind]) == 2
    told = capsys.readouterr()
    assert "whole and unchanged: digest" in told.out
    assert "none.json" in told.err
    failed = attrs.evolve(certificate(), deviations=(c.Deviation("DUR-3", "known", "2026-01-01"),))
    file.write(failed, kept)
    assert cli.main(["verify", str(tmp_path / "none.json"), str(kept), str(EARLIER), "--format", kind]) == 1


def test_something_has_to_be_verified(capsys: Any) -> None:
    """As a glob that matches nothing leaves it."""
    assert cli.main(["verify"]) == 2
    assert "error[certificate-missing]: no certificate was named" in capsys.readouterr().err


def test_a_deviation_that_has_expired_since_is_told(tmp_path: Path, capsys: Any) -> None:
    """What was excused when it was made is not excused for ever."""
    excused = attrs.evolve(certificate(), deviations=(c.Deviation("DUR-3", "known", "2026-01-01"),))
    file.write(excused, tmp_path / "old.json")
    assert cli.main(["verify", str(tmp_path / "old.json"), "--format", "plain"]) == 1
    assert c.judgement(excused, TODAY)[1] in capsys.readouterr().out


def test_explain_says_what_a_certificate_is_and_replay_that_it_is_no_case(kept: Path, capsys: Any) -> None:
    """Both point to `verify`."""
    assert cli.main(["explain", str(kept), "--format", "plain"]) == 0
    assert f"simkit verify {kept}" in capsys.readouterr().out
    assert cli.main(["replay", str(kept), "--format", "plain"]) == 2
    assert f"simkit verify {kept}" in capsys.readouterr().err


@pytest.mark.parametrize("durability", ["kill", "power", "never-corrupt"])
def test_every_class_of_durability_is_told_in_words(durability: str) -> None:
    """What was tried, and what was not."""
    told = dict(wording.certified(e.Certified("toy", "ab", durability=durability)))["durability"]
    assert told.startswith("process kill")
    assert ("power loss was not tried" in told) == (durability == "kill")
