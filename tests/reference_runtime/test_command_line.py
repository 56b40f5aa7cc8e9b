"""The command line: its help is what it was, and what goes wrong is told with an exit code of its own."""

from __future__ import annotations

import json

import apsw
import pytest

from reference_runtime.__main__ import main
from reference_runtime.schema import SCHEMA_VERSION
from tests.runtime_rig import call, plan

COMMANDS = ["serve", "worker", "submit", "status", "signal", "decide", "events", "doctor"]


@pytest.mark.parametrize("command", [[], *([one] for one in COMMANDS)])
def test_help(command, capsys, snapshot, monkeypatch):
    """The wording of every help page is held."""
    monkeypatch.setenv("COLUMNS", "100")
    with pytest.raises(SystemExit) as left:
        main([*command, "--help"])
    assert left.value.code == 0
    assert capsys.readouterr().out == snapshot


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["doctor", "--store", "nowhere.db"], "store-missing: nowhere.db does not exist"),
        (["serve", "--store", "no/folder/s.db"], "store-missing"),
        (["worker", "--services", "ftp://x"], "bad-setting: services address 'ftp://x'; expected http://host:port"),
        (["doctor", "--store", "empty.db"], "store-missing: empty.db does not exist, or is empty"),
        (["serve", "--store", "."], "store-missing: . is a folder; expected the name of a file"),
        (["serve", "--store", "n" * 300], "is no place for a store: [Errno 36] File name too long"),
        (["worker", "--services", "http://x:y"], "bad-setting: services address 'http://x:y': Port could not be cast"),
        (["submit", "t", "nowhere.json"], "bad-plan: nowhere.json"),
        (["submit", "t", "deep.json"], "bad-plan: deep.json: it is nested more than"),
        (["submit", "t", "twice.json"], "bad-plan: twice.json: the field 'version' is there twice"),
        (
            ["worker", "--services", "http://x:1", "--workflows", "raising"],
            "no-workflows: raising cannot be imported: ZeroDiv",
        ),
        (["worker", "--services", "http://x:1", "--workflows", ""], "no-workflows"),
        (
            ["serve", "--store", "s.db", "--transforms", "raising"],
            "no-transforms: raising cannot be imported: ZeroDivision",
        ),
    ],
)
def test_a_refusal_is_one_line_and_exit_1(argv, said, capsys, tmp_path, monkeypatch):
    """What cannot be is said on standard error, with nothing on standard output."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "deep.json").write_text("[" * 100_000)
    (tmp_path / "twice.json").write_text('{"version": 1, "version": 1}')
    (tmp_path / "raising.py").write_text("1 / 0")
    (tmp_path / "empty.db").touch()
    assert main(argv) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert said in err


@pytest.mark.parametrize(
    "argv",
    [
        ["status"],
        ["status", "t", "--server", "here"],
        ["status", "t", "--server", "127.0.0.1:65536"],
        ["signal", "t", "go", "--payload", "[1]"],
        ["signal", "t", "go", "--payload", "[" * 100_000],
        ["serve", "--store", "s.db", "--lease-ns", "0"],
        ["serve", "--store", "s.db", "--lease-ns", "9" * 5_000],
        ["serve", "--store", "s.db", "--tasks-max", "-1"],
        ["worker", "--services", "http://x:1", "--slots", "0"],
        ["worker", "--services", "http://x:1", "--grace-ns", "-1"],
        ["fly"],
    ],
)
def test_usage_is_exit_2(argv, capsys):
    """A command line that cannot be read is a usage error."""
    with pytest.raises(SystemExit) as left:
        main(argv)
    assert left.value.code == 2
    assert "usage:" in capsys.readouterr().err


def test_a_server_that_is_not_there_is_exit_3(capsys, monkeypatch):
    """Nobody answering is told apart from a refusal, with a hint."""
    monkeypatch.setattr("reference_runtime.__main__.PATIENCE_NS", 10_000_000)
    assert main(["status", "t", "--server", "127.0.0.1:1"]) == 3
    assert "python -m reference_runtime serve" in capsys.readouterr().err


def test_doctor_reads_a_store(tmp_path, capsys):
    """Settings and integrity of a store that nobody serves."""
    from reference_runtime import Store

    path = str(tmp_path / "s.db")
    store = Store.open(path)
    store.submit("t", plan(call("a")))
    store.close()
    assert main(["doctor", "--store", path]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["schema"], said["integrity"], said["journal_mode"]) == (SCHEMA_VERSION, "ok", "wal")


def test_a_full_disk_is_told_with_its_store(tmp_path, capsys, monkeypatch):
    """What the server stops over names the store and says what to do; its last words are not a traceback of the clean-up."""

    def full(*_, **__):
        raise apsw.FullError("database or disk is full")

    monkeypatch.setattr("reference_runtime.__main__.Server.serve", full)
    path = tmp_path / "s.db"
    assert main(["serve", "--store", str(path), "--listen", "127.0.0.1:0"]) == 1
    said = f"error: store-full: {path}: its disk is full; nothing was acknowledged that is not in it; make room there"
    assert said in capsys.readouterr().err
