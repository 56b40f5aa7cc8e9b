"""What is done to machines and their processes from outside: upgrades with versions, wiped disks, reboots."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest
import trio

from simkit.process import ProcessDead, current_process
from simkit.strategy import TaskView
from simkit.tape import Tape
from simkit.world import World, run
from tests.simkit.rig import opened, outcome_of, simulate


async def sleeps() -> None:
    await trio.sleep_forever()


def test_an_upgrade_is_other_code_under_the_same_name_on_the_same_disk() -> None:
    """The old process dies without unwinding; the new one has its files, its name, another id and another version."""
    told: list[str] = []

    async def first() -> None:
        Path("/kept").write_text("by the first")  # noqa: ASYNC240
        try:
            await trio.sleep_forever()
        finally:
            told.append("unwound")

    async def second(prefix: str) -> str:
        return prefix + Path("/kept").read_text()  # noqa: ASYNC240

    async def main(world: World) -> tuple[str, ...]:
        old = world.host("a").start(first, name="app", version="1")
        await trio.sleep(1)
        new = old.upgrade(second, "read: ", version="2")
        status = await new.wait()
        return str(old.status), old.label, new.label, status.value, str(new.version)

    assert simulate(main) == ("killed", "a/app@1#101", "a/app@2#102", "read: by the first", "2")
    assert told == []


def test_the_version_shows_in_the_trace_and_to_strategies() -> None:
    """Also of a process that was started without an upgrade; without a version the name is as it ever was."""
    seen: set[str | None] = set()

    class Looks:
        every_step = True

        def pick(self, runnable: list[TaskView], _step: int) -> int:
            seen.update(view.process for view in runnable)
            return 0

    async def main(world: World) -> None:
        world.host("a").start(sleeps, version="v1.2").upgrade(sleeps)
        await trio.sleep(1)

    outcome = run(main, tape=Tape.from_seed(0), strategy=Looks())  # type: ignore[arg-type]
    assert outcome.error is None
    started = [event.detail for event in outcome.trace.events() if event.kind == "start"]
    assert started == ["a/main@v1.2#101", "a/main#102"]
    assert {"a/main#102"} <= seen <= {None, "a/main@v1.2#101", "a/main#102"}


def test_a_process_may_upgrade_itself() -> None:
    """As by execve, but under another id: its code goes on to its next await, and no further."""
    told: list[str] = []

    async def old() -> None:
        me = current_process()
        assert me is not None
        me.upgrade(new, version="2")
        told.append("until the next await")
        await trio.lowlevel.checkpoint()
        told.append("never")

    async def new() -> None:
        told.append("new")

    async def main(world: World) -> None:
        world.host("a").start(old, version="1")
        await trio.sleep(1)

    assert outcome_of(main).error is None
    assert told == ["until the next await", "new"]


def test_a_wiped_disk_is_empty_and_everybody_there_is_dead() -> None:
    """What was synced is gone as well, handles are shut, the next process begins with nothing; other hosts live on."""

    async def writes() -> None:
        file = current_process().host.disk.open("/synced", owner=current_process(), create=True)  # type: ignore[union-attr]
        file.write(b"for ever", 0)
        file.fsync()
        kept.append(file)
        await trio.sleep_forever()

    async def main(world: World) -> object:
        host, other = world.host("a"), world.host("b")
        for one in (host, other):
            one.start(writes)
        await trio.sleep(1)
        process = host.processes[0]
        host.wipe()
        with pytest.raises(ProcessDead):
            kept[0].read(1, 0)
        found = host.disk.exists("/synced"), host.disk.durable_files(), str(process.status), [*host.processes]
        host.start(writes)
        await trio.sleep(1)
        return *found, host.disk.read_file("/synced"), other.disk.exists("/synced"), dict(host.disk.fired), host.up

    kept: list = []  # type: ignore[type-arg]
    assert simulate(main) == (False, {}, "killed", [], b"for ever", True, {"wiped": 1}, True)


def test_a_database_begins_anew_on_a_wiped_disk() -> None:
    """Nothing of its locks or pages is left behind."""

    async def program() -> int:
        connection = opened("WAL", "FULL")
        connection.execute("CREATE TABLE t(a)")
        connection.execute("INSERT INTO t VALUES(1)")
        return int(connection.execute("SELECT count(*) FROM t").get)

    async def main(world: World) -> list[object]:
        host = world.host("a")
        first = (await host.start(program).wait()).value
        second = (await host.start(program).wait()).error
        assert isinstance(second, apsw.SQLError)
        host.wipe()
        return [first, (await host.start(program).wait()).value]

    assert simulate(main) == [1, 1]


def test_a_host_without_a_disk_is_wiped_too() -> None:
    """Then only its processes end; the trace tells."""

    async def main(world: World) -> str:
        process = world.host("a").start(sleeps)
        await trio.sleep(1)
        world.host("a").wipe()
        return str(process.status)

    outcome = outcome_of(main)
    assert outcome.unwrap() == "killed"
    assert [event.detail for event in outcome.trace.events() if event.kind == "wipe"] == ["a"]
