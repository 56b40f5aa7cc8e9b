"""The log's file is what SQLite wrote to it, whenever it looks; commits go out in one piece, into room that is there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference_runtime import Store
from reference_runtime.logfile import ROOM_BYTES_MIN, LogFile
from tests.runtime_rig import call, finish, plan

#: As no name of a log can be had without a database whose log it is.
FLAGS = apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_READWRITE


def opened(path: Path) -> LogFile:
    return LogFile(apsw.vfs_names()[0], str(path), [FLAGS, 0])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s.db-wal"


@pytest.fixture
def log(path: Path) -> Iterator[LogFile]:
    one = opened(path)
    yield one
    one.xClose()


def test_pieces_wait_for_the_sync(log, path):
    """What follows on what was written before is kept, and is all there when the sync returns."""
    log.xWrite(b"head", 0)
    log.xWrite(b"page", 4)
    assert path.read_bytes() == b""
    log.xSync(apsw.SQLITE_SYNC_NORMAL)
    assert path.read_bytes()[:8] == b"headpage"


def test_what_was_written_is_read(log):
    """A reader sees what no sync has covered yet, as SQLite does when it reads a page that it had no room to keep."""
    log.xWrite(b"head", 0)
    log.xWrite(b"page", 4)
    assert bytes(log.xRead(4, 2)) == b"adpa"


def test_a_piece_elsewhere_comes_after(log, path):
    """The order of writes is kept where they overlap."""
    log.xWrite(b"head", 0)
    log.xWrite(b"AD", 2)
    log.xSync(apsw.SQLITE_SYNC_NORMAL)
    assert path.read_bytes()[:4] == b"heAD"


def test_commits_find_room(log, path):
    """The second commit does not change the size of the file: there is room behind the first one, and it is zero."""
    log.xWrite(b"a" * 100, 0)
    log.xSync(apsw.SQLITE_SYNC_NORMAL)
    size = path.stat().st_size
    assert size >= 100 + ROOM_BYTES_MIN
    assert not any(path.read_bytes()[100:])
    log.xWrite(b"b" * 100, 100)
    log.xSync(apsw.SQLITE_SYNC_NORMAL)
    assert path.stat().st_size == size
    assert path.read_bytes()[100:200] == b"b" * 100


def test_room_is_made_again(log, path):
    """Of what was cut off no room is left, and some is made when it is needed."""
    log.xWrite(b"a" * 100, 0)
    log.xSync(apsw.SQLITE_SYNC_NORMAL)
    log.xTruncate(0)
    assert path.stat().st_size == 0
    log.xWrite(b"b", 0)
    log.xSync(apsw.SQLITE_SYNC_NORMAL)
    assert path.stat().st_size > ROOM_BYTES_MIN


def test_large_commits_are_whole(log, path):
    """More than SQLite's own files take at once goes out in several pieces."""
    data = bytes(range(256)) * 4096
    log.xWrite(data, 0)
    log.xSync(apsw.SQLITE_SYNC_NORMAL)
    assert path.read_bytes()[: len(data)] == data


_OFFSETS = st.integers(0, 300)
_STEPS = st.one_of(
    st.tuples(st.just("write"), st.binary(min_size=1, max_size=40), _OFFSETS),
    st.tuples(st.just("follow"), st.binary(min_size=1, max_size=40), st.just(0)),
    st.tuples(st.sampled_from(["read", "sync", "size"]), st.just(b""), _OFFSETS),
    st.tuples(st.just("cut"), st.just(b""), _OFFSETS),
)


@given(steps=st.lists(_STEPS, max_size=30))
@settings(max_examples=100, deadline=None)
def test_it_is_a_file(tmp_path_factory, steps):
    """Whatever is written, read and cut in whatever order: it reads as plain bytes do, with zeros behind their end."""
    path = tmp_path_factory.mktemp("log") / "s.db-wal"
    log, plain, end = opened(path), bytearray(), 0
    for step, data, offset in steps:
        match step:
            case "write" | "follow":
                at = end if step == "follow" else min(offset, len(plain))
                plain[at : at + len(data)] = data
                log.xWrite(data, at)
                end = at + len(data)
            case "read":
                wanted = bytes(plain[offset : offset + 16]).ljust(16, b"\0")
                assert bytes(log.xRead(16, offset)).ljust(16, b"\0") == wanted
            case "sync":
                log.xSync(apsw.SQLITE_SYNC_NORMAL)
            case "size":
                assert log.xFileSize() >= len(plain) or len(plain) == 1  # SQLite calls a file of one byte empty
            case "cut":
                size = min(offset, len(plain))
                del plain[size:]
                log.xTruncate(size)
                end = size
    log.xClose()
    found = path.read_bytes()
    assert found[: len(plain)] == plain
    assert not any(found[len(plain) :])


def test_a_store_lives_in_it(tmp_path):
    """The log of a store that is at work does not grow with each commit, and everything is there after a kill."""
    store = Store.open(str(tmp_path / "s.db"))
    log = tmp_path / "s.db-wal"
    store.submit("t", plan(*(call(f"c{number}") for number in range(12))))
    sizes = set()
    for _ in range(12):
        finish(store)
        sizes.add(log.stat().st_size)
    assert len(sizes) <= 4, sizes
    outcome = "SELECT outcome FROM attempt"
    assert store._value(outcome) == "succeeded"
    store.leave()
    again = Store.open(str(tmp_path / "s.db"))
    assert again._value(outcome) == "succeeded"
    again.close()
