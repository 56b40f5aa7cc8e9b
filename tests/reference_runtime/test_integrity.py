"""Damage to the store is noticed: in a page when it is read, in the log when it is opened. Nothing else is taken for it."""

from __future__ import annotations

import os
import shutil
import sqlite3
import struct
from pathlib import Path

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference_runtime import Store, StoreError, views
from reference_runtime.__main__ import main
from reference_runtime.binding import RESERVED_BYTES
from reference_runtime.integrity import checked_vfs, log_damage, read_mark
from tests.runtime_rig import call, plan

PLAN = {
    "version": 1,
    "root": {"op": "seq", "id": "r", "children": [{"op": "wait", "id": f"w{n}", "signal": "go"} for n in range(3)]},
}
PAGE_BYTES = 4096


def worked(folder: Path) -> Path:
    """The files of a store whose server was killed in the middle of its work: a used file, and a log with several commits."""
    with_log = folder / "live"
    with_log.mkdir(parents=True)
    store = Store.open(str(with_log / "s.db"))
    store.submit("before", PLAN)
    store.close()
    store = Store.open(str(with_log / "s.db"))
    for number in range(4):
        store.submit(f"t{number}", PLAN)
        store.signal(f"t{number}", "s1", "go", {"nonce": "n" * 300})
    dead = folder / "dead"
    shutil.copytree(with_log, dead)
    store.close()
    return dead / "s.db"


def flip(path: Path, byte: int, bit: int = 0) -> None:
    data = bytearray(path.read_bytes())
    data[byte] ^= 1 << bit
    path.write_bytes(data)


def read_everything(path: Path) -> None:
    """Read every page there is; raises what the store's server would have stopped with."""
    store = Store.open(str(path))
    try:
        assert store.db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert views.status(store, "t3")["signals"] == {"s1": "released"}
    finally:
        store.close()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return worked(tmp_path_factory.mktemp("store"))


def copied(files: Path, folder: Path) -> Path:
    shutil.copytree(files.parent, folder, dirs_exist_ok=True)
    return folder / files.name


def test_a_whole_store_opens(files, tmp_path):
    """Killed in the middle and not damaged, it has everything that was committed, and its pages have room for checksums."""
    path = copied(files, tmp_path)
    read_everything(path)
    assert path.read_bytes()[20] == RESERVED_BYTES


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_no_bit_of_the_file_turns_over_unnoticed(files, tmp_path_factory, data):
    """Whichever bit of whichever page: whoever reads that page is told, and never gets what nobody wrote."""
    path = copied(files, tmp_path_factory.mktemp("flip"))
    read_everything(path)  # the log is in the file now
    flip(path, data.draw(st.integers(0, path.stat().st_size - 1)), data.draw(st.integers(0, 7)))
    with pytest.raises((apsw.CorruptError, StoreError)):
        read_everything(path)


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_no_bit_of_the_log_turns_over_unnoticed(files, tmp_path_factory, data):
    """Whichever bit of the log that was committed: the store is refused instead of opened without what came after it."""
    path = copied(files, tmp_path_factory.mktemp("flip"))
    log = path.with_name("s.db-wal")
    mark = read_mark(path.with_name("s.db-mark").read_bytes())
    assert mark is not None
    committed = 32 + mark[1] * (24 + PAGE_BYTES)
    assert committed <= log.stat().st_size
    flip(log, data.draw(st.integers(0, committed - 1)), data.draw(st.integers(0, 7)))
    with pytest.raises(StoreError, match=r"store-damaged: .*s\.db-wal.*restore"):
        read_everything(path)


def test_the_damaged_log_is_left_for_who_wants_to_look(files, tmp_path):
    """Refusing changes nothing: the second opening is refused like the first, and the file has nothing of the cut log."""
    path = copied(files, tmp_path)
    flip(path.with_name("s.db-wal"), 32 + 24 + PAGE_BYTES + 100)
    before = path.read_bytes()
    for _ in range(2):
        with pytest.raises(StoreError, match="store-damaged"):
            Store.open(str(path))
    assert path.read_bytes() == before


@pytest.mark.parametrize("mark", [None, b"", b"\0" * 16, b"\xff" * 16])
def test_without_a_good_mark_nothing_is_accused(files, tmp_path, mark):
    """A mark that was lost, or damaged itself, says nothing: what is whole is served."""
    path = copied(files, tmp_path)
    at = path.with_name("s.db-mark")
    if mark is None:
        at.unlink()
    else:
        at.write_bytes(mark)
    read_everything(path)


@pytest.mark.parametrize("put", [Path.mkdir, lambda at: at.symlink_to("/dev/null")])
def test_a_mark_that_is_no_file_is_named(files, tmp_path, put):
    """It is in the way of the store's own, and the error says which it is."""
    path = copied(files, tmp_path)
    at = path.with_name("s.db-mark")
    at.unlink()
    put(at)
    with pytest.raises(StoreError, match=rf"store-damaged: {at} is no file; .* move it away"):
        Store.open(str(path))


def test_a_mark_that_fell_back_accuses_nobody(files, tmp_path):
    """After a power loss the mark may be an older one: the log reaches further, which is as it should be."""
    path = copied(files, tmp_path)
    store = Store.open(str(path))
    store.submit("u", PLAN)
    old = path.with_name("s.db-mark").read_bytes()
    store.submit("v", PLAN)
    dead = tmp_path / "dead"
    dead.mkdir()
    for one in tmp_path.glob("s.db*"):
        shutil.copy(one, dead / one.name)
    store.close()
    (dead / "s.db-mark").write_bytes(old)
    read_everything(dead / "s.db")


def test_a_torn_tail_is_no_damage(files, tmp_path):
    """What was on its way into the log when the machine went down was never acknowledged, and is left out."""
    path = copied(files, tmp_path)
    log = path.with_name("s.db-wal")
    whole = log.read_bytes()
    log.write_bytes(whole + whole[-(24 + PAGE_BYTES) : -1000])
    read_everything(path)


def test_a_log_that_never_held_anything_is_no_damage(tmp_path):
    """A log of zeros, or shorter than its head, is what a power loss leaves of one that was just begun."""
    for content in (b"", b"\0" * 32, b"\0" * 5000, b"\x37\x7f"):
        (tmp_path / "s.db-wal").write_bytes(content)
        assert log_damage(str(tmp_path / "s.db"), 0) is None


def test_a_store_from_before_gets_its_checksums(tmp_path):
    """A file made without room for checksums is opened, and has them from then on."""
    made = Store.open(str(tmp_path / "new.db"))
    made.submit("t", PLAN)
    old = apsw.Connection(str(tmp_path / "old.db"))
    made.db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    for (sql,) in made.db.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL"):
        old.execute(sql)
    old.execute(f"PRAGMA user_version = {made.db.pragma('user_version')}")
    old.close()
    made.close()
    path = tmp_path / "old.db"
    assert path.read_bytes()[20] == 0
    Store.open(str(path)).close()
    assert path.read_bytes()[20] == RESERVED_BYTES
    flip(path, PAGE_BYTES * 3 + 50)
    with pytest.raises(apsw.CorruptError, match=r"page 4 of .*old\.db does not match its checksum"):
        apsw.Connection(str(path), vfs=checked_vfs()).execute("PRAGMA integrity_check").fetchall()


def test_opening_reads_what_it_needs_and_no_more(tmp_path):
    """Pages are verified as they are read, so that a store full of finished work opens like an empty one."""
    path = str(tmp_path / "s.db")
    store = Store.open(path)
    few = _reads(path, store)
    store = Store.open(path)
    for number in range(300):
        store.submit(f"t{number}", PLAN)
    assert _reads(path, store) <= few + 5


def _reads(path: str, store: Store) -> int:
    """Pages that the next opening of a store reads."""
    store.close()
    again = Store.open(path)
    try:
        return again.db.status(apsw.SQLITE_DBSTATUS_CACHE_MISS)[0]
    finally:
        again.close()


@pytest.mark.parametrize("size", [5_000, 50_000, 500_000])
def test_a_value_over_many_pages_is_read_whole_and_checked(tmp_path, size):
    """SQLite must not read past the checksums: what fills pages of its own is read page by page, and damage in it is found."""
    path = tmp_path / "s.db"
    store = Store.open(str(path))
    said = "x" * size
    store.submit("t", {"version": 1, "root": {"op": "call", "id": "a", "service": "reader", "params": {"said": said}}})
    store.db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    assert said in store._value("SELECT plan FROM task")
    store.close()
    data = bytearray(path.read_bytes())
    data[data.index(b"x" * 1_000) + 500] ^= 1
    path.write_bytes(data)
    with pytest.raises((StoreError, apsw.CorruptError)):
        Store.open(str(path))._rows("SELECT plan, spec FROM task, operation")


@pytest.mark.parametrize(
    "wreck", [lambda path: path.unlink(), lambda path: path.write_bytes(b"")], ids=["gone", "empty"]
)
def test_a_log_without_its_file_is_not_thrown_away(files, tmp_path, wreck):
    """SQLite takes an empty file for a new store, and deletes the log that holds what was acknowledged: so it is refused."""
    path = copied(files, tmp_path)
    wreck(path)
    log = Path(f"{path}-wal").read_bytes()
    with pytest.raises(StoreError, match=r"store-damaged: .* is gone or empty"):
        Store.open(str(path))
    assert Path(f"{path}-wal").read_bytes() == log


def test_a_store_is_opened_by_another_name(tmp_path):
    """A link to the file is the same store, whose log is beside the file."""
    store = Store.open(str(tmp_path / "s.db"))
    store.submit("t", plan(call("a")))
    store.close()
    (tmp_path / "link.db").symlink_to(tmp_path / "s.db")
    again = Store.open(str(tmp_path / "link.db"))
    assert again._value("SELECT id FROM task") == "t"
    again.close()
    assert not (tmp_path / "link.db-wal").exists()


# -- what never was a store


def _plain(path: Path) -> None:
    db = sqlite3.connect(path)
    db.executescript("CREATE TABLE task (id); CREATE TABLE customer (name); PRAGMA user_version = 1;")
    db.close()


def _with_a_log(path: Path) -> None:
    """All that it has is in its log still."""
    db = sqlite3.connect(path.with_name("live.db"))
    db.executescript("PRAGMA journal_mode = WAL; CREATE TABLE customer (name);")
    for end in ("", "-wal"):
        shutil.copy(path.with_name(f"live.db{end}"), f"{path}{end}")
    db.close()


def _with_a_journal(path: Path) -> None:
    """A transaction was under way, and is to be rolled back by its owner."""
    db = sqlite3.connect(path.with_name("live.db"), isolation_level=None)
    db.executescript("PRAGMA cache_size = 1; CREATE TABLE customer (name);")
    db.executemany("INSERT INTO customer VALUES (zeroblob(3000))", [()] * 50)
    db.execute("BEGIN")
    db.execute("UPDATE customer SET name = randomblob(3000)")
    for end in ("", "-journal"):
        shutil.copy(path.with_name(f"live.db{end}"), f"{path}{end}")
    db.close()


def _with_checksums_of_its_own(path: Path) -> None:
    db = apsw.Connection(str(path))
    db.reserve_bytes("main", 8)
    db.execute("CREATE TABLE customer (name)")
    db.close()


def _text(path: Path) -> None:
    path.write_bytes(b"hello")


@pytest.mark.parametrize("make", [_plain, _with_a_log, _with_a_journal, _with_checksums_of_its_own, _text])
@pytest.mark.parametrize("command", ["serve", "doctor"])
def test_what_is_somebody_elses_is_refused_and_left_as_it_is(make, command, tmp_path, capsys, monkeypatch):
    """Whatever state its owner left it in: nothing is written to it, and nothing is put beside it."""
    monkeypatch.setattr("reference_runtime.__main__.Server", None)  # nobody gets as far as serving it
    path = tmp_path / "own" / "s.db"
    path.parent.mkdir()
    make(path)
    for other in path.parent.glob("live.db*"):
        other.unlink()
    before = {one.name: one.read_bytes() for one in path.parent.iterdir()}
    assert main([command, "--store", str(path)]) == 1
    what = "is no database" if make is _text else "is another database, with customer"
    assert f"error: store-foreign: {path} {what}" in capsys.readouterr().err
    assert {one.name: one.read_bytes() for one in path.parent.iterdir()} == before


@pytest.mark.parametrize("command", ["serve", "doctor"])
def test_what_is_no_file_is_no_store(tmp_path, capsys, command):
    """A pipe, a device: nothing can be kept there, and nothing is put beside it."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    assert main([command, "--store", str(path), *(["--listen", "127.0.0.1:0"] if command == "serve" else [])]) == 1
    assert f"error: store-foreign: {path} is no file" in capsys.readouterr().err
    assert [one.name for one in tmp_path.iterdir()] == ["pipe"]


def test_a_store_that_was_never_finished_is_made_anew(tmp_path):
    """The power failed as it was being made: its first page is all zeros, and a journal says that there was nothing before."""
    path, pages_before = tmp_path / "s.db", 0
    path.write_bytes(bytes(PAGE_BYTES))
    head = bytes.fromhex("d9d505f920a163d7") + struct.pack(">5I", 0, 1, pages_before, 512, PAGE_BYTES)
    Path(f"{path}-journal").write_bytes(head.ljust(512, b"\0"))
    store = Store.open(str(path))
    store.submit("t", PLAN)
    store.close()
    reopened = Store.open(str(path))
    assert views.status(reopened, "t")["state"] == "waiting"
    reopened.close()


@pytest.mark.parametrize(
    ("damage", "beside"),
    [(slice(0, 1), False), (slice(0, PAGE_BYTES), False), (slice(0, None), True), (slice(20, 21), False)],
    ids=["one byte", "first page", "all pages", "reserved"],
)
def test_a_store_whose_beginning_is_damaged_is_no_strangers(damage, beside, files, tmp_path):
    """Its other pages tell that it was one, and where there are none left, its mark."""
    path = copied(files, tmp_path)
    read_everything(path)  # the log is in the file now
    data = bytearray(path.read_bytes())
    data[damage] = b"\x55" * len(data[damage])
    path.write_bytes(data)
    assert path.with_name("s.db-mark").stat().st_size
    path.with_name("s.db-wal").unlink(missing_ok=True)
    if not beside:
        path.with_name("s.db-mark").unlink()
    with pytest.raises(StoreError, match="store-damaged"):
        Store.open(str(path))
