"""The guard: time and chance are virtual, the real world is refused, imports work."""

from __future__ import annotations

import datetime
import fcntl
import functools
import importlib
import mmap
import os
import pickle
import platform
import random
import secrets
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import types
import uuid
from collections.abc import Callable
from datetime import datetime as datetime_by_name
from pathlib import Path
from time import monotonic as monotonic_by_name
from typing import Any

import pytest
import trio

from simkit import aio
from simkit._guard import refuse
from simkit.blame import places_of
from simkit.guard import RefusedError, permitted
from simkit.tape import Tape
from simkit.world import EPOCH_NS, Outcome, World, run


def inside(look: Callable[[], Any], seed: int = 1, after_s: float = 1.5, **options: Any) -> Outcome[Any]:
    """Call `look` in a simulation, some virtual time in."""

    async def main(_world: World) -> Any:
        await trio.sleep(after_s)
        return look()

    return run(main, tape=Tape.from_seed(seed), **options)


def test_clocks_show_virtual_time() -> None:
    """Wall clocks show the epoch plus what has passed, monotonic ones what has passed; by any name."""

    def look() -> list[object]:
        assert monotonic_by_name() == time.monotonic() == time.perf_counter() == 1.5
        assert datetime_by_name.now() == datetime.datetime.now()  # noqa: DTZ005
        return [
            *(time.time(), time.time_ns(), time.monotonic_ns(), time.gmtime().tm_sec, time.localtime().tm_hour),
            *(time.strftime("%Y-%m-%d"), time.ctime(), time.clock_gettime(time.CLOCK_REALTIME)),
            datetime.datetime.now(datetime.UTC).isoformat(),
            datetime.datetime.now().isoformat(),  # noqa: DTZ005
            datetime.date.today().isoformat(),  # noqa: DTZ011
        ]

    assert inside(look).unwrap() == [
        *(EPOCH_NS / 1e9 + 1.5, EPOCH_NS + 1_500_000_000, 1_500_000_000, 1, 0),
        *("2026-01-01", "Thu Jan  1 00:00:01 2026", EPOCH_NS / 1e9 + 1.5),
        *("2026-01-01T00:00:01.500000+00:00", "2026-01-01T00:00:01.500000", "2026-01-01"),
    ]


def test_chance_comes_from_the_tape() -> None:
    """random, secrets, uuid and urandom repeat with the seed and differ between seeds."""

    def look() -> list[object]:
        return [
            *(random.random(), random.Random().random(), random.SystemRandom().random(), secrets.token_hex(8)),
            *(str(uuid.uuid4()), str(uuid.uuid1()), os.urandom(4).hex(), secrets.choice(range(10**9))),
        ]

    first, again, other = inside(look), inside(look), inside(look, seed=2)
    assert first.unwrap() == again.unwrap()
    assert all(one != two for one, two in zip(first.unwrap(), other.unwrap(), strict=True))
    assert len(set(map(str, first.unwrap()))) == 8


def test_the_shared_generator_is_as_it_was() -> None:
    """A simulation neither reads nor moves the program's own random state."""
    random.seed(5)
    expected = [random.random() for _ in range(3)]
    random.seed(5)
    inside(lambda: [random.random() for _ in range(100)])
    assert [random.random() for _ in range(3)] == expected


def test_a_seeded_generator_is_left_alone() -> None:
    """Seeds that the program gives are its own."""
    assert inside(lambda: random.Random(5).random()).unwrap() == random.Random(5).random()


def test_instances_of_the_real_classes_pass() -> None:
    """isinstance, issubclass, arithmetic and pickling do not notice the stand-ins."""
    before = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    generator = random.Random(1)

    def look() -> list[bool]:
        made = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)

        class Later(datetime.datetime):
            pass

        return [
            isinstance(before, datetime.datetime),
            isinstance(before, datetime.date),
            not isinstance(datetime.date(2020, 1, 1), datetime.datetime),
            made == before,
            pickle.loads(pickle.dumps(made)) == before,
            datetime.datetime.fromisoformat("2020-01-01T00:00:00+00:00") == before,
            datetime.datetime.fromtimestamp(0, datetime.UTC).year == 1970,
            isinstance(Later(2020, 1, 1), Later),
            not isinstance(before, Later),
            isinstance(generator, random.Random),
            issubclass(datetime.datetime, datetime.date),
        ]

    found = inside(look).unwrap()
    assert found == [True] * len(found)
    assert type(inside(datetime.datetime.now).unwrap()) is type(before)


def test_process_ids_are_simulated() -> None:
    """The outside is 1, every process has its own."""

    async def main(world: World) -> list[int]:
        async def program() -> int:
            return os.getpid()

        statuses = [await world.host("h").start(program).wait() for _ in range(2)]
        return [os.getpid(), os.getppid(), *(status.value for status in statuses)]

    assert run(main, tape=Tape.from_seed(1)).unwrap() == [1, 1, 101, 102]


def test_a_machine_goes_by_the_name_of_its_host() -> None:
    """In tasks, in threads and in asyncio programs; the outside has a name as well, and the real one is back afterwards."""

    def named() -> list[str]:
        return [socket.gethostname(), socket.getfqdn(), socket.getfqdn("0.0.0.0"), platform.node()]

    async def program() -> list[str]:
        return named()

    async def threads() -> list[str]:
        return await trio.to_thread.run_sync(named)

    async def main(world: World) -> list[list[str]]:
        host = world.host("db")
        found = [
            (await host.start(one, *args).wait()).value for one, *args in ((program,), (threads,), (aio.run, program))
        ]
        assert socket.getfqdn("db.example") == "db.example"
        return [named(), *found]

    before = named()
    assert run(main, tape=Tape.from_seed(1)).unwrap() == [["outside"] * 4, *[["db"] * 4] * 3]
    assert named() == before


def _thread() -> None:
    threading.Thread(target=print).start()


REACHES: list[tuple[Callable[[], Any], str]] = [
    (lambda: open("nowhere"), "a real file"),  # noqa: PTH123, SIM115
    (lambda: Path("nowhere").write_text("x"), "a real file"),
    (lambda: os.listdir("."), "a real file"),  # noqa: PTH208
    (lambda: Path("nowhere").mkdir(), "a real file"),
    (lambda: Path("nowhere").unlink(), "a real file"),
    (socket.socket, "a real socket"),
    (lambda: socket.getaddrinfo("localhost", 80), "a real socket"),
    (lambda: subprocess.run(["true"], check=False), "another program or process"),
    (lambda: os.system("true"), "another program or process"),
    (_thread, "a real thread"),
    (lambda: vars(time)["sleep"](0), "a real sleep"),
    (lambda: os.kill(os.getpid(), 0), "a signal to a real process"),
    (lambda: sqlite3.connect("nowhere.db"), "a real database"),
    (lambda: os.environ.update(SIMKIT_TEST="1"), "a change of the environment"),
]


@pytest.mark.parametrize(("reach", "what"), REACHES)
def test_the_real_world_is_refused(reach: Callable[[], Any], what: str) -> None:
    """The error says what was reached for, in which line of the program, and the simulated way; nothing happened."""
    error = inside(reach).error
    assert isinstance(error, RefusedError)
    line = reach.__code__.co_firstlineno if reach.__name__ == "<lambda>" else None
    assert what in error.problem.what
    assert error.problem.where.startswith(f"{__file__}:{line or ''}")
    assert error.problem.expected
    assert error.problem.hint
    assert not Path("nowhere").exists()
    assert "SIMKIT_TEST" not in os.environ


def test_a_thread_that_trio_kept_is_refused_as_well() -> None:
    """trio keeps threads for a while and hands them out again, which starts none."""
    trio.run(functools.partial(trio.to_thread.run_sync, int))
    error = inside(lambda: trio.lowlevel.start_thread_soon(int, print)).error
    assert isinstance(error, RefusedError)
    assert __file__ in error.problem.where


_LIBRARY = """
async def reads(path):
    return path.read_text()

def looks(path):
    return path.read_text()
"""


def test_where_is_the_users_own_line_whatever_it_went_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that trio opens in a thread, and one that a library opens, with its line beside; never a line of pytest."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "a_library.py").write_text(_LIBRARY)
    monkeypatch.syspath_prepend(str(folder))
    library = importlib.import_module("a_library")
    nowhere, shown = Path("nowhere"), folder / "a_library.py"

    async def by_trio(_world: World) -> None:
        await trio.Path(nowhere).read_text()

    async def by_library(_world: World) -> None:
        await library.reads(nowhere)

    async def by_library_in_a_thread(_world: World) -> None:
        await trio.to_thread.run_sync(library.looks, nowhere)

    async def without_own_line(_world: World) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(library.reads, nowhere)

    def where(main: Callable[[World], Any]) -> str:
        error = run(main, tape=Tape.from_seed(1)).error
        refused = error.exceptions[0] if isinstance(error, BaseExceptionGroup) else error
        assert isinstance(refused, RefusedError)
        return refused.problem.where

    def own(main: Callable[[World], Any]) -> str:
        return f"{__file__}:{main.__code__.co_firstlineno + 1} in {main.__qualname__}"

    assert where(by_trio) == own(by_trio)
    assert where(by_library) == f"{own(by_library)}, through {shown}:3 in reads"
    assert where(by_library_in_a_thread) == f"{own(by_library_in_a_thread)}, through {shown}:6 in looks"
    assert where(without_own_line) == f"{shown}:3 in reads"
    error = run(by_library, tape=Tape.from_seed(1)).error
    assert error is not None
    assert [place.filename for place in places_of(error)] == [__file__]
    monkeypatch.delitem(sys.modules, "a_library")


def test_a_swallowed_refusal_still_fails_the_run() -> None:
    """`except Exception: pass` hides no nondeterminism."""

    def look() -> str:
        try:
            open("nowhere")  # noqa: PTH123, SIM115
        except Exception:  # noqa: BLE001
            return "fine"
        return "opened"

    outcome = inside(look)
    assert isinstance(outcome.error, RefusedError)
    assert outcome.value is None


def test_imports_and_the_programs_own_text_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Importing, printing a traceback with its lines, and the descriptor of nothing are no reach for the real world."""
    (tmp_path / "imported_inside.py").write_text("from time import time, sleep\nimport random\nR = random.Random()\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    def look() -> tuple[float, str, float]:
        import traceback

        module = importlib.import_module("imported_inside")
        try:
            1 / 0  # noqa: B018
        except ZeroDivisionError:
            text = traceback.format_exc()
        with open(os.devnull, "w") as nothing:  # noqa: PTH123
            nothing.write("x")
        sqlite3.connect(":memory:").close()
        return module.time(), text, module.R.random()

    first = inside(look).unwrap()
    assert first[0] == EPOCH_NS / 1e9 + 1.5
    assert "1 / 0" in first[1]
    module = sys.modules["imported_inside"]
    assert abs(module.time() - time.time()) < 60, "a name taken inside shows real time again outside"
    module.sleep(0)
    monkeypatch.delitem(sys.modules, "imported_inside")
    assert inside(look).unwrap()[2] == first[2]


def test_a_module_may_look_around_while_it_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Setting the environment and trying a socket are what real modules do on import; the same later is refused."""
    (tmp_path / "looks_around.py").write_text(
        "import os, socket\n"
        "os.environ.setdefault('SIMKIT_LOOKED', '1')\n"
        "socket.socket().close()\n"
        "def later():\n    socket.socket().connect(('nowhere', 1))\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("SIMKIT_LOOKED", "")
    monkeypatch.delenv("SIMKIT_LOOKED")
    assert inside(lambda: importlib.import_module("looks_around").__name__).unwrap() == "looks_around"
    error = inside(sys.modules["looks_around"].later).error
    assert isinstance(error, RefusedError)
    assert error.problem.where.startswith(str(tmp_path / "looks_around.py:5"))
    monkeypatch.delitem(sys.modules, "looks_around")


def test_a_simulation_inside_an_import_is_guarded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When a module runs a simulation while it is itself imported, that import excuses nothing."""
    (tmp_path / "simulates.py").write_text(
        "from simkit.tape import Tape\nfrom simkit.world import run\n"
        "async def main(world):\n    open('nowhere')\n"
        "OUTCOME = run(main, tape=Tape.from_seed(1))\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert isinstance(importlib.import_module("simulates").OUTCOME.error, RefusedError)
    monkeypatch.delitem(sys.modules, "simulates")


def test_other_threads_live_in_the_real_world() -> None:
    """A thread that was there before sees real time and may use files while a simulation runs."""
    wanted, seen = threading.Event(), []
    done = threading.Event()

    def look_outside() -> None:
        wanted.wait(10)
        with open(__file__) as file:  # noqa: PTH123
            seen.append((time.time(), file.read(3)))
        done.set()

    thread = threading.Thread(target=look_outside)
    thread.start()

    def look() -> None:
        wanted.set()
        done.wait(10)

    inside(look).unwrap()
    thread.join()
    assert abs(seen[0][0] - time.time()) < 60
    assert seen[0][1] == '"""'


def test_everything_is_real_again_afterwards() -> None:
    """By every name, also after a run that failed."""
    functions = (time.time, time.monotonic, os.urandom, os.getpid, datetime.datetime, random.Random, monotonic_by_name)
    inside(lambda: 1 / 0)
    assert functions == (
        *(time.time, time.monotonic, os.urandom, os.getpid),
        *(datetime.datetime, random.Random, monotonic_by_name),
    )
    assert datetime_by_name is datetime.datetime
    assert os.getpid() > 1
    assert abs(time.time() * 1e9 - EPOCH_NS) > 1


def test_the_guard_can_be_left_off() -> None:
    """Without it, time is real and files open: for programs that are known to behave."""

    def look() -> bool:
        with open(__file__) as file:  # noqa: PTH123
            return bool(file.read(1)) and time.monotonic() != 1.5

    assert inside(look, guard=False).unwrap()


def test_the_kit_can_permit_an_event() -> None:
    """Only inside the block, and only the event named."""

    def look() -> list[str]:
        with permitted("os.listdir"):
            names = os.listdir(os.path.dirname(__file__))  # noqa: PTH120, PTH208
        os.listdir(".")  # noqa: PTH208
        return names

    assert isinstance(inside(look).error, RefusedError)
    with permitted("open"):
        pass  # outside of a simulation it has no effect


def test_the_hook_needs_nothing_of_its_module() -> None:
    """An interpreter that ends clears the module first, and then still tells the hook of what it closes."""
    bare = types.FunctionType(refuse._hook.__code__, {}, argdefs=refuse._hook.__defaults__)
    bare("open", ("some file", "r", 0))
    bare("anything", ())


def test_a_signal_handler_is_that_of_its_process() -> None:
    """Another process does not see it, the interpreter never gets it, and nothing is left of it after the run."""
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGUSR1)

    async def program() -> list[Any]:
        found = [signal.signal(signal.SIGTERM, signal.SIG_IGN), signal.getsignal(signal.SIGTERM)]
        signal.signal(signal.SIGUSR1, lambda *_: None)
        await trio.sleep(1)
        found += [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGPIPE)]
        with pytest.raises(OSError, match="Invalid argument"):
            signal.signal(signal.SIGKILL, signal.SIG_IGN)
        with pytest.raises(TypeError):
            signal.signal(signal.SIGTERM, "nothing")  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="out of range"):
            signal.getsignal(1000)
        return found

    async def main(world: World) -> list[Any]:
        processes = [world.host(name).start(program) for name in "ab"]
        return [(await process.wait()).value for process in processes]

    at_first = [signal.default_int_handler, signal.SIG_IGN]  # as Python has them
    expected = [signal.SIG_DFL, signal.SIG_IGN, *at_first]
    assert run(main, tape=Tape.from_seed(0)).unwrap() == [expected, expected]
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGUSR1)) == before


def test_time_of_the_processor_does_not_pass() -> None:
    """Code runs at an instant; who sleeps uses no processor, on a real machine either."""

    def look() -> list[float]:
        clocks = (time.process_time(), time.thread_time(), time.clock_gettime(time.CLOCK_PROCESS_CPUTIME_ID))
        return [*clocks, time.process_time_ns(), *os.times()[:2], os.times().elapsed, *os.getloadavg()]

    assert inside(look).unwrap() == [0, 0, 0, 0, 0, 0, 1.5, 0, 0, 0]


@pytest.mark.parametrize(
    "reach",
    [
        lambda: os.mkfifo("/simkit-never"),
        lambda: os.mknod("/simkit-never"),
        lambda: fcntl.flock(1_000_000, fcntl.LOCK_EX),
        lambda: fcntl.lockf(1_000_000, fcntl.LOCK_EX),
        lambda: os.lockf(1_000_000, os.F_LOCK, 0),
        lambda: mmap.mmap(1_000_000, 1),
        lambda: signal.alarm(1),
        lambda: signal.setitimer(signal.ITIMER_REAL, 1),
        lambda: signal.raise_signal(signal.SIGUSR1),
    ],
)
def test_what_the_simulated_system_has_not_is_refused(reach: Callable[[], Any]) -> None:
    """Not answered by the real system, neither with an effect there nor with an error that means something else."""

    async def program() -> None:
        reach()

    async def main(world: World) -> None:
        await world.host("a").start(program).wait()

    with pytest.raises(RefusedError):
        run(main, tape=Tape.from_seed(0)).unwrap()
    assert not Path("/simkit-never").exists()


def test_memory_of_no_file_can_be_mapped() -> None:
    """An anonymous map is memory."""
    assert inside(lambda: mmap.mmap(-1, 10)[:1]).unwrap() == b"\0"
