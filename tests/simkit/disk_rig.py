"""What the tests of the disk share: a program reduced to its life, a disk, a durable file."""

from __future__ import annotations

from collections.abc import Callable

from simkit.disk import Disk, File
from simkit.tape import Tape


class Program:
    """A process, reduced to what the disk asks of it."""

    def __init__(self) -> None:
        self.alive = True
        self.callbacks: list[Callable[[], None]] = []

    def on_death(self, callback: Callable[[], None]) -> None:
        self.callbacks.append(callback)

    def kill(self) -> None:
        self.alive = False
        for callback in self.callbacks:
            callback()


def new_disk(seed: int = 0, *, entry_durable_on_fsync: bool = False, provisioned: bool = True) -> Disk:
    stream = Tape.from_seed(seed).stream("disk/a")
    return Disk("a", stream, entry_durable_on_fsync=entry_durable_on_fsync, provisioned=provisioned)


def made(disk: Disk, path: str, data: bytes, *, durable: bool = True) -> File:
    file = disk.open(path, create=True)
    file.write(data, 0)
    if durable:
        file.fsync()
        disk.sync_dir("/")
    return file
