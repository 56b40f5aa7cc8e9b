"""What `certify` makes of runs can be read back: whatever came of them, nothing in it contradicts the rest."""

from __future__ import annotations

import datetime as dt
import os
import shutil
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import attrs
import pytest

from conformance import certificate as c
from conformance import certificate_file as file
from conformance.campaign import certification, proof, real, subject
from conformance.campaign.judged import Judged
from conformance.events import Emit, Event, Trouble
from conformance.install import Installed
from conformance.mutants import all_mutants
from conformance.store import Store
from conformance.targets import ADAPTERS, parse
from scenarios.interruption import Scenario
from scenarios.obligations import OBLIGATIONS
from scenarios.requirements import DRAFTS, REQUIREMENT_SETS
from scenarios.verdict import Finding, Violation
from simkit.errors import ExitCode, Problem, SimkitError

HELD, NOTHING, SLOW = Finding(9), Finding(), Finding(9, slow=True)
BROKEN = Finding(2, (Violation("stuck", "it was stuck", ()),) * 2)
BLAMED_ONLY = Finding(0, (Violation("torn view", "it was torn", ()),))

#: What each obligation shows in a run, by its place in the catalogue.
OUTCOMES: Mapping[str, Callable[[int], Finding]] = {
    "held": lambda _place: HELD,
    "nothing": lambda _place: NOTHING,
    "mixed": lambda place: (HELD, NOTHING, BROKEN, SLOW, BLAMED_ONLY)[place % 5],
    "mixed otherwise": lambda place: (BROKEN, HELD, HELD)[place % 3],
}


@pytest.fixture
def certified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., c.Certificate]:
    """Certifies the reference runtime by runs that show this."""

    def certify(
        shown: Callable[[int], Finding],
        *,
        uncaught: Sequence[str] = (),
        set_: str | None = None,
        target: str = "reference",
        meanwhile: Callable[[], object] = bool,
        told: Emit = lambda _event: None,
        **odd: Any,
    ) -> Any:
        findings = {id_: shown(place) for place, id_ in enumerate(OBLIGATIONS)}

        def run_all(
            _target: object,
            _python: str,
            scenarios: Sequence[tuple[int | None, Scenario]],
            take: Callable[[Judged], object],
            *_: object,
        ) -> None:
            meanwhile()
            for seed, scenario in scenarios[: odd.pop("runs", 2)]:
                take(attrs.evolve(Judged(scenario.name, seed, findings), **odd))

        caught = {name: None if name in uncaught else "seed 1" for name in all_mutants()}
        monkeypatch.setattr(real, "run_all", run_all)
        monkeypatch.setattr(real, "environment_of", lambda *_: Installed("python", ("toy==1.0",), None, fresh=False))
        monkeypatch.setattr(proof, "prove", lambda *_, **__: proof.Proof(caught))
        return certification.certify(
            target,
            config=None,
            tier="smoke",
            requirements=set_,
            jobs=1,
            store=Store(tmp_path / ".simkit"),
            emit=told,
            stopping=lambda: False,
        )

    return certify


def read_back(certificate: c.Certificate) -> None:
    assert file.parse(file.dump(certificate), "made") == certificate


@pytest.mark.parametrize("set_", [*REQUIREMENT_SETS, *DRAFTS])
@pytest.mark.parametrize("outcome", OUTCOMES)
def test_what_is_certified_is_read_back(certified: Callable[..., c.Certificate], outcome: str, set_: str) -> None:
    """By every requirement set, drafts too."""
    read_back(certified(OUTCOMES[outcome], set_=set_))


def test_surviving_mutants_are_told_by_their_obligation(certified: Callable[..., c.Certificate]) -> None:
    """A certificate says whose they are, and that obligation is not passed."""
    made = certified(OUTCOMES["held"], uncaught=["ack-before-commit"])
    read_back(made)
    assert made.mutants.unproven == ("DUR-1",)
    assert {row.id for row in made.obligations if row.verdict != "pass"} == {"DUR-1"}


@pytest.mark.parametrize(
    "odd",
    [
        {"unsettled": True},
        {"problem": Problem("adapter-silent", "no answer", "adapter.py")},
        {"runs": 0},
    ],
    ids=lambda odd: next(iter(odd)),
)
def test_odd_campaigns_are_read_back_too(certified: Callable[..., c.Certificate], odd: Mapping[str, Any]) -> None:
    """Runs that never ended, that could not be judged, or that were not made at all."""
    shown = OUTCOMES["nothing" if "runs" in odd else "held"]
    made = certified(shown, **odd)
    read_back(made)
    assert all(row.verdict != "pass" for row in made.obligations)


@pytest.mark.parametrize("set_", [*REQUIREMENT_SETS, *DRAFTS])
def test_a_campaign_that_was_cut_short_grants_nothing(certified: Callable[..., c.Certificate], set_: str) -> None:
    """What it left out could have broken what held until then; a file that says otherwise is refused."""
    part, whole = certified(OUTCOMES["held"], set_=set_), certified(OUTCOMES["held"], set_=set_, runs=None)
    assert (part.complete, whole.complete) == (False, True)
    assert all(one.granted for one in whole.profiles)
    assert {row.verdict for row in part.obligations} == {"pass"}
    assert {(one.granted, one.reason) for one in part.profiles} == {(False, "interrupted before everything was judged")}
    read_back(part)
    with pytest.raises(SimkitError, match="certificate-inconsistent"):
        read_back(attrs.evolve(whole, complete=False))


@pytest.fixture
def adapter(tmp_path: Path) -> Path:
    """A copy of an adapter that may be changed, with a setting that is named like a limit."""
    folder = tmp_path / "own"
    shutil.copytree(ADAPTERS / "naive", folder, ignore=shutil.ignore_patterns("__pycache__"))
    text = (folder / "adapter.toml").read_text()
    (folder / "adapter.toml").write_text(f"{text}\n[settings]\nsettle_ms = 1\npool = 2\n")
    return folder


def troubles(events: Sequence[Event]) -> list[str]:
    """What went wrong with a campaign, as often as it was told."""
    return [f"{one.problem.code}: {one.problem.what}" for one in events if isinstance(one, Trouble)]


def test_an_adapter_that_changes_meanwhile_is_not_certified(
    certified: Callable[..., c.Certificate], adapter: Path
) -> None:
    """Its digest would be of something else than what ran; what the harness leaves beside it, or the kit, changes nothing."""

    def leave(name: str) -> None:
        (adapter / name).parent.mkdir(exist_ok=True)
        (adapter / name).write_text("new")

    first = certified(OUTCOMES["held"], target=str(adapter))
    assert any(row.verdict == "pass" for row in first.obligations)
    for name in (".simkit/j", "__pycache__/a.pyc"):
        leave(name)
    second = certified(OUTCOMES["held"], target=str(adapter), meanwhile=lambda: leave("left.log"))
    assert second.subject.digest == first.subject.digest
    assert any(row.verdict == "pass" for row in second.obligations)
    events: list[Event] = []
    third = certified(OUTCOMES["held"], target=str(adapter), meanwhile=lambda: leave("adapter.py"), told=events.append)
    read_back(third)
    assert {row.verdict for row in third.obligations} == {"error", "not-claimed"}
    assert {row.reason for row in third.obligations if row.verdict == "error"} == {"target-changed"}
    assert troubles(events) == ["target-changed: adapter.py of naive: changed while it was certified"]


@pytest.mark.parametrize("odd", ["changed", "silent"])
def test_what_was_seen_broken_stays_broken(certified: Callable[..., c.Certificate], adapter: Path, odd: str) -> None:
    """Whatever could not be judged besides: the violation is in the certificate, and is what decides."""
    if odd == "changed":
        made = certified(
            OUTCOMES["mixed"], target=str(adapter), meanwhile=lambda: (adapter / "adapter.py").write_text("new")
        )
    else:
        made = certified(OUTCOMES["mixed"], problem=Problem("adapter-silent", "no answer", "adapter.py"))
    read_back(made)
    rows = [row for row in made.obligations if row.verdict != "not-claimed"]
    assert all(row.verdict == ("fail" if row.anomalies else "error") for row in rows)
    assert c.judgement(made, dt.date(2026, 1, 1))[0] is ExitCode.VIOLATION


@pytest.mark.parametrize("descriptor", [1, 2])
def test_the_report_is_no_part_of_the_adapter(
    certified: Callable[..., c.Certificate], adapter: Path, descriptor: int
) -> None:
    """Where standard output or error goes into the adapter's folder, it grows all the while."""
    first = certified(OUTCOMES["held"], target=str(adapter))
    before = os.dup(descriptor)
    try:
        with (adapter / "report.txt").open("w") as report:
            os.dup2(report.fileno(), descriptor)
            second = certified(
                OUTCOMES["held"], target=str(adapter), meanwhile=lambda: os.write(descriptor, b"FAIL DUR-1\n")
            )
    finally:
        os.dup2(before, descriptor)
        os.close(before)
    assert (adapter / "report.txt").read_text() == "FAIL DUR-1\n"
    assert second.subject.digest == first.subject.digest
    assert any(row.verdict == "pass" for row in second.obligations)


def test_the_digest_is_of_names_too(tmp_path: Path) -> None:
    """The same bytes in another place, or cut at another place, are another adapter."""
    digests: list[dict[str, str]] = []
    for files in ({"a/x": "12", "b/x": "3"}, {"a/x": "1", "b/x": "23"}, {"b/x": "12", "c/x": "3"}):
        folder = tmp_path / str(len(digests))
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True)
            (folder / name).write_text(text)
        digests.append(subject.adapter_bytes(folder, tmp_path / "store"))
    assert len({str(one) for one in digests}) == 3


def test_the_store_is_no_part_of_an_adapter(adapter: Path, tmp_path: Path) -> None:
    """However its path is written."""
    names = list(subject.adapter_bytes(adapter, tmp_path / "elsewhere"))
    (adapter / "kept" / "cases").mkdir(parents=True)
    (adapter / "kept" / "cases" / "1.json").touch()
    (tmp_path / "link").symlink_to(adapter)
    for store in (adapter / "kept", tmp_path / "link" / "kept", adapter / ".." / adapter.name / "kept"):
        assert list(subject.adapter_bytes(adapter, store)) == names


def test_a_file_that_nobody_may_read_is_known_by_its_name(adapter: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends no campaign, and is no file of the store that could not be written."""
    read = Path.read_bytes

    def refused(path: Path) -> bytes:
        if path.name == "secret":
            raise PermissionError(13, "Permission denied")
        return read(path)

    (adapter / "secret").touch()
    monkeypatch.setattr(Path, "read_bytes", refused)
    assert subject.adapter_bytes(adapter, adapter / "store")["secret"] == "unreadable: Permission denied"


def test_the_digest_is_of_the_sources_that_the_manifest_names(
    certified: Callable[..., c.Certificate], adapter: Path, tmp_path: Path
) -> None:
    """A harness that is changed is another subject, wherever it lies; one that changes meanwhile is not certified."""
    source = tmp_path / "mine" / "engine.py"
    source.parent.mkdir()
    (tmp_path / "settings.ini").write_text("a = 1")
    manifest = adapter / "adapter.toml"
    manifest.write_text(manifest.read_text() + '\n[install]\nsources = ["../mine", "../settings.ini"]\n')
    digests = []
    for text in ("old", "new"):
        source.write_text(text)
        digests.append(certified(OUTCOMES["held"], target=str(adapter)).subject.digest)
    assert len(set(digests)) == 2
    events: list[Event] = []
    certified(OUTCOMES["held"], target=str(adapter), meanwhile=lambda: source.write_text("newer"), told=events.append)
    certified(OUTCOMES["held"], target=str(adapter), meanwhile=(tmp_path / "settings.ini").unlink, told=events.append)
    assert troubles(events) == [
        f"target-changed: ../{name} of naive: changed while it was certified"
        for name in ("mine/engine.py", "settings.ini")
    ]
    with pytest.raises(SimkitError, match=r"source-missing.*settings\.ini"):
        certified(OUTCOMES["held"], target=str(adapter))


def test_settings_hide_no_limit(certified: Callable[..., c.Certificate], adapter: Path) -> None:
    """The limits stated are those that were kept to, whatever the manifest calls its settings."""
    settings = certified(OUTCOMES["held"], target=str(adapter)).environment.settings
    assert (settings["settle_ms"], settings["pool"]) == (parse(str(adapter)).manifest.limits.settle_ms, 2)


def test_a_proof_is_of_one_build(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Another manifest, another Python or another library may let a mutant go: what was proven without them counts no more."""
    package = types.ModuleType("package")
    package.__file__ = str(tmp_path / "package" / "__init__.py")
    (tmp_path / "package").mkdir()
    monkeypatch.setattr(proof, "_PACKAGES", (package,))
    found = [proof.build_digest()]
    (tmp_path / "package" / "adapter.toml").write_text("[limits]")
    found.append(proof.build_digest())
    monkeypatch.setattr(sys, "version", "3.99")
    found.append(proof.build_digest())
    monkeypatch.setattr(metadata, "version", lambda name: f"of {name}")
    found.append(proof.build_digest())
    assert len(set(found)) == 4
