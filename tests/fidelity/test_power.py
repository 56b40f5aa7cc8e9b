"""Power loss, failing and frozen devices: a real ext4 file system in an image, and the simulated disk.

The image is copied at an instant, which is what a disk holds when the power goes, and the copy is mounted anew. What it
shows must be one of the states that the simulation holds possible; what was synced must be there in both.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trio

from simkit.disk import Disk
from simkit.tape import Tape
from simkit.world import World
from tests.fidelity.conftest import mounted, tool
from tests.fidelity.stages import Files, RealFiles, SimulatedFiles, tried
from tests.simkit.rig import simulate

pytestmark = pytest.mark.slow  # real processes, file systems, time

MIB = 1 << 20
FIFREEZE, FITHAW = 0xC0045877, 0xC0045878


@contextlib.contextmanager
def ext4(image: Path, target: Path, *features: str, size: int = 16 * MIB, make: bool = True) -> Iterator[Path]:
    """An ext4 file system in an image file, mounted."""
    if make:
        with image.open("wb") as file:
            file.truncate(size)
        subprocess.run([tool("mkfs.ext4"), "-q", "-F", *features, str(image)], check=True)
    yield from mounted(image, target, "-o", "loop,errors=continue")


Synced = Callable[[Files], None]


def loses(setup: Synced, program: Synced, folder: Path) -> dict[str, bytes]:
    """Run `setup` and make it durable, run `program`, cut the power: what is there, checked against every simulated state."""
    image, copy = folder / "image", folder / "copy"
    with ext4(image, folder / "mnt") as mount, RealFiles(mount) as files:
        setup(files)
        os.sync()
        program(files)
        shutil.copyfile(image, copy)
    with ext4(copy, folder / "mnt", make=False) as mount:
        found = {
            f"/{path.relative_to(mount)}": path.read_bytes() for path in sorted(mount.rglob("*")) if path.is_file()
        }
    disk = Disk("machine", Tape.from_seed(0).stream("disk"))
    setup(SimulatedFiles(disk))
    disk.crash("keep")
    program(SimulatedFiles(disk))
    states = disk.crash_states(5000)
    assert states.complete
    assert found in [dict(state.files) for state in states]
    return found


def put(files: Files, path: str, data: bytes, *, sync: bool = False) -> None:
    handle = files.open(path, create=True)
    handle.write(data, 0)
    if sync:
        handle.fsync()
    handle.close()


def test_what_was_synced_with_its_directory_is_there(root: None, tmp_path: Path) -> None:
    """fsync of the file and of its directory: after the power loss both name and bytes are there."""

    def program(files: Files) -> None:
        files.mkdir("/d")
        files.sync_dir("/")
        put(files, "/d/f", b"data", sync=True)
        files.sync_dir("/d")

    assert loses(lambda _: None, program, tmp_path) == {"/d/f": b"data"}


def test_unsynced_writes_are_lost(root: None, tmp_path: Path) -> None:
    """An overwrite without fsync, beside one with: the first is lost, which the simulation holds possible."""

    def setup(files: Files) -> None:
        put(files, "/f", b"old")
        put(files, "/g", b"old")

    def program(files: Files) -> None:
        put(files, "/f", b"new")
        put(files, "/g", b"new", sync=True)

    assert loses(setup, program, tmp_path) == {"/f": b"old", "/g": b"new"}


@pytest.mark.parametrize("what", ["create", "unlink", "rename", "rename of a directory"])
def test_a_change_of_names_without_a_sync_is_lost(root: None, tmp_path: Path, what: str) -> None:
    """Created, unlinked, renamed and nothing synced since: after the power loss it never happened."""

    def setup(files: Files) -> None:
        files.mkdir("/d")
        put(files, "/d/f", b"data")

    def program(files: Files) -> None:
        if what == "create":
            put(files, "/new", b"")
        elif what == "unlink":
            files.unlink("/d/f")
        elif what == "rename":
            files.rename("/d/f", "/d/g")
        else:
            files.rename("/d", "/e")

    assert loses(setup, program, tmp_path) == {"/d/f": b"data"}


@pytest.mark.parametrize("what", ["create", "unlink", "rename", "rename of a directory"])
def test_a_change_of_names_is_durable_by_a_sync_of_its_directory(root: None, tmp_path: Path, what: str) -> None:
    """The same changes, each followed by an fsync of the directory: they have happened."""

    def setup(files: Files) -> None:
        files.mkdir("/d")
        put(files, "/d/f", b"data")

    def program(files: Files) -> None:
        if what == "create":
            put(files, "/d/new", b"", sync=True)
        elif what == "unlink":
            files.unlink("/d/f")
        elif what == "rename":
            files.rename("/d/f", "/d/g")
        else:
            files.rename("/d", "/e")
        files.sync_dir("/" if what == "rename of a directory" else "/d")

    assert (
        loses(setup, program, tmp_path)
        == {
            "create": {"/d/f": b"data", "/d/new": b""},
            "unlink": {},
            "rename": {"/d/g": b"data"},
            "rename of a directory": {"/e/f": b"data"},
        }[what]
    )


def test_a_name_can_become_durable_before_the_bytes(root: None, tmp_path: Path) -> None:
    """A new file, unsynced, beside one that was synced: its name is there, and it is empty."""

    def program(files: Files) -> None:
        put(files, "/f", b"data")
        put(files, "/g", b"data", sync=True)

    assert loses(lambda _: None, program, tmp_path) == {"/f": b"", "/g": b"data"}


@contextlib.contextmanager
def full_device(folder: Path) -> Iterator[RealFiles]:
    """An ext4 file system with a synced file `/f`, on a device that takes nothing more."""
    for small in mounted("none", folder / "small", "-t", "tmpfs", "-o", "size=6m"):
        with ext4(small / "image", folder / "mnt", "-O", "^has_journal", size=32 * MIB) as mount:
            with RealFiles(mount) as files:
                put(files, "/f", b"old", sync=True)
                with (small / "fill").open("wb", buffering=0) as fill, contextlib.suppress(OSError):
                    while True:
                        fill.write(b"x" * 65536)
                yield files
            (small / "fill").unlink()  # so that the file system can be unmounted whole


def failing_disk() -> SimulatedFiles:
    """A simulated disk with a synced file `/f`, whose next fsync fails."""
    disk = Disk("machine", Tape.from_seed(0).stream("disk"))
    put(SimulatedFiles(disk), "/f", b"old", sync=True)
    disk.fail_next("fsync", errno.EIO)
    return SimulatedFiles(disk)


def test_a_failed_fsync_drops_the_dirty_pages(root: None, tmp_path: Path) -> None:
    """The device below is full: fsync fails, a later one says fine; reads show the data until the cache is gone."""

    def program(files: Files) -> list[object]:
        handle = files.open("/f")
        size = handle.size()
        handle.write(b"n" * MIB, size)
        seen: list[object] = [tried(handle.fsync) != "None", "None" in [tried(handle.fsync) for _ in range(3)]]
        seen += [handle.size() - size, handle.read(4, size + MIB - 4)]
        handle.forget_clean()
        return [*seen, handle.size() - size, handle.read(4, size + MIB - 4), handle.read(3, 0)]

    with full_device(tmp_path) as files:
        real = program(files)
    assert real == program(failing_disk()) == [True, True, MIB, b"nnnn", MIB, b"\0\0\0\0", b"old"]


def test_a_failed_fsync_is_told_to_everybody_who_has_the_file_open(root: None, tmp_path: Path) -> None:
    """Whoever had it open is told once, also when another's fsync met the error; whoever opens it later is not."""

    def program(files: Files) -> list[bool]:
        one, other = files.open("/f"), files.open("/f")
        one.write(b"n" * MIB, 4096)
        seen = [tried(one.fsync) != "None"]
        for _ in range(3):
            tried(one.fsync)
        later = files.open("/f")
        return [*seen, tried(later.fsync) == "None", tried(other.fsync) != "None", tried(other.fsync) == "None"]

    with full_device(tmp_path) as files:
        real = program(files)
    assert real == program(failing_disk()) == [True] * 4


def test_rot_below_the_file_system_is_read_as_data(root: None, tmp_path: Path) -> None:
    """A bit turned over on the device: the next uncached read returns it, without an error."""

    def program(files: Files, rot: Callable[[], object]) -> list[object]:
        handle = files.open("/f")
        seen: list[object] = [handle.read(6, 0)]
        rot()
        handle.forget_clean()
        return [*seen, handle.read(6, 0), tried(handle.fsync)]

    image = tmp_path / "image"
    with ext4(image, tmp_path / "mnt") as mount, RealFiles(mount) as files:
        put(files, "/f", b"MARKED" + bytes(4090), sync=True)
        os.sync()

        def rot() -> None:
            at = image.read_bytes().index(b"MARKED")
            with image.open("r+b") as file:
                file.seek(at)
                file.write(b"L")

        real = program(files, rot)
    disk = Disk("machine", Tape.from_seed(0).stream("disk"))
    put(SimulatedFiles(disk), "/f", b"MARKED" + bytes(4090), sync=True)
    simulated = program(SimulatedFiles(disk), lambda: disk.corrupt("/f", 0, bit=0))
    assert real == simulated == [b"MARKED", b"LARKED", "None"]


def test_a_sector_that_is_gone_is_an_error(root: None, tmp_path: Path) -> None:
    """The device ends before the file does: an uncached read is EIO, what lies before it is still read."""

    def program(files: Files, cut: Callable[[], object]) -> list[str]:
        first, second = files.open("/first"), files.open("/second")
        cut()
        second.forget_clean()
        return [tried(lambda: second.read(6, 0)), tried(lambda: first.read(5, 0))]

    image = tmp_path / "image"
    with ext4(image, tmp_path / "mnt") as mount, RealFiles(mount) as files:
        put(files, "/first", b"FIRST", sync=True)
        put(files, "/second", b"SECOND" + bytes(4090), sync=True)
        os.sync()

        def cut() -> None:
            with image.open("r+b") as file:
                file.truncate(image.read_bytes().index(b"SECOND"))

        real = program(files, cut)
        with image.open("r+b") as file:
            file.truncate(16 * MIB)  # so that it can be unmounted whole
    disk = Disk("machine", Tape.from_seed(0).stream("disk"))
    put(SimulatedFiles(disk), "/first", b"FIRST", sync=True)
    put(SimulatedFiles(disk), "/second", b"SECOND" + bytes(4090), sync=True)
    simulated = program(SimulatedFiles(disk), lambda: disk.fail_next("read", errno.EIO, path="/second"))
    assert real == simulated == ["EIO", "b'FIRST'"]


def test_a_stuck_device_holds_its_writer_only(root: None, tmp_path: Path) -> None:
    """Frozen for a while: the write takes that long and succeeds, somebody who does not write goes on meanwhile."""

    def real() -> list[str]:
        with ext4(tmp_path / "image", tmp_path / "mnt") as mount:
            folder = os.open(mount, os.O_RDONLY)
            fcntl.ioctl(folder, FIFREEZE, 0)
            try:
                return trio.run(
                    stuck, lambda: put(RealFiles(mount), "/f", b"x"), lambda: fcntl.ioctl(folder, FITHAW, 0)
                )
            finally:
                with contextlib.suppress(OSError):
                    fcntl.ioctl(folder, FITHAW, 0)
                os.close(folder)

    async def stuck(write: Callable[[], None], thaw: Callable[[], object]) -> list[str]:
        seen: list[str] = []

        async def writer() -> None:
            await trio.to_thread.run_sync(write)
            seen.append("written")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(writer)
            await trio.sleep(0.2)
            seen.append("thawed")
            thaw()
        return seen

    async def main(world: World) -> list[str]:
        host, seen = world.host("machine"), list[str]()
        host.disk.strike_next("stuck", path="/f")

        async def writer() -> None:
            put(SimulatedFiles(host.disk), "/f", b"x")
            await trio.sleep(0)
            seen.append("written")

        process = host.start(writer)
        await trio.sleep(0.2)
        seen.append("thawed")
        world.calm()
        await process.wait()
        return seen

    assert real() == simulate(main) == ["thawed", "written"]
