"""A server in the process of those who ask it: the same promises without a network."""

from __future__ import annotations

import contextlib
import json
import math
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import apsw
import pytest
import trio
import trio.testing

from reference_runtime import Client, Embedded, Patience, Refusal, Server, Store, Unreachable, Worker, embedded
from reference_runtime.documents import replayed
from reference_runtime.interpreter import INTERPRETER
from reference_runtime.model import Json
from reference_runtime.rpc import LINE_BYTES_MAX
from tests.runtime_rig import EAGER, MS, FakeTools, call, par, plan, seq, served, sleep, until, wait


@contextlib.asynccontextmanager
async def together(path: Path, tools: FakeTools | None = None) -> AsyncIterator[Embedded]:
    """A server and its worker, in one process and without a port."""
    with contextlib.closing(Store.open(str(path), policy=EAGER)) as store:
        async with embedded(Server(store)) as handle, trio.open_nursery() as nursery:
            nursery.start_soon(Worker(handle, tools or FakeTools(), workflows=[INTERPRETER]).run)
            yield handle
            nursery.cancel_scope.cancel()


@pytest.mark.parametrize("style", ["plans", "replay"])
def test_a_task_runs_to_its_result(tmp_path, style):
    """Calls, a wait and a sleep come to one result, in both ways of writing work."""
    work = plan(
        call("a"), par(call("b", carries=("a",)), seq(wait("w", "go"), sleep("s", 1 * MS))), call("c", "mailer")
    )

    async def main() -> Json:
        async with together(tmp_path / "s.db") as handle:
            await handle.submit("t", work if style == "plans" else replayed(work))
            await until(handle, "t", "waiting")
            await handle.signal("t", "1", "go", {"nonce": "n-w"})
            return await until(handle, "t", "done")

    assert trio.run(main)["result"] == {"a": "a#1", "b": "b#1", "w": "n-w", "c": "c#1"}


@pytest.mark.parametrize(
    ("verb", "params", "code"),
    [
        ("submit", {"task": "t", "plan": {"version": 9}}, "bad-plan"),
        ("submit", {"task": "t", "plan": {"version": 1, "root": math.nan}}, "bad-request"),
        ("submit", {"task": "t", "plan": {"pad": "x" * LINE_BYTES_MAX}}, "too-large"),
        ("submit", {"task": "a:b", "plan": {}}, "bad-id"),
        ("status", {}, "bad-request"),
        ("cancel", {"task": "nobody", "id": "1"}, "unknown-task"),
        ("serve", {}, "bad-request"),
        ("up", {}, "bad-request"),
    ],
)
def test_what_is_refused_over_the_network_is_refused_here(tmp_path, verb, params, code):
    """For the same reasons, in the same words."""

    async def main() -> tuple[Refusal, Refusal]:
        async with served(tmp_path / "s.db") as (server, port), Client("127.0.0.1", port) as client:
            with pytest.raises(Refusal) as here:
                await Embedded(server).call(verb, params)
            with pytest.raises(Refusal) as there:
                await client.call(verb, params)
            return here.value, there.value

    here, there = trio.run(main)
    assert here.code == code
    assert str(here) == str(there)


def test_nobody_shares_a_list_with_the_store(tmp_path):
    """What is done to a plan or to a status afterwards changes nothing."""
    work = plan(wait("w", "go"))

    async def main() -> Json:
        async with together(tmp_path / "s.db") as handle:
            await handle.submit("t", work)
            work["root"]["children"].clear()
            (await until(handle, "t", "waiting"))["operations"].clear()
            return await handle.status("t")

    assert [one["id"] for one in trio.run(main)["operations"]] == ["w"]


def test_others_may_come_over_the_network(tmp_path):
    """A server that is served on a port answers its own process as well."""

    async def main() -> Json:
        async with served(tmp_path / "s.db") as (server, port), trio.open_nursery() as nursery:
            nursery.start_soon(Worker(Embedded(server), FakeTools()).run)
            async with Client("127.0.0.1", port) as client:
                await client.submit("t", plan(call("a")))
                status = await until(client, "t", "done")
            nursery.cancel_scope.cancel()
        return status

    assert trio.run(main)["result"] == {"a": "a#1"}


def test_an_error_of_the_storage_ends_the_server_and_is_no_answer(tmp_path, monkeypatch):
    """Nobody knows what an answer would be worth; whoever is patient waits for one until all of it ends."""
    answered = []

    def fail(*_: object) -> None:
        raise apsw.IOError("the disk is on fire")

    async def main() -> None:
        async with together(tmp_path / "s.db") as handle:
            monkeypatch.setattr(handle.server.store, "submit", fail)
            answered.append(
                await handle.call("submit", {"task": "t", "plan": plan(call("a"))}, Patience(total_ns=None))
            )

    with pytest.RaisesGroup(apsw.IOError, flatten_subgroups=True):
        trio.run(main)
    assert answered == []


def test_who_is_not_up_cannot_be_reached(tmp_path):
    """Before and after: said at once, and not waited for."""

    async def main() -> None:
        server = Server(Store.open(str(tmp_path / "s.db")))
        handle = Embedded(server)
        with pytest.raises(Unreachable, match="status: the server in this process is not up"):
            await handle.status("t")
        async with embedded(server):
            assert (await handle.status("t"))["state"] == "unknown"
        with pytest.raises(Unreachable):
            await handle.status("t")

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=5))


def test_who_lost_patience_is_given_nothing(tmp_path):
    """A claim that was given up leases nothing: the next one has it."""

    async def main() -> list[Json]:
        with contextlib.closing(Store.open(str(tmp_path / "s.db"))) as store:
            async with embedded(Server(store)) as handle:
                execution = (await handle.call("hello", {"name": "w", "code": {"version": "1"}}))["execution"]
                ask = {"execution": execution, "holding": [], "limit": 1}
                with pytest.raises(Unreachable, match=r"claim: the server in this process: no answer within 0.01 s"):
                    await handle.call("claim", ask, Patience(total_ns=10 * MS))
                await handle.submit("t", plan(call("a")))
                return (await handle.call("claim", ask))["tickets"]

    assert [one["operation"] for one in trio.run(main)] == ["a"]


def test_who_waits_as_the_server_ends_is_given_nothing(tmp_path):
    """Its worker is told; the next server on the store has all there is to give."""

    async def main() -> tuple[Json, str]:
        with contextlib.closing(Store.open(str(tmp_path / "s.db"), policy=EAGER)) as store:
            ended: list[BaseException] = []

            async def work(handle: Embedded) -> None:
                try:
                    await Worker(handle, FakeTools(), name="old").run()
                except BaseExceptionGroup as group:
                    ended.extend(group.exceptions)

            async with trio.open_nursery() as nursery:
                async with embedded(Server(store)) as handle:
                    nursery.start_soon(work, handle)
                    await trio.testing.wait_all_tasks_blocked(0.05)
                async with together_on(store) as handle:
                    await handle.submit("t", plan(call("a")))
                    status = await until(handle, "t", "done")
                nursery.cancel_scope.cancel()
            return status, str(ended)

    status, ended = trio.run(main)
    assert status["execution"].startswith("new#")
    assert "the server in this process: it is not up any more" in ended


@contextlib.asynccontextmanager
async def together_on(store: Store) -> AsyncIterator[Embedded]:
    async with embedded(Server(store)) as handle, trio.open_nursery() as nursery:
        nursery.start_soon(Worker(handle, FakeTools(), name="new").run)
        yield handle
        nursery.cancel_scope.cancel()


def test_what_the_block_raises_is_what_comes_out(tmp_path):
    """By itself, as from any other block; an error of the server's is a group, as of any nursery."""

    async def main() -> None:
        with (
            contextlib.closing(Store.open(str(tmp_path / "s.db"))) as store,
            pytest.raises(Refusal, match="unknown-task"),
        ):
            async with embedded(Server(store)) as handle:
                await handle.cancel("nobody", "1")

    trio.run(main)


def test_one_server_is_up_once(tmp_path):
    """Nobody ends it for another one."""

    async def main() -> str:
        with contextlib.closing(Store.open(str(tmp_path / "s.db"))) as store:
            server = Server(store)
            async with embedded(server) as handle:
                with pytest.raises(RuntimeError, match="up already"):
                    async with embedded(server):
                        pass
                return str((await handle.status("t"))["state"])

    assert trio.run(main) == "unknown"


#: Carries out a chain of calls, and is killed in the middle of the third: its effect is there, and nothing was reported.
PROGRAM = """
import os, signal, sys
from pathlib import Path
import trio
import trio.testing
from reference_runtime import Server, Store, Worker, embedded

ledger = Path(sys.argv[1], "ledger")

class Tools:
    async def call(self, request):
        with ledger.open("a") as file:
            file.write(f"{request.key}\\n")
        if request.operation == "c" and ledger.read_text().count(request.key) == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return {"nonce": request.operation}

async def main():
    steps = [{"op": "call", "id": name, "service": "ledger"} for name in "abcde"]
    store = Store.open(str(Path(sys.argv[1], "s.db")))
    async with embedded(Server(store, lease_ns=100_000_000)) as handle, trio.open_nursery() as nursery:
        nursery.start_soon(Worker(handle, Tools()).run)
        await handle.submit("t", {"version": 1, "root": {"op": "seq", "id": "root", "children": steps}})
        while (status := await handle.status("t"))["state"] != "done":
            await trio.sleep(0.01)
        print("".join(status["result"]))
        nursery.cancel_scope.cancel()
    store.close()

trio.run(main)
"""


def test_a_process_that_is_killed_goes_on_where_it_was(tmp_path):
    """Every effect was asked for under one key, and only what nobody could know of was asked for again."""
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    killed = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    again = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert again.stdout == "abcde\n", again.stderr
    keys = (tmp_path / "ledger").read_text().split()
    assert keys == [f"t.1:{name}" for name in "abccde"], json.dumps(keys)


def test_a_worker_without_a_slot_is_refused(store):
    """It would wait for ever for one, without a word."""
    with pytest.raises(Refusal, match="bad-setting: a worker of 0 slots would take nothing up; expected 1 or more"):
        Worker(Embedded(Server(store)), FakeTools(), slots=0)
