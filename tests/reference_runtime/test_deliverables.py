"""Artifacts, checks, models and children end to end: a server, workers, and the contracts of the services they meet."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from reference_runtime import Request
from reference_runtime.contents import content
from reference_runtime.model import Json
from reference_runtime.tools import Unknown, interpret
from simkit.services.requests import parse_request
from simkit.services.state import Services
from tests.runtime_plans import artifact, check, child, model, wanting
from tests.runtime_rig import call, par, plan, states, until, working


class ServiceTools:
    """Tools that are the services' contracts themselves. `loses(nth)` says whether the nth answer is lost on the way."""

    def __init__(self, loses: Callable[[int], bool] = lambda _: False) -> None:
        self.numbers = itertools.count(1)
        self.services = Services(lambda: f"nonce-{next(self.numbers)}", lambda: 0)
        self.loses = loses
        self.asked: list[Request] = []
        self.counts: dict[tuple[str, str], int] = {}

    async def call(self, request: Request) -> Json:
        reply = self._ask(request, lookup=False)
        return interpret(reply[0], reply[1])

    async def lookup(self, request: Request) -> Json | None:
        reply = self._ask(request, lookup=True)
        return None if reply[0] == 404 else interpret(reply[0], reply[1])

    def _ask(self, request: Request, *, lookup: bool) -> tuple[int, Json]:
        self.asked.append(request)
        known = parse_request(
            {
                "service": request.tool,
                "run": request.task,
                "op": request.operation,
                "key": request.key,
                "params": request.params,
                "carries": dict(request.carries),
                "script": list(request.script),
                "lookup": lookup,
                **request.fields,
            }
        )
        nth = self.counts[known.service, known.op] = self.counts.get((known.service, known.op), 0) + 1
        settled = self.services.settle(self.services.begin(len(self.asked), known), known.scripted(nth))
        if self.loses(len(self.asked)):
            raise Unknown("the answer was lost")
        return settled.reply.status, dict(settled.reply.body)


def run(path: Path, tools: ServiceTools, data: Json, *tasks: str) -> list[Json]:
    """The ends of tasks, and the artifacts of the first."""

    async def main() -> list[Json]:
        async with working(path, tools) as client:  # type: ignore[arg-type]
            await client.submit("t", data)
            ends = [await until(client, task, "done", "failed", "blocked") for task in ("t", *tasks)]
            return [*ends, await client.artifacts("t"), await client.events("t", 0)]

    return trio.run(main)


@pytest.mark.parametrize("every", [0, 2, 3, 5])
def test_what_is_published_can_be_fetched(tmp_path, every):
    """Every accepted version lies at its location under its digest, however many answers are lost on the way."""
    tools = ServiceTools(lambda nth: every > 0 and nth % every == 0)
    work = plan(artifact("a", parts=3), par(artifact("b", size=1), artifact("c", "other", parts=5)), check("k", "a"))
    status, listed, _ = run(tmp_path / "s.db", tools, work)
    assert status["state"] == "done"
    assert [row["state"] for row in listed["artifacts"]] == ["accepted", "superseded", "accepted"]
    for row in listed["artifacts"]:
        there = tools.services.artifact(row["location"])
        assert there is not None
        assert (there.committed, there.data) == (True, content("t", row["operation"], row["size"]))
        assert hashlib.sha256(there.data).hexdigest() == row["digest"]


def test_a_checker_that_wavers(tmp_path):
    """It is asked about the same version until it can say."""
    tools = ServiceTools()
    status, *_ = run(
        tmp_path / "s.db", tools, plan(artifact("a"), check("k", "a", script=["unavailable", "timeout", "passed"]))
    )
    assert status["state"] == "done"
    asked = [one.fields for one in tools.asked if one.tool == "checker"]
    assert len(asked) == 3
    assert asked == [asked[0]] * 3


def test_receivers_know_the_plans_operations_only(tmp_path):
    """A check made anew and a sweep go out under the operation of the plan that they are made for."""
    tools = ServiceTools()
    checks = check("k", "a", script=["passed", "unavailable", "passed"])
    status, *_ = run(tmp_path / "s.db", tools, plan(artifact("a"), checks, artifact("b", size=1)))
    assert status["state"] == "done"
    asked = [(one.operation, one.fields["version"]) for one in tools.asked if one.tool == "checker"]
    assert asked == [("k", 1), ("k", 2), ("k", 2)]


def test_a_rejected_upload_leaves_nothing_behind(tmp_path):
    """What was staged for an operation that failed is removed before the run is over."""
    tools = ServiceTools()
    data = plan(artifact("a", parts=2))
    inner, tools.call = tools.call, lambda request: _reject_commit(inner, request)  # type: ignore[method-assign]
    status, listed, _ = run(tmp_path / "s.db", tools, data)
    assert (status["state"], states(status)) == ("failed", {"a": "failed"})
    assert (listed["artifacts"], tools.services.artifact("t.1:a")) == ([], None)
    assert {one.operation for one in tools.asked} == {"a"}


async def _reject_commit(inner: Callable[[Request], object], request: Request) -> Json:
    if request.params.get("action") == "commit":
        interpret(400, {"error": "rejected"})
    return await inner(request)  # type: ignore[misc,no-any-return]


def test_a_metered_child_within_its_parents_allowance(tmp_path):
    """Tokens are settled by what the model says it used, and the child's are its parent's."""
    tools = ServiceTools()
    inside = child("k", model("m", 10, uses=4), call("x"), share={"tokens": 10, "calls": 2})
    data = wanting(plan(inside, call("b")), allowance={"tokens": 20, "calls": 5})
    status, inner, _, told = run(tmp_path / "s.db", tools, data, "t/k")
    assert (status["state"], inner["state"]) == ("done", "done")
    spent = {"allowance": 20, "consumed": inner["usage"]["tokens"]["consumed"], "reserved": 0, "unknown": 0}
    assert status["usage"]["tokens"] == spent
    assert 0 < spent["consumed"] <= 10
    assert status["children"] == [{"run": "t/k", "state": "succeeded", "detached": False}]
    assert [event["cursor"] for event in told["events"]] == list(range(1, told["next"] + 1))
    assert {one.task for one in tools.asked} == {"t", "t/k"}


def test_a_handed_over_result_is_delivered(tmp_path):
    """The first status that shows the end says that it was only prepared; later ones that it was delivered."""

    async def main() -> list[Json]:
        async with working(tmp_path / "s.db", ServiceTools()) as client:  # type: ignore[arg-type]
            await client.submit("t", plan(call("a")))
            return [await until(client, "t", "done"), await client.status("t")]

    first, second = trio.run(main)
    assert (first["delivered"], second["delivered"]) == (False, True)
    assert second["version"] == first["version"] + 1
