"""DBOS: a step is a step, a task a workflow, on its SQLite back end.

With a second argument (`WAL`) the database's journal is put into that mode before DBOS opens it, which keeps it; everything
else is as DBOS ships it. A fan-out is one workflow whose steps are awaited together; tasks side by side are workflows started
together.
"""

from __future__ import annotations

import asyncio
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from dbos import DBOS, SetWorkflowID

from tests.benchmarks.contestants.wire import Load, check, pragmas, prepare, serve, step

PATH = Path(sys.argv[1]) / "dbos.sqlite"
POLL_S = 0.001  # of results; shorter than the default, in favour of DBOS
if len(sys.argv) > 2:
    prepare(PATH, sys.argv[2])
CONFIG: dict[str, Any] = {"name": "bench", "system_database_url": f"sqlite:///{PATH}", "log_level": "WARNING"}
DBOS(config=CONFIG)


@DBOS.step()  # type: ignore[untyped-decorator]  # its types are in another environment
def do(task: str, name: str) -> str:
    return step(task, name)


@DBOS.step()  # type: ignore[untyped-decorator]  # its types are in another environment
async def do_async(task: str, name: str) -> str:
    return step(task, name)


@DBOS.workflow()  # type: ignore[untyped-decorator]  # its types are in another environment
def chain(task: str, names: list[str]) -> dict[str, str]:
    return {name: do(task, name) for name in names}


@DBOS.workflow()  # type: ignore[untyped-decorator]  # its types are in another environment
async def fan(task: str, names: list[str]) -> dict[str, str]:
    answers = await asyncio.gather(*(do_async(task, name) for name in names))
    return dict(zip(names, answers, strict=True))


def carry_out(load: Load) -> None:
    if load.shape == "fan":
        asyncio.run(fans(load))
        return
    if load.together:
        handles = [start(task, load) for task in load.tasks]
        found = [handle.get_result(polling_interval_sec=POLL_S) for handle in handles]
    else:
        found = [chain_of(task, load) for task in load.tasks]
    for task, answers in zip(load.tasks, found, strict=True):
        check(load, task, answers)


def start(task: str, load: Load) -> Any:
    with SetWorkflowID(task):
        return DBOS.start_workflow(chain, task, load.names)


def chain_of(task: str, load: Load) -> dict[str, str]:
    with SetWorkflowID(task):
        return chain(task, load.names)


async def fans(load: Load) -> None:
    for task in load.tasks:
        with SetWorkflowID(task):
            check(load, task, await fan(task, load.names))


def settings() -> dict[str, str]:
    """As the connections have it that DBOS really uses."""
    from dbos._dbos import _get_dbos_instance

    with _get_dbos_instance()._sys_db.engine.connect() as connection:
        return pragmas(connection.connection.driver_connection)


if __name__ == "__main__":
    DBOS.launch()
    serve({"version": version("dbos"), **settings()}, carry_out)
    DBOS.destroy()
