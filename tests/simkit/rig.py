"""What the tests of the simulated world share: running one, a process that does one thing, opening a database."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import apsw
import trio

from simkit.strategy import RandomWalk
from simkit.tape import Tape
from simkit.world import Host, Outcome, World, run

T = TypeVar("T")
PATH = "/state/x.db"


def simulate(main: Callable[[World], Awaitable[T]], seed: int = 0, *, wander: bool = False) -> T:
    """Return what `main` returned in a world of its own, or raise what it raised."""
    return outcome_of(main, seed, wander=wander).unwrap()


def outcome_of(main: Callable[[World], Awaitable[T]], seed: int = 0, *, wander: bool = False) -> Outcome[T]:
    """Simulate; with `wander` under a schedule drawn from the seed."""
    tape = Tape.from_seed(seed)
    strategy = RandomWalk(tape.stream("schedule")) if wander else None
    return run(main, tape=tape, strategy=strategy)


async def on(host: Host, fn: Callable[[], T]) -> T:
    """Run `fn` as a process of `host` and return what it returned."""

    async def program() -> T:
        await trio.lowlevel.checkpoint()
        return fn()

    status = await host.start(program).wait()
    if status.error is not None:
        raise status.error
    return status.value


def opened(journal: str, synchronous: str) -> apsw.Connection:
    """Open as a careful program does; with exclusive locking DELETE would keep and overwrite its journal."""
    connection = apsw.Connection(PATH)
    connection.execute(f"PRAGMA locking_mode={'EXCLUSIVE' if journal == 'WAL' else 'NORMAL'}")
    assert connection.execute(f"PRAGMA journal_mode={journal}").get == journal.lower()
    connection.execute(f"PRAGMA synchronous={synchronous}")
    return connection
