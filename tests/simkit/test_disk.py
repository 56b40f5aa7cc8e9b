"""The simulated disk: what a running process sees, and what a power loss leaves."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable

import pytest

from simkit.disk import SECTOR_BYTES, Disk, ProcessDead, Tear
from simkit.tape import Tape
from tests.simkit.disk_rig import Program, made, new_disk


def outcomes(make: Callable[[Disk], None], read: Callable[[Disk], object], seeds: int = 60) -> list[object]:
    """What sampled power losses leave, each distinct result once, in order of appearance."""
    found: list[object] = []
    for seed in range(seeds):
        disk = new_disk(seed)
        make(disk)
        disk.crash()
        result = read(disk)
        if result not in found:
            found.append(result)
    return found


def test_reads_see_unsynced_writes_and_power_loss_does_not() -> None:
    """A write is visible at once and gone after a power loss that loses everything unsynced."""
    disk = new_disk()
    file = made(disk, "/f", b"old")
    file.write(b"new", 0)
    assert disk.read_file("/f") == b"new"
    disk.crash("lose")
    assert disk.read_file("/f") == b"old"


def test_a_power_loss_that_keeps_everything_keeps_everything() -> None:
    """Mode keep is a power loss after a lucky write-back."""
    disk = new_disk()
    made(disk, "/f", b"data", durable=False)
    assert disk.crash("keep").losses == {}
    assert disk.read_file("/f") == b"data"


def test_killing_a_process_keeps_what_it_wrote() -> None:
    """The page cache belongs to the kernel: a process's death loses nothing."""
    disk, program = new_disk(), Program()
    disk.open("/f", create=True, owner=program).write(b"data", 0)
    program.kill()
    assert disk.read_file("/f") == b"data"


def test_fsync_does_not_make_the_name_durable() -> None:
    """Strict POSIX: a new file that was synced, in a directory that was not, can be lost by name."""

    def make(disk: Disk) -> None:
        file = disk.open("/f", create=True)
        file.write(b"data", 0)
        file.fsync()

    def read(disk: Disk) -> object:
        return disk.read_file("/f") if disk.exists("/f") else None

    assert set(outcomes(make, read)) == {None, b"data"}


def test_the_option_makes_an_fsynced_new_file_findable() -> None:
    """With entry_durable_on_fsync, as on ext4, the fsync of a new or renamed file persists its name."""
    disk = new_disk(entry_durable_on_fsync=True)
    made(disk, "/f.tmp", b"data", durable=False).fsync()
    disk.rename("/f.tmp", "/f")
    disk.open("/f").fsync()
    made(disk, "/g", b"", durable=False)
    disk.crash("lose")
    assert disk.listdir("/") == ["f"]


def test_a_directory_sync_covers_its_own_entries_only() -> None:
    """Syncing one directory leaves the entries of another at risk."""
    disk = new_disk()
    for path in ("/a/f", "/b/f"):
        disk.open(path, create=True).fsync()
    disk.sync_dir("/a")
    disk.crash("lose")
    assert (disk.exists("/a/f"), disk.exists("/b/f")) == (True, False)


def test_a_lost_unlink_brings_the_file_back() -> None:
    """An unlink without a directory sync may never have happened: the file returns, with its durable bytes."""

    def make(disk: Disk) -> None:
        made(disk, "/f", b"data").close()
        disk.unlink("/f")

    assert set(map(str, outcomes(make, lambda disk: disk.durable_files()))) == {"{}", "{'/f': b'data'}"}


def test_a_rename_is_atomic_in_both_directions() -> None:
    """After a power loss the target holds all of the old or all of the new, and the source name agrees."""

    def make(disk: Disk) -> None:
        made(disk, "/f", b"old")
        made(disk, "/f.tmp", b"new")
        disk.rename("/f.tmp", "/f")

    found = outcomes(make, lambda disk: disk.durable_files())
    assert len(found) == 2
    assert {"/f": b"new"} in found
    assert {"/f": b"old", "/f.tmp": b"new"} in found


def test_the_classic_rename_without_fsync_can_leave_an_empty_file() -> None:
    """Rename over a file whose replacement was never synced: the new name with none of the new bytes is legal."""

    def make(disk: Disk) -> None:
        made(disk, "/f", b"old")
        made(disk, "/f.tmp", b"new", durable=False)
        disk.rename("/f.tmp", "/f")
        disk.sync_dir("/")

    assert b"" in outcomes(make, lambda disk: disk.read_file("/f"))


def test_unsynced_writes_are_settled_independently_of_their_order() -> None:
    """A later write can survive while an earlier one is lost, and the hole between reads as zeros."""

    def make(disk: Disk) -> None:
        file = made(disk, "/f", b"")
        for sector in range(2):
            file.write(b"x" * SECTOR_BYTES, sector * SECTOR_BYTES)

    found = outcomes(make, lambda disk: disk.read_file("/f"))
    assert bytes(SECTOR_BYTES) + b"x" * SECTOR_BYTES in found
    assert b"x" * SECTOR_BYTES in found
    assert b"" in found


def test_writes_tear_at_sector_bounds_only() -> None:
    """A torn write leaves whole sectors of the new data beside whole sectors of the old, at true disk offsets."""
    start, sectors = 100, 4
    seen = set()
    for seed in range(200):
        disk = new_disk(seed)
        file = made(disk, "/f", b"o" * (sectors * SECTOR_BYTES))
        file.write(b"n" * (sectors * SECTOR_BYTES - start), start)
        if "torn-write" not in disk.crash().losses:
            continue
        image = disk.read_file("/f")
        changes = [at for at in range(1, len(image)) if image[at] != image[at - 1] and at != start]
        assert all(at % SECTOR_BYTES == 0 for at in changes), changes
        seen.add(tuple(changes))
    assert len(seen) >= 3


def test_a_write_within_one_sector_never_tears() -> None:
    """The sector is the unit of atomicity: 512 aligned bytes are old or new."""

    def make(disk: Disk) -> None:
        made(disk, "/f", b"o" * SECTOR_BYTES).write(b"n" * SECTOR_BYTES, 0)

    found = outcomes(make, lambda disk: disk.read_file("/f"))
    assert sorted(map(str, found)) == sorted(map(str, [b"o" * SECTOR_BYTES, b"n" * SECTOR_BYTES]))


def test_a_truncate_is_durable_by_fsync_only() -> None:
    """An unsynced truncate may or may not have happened; a synced one has."""

    def make(disk: Disk) -> None:
        made(disk, "/f", b"12345678").truncate(3)

    assert sorted(outcomes(make, lambda disk: disk.size("/f"))) == [3, 8]  # type: ignore[type-var]
    disk = new_disk()
    file = made(disk, "/f", b"12345678")
    file.truncate(3)
    file.fsync()
    disk.crash("lose")
    assert disk.read_file("/f") == b"123"


def test_the_same_seed_loses_the_same() -> None:
    """A power loss is a function of the tape."""

    def digest(seed: int) -> str:
        disk = new_disk(seed)
        file = made(disk, "/f", b"")
        for at in range(20):
            file.write(bytes([at]) * 700, at * 700)
        disk.crash()
        return disk.digest()

    assert digest(3) == digest(3)
    assert digest(3) != digest(4)


def test_a_tape_without_departures_loses_nothing() -> None:
    """0 is nothing special: the shrunk power loss is one in which every write had arrived."""
    disk = Disk("a", Tape.from_departures({}).stream("disk/a"))
    made(disk, "/f", b"data", durable=False)
    assert disk.crash().losses == {}
    assert disk.read_file("/f") == b"data"


def test_an_explicit_directory_can_be_lost_with_all_that_is_in_it() -> None:
    """mkdir is an entry like any other: without a sync of the parent, everything below goes with it."""
    disk = new_disk(provisioned=False)
    disk.mkdir("/d")
    disk.open("/d/f", create=True).fsync()
    disk.sync_dir("/d")
    disk.crash("lose")
    assert disk.listdir("/") == []


def test_without_provisioning_a_missing_directory_is_an_error() -> None:
    """ENOENT for a file in a directory that nobody made, ENOTEMPTY and EEXIST as POSIX has them."""
    disk = new_disk(provisioned=False)
    for call, number in (
        (lambda: disk.open("/no/f", create=True), errno.ENOENT),
        (lambda: disk.open("/f"), errno.ENOENT),
        (lambda: disk.unlink("/f"), errno.ENOENT),
        (lambda: disk.open("/", create=True), errno.EISDIR),
        (lambda: disk.mkdir("/"), errno.EEXIST),
    ):
        with pytest.raises(OSError, match=re.escape(os.strerror(number))):
            call()
    disk.mkdir("/d")
    disk.open("/d/f", create=True, exclusive=True)
    with pytest.raises(FileExistsError):
        disk.open("/d/f", create=True, exclusive=True)
    with pytest.raises(OSError, match="not empty"):
        disk.rmdir("/d")


def test_the_root_stays_where_it_is() -> None:
    """It can be neither removed nor renamed nor replaced, as on a real disk, and is usable afterwards."""
    disk = new_disk()
    disk.mkdir("/d")
    calls: list[Callable[[], object]] = [
        lambda: disk.rmdir("/"),
        lambda: disk.rename("/", "/e"),
        lambda: disk.rename("/d", "/"),
    ]
    for call in calls:
        with pytest.raises(OSError, match=re.escape(os.strerror(errno.EBUSY))):
            call()
    disk.rmdir("/d")
    with pytest.raises(OSError, match=re.escape(os.strerror(errno.EBUSY))):
        disk.rmdir("/")
    with pytest.raises(FileNotFoundError):
        disk.open("/f")


def test_a_file_in_the_way_is_no_directory() -> None:
    """A path that leads through a file is ENOTDIR, whatever is asked of it, and the file stays what it was."""
    disk = new_disk()
    made(disk, "/f", b"kept")
    calls: list[Callable[[], object]] = [
        lambda: disk.open("/f/a/b", create=True),
        lambda: disk.open("/f/a"),
        lambda: disk.mkdir("/f/a/b"),
        lambda: disk.listdir("/f/a"),
        lambda: disk.rename("/f/a", "/g"),
        lambda: disk.unlink("/f/a"),
        lambda: disk.load({"/f/a/b": b""}),
    ]
    for call in calls:
        with pytest.raises(NotADirectoryError):
            call()
    assert disk.read_file("/f") == b"kept"
    disk.crash("lose")
    assert disk.read_file("/f") == b"kept"


@pytest.mark.parametrize("way", ["removed", "renamed", "lost"])
def test_a_directory_that_a_program_manages_does_not_come_back_by_itself(way: str) -> None:
    """Provisioning is for directories that were always there; one that is gone is ENOENT until somebody makes it."""
    disk = new_disk()
    disk.mkdir("/d")
    if way == "removed":
        disk.rmdir("/d")
    elif way == "renamed":
        disk.rename("/d", "/e")
    else:
        disk.crash("lose")
    with pytest.raises(FileNotFoundError):
        disk.open("/d/x", create=True)
    disk.mkdir("/d")
    disk.open("/d/x", create=True).fsync()
    disk.sync_dir("/d")
    disk.sync_dir("/")
    disk.crash("lose")
    assert disk.exists("/d/x")


def test_a_directory_that_was_renamed_takes_those_in_it_along() -> None:
    """Another one of its old name has none of them, and none comes to be in it by itself."""
    disk = new_disk()
    disk.open("/d/in/x", create=True)
    disk.rename("/d", "/e")
    disk.mkdir("/d")
    with pytest.raises(FileNotFoundError):
        disk.open("/d/in/x", create=True)
    assert (disk.listdir("/d"), disk.listdir("/e/in")) == ([], ["x"])


def test_what_is_loaded_stays_though_its_name_was_just_taken_away() -> None:
    """An unlink that no sync covered yet is over when the name is given anew from outside."""
    disk = new_disk()
    made(disk, "/d/f", b"old")
    disk.sync_dir("/d")
    disk.unlink("/d/f")
    disk.rmdir("/d")
    disk.load({"/d/f": b"new"})
    disk.sync_dir("/d")
    disk.sync_dir("/")
    disk.crash("lose")
    assert disk.read_file("/d/f") == b"new"


def test_a_write_of_nothing_changes_nothing() -> None:
    """Not the size either, wherever it is: neither one of no bytes, nor one that is torn before the first."""
    disk = new_disk()
    file = disk.open("/f", create=True)
    before = disk.boundaries
    file.write(b"", 100)
    assert (file.size(), disk.boundaries) == (0, before)
    disk.on_boundary = lambda _: Tear(0, lambda: None)
    with pytest.raises(ProcessDead):
        file.write(b"abc", 100)
    assert disk.size("/f") == 0


def test_a_size_below_zero_is_refused() -> None:
    """EINVAL, as from ftruncate(2)."""
    disk = new_disk()
    file = made(disk, "/f", b"abc")
    with pytest.raises(OSError, match="Invalid argument"):
        file.truncate(-1)
    assert disk.read_file("/f") == b"abc"
