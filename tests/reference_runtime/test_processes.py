"""Real processes, really killed: `serve` and `worker` die by SIGKILL in the middle of a plan, and the plan is finished."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from reference_runtime import Client, Patience, Refusal, Unreachable
from reference_runtime.model import Json
from tests.runtime_rig import MS, call, par, plan, sleep, states, until, wait

pytestmark = pytest.mark.slow


@contextlib.contextmanager
def _process(*command: str, stderr: int | None = None) -> Iterator[subprocess.Popen[bytes]]:
    env = {**os.environ, "PYTHONWARNINGS": "error"}
    with subprocess.Popen(
        [sys.executable, "-m", "reference_runtime", *command], env=env, stdout=subprocess.PIPE, stderr=stderr
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@contextlib.contextmanager
def _serve(path: Path, port: int = 0) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    with _process("serve", "--store", str(path), "--listen", f"127.0.0.1:{port}", "--lease-ns", str(200 * MS)) as one:
        assert one.stdout is not None
        yield one, int(json.loads(one.stdout.readline())["listening"].rpartition(":")[2])


def _work(port: int, services: int) -> contextlib.AbstractContextManager[subprocess.Popen[bytes]]:
    services_url = f"lines://127.0.0.1:{services}"
    return _process("worker", "--server", f"127.0.0.1:{port}", "--services", services_url)


class Outside:
    """Line services that remember effects by key, and tell when an operation is first applied, before they answer."""

    def __init__(self) -> None:
        self.applied: list[str] = []
        self.saved: dict[str, str] = {}
        self.reached: dict[str, trio.Event] = {}

    async def serve(self, stream: trio.SocketStream) -> None:
        request = json.loads(await stream.receive_some())
        answer = self.answer(request)
        event = self.reached.get(request["op"])
        if event is not None and not event.is_set():
            event.set()
            await trio.sleep_forever()  # the caller is about to be killed
        await stream.send_all(json.dumps(answer).encode() + b"\n")

    def answer(self, request: Json) -> Json:
        reference = f"{request['run']}:{request['op']}"
        if request["lookup"]:
            known = self.saved.get(reference)
            return {"status": 200, "body": {"nonce": known}} if known else {"status": 404, "body": {}}
        key = request["key"] or reference
        if request["key"] is None or key not in self.saved:
            self.applied.append(request["op"])
            self.saved[key] = f"{request['op']}#{len(self.applied)}"
        return {"status": 200, "body": {"nonce": self.saved[key]}}


@pytest.mark.parametrize("service", ["ledger", "registry", "mailer"])
def test_a_worker_killed_between_effect_and_answer(tmp_path, service):
    """SIGKILL after the effect: the next worker gets the saved answer, finds the effect, or leaves it unresolved."""
    outside = Outside()
    outside.reached["b"] = trio.Event()

    async def main():
        async with trio.open_nursery() as nursery:
            (listener,) = await nursery.start(functools.partial(trio.serve_tcp, host="127.0.0.1"), outside.serve, 0)
            services = listener.socket.getsockname()[1]
            with _serve(tmp_path / "s.db") as (_, port):
                async with Client("127.0.0.1", port) as client:
                    await client.submit("t", plan(call("a"), call("b", service), call("c", carries=("a",))))
                    with _work(port, services) as worker:
                        await outside.reached["b"].wait()
                        worker.send_signal(signal.SIGKILL)
                        assert worker.wait() == -signal.SIGKILL
                    with _work(port, services):
                        status = await until(client, "t", "done", "blocked")
            nursery.cancel_scope.cancel()
            return status

    status = trio.run(main)
    assert outside.applied.count("b") == 1
    b = {"ledger": "succeeded", "registry": "reconciled", "mailer": "unresolved"}[service]
    c = "planned" if service == "mailer" else "succeeded"
    assert states(status) == {"a": "succeeded", "b": b, "c": c}


def test_a_server_killed_while_a_plan_waits(tmp_path):
    """SIGKILL of the server with a buffered signal, an open wait and a running timer: nothing is lost."""
    outside = Outside()

    async def main():
        async with trio.open_nursery() as nursery:
            (listener,) = await nursery.start(functools.partial(trio.serve_tcp, host="127.0.0.1"), outside.serve, 0)
            with _serve(tmp_path / "s.db") as (server, port):
                async with Client("127.0.0.1", port) as client:
                    branches = par(call("a", "mailer"), wait("w", "go"), sleep("s", 300 * MS))
                    await client.submit("t", plan(branches, wait("v", "late"), call("z", carries=("a", "w", "v"))))
                    await client.signal("t", "1", "late", {"nonce": "n-v"})
                    with _work(port, listener.socket.getsockname()[1]):
                        await until(client, "t", "waiting")
                        server.send_signal(signal.SIGKILL)
                        assert server.wait() == -signal.SIGKILL
                        with _serve(tmp_path / "s.db", port):
                            await client.signal("t", "2", "go", {"nonce": "n-w"})
                            status = await until(client, "t", "done", "blocked")
            nursery.cancel_scope.cancel()
            return status

    status = trio.run(main)
    assert status["result"] == {"a": "a#1", "w": "n-w", "v": "n-v", "z": "z#2"}
    assert outside.applied == ["a", "z"]


def test_a_server_stops_when_told(tmp_path):
    """SIGTERM ends a server with exit code 0, and its store can be opened at once."""
    for _ in range(2):
        with _serve(tmp_path / "s.db") as (server, _):
            server.send_signal(signal.SIGTERM)
            assert server.wait() == 0


def test_a_worker_stops_when_told(tmp_path):
    """SIGTERM ends a worker with exit code 0, after it has handed back what it holds; its log tells each event on a line."""
    with _serve(tmp_path / "s.db") as (_, port):
        command = ("worker", "--server", f"127.0.0.1:{port}", "--services", "lines://127.0.0.1:1", "--log", "info")
        with _process(*command, stderr=subprocess.PIPE) as worker:
            assert worker.stderr is not None
            said = [json.loads(worker.stderr.readline())]
            worker.send_signal(signal.SIGTERM)
            said += [json.loads(line) for line in worker.stderr]
            assert worker.wait() == 0
    assert [one["event"] for one in said] == ["ready", "stopping", "released"]
    assert {one["execution"] for one in said} == {"worker#1"}


def test_a_server_without_descriptors_says_so(tmp_path):
    """As many connections as it has descriptors for; one more is refused in words, and what it logs are lines of JSON."""
    words = [sys.executable, "-m", "reference_runtime", "serve", "--log", "info", "--listen", "127.0.0.1:0", "--store"]
    command = f"ulimit -n 120; exec {shlex.join([*words, str(tmp_path / 's.db')])}"
    with subprocess.Popen(["sh", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as server:
        assert server.stdout is not None
        assert server.stderr is not None
        port = int(json.loads(server.stdout.readline())["listening"].rpartition(":")[2])

        async def main():
            async with contextlib.AsyncExitStack() as stack:
                for _ in range(200):
                    await stack.enter_async_context(await trio.open_tcp_stream("127.0.0.1", port))
                async with Client("127.0.0.1", port, patience=Patience(total_ns=500 * MS)) as client:
                    with pytest.raises((Refusal, Unreachable), match="too-many-connections: 56 connections are open"):
                        await client.status("t")
            async with Client("127.0.0.1", port) as client:
                assert (await client.status("t"))["state"] == "unknown"

        trio.run(main)
        server.send_signal(signal.SIGTERM)
        assert server.wait() == 0
        said = [json.loads(line)["event"] for line in server.stderr]
    assert said[:3] == ["fewer-connections", "up", "refusing-connections"]
