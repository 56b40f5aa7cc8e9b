"""Files by their usual names: open, os, pathlib, trio.Path and trio.open_file on the host's simulated disk."""

from __future__ import annotations

import errno
import io
import os
import shutil
import stat
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio

from simkit.guard import RefusedError
from simkit.tape import Tape
from simkit.world import World, run
from tests.simkit.rig import on, outcome_of, simulate


def inside(look: Callable[[], Any]) -> Any:
    """What `look` returns as a process of a host."""

    async def main(world: World) -> Any:
        return await on(world.host("h"), look)

    return simulate(main)


def test_a_file_is_written_and_read() -> None:
    """Text, bytes, append, exclusive creation, update in place, seek and truncate do as they do on a real disk."""

    def look() -> list[Any]:
        with open("/data/a.txt", "w", encoding="utf-8") as file:  # noqa: PTH123
            file.write("hällo\nworld\n")
        with open("/data/a.txt", "a", encoding="utf-8") as file:  # noqa: PTH123
            file.write("!")
        with pytest.raises(FileExistsError):
            open("/data/a.txt", "x")  # noqa: PTH123, SIM115
        with open("/data/a.txt", "rb+") as file:  # noqa: PTH123
            file.seek(0)
            file.write(b"H")
            file.seek(-1, os.SEEK_END)
            last = file.read()
            file.truncate(13)
        with open("/data/a.txt", encoding="utf-8") as file:  # noqa: PTH123
            return [last, list(file), os.path.getsize("/data/a.txt")]  # noqa: PTH202

    assert inside(look) == [b"!", ["Hällo\n", "world\n"], 13]


def test_pathlib_and_os_see_the_same_disk() -> None:
    """exists, mkdir, rename, replace, unlink, listdir in order, glob, walk, touch and relative paths."""

    def look() -> list[Any]:
        data = Path("/data")
        (data / "deep" / "er").mkdir(parents=True)
        (data / "b").write_text("b")
        (data / "a").write_bytes(b"a")
        os.rename("/data/b", "/data/c")  # noqa: PTH104
        (data / "c").replace(data / "deep" / "c")
        (data / "t").touch()
        (data / "t").unlink()
        Path("relative").write_text("r")
        return [
            *(os.listdir("/data"), sorted(str(path) for path in data.rglob("*"))),  # noqa: PTH208
            *((data / "b").exists(), (data / "deep").is_dir(), (data / "a").is_file(), (data / "a").stat().st_size),
            *(Path("/relative").read_text(), str(Path("x").absolute()), [found[0] for found in os.walk("/data")]),
        ]

    assert inside(look) == [
        *(["a", "deep"], ["/data/a", "/data/deep", "/data/deep/c", "/data/deep/er"]),
        *(False, True, True, 1),
        *("r", "/x", ["/data", "/data/deep", "/data/deep/er"]),
    ]


def _save(*, file: bool, folder: bool) -> None:
    with open("/data/new", "wb") as out:  # noqa: PTH123
        out.write(b"x" * 100)
        out.flush()
        if file:
            os.fsync(out.fileno())
    if folder:
        fd = os.open("/data", os.O_RDONLY)
        os.fsync(fd)
        os.close(fd)


@pytest.mark.parametrize(("file", "folder", "left"), [(True, True, 100), (True, False, None), (False, True, 0)])
def test_only_what_is_synced_survives(file: bool, folder: bool, left: int | None) -> None:
    """The bytes need fsync of the file, the name fsync of the directory, as on a real disk that loses power."""

    async def main(world: World) -> int | None:
        host = world.host("h")
        await on(host, lambda: _save(file=file, folder=folder))
        host.power_loss("lose")
        return await on(host, lambda: Path("/data/new").stat().st_size if Path("/data/new").exists() else None)

    assert simulate(main) == left


def test_what_is_not_flushed_dies_with_the_process() -> None:
    """The program's own buffer is lost by a kill, the page cache is not."""

    async def main(world: World) -> bytes:
        async def program() -> None:
            file = open("/data/log", "wb")  # noqa: ASYNC230, PTH123, SIM115
            file.write(b"flushed")
            file.flush()
            file.write(b"buffered")
            await trio.sleep_forever()

        process = world.host("h").start(program)
        await trio.sleep(1)
        process.kill()
        return world.host("h").disk.read_file("/data/log")

    assert simulate(main) == b"flushed"


def test_trio_files_run_unchanged() -> None:
    """trio.open_file and trio.Path work on the same disk, take virtual time, and repeat with the seed."""

    async def program() -> list[Any]:
        async with await trio.open_file("/data/x", "w") as file:
            await file.write("one\ntwo\n")
            await file.flush()
            await trio.to_thread.run_sync(os.fsync, file.fileno())
        path = trio.Path("/data/x")
        lines = [line async for line in await path.open()]
        await path.rename("/data/y")
        return [lines, await path.exists(), [str(found) for found in await trio.Path("/data").iterdir()]]

    async def main(world: World) -> list[Any]:
        status = await world.host("h").start(program).wait()
        assert status.error is None, status.error
        return [*status.value, world.now_ns > 0]

    first, again = outcome_of(main), run(main, tape=Tape.from_seed(0), kernel="fallback")
    assert first.unwrap() == [["one\n", "two\n"], False, ["/data/y"], True]
    assert first.digest == again.digest


def test_hosts_have_files_of_their_own() -> None:
    """What one host writes, another does not see; the error says how to put a file there."""

    async def main(world: World) -> str:
        await on(world.host("a"), lambda: Path("/f").write_text("a"))
        with pytest.raises(FileNotFoundError) as caught:
            await on(world.host("b"), lambda: Path("/f").read_text())
        world.host("b").disk.load({"/f": b"loaded"})
        assert "disk.load" in str(getattr(caught.value, "__notes__", ""))
        return await on(world.host("b"), lambda: Path("/f").read_text())

    assert simulate(main) == "loaded"


def test_a_boundary_can_kill_in_the_middle_of_a_save() -> None:
    """A crash at a boundary that `trio.Path` crosses in its thread takes the process down there."""

    async def main(world: World) -> tuple[str, list[str]]:
        host = world.host("h")
        process = host.start(trio.Path("/data/x").write_text, "hello")
        host.at_boundary(2, process.kill)
        status = await process.wait()
        return status.kind, host.disk.listdir("/data")

    assert simulate(main) == ("killed", ["x"])


def test_python_reads_its_own_installation() -> None:
    """Data that a package brings along is read as it is, and cannot be written."""
    own = Path(sysconfig.get_path("stdlib")) / "this.py"
    assert inside(lambda: own.read_text(encoding="utf-8")) == own.read_text(encoding="utf-8")
    assert inside(own.exists)


REFUSED: list[Callable[[], Any]] = [
    lambda: os.chmod("/data/x", 0o600),  # noqa: PTH101
    lambda: Path("/b").symlink_to("/a"),
    lambda: os.truncate("/data/x", 1),
]


@pytest.mark.parametrize("reach", REFUSED)
def test_what_the_disk_has_not_is_refused(reach: Callable[[], Any]) -> None:
    """Modes, links and the like raise at once, with the line and the simulated way."""

    async def main(world: World) -> None:
        await on(world.host("h"), reach)

    error = outcome_of(main).error
    assert isinstance(error, RefusedError)
    assert error.problem.where.startswith(f"{__file__}:{reach.__code__.co_firstlineno}")


def test_a_descriptor_means_nothing_elsewhere() -> None:
    """A simulated file is no file of the machine: its descriptor is closed with it."""

    def look() -> bool:
        with open("/data/a", "wb", buffering=0) as file:  # noqa: PTH123
            fd = file.fileno()
            assert os.write(fd, b"abc") == 3
            assert os.fstat(fd).st_size == 3
        with pytest.raises(OSError, match="descriptor"):
            os.fsync(fd)
        return isinstance(file, io.RawIOBase)

    assert inside(look)


_UNDER_COVERAGE = """
import coverage, late, simkit

measured = coverage.Coverage(data_file=None, source=["."])
measured.start()

async def main(world):
    host = world.host("desk")
    await host.start(late.look).wait()
    return host.has_disk

outcomes = [simkit.run(main, tape=simkit.Tape.from_seed(0)) for _ in range(2)]
measured.stop()
print([outcome.unwrap() for outcome in outcomes], outcomes[0].digest == outcomes[1].digest)
print(sorted(measured.get_data().measured_files())[0].rpartition("/")[2])
"""


def test_coverage_looks_for_files_in_the_real_world(tmp_path: Path) -> None:
    """When it first sees code run, in whatever process: the host's disk is not asked, and the first run is like the second."""
    pytest.importorskip("coverage")
    (tmp_path / "late.py").write_text("async def look():\n    return 1\n")
    (tmp_path / "under_coverage.py").write_text(_UNDER_COVERAGE)
    done = subprocess.run(
        [sys.executable, "under_coverage.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout.splitlines() == ["[False, False] True", "late.py"], done.stderr


def _tried(call: Callable[[], Any]) -> Any:
    """What a call gives: its value, or its error by name and number."""
    try:
        return call()
    except (OSError, TypeError) as error:
        return type(error).__name__, getattr(error, "errno", None)


def _names(folder: str) -> list[str]:
    return sorted(entry.name for entry in Path(folder).iterdir())


def _misuse(root: str) -> list[Any]:
    """Names that are in the way, descriptors that are open the other way round, writes of nothing."""
    file, folder = Path(root, "f"), Path(root, "d")
    file.write_bytes(b"hello")
    folder.mkdir()
    seen = [
        _tried(lambda: Path(root, "f/a/b").write_bytes(b"")),
        _tried(lambda: Path(root, "f/a").read_bytes()),
        _tried(lambda: _names(root + "/f/a")),
        _tried(lambda: Path(root, "f/a/b").mkdir()),
        _tried(lambda: os.stat("")),  # noqa: PTH116  # Path("") is the working folder
        _tried(lambda: Path(root, "never").rmdir()),
        file.read_bytes(),
    ]
    reading, writing = os.open(file, os.O_RDONLY), os.open(file, os.O_WRONLY)
    seen += [
        _tried(lambda: os.ftruncate(reading, 1)),
        _tried(lambda: os.write(reading, b"x")),
        _tried(lambda: os.pwrite(reading, b"x", 0)),
        _tried(lambda: os.read(writing, 1)),
        _tried(lambda: os.ftruncate(writing, -1)),
        _tried(lambda: os.pread(reading, 2, -1)),
        _tried(lambda: os.read(reading, -1)),
        _tried(lambda: os.write(writing, 5)),  # type: ignore[arg-type]
        _tried(lambda: os.pwrite(writing, [1, 2], 0)),  # type: ignore[arg-type]
        os.pread(reading, 3, 1),
        os.pwrite(writing, b"LL", 2),
        os.lseek(writing, 100, os.SEEK_SET),
        os.write(writing, b""),
        os.read(reading, 10),
    ]
    with file.open("rb", buffering=0) as raw, pytest.raises(io.UnsupportedOperation):
        raw.truncate(2)
    with Path(root, "log").open("ab", buffering=0) as log:
        log.write(b"12345")
        seen += [os.pwrite(log.fileno(), b"6", 0), Path(root, "log").read_bytes()]
    folder.rename(root + "/e")
    seen += [_tried(lambda: Path(root, "d/x").write_bytes(b"")), _names(root + "/e")]
    Path(root, "e").rmdir()
    seen += [_tried(lambda: Path(root, "e/x").write_bytes(b"")), _tried(lambda: _names(root + "/e"))]
    return [*seen, file.stat().st_size, _names(root)]


def test_misuse_fails_as_on_a_real_disk(tmp_path: Path) -> None:
    """The same calls on a real folder and in simulation: the same errors, and nothing is changed by them."""
    assert inside(lambda: _misuse("/work")) == _misuse(str(tmp_path))


def _rotated(root: str) -> list[Any]:
    log = Path(root, "log")
    with log.open("w", encoding="utf-8") as file:
        mine = os.fstat(file.fileno())
        same = os.path.samestat(mine, log.stat())
        log.rename(root + "/log.1")
        log.write_bytes(b"")
        found = [os.path.samestat(mine, Path(root, name).stat()) for name in ("log", "log.1")]
        Path(root, "log.1").unlink()
        return [same, *found, os.path.samestat(mine, os.fstat(file.fileno())), os.fstat(file.fileno()).st_nlink]


def test_a_file_keeps_its_number_under_another_name(tmp_path: Path) -> None:
    """By it a program finds out that its log was rotated, and by the number of names that a file was removed."""
    assert inside(lambda: _rotated("/work")) == _rotated(str(tmp_path)) == [True, False, True, True, 0]


def test_a_write_that_half_fits_says_how_much_did() -> None:
    """As write(2), which raises ENOSPC only when nothing fits: a buffer that tries again appends nothing twice."""

    def look() -> list[Any]:
        fd = os.open("/w/a", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        seen = [os.write(fd, b"y" * 6000), _tried(lambda: os.write(fd, b"y" * 6000))]
        Path("/w/a").unlink()
        os.close(fd)
        Path("/w/room").write_bytes(b"x" * 2000)
        with open("/w/log", "ab") as log:  # noqa: PTH123
            log.write(b"0123456789" * 300)
            seen.append(_tried(log.flush))
            Path("/w/room").unlink()
        return [*seen, Path("/w/log").read_bytes() == b"0123456789" * 300]

    async def main(world: World) -> Any:
        world.host("h").disk.capacity_bytes = 4096
        return await on(world.host("h"), look)

    full = ("OSError", errno.ENOSPC)
    assert simulate(main) == [4096, full, full, True]


def _sync_all() -> None:
    os.sync()  # by its name in the module, where the stand-in is


@pytest.mark.parametrize("ask", [_sync_all, lambda: os.statvfs("/"), lambda: shutil.disk_usage("/")])
def test_the_disks_of_the_real_machine_are_no_part_of_it(ask: Callable[[], Any]) -> None:
    """A sync of everything would sync nothing here, and the room on real disks differs from machine to machine."""
    with pytest.raises(RefusedError, match="real machine"):
        inside(ask)


def _folders(root: str) -> list[Any]:
    """Directories where files are expected, and the other way round; what `stat` tells."""
    file, folder = Path(root, "f"), Path(root, "d")
    file.write_bytes(b"hello")
    folder.mkdir()
    new = os.O_CREAT | os.O_EXCL | os.O_WRONLY
    seen = [
        _tried(lambda: folder.open("x")),
        _tried(lambda: os.open(folder, new)),
        _tried(lambda: os.open(folder, os.O_RDONLY | os.O_CREAT)),
        _tried(lambda: os.open(folder, os.O_RDONLY | os.O_TRUNC)),
        _tried(lambda: os.open(file, os.O_RDONLY | os.O_DIRECTORY)),
        _tried(lambda: os.lseek(os.open(file, os.O_RDONLY), 0, 7)),
        [entry.inode() == Path(entry).stat().st_ino for entry in os.scandir(root)],
    ]
    told = file.stat()
    return [*seen, *(type(value) for value in (told.st_mtime, told.st_mtime_ns, told.st_blocks, told.st_blksize))]


def test_folders_are_no_files(tmp_path: Path) -> None:
    """The same calls on a real folder and in simulation: the same errors, and all that `stat` tells is there."""
    assert inside(lambda: _folders("/work")) == _folders(str(tmp_path))


@pytest.mark.parametrize("flag", [os.O_SYNC, os.O_DSYNC])
def test_a_file_that_was_opened_so_is_synced_by_each_write(flag: int) -> None:
    """What write returns for is durable, and nothing else has to be called."""

    async def main(world: World) -> bytes:
        host = world.host("h")

        def write() -> None:
            fd = os.open("/w/f", os.O_CREAT | os.O_WRONLY | flag)
            os.fsync(os.open("/w", os.O_RDONLY))
            os.write(fd, b"one")
            os.pwrite(fd, b"two", 3)

        await on(host, write)
        host.power_loss("lose")
        return host.disk.read_file("/w/f")

    assert simulate(main) == b"onetwo"


def test_an_open_folder_is_synced_whatever_it_is_called_by_then() -> None:
    """A descriptor is of the folder, not of its name, which may be another one's."""

    async def main(world: World) -> list[str]:
        host = world.host("h")

        def rename() -> None:
            Path("/w/d").mkdir()
            fd = os.open("/w/d", os.O_RDONLY)
            Path("/w/d/x").write_bytes(b"")
            Path("/w/d").rename("/w/e")
            Path("/w/d").mkdir()
            os.fsync(fd)
            os.fsync(os.open("/w", os.O_RDONLY))
            assert stat.S_ISDIR(os.fstat(fd).st_mode)
            assert os.fstat(fd).st_ino == Path("/w/e").stat().st_ino

        await on(host, rename)
        host.power_loss("lose")
        return host.disk.listdir("/w/e")

    assert simulate(main) == ["x"]


def test_a_text_that_was_detached_leaves_its_buffer_to_be_flushed() -> None:
    """Of the text there is nothing to flush any more, and that is no error of anybody."""

    async def main(world: World) -> Any:
        host = world.host("h")
        kept: list[Any] = []

        async def program() -> None:
            text = open("/w/f", "w")  # noqa: PTH123, SIM115, ASYNC230  # simulated
            text.write("text, ")
            kept.extend([text, text.detach()])
            kept[1].write(b"bytes")

        return (await host.start(program).wait()).kind, host.disk.read_file("/w/f")

    assert simulate(main) == ("exited", b"text, bytes")


@pytest.mark.parametrize(("way", "left"), [("returns", b"ab"), ("fails", b"ab"), ("exits", b"ab"), ("killed", b"")])
def test_an_interpreter_that_comes_to_its_end_flushes_its_files(way: str, left: bytes) -> None:
    """However it ends by itself, as on a real machine; a kill leaves what was flushed, and nothing else."""

    async def main(world: World) -> bytes:
        host, kept = world.host("h"), []

        async def program() -> None:
            binary = open("/w/f", "ab")  # noqa: PTH123, SIM115, ASYNC230  # simulated
            text = open("/w/f", "a")  # noqa: PTH123, SIM115, ASYNC230  # simulated
            kept.extend([binary, text])
            binary.write(b"a")
            text.write("b")
            if way == "fails":
                raise KeyError
            if way == "exits":
                raise SystemExit(3)
            if way == "killed":
                await trio.sleep_forever()

        process = host.start(program)
        await trio.sleep(1)
        process.kill()
        return host.disk.read_file("/w/f")

    assert outcome_of(main).unwrap() == left
