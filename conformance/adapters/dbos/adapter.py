"""DBOS on SQLite: a plan is one workflow, its calls are steps, the branches of a `par` are child workflows.

- run id = workflow id, so that a start repeated finds the workflow that is there;
- a branch gets the id of its parent and its own name: the same on every recovery, whatever finishes first;
- a wait takes the result of a mailbox workflow that is started with the run: DBOS keeps messages for workflows that
  exist, so a signal may come before the plan gets there; an event tells that a wait has begun;
- a signal carries its command id as idempotency key;
- recovery is DBOS's own, at `DBOS.launch()`.
"""

from __future__ import annotations

import json
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from dbos import DBOS, SetWorkflowID
from simkit_adapter import Busy, Json, Refused, Unknown, call, leaves, serve, state_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

STATES = {"SUCCESS": "done", "ERROR": "failed", "CANCELLED": "cancelled", "MAX_RECOVERY_ATTEMPTS_EXCEEDED": "blocked"}
WAIT_S_MAX = 24 * 3600
RETRIES = {
    "retries_allowed": True,
    "interval_seconds": 0.1,
    "backoff_rate": 1.5,
    "max_attempts": 12,
    "should_retry": lambda error: isinstance(error, (Unknown, Busy)),
}
CONFIG: dict[str, Any] = {
    "name": "simkit",
    "system_database_url": f"sqlite:///{state_folder() / 'dbos.sqlite'}",
    "log_level": "WARNING",
    "notification_listener_polling_interval_sec": 0.02,  # "lower values can speed up test execution"
}
if int(version("dbos").split(".")[0]) < 3:
    CONFIG["run_admin_server"] = False  # later releases have none

DBOS(config=CONFIG)


@DBOS.workflow()  # type: ignore[untyped-decorator]  # its types are in another environment
def interpret(run: str, op: Json, answers: Json) -> Json:
    """Carry out a part of the plan; return the answers known at its end."""
    return INTERPRETERS[op["op"]](run, op, answers)


def seq(run: str, op: Json, answers: Json) -> Json:
    for child in op["children"]:
        answers = INTERPRETERS[child["op"]](run, child, answers)
    return answers


def par(run: str, op: Json, answers: Json) -> Json:
    branches = []
    for child in op["children"]:
        with SetWorkflowID(branch_id(DBOS.workflow_id, child)):
            branches.append(DBOS.start_workflow(interpret, run, child, answers))
    for branch in branches:
        answers = {**answers, **branch.get_result(polling_interval_sec=0.02)}
    return answers


def call_step(run: str, op: Json, answers: Json) -> Json:
    nonce = DBOS.run_step({"name": op["id"], **RETRIES}, call, op, run, answers)
    return {**answers, op["id"]: nonce}


def wait(run: str, op: Json, answers: Json) -> Json:
    DBOS.set_event(op["id"], "waiting")
    nonce = DBOS.retrieve_workflow(mailbox_id(run, op)).get_result(polling_interval_sec=0.02)
    return {**answers, op["id"]: nonce}


@DBOS.workflow()  # type: ignore[untyped-decorator]  # its types are in another environment
def mailbox(signal: str) -> str:
    """Take one signal for one wait."""
    return str(DBOS.recv(signal, timeout_seconds=WAIT_S_MAX)["nonce"])


def sleep(_run: str, op: Json, answers: Json) -> Json:
    DBOS.sleep(op["ns"] / 1e9)
    return answers


INTERPRETERS = {"seq": seq, "par": par, "call": call_step, "wait": wait, "sleep": sleep}


def branch_id(workflow: str, child: Json) -> str:
    return f"{workflow}.{child['id']}"


def mailbox_id(run: str, op: Json) -> str:
    return f"{run}.{op['id']}.{op['signal']}"


def workflows(workflow: str, op: Json) -> Iterator[str]:
    """The workflow that carries out `op` and those of the branches in it."""
    yield workflow
    for child in op.get("children", ()):
        inner = branch_id(workflow, child) if op["op"] == "par" else workflow
        yield from workflows(inner, child)


class Adapter:
    def hello(self) -> Json:
        return {"name": "dbos", "version": version("dbos")}

    def start(self, run: str, plan: Json, key: str) -> None:
        for op in leaves(plan):
            if op["op"] == "wait":
                with SetWorkflowID(mailbox_id(run, op)):
                    DBOS.start_workflow(mailbox, op["signal"])
        with SetWorkflowID(run):
            DBOS.start_workflow(interpret, run, plan["root"], {})

    def status(self, run: str) -> Json:
        found = DBOS.get_workflow_status(run)
        if found is None:
            return {"state": "unknown"}
        accepted, waiting = progress(run, found.input["args"][1])
        state = STATES.get(found.status, "waiting" if waiting else "running")
        return {
            "state": state,
            "on": waiting[0]["signal"] if state == "waiting" else None,
            "result": found.output if state == "done" else None,
            "error": repr(found.error) if state == "failed" else found.status if state == "blocked" else None,
            "operations": [{"id": op, "state": "succeeded", "nonce": nonce} for op, nonce in accepted.items()],
        }

    def signal(self, run: str, name: str, payload: Json, id: str) -> None:
        found = DBOS.get_workflow_status(run)
        if found is None:
            raise Refused(f"no workflow {run}")
        op = addressed(run, found.input["args"][1], name, id)
        DBOS.send(mailbox_id(run, op), payload, topic=name, idempotency_key=f"{run}:{id}")


def progress(run: str, root: Json) -> tuple[Json, list[Json]]:
    """The nonces DBOS has recorded, by leaf, and the waits that are open."""
    recorded, begun = {}, set()
    for workflow in dict.fromkeys(workflows(run, root)):
        for step in DBOS.list_workflow_steps(workflow):
            recorded[step["child_workflow_id"] or step["function_name"]] = step["output"]
        begun |= set(DBOS.get_all_events(workflow))
    names = {op["id"]: mailbox_id(run, op) if op["op"] == "wait" else op["id"] for op in leaves(root)}
    accepted = {op: recorded[name] for op, name in names.items() if recorded.get(name)}
    return accepted, [op for op in leaves(root) if op["id"] in begun and op["id"] not in accepted]


def addressed(run: str, root: Json, name: str, command: str) -> Json:
    """The wait a signal is for: of several with one name an open one first. Its sender remembers which."""
    book = state_folder() / f"{run}.signals.json"
    sent = json.loads(book.read_text()) if book.exists() else {}
    waits = progress(run, root)[1] + [op for op in leaves(root) if op["op"] == "wait"]
    if command not in sent:
        free = [op["id"] for op in waits if op["signal"] == name and op["id"] not in sent.values()]
        if not free:
            raise Refused(f"{run} waits for no further {name!r}")
        sent[command] = free[0]
        book.with_suffix(".new").write_text(json.dumps(sent))
        book.with_suffix(".new").replace(book)
    return next(op for op in waits if op["id"] == sent[command])


if __name__ == "__main__":
    DBOS.launch()
    serve(Adapter())
