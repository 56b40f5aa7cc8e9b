"""The reference runtime: a step is a call to a tool in the worker, a task a plan, or that plan for the interpreter (`replay`).

The server is embedded in the process of its worker and its client, as the engines of the peers are in theirs. The process keeps
memory that was freed, as `python -m reference_runtime serve` does.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

import trio

from reference_runtime import Handle, Server, Store, Worker, embedded
from reference_runtime.documents import replayed
from reference_runtime.interpreter import INTERPRETER
from reference_runtime.memory import keep_freed
from reference_runtime.model import Json
from reference_runtime.tools import Request
from tests.benchmarks.contestants.wire import SYNCHRONOUS, Load, expected, serve, step

PATH = Path(sys.argv[1]) / "runtime.sqlite"
STYLE = sys.argv[2]  # plans or replay
POLL_S = 0.001


class Tool:
    """Does a step, and says when so many were done that it is worth asking for the end."""

    def __init__(self) -> None:
        self.left, self.all_called = 0, trio.Event()

    def expect(self, calls: int) -> None:
        self.left, self.all_called = calls, trio.Event()

    async def call(self, request: Request) -> Json:
        self.left -= 1
        if self.left == 0:
            self.all_called.set()
        return {"nonce": step(request.task, request.operation)}

    async def lookup(self, request: Request) -> Json | None:
        return None


def document(load: Load) -> Json:
    steps = [{"op": "call", "id": name, "service": "ledger"} for name in load.names]
    plan: Json = {
        "version": 1,
        "root": {"op": "seq" if load.shape == "chain" else "par", "id": "root", "children": steps},
    }
    return plan if STYLE == "plans" else replayed(plan)


async def carry_out(client: Handle, tool: Tool, load: Load) -> None:
    for tasks in (load.tasks,) if load.together else ((task,) for task in load.tasks):
        tool.expect(load.width * len(tasks))
        await at_once(partial(client.submit, plan=document(load)), tasks)
        await tool.all_called.wait()
        await at_once(partial(finish, client, load), tasks)


async def at_once(do: Callable[[str], Awaitable[object]], tasks: Sequence[str]) -> None:
    """Do something with every task, all at once, as clients of their own would."""
    async with trio.open_nursery() as nursery:
        for task in tasks:
            nursery.start_soon(do, task)


async def finish(client: Handle, load: Load, task: str) -> None:
    """Ask until a task is done, and see that it came to what it should."""
    while (status := await client.status(task))["state"] != "done":
        if status["state"] in ("failed", "blocked"):
            raise AssertionError(f"{task}: {status}")
        await trio.sleep(POLL_S)
    found = {one["id"]: one["nonce"] for one in status["operations"]}
    if found != expected(load, task):
        raise AssertionError(f"{task} came to {found}")


async def main(store: Store) -> None:
    tool, workflows = Tool(), [INTERPRETER] if STYLE == "replay" else []
    async with embedded(Server(store)) as handle, trio.open_nursery() as nursery:
        nursery.start_soon(Worker(handle, tool, workflows=workflows).run)
        await trio.to_thread.run_sync(serve, about(store), asking(handle, tool))
        nursery.cancel_scope.cancel()


def asking(client: Handle, tool: Tool) -> Callable[[Load], None]:
    """Loads come in a thread, as lines do; they are carried out here."""
    return lambda load: trio.from_thread.run(carry_out, client, tool, load)


def about(store: Store) -> dict[str, str]:
    journal, synchronous = store.db.pragma("journal_mode"), store.db.pragma("synchronous")
    return {"version": "", "journal_mode": str(journal).upper(), "synchronous": SYNCHRONOUS[synchronous]}


if __name__ == "__main__":
    keep_freed()
    with closing(Store.open(str(PATH))) as opened:
        trio.run(main, opened)
