"""LangGraph with its SQLite checkpointer: a plan is a graph, each leaf a node, each dependency an edge.

- run id = thread id; the configuration is the durability mode, `sync` or `exit`;
- recovery is the caller's: `resume` invokes the graph again, with None when there is a checkpoint to go on from and with
  the original input when there is none. For that the caller keeps the plan (`<run>.plan.json`);
- a wait is an `interrupt`; a signal resumes it by its interrupt id, and is refused while none is pending;
- LangGraph has no timers: a sleep is a node that sleeps, from the beginning if it must be run again.

LangGraph works in supersteps: a node begins when all of the step before are through, also those of other branches.
"""

from __future__ import annotations

import json
import operator
import os
import sqlite3
import threading
import time
from importlib.metadata import version
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, RetryPolicy, interrupt
from simkit_adapter import Busy, Json, Refused, Unknown, call, configuration, dependencies, leaves, serve, state_folder

if TYPE_CHECKING:
    from collections.abc import Callable

DURABILITY = {"default": "sync"}.get(configuration(), configuration())
RETRY = RetryPolicy(initial_interval=0.1, backoff_factor=1.5, max_attempts=12, jitter=False, retry_on=(Unknown, Busy))
POLL_S = 0.005
SAVER = SqliteSaver(sqlite3.connect(state_folder() / "langgraph.sqlite", check_same_thread=False))


class State(TypedDict):
    answers: Annotated[Json, operator.or_]


def node(run: str, op: Json) -> Callable[[State], Json]:
    """What carries out one leaf of the plan."""

    def carry_out(state: State) -> Json:
        if op["op"] == "call":
            return {"answers": {op["id"]: call(op, run, state["answers"])}}
        if op["op"] == "wait":
            return {"answers": {op["id"]: interrupt(op["signal"])["nonce"]}}
        time.sleep(op["ns"] / 1e9)
        return {"answers": {}}

    return carry_out


class Run:
    """One thread of LangGraph's, and the Python thread that invokes it, when there is one."""

    def __init__(self, run: str, plan: Json) -> None:
        self.plan, self.worker = plan, threading.Thread()
        self.config: Any = {"configurable": {"thread_id": run}, "recursion_limit": 1000}
        graph = StateGraph(State)
        needs = dependencies(plan)
        for op in leaves(plan):
            graph.add_node(op["id"], node(run, op), retry_policy=RETRY)
            graph.add_edge(needs[op["id"]] or START, op["id"])
        for last in needs.keys() - {one for before in needs.values() for one in before}:
            graph.add_edge(last, END)
        self.graph = graph.compile(checkpointer=SAVER)

    def invoke(self, value: Any) -> None:
        self.worker = threading.Thread(target=self._invoke, args=(value,), daemon=True)
        self.worker.start()

    def _invoke(self, value: Any) -> None:
        self.graph.invoke(value, self.config, durability=DURABILITY)

    def state(self) -> Any:
        return self.graph.get_state(self.config)

    def wait_for(self, condition: Callable[[], bool]) -> None:
        """Return when it holds, or when the invocation has ended."""
        while self.worker.is_alive() and not condition():
            time.sleep(POLL_S)

    def pending(self) -> dict[str, str]:
        """The interrupts nobody has answered: interrupt id → signal name."""
        return {one.id: one.value for task in self.state().tasks if not task.result for one in task.interrupts}

    def is_interrupted(self) -> bool:
        """Nothing is left to do in this superstep but to answer interrupts."""
        left = [task for task in self.state().tasks if not task.result]
        return bool(left) and all(task.interrupts for task in left)


class Adapter:
    def __init__(self) -> None:
        self.runs = {}
        for file in state_folder().glob("*.plan.json"):
            run = file.name.removesuffix(".plan.json")
            self.runs[run] = Run(run, json.loads(file.read_text()))

    def hello(self) -> Json:
        return {"name": "langgraph", "version": version("langgraph"), "configuration": DURABILITY}

    def start(self, run: str, plan: Json, key: str) -> None:
        if run not in self.runs:
            keep(state_folder() / f"{run}.plan.json", plan)
            self.runs[run] = Run(run, plan)
        self.resume(run)  # never with fresh input where there is a checkpoint: that would begin anew
        if DURABILITY == "sync":
            self.runs[run].wait_for(lambda: SAVER.get_tuple(self.runs[run].config) is not None)

    def resume(self, run: str) -> None:
        if run not in self.runs or self.runs[run].worker.is_alive():
            return
        state = self.runs[run].state()
        lost = self._lost_signals(run)
        if not state.created_at:
            self.runs[run].invoke({"answers": {}})
        elif lost:
            self.runs[run].invoke(Command(resume=lost))
        elif state.tasks and not any(task.error for task in state.tasks) and not self.runs[run].is_interrupted():
            self.runs[run].invoke(None)

    def _lost_signals(self, run: str) -> dict[str, Json]:
        """What `exit` forgot: answers it was given in an invocation that never came to its end."""
        sent = recorded(run) if DURABILITY == "exit" else {}
        pending = self.runs[run].pending() if sent else {}
        return {one: payload for one, payload in sent.values() if one in pending}

    def status(self, run: str) -> Json:
        if run not in self.runs:
            return {"state": "unknown"}
        busy = self.runs[run].worker.is_alive()
        state = self.runs[run].state()
        answers = state.values.get("answers", {})
        shown = {"operations": [{"id": op, "state": "succeeded", "nonce": nonce} for op, nonce in answers.items()]}
        if busy or not state.created_at:
            return {"state": "running", **shown}
        if error := next((task.error for task in state.tasks if task.error), None):
            return {"state": "failed", "error": error, **shown}
        if waiting := self.runs[run].pending():
            return {"state": "waiting", "on": next(iter(waiting.values())), **shown}
        # `state.next` leaves out tasks whose answers are saved but not yet in a checkpoint, as after a kill
        return {"state": "running", **shown} if state.tasks else {"state": "done", "result": answers, **shown}

    def signal(self, run: str, name: str, payload: Json, id: str) -> None:
        if run not in self.runs:
            raise Refused(f"no thread {run}")
        sent = recorded(run)
        pending = {} if self.runs[run].worker.is_alive() else self.runs[run].pending()
        found = sent[id][0] if id in sent else next((one for one in pending if pending[one] == name), None)
        if found is None:
            raise Refused(f"{run} is not interrupted for {name!r}")
        keep(state_folder() / f"{run}.signals.json", {**sent, id: [found, payload]})
        if found in pending:
            self.runs[run].invoke(Command(resume={found: payload}))
        if DURABILITY == "sync":
            self.runs[run].wait_for(lambda: found not in self.runs[run].pending())


def recorded(run: str) -> dict[str, Any]:
    """The caller's own record: which interrupt each signal was addressed to, and with what."""
    book = state_folder() / f"{run}.signals.json"
    return json.loads(book.read_text()) if book.exists() else {}


def keep(path: Any, value: Any) -> None:
    """Write a caller's own record so that it survives this process."""
    with path.with_suffix(".new").open("w") as file:
        json.dump(value, file)
        file.flush()
        os.fsync(file.fileno())
    path.with_suffix(".new").replace(path)


if __name__ == "__main__":
    serve(Adapter())
