"""Code and its versions on a whole runtime: deployments, mixed fleets, and histories told in other pieces."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from reference_runtime import Client, Code, Patience, Refusal, Worker
from reference_runtime.__main__ import COMMANDS
from reference_runtime.cli_options import code_of, parser
from reference_runtime.documents import replayed
from reference_runtime.evolution import load_transforms, transform
from reference_runtime.interpreter import INTERPRETER, interpret_aside
from reference_runtime.model import Json
from reference_runtime.presence import Presence
from reference_runtime.workflow import Workflow
from tests.runtime_rig import DEADLINE_S, MS, FakeTools, call, par, plan, race, served, states, until, wait

ONE = Code("1")
TWO = Code("2", "compatible", ("1",))
THREE = Code("3")
GATED = {**plan(call("a"), wait("w", "go"), call("b")), "code": "1"}


@contextlib.asynccontextmanager
async def working(
    port: int, tools: FakeTools, code: Code, batch: int = 0, aside: bool = False
) -> AsyncIterator[Worker]:
    interpreter = Workflow(INTERPRETER.name, code.version, interpret_aside if aside else INTERPRETER.function)
    one = Worker(Client("127.0.0.1", port), tools, workflows=[interpreter], code=code, batch=batch)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(one.run)
        yield one
        nursery.cancel_scope.cancel()


def asking(port: int) -> Client:
    return Client("127.0.0.1", port, patience=Patience(total_ns=DEADLINE_S * 1000 * MS))


@pytest.mark.parametrize("style", ["plan", "replay"])
def test_a_deployment_that_does_not_fit_is_shown_and_undone(tmp_path, style):
    """In both styles; where history is replayed, the newcomer tries, and both commands are told."""
    document = GATED if style == "plan" else replayed(GATED)
    newcomer = THREE if style == "plan" else Code("3", "replay", ("1", "2"))

    async def main() -> tuple[Json, Json, FakeTools]:
        tools = FakeTools()
        async with served(tmp_path / "s.db", lease_ns=50 * MS) as (_, port), asking(port) as client:
            async with working(port, tools, ONE):
                await client.submit("t", document)
                await until(client, "t", "waiting")
            async with working(port, tools, newcomer, aside=style == "replay"):
                await client.signal("t", "1", "go", {"nonce": "n"})
                blocked = await until(client, "t", "blocked")
            async with working(port, tools, TWO):
                return blocked, await until(client, "t", "done"), tools

    blocked, done, tools = trio.run(main)
    assert blocked["reason"].partition(":")[0] == ("code-incompatible" if style == "plan" else "diverged")
    if style == "replay":
        assert "history has main:1 call 'a'" in blocked["reason"]
        history, code = blocked["reason"].split(", the code has ")
        assert '"service":"ledger"' in history
        assert code.startswith("all1.0:1 call 'a'")
    assert set(states(done).values()) == {"succeeded"}
    assert sorted(one.operation for one in tools.calls) == ["a", "b"]


def test_beside_fitting_code_other_code_changes_nothing(tmp_path):
    """There is somebody who may go on, so the task is not blocked."""

    async def main() -> tuple[set[str], Json]:
        seen = set[str]()
        tools = FakeTools()
        async with (
            served(tmp_path / "s.db", lease_ns=50 * MS) as (server, port),
            asking(port) as client,
            working(port, tools, THREE),
            working(port, tools, ONE),
        ):
            server._since = float("-inf")  # nobody is given time to come back
            await client.submit("t", GATED)
            while (status := await client.status("t"))["state"] != "done":
                seen.add(status["state"])
                if status["state"] == "waiting":
                    await client.signal("t", "1", "go", {"nonce": "n"})
                await trio.sleep(0.002)
            return seen, status

    seen, status = trio.run(main)
    assert (seen <= {"running", "waiting"}, status["state"]) == (True, "done")


@pytest.mark.parametrize("batch", [0, 1, 2, 3])
def test_a_history_told_in_any_pieces_comes_to_the_same(tmp_path, batch):
    """One worker begins, and one that is told so many outcomes at a time finishes: the commands are the same, race and all."""
    document = replayed(
        plan(par(call("a"), call("b")), race("r", call("x"), wait("never", "no")), wait("w", "go"), call("c"))
    )

    async def main() -> tuple[Json, list[tuple[Any, ...]]]:
        tools = FakeTools()
        async with served(tmp_path / "s.db") as (server, port), asking(port) as client:
            async with working(port, tools, ONE, 1):
                await client.submit("t", document)
                await until(client, "t", "waiting")
                while states(await client.status("t")).get("x") != "succeeded":  # noqa: ASYNC110 - over a network
                    await trio.sleep(0.002)
            async with working(port, tools, ONE, batch):
                await client.signal("t", "1", "go", {"nonce": "n"})
                done = await until(client, "t", "done", "blocked")
            return done, server.store._rows("SELECT branch, sequence, kind, id FROM command_history ORDER BY number")

    done, history = trio.run(main)
    assert done["state"] == "done"
    assert [(kind, id_) for _, _, kind, id_ in history if kind != "abandon"][-2:] == [("wait", "w"), ("call", "c")]
    assert states(done)["never"] == "skipped"


def test_who_asks_is_there_and_for_a_term_after(autojump_clock):
    """Who is heard of otherwise is there for a term from then."""

    async def main() -> None:
        presence = Presence(1.0)
        with presence.asking("a"):
            await trio.sleep(5)
            presence.heard("b")
            assert presence.there() == ["a", "b"]
        await trio.sleep(0.9)
        assert presence.there() == ["a", "b"]
        await trio.sleep(0.2)
        assert presence.there() == []

    trio.run(main, clock=autojump_clock)


@pytest.fixture
def autojump_clock() -> trio.abc.Clock:
    return MockClock(autojump_threshold=0)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("", Code("1", "refuse")),
        ("--code 2 --older 1", Code("2", "compatible", ("1",))),
        ("--code 3 --transform 2=cents", Code("3", "transform", (), {"2": "cents"})),
        ("--code 3 --older 2 --older 1 --policy replay", Code("3", "replay", ("2", "1"))),
    ],
)
def test_a_worker_is_told_its_code_on_the_command_line(words, code):
    """The policy is the one that the other options are for, unless it is named."""
    assert code_of(parser(COMMANDS).parse_args(["worker", "--services", "http://x:1", *words.split()])) == code


def test_transforms_are_found_by_their_names(monkeypatch):
    """What is not marked is not among them."""
    module = SimpleNamespace(one=transform("cents")(dict), other=3)
    monkeypatch.setitem(sys.modules, "carried", module)
    assert load_transforms("carried") == {"cents": dict}


@pytest.mark.parametrize("module", ["no.such.module", "json"])
def test_a_module_without_transforms_is_refused(module):
    """Whether there is no such module or nothing in it."""
    with pytest.raises(Refusal) as no:
        load_transforms(module)
    assert no.value.code == "no-transforms"
