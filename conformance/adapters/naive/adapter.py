"""A control that must fail: a plain program that remembers what it was asked to do and nothing of how far it got.

After a restart it begins every run again from the top. It is what people write first, and with keyed receivers it even
looks right, until two runs of one step answer differently.
"""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from simkit_adapter import Busy, Json, Refused, Rejected, Unknown, call, serve, state_folder

TRIES = 20
POLL_S = 0.01


class Run:
    """One run, wholly in memory."""

    def __init__(self, run: str, plan: Json) -> None:
        self.run = run
        self.answers: dict[str, str] = {}
        self.waiting: list[Json] = []  # waits that have begun, oldest first
        self.signals: dict[str, tuple[str, str]] = {}  # command id → (name, nonce)
        self.status: Json = {"state": "running"}
        threading.Thread(target=self.main, args=(plan["root"],), daemon=True).start()

    def main(self, root: Json) -> None:
        try:
            self.carry_out(root)
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
            time.sleep(op["ns"] / 1e9)
        elif op["op"] == "call":
            self.answers[op["id"]] = self.insist(op)
        else:
            self.waiting.append(op)
            while op["id"] not in self.answers:
                self.take(op)
                time.sleep(POLL_S)

    def insist(self, op: Json) -> str:
        for _ in range(TRIES):
            try:
                return call(op, self.run, self.answers)
            except (Unknown, Busy):
                time.sleep(0.1)
        raise Unknown(f"no answer to {op['id']} in {TRIES} tries")

    def take(self, op: Json) -> None:
        for command, (name, nonce) in list(self.signals.items()):
            if name == op["signal"] and self.signals.pop(command, None):
                self.waiting.remove(op)
                self.answers[op["id"]] = nonce
                return


class Adapter:
    def __init__(self) -> None:
        self.runs = {file.stem: Run(file.stem, json.loads(file.read_text())) for file in state_folder().glob("*.json")}

    def start(self, run: str, plan: Json, key: str) -> None:
        if run not in self.runs:
            (state_folder() / f"{run}.json").write_text(json.dumps(plan))
            self.runs[run] = Run(run, plan)

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
        self.runs[run].signals[id] = (name, payload["nonce"])


if __name__ == "__main__":
    serve(Adapter())
