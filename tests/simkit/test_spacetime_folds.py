"""Rows of the space-time table that are folded: many changes of a disk at one instant."""

from __future__ import annotations

from typing import Any

import trio

import simkit
from simkit.spacetime import disks
from simkit.spacetime.model import Draft, Place
from tests.simkit.test_spacetime import seen


async def logged(world: simkit.World) -> None:
    """Writes a log twenty times, and after a while an index and the log once more."""
    host = world.host("store")

    async def write() -> None:
        owner = simkit.current_process()
        log = host.disk.open("/data/log", owner=owner, create=True)
        index = host.disk.open("/data/index", owner=owner, create=True)
        for n in range(20):
            log.write(b"x" * 8, 8 * n)
        await trio.sleep(1)
        index.write(b"y", 0)
        log.write(b"z", 0)

    host.start(write)
    await trio.sleep(2)


def test_many_changes_of_a_disk_in_a_row_are_one_row() -> None:
    """With how many there are of each file, and between which boundaries; a few are told one by one."""
    rows = [row for row in seen(logged).rows if row.kind == "disk"]
    assert [row.text for row in rows] == [
        "22 changes: /data/log × 21, /data/index × 1 (boundaries 1 to 22)",
        "write /data/index 1 B at 0 (boundary 23)",
        "write /data/log 1 B at 0 (boundary 24)",
    ]


def test_of_one_file_the_kind_of_change_is_told_and_the_last_before_a_death_stays() -> None:
    """Whoever asks what killed it wants that one."""
    place = Place(host="store")

    def draft(number: int, **more: Any) -> Draft:
        return Draft(0, "disk", place, f"write /data/log 8 B at {number} (boundary {number})", **more)

    changes = [draft(n) for n in range(1, 7)]
    death = Draft(0, "death", place, "killed")
    assert [one.text for one in disks.folded([*changes, death])] == [
        "5 × write /data/log (boundaries 1 to 5)",
        changes[-1].text,
        "killed",
    ]
    decided = [*changes[:3], draft(4, decides=True), *changes[4:]]
    assert disks.folded(decided) == decided
