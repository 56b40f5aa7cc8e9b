"""Unit processes for real: killed and asserted dead with their whole group, paused, cleaned away, and their last words."""

from __future__ import annotations

import contextlib
import os
import resource
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest
import trio

from conformance import members
from conformance.processes import Processes, UnitProcess, _estate, environment
from simkit.errors import ExitCode, Problem, SimkitError
from simkit.services import LineReader

T = TypeVar("T")
PYTHON = (sys.executable, "-I", "-S", "-c")
SLEEPER = "import time; print('up', flush=True); time.sleep(60)"
# A child in the group, a grandchild that left it, each with its number on standard output.
FAMILY = """
import os, time
def child(leaves):
    if pid := os.fork():
        return pid
    leaves and os.setsid()
    time.sleep(60)
print(child(False), child(True), flush=True)
time.sleep(60)
"""


def using(tmp_path: Path, talk: Callable[[Processes, Callable[[str], Awaitable[UnitProcess]]], Awaitable[T]]) -> T:
    """Run `talk` with processes and a way to start an inline program, within a bound."""

    async def main() -> T:
        with trio.fail_after(20):
            async with Processes() as units:

                async def start(program: str) -> UnitProcess:
                    return await units.start(
                        "worker", (*PYTHON, program), cwd=tmp_path, env=environment({}), stderr=tmp_path / "worker.log"
                    )

                return await talk(units, start)

    return trio.run(main)


async def line(unit: UnitProcess) -> str:
    return (await LineReader(unit.stdout, 1_000).read() or b"").decode()


def is_gone(pid: int) -> bool:
    """Whether no live process has this number (one that is dead and not yet reaped by init does not live)."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True
    return stat.rpartition(") ")[2][0] in "ZX"


def test_streams_carry_lines_both_ways(tmp_path: Path) -> None:
    """What goes into standard input is read by the process, and its standard output is ours to read."""

    async def talk(_: Processes, start: Callable[[str], Awaitable[UnitProcess]]) -> str:
        unit = await start("print(input()[::-1], flush=True)")
        await unit.stdin.send_all(b"abc\n")
        return await line(unit)

    assert using(tmp_path, talk) == "cba"


def test_a_kill_takes_the_whole_family_and_is_asserted(tmp_path: Path) -> None:
    """After `kill` the process has died of SIGKILL, with its child, and with the grandchild that left the group."""

    async def talk(_: Processes, start: Callable[[str], Awaitable[UnitProcess]]) -> tuple[int | None, list[int]]:
        unit = await start(FAMILY)
        family = [int(pid) for pid in (await line(unit)).split()]
        assert not any(is_gone(pid) for pid in family)
        await unit.kill()
        return unit.returncode, [pid for pid in [unit.pid, *family] if not is_gone(pid)]

    assert using(tmp_path, talk) == (-signal.SIGKILL, [])


def test_whoever_meets_the_end_of_a_killed_process_finds_its_killer_done(tmp_path: Path) -> None:
    """Readers, writers and pollers never see a kill half done: not as a death of its own accord, not as a live process."""

    async def talk(_: Processes, start: Callable[[str], Awaitable[UnitProcess]]) -> list[str]:
        order: list[str] = []

        async def read(unit: UnitProcess) -> None:
            assert not await unit.stdout.receive_some()
            order.append(f"ended, alive={unit.alive}")

        async def poll(unit: UnitProcess) -> None:
            while unit.alive:
                await trio.lowlevel.checkpoint()
            order.append("seen dead")

        for _n in range(10):
            unit = await start(SLEEPER)
            await line(unit)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(read, unit)
                nursery.start_soon(poll, unit)
                await trio.lowlevel.checkpoint()
                await unit.kill()
                order.append("killed")
            with pytest.raises(trio.BrokenResourceError):
                await unit.stdin.send_all(b"x")
        return order

    order = using(tmp_path, talk)
    assert [row for n, row in enumerate(order) if n % 3 == 0] == ["killed"] * 10
    assert "ended, alive=True" not in order


def test_two_kills_at_a_time_are_one(tmp_path: Path) -> None:
    """Two calls of one worker may both be where it is to be killed; the second finds it dead, of the signal."""

    async def talk(_: Processes, start: Callable[[str], Awaitable[UnitProcess]]) -> int | None:
        unit = await start(SLEEPER)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(unit.kill)
            nursery.start_soon(unit.kill)
        return unit.returncode

    assert using(tmp_path, talk) == -signal.SIGKILL


def test_what_was_written_before_a_kill_can_still_be_read(tmp_path: Path) -> None:
    """An acknowledgement that left the process before its death is evidence, and is not thrown away with it."""

    async def talk(_: Processes, start: Callable[[str], Awaitable[UnitProcess]]) -> str:
        unit = await start(
            "import sys,time; print('ack', flush=True); print(1, file=sys.stderr, flush=True); time.sleep(9)"
        )
        while not unit.last_words():
            await trio.lowlevel.checkpoint()
        await unit.kill()
        return await line(unit)

    assert using(tmp_path, talk) == "ack"


def test_killing_what_ended_by_itself_is_an_error(tmp_path: Path) -> None:
    """A kill that found nothing to kill did not strike, and says how the process ended instead."""

    async def talk(_: Processes, start: Callable[[str], Awaitable[UnitProcess]]) -> Problem:
        unit = await start("import sys; print('so long', file=sys.stderr); sys.exit(3)")
        assert await unit.wait() == 3
        with pytest.raises(SimkitError) as caught:
            await unit.kill()
        return caught.value.problem

    problem = using(tmp_path, talk)
    assert problem.code == "worker-died"
    assert problem.exit_code is ExitCode.TARGET
    assert "exit code 3" in problem.what
    assert "so long" in problem.what
    assert problem.where.endswith(f"in {tmp_path}")


def test_a_kill_that_came_too_late_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the process ends of something else at that instant, the kill is not counted as having happened."""
    real = os.killpg
    monkeypatch.setattr(os, "killpg", lambda pid, _number: real(pid, signal.SIGTERM))

    async def talk(_: Processes, start: Callable[[str], Awaitable[UnitProcess]]) -> Problem:
        unit = await start(SLEEPER)
        await line(unit)
        with pytest.raises(SimkitError) as caught:
            await unit.kill()
        return caught.value.problem

    problem = using(tmp_path, talk)
    assert problem.code == "kill-missed"
    assert "SIGTERM" in problem.what


def test_pause_stops_every_member_and_resume_lets_them_go(tmp_path: Path) -> None:
    """Between `pause` and `resume` the process is alive and silent; afterwards it answers what was asked meanwhile."""
    echo = "import sys\nfor line in sys.stdin: print(line.strip(), flush=True)"

    async def talk(_: Processes, start: Callable[[str], Awaitable[UnitProcess]]) -> list[str]:
        unit = await start(echo)
        await unit.stdin.send_all(b"one\n")
        first = await line(unit)
        await unit.pause()
        stopped = [m.stopped for m in members.find(unit._token, unit.pid)]
        assert stopped == [True]
        assert unit.alive
        await unit.stdin.send_all(b"two\n")
        await unit.resume()
        return [first, await line(unit)]

    assert using(tmp_path, talk) == ["one", "two"]


def test_a_pause_reaches_members_that_left_the_group(tmp_path: Path) -> None:
    """A grandchild in a session of its own is stopped and continued with the rest."""

    async def talk(_: Processes, start: Callable[[str], Awaitable[UnitProcess]]) -> list[list[bool]]:
        unit = await start(FAMILY)
        await line(unit)
        await unit.pause()
        stopped = [m.stopped for m in members.find(unit._token, unit.pid)]
        await unit.resume()
        return [stopped, [m.stopped for m in members.find(unit._token, unit.pid)]]

    assert using(tmp_path, talk) == [[True] * 3, [False] * 3]


def test_a_paused_process_can_be_killed(tmp_path: Path) -> None:
    """SIGKILL reaches a stopped process; nothing waits for it to be continued."""

    async def talk(_: Processes, start: Callable[[str], Awaitable[UnitProcess]]) -> int | None:
        unit = await start(SLEEPER)
        await unit.pause()
        await unit.kill()
        return unit.returncode

    assert using(tmp_path, talk) == -signal.SIGKILL


def test_a_process_that_died_cannot_be_paused(tmp_path: Path) -> None:
    """Pausing what ended by itself says so instead of pretending."""

    async def talk(_: Processes, start: Callable[[str], Awaitable[UnitProcess]]) -> str:
        unit = await start("pass")
        await unit.wait()
        with pytest.raises(SimkitError) as caught:
            await unit.pause()
        return caught.value.problem.code

    assert using(tmp_path, talk) == "worker-died"


@pytest.mark.parametrize("how", ["return", "error", "cancel"])
def test_leaving_the_block_leaves_nothing_behind(tmp_path: Path, how: str) -> None:
    """Whether the block ends, fails or is cancelled: every process and its family is gone, paused ones too."""
    pids: list[int] = []

    async def talk(_: Processes, start: Callable[[str], Awaitable[UnitProcess]]) -> None:
        family, paused, ended = (
            await start(FAMILY),
            await start(SLEEPER),
            await start(FAMILY.replace("\ntime", "\n0 and time")),
        )
        pids.extend([family.pid, paused.pid, *map(int, (await line(family)).split())])
        pids.extend(map(int, (await line(ended)).split()))
        await paused.pause()
        await ended.wait()
        if how == "error":
            raise LookupError("mine")
        if how == "cancel":
            with trio.CancelScope() as scope:
                scope.cancel()
                await trio.sleep_forever()

    if how == "error":
        with pytest.raises(LookupError, match="mine"):
            using(tmp_path, talk)
    else:
        using(tmp_path, talk)
    assert len(pids) == 6
    assert all(is_gone(pid) for pid in pids)


INTERRUPTED = """
import sys, pathlib, trio
from conformance.processes import Processes, environment
async def main():
    async with Processes() as units:
        for n in range(2):
            unit = await units.start("w", [sys.executable, "-I", "-S", "-c", "import time; time.sleep(60)"],
                cwd=pathlib.Path("."), env=environment({}), stderr=pathlib.Path("w.log"))
            print(unit.pid, flush=True)
        print("ready", flush=True)
        await trio.sleep_forever()
trio.run(main)
"""


@pytest.mark.slow
def test_ctrl_c_leaves_nothing_behind(tmp_path: Path) -> None:
    """A kit interrupted from the terminal takes its processes with it."""
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as kit:
        assert kit.stdout is not None
        lines = [kit.stdout.readline().strip() for _ in range(3)]
        assert lines[2] == "ready"
        kit.send_signal(signal.SIGINT)
        _, errors = kit.communicate(timeout=20)
    assert "KeyboardInterrupt" in errors
    assert all(is_gone(int(pid)) for pid in lines[:2])


def test_a_unit_without_control_talks_into_its_log(tmp_path: Path) -> None:
    """An engine that prints more than a pipe holds is not stopped by it; what it prints is kept beside its errors."""

    async def main() -> tuple[int, str]:
        with trio.fail_after(10):
            async with Processes() as units:
                unit = await units.start(
                    "engine",
                    (*PYTHON, "print('x' * 200_000); print('end')"),
                    cwd=tmp_path,
                    env=environment({}),
                    stderr=tmp_path / "engine.log",
                    control=False,
                )
                return await unit.wait(), unit.last_words()[-3:]

    assert trio.run(main) == (0, "end")


def test_last_words_are_bounded(tmp_path: Path) -> None:
    """A process that never stopped complaining is quoted by its end only, in whatever encoding it spoke."""

    async def talk(_: Processes, start: Callable[[str], Awaitable[UnitProcess]]) -> str:
        unit = await start("import sys; sys.stderr.buffer.write(b'x\\xff' * 100_000 + b'\\nline' * 50 + b'\\nlast\\n')")
        await unit.wait()
        return unit.last_words()

    words = using(tmp_path, talk)
    assert words.splitlines() == ["line"] * 11 + ["last"]


def test_a_worker_that_dies_over_its_first_question_is_told_as_such(tmp_path: Path) -> None:
    """The channel only sees an end of stream; the user is told of the death, its code and the traceback."""

    async def talk(_: Processes, start: Callable[[str], Awaitable[UnitProcess]]) -> Problem:
        unit = await start("import nowhere")

        async def hello() -> str:
            assert not await line(unit)
            raise SimkitError(Problem("adapter-gone", "closed", "here"))

        with pytest.raises(SimkitError) as caught:
            await unit.first(hello)
        return caught.value.problem

    problem = using(tmp_path, talk)
    assert problem.code == "worker-died-at-start"
    assert "ModuleNotFoundError" in problem.what
    assert "exit code 1" in problem.what


def test_another_fault_over_the_first_question_stays_what_it_is(tmp_path: Path) -> None:
    """A worker that lives and prints garbage is not reported as dead."""

    async def talk(_: Processes, start: Callable[[str], Awaitable[UnitProcess]]) -> str:
        unit = await start(SLEEPER)

        async def hello() -> str:
            raise SimkitError(Problem("adapter-garbage", "noise", "here"))

        with pytest.raises(SimkitError) as caught:
            await unit.first(hello)
        return caught.value.problem.code

    assert using(tmp_path, talk) == "adapter-garbage"


@pytest.mark.parametrize(("command", "folder"), [(["./no-such-program"], "."), ([sys.executable], "no-such-folder")])
def test_a_command_that_cannot_run_says_why(tmp_path: Path, command: list[str], folder: str) -> None:
    """A missing program or folder is the manifest's fault and is told with the command."""

    async def main() -> Problem:
        async with Processes() as units:
            with pytest.raises(SimkitError) as caught:
                await units.start("w", command, cwd=tmp_path / folder, env=environment({}), stderr=tmp_path / "w.log")
        return caught.value.problem

    problem = trio.run(main)
    assert problem.code == "worker-cannot-start"
    assert problem.where == f"`{shlex.quote(command[0])}` in {tmp_path / folder}"
    assert "No such file" in problem.what


def test_units_do_not_inherit_this_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables that would leak the kit's own Python, coverage or settings into a target stay here."""
    for name in ("PYTHONDONTWRITEBYTECODE", "PYTHONPATH", "VIRTUAL_ENV", "COVERAGE_PROCESS_START", "SIMKIT_STATE"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("LANG", "C.UTF-8")
    env = environment({"SIMKIT_SERVICES": "http://x"})
    assert [name for name in env if name.startswith(("PYTHON", "VIRTUAL_ENV", "COVERAGE_", "SIMKIT_"))] == [
        "SIMKIT_SERVICES"
    ]
    assert env["LANG"] == "C.UTF-8"


def _descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.parametrize("spare", [2, None])
def test_a_machine_without_descriptors_is_not_the_manifests_fault(tmp_path: Path, spare: int | None) -> None:
    """No unit can be started, which says nothing of its command; where there is none at all, no heir is to be had either."""

    async def main() -> Problem:
        usual = resource.getrlimit(resource.RLIMIT_NOFILE)
        async with Processes() as units:
            with contextlib.ExitStack() as stack:
                stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, usual)
                stack.callback(_estate.cache_clear)
                _estate.cache_clear()
                most = 3 if spare is None else _descriptors() + spare
                resource.setrlimit(resource.RLIMIT_NOFILE, (most, usual[1]))
                with pytest.raises(SimkitError) as caught:
                    await units.start(
                        "w", (*PYTHON, "pass"), cwd=tmp_path, env=environment({}), stderr=tmp_path / "w.log"
                    )
        return caught.value.problem

    problem = trio.run(main)
    assert (problem.code, problem.exit_code) == ("machine-short", ExitCode.INTERNAL)
    assert problem.what == "w cannot be started: Too many open files"


#: A kit with a unit whose family outlives it: one that is stopped, and children in and out of its group.
KIT = """
import sys, trio
from pathlib import Path
from conformance.processes import Processes, environment
from simkit.services import LineReader
async def main():
    async with Processes() as units:
        unit = await units.start("w", sys.argv[2:], cwd=Path("."), env=environment({}), stderr=Path(sys.argv[1]))
        print(unit.pid, (await LineReader(unit.stdout, 1_000).read()).decode(), flush=True)
        await unit.pause()
        print("paused", flush=True)
        await trio.sleep_forever()
trio.run(main)
"""


@pytest.mark.skipif(not members.SHOWN, reason="nothing shows what is left")
def test_nothing_outlives_a_kit_that_was_killed(tmp_path: Path) -> None:
    """A unit that is stopped reads no end of its input; it would lie there for ever, or go on in the midst of another run."""
    words = [sys.executable, "-c", KIT, str(tmp_path / "w.log"), *PYTHON, FAMILY]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as kit:
        assert kit.stdout is not None
        pids = [int(word) for word in kit.stdout.readline().split()]
        assert kit.stdout.readline() == "paused\n"
        assert len(pids) == 3
        assert not any(is_gone(pid) for pid in pids)
        kit.kill()
    until = time.monotonic() + 20
    while left := [pid for pid in pids if not is_gone(pid)]:
        assert time.monotonic() < until, left
        time.sleep(0.02)
