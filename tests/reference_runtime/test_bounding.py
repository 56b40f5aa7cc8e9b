"""A workflow that computes for ever: it alone is blocked, with its line, and its worker goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
import trio

from reference_runtime import Client, Patience
from reference_runtime.bounding import AtMost
from reference_runtime.commands import Returned, TooLong
from reference_runtime.replay import Replay
from tests.replay_rig import CTX, ok
from tests.runtime_rig import DEADLINE_S, MS, until

FLOWS = """
from reference_runtime.workflow import workflow

@workflow("spins")
async def spins(ctx, _):
    await ctx.uuid()
    while True:
        try:
            pass
        except Exception:
            continue

@workflow("goes")
async def goes(ctx, _):
    return [await ctx.uuid() is not None, await ctx.wait("go") is not None]
"""


def spin(catches: int) -> None:
    """Compute for ever, and catch so many interruptions."""
    try:
        while True:
            pass
    except TooLong:
        if catches == 0:
            raise
        spin(catches - 1)


def test_who_takes_too_long_is_interrupted_where_it_is():
    """Also who catches that the first time; and nothing is interrupted afterwards."""
    before = signal.getsignal(signal.SIGALRM)
    said = rf"more than 0.05 s from one await to the next, and was at {__file__}:\d+; a workflow only"
    with pytest.raises(TooLong, match=said), AtMost(0.05):
        spin(catches=1)
    assert signal.getsignal(signal.SIGALRM) == before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_who_is_in_time_is_left_alone():
    """What it raises is its own, and the timer is off when it is over."""
    with pytest.raises(ZeroDivisionError), AtMost(60):
        divmod(1, 0)
    with AtMost(60):
        assert signal.getitimer(signal.ITIMER_REAL)[0] > 0
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def begun(function: Callable[[], Coroutine[Any, Any, Any]]) -> Replay:
    return Replay(function, bound=AtMost(0.1))


def test_what_it_makes_of_the_interruption_counts_for_nothing():
    """The pace of a machine decides neither what is asked for nor how a run ends."""

    async def swallows() -> None:
        try:
            spin(catches=0)
        except BaseException:  # noqa: BLE001 - that this is no way out is what is shown
            await CTX.call("ledger", {"amount": 0})

    async def turns() -> None:
        try:
            spin(catches=0)
        except BaseException as error:
            raise ValueError from error

    for function in (swallows, turns):
        replay = begun(function)
        assert (replay.end, replay.fresh) == (None, [])
        assert str(replay.check()).startswith("refused: it took more than 0.1 s")


def test_a_function_that_never_comes_to_its_first_await_is_bounded():
    """Also where it is no async function at all, and computes as it is called."""

    def calls() -> Any:
        spin(catches=0)

    assert str(begun(calls).check()).startswith("refused: it took more than 0.1 s")


def test_stretches_of_computing_are_not_summed_up():
    """A rerun does all of them at once, and each is as long as it was."""
    stretches = 5

    async def agent() -> None:
        for _ in range(stretches):
            end = time.monotonic() + 0.03
            while time.monotonic() < end:
                pass
            await CTX.uuid()

    first = begun(agent)
    commands = []
    for _ in range(stretches):
        commands += first.fresh
        first.recorded()
        first.deliver(ok(commands[-1].id))
    again = Replay(agent, commands, bound=AtMost(0.1))
    for command in commands:
        again.deliver(ok(command.id))
    assert (again.check(), again.end) == (None, Returned(None))


def test_one_that_does_not_let_go_is_let_go():
    """What it does as it is closed is bounded as well."""

    async def agent() -> None:
        try:
            await CTX.uuid()
        finally:
            spin(catches=0)

    replay = begun(agent)
    replay.close()
    assert replay.trouble is None


def test_a_process_that_was_stopped_is_not_held_against_the_code():
    """One alarm that comes as it goes on is not enough."""
    bound = AtMost(0.4)
    with bound:
        os.kill(os.getpid(), signal.SIGALRM)


@pytest.mark.slow
def test_one_that_spins_is_blocked_and_its_worker_goes_on(tmp_path):
    """The neighbour on the same worker ends, and SIGTERM is obeyed: real processes."""
    (tmp_path / "flows.py").write_text(FLOWS)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path.cwd()), str(tmp_path)])}
    start = [sys.executable, "-m", "reference_runtime"]
    serve = [*start, "serve", "--store", str(tmp_path / "s.db"), "--listen", "127.0.0.1:0"]
    with subprocess.Popen(serve, env=env, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        port = int(json.loads(server.stdout.readline())["listening"].rpartition(":")[2])
        at = f"127.0.0.1:{port}"
        work = ["worker", "--server", at, "--services", "lines://127.0.0.1:1", "--workflows", "flows"]
        with subprocess.Popen([*start, *work, "--turn-ns", str(300 * MS)], env=env) as worker:

            async def main():
                async with Client("127.0.0.1", port, patience=Patience(total_ns=DEADLINE_S * 1000 * MS)) as client:
                    await client.submit("n", {"version": 1, "workflow": "goes"})
                    await until(client, "n", "waiting")
                    await client.submit("t", {"version": 1, "workflow": "spins"})
                    blocked = await until(client, "t", "blocked")
                    await client.signal("n", "1", "go", {"nonce": "x"})
                    return blocked, await until(client, "n", "done")

            try:
                blocked, done = trio.run(main)
                worker.send_signal(signal.SIGTERM)
                assert worker.wait(DEADLINE_S) == 0
            finally:
                worker.kill()
                server.kill()
    assert blocked["reason"].startswith("refused: it took more than 0.3 s from one await to the next, and was at ")
    assert "flows.py:" in blocked["reason"]
    assert done["result"] == [True, True]
