"""The reference runtime's contests: whole seeds of it in simulation, and durable steps of it on a real file.

A seed draws a plan and interruptions, runs engine, worker and services on simulated hosts, and is judged: what
`simkit run -t reference` does for each. A step is one call of a plan: made, its result recorded and the next one leased with
its intent, which is one durable transaction. And what a store costs that has many finished tasks in it, which should be what
an empty one costs.
"""

from __future__ import annotations

import contextlib
import functools
import sqlite3
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import apsw
import trio

from conformance import targets
from conformance.simulate import simulate
from reference_runtime import Client, Server, Store, Worker
from reference_runtime.documents import replayed
from reference_runtime.interpreter import INTERPRETER
from reference_runtime.model import Json
from reference_runtime.tools import Request
from reference_runtime.workflow import Workflow
from scenarios import catalogue
from scenarios.interruption import Scenario, actions_of
from scenarios.rules import judge_all
from tests.benchmarks import finished, peers, side_by_side
from tests.benchmarks.contest import Contest, Gauge

#: Transactions of one step: its result, with the next one's lease and intent.
COMMITS = 1
#: Tasks that run side by side; the calls of one follow one another.
TASKS = 8


#: What core plans are made of, and whom kills strike.
CORE, UNITS = frozenset({"seq", "par", "call", "wait", "sleep"}), ("engine", "worker")
#: From one scenario of the tier to the next that is run, so that few seeds see many plans.
STRIDE = 37
#: Steps of the task whose statements are counted; looking whether it is done adds some.
STATEMENTS_OF = 200
#: Finished tasks of the stores that are opened again.
FINISHED = (10_000, 100_000)


def contests(scale: int) -> Iterator[Contest | Gauge]:
    """Every contest, `scale` per cent of the usual work."""
    yield from _alone(scale)
    yield from side_by_side.contests(scale)
    for style, workflow in (("plans", ()), ("replay", (INTERPRETER,))):
        yield Gauge(
            f"SQL statements of a step: a chain of {STATEMENTS_OF} by {style}",
            "statements",
            functools.partial(trio.run, statements, workflow),
        )
    yield from _finished(scale)


def _alone(scale: int) -> list[Contest | Gauge]:
    seeds, calls = max(2, scale // 2), max(1, scale // 5)
    switches = 200 * scale
    return [
        Contest(
            "seeds of the reference runtime, judged",
            "seeds",
            {"simkit: guard and trace on": lambda: composite(seeds)[0]},
        ),
        Contest(
            "events of these seeds",
            "events",
            {
                "simkit: steps, moves of the clock, messages, storage": lambda: composite(seeds)[1],
                peers.BARE: lambda: _bare(switches),
            },
        ),
        Contest(
            "durable steps of the reference runtime on a real file",
            "steps",
            {
                f"reference runtime: {TASKS} tasks, TCP on loopback": lambda: trio.run(durable_steps, calls),
                f"sqlite3 alone: {COMMITS} commit a step": lambda: bare_commits(calls * TASKS),
            },
            clock=time.perf_counter,
        ),
        Gauge(
            "seeds a second: core plans with kills, judged, on one core",
            "seeds a second",
            lambda: pace_with_kills(seeds * 2),
            at_least=300,
        ),
    ]


def _finished(scale: int) -> list[Gauge]:
    numbers = [max(100, number * scale // 100) for number in FINISHED]
    return [
        Gauge(
            f"time of submit, dispatch and settle beside {numbers[-1]:,} finished tasks",
            "times as long",
            lambda: finished.step_beside(numbers[-1]),
            at_most=1.5,
        ),
        *(
            Gauge(
                f"time to open a store after a kill, {number:,} finished tasks",
                "ms",
                functools.partial(finished.reopening, number),
            )
            for number in numbers
        ),
        Gauge(
            f"time to open after a kill: {numbers[-1]:,} finished tasks beside {numbers[0]:,}",
            "times as long",
            lambda: finished.reopening(numbers[-1]) / finished.reopening(numbers[0]),
            at_most=1.5,
        ),
    ]


def composite(seeds: int) -> tuple[int, int]:
    """Run and judge seeds 0, 1, 2…; how many seeds and how many events."""
    target = targets.parse("reference")
    events = 0
    for seed in range(seeds):
        simulated = simulate(target, seed)
        findings = judge_all(simulated.observation.history)
        assert not any(finding.violations for finding in findings.values())
        events += len(simulated.outcome.trace)
    return seeds, events


def pace_with_kills(seeds: int) -> float:
    """Seeds a second of processor time: plans of steps, waits and sleeps, each with one or more kills of engine or worker."""
    target = targets.parse("reference")
    killed = [one for one in catalogue.tier("core", CORE, units=UNITS, simulated=True) if _only_kills(one)]
    simulate(target, 0, scenario=killed[0])
    began = time.process_time()
    for seed in range(seeds):
        simulated = simulate(target, seed, scenario=killed[seed * STRIDE % len(killed)])
        findings = judge_all(simulated.observation.history)
        assert not any(finding.violations for finding in findings.values())
    return seeds / (time.process_time() - began)


def _only_kills(scenario: Scenario) -> bool:
    actions = {action for one in scenario.interruptions for action in actions_of(one.label)}
    return actions == {"kill"}


def _bare(switches: int) -> int:
    peers.bare_switching(TASKS, switches // TASKS)
    return switches


class _Nothing:
    """A tool that answers at once, so that only the runtime is measured."""

    async def call(self, request: Request) -> Json:
        return {"nonce": request.operation}

    async def lookup(self, request: Request) -> Json | None:
        return {"nonce": request.operation}


def _plan(calls: int) -> dict[str, Any]:
    steps = [{"op": "call", "id": f"c{number}", "service": "ledger"} for number in range(calls)]
    return {"version": 1, "root": {"op": "seq", "id": "root", "children": steps}}


async def statements(workflows: Sequence[Workflow]) -> float:
    """How many statements the store carries out for a step of a chain, its submit and its end among them."""
    count = 0

    def tell(_: object) -> None:
        nonlocal count
        count += 1

    with tempfile.TemporaryDirectory() as folder:
        server = Server(Store.open(f"{folder}/runtime.db"))
        async with trio.open_nursery() as nursery:
            listeners = await nursery.start(server.serve, "127.0.0.1", 0)
            address = "127.0.0.1", listeners[0].socket.getsockname()[1]
            nursery.start_soon(Worker(Client(*address), _Nothing(), workflows=workflows).run)
            async with Client(*address) as client:
                server.store.db.trace_v2(apsw.SQLITE_TRACE_STMT, tell)
                plan = _plan(STATEMENTS_OF)
                await client.submit("task", replayed(plan) if workflows else plan)
                while (await client.status("task"))["state"] != "done":  # noqa: ASYNC110 - over a network
                    await trio.sleep(0.01)
            nursery.cancel_scope.cancel()
        server.store.close()
    return count / STATEMENTS_OF


async def durable_steps(calls: int) -> int:
    """Every task of `calls` calls to its end, server, worker and client in one process; how many steps that were."""
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Store.open(f"{folder}/runtime.db"))
        async with trio.open_nursery() as nursery:
            listeners = await nursery.start(server.serve, "127.0.0.1", 0)
            address = "127.0.0.1", listeners[0].socket.getsockname()[1]
            nursery.start_soon(Worker(Client(*address), _Nothing()).run)
            async with Client(*address) as client:
                for number in range(TASKS):
                    await client.submit(f"task-{number}", _plan(calls))
                for number in range(TASKS):
                    while (await client.status(f"task-{number}"))["state"] != "done":  # noqa: ASYNC110 - over a network
                        await trio.sleep(0.01)
            nursery.cancel_scope.cancel()
        server.store.close()
    return calls * TASKS


def bare_commits(steps: int) -> int:
    """As many durable transactions as the runtime makes for these steps, each of one small row."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bare.db"
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as database:
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = FULL")
            database.execute("CREATE TABLE entry (id INTEGER PRIMARY KEY, text TEXT)")
            for number in range(steps * COMMITS):
                database.execute("INSERT INTO entry (text) VALUES (?)", (f"entry {number}",))
    return steps
