"""LangGraph and its SQLite saver, unchanged, on a simulated host whose power fails at each boundary of its disk in turn.

Told on standard output: how many boundaries there were, what came of the crashes, the digest of the undisturbed run. Runs
where `langgraph` is installed.
"""

from __future__ import annotations

import collections
import logging
import operator
import sqlite3
import sys
import warnings
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph

import simkit
from simkit import threaded

warnings.simplefilter("ignore")
logging.disable()  # what a dying process says of itself


class State(TypedDict):
    """What the graph carries: the names of the nodes that ran."""

    log: Annotated[list[str], operator.add]


def program() -> list[str]:
    """Run the graph, or resume it where its checkpoints say that it was."""
    graph = StateGraph(State)
    for name in ("draft", "review", "publish"):
        graph.add_node(name, lambda _state, name=name: {"log": [name]})
    graph.add_edge(START, "draft")
    graph.add_edge("draft", "review")
    graph.add_edge("draft", "publish")
    graph.add_edge("publish", END)
    database = sqlite3.connect("/checkpoints.db", check_same_thread=False)
    database.execute("PRAGMA synchronous = EXTRA")
    application = graph.compile(checkpointer=SqliteSaver(database))
    config = {"configurable": {"thread_id": "one"}}
    begun = application.get_state(config).values
    found = application.invoke(None if begun else {"log": []}, config, durability="sync")
    database.close()
    return list(found["log"])


async def main(world: simkit.World, crash: simkit.CrashPoint | None = None) -> str:
    """Run it twice on one disk: the second time after whatever has happened to the first."""
    host = world.host("desk")
    if crash is not None:
        host.at_boundary(crash.number, lambda: host.power_loss("lose"))
    first = await host.start(threaded.run, program).wait()
    second = await host.start(threaded.run, program).wait()
    if second.error is not None:
        raise second.error
    return f"{first.kind}, then {second.value}"


def run(crash: simkit.CrashPoint | None = None) -> Any:
    """One run, with a crash or without."""
    tape = simkit.Tape.from_seed(1)
    return simkit.run(lambda world: main(world, crash), tape=tape)


def tell(most: int | None) -> None:
    """Everything once, with `most` crashes at most, evenly spread."""
    run()  # what it imports as it goes is loaded from now on
    probe, again = run(), run()
    assert probe.digest == again.digest, "equal seeds, different runs"
    outcomes = collections.Counter(
        outcome.value if outcome.error is None else f"{type(outcome.error).__name__}: {outcome.error}"
        for _, outcome in simkit.crash_everywhere(probe, run, most=most)
    )
    print(f"undisturbed: {probe.unwrap()}")
    print(f"boundaries: {sum(probe.boundaries.values())}")
    for outcome, times in sorted(outcomes.items(), key=str):
        print(f"{times} crashes: {outcome}")


if __name__ == "__main__":
    tell(int(sys.argv[1]) if len(sys.argv) > 1 else None)
