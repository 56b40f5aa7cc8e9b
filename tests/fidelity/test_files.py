"""Files: the real system and the simulated disk answer alike."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from tests.fidelity.stages import Files, agree_on_files, tried


def test_reads_end_at_the_end_of_the_file(tmp_path: Path) -> None:
    """Partial reads at the end, nothing beyond it, zeros in holes and in what a truncate added."""

    async def program(files: Files) -> list[object]:
        file = files.open("/f", create=True)
        file.write(b"abc", 5)
        seen: list[object] = [file.read(100, 0), file.read(2, 6), file.read(9, 7), file.read(1, 8), file.size()]
        file.truncate(12)
        seen += [file.read(100, 6), file.size()]
        file.truncate(6)
        return [*seen, file.read(100, 0)]

    assert agree_on_files(program, tmp_path)[0] == b"\0\0\0\0\0abc"


def test_an_unlinked_file_lives_on_while_it_is_open(tmp_path: Path) -> None:
    """Its name is free at once, its bytes stay readable and writable, a new file of that name is another."""

    async def program(files: Files) -> list[object]:
        old = files.open("/f", create=True)
        old.write(b"old", 0)
        files.unlink("/f")
        new = files.open("/f", create=True, exclusive=True)
        old.write(b"OLD", 0)
        return [old.read(9, 0), new.read(9, 0), files.listdir("/")]

    assert agree_on_files(program, tmp_path) == [b"OLD", b"", ["f"]]


def test_a_rename_replaces_and_open_files_follow_what_they_opened(tmp_path: Path) -> None:
    """The target's name leads to the new file; who had the old one open still has it."""

    async def program(files: Files) -> list[object]:
        old, new = files.open("/f", create=True), files.open("/g", create=True)
        old.write(b"old", 0)
        new.write(b"new", 0)
        files.rename("/g", "/f")
        files.rename("/f", "/f")
        return [old.read(9, 0), files.open("/f").read(9, 0), files.listdir("/"), tried(lambda: files.open("/g"))]

    assert agree_on_files(program, tmp_path)[1:3] == [b"new", ["f"]]


def test_directories_are_renamed_with_their_contents(tmp_path: Path) -> None:
    """Over an empty directory too; open files go on."""

    async def program(files: Files) -> list[object]:
        for path in ("/a", "/a/b", "/empty"):
            files.mkdir(path)
        file = files.open("/a/b/f", create=True)
        files.rename("/a", "/empty")
        file.write(b"x", 0)
        return [files.listdir("/"), files.listdir("/empty/b"), files.open("/empty/b/f").read(9, 0)]

    assert agree_on_files(program, tmp_path) == [["empty"], ["f"], b"x"]


def test_what_is_refused_is_refused_with_the_same_errno(tmp_path: Path) -> None:
    """Missing, existing, wrong kind, not empty, into itself."""

    async def program(files: Files) -> list[str]:
        for path in ("/d", "/d/sub", "/e"):
            files.mkdir(path)
        files.open("/f", create=True)
        return [
            tried(call)
            for call in (
                lambda: files.open("/none"),
                lambda: files.open("/none/f", create=True),
                lambda: files.open("/f/g", create=True),
                lambda: files.open("/d", create=True),
                lambda: files.open("/f", create=True, exclusive=True),
                lambda: files.unlink("/none"),
                lambda: files.unlink("/d"),
                lambda: files.mkdir("/d"),
                lambda: files.mkdir("/none/d"),
                lambda: files.rmdir("/d"),
                lambda: files.rmdir("/none"),
                lambda: files.rmdir("/f"),
                lambda: files.rename("/none", "/x"),
                lambda: files.rename("/f", "/d"),
                lambda: files.rename("/d", "/f"),
                lambda: files.rename("/e", "/d"),
                lambda: files.rename("/d", "/d/sub/x"),
                lambda: files.rename("/f", "/none/f"),
                lambda: files.listdir("/none"),
                lambda: files.sync_dir("/none"),
                lambda: files.sync_dir("/d"),
            )
        ]

    seen = agree_on_files(program, tmp_path)
    assert seen.count("None") == 1
    assert {"ENOENT", "EEXIST", "EISDIR", "ENOTDIR", "ENOTEMPTY", "EINVAL"} <= set(seen)


def test_a_full_file_system_takes_what_fits(tiny: Path) -> None:
    """ENOSPC after the last byte that fits; overwriting goes on; space comes back with an unlink."""

    async def program(files: Files) -> list[object]:
        first, second = files.open("/first", create=True), files.open("/second", create=True)
        first.write(b"x" * 32768, 0)
        seen: list[object] = [tried(lambda: second.write(b"y" * 65536, 0)), second.size()]
        seen.append(tried(lambda: second.write(b"z", 32768)))
        seen.append(tried(lambda: second.write(b"z" * 100, 0)))
        first.close()
        files.unlink("/first")
        seen.append(tried(lambda: second.write(b"z" * 4096, 32768)))
        return [*seen, second.size(), second.read(2, 99)]

    seen = agree_on_files(program, tiny, lambda disk: setattr(disk, "capacity_bytes", 65536))
    assert seen[:3] == [errno.errorcode[errno.ENOSPC], 32768, "ENOSPC"]


@pytest.mark.parametrize("size", [1, 4096, 70_000])
def test_written_bytes_are_read_back(tmp_path: Path, size: int) -> None:
    """Overlapping writes in any order leave the last one on top, across pages."""

    async def program(files: Files) -> list[object]:
        file = files.open("/f", create=True)
        file.write(b"a" * size, 0)
        file.write(b"b" * size, size // 2)
        file.fsync()
        file.forget_clean()
        return [file.size(), file.read(size * 2, 0) == b"a" * (size // 2) + b"b" * size]

    assert agree_on_files(program, tmp_path) == [size // 2 + size, True]
