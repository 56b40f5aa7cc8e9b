"""The reference runtime: a step is a call to a tool in the worker, a task a plan, or that plan for the interpreter (`replay`).

Server, worker and client share one process, and talk over TCP on loopback as they would between processes. The process is set
up as `python -m reference_runtime serve` sets its own up.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import trio

from reference_runtime import Client, Server, Store, Worker
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


async def carry_out(client: Client, tool: Tool, load: Load) -> None:
    for tasks in (load.tasks,) if load.together else ((task,) for task in load.tasks):
        tool.expect(load.width * len(tasks))
        for task in tasks:
            await client.submit(task, document(load))
        await tool.all_called.wait()
        for task in tasks:
            await finish(client, load, task)


async def finish(client: Client, load: Load, task: str) -> None:
    """Ask until a task is done, and see that it came to what it should."""
    while (status := await client.status(task))["state"] != "done":
        if status["state"] in ("failed", "blocked"):
            raise AssertionError(f"{task}: {status}")
        await trio.sleep(POLL_S)
    found = {one["id"]: one["nonce"] for one in status["operations"]}
    if found != expected(load, task):
        raise AssertionError(f"{task} came to {found}")


async def main(store: Store) -> None:
    server, tool = Server(store), Tool()
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(server.serve, "127.0.0.1", 0)
        address = "127.0.0.1", listeners[0].socket.getsockname()[1]
        workflows = [INTERPRETER] if STYLE == "replay" else []
        nursery.start_soon(Worker(Client(*address), tool, workflows=workflows).run)
        async with Client(*address) as client:
            await trio.to_thread.run_sync(serve, about(store), asking(client, tool))
        nursery.cancel_scope.cancel()


def asking(client: Client, tool: Tool) -> Callable[[Load], None]:
    """Loads come in a thread, as lines do; they are carried out here."""
    return lambda load: trio.from_thread.run(carry_out, client, tool, load)


def about(store: Store) -> dict[str, str]:
    journal, synchronous = store.db.pragma("journal_mode"), store.db.pragma("synchronous")
    return {"version": "", "journal_mode": str(journal).upper(), "synchronous": SYNCHRONOUS[synchronous]}


if __name__ == "__main__":
    keep_freed()
    with closing(Store.open(str(PATH))) as opened:
        trio.run(main, opened)
