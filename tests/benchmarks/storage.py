"""SQLite's contests: small transactions on the simulated disk beside the standard library's sqlite3 on a RAM disk.

Same schema, same statements, same pragmas on both sides: with the usual locks, but for WAL, which on the simulated disk
needs exclusive ones, and so gets them on the RAM disk as well. Guard and trace are on;
what the digest of the trace costs, when somebody asks for it, is told beside.
"""

from __future__ import annotations

import contextlib
import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw

from simkit.tape import Tape
from simkit.world import World, run
from tests.benchmarks.contest import Contest

OURS = "simkit: apsw on the simulated disk, guard and trace on"
TABLE = "CREATE TABLE entry (id INTEGER PRIMARY KEY, text TEXT)"
INSERT = "INSERT INTO entry (text) VALUES (?)"


def ram_folder() -> str | None:
    """Where files need no device; None, the usual temporary folder, where there is no such place."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def contests(scale: int) -> list[Contest]:
    """Both journal modes, `scale` per cent of the usual work."""
    transactions = 20 * scale
    where = "in RAM (/dev/shm)" if ram_folder() else "in the temporary folder"
    return [
        Contest(
            f"SQLite transactions, journal {mode}",
            "transactions",
            {
                OURS: lambda mode=mode: simulated(mode, transactions),  # type: ignore[misc]
                f"{OURS}, and its digest": lambda mode=mode: simulated(mode, transactions, digest=True),  # type: ignore[misc]
                f"sqlite3 {where}": lambda mode=mode: real(mode, transactions),  # type: ignore[misc]
            },
            {f"sqlite3 {where}": target},
        )
        for mode, target in (("DELETE", 2.0), ("WAL", 0.6))
    ]


def simulated(mode: str, transactions: int, *, digest: bool = False) -> int:
    """One process of one host that writes."""

    async def write() -> None:
        _fill(apsw.Connection("/data/bench.db").execute, mode, transactions)

    async def main(world: World) -> None:
        await world.host("db").start(write).wait()

    outcome = run(main, tape=Tape.from_seed(1))
    outcome.unwrap()
    assert not outcome.failures
    assert not digest or outcome.digest
    return transactions


def real(mode: str, transactions: int) -> int:
    """The same transactions on a real file."""
    with tempfile.TemporaryDirectory(dir=ram_folder()) as folder:
        connection = sqlite3.connect(f"{folder}/bench.db", isolation_level=None)
        with contextlib.closing(connection) as database:
            _fill(database.execute, mode, transactions)
    return transactions


def _fill(execute: Callable[..., Any], mode: str, transactions: int) -> None:
    """Each statement is a transaction of its own."""
    if mode == "WAL":
        execute("PRAGMA locking_mode = EXCLUSIVE").fetchall()
    assert execute(f"PRAGMA journal_mode = {mode}").fetchall() == [(mode.lower(),)]
    execute("PRAGMA synchronous = FULL")
    execute(TABLE)
    for number in range(transactions):
        execute(INSERT, (f"entry {number}",))
