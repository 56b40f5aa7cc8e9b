"""A store with many finished tasks in it, and what it costs beside an empty one.

The tasks are copies of one that really ran: its rows, under other names and with other generations. So ten thousand of them
take seconds to make, and every index is as full as if they had run.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from reference_runtime import Store
from reference_runtime.model import Grant, Ticket
from tests.benchmarks.storage import ram_folder

FIRST = "done-0"
#: Copies in one transaction, so that the log stays small.
BATCH = 5_000
#: Submits and dispatches of one measurement; each is timed by itself, and the median told.
TASKS = 200
#: Tasks that are finished before a kill: some 500 pages of log.
LAST = 10
_REPOSITORY = Path(__file__).resolve().parent.parent.parent
PLAN = {"version": 1, "root": {"op": "call", "id": "a", "service": "ledger"}}


@contextlib.contextmanager
def store_with(finished: int) -> Iterator[str]:
    """The path of a store with so many finished tasks, closed."""
    with tempfile.TemporaryDirectory(dir=ram_folder()) as folder:
        path = f"{folder}/runtime.db"
        store = Store.open(path)
        if finished:
            submit_and_dispatch(store, FIRST)
            for begin in range(1, finished, BATCH):
                _copy(store, begin, min(finished, begin + BATCH))
        store.close()
        yield path


def submit_and_dispatch(store: Store, task: str) -> None:
    """One task of one call, to its end: admitted, leased with its intent, settled."""
    store.submit(task, PLAN)
    (ticket,) = store.claim("bench", [], 1)
    assert isinstance(ticket, Ticket)
    grant = Grant(ticket.attempt, ticket.operation, ticket.generation, ticket.version)
    assert store.settle(grant, "succeeded", {"nonce": task}, "") is None


def _copy(store: Store, begin: int, end: int) -> None:
    """Copy every row of the first task for each number from `begin` up to `end`."""
    tables = [str(row[0]) for row in store.db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()]
    with store._transaction():
        store.db.execute("PRAGMA defer_foreign_keys = ON")
        for table in tables:
            _copy_table(store, table, begin, end)


def _copy_table(store: Store, table: str, begin: int, end: int) -> None:
    described = store.db.execute(f"PRAGMA table_xinfo({table})").fetchall()
    columns = [(str(row[1]), str(row[2])) for row in described if row[6] == 0]
    mine = [name for name, of in columns if of == "TEXT"]
    if not mine or table == "counter":
        return
    values = ", ".join(
        f"replace({name}, '{FIRST}', 'done-' || n)" if of == "TEXT" else f"{name} + n" if name == "generation" else name
        for name, of in columns
    )
    names = ", ".join(name for name, _ in columns)
    where = " OR ".join(f"instr({name}, '{FIRST}.') = 1 OR {name} = '{FIRST}'" for name in mine)
    store.db.execute(
        "WITH RECURSIVE number(n) AS (SELECT ?1 UNION ALL SELECT n + 1 FROM number WHERE n + 1 < ?2)"
        f" INSERT INTO {table} ({names}) SELECT {values} FROM {table}, number WHERE {where}",
        (begin, end),
    )
    store.db.execute("UPDATE counter SET value = max(value, ?) WHERE name = 'generation'", (end + 1,))


def step_beside(finished: int) -> float:
    """How many times as long submit, dispatch and settle take beside so many finished tasks as in an empty store."""
    with store_with(finished) as full, store_with(0) as empty:
        return _step_s(full) / _step_s(empty)


def _step_s(path: str) -> float:
    store, times = Store.open(path), []
    for number in range(TASKS):
        began = time.perf_counter()
        submit_and_dispatch(store, f"task-{number}")
        times.append(time.perf_counter() - began)
    store.close()
    return statistics.median(times)


@functools.cache
def reopening(finished: int, repeats: int = 5) -> float:
    """Milliseconds to open a store with so many finished tasks whose server was killed, and to find what is leased, due and
    to be timed in it; the least disturbed of some times.
    """
    times = []
    with store_with(finished) as path:
        for _ in range(repeats):
            command = [sys.executable, "-m", "tests.benchmarks.finished", path]
            killed = subprocess.run(command, cwd=_REPOSITORY, check=False)
            assert killed.returncode == -signal.SIGKILL
            began = time.perf_counter()
            store = Store.open(path)
            assert (store.leases(), store.next_work_ns(), store.next_timer_ns()) == ([], None, None)
            times.append(time.perf_counter() - began)
            store.close()
    return min(times) * 1000


def work_and_die(path: str) -> None:
    """Finish some tasks more, and be killed with all of it in the log."""
    store = Store.open(path)
    for _ in range(LAST):
        submit_and_dispatch(store, f"last-{time.time_ns()}")
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    work_and_die(sys.argv[1])
