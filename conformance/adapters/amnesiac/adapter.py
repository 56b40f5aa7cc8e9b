"""A control that must fail: a file journal with one fault. It acknowledges a start or a signal before it writes it down.

The writing follows a moment later, "to save a disk access", and the work after it. All else is in order: every answer is
on disk before the next step begins, recovery goes on where the journal ends, timers keep their deadline, keys stay the same.
"""

from __future__ import annotations

import json
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from simkit_adapter import Busy, Json, Refused, Rejected, Unknown, call, serve, state_folder

if TYPE_CHECKING:
    from collections.abc import Callable

TRIES = 20
POLL_S = 0.01
LATER_S = 0.15


class Run:
    """One run: its plan, and its journal in memory and on disk."""

    def __init__(self, run: str) -> None:
        self.run, self.lock = run, threading.RLock()
        self.journal = state_folder() / f"{run}.journal"
        self.answers: dict[str, str] = {}  # leaf → nonce
        self.deadlines: dict[str, float] = {}  # sleep → when it ends
        self.signals: dict[str, tuple[str, str]] = {}  # command id → (name, nonce)
        self.waiting: list[Json] = []
        self.plan: Json = {}
        self.status: Json = {"state": "running"}
        self.journal.touch()
        for line in self.journal.read_text().splitlines():
            self.apply(json.loads(line))

    def apply(self, entry: Json) -> None:
        for field, value in entry.items():
            getattr(self, field).update(value)

    def record(self, **entry: Json) -> None:
        """Write one entry and wait until it is on disk; then let it count."""
        with self.lock, self.journal.open("a") as file:
            file.write(json.dumps(entry) + "\n")
            file.flush()
            os.fsync(file.fileno())
            self.apply(entry)

    def record_later(self, then: Callable[[], None] | None = None, **entry: Json) -> None:
        """The fault: what calls this says yes before the entry is on disk."""

        def write() -> None:
            self.record(**entry)
            if then is not None:
                then()

        threading.Timer(LATER_S, write).start()

    def go(self) -> None:
        threading.Thread(target=self.main, daemon=True).start()

    def main(self) -> None:
        try:
            self.carry_out(self.plan["root"])
            self.status = {"state": "done", "result": self.answers}
        except (Unknown, Rejected) as error:
            self.status = {"state": "failed", "error": str(error)}

    def carry_out(self, op: Json) -> None:
        if op["op"] == "seq":
            for child in op["children"]:
                self.carry_out(child)
        elif op["op"] == "par":
            with ThreadPoolExecutor(len(op["children"]) or 1) as pool:
                list(pool.map(self.carry_out, op["children"]))
        elif op["op"] == "sleep":
            if op["id"] not in self.deadlines:
                self.record(deadlines={op["id"]: time.time() + op["ns"] / 1e9})
            time.sleep(max(0.0, self.deadlines[op["id"]] - time.time()))
        elif op["id"] not in self.answers and op["op"] == "call":
            self.record(answers={op["id"]: self.insist(op)})
        elif op["id"] not in self.answers:
            self.waiting.append(op)
            while not self.take(op):
                time.sleep(POLL_S)
            self.waiting.remove(op)

    def insist(self, op: Json) -> str:
        for _ in range(TRIES):
            try:
                return call(op, self.run, self.answers)
            except (Unknown, Busy):
                time.sleep(0.1)
        raise Unknown(f"no answer to {op['id']} in {TRIES} tries")

    def take(self, op: Json) -> bool:
        with self.lock:
            for name, nonce in self.signals.values():
                if name == op["signal"] and nonce not in self.answers.values():
                    self.record(answers={op["id"]: nonce})
                    return True
        return False


class Adapter:
    def __init__(self) -> None:
        found = [Run(file.stem) for file in state_folder().glob("*.journal")]
        self.runs = {one.run: one for one in found if one.plan}
        for one in self.runs.values():
            one.go()

    def start(self, run: str, plan: Json, key: str) -> None:
        if run not in self.runs:
            self.runs[run] = Run(run)
            self.runs[run].record_later(self.runs[run].go, plan=plan)

    def status(self, run: str) -> Json:
        if run not in self.runs:
            return {"state": "unknown"}
        one = self.runs[run]
        if one.status["state"] == "running" and one.waiting:
            return {"state": "waiting", "on": one.waiting[0]["signal"]}
        return one.status

    def signal(self, run: str, name: str, payload: Json, id: str) -> None:
        if run not in self.runs:
            raise Refused(f"no run {run}")
        self.runs[run].record_later(signals={id: (name, payload["nonce"])})


if __name__ == "__main__":
    serve(Adapter())
