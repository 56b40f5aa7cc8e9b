"""The adapter as real processes: engine and worker are killed in turn, and the kit's questions get honest answers."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import conformance
from conformance.manifest import load
from tests import adapter_rig as rig

FOLDER = Path(conformance.__file__).parent / "adapters" / "reference"


@contextlib.contextmanager
def _engine(state: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    env = {**os.environ, "PYTHONPATH": str(rig.HELPER), "SIMKIT_STATE": str(state), "SIMKIT_ENGINE_PORT": str(port)}
    with subprocess.Popen([sys.executable, "adapter.py", "engine"], cwd=FOLDER, env=env) as engine:
        try:
            yield engine
        finally:
            engine.kill()


def test_its_manifest_is_whole():
    """The manifest loads, starts the engine first, and claims every obligation with a source that exists."""
    manifest = load(FOLDER / "adapter.toml")
    assert manifest.launch_order() == ("engine", "worker")
    for claim in manifest.claims_of("default").values():
        assert (Path(conformance.__file__).parent.parent / claim.source).is_file()


@pytest.mark.slow
@pytest.mark.parametrize("configuration", ["default", "replay"])
def test_engine_and_worker_die_in_turn(tmp_path, configuration):
    """A worker dies after an effect, an engine under an open wait; the plan ends as if nothing had happened."""
    settings = dict(load(FOLDER / "adapter.toml").configurations[configuration].env)
    state = tmp_path / "state"
    state.mkdir()
    port = _free_port()
    with contextlib.closing(rig.Services()) as services, _engine(state, port) as engine:
        command = [sys.executable, "adapter.py", "worker"]
        worker = rig.Worker(command, FOLDER, state, services, {**settings, "SIMKIT_ENGINE_PORT": str(port)})
        try:
            _die_after_effect(worker, services)
            _until_waiting(worker)
            engine.kill()
            engine.wait()
            assert worker.ask("status", run="r1")["error"]["kind"] == "indefinite"
            with _engine(state, port):
                _wake(worker)
                status = worker.finish()
        finally:
            worker.kill()
    assert status["result"] == {"a": "a-1", "b": "b-1", "w": "signal-w", "c": "c-1"}
    assert {one["id"]: one["state"] for one in status["operations"]}["b"] == "reconciled"
    assert [op for op, _ in services.applied] == ["a", "b", "c"]


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _die_after_effect(worker: rig.Worker, services: rig.Services) -> None:
    """Kill the worker when `b` has been applied and not answered, and start the next one."""

    def hook(op: str, nth: int, barrier: str) -> int | None:
        if (op, nth, barrier) != ("b", 1, "applied"):
            return None
        worker.strike()
        return -1

    services.hook = hook
    calls = rig.call("a"), rig.call("b", "registry", ("a",)), rig.wait("w", "go"), rig.call("c", "reader", ("w",))
    assert "ok" in worker.ask("start", run="r1", plan=rig.plan(*calls), key="r1")
    with contextlib.suppress(EOFError):
        _until_waiting(worker)
        raise AssertionError("the worker was not killed")
    worker.again()


def _until_waiting(worker: rig.Worker) -> None:
    for _ in range(2000):
        if worker.status()["state"] == "waiting":
            return
        time.sleep(0.01)
    raise AssertionError("the plan never waited")


def _wake(worker: rig.Worker) -> None:
    """Signal until it is acknowledged: while the engine comes up, nobody can tell. Then misuse the id."""
    for _ in range(10):
        if "ok" in (answer := worker.send("w", "go")):
            break
        assert answer["error"]["kind"] == "indefinite"
    misuse = worker.ask("signal", run="r1", name="go", payload={"nonce": "other"}, id="r1:w")
    assert misuse["error"]["kind"] == "definite"
