"""The two stages on which a fidelity program plays: the real operating system, and a simulated world.

A program is one async function of a stage, or of files alone; it returns what it observed, and both must observe the same.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import socket as stdlib_socket
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, Protocol, Self

import trio

from simkit.disk import Disk, File
from simkit.network import NetworkOptions
from simkit.process import Process, current_process
from simkit.world import World
from tests.fidelity import actors
from tests.simkit.rig import simulate

#: No program takes that long on the real system; one that hangs there fails.
PATIENCE_S = 60


def told(error: BaseException) -> str:
    """What went wrong, as both stages call it: the name of the errno, at the root of trio's own error."""
    while True:
        if isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        elif isinstance(error, OSError) and error.errno is not None and not isinstance(error, stdlib_socket.gaierror):
            return errno.errorcode[error.errno]
        elif error.__cause__ is not None:
            error = error.__cause__
        else:
            return type(error).__name__


def tried(call: Callable[[], object]) -> str:
    """What a call returned, or what went wrong."""
    try:
        return repr(call())
    except OSError as error:
        return told(error)


async def attempted(call: Callable[[], Awaitable[object]], seconds: float = 1) -> str:
    """What an async call returned, what went wrong, or that it is still waiting."""
    with trio.move_on_after(seconds):
        try:
            answer = await call()
            return repr(bytes(answer) if isinstance(answer, bytearray) else answer)
        except (OSError, trio.BrokenResourceError) as error:
            return told(error)
    return "waits"


def connecting(host: str, port: int) -> Callable[[], Awaitable[str]]:
    """For `attempted`: connect and close."""

    async def connect() -> str:
        async with await trio.open_tcp_stream(host, port):
            return "connected"

    return connect


# ---------------------------------------------------------------------------------------------------------------- files
class Handle(Protocol):
    """An open file."""

    def read(self, size: int, offset: int) -> bytes: ...
    def write(self, data: bytes, offset: int) -> None: ...
    def truncate(self, size: int) -> None: ...
    def fsync(self) -> None: ...
    def size(self) -> int: ...
    def forget_clean(self) -> None: ...
    def close(self) -> None: ...


class Files(Protocol):
    """A file system, as far as the programs use it."""

    def open(self, path: str, *, create: bool = False, exclusive: bool = False) -> Handle: ...
    def rename(self, source: str, target: str) -> None: ...
    def unlink(self, path: str) -> None: ...
    def mkdir(self, path: str) -> None: ...
    def rmdir(self, path: str) -> None: ...
    def sync_dir(self, path: str) -> None: ...
    def listdir(self, path: str) -> list[str]: ...


class RealHandle:
    """A descriptor."""

    def __init__(self, path: Path, flags: int) -> None:
        self.fd = os.open(path, flags, 0o600)

    def read(self, size: int, offset: int) -> bytes:
        return os.pread(self.fd, size, offset)

    def write(self, data: bytes, offset: int) -> None:
        while data:
            done = os.pwrite(self.fd, data, offset)
            data, offset = data[done:], offset + done

    def truncate(self, size: int) -> None:
        os.ftruncate(self.fd, size)

    def fsync(self) -> None:
        os.fsync(self.fd)

    def size(self) -> int:
        return os.fstat(self.fd).st_size

    def forget_clean(self) -> None:
        os.posix_fadvise(self.fd, 0, 0, os.POSIX_FADV_DONTNEED)

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


class RealFiles:
    """The operating system's, below a folder; open files are closed at the end of a `with` block."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._open: list[RealHandle] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for handle in self._open:
            handle.close()

    def open(self, path: str, *, create: bool = False, exclusive: bool = False) -> RealHandle:
        flags = os.O_RDWR | (os.O_CREAT if create else 0) | (os.O_EXCL if exclusive else 0)
        self._open.append(RealHandle(self._real(path), flags))
        return self._open[-1]

    def rename(self, source: str, target: str) -> None:
        os.rename(self._real(source), self._real(target))  # noqa: PTH104 - the system call is what is tested

    def unlink(self, path: str) -> None:
        self._real(path).unlink()

    def mkdir(self, path: str) -> None:
        self._real(path).mkdir()

    def rmdir(self, path: str) -> None:
        self._real(path).rmdir()

    def sync_dir(self, path: str) -> None:
        fd = os.open(self._real(path), os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def listdir(self, path: str) -> list[str]:
        return sorted(entry.name for entry in self._real(path).iterdir() if entry.name != "lost+found")

    def _real(self, path: str) -> Path:
        return self.root / path.lstrip("/")


class SimulatedHandle:
    """A file of the simulated disk."""

    def __init__(self, disk: Disk, file: File) -> None:
        self._disk = disk
        self._file = file

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def read(self, size: int, offset: int) -> bytes:
        return bytes(self._file.read(size, offset))

    def forget_clean(self) -> None:
        self._disk.drop_caches()


class SimulatedFiles:
    """A simulated disk, used by the process that is running."""

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        disk.provisioned = False

    def open(self, path: str, *, create: bool = False, exclusive: bool = False) -> Any:
        file = self.disk.open(path, owner=current_process(), create=create, exclusive=exclusive)
        return SimulatedHandle(self.disk, file)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.disk, name)


FilesProgram = Callable[[Files], Awaitable[Any]]


def agree_on_files(program: FilesProgram, root: Path, prepare: Callable[[Disk], object] = lambda _: None) -> Any:
    """Run a program on real files below `root` and on a simulated disk; return what both observed."""

    async def main(world: World) -> Any:
        disk = world.host("machine").disk
        prepare(disk)
        status = await world.host("machine").start(program, SimulatedFiles(disk)).wait()
        if status.error is not None:
            raise status.error
        return status.value

    simulated = simulate(main)
    with RealFiles(root) as files:
        real = trio.run(program, files)
    assert real == simulated, f"real {real}, simulated {simulated}"
    return real


# ----------------------------------------------------------------------------------------------- processes and networks
class Actor(Protocol):
    """A process of its own, on the server's machine."""

    def kill(self) -> None: ...
    def terminate(self) -> None: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...
    async def wait(self) -> object: ...


class Stage(Protocol):
    """Where a program plays."""

    #: The name under which servers are reached.
    server: str
    #: What actors write to and tests read from.
    files: Files

    def port(self) -> int: ...
    def start(self, actor: str, *args: str | int) -> Actor: ...


class RealActor:
    """A Python process."""

    def __init__(self, folder: Path, actor: str, args: tuple[str | int, ...]) -> None:
        command = [sys.executable, actors.__file__, str(folder), actor, *map(str, args)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def terminate(self) -> None:
        self.process.terminate()

    def pause(self) -> None:
        os.kill(self.process.pid, signal.SIGSTOP)
        os.waitpid(self.process.pid, os.WUNTRACED)

    def resume(self) -> None:
        os.kill(self.process.pid, signal.SIGCONT)

    async def wait(self) -> object:
        return await trio.to_thread.run_sync(self.process.wait)


class RealStage:
    """This machine, over its loopback."""

    server = "127.0.0.1"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files: Files = RealFiles(folder)
        self.actors: list[RealActor] = []

    def port(self) -> int:
        with stdlib_socket.socket() as found:
            found.bind((self.server, 0))
            return int(found.getsockname()[1])

    def start(self, actor: str, *args: str | int) -> Actor:
        self.actors.append(RealActor(self.folder, actor, args))
        return self.actors[-1]

    @contextlib.contextmanager
    def cleared(self) -> Iterator[None]:
        """End what the program left running."""
        try:
            yield
        finally:
            for actor in self.actors:
                actor.kill()


class SimulatedActor:
    """A simulated process."""

    def __init__(self, process: Process) -> None:
        self._process = process

    def __getattr__(self, name: str) -> Any:
        return getattr(self._process, name)

    async def wait(self) -> object:
        return await self._process.wait()


class SimulatedStage:
    """A world with a server's machine in it."""

    server = "machine"

    def __init__(self, world: World) -> None:
        self.world = world
        self.files: Files = SimulatedFiles(world.host(self.server).disk)
        self._port = 7000
        # As on the loopback: short ways, and the death of a process ends its streams as closing them would.
        world.network.options = NetworkOptions(latency_ns=50_000, spread=(1,), spread_weights=(1,), death="eof")

    def port(self) -> int:
        self._port += 1
        return self._port

    def start(self, actor: str, *args: str | int) -> Actor:
        program = getattr(actors, actor)
        return SimulatedActor(self.world.host(self.server).start(program, self.files, *args, name=actor))


Program = Callable[[Stage], Awaitable[Any]]


def agree(program: Program, folder: Path, prepare: Callable[[World], object] = lambda _: None) -> Any:
    """Run a program on both stages; return what both observed."""

    async def main(world: World) -> Any:
        stage = SimulatedStage(world)
        prepare(world)
        return await program(stage)

    async def real() -> Any:
        stage = RealStage(folder)
        with stage.cleared(), trio.fail_after(PATIENCE_S):
            return await program(stage)

    simulated = simulate(main)
    observed = trio.run(real)
    assert observed == simulated, f"real {observed}, simulated {simulated}"
    return observed
