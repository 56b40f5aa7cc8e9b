"""The adapters for real: started, killed where it hurts, started again, and seen to the end.

The stub services of `tests.adapter_rig` stand for the hosted ones. What a harness must keep is judged elsewhere; here it
is the adapters that are under test: they must show the harness as it is.
"""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from conformance.install import ensure
from conformance.targets import parse
from simkit.errors import SimkitError
from tests.adapter_rig import DEADLINE_S, FULL, FULL_SIGNALS, Services, Worker, call, par, plan, seq, sleep, wait

pytestmark = pytest.mark.slow
INSTALLED = [
    pytest.param(name, marks=pytest.mark.network) for name in ("dbos==3.4.0", "dbos==2.23.0", "langgraph:sync")
]
CONTROLS = ["naive", "amnesiac"]
BUFFERED = [one for one in [*INSTALLED, "amnesiac"] if "langgraph" not in str(one)]
RESULT = {"a": "a-1", "b": "b-1", "c": "c-1", "d": "d-1", "z": "z-1", "w1": "signal-w1", "w2": "signal-w2"}

Open = Callable[[str], tuple[Worker, Services]]


@pytest.fixture
def open_target(tmp_path: Path) -> Iterator[Open]:
    """Start an adapter with services of its own; skip, with the reason, when it cannot be installed."""
    with contextlib.ExitStack() as stack:

        def start(text: str) -> tuple[Worker, Services]:
            name, _, configuration = text.partition(":")
            target = parse(name, configuration or None)
            try:
                python = ensure(target).python
            except SimkitError as error:
                if error.problem.code == "install-no-network":
                    pytest.skip(f"{text} cannot be installed: {error.problem.what}")
                raise
            services = stack.enter_context(contextlib.closing(Services()))
            worker = Worker(
                target.command("worker", python),
                target.folder,
                tmp_path / "state",
                services,
                target.environment("worker"),
                resumes=target.manifest.harness.recovery == "on_request",
            )
            stack.callback(worker.kill)
            assert worker.boot_s * 1000 < target.manifest.limits.boot_ms
            return worker, services

        yield start


def kill_at(worker: Worker, *places: tuple[str, int, str]) -> Callable[[str, int, str], int | None]:
    """A hook that kills the worker at the first arrival at each of these (operation, nth request, barrier)."""
    left = list(places)

    def hook(op: str, nth: int, barrier: str) -> int | None:
        if (op, nth, barrier) not in left:
            return None
        left.remove((op, nth, barrier))
        worker.strike()
        return -1

    return hook


def eventually(condition: Callable[[], bool]) -> None:
    """Ask until it holds; fail when it does not within the rig's deadline."""
    end = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.parametrize("target", [*INSTALLED, *CONTROLS])
def test_an_undisturbed_run(open_target: Open, target: str) -> None:
    """Every kind of operation is carried out once, in order, with keys where they belong; the result is complete."""
    worker, services = open_target(target)
    assert worker.status()["state"] == "unknown"
    worker.begin(FULL)
    status = worker.finish(FULL_SIGNALS)
    assert (status["state"], status["result"]) == ("done", RESULT)
    assert sorted(services.requests) == [("a", "r1:a"), ("b", "r1:b"), ("c", "r1:c"), ("d", None), ("z", "r1:z")]
    assert dict(services.applied)["z"] == {"c": "c-1", "w2": "signal-w2"}
    assert {op["id"] for op in status["operations"]} in ({*RESULT}, set())


@pytest.mark.parametrize("target", INSTALLED)
@pytest.mark.parametrize("place", [("a", 1, "applied"), ("b", 1, "applied"), ("c", 1, "received"), ("z", 1, "applied")])
def test_a_kill_in_the_middle(open_target: Open, target: str, place: tuple[str, int, str]) -> None:
    """After a kill inside a call that call is made again, under its key; what had finished before it is not."""
    worker, services = open_target(target)
    services.hook = kill_at(worker, place)
    worker.begin(FULL)
    status = worker.finish(FULL_SIGNALS)
    assert status["state"] == "done"
    assert set(status["result"]) == set(RESULT)
    asked = [op for op, _ in services.requests]
    assert asked.count(place[0]) == 2
    before = {"a": "", "b": "a", "c": "ab", "z": "abc"}[place[0]]
    assert all(asked.count(op) == 1 for op in before)
    assert all(services.count(op) == 1 for op in "abcz")


@pytest.mark.parametrize("target", INSTALLED)
def test_a_second_kill_during_recovery(open_target: Open, target: str) -> None:
    """A worker killed again while it recovers recovers from that too."""
    worker, services = open_target(target)
    services.hook = kill_at(worker, ("b", 1, "applied"), ("b", 2, "received"), ("c", 1, "applied"))
    worker.begin(FULL)
    assert worker.finish(FULL_SIGNALS)["result"]["b"] == "b-1"
    assert services.count("b") == services.count("c") == 1


@pytest.mark.parametrize("target", INSTALLED)
def test_a_kill_right_after_the_acknowledgements(open_target: Open, target: str) -> None:
    """What was acknowledged, start or signal, survives a kill at that very moment."""
    worker, services = open_target(target)
    tree = plan(wait("w", "go"), call("a", carries=("w",)))
    worker.begin(tree)
    worker.strike()
    worker.again()
    eventually(lambda: "ok" in worker.send("w", "go"))
    worker.strike()
    worker.again()
    assert worker.finish()["result"] == {"w": "signal-w", "a": "a-1"}
    assert services.applied == [("a", {"w": "signal-w"})]


@pytest.mark.parametrize("target", [*INSTALLED, "amnesiac"])
def test_start_again(open_target: Open, target: str) -> None:
    """A start repeated, while the run goes on and after its end, begins nothing."""
    worker, services = open_target(target)
    tree = plan(call("a"), sleep("s", 30), call("b"))
    for _ in range(3):
        worker.begin(tree)
    result = worker.finish()["result"]
    worker.begin(tree)
    assert worker.status()["result"] == result == {"a": "a-1", "b": "b-1"}
    assert len(services.requests) == 2


@pytest.mark.parametrize("target", [*INSTALLED, *CONTROLS])
def test_two_waits_of_one_name(open_target: Open, target: str) -> None:
    """Two waits of one name, side by side, take one signal each; a signal repeated with its id takes no second one."""
    worker, services = open_target(target)
    worker.begin(plan(par("p", seq("l", wait("w1", "go"), call("a")), wait("w2", "go"))))
    eventually(lambda: worker.status()["state"] == "waiting")
    assert "ok" in worker.send("w1", "go")
    if target != "naive":  # which forgets ids with all the rest
        worker.send("w1", "go")
    result = worker.finish([("w2", "go")])["result"]
    assert sorted([result["w1"], result["w2"]]) == ["signal-w1", "signal-w2"]
    assert services.count("a") == 1


@pytest.mark.parametrize("target", BUFFERED)
def test_an_early_signal_is_kept(open_target: Open, target: str) -> None:
    """A signal sent before its wait begins, in a branch that does not exist yet, is there when it does."""
    worker, _ = open_target(target)
    worker.begin(plan(sleep("s", 100), par("p", seq("q", wait("w", "go"), call("a", carries=("w",))))))
    assert "ok" in worker.send("w", "go")
    assert worker.finish()["result"] == {"w": "signal-w", "a": "a-1"}


@pytest.mark.network
def test_an_early_signal_is_refused(open_target: Open) -> None:
    """LangGraph can resume only what is interrupted: an early signal is definitely refused, a later one accepted."""
    worker, _ = open_target("langgraph:sync")
    worker.begin(plan(sleep("s", 300), wait("w", "go")))
    assert worker.send("w", "go")["error"]["kind"] == "definite"
    assert worker.finish([("w", "go")])["result"] == {"w": "signal-w"}


@pytest.mark.parametrize("target", [*INSTALLED, *CONTROLS])
def test_unknown_is_tried_again_and_rejected_is_not(open_target: Open, target: str) -> None:
    """After 503 before and after applying, and 409, the call is made again under its key; after 400 the run fails."""
    worker, services = open_target(target)
    answers = {
        ("a", 1, "received"): 503,
        ("a", 2, "applied"): 503,
        ("a", 3, "received"): 409,
        ("b", 1, "received"): 400,
    }
    services.hook = lambda op, nth, barrier: answers.get((op, nth, barrier))
    worker.begin(plan(call("a"), call("b")))
    status = worker.finish()
    assert status["state"] == "failed"
    assert "400" in status["error"]
    assert [op for op, _ in services.requests] == ["a", "a", "a", "a", "b"]
    assert services.count("a") == 1


@pytest.mark.parametrize("target", INSTALLED)
def test_a_dropped_reply_is_given_up(open_target: Open, target: str) -> None:
    """A reply that never comes ends by the call's timeout, and the call is made again."""
    worker, services = open_target(target)
    services.hook = lambda op, nth, barrier: -2 if (nth, barrier) == (1, "applied") else None
    worker.begin(plan(call("a")))
    assert worker.finish()["result"] == {"a": "a-1"}
    assert services.requests == [("a", "r1:a")] * 2


@pytest.mark.network
def test_langgraph_goes_on_from_answers_that_are_in_no_checkpoint_yet(open_target: Open) -> None:
    """Killed between saving a step's answers and its checkpoint, a run goes on; it is neither done nor stuck."""
    # `get_state` names nothing as next then, which looks like the end. The state is made by taking the checkpoint away.
    worker, services = open_target("langgraph:sync")
    worker.begin(plan(call("a"), call("b")))
    worker.finish()
    worker.strike()
    with contextlib.closing(sqlite3.connect(worker.state / "langgraph.sqlite")) as database, database:
        database.execute("DELETE FROM checkpoints WHERE checkpoint_id = (SELECT max(checkpoint_id) FROM checkpoints)")
    worker.kill()
    worker.start()
    assert worker.status()["state"] == "running"
    assert "ok" in worker.ask("resume", run="r1")
    assert worker.finish()["result"] == {"a": "a-1", "b": "b-1"}
    assert [op for op, _ in services.requests] == ["a", "b"]


@pytest.mark.network
def test_langgraph_exit_works_everything_out_again(open_target: Open) -> None:
    """In mode `exit` nothing of an invocation is kept before its end: the adapter must show finished work recomputed."""
    worker, services = open_target("langgraph:exit")
    services.hook = kill_at(worker, ("c", 1, "received"))
    worker.begin(plan(call("a", "reader"), call("b", "reader"), call("c", "reader", carries=("a",))))
    assert worker.finish()["state"] == "done"
    assert [op for op, _ in services.requests] == ["a", "b", "c", "a", "b", "c"]


@pytest.mark.network
def test_langgraph_exit_gets_acknowledged_signals_again(open_target: Open) -> None:
    """In mode `exit` the caller's own record brings back a signal whose invocation did not come to its end."""
    worker, services = open_target("langgraph:exit")
    services.hook = kill_at(worker, ("a", 1, "received"))
    worker.begin(plan(wait("w", "go"), call("a", carries=("w",))))
    assert worker.finish([("w", "go")])["result"] == {"w": "signal-w", "a": "a-2"}


def test_naive_works_everything_out_again(open_target: Open) -> None:
    """The control without memory begins again from the top, so that unkeyed answers differ."""
    worker, services = open_target("naive")
    services.hook = kill_at(worker, ("b", 1, "received"))
    worker.begin(plan(call("a", "reader"), call("b", carries=("a",))))
    assert worker.finish()["result"] == {"a": "a-2", "b": "b-2"}
    assert services.applied == [("a", {}), ("a", {}), ("b", {"a": "a-2"})]


def test_amnesiac_forgets_what_it_acknowledged(open_target: Open) -> None:
    """The control that acknowledges before it writes loses what is killed right after, and only that."""
    worker, _ = open_target("amnesiac")
    worker.begin(plan(wait("w", "go")))
    worker.strike()
    worker.again()
    assert worker.status()["state"] == "unknown"
    worker.begin(plan(wait("w", "go")))
    eventually(lambda: any(file.stat().st_size for file in worker.state.glob("*.journal")))
    eventually(lambda: worker.status()["state"] == "waiting")
    assert "ok" in worker.send("w", "go")
    worker.strike()
    worker.again()
    eventually(lambda: worker.status()["state"] == "waiting")
    assert worker.finish([("w", "go")])["result"] == {"w": "signal-w"}


@pytest.mark.repository
def test_the_documented_adapter_works(tmp_path: Path) -> None:
    """The adapter shown in docs/adapters.md is one: it runs, is killed, recovers, and repeats nothing that finished."""
    page = (Path(__file__).parents[2] / "docs" / "adapters.md").read_text(encoding="utf-8")
    for name, language in (("adapter.py", "python"), ("adapter.toml", "toml")):
        block = re.search(rf"```{language}\n(.*?)```", page, re.DOTALL)
        assert block is not None
        (tmp_path / name).write_text(block[1], encoding="utf-8")
    target = parse(str(tmp_path))
    with contextlib.closing(Services()) as services:
        worker = Worker(target.command("worker"), tmp_path, tmp_path / "state", services, target.environment("worker"))
        services.hook = kill_at(worker, ("b", 1, "applied"))
        try:
            worker.begin(plan(call("a", "reader"), call("b", carries=("a",)), call("c")))
            assert worker.finish()["result"] == {"a": "a-1", "b": "b-1", "c": "c-1"}
        finally:
            worker.kill()
    assert [op for op, _ in services.requests] == ["a", "b", "b", "c"]


def test_nothing_is_left_behind(open_target: Open) -> None:
    """An adapter whose kit is gone ends by itself: its standard input closes."""
    worker, _ = open_target("naive")
    worker.begin(plan(wait("w", "go")))
    worker.process.stdin.close()
    assert worker.process.wait(timeout=10) == 0
    with pytest.raises(ProcessLookupError):
        os.killpg(worker.process.pid, 0)
