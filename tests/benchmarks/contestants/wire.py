"""What every contestant is asked, and how it is talked to: one JSON object a line over its standard streams.

It runs in an environment of its own, with nothing of this project but this module. Its first line says what it is and
how its database is set; after that every line in names a `Load` and every line out says how many steps were made.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

#: What SQLite calls the values of `synchronous`.
SYNCHRONOUS = {0: "OFF", 1: "NORMAL", 2: "FULL", 3: "EXTRA"}


@dataclass(frozen=True)
class Load:
    """Tasks of `width` steps each: one after another in a chain, or all of a task at once (`fan`)."""

    shape: str  # chain or fan
    width: int
    tasks: tuple[str, ...]  # their ids, never used before
    together: bool  # all tasks side by side, or each after the last has ended

    @property
    def steps(self) -> int:
        return self.width * len(self.tasks)

    @property
    def names(self) -> list[str]:
        return [f"s{number}" for number in range(self.width)]

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, line: str) -> Load:
        said = json.loads(line)
        return cls(**{**said, "tasks": tuple(said["tasks"])})


def step(task: str, name: str) -> str:
    """What a step does: nothing, so that only the recording of it is measured. Its result."""
    return f"{task}:{name}"


def expected(load: Load, task: str) -> dict[str, str]:
    """The results of a task's steps, by name."""
    return {name: step(task, name) for name in load.names}


def check(load: Load, task: str, found: dict[str, Any]) -> None:
    """Raise where a task did not come to what it should have."""
    if found != expected(load, task):
        raise AssertionError(f"{task} came to {found}")


def pragmas(connection: sqlite3.Connection) -> dict[str, str]:
    """How durable a connection is, as SQLite says."""
    journal, synchronous = (
        connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")
    )
    return {"journal_mode": str(journal).upper(), "synchronous": SYNCHRONOUS[synchronous]}


def prepare(path: Path, journal: str) -> None:
    """Make a database whose journal mode is kept in its file, before its owner opens it."""
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA journal_mode = {journal}")


def serve(about: dict[str, str], carry_out: Callable[[Load], None]) -> None:
    """Say what this is, then carry out what is asked for until the input ends."""
    print(json.dumps(about), flush=True)
    for line in sys.stdin:
        load = Load.from_json(line)
        carry_out(load)
        print(json.dumps({"steps": load.steps}), flush=True)
