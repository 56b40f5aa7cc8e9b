"""The store: found, written whole or not at all, and honest about disks that are full or refuse."""

from __future__ import annotations

import datetime as dt
import errno
import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from conformance import events as e
from conformance import store as s
from conformance.files import canonical, digest, write_atomic
from conformance.store import Store
from simkit.errors import SimkitError
from tests.report_samples import FakeCase, certificate, every_event

NOW = dt.datetime(2026, 1, 31, 12, 0, 0, tzinfo=dt.UTC)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / ".simkit")


def test_the_nearest_store_above_is_found(tmp_path: Path) -> None:
    """A command works the same from any folder below the store."""
    (tmp_path / ".simkit").mkdir()
    (tmp_path / "a" / "b").mkdir(parents=True)
    assert Store.find(start=tmp_path / "a" / "b").root == tmp_path / ".simkit"


def test_runs_that_are_kept_are_bounded(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest folders go, a case's own is made anew, and cases stay."""
    monkeypatch.setattr(s, "RUNS_MAX", 3)
    told: list[e.Event] = []
    store.save_case(FakeCase("0123"))
    for number in range(6):
        assert store.keep_run("a/b c", {"table.txt": b"x"}, None, told.append)
        assert store.keep_run("a/b c", {f"{number}.txt": b"x"}, f"{number % 4}", told.append)
    assert len([one for one in store.runs.iterdir() if one.is_dir()]) == 3
    assert [one.name for one in sorted(store.cases.glob("*.run/*"))] == ["4.txt", "5.txt", "3.txt"]
    assert [one.name for one in store.cases.glob("*.json")] == ["0123.json"]
    assert not told


def test_a_run_is_kept_whole_or_not_at_all(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is ended in the midst of it leaves what was there before, and no folder that looks like another."""
    told: list[e.Event] = []
    store.keep_run("a", {"1": b"old", "2": b"old"}, "0123", told.append)
    write = Path.write_bytes

    def ended(path: Path, data: bytes) -> int:
        if path.name == "2":
            raise KeyboardInterrupt
        return write(path, data)

    monkeypatch.setattr(Path, "write_bytes", ended)
    for case_id in ("0123", "4567"):
        with pytest.raises(KeyboardInterrupt):
            store.keep_run("a", {"1": b"new", "2": b"new"}, case_id, told.append)
    assert {path.name: path.read_bytes() for path in store.cases.glob("*/*")} == {"1": b"old", "2": b"old"}


def test_what_a_killed_one_has_left_is_in_nobodys_way(store: Store) -> None:
    """It had our number, and died as it put its folder in place of another one."""
    told: list[e.Event] = []
    store.keep_run("a", {"1": b"old"}, "0123", told.append)
    for kind in ("draft", "old"):
        left = store.cases / f".0123.run.{os.getpid()}.{kind}"
        left.mkdir()
        (left / "2").write_bytes(b"older")
    assert store.keep_run("a", {"1": b"new"}, "0123", told.append)
    assert not told
    assert {path.name: path.read_bytes() for path in store.cases.glob("*/*")} == {"1": b"new"}
    assert [path.name for path in store.cases.iterdir()] == ["0123.run"]


def _keep_often(store: Store, word: bytes) -> int:
    told: list[e.Event] = []
    for _ in range(100):
        store.keep_run("a", dict.fromkeys("123456", word), "0123", told.append)
    return len(told)


def test_two_that_keep_the_same_run_are_not_in_each_others_way(store: Store) -> None:
    """The folder is of one of them, whole."""
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert list(pool.map(_keep_often, [store] * 2, [b"one", b"two"])) == [0, 0]
    (words,) = {path.read_bytes() for path in (store.cases / "0123.run").iterdir()}
    assert words in {b"one", b"two"}
    assert [path.name for path in store.cases.iterdir()] == ["0123.run"]


def test_a_run_that_cannot_be_kept_is_told(store: Store) -> None:
    """A store that refuses costs the folder, and ends nothing."""
    store.root.mkdir()
    store.runs.touch()
    told: list[e.Event] = []
    assert store.keep_run("seed/1", {"table.txt": b"x"}, None, told.append) == ""
    assert isinstance(told[0], e.Trouble)


def test_a_new_store_goes_to_the_project_root(tmp_path: Path) -> None:
    """Without a store yet, it will be at the root of the project around."""
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "a").mkdir()
    assert Store.find(start=tmp_path / "a").root == tmp_path / ".simkit"


def test_a_given_store_is_taken_as_it_is(tmp_path: Path) -> None:
    """`--store DIR` wins over anything found."""
    (tmp_path / ".simkit").mkdir()
    assert Store.find(tmp_path / "x", start=tmp_path).root == tmp_path / "x"


def test_a_case_is_found_by_id_beginning_and_path(store: Store) -> None:
    """All three ways to name a case lead to the same file."""
    path = store.save_case(FakeCase("0123456789ab"))
    store.save_case(FakeCase("01ff"))
    assert store.find_case("0123456789ab") == store.find_case("012") == store.find_case(str(path)) == path


def test_an_id_that_begins_another_is_still_found(store: Store) -> None:
    """A whole id is never ambiguous."""
    store.save_case(FakeCase("01"))
    store.save_case(FakeCase("0123"))
    assert store.find_case("01").stem == "01"


def test_a_case_is_found_by_the_folder_of_what_was_seen_of_it(store: Store) -> None:
    """That folder is what a report prints as kept."""
    path = store.save_case(FakeCase("0123456789ab"))
    folder = path.with_suffix(".run")
    folder.mkdir()
    assert store.find_case(str(folder)) == path
    assert store.find_case(f"{folder}/") == path


@pytest.mark.parametrize("wanted", ["01", "0123456789ac", "zz", "", "nowhere.json", "./x/y"])
def test_a_case_that_is_not_one_is_told(store: Store, wanted: str, snapshot: Any) -> None:
    """Ambiguous, unknown and missing cases are told with what is near."""
    for n in range(10):
        store.save_case(FakeCase(f"01234567{n}9ab"))
    with pytest.raises(SimkitError) as caught:
        store.find_case(wanted)
    assert str(caught.value).replace(str(store.root.parent), "<tmp>") == snapshot


def test_a_certificate_is_named_by_subject_and_digest(store: Store, tmp_path: Path) -> None:
    """Two certificates of one subject stand side by side; `out` is taken as it is."""
    first = store.save_certificate(certificate())
    second = store.save_certificate(certificate(runs=13))
    assert first.name.startswith("toy-1.0-sync-")
    assert first != second
    assert store.save_certificate(certificate(), tmp_path / "out.json") == tmp_path / "out.json"


def test_a_journal_gives_back_what_was_judged(store: Store) -> None:
    """Every event but progress is in the journal the moment it was said, closed or not."""
    journal = store.open_journal("run", NOW)
    for event in every_event():
        journal.append(event)
    kept = [event for event in every_event() if not isinstance(event, e.Progress | e.Installing)]
    assert s.read_journal(journal.path) == kept
    journal.close()


def test_a_journal_cut_short_gives_back_its_whole_lines(store: Store) -> None:
    """A kit killed inside a write loses that line and nothing else."""
    journal = store.open_journal("run", NOW)
    journal.append(e.RunFinished("a", "pass"))
    journal.append(e.RunFinished("b", "pass"))
    journal.close()
    text = journal.path.read_text()
    journal.path.write_text(text[:-9])
    assert s.read_journal(journal.path) == [e.RunFinished("a", "pass")]


def test_a_spoilt_line_inside_a_journal_is_told(store: Store) -> None:
    """A line that is no event names file and line."""
    store.runs.mkdir(parents=True)
    path = store.runs / "x.jsonl"
    path.write_text('{"event": "Nonsense"}\n')
    with pytest.raises(SimkitError, match=r"x\.jsonl:1"):
        s.read_journal(path)


def test_old_journals_make_room(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder of journals is bounded, oldest out first."""
    monkeypatch.setattr(s, "JOURNALS_MAX", 3)
    for second in range(5):
        store.open_journal("run", NOW + dt.timedelta(seconds=second)).close()
    assert [path.name[:16] for path in sorted(store.runs.iterdir())] == [f"20260131T12000{n}Z" for n in (2, 3, 4)]


def full(*_args: object, **_kwargs: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write that finds no room is a typed error, and neither spoils the old file nor leaves a new one."""
    path = tmp_path / "a.json"
    write_atomic(path, "old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(SimkitError, match=r"disk-full.*No space left"):
        write_atomic(path, "new")
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["a.json"]


def test_a_case_that_finds_no_room_is_trouble_and_no_end(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """`keep` tells the problem as an event and lets the campaign go on."""
    said: list[e.Event] = []
    monkeypatch.setattr(FakeCase, "save", full)
    assert store.keep(FakeCase("01"), said.append) is None
    assert [event.problem.code for event in said if isinstance(event, e.Trouble)] == ["disk-full"]
    monkeypatch.undo()
    assert store.keep(FakeCase("01"), said.append) == "01"


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (errno.ENOSPC, "disk-full"),
        (errno.EDQUOT, "disk-full"),
        (errno.EACCES, "folder-unwritable"),
        (errno.EROFS, "folder-unwritable"),
        (errno.EIO, "file-unusable"),
    ],
)
def test_each_refusal_has_its_code(store: Store, monkeypatch: pytest.MonkeyPatch, number: int, code: str) -> None:
    """A full disk, a quota, missing permission and a read-only system are told apart."""

    def refuse(_fd: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(SimkitError) as caught:
        store.check()
    assert caught.value.problem.code == code
    assert not list(store.root.iterdir())


def test_a_file_in_the_way_is_told(tmp_path: Path, snapshot: Any) -> None:
    """A store whose path is a file gets a hint, not a traceback."""
    (tmp_path / ".simkit").write_text("")
    with pytest.raises(SimkitError) as caught:
        Store(tmp_path / ".simkit").check()
    assert str(caught.value).replace(str(tmp_path), "<tmp>").replace(str(os.getpid()), "<pid>") == snapshot


def test_a_good_store_is_left_as_it_was(store: Store) -> None:
    """Checking leaves nothing behind."""
    store.check()
    assert not list(store.root.iterdir())


def test_equal_values_have_one_text_and_digest() -> None:
    """Canonical JSON does not depend on the order of keys, and refuses what JSON has no word for."""
    assert canonical({"b": 1, "a": "é"}) == canonical({"a": "é", "b": 1}) == '{"a":"é","b":1}'
    assert digest([1]) != digest([2])
    with pytest.raises(ValueError, match="JSON"):
        canonical(float("nan"))
