"""Boundaries, kills inside the disk, and faults: each happens when asked, takes no effect, and is counted."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable

import pytest

from simkit.disk import Boundary, Disk, DiskFaults, ProcessDead, Tear
from tests.simkit.disk_rig import Program, made, new_disk


def test_boundaries_are_numbered_and_reported_before_they_take_effect() -> None:
    """The hook sees each state-changing operation once, in order, and the disk as it was before."""
    seen: list[tuple[int, str, int]] = []
    disk = new_disk()

    def hook(boundary: Boundary) -> None:
        seen.append((boundary.number, boundary.kind, disk.size("/f") if disk.exists("/f") else -1))

    disk.on_boundary = hook
    file = disk.open("/f", create=True)
    file.write(b"data", 0)
    file.read(4, 0)
    file.truncate(2)
    file.fsync()
    disk.rename("/f", "/g")
    disk.rename("/g", "/f")
    disk.sync_dir("/")
    disk.unlink("/f")
    kinds = ["create", "write", "truncate", "fsync", "rename", "rename", "sync_dir", "unlink"]
    assert seen == list(zip(range(1, 9), kinds, [-1, 0, 4, 2, 2, -1, 2, 2], strict=True))
    assert disk.boundaries == 8


@pytest.mark.parametrize("number", range(1, 7))
def test_a_hook_that_kills_the_owner_prevents_the_operation(number: int) -> None:
    """Whatever the boundary, after the kill it has not happened, and nothing after it does either."""
    disk, program = new_disk(), Program()
    states: list[str] = []

    def hook(boundary: Boundary) -> None:
        states.append(disk.digest())
        if boundary.number == number:
            program.kill()

    disk.on_boundary = hook
    with pytest.raises(ProcessDead):
        run_through(disk, program)
    assert len(states) == number
    assert disk.digest() == states[-1]
    with pytest.raises(ProcessDead):
        disk.open("/f", create=True, owner=program)


def run_through(disk: Disk, program: Program) -> None:
    file = disk.open("/f", create=True, owner=program)
    file.write(b"data", 0)
    file.fsync()
    disk.rename("/f", "/g", owner=program)
    disk.sync_dir("/", owner=program)
    disk.unlink("/g", owner=program)
    disk.sync_dir("/", owner=program)


def test_power_loss_inside_a_hook_ends_whoever_was_inside_the_disk() -> None:
    """The caller does not come back, whether it has an owner or not, and the write did not happen."""
    disk = new_disk()
    file = made(disk, "/f", b"old")

    def hook(_: Boundary) -> None:
        disk.crash("keep")

    disk.on_boundary = hook
    with pytest.raises(ProcessDead):
        file.write(b"new", 0)
    assert disk.read_file("/f") == b"old"
    with pytest.raises(ProcessDead):
        disk.open("/g", create=True)
    assert not disk.exists("/g")


def test_a_hook_can_tear_a_write() -> None:
    """A Tear writes the first bytes, then takes the writer down: a write(2) that was cut short."""
    disk, program = new_disk(), Program()
    file = disk.open("/f", create=True, owner=program)
    disk.on_boundary = lambda _: Tear(3, program.kill)
    with pytest.raises(ProcessDead):
        file.write(b"abcdef", 0)
    disk.on_boundary = None
    assert disk.read_file("/f") == b"abc"
    assert disk.fired == {"torn-by-hook": 1}


def test_handles_of_the_dead_raise_and_their_locks_are_given_back() -> None:
    """Every method of a dead handle raises a BaseException, closing is harmless, on_release ran once."""
    disk, program = new_disk(), Program()
    file = disk.open("/f", create=True, owner=program)
    released: list[int] = []
    file.on_release = lambda: released.append(1)
    before = disk.boundaries
    program.kill()
    for call in (
        lambda: file.read(1, 0),
        lambda: file.write(b"x", 0),
        lambda: file.truncate(0),
        file.fsync,
        file.size,
    ):
        with pytest.raises(ProcessDead):
            call()
    file.close()
    assert not issubclass(ProcessDead, Exception)
    assert (released, disk.boundaries, disk.size("/f")) == ([1], before, 0)


@pytest.mark.parametrize("kind", ["read", "write", "truncate", "fsync", "sync_dir", "rename", "unlink", "create"])
def test_an_error_asked_for_fires_once_and_is_counted(kind: str) -> None:
    """fail_next makes exactly the next operation of that kind fail, without taking effect, and counts it."""
    disk = new_disk()
    made(disk, "/old", b"data")
    disk.fail_next(kind, errno.EIO)
    digest = ""
    steps: list[Callable[[], object]] = [
        lambda: disk.open("/old").read(1, 0),
        lambda: disk.open("/new", create=True),
        lambda: disk.open("/new").write(b"x", 0),
        lambda: disk.open("/new").truncate(0),
        lambda: disk.open("/new").fsync(),
        lambda: disk.rename("/new", "/newer"),
        lambda: disk.sync_dir("/"),
        lambda: disk.unlink("/newer"),
    ]
    try:
        for step in steps:
            digest = disk.digest()
            step()
    except OSError as error:
        assert error.errno == errno.EIO  # noqa: PT017 - which step fails depends on the kind
    else:
        pytest.fail("nothing failed")
    assert disk.digest() == digest
    assert disk.fired == {f"{kind}-eio": 1}


def test_a_failed_fsync_drops_the_dirty_pages() -> None:
    """As on Linux: reads still show the data, the next fsync says fine, and a power loss takes it."""
    disk = new_disk()
    file = made(disk, "/f", b"old")
    file.write(b"new", 0)
    disk.fail_next("fsync", errno.EIO, path="/f")
    with pytest.raises(OSError, match="/f"):
        file.fsync()
    file.fsync()
    assert disk.read_file("/f") == b"new"
    disk.crash("keep")
    assert disk.read_file("/f") == b"old"


def test_a_lying_fsync_says_done_and_is_counted() -> None:
    """A disk that lies acknowledges and keeps nothing."""
    disk = new_disk()
    file = made(disk, "/f", b"old")
    disk.faults = DiskFaults(fsync_lies=(1, 1))
    file.write(b"new", 0)
    file.fsync()
    disk.crash("lose")
    assert disk.read_file("/f") == b"old"
    assert disk.fired["lying-fsync"] == 1


def test_errors_drawn_from_the_tape_fire_at_about_their_ratio() -> None:
    """One write in four fails, none of the failing ones takes effect, and the count is exact."""
    disk = new_disk(7)
    file = made(disk, "/f", b"")
    disk.faults = DiskFaults(write_eio=(1, 4))
    failures = 0
    for at in range(400):
        try:
            file.write(b"x", at)
        except OSError:
            failures += 1
    assert 60 < failures < 140
    assert disk.fired == {"write-eio": failures}


def test_a_full_disk_refuses_growth_but_not_overwriting() -> None:
    """ENOSPC at the capacity; space comes back with an unlink."""
    disk = new_disk()
    made(disk, "/a", b"x" * 600)
    file = made(disk, "/b", b"")
    disk.capacity_bytes = 1000
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        file.write(b"y" * 401, 0)
    file.write(b"y" * 400, 0)
    file.write(b"z" * 400, 0)
    disk.unlink("/a")
    file.write(b"y" * 600, 400)
    assert disk.fired == {"full": 1}
