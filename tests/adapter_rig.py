"""A small kit for the adapters' own tests: a stub of the hosted services, and a worker to ask, kill and start again."""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import queue
import signal
import subprocess
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import conformance

HELPER = Path(conformance.__file__).parent / "helper"
DEADLINE_S = 30


class Services:
    """Hosted services in a thread: what each operation applied, in order, and a hook at every barrier.

    `hook(op, nth, barrier)` may return a status to answer with instead, -1 to close without an answer (it has killed the
    worker), or -2 to keep the connection open and never answer.
    """

    def __init__(self) -> None:
        self.requests: list[tuple[str, str | None]] = []  # (operation, key)
        self.applied: list[tuple[str, dict]] = []  # (operation, carried nonces)
        self.saved: dict[str, dict] = {}
        self.hook: Callable[[str, int, str], int | None] = lambda op, nth, barrier: None
        self.lock = threading.Lock()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()
        self.address = f"http://127.0.0.1:{self.server.server_port}"

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def _handler(self) -> type:
        services = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                self._answer(*services.execute(body, self.headers["idempotency-key"]))

            def do_GET(self):
                reference = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)["reference"][0]
                saved = services.saved.get(reference)
                self._answer(*(200, saved) if saved else (404, {"error": "missing"}))

            def _answer(self, status, body):
                if status == -2:
                    self.rfile.read(1)  # until the caller gives up
                if status < 0:
                    self.close_connection = True
                    return
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    self.send_response(status)
                    self.end_headers()
                    self.wfile.write(json.dumps(body).encode())

        return Handler

    def execute(self, body: dict, key: str | None) -> tuple[int, dict]:
        op = body["op"]
        with self.lock:
            self.requests.append((op, key))
            nth = sum(1 for name, _ in self.requests if name == op)
        if status := self.hook(op, nth, "received"):
            return status, {"error": "scripted"}
        with self.lock:
            answer = self.saved.get(key) if key else None
            if answer is None:
                answer = {"nonce": f"{op}-{nth}"}
                self.applied.append((op, body["carries"]))
                self.saved[key or f"{body['run']}:{op}"] = answer
        if status := self.hook(op, nth, "applied"):
            return status, {"error": "scripted"}
        return 200, answer

    def count(self, op: str) -> int:
        return sum(1 for name, _ in self.applied if name == op)


class Worker:
    """One adapter process at a time, on one state folder."""

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        state: Path,
        services: Services,
        env: Mapping[str, str],
        *,
        resumes: bool = False,
    ) -> None:
        self.command, self.folder, self.state, self.services, self.env = command, folder, state, services, env
        self.resumes = resumes
        self.process: subprocess.Popen | None = None
        self.boot_s = 0.0
        self.start()

    def start(self) -> None:
        env = {**os.environ, **self.env, "PYTHONPATH": str(HELPER), "SIMKIT_STATE": str(self.state)}
        env |= {"SIMKIT_SERVICES": self.services.address, "SIMKIT_CALL_TIMEOUT_MS": "1000"}
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        self.state.mkdir(exist_ok=True)
        self.log = (self.state.parent / f"{self.state.name}.log").open("ab")
        began = time.monotonic()
        self.process = subprocess.Popen(
            self.command,
            cwd=self.folder,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            start_new_session=True,
        )
        self.answers: queue.Queue[bytes] = queue.Queue()
        self.reader = threading.Thread(target=self._read, args=(self.process.stdout,), daemon=True)
        self.reader.start()
        self.seq = 0
        self.hello = self.ask("hello", protocol=1)["ok"]
        self.boot_s = time.monotonic() - began

    def _read(self, stream: Any) -> None:
        for line in stream:
            self.answers.put(line)
        self.answers.put(b"")

    def ask(self, verb: str, **fields: Any) -> dict:
        """The answer to one request; raises EOFError when the worker is dead."""
        self.seq += 1
        line = json.dumps({"seq": self.seq, "verb": verb, **fields}).encode() + b"\n"
        try:
            self.process.stdin.write(line)
            self.process.stdin.flush()
        except BrokenPipeError as error:
            raise EOFError from error
        answer = self.answers.get(timeout=DEADLINE_S)
        if not answer:
            raise EOFError(f"worker ended; its log: {Path(self.log.name).read_text()[-3000:]}")
        data = json.loads(answer)
        assert data["seq"] == self.seq, data
        return data

    def status(self, run: str = "r1") -> dict:
        return self.ask("status", run=run)["ok"]

    def strike(self) -> None:
        """SIGKILL to the whole group, as from outside; `again` cleans up."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def kill(self) -> None:
        self.strike()
        self.reader.join()
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.stdout.close()
        self.log.close()

    def again(self) -> None:
        """A new process on the old folder, asked to resume where that is the caller's part."""
        self.kill()
        self.start()
        if self.resumes:
            assert "ok" in self.ask("resume", run="r1")

    # -- a client that never gives up --------------------------------------------------------------------------------

    def begin(self, plan: dict) -> None:
        """Ask start until it is acknowledged."""
        while True:
            try:
                assert "ok" in self.ask("start", run="r1", plan=plan, key="r1")
            except EOFError:
                self.kill()
                self.start()
            else:
                return

    def send(self, wait: str, name: str) -> dict:
        return self.ask("signal", run="r1", name=name, payload={"nonce": f"signal-{wait}"}, id=f"r1:{wait}")

    def finish(self, signals: Iterable[tuple[str, str]] = ()) -> dict:
        """Watch the run to its end, restarting what dies, sending each (wait, signal) when the run waits for it."""
        left, end = list(signals), time.monotonic() + DEADLINE_S
        status: dict = {}
        while time.monotonic() < end:
            try:
                status = self.status()
                if status["state"] in {"done", "failed"}:
                    return status
                for wait, name in left:
                    if status["state"] == "waiting" and status["on"] == name:
                        if "ok" in self.send(wait, name):
                            left.remove((wait, name))
                        break
            except EOFError:
                self.again()
            time.sleep(0.01)
        raise AssertionError(f"no end: {status}; signals left: {left}; log: {Path(self.log.name).read_text()[-3000:]}")


def call(id: str, service: str = "ledger", carries: tuple[str, ...] = (), **params: Any) -> dict:
    return {"op": "call", "id": id, "service": service, "params": params, "carries": list(carries), "script": []}


def seq(id: str, *children: dict) -> dict:
    return {"op": "seq", "id": id, "children": list(children)}


def par(id: str, *children: dict) -> dict:
    return {"op": "par", "id": id, "children": list(children)}


def wait(id: str, signal: str) -> dict:
    return {"op": "wait", "id": id, "signal": signal}


def sleep(id: str, ms: int) -> dict:
    return {"op": "sleep", "id": id, "ns": ms * 1_000_000}


def plan(*children: dict) -> dict:
    return {"version": 1, "root": seq("root", *children)}


#: Every kind of operation; b carries a's answer, z those of both branches.
FULL = plan(
    call("a"),
    par(
        "p",
        seq("left", call("b", carries=("a",)), wait("w1", "go"), call("c", carries=("w1",))),
        seq("right", sleep("s", 50), wait("w2", "approve")),
        call("d", "mailer"),
    ),
    call("z", carries=("c", "w2")),
)
FULL_SIGNALS = (("w1", "go"), ("w2", "approve"))
