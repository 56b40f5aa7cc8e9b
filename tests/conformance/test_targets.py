"""Targets: names, versions and paths that lead to an adapter, and what is said when they do not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from conformance.targets import ADAPTERS, HELPER, parse, shipped
from simkit.errors import ExitCode, SimkitError

MANIFEST = """
protocol = 1
[harness]
name = "{name}"
version = "1.0"
storage = "file"
configuration = "safe"
[install]
pip = {pip}
[configurations.safe]
env = {{ MODE = "safe", A = "1" }}
[configurations.fast]
[units.worker]
command = ["{{python}}", "adapter.py"]
control = true
env = {{ A = "2" }}
"""


@pytest.fixture
def adapters(tmp_path: Path) -> Path:
    """A folder with two adapters: `mine`, which has releases, and `plain`, which needs no installation."""
    for name, pip in (("mine", '["mine=={version}", "other"]'), ("plain", "[]")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "adapter.toml").write_text(MANIFEST.format(name=name, pip=pip), encoding="utf-8")
    return tmp_path


def refuse(text: str, adapters: Path, configuration: str | None = None) -> str:
    with pytest.raises(SimkitError) as caught:
        parse(text, configuration, adapters=adapters)
    assert caught.value.problem.exit_code is ExitCode.USAGE
    return str(caught.value)


def test_a_name_and_a_version(adapters: Path) -> None:
    """A name takes the manifest's version and configuration; `==` takes another version; both are recorded."""
    target = parse("mine", adapters=adapters)
    assert (target.title, target.requirements) == ("mine 1.0 (safe)", ("mine==1.0", "other"))
    target = parse("mine==2.3.1rc1", "fast", adapters=adapters)
    assert (target.title, target.requirements[0]) == ("mine 2.3.1rc1 (fast)", "mine==2.3.1rc1")
    assert target.describe()["version"] == "2.3.1rc1"
    assert target.describe()["limits"]["call_timeout_ms"] == 1000


def test_a_configuration_behind_a_colon(adapters: Path) -> None:
    """It is the same target as with --config, which may say the same once more and nothing else."""
    for text, option in (("mine:fast", None), ("mine:fast", "fast"), ("mine", "fast")):
        assert parse(text, option, adapters=adapters) == parse("mine", "fast", adapters=adapters)
    assert parse("mine==2.0:fast", adapters=adapters).title == "mine 2.0 (fast)"
    assert "configuration-twice" in refuse("mine:fast", adapters, "safe")
    assert "no configuration 'fsat' (did you mean 'fast'?)" in refuse("mine:fsat", adapters)


def test_a_path(adapters: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A manifest's path, also under another name, and the folder that holds one lead to the same adapter."""
    own = adapters / "mine"
    (own / "other.toml").write_text(MANIFEST.format(name="second", pip="[]"), encoding="utf-8")
    assert parse(str(own / "adapter.toml"), adapters=tmp_path / "none").folder == own
    assert parse(str(own), adapters=tmp_path / "none").name == "mine"
    assert parse(str(own / "other.toml"), adapters=tmp_path / "none").name == "second"
    monkeypatch.chdir(own)
    assert parse("./adapter.toml", adapters=tmp_path / "none").folder == own


def test_how_a_unit_is_started(adapters: Path) -> None:
    """Command and environment are filled in: the interpreter, the helper's folder, the configuration, the unit's own."""
    target = parse("mine", adapters=adapters)
    assert target.command("worker") == (sys.executable, "adapter.py")
    assert target.command("worker", "/env/bin/python")[0] == "/env/bin/python"
    environment = target.environment("worker")
    assert environment["PYTHONPATH"] == str(HELPER)
    assert environment["SIMKIT_CONFIGURATION"] == "safe"
    assert (environment["MODE"], environment["A"]) == ("safe", "2")


def test_a_lock_file_belongs_to_its_version(adapters: Path) -> None:
    """Versions are pinned by a file beside the manifest, for the version it is named after."""
    (adapters / "mine" / "requirements-2.0.txt").write_text("mine==2.0\n", encoding="utf-8")
    assert parse("mine==2.0", adapters=adapters).lock == adapters / "mine" / "requirements-2.0.txt"
    assert parse("mine", adapters=adapters).lock is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("./nowhere.toml", "adapter-not-found"),
        ("nowhere.toml", "there is no such file: nowhere.toml"),
        ("mnie", "(did you mean 'mine'?)"),
        ("mnie==1.0", "(did you mean 'mine'?)"),
        ("zzz", "(there are mine, plain)"),
        ("no/such/folder", "adapter-not-found"),
        ("plain==2.0", "plain has no released versions to choose from"),
        ("py:package.module:Adapter", "cannot be killed"),
        ("nobody:replay", "nobody is no adapter that comes with simkit"),
        ("mine:", "no configuration stands behind the colon"),
        ("mine==", "adapter-not-found"),
        ("", "adapter-not-found"),
    ],
)
def test_what_is_no_target(adapters: Path, text: str, told: str) -> None:
    """A target that is not there is refused with the nearest one that is, as a mistake in usage."""
    assert told in refuse(text, adapters)


def test_manifests_near_a_wrong_path_are_named(adapters: Path) -> None:
    """Who mistypes a path is shown the manifest it comes near to, and no other that happens to be around."""
    assert f"did you mean {adapters / 'mine' / 'adapter.toml'}?" in refuse(
        str(adapters / "mime" / "adapter.toml"), adapters
    )
    assert f"did you mean {adapters / 'mine' / 'adapter.toml'}?" in refuse(
        str(adapters / "mine" / "adopter.toml"), adapters
    )
    assert str(adapters / "mine") not in refuse(str(adapters / "nowhere.toml"), adapters)


def test_a_target_named_by_a_path_remembers_it_whole(adapters: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A case of it can be replayed from another folder; a shipped adapter needs no path."""
    monkeypatch.chdir(adapters)
    target = parse("mine/adapter.toml", adapters=adapters / "none")
    assert target.describe()["path"] == str(adapters / "mine" / "adapter.toml")
    assert "path" not in parse("mine", adapters=adapters).describe()


def test_an_unknown_configuration(adapters: Path) -> None:
    """A configuration that is not there is refused with those that are."""
    told = refuse("mine", adapters, "fats")
    assert "no configuration 'fats' (did you mean 'fast'?)" in told
    assert "one of safe, fast" in told


def test_the_adapters_that_come_with_simkit() -> None:
    """The harnesses and controls of this release are there by name, each in every configuration."""
    assert {"dbos", "langgraph", "naive", "amnesiac"} <= set(shipped())
    for name in shipped():
        for configuration in parse(name).manifest.configurations:
            target = parse(name, configuration)
            assert (target.folder, target.configuration) == (ADAPTERS / name, configuration)
    assert parse("dbos==2.23.0").requirements == ("dbos==2.23.0",)
