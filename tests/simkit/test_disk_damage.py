"""Damage and delay: short reads, rot, misdirected writes, slow and stuck operations; each by name and from the tape."""

from __future__ import annotations

import errno

import pytest

from simkit.copies import Copies
from simkit.disk import SECTOR_BYTES, Disk, DiskFaults
from simkit.errors import OptionError
from tests.simkit.disk_rig import Program, made, new_disk


def test_a_short_read_gives_less_and_reading_on_gives_the_rest() -> None:
    """read(2) may return fewer bytes than there are, never none before the end; a loop sees them all."""
    disk = new_disk()
    file = made(disk, "/f", bytes(range(200)))
    disk.strike_next("short-read")
    part = file.read(200, 0)
    assert 0 < len(part) < 200
    assert bytes(part) == bytes(range(len(part)))
    disk.faults = DiskFaults(short_read=(1, 2))
    assert file.read_fully(300, 0) == bytes(range(200))
    assert disk.fired["short-read"] > 1


def test_a_rotten_bit_stays_rotten() -> None:
    """Exactly one bit differs, on this read, on the next and after a power loss."""
    disk = new_disk(3)
    file = made(disk, "/f", bytes(100))
    disk.strike_next("bit-rot", path="/f")
    rotten = bytes(file.read(100, 0))
    assert sum(byte.bit_count() for byte in rotten) == 1
    assert file.read(100, 0) == rotten
    disk.crash("keep")
    assert disk.read_file("/f") == rotten


def test_rot_can_be_placed() -> None:
    """By name: this bit of this byte."""
    disk = new_disk()
    made(disk, "/f", b"abc")
    assert disk.corrupt("/f", 1, bit=0)
    assert disk.read_file("/f") == b"acc"


def test_a_misdirected_write_shows_when_the_cache_is_gone() -> None:
    """The cache shows what was meant; the disk has the old bytes there, and the new ones in other sectors."""
    disk = new_disk(1)
    file = made(disk, "/f", b"o" * 4 * SECTOR_BYTES)
    disk.strike_next("misdirected-write")
    file.write(b"n" * SECTOR_BYTES, 0)
    file.fsync()
    assert disk.read_file("/f")[:SECTOR_BYTES] == b"n" * SECTOR_BYTES
    disk.drop_caches()
    image = disk.read_file("/f")
    assert image[:SECTOR_BYTES] == b"o" * SECTOR_BYTES
    assert image.count(b"n") == SECTOR_BYTES
    assert image.index(b"n") % SECTOR_BYTES == 0


def test_a_misdirected_write_can_hit_another_file() -> None:
    """Over seeds, both the file itself and its neighbour are hit."""
    hit: set[str] = set()
    for seed in range(30):
        disk = new_disk(seed)
        file = made(disk, "/f", b"o" * SECTOR_BYTES)
        made(disk, "/g", b"o" * SECTOR_BYTES)
        disk.strike_next("misdirected-write")
        file.write(b"n" * SECTOR_BYTES, 0)
        file.fsync()
        disk.crash("lose")
        hit.update(path for path in ("/f", "/g") if b"n" in disk.read_file(path))
    assert hit == {"/f", "/g"}


def test_a_failed_fsync_shows_when_the_cache_is_gone() -> None:
    """The dirty pages were dropped; a change of size is metadata and was not."""
    disk = new_disk()
    file = made(disk, "/f", b"old data")
    file.truncate(3)
    file.write(b"NEW", 0)
    disk.fail_next("fsync", errno.EIO)
    with pytest.raises(OSError, match="/f"):
        file.fsync()
    file.fsync()
    assert disk.read_file("/f") == b"NEW"
    disk.drop_caches()
    assert disk.read_file("/f") == b"old"


@pytest.mark.parametrize(("fault", "ns"), [("slow", 200_000_000), ("stuck", 600_000_000_000)])
def test_slow_and_stuck_operations_tell_who_met_them(fault: str, ns: int) -> None:
    """The operation succeeds, its delay is told to the hook and added up."""
    disk, program = new_disk(), Program()
    delays: list[tuple[object, int]] = []
    disk.on_delay = lambda owner, ns: delays.append((owner, ns))
    file = disk.open("/f", create=True, owner=program)
    disk.strike_next(fault, times=2)
    file.write(b"x", 0)
    file.fsync()
    file.write(b"y", 0)
    assert delays == [(program, ns)] * 2
    assert disk.delayed_ns == 2 * ns
    assert disk.fired == {fault: 2}


def test_a_fault_that_no_disk_knows_is_an_error() -> None:
    """The message lists the ones there are."""
    with pytest.raises(ValueError, match="bit-rot"):
        new_disk().strike_next("gremlins")


def test_a_calm_disk_misbehaves_no_more() -> None:
    """Neither what was asked for nor what was drawn happens."""
    disk = new_disk()
    disk.faults = DiskFaults(read_eio=(1, 1))
    disk.fail_next("write", errno.EIO)
    disk.calm()
    assert made(disk, "/f", b"x").read(1, 0) == b"x"
    assert disk.fired == {}


def copied(copies: Copies, name: str) -> Disk:
    disk = new_disk()
    made(disk, "/data/log", b"x" * 600)
    disk.sync_dir("/data")
    disk.spares = lambda path: copies.spares(name, path)
    return disk


def test_the_last_good_copy_is_spared_until_another_is_repaired() -> None:
    """Two of three copies rot, the third does not; once one is repaired, it may."""
    copies = Copies()
    copies.declare("log", [(name, "/data") for name in "abc"])
    disks = {name: copied(copies, name) for name in "abc"}
    assert [disks[name].corrupt("/data/log", 0) for name in "abcab"] == [True, True, False, True, True]
    assert copies.damaged("log") == (("a", "/data"), ("b", "/data"))
    assert disks["c"].fired == {"spared-bit-rot": 1}
    copies.repaired("a", "/data/log")
    assert disks["c"].corrupt("/data/log", 0)


def test_every_silent_damage_asks_the_budget() -> None:
    """Lying syncs and misdirected writes spare the only copy too; what is not declared is fair game."""
    copies = Copies()
    copies.declare("log", [("a", "/data/log")])
    disk = copied(copies, "a")
    file = disk.open("/data/log")
    for fault in ("misdirected-write", "lying-fsync"):
        disk.strike_next(fault)
        file.write(b"y", 0)
        file.fsync()
        disk.crash("lose")
        file = disk.open("/data/log")
        assert disk.read_file("/data/log")[:1] == b"y"
        assert disk.fired[f"spared-{fault}"] == 1
        assert fault not in disk.fired
    made(disk, "/other", b"z")
    assert disk.corrupt("/other", 0)


def test_copies_that_cannot_stay_good_are_refused() -> None:
    """More good copies than there are copies is a mistake of the caller."""
    with pytest.raises(ValueError, match="2 good copies of 1"):
        Copies().declare("log", [("a", "/x"), ("a", "x")], good=2)


def test_rot_of_what_is_on_its_way_to_the_disk_stays() -> None:
    """Rot shows in every read from now on, whatever else is written, synced or dropped from the cache."""
    disk = new_disk()
    file = made(disk, "/f", bytes(100), durable=False)
    assert disk.corrupt("/f", 5)
    rotten = bytes(5) + b"\x01" + bytes(94)
    assert file.read(100, 0) == rotten
    file.write(b"beside", 200)
    assert file.read(100, 0) == rotten
    file.fsync()
    disk.drop_caches()
    assert file.read(100, 0) == rotten
    assert disk.fired == {"bit-rot": 1}


@pytest.mark.parametrize("synced", [True, False])
def test_what_was_cut_off_cannot_rot(synced: bool) -> None:
    """Where a file was made longer again nobody has written anything: what shows there is no disk's."""
    disk = new_disk()
    file = made(disk, "/f", b"x" * 100, durable=synced)
    file.truncate(10)
    file.truncate(100)
    assert not disk.corrupt("/f", 50)
    file.write(b"y", 50)
    assert disk.corrupt("/f", 50)
    rotten = file.read(100, 0)
    file.fsync()
    disk.drop_caches()
    assert file.read(100, 0) == rotten == b"x" * 10 + bytes(40) + b"x" + bytes(49)


@pytest.mark.parametrize(("offset", "bit"), [(-1, 0), (0, 8), (0, -1)])
def test_rot_is_of_a_bit_that_a_byte_has(offset: int, bit: int) -> None:
    """An offset or a bit that cannot be is an error that names it."""
    disk = new_disk()
    made(disk, "/f", b"a")
    with pytest.raises(OptionError, match=r"Disk\.corrupt"):
        disk.corrupt("/f", offset, bit)


def test_rot_behind_the_end_did_not_happen() -> None:
    """Nothing is there that could rot, so nothing is counted."""
    disk = new_disk()
    made(disk, "/f", b"a")
    assert not disk.corrupt("/f", 1)
    assert disk.fired == {}


def test_a_misdirected_write_that_was_asked_for_waits_until_it_can_happen() -> None:
    """The first write to an empty disk has nowhere to go astray to; the second has."""
    disk = new_disk()
    file = disk.open("/f", create=True)
    disk.strike_next("misdirected-write")
    file.write(bytes(2000), 0)
    assert disk.fired == {}
    file.write(b"x" * 100, 0)
    assert disk.fired == {"misdirected-write": 1}
