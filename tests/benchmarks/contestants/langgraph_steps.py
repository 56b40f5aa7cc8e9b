"""LangGraph: a step is a node, a task a thread, with SqliteSaver and `durability="sync"`.

A graph is built once for each shape, which is not measured. Tasks side by side are invoked from threads of a pool; they share
one saver, as it is meant to be.
"""

from __future__ import annotations

import functools
import operator
import sqlite3
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph

from tests.benchmarks.contestants.wire import Load, check, pragmas, serve, step

CONNECTION = sqlite3.connect(Path(sys.argv[1]) / "langgraph.sqlite", check_same_thread=False)
SAVER = SqliteSaver(CONNECTION)
SAVER.setup()


class State(TypedDict):
    task: str
    answers: Annotated[dict[str, str], operator.or_]


def node(name: str) -> Any:
    return lambda state: {"answers": {name: step(state["task"], name)}}


@functools.cache
def graph(shape: str, width: int) -> Any:
    names = Load(shape, width, (), together=False).names
    built = StateGraph(State)
    for name in names:
        built.add_node(name, node(name))
    if shape == "chain":
        for before, after in zip([START, *names], [*names, END], strict=True):
            built.add_edge(before, after)
    else:
        for name in names:
            built.add_edge(START, name)
            built.add_edge(name, END)
    return built.compile(checkpointer=SAVER)


def one(load: Load, task: str) -> None:
    config = {"configurable": {"thread_id": task}, "recursion_limit": 1000}
    found = graph(load.shape, load.width).invoke({"task": task, "answers": {}}, config, durability="sync")
    check(load, task, found["answers"])


def carry_out(load: Load) -> None:
    with ThreadPoolExecutor(len(load.tasks) if load.together else 1) as pool:
        list(pool.map(lambda task: one(load, task), load.tasks))


if __name__ == "__main__":
    serve({"version": version("langgraph"), **pragmas(CONNECTION)}, carry_out)
