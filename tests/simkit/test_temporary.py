"""`tempfile` in a simulated process: on its host's disk, with names from the tape; and nothing of the machine is touched."""

# What these would have replaced is what is tested.
# ruff: noqa: PTH110, PTH123, PTH208, SIM115

from __future__ import annotations

import gc
import os
import shutil
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest
import trio

from simkit.guard import RefusedError
from simkit.process import Process
from simkit.tape import Tape
from simkit.world import World, run
from tests.simkit.rig import on, outcome_of, simulate

STATE = [
    (tempfile, "_name_sequence"),
    (tempfile, "tempdir"),
    (tempfile, "_O_TMPFILE_WORKS"),
    (shutil, "_use_fd_functions"),
]


def everything() -> list[str]:
    """Use each function once; what is left in /tmp afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "deep").mkdir()
        (Path(folder) / "deep" / "file").write_text("x")
        assert Path(folder).parent == Path("/tmp")
    with tempfile.NamedTemporaryFile("w+", suffix=".txt") as named:
        named.write("hello")
        named.flush()
        assert Path(named.name).read_text() == "hello"
    with tempfile.TemporaryFile() as anonymous:
        anonymous.write(b"bytes")
        anonymous.seek(0)
        assert anonymous.read() == b"bytes"
        assert os.listdir("/tmp") == []
    with tempfile.SpooledTemporaryFile(max_size=3) as spooled:
        spooled.write(b"more than three")
        spooled.seek(0)
        assert spooled.read() == b"more than three"
    handle, path = tempfile.mkstemp(prefix="made-", dir="/data")
    with os.fdopen(handle, "w") as file:
        file.write("kept")
    assert Path(path).read_text() == "kept"
    kept = tempfile.mkdtemp()
    assert Path(kept).is_dir()
    assert not os.path.exists(tempfile.mktemp())
    assert tempfile.gettempdir() == "/tmp"
    return [*(f"/tmp/{name}" for name in os.listdir("/tmp")), *(f"/data/{name}" for name in os.listdir("/data"))]


async def use_everything(world: World) -> list[str]:
    return await on(world.host("a"), everything)


def test_tempfile_works_on_the_disk_of_the_host() -> None:
    """Each function of tempfile works in a process; what is to go is gone, what is to stay is on the simulated disk."""
    before = [getattr(module, name) for module, name in STATE]
    left = simulate(use_everything)
    assert len(left) == 2
    assert left[0].startswith("/tmp/tmp")
    assert left[1].startswith("/data/made-")
    assert not Path(left[0]).exists()
    assert [getattr(module, name) for module, name in STATE] == before


def test_names_come_from_the_tape() -> None:
    """The same seed gives the same names, whatever ran before; another seed gives others."""
    first = simulate(use_everything, 1)
    assert simulate(use_everything, 2) != first
    assert simulate(use_everything, 1) == first
    assert run(use_everything, tape=Tape.from_seed(1), kernel="fallback").unwrap() == first


def test_open_takes_descriptors_and_openers() -> None:
    """A descriptor is opened at its place, and closed with the file unless it is borrowed; an opener opens for `open`."""

    def work() -> list[object]:
        fd = os.open("/x", os.O_RDWR | os.O_CREAT)
        with open(fd, "wb", closefd=False) as file:
            file.write(b"one ")
        os.write(fd, b"two")
        with open(fd, "r+b", buffering=0) as file:
            file.seek(0)
            found: list[object] = [file.read(), os.fstat(fd).st_size]
        for call in (lambda: os.write(fd, b"x"), lambda: open(fd), lambda: open("/x", closefd=False)):
            with pytest.raises((OSError, ValueError)):
                call()
        with open("/y", "w", opener=lambda path, flags: os.open(path + ".new", flags)) as text:
            text.write("z")
        return [*found, Path("/y.new").read_text(), os.path.exists("/y")]

    async def main(world: World) -> list[object]:
        return await on(world.host("a"), work)

    assert simulate(main) == [b"one two", 7, "z", False]


def test_on_the_outside_it_is_refused() -> None:
    """The outside has no disk: the error names the line, and the way there is."""

    async def main(world: World) -> None:
        tempfile.mkdtemp()

    error = outcome_of(main).error
    assert isinstance(error, RefusedError)
    assert __file__ in error.problem.where
    assert "in a process of a host" in error.problem.expected


def test_what_a_dead_process_made_stays_and_the_machine_is_not_touched() -> None:
    """A killed process removes nothing; objects that are forgotten after the run never remove a path of the machine."""
    kept: list[Any] = []

    async def hold() -> None:
        kept.append(tempfile.NamedTemporaryFile())
        kept.append(tempfile.TemporaryDirectory())
        await trio.sleep_forever()

    async def main(world: World) -> list[str]:
        process: Process = world.host("a").start(hold)
        await trio.sleep(1)
        process.kill()
        return await on(world.host("a"), lambda: os.listdir("/tmp"))

    assert len(simulate(main)) == 2
    file, folder = (Path(one.name) for one in kept)
    file.write_text("somebody else's, of the same name by chance")
    folder.mkdir()
    try:
        kept.clear()
        gc.collect()
        assert file.exists()
        assert folder.exists()
    finally:
        file.unlink()
        folder.rmdir()


def test_what_is_forgotten_is_removed_while_its_process_runs() -> None:
    """As outside: a named file that nobody holds any more is gone."""

    def work() -> list[str]:
        tempfile.NamedTemporaryFile()
        return os.listdir("/tmp")

    async def main(world: World) -> list[str]:
        return await on(world.host("a"), work)

    assert simulate(main) == []


def test_real_temporary_files_are_real_again() -> None:
    """After a run, and in another thread beside one, tempfile is what it was."""
    seen: list[bool] = []

    def beside() -> None:
        with tempfile.NamedTemporaryFile() as file:
            seen.append(os.path.exists(file.name))

    simulate(use_everything)
    thread = threading.Thread(target=beside)
    thread.start()
    thread.join()
    beside()
    assert seen == [True, True]
