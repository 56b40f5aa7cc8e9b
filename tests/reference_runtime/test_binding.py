"""The store's file and its log belong together: one without the other is refused, and no crash makes a whole one look so."""

from __future__ import annotations

import functools
import shutil
from pathlib import Path

import pytest

from reference_runtime import Store, StoreError, views
from reference_runtime.binding import FREE, bound_to, log_name
from simkit import Tape, World, run
from tests.runtime_rig import call, plan

PLAN = plan(call("a"))


def killed(folder: Path, *tasks: str) -> Path:
    """The files of a server that was killed after it had acknowledged these tasks; each folder has one store's life."""
    (folder / "live").mkdir(parents=True, exist_ok=True)
    store = Store.open(str(folder / "live" / "s.db"))
    for task in tasks:
        store.submit(task, PLAN)
    dead = folder / f"dead-{len(list(folder.iterdir()))}"
    shutil.copytree(folder / "live", dead)
    store.close()
    return dead / "s.db"


def beside(path: Path, what: str) -> Path:
    return path.with_name(f"{path.name}-{what}")


def known(path: Path) -> list[str]:
    store = Store.open(str(path))
    try:
        return [task for (task,) in store.db.execute("SELECT id FROM task ORDER BY id")]
    finally:
        store.close()


def test_a_log_that_was_deleted_is_missed(tmp_path):
    """Refused with what to do about it, as often as it is asked for; with its log the store has all it had acknowledged."""
    path = killed(tmp_path, "a", "b")
    log = beside(path, "wal").read_bytes()
    before = path.read_bytes()
    for _ in range(2):
        beside(path, "wal").unlink(missing_ok=True)
        with pytest.raises(StoreError, match=r"store-damaged: .*s\.db-wal is gone or empty.*restore"):
            Store.open(str(path))
    assert path.read_bytes() == before
    beside(path, "wal").write_bytes(log)
    assert known(path) == ["a", "b"]


@pytest.mark.parametrize("left", [0, 1, 31])
def test_a_log_that_was_cut_to_nothing_is_missed(tmp_path, left):
    """Neither is one that has not even its head."""
    path = killed(tmp_path, "a")
    beside(path, "wal").write_bytes(beside(path, "wal").read_bytes()[:left])
    with pytest.raises(StoreError, match=r"s\.db-wal is gone or empty"):
        Store.open(str(path))


def test_a_file_that_was_copied_alone_is_not_the_whole(tmp_path):
    """Of a server that runs, or was killed: what was committed last is in the log only."""
    path = killed(tmp_path, "a")
    shutil.copy(path, tmp_path / "copy.db")
    with pytest.raises(StoreError, match=r"copy\.db-wal is gone or empty"):
        Store.open(str(tmp_path / "copy.db"))


def test_a_log_of_another_time_is_not_taken_for_the_right_one(tmp_path):
    """SQLite would lay its pages over a file they do not fit."""
    earlier = killed(tmp_path, "a")
    later = killed(tmp_path, "b")
    shutil.copy(beside(later, "wal"), beside(earlier, "wal"))
    with pytest.raises(StoreError, match=r"s\.db-wal is not the log that belongs to"):
        Store.open(str(earlier))


def test_a_store_that_was_closed_needs_no_log(tmp_path):
    """Closing puts everything into the file, which may be copied alone from then on."""
    path = tmp_path / "s.db"
    store = Store.open(str(path))
    store.submit("a", PLAN)
    store.close()
    assert not beside(path, "wal").exists()
    shutil.copy(path, tmp_path / "copy.db")
    assert known(tmp_path / "copy.db") == ["a"]


def test_a_log_without_file_and_mark_is_not_thrown_away(tmp_path):
    """The log alone is enough to know that there was more."""
    path = killed(tmp_path, "a")
    path.unlink()
    beside(path, "mark").unlink()
    with pytest.raises(StoreError, match=r"store-damaged: .*s\.db is gone or empty"):
        Store.open(str(path))
    assert beside(path, "wal").stat().st_size > 0


def test_each_log_is_bound_anew(tmp_path):
    """A log that has grown long is begun anew under other salts; the file goes with it."""
    path = tmp_path / "s.db"
    store = Store.open(str(path))
    store.db.wal_autocheckpoint(5)
    names = set()
    for number in range(12):
        store.submit(f"t{number}", PLAN)
        head = beside(path, "wal").read_bytes()[:32]
        salts = (int.from_bytes(head[16:20]), int.from_bytes(head[20:24]))
        bound = bound_to("unix", str(path))
        assert bound == log_name(salts)
        names.add(bound)
    assert len(names) > 3
    store.close()
    assert bound_to("unix", str(path)) == FREE


PATH = "/state/runtime.db"


@pytest.mark.slow
@pytest.mark.parametrize("how", ["kill", "keep", "lose", "sample"])
def test_no_crash_parts_a_file_from_its_log(how: str) -> None:
    """Wherever it strikes, through openings, commits, a log begun anew and a close: the next server opens, and has it all."""

    def strike(number: int) -> int:
        """Crash at one boundary of the disk; how many there were."""
        acknowledged: list[str] = []

        async def life() -> None:
            for opening in range(2):
                store = Store.open(PATH)
                store.db.wal_autocheckpoint(1)
                for one in range(2):
                    store.submit(f"{opening}.{one}", PLAN)
                    acknowledged.append(f"{opening}.{one}")
                store.close()

        async def after() -> list[str]:
            store = Store.open(PATH)
            return [task for task in acknowledged if views.status(store, task)["state"] == "unknown"]

        async def main(world: World) -> int:
            host = world.host("server")
            process = host.start(life)
            if number:
                crash = process.kill if how == "kill" else functools.partial(host.power_loss, how)  # type: ignore[arg-type]
                host.at_boundary(number, crash)
            await process.wait()
            boundaries = host.boundaries
            for _ in range(2):
                assert (await host.start(after).wait()).value == [], number
            return boundaries

        return run(main, tape=Tape.from_seed(number)).unwrap()

    for number in range(1, strike(0) + 1):
        strike(number)
