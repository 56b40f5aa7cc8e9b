"""The adapter helper against the hosted services themselves: every operation that is worked by one of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

import attrs
import pytest
import trio

from conformance.helper import simkit_adapter as helper
from conformance.hosted import hosted
from scenarios import plan
from simkit.services import Artifact, Fault, Gate, Outside, Request, open_gate
from tests.service_rig import Facts, at, counted

T = TypeVar("T")


@attrs.define
class Asked(Facts):
    """Facts, with the requests as they arrived, and problems that were reported."""

    asked: list[Request] = attrs.field(factory=list)
    problems: list[Any] = attrs.field(factory=list)

    def received(self, call: int, request: Request, incarnation: int, digest: str) -> None:
        self.asked.append(request)


@pytest.fixture
def with_services(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Runs `talk(outside)`, which asks the helper by `in_thread`, while the services are up."""

    def run(talk: Callable[[Outside], Awaitable[T]], gate: Gate = open_gate) -> tuple[T, Asked]:
        facts = Asked()

        async def main() -> T:
            outside = Outside(counted(), facts, lambda: 0)
            with trio.fail_after(10):
                async with hosted(outside, lambda *told: facts.problems.append(told), gate=gate) as host:
                    monkeypatch.setenv("SIMKIT_SERVICES", f"http://127.0.0.1:{await host.open_port(1)}")
                    return await talk(outside)

        result = trio.run(main)
        assert facts.problems == []
        return result, facts

    return run


async def in_thread(function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    return await trio.to_thread.run_sync(partial(function, *args, **kwargs))


def test_a_call_hands_on_what_it_was_given(with_services: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Token, time left and the plan's secret arrive; of the secret the plan has the name only."""
    monkeypatch.setenv("SIMKIT_SECRETS", json.dumps({"card": "4242"}))
    op = {"op": "call", "id": "a", "service": "fenced", "secret": "card", "params": {"answer_bytes": 5}}

    async def talk(_: Outside) -> str:
        return await in_thread(helper.call, op, "r/c", {}, token=3, remaining_ns=10)

    nonce, facts = with_services(talk)
    assert nonce == "n1..."
    assert facts.asked == [
        Request("fenced", "r/c", "a", "r/c:a", {"answer_bytes": 5}, token=3, remaining_ns=10, secret="4242")
    ]


def test_an_older_token_is_a_definite_refusal(with_services: Any) -> None:
    """A worker that lost its work hears so, and not that it should ask again."""
    op = {"op": "call", "id": "a", "service": "fenced"}

    async def talk(_: Outside) -> None:
        await in_thread(helper.call, op, "r", {}, keyed=False, token=3)
        with pytest.raises(helper.Fenced) as caught:
            await in_thread(helper.call, op, "r", {}, keyed=False, token=2)
        assert isinstance(caught.value, helper.Rejected)

    with_services(talk)


def test_the_model_is_asked_with_what_the_operation_says(with_services: Any) -> None:
    """Refusals for lack of room are busy and say for how long, a reply that breaks off is unknown, then comes the answer."""
    op = {"op": "model", "id": "m", "prompt": "say", "tokens": 8, "script": ["429", "529", "cut"]}

    async def talk(_: Outside) -> str:
        for _n in range(2):
            with pytest.raises(helper.Busy) as caught:
                await in_thread(helper.call, op, "r", {})
            assert caught.value.retry_after_ns
        with pytest.raises(helper.Unknown):
            await in_thread(helper.call, op, "r", {})
        return await in_thread(helper.call, op, "r", {})

    nonce, facts = with_services(talk)
    assert nonce == "n2"
    assert [reply.usage for reply in facts.answers] == [None, None, 4, 4]
    assert {request.key for request in facts.asked} == {None}


def test_look_ups_go_to_the_service_of_the_call_and_follow_their_script(with_services: Any) -> None:
    """A child's call is found by its own run; a receiver that is down leaves the outcome unknown."""
    op = {"op": "call", "id": "a@2", "service": "registry", "lookups": ["ok", "down"]}

    async def talk(_: Outside) -> list[str | None]:
        found = [await in_thread(helper.lookup, op, "r/c")]
        with pytest.raises(helper.Unknown):
            await in_thread(helper.lookup, op, "r/c")
        found.append(await in_thread(helper.call, op, "r/c", {}))
        found.append(await in_thread(helper.lookup, op, "r/c"))
        work = {"op": "call", "id": "o", "service": "operation"}
        found.append(await in_thread(helper.call, work, "r", {}))
        found.append(await in_thread(helper.lookup, work, "r"))
        return found

    assert with_services(talk)[0] == [None, "n1", "n1", "n2", "n2"]


def test_authority_is_asked_of_the_desk(with_services: Any) -> None:
    """Alice may, until hers is withdrawn; a desk that does not answer has allowed nothing."""
    op = {"op": "approve", "id": "ok", "of": "a"}

    async def talk(outside: Outside) -> list[bool]:
        allowed = [await in_thread(helper.authority, op, "r", actor) for actor in ("alice", "mallory")]
        outside.revoke("alice")
        allowed.append(await in_thread(helper.authority, op, "r", "alice"))
        with pytest.raises(helper.Unknown):
            await in_thread(helper.authority, {**op, "lookups": ["ok", "ok", "ok", "down"]}, "r", "alice")
        return allowed

    assert with_services(talk)[0] == [True, False, False]


def test_a_check_names_what_it_judged(with_services: Any) -> None:
    """The checker's outcomes come as its script says, about the version it was asked about."""
    op = {"op": "check", "id": "c", "of": "a", "script": ["timeout", "failed"]}

    async def talk(_: Outside) -> list[Any]:
        return [await in_thread(helper.check, op, "r", "report", 2, "d") for _ in range(3)]

    verdicts, _ = with_services(talk)
    assert [verdict["outcome"] for verdict in verdicts] == ["timeout", "failed", "passed"]
    assert {(verdict["subject"], verdict["version"]) for verdict in verdicts} == {("report", 2)}


@pytest.mark.parametrize(("size", "parts"), [(0, 1), (1, 3), (1000, 3)])
def test_an_artifact_is_published_whole_however_often_it_is_tried(with_services: Any, size: int, parts: int) -> None:
    """A commit whose reply was lost is asked again, and gets the first one's answer; the store has the plan's content."""
    op = {"op": "artifact", "id": "a", "name": "report", "size": size, "parts": parts}

    async def talk(outside: Outside) -> tuple[Any, Artifact | None]:
        with pytest.raises(helper.Unknown):
            await in_thread(helper.publish, op, "r", {}, "r/report/1")
        return await in_thread(helper.publish, op, "r", {}, "r/report/1"), outside.services.artifact("r/report/1")

    (entry, artifact), facts = with_services(talk, at("applied", Fault("reset"), nth=parts + 1))
    data = plan.content("r", "a", size)
    assert artifact == Artifact(data, committed=True)
    assert (entry["size"], entry["digest"]) == (size, hashlib.sha256(data).hexdigest())
    assert [row[:1] for row in facts.rows].count(("applied",)) == 1
    assert [request.part for request in facts.asked] == [*range(1, parts + 1), None] * 2


def test_a_store_that_refuses_a_part_is_not_asked_to_commit(with_services: Any) -> None:
    """The first refusal ends the upload."""
    op = {"op": "artifact", "id": "a", "name": "report", "size": 4, "parts": 2, "script": ["ok", "reject"]}

    async def talk(outside: Outside) -> Artifact | None:
        with pytest.raises(helper.Rejected):
            await in_thread(helper.publish, op, "r", {}, "here")
        return outside.services.artifact("here")

    artifact, facts = with_services(talk)
    assert artifact == Artifact(plan.content("r", "a", 2), committed=False)
    assert len(facts.asked) == 2
