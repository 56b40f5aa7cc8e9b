"""Files that keep a log and make their bytes when somebody looks, beside a model that does everything at once."""

from __future__ import annotations

import random

import attrs
import pytest

from simkit._storage.inode import LOG_MAX
from simkit.disk import Disk
from tests.simkit.disk_rig import made, new_disk

PATHS = ("/a", "/b")


@attrs.define
class Bytes:
    """What is seen of a file, and what a power loss leaves when it loses all that it may."""

    seen: bytearray = attrs.field(factory=bytearray)
    kept: bytearray = attrs.field(factory=bytearray)

    def write(self, data: bytes, offset: int) -> None:
        self.seen.extend(bytes(max(0, offset - len(self.seen))))
        self.seen[offset : offset + len(data)] = data

    def truncate(self, size: int) -> None:
        self.seen = bytearray(self.seen[:size].ljust(size, b"\0"))


def step(disk: Disk, model: dict[str, Bytes], noise: random.Random) -> None:
    """Do the same to both, and look at both."""
    path = noise.choice(PATHS)
    file, bytes_ = disk.open(path), model[path]
    match noise.choice(
        ["write", "write", "write", "write", "read", "truncate", "fsync", "look", "drop", "rot", "power"]
    ):
        case "write":
            for _ in range(noise.choice((1, 1, 1, LOG_MAX))):
                data = noise.randbytes(noise.choice((1, 7, 512, 600, 4096)))
                offset = noise.choice((0, 3, 500, 512, 4096, len(bytes_.seen)))
                file.write(data, offset)
                bytes_.write(data, offset)
        case "read":
            size, offset = noise.choice((1, 16, 512, 5000)), noise.choice((0, 24, 500, 4090, len(bytes_.seen)))
            assert bytes(file.read(size, offset)) == bytes_.seen[offset : offset + size]
        case "truncate":
            size = noise.choice((0, 1, 512, 5000))
            file.truncate(size)
            bytes_.truncate(size)
        case "fsync":
            file.fsync()
            bytes_.kept = bytearray(bytes_.seen)
        case "look":
            assert file.size() == len(bytes_.seen)
            assert disk.durable_files() == {path: bytes(one.kept) for path, one in model.items()}
            assert disk.read_file(path) == bytes_.seen
        case "drop":
            disk.drop_caches()
        case "rot" if bytes_.seen and bytes_.seen == bytes_.kept:  # nothing is pending that may cover it
            at = noise.randrange(len(bytes_.seen))
            disk.corrupt(path, at, 3)
            bytes_.seen[at] ^= 8
            bytes_.kept[at] ^= 8
        case "power":
            mode = noise.choice(("keep", "lose"))
            disk.crash("keep" if mode == "keep" else "lose")
            for one in model.values():
                one.kept = bytearray(one.seen if mode == "keep" else one.kept)
                one.seen = bytearray(one.kept)
            return
    file.close()


@pytest.mark.parametrize("seed", range(40))
def test_a_file_is_what_was_done_to_it(seed: int) -> None:
    """Reads, sizes and what is durable agree after every step, whatever was asked for in between."""
    disk, noise = new_disk(seed), random.Random(seed)
    model = {path: Bytes() for path in PATHS}
    for path in PATHS:
        made(disk, path, b"")
    for _ in range(120):
        step(disk, model, noise)
    assert {path: disk.read_file(path) for path in PATHS} == {path: bytes(one.seen) for path, one in model.items()}
    disk.crash("lose")
    assert disk.durable_files() == {path: bytes(one.kept) for path, one in model.items()}


def test_a_journal_that_nobody_reads_has_no_images() -> None:
    """It is written, synced, read behind its end, and gone: no bytes were put together for it."""
    disk = new_disk()
    file = disk.open("/j", create=True)
    for number in range(10):
        file.write(bytes(512), number * 512)
    file.fsync()
    assert not file.read(8, 5120)
    assert file.size() == 5120
    assert (file.inode._cache, bytes(file.inode._base)) == (None, b"")
    assert disk.durable_files() == {}  # its name is not durable yet
    disk.sync_dir("/")
    assert disk.durable_files() == {"/j": bytes(5120)}


def test_a_long_log_is_cut() -> None:
    """What is durable goes into the image once there is much of it, so that a log does not grow with the run."""
    disk = new_disk()
    file = disk.open("/f", create=True)
    for number in range(10 * LOG_MAX):
        file.write(b"%4d" % number, 4 * (number % 100))
        file.fsync()
    assert len(file.inode.log) <= LOG_MAX
    assert file.read(4, 4 * 39) == b"%4d" % (10 * LOG_MAX - 1)
