"""Nonsense from outside: whatever a line, a plan or an answer says, it is refused by name and the server goes on."""

from __future__ import annotations

import json
from typing import Any

import attrs
import pytest
import trio

from reference_runtime import Client, Store, jsontext, rpc, views
from reference_runtime.budget import tokens_used
from reference_runtime.credentials import Credentials
from reference_runtime.leaves import COUNT_MAX
from reference_runtime.model import AMOUNT_MAX, Refusal, Ticket
from reference_runtime.plan import parse
from reference_runtime.rpc import LINE_BYTES_MAX, Lines
from reference_runtime.tools import RETRY_AFTER_NS_MAX, Busy, interpret
from reference_runtime.wire import _in_a_header
from tests.runtime_plans import answer_to, artifact
from tests.runtime_rig import (
    FakeTools,
    approve,
    branch,
    call,
    in_hand,
    plan,
    served,
    sleep,
    states,
    under,
    until,
    wait,
    working,
)

GRANT = {"attempt": "t.1", "operation": "a", "generation": 1, "version": 0}
SETTLE = {"report": "failed", "answer": {}, "detail": "", "facts": {}, "execution": "e", "limit": 1}
CLAIM_TURNS = {"execution": "e", "codes": {}, "warm": {}, "holding": [], "limit": 1, "batch": 0}
NOWHERE = {"known": [0, 0, 0], "batch": 0}


def asked(verb: str, **params: Any) -> bytes:
    return json.dumps({"id": 1, "verb": verb, "params": params}).encode()


LINES = {
    "nested": b"[" * 100_000,
    "nested request": asked("ping", more=[]).replace(b"[]", b"[" * 500 + b"]" * 500),
    "twice": b'{"id": 1, "verb": "ping", "verb": "status", "params": {}}',
    "no number": asked("signal", task="t", id="s", name="n", payload={"x": float("nan")}),
    "too large a float": asked("signal", task="t", id="s", name="n", payload={"x": 5}).replace(b"5", b"1e999"),
    "half a pair": asked("status", task="\ud800"),
    "half a pair, raw": asked("status", task="x").replace(b'"x"', b'"\xed\xa0\x80"'),
    "cursor": asked("events", task="t", after=2**63),
    "yes as a cursor": asked("events", task="t", after=True),
    "limit": asked("claim", execution="e", holding=[], limit=10**30),
    "a negative limit": asked("claim", execution="e", holding=[], limit=-1),
    "a negative batch": asked("claim_turns", **{**CLAIM_TURNS, "batch": -1}),
    "yes as a version": asked("submit", task="u", plan={**plan(call("a")), "version": True}),
    "a float as a version": asked("submit", task="u", plan={**plan(call("a")), "version": 1.0}),
    "a workflow of version yes": asked("submit", task="u", plan={"version": True, "workflow": "w"}),
    "holding": asked("claim", execution="e", holding=[{}], limit=1),
    "generations": asked("heartbeat", execution="e", generations=[[]]),
    "grant of a list": asked("dispatch", grant={**GRANT, "attempt": []}),
    "grant of a text": asked("dispatch", grant={**GRANT, "generation": "1"}),
    "grant of a lease that was never given out": asked("dispatch", grant={**GRANT, "operation": "w", "generation": 0}),
    "grant too large": asked("settle", grant={**GRANT, "generation": 10**30}, **SETTLE),
    "facts": asked("settle", grant=GRANT, **{**SETTLE, "facts": {"retry_after_ns": "soon"}}),
    "codes": asked("claim_turns", **{**CLAIM_TURNS, "codes": {"w": [[]]}}),
    "warm": asked("claim_turns", **{**CLAIM_TURNS, "warm": {"t.1": [None]}}),
    "generation": asked("tell_more", generation=10**30, **NOWHERE),
    "kind of operation": asked("submit", task="u", plan=plan({"op": ["call"], "id": "a"})),
    "a sleep for ever": asked("submit", task="u", plan=plan(sleep("z", 2**63 - 1))),
    "a deadline for ever": asked("submit", task="u", plan={**plan(call("a")), "deadline_ns": 2**63 - 1}),
    "an artifact of a terabyte": asked("submit", task="u", plan=plan(artifact("a", size=10**12))),
    "an allowance without end": asked("submit", task="u", plan={**plan(call("a")), "allowance": {"calls": 2**63}}),
}


@pytest.mark.parametrize("line", LINES.values(), ids=LINES.keys())
def test_nonsense_is_refused_and_nothing_is_lost(tmp_path, line):
    """It is a bad request or a bad plan; what was acknowledged before is there, and the connection goes on."""

    async def main():
        async with served(tmp_path / "s.db") as (_, port):
            stream = await trio.open_tcp_stream("127.0.0.1", port)
            lines = Lines(stream)
            await stream.send_all(asked("submit", task="t", plan=plan(wait("w", "go"))) + b"\n" + line + b"\n")
            assert "ok" in json.loads(await lines.receive() or b"")
            assert json.loads(await lines.receive() or b"")["error"]["code"] in ("bad-request", "bad-plan")
            await stream.send_all(asked("status", task="t") + b"\n")
            assert json.loads(await lines.receive() or b"")["ok"]["state"] == "waiting"
            await stream.aclose()

    trio.run(main)


@pytest.mark.parametrize(
    "code", [{"transforms": ["x"]}, {"transforms": "x"}, {"transforms": None}, {"older": "2"}, {"older": {"2": 1}}]
)
def test_code_of_another_shape_is_refused(tmp_path, code):
    """Whoever says hello so is told which field is off, and the server goes on."""

    async def main():
        async with served(tmp_path / "s.db") as (_, port), Client("127.0.0.1", port) as client:
            with pytest.raises(Refusal, match=f"bad-code: code: {next(iter(code))} must be"):
                await client.call("hello", {"name": "w", "code": code})
            assert "lease_ns" in await client.call("ping", {})

    trio.run(main)


def _command(kind: str, **spec: Any) -> dict[str, Any]:
    return {"branch": "", "sequence": 1, "kind": kind, "id": "x", "digest": "", "spec": spec}


_X = {"op": "call", "id": "x", "service": "ledger"}


@pytest.mark.parametrize(
    ("said", "wrong"),
    [
        ({"end": {"raised": {"a": 1}}}, "what was raised is told in words"),
        ({"end": {"raised": None}}, "what was raised is told in words"),
        ({"end": {"vanished": 1}}, "an end is one of continued, raised, returned"),
        ({"end": {"returned": 1, "raised": "no"}}, "an end is one of continued, raised, returned"),
        ({"commands": [3]}, "a command has branch, sequence"),
        ({"commands": [_command("call")]}, "has its kind and its id"),
        ({"commands": [_command("wait", **_X)]}, "has its kind and its id"),
        ({"commands": [_command("call", **{**_X, "id": "y"})]}, "has its kind and its id"),
        ({"commands": [_command("abandon", op="abandon", id="x")]}, "names operations"),
        ({"commands": [_command("abandon", op="abandon", id="x", operations=[["a"]])]}, "names operations"),
        ({"commands": [_command("race", op="race", id="x", others=[])]}, "has a state"),
        ({"commands": [_command("race", op="race", id="x", state="succeeded")]}, "has a list of others"),
        ({"commands": [_command("call", **_X, others=5)]}, "has a list of others"),
        ({"commands": [_command("call", **_X, others=[{"id": "y"}])]}, "that have an op and an id"),
        ({"commands": [_command("approve", op="approve", id="x", of="y", action="y")]}, "that have an op and an id"),
    ],
)
@pytest.mark.parametrize("verb", ["take_turn", "settle"])
def test_a_turn_of_another_shape_is_refused(tmp_path, said, wrong, verb):
    """By itself or ahead, with the result that it goes on with: nothing of it is taken, and the server goes on."""

    async def main():
        async with served(tmp_path / "s.db") as (server, port), Client("127.0.0.1", port) as client:
            await client.submit("t", {"version": 1, "workflow": "agent", "input": None})
            (turn,) = server.store.claim_turns("w#1", {"agent": "1"}, (), 1)
            held = {name: getattr(turn, name) for name in ("attempt", "segment", "length", "outcomes", "generation")}
            told = {"known": [], "batch": 0, "commands": [], "end": {}, "code": "1", **said}
            ask = {**told, "turn": held, "execution": "w#1", "trouble": ""}
            if verb == "settle":
                await client.call("take_turn", {**ask, "commands": [_command("call", **_X)], "end": {}})
                (ticket,) = server.store.claim("w#1", (), 1)
                assert isinstance(ticket, Ticket)
                ask = {
                    "grant": attrs.asdict(under(ticket)),
                    "report": "succeeded",
                    "answer": {"nonce": "n"},
                    "detail": "",
                    "facts": {},
                    "execution": "w#1",
                    "limit": 0,
                    "ahead": {**told, "turn": {**held, "length": 1, "outcomes": 1, "generation": 0}},
                }
            with pytest.raises(Refusal, match=f"bad-request: .*{wrong}"):
                await client.call(verb, ask)
            return states(await client.status("t"))

    assert trio.run(main) == ({} if verb == "take_turn" else {"x": "dispatched"})


@pytest.mark.parametrize("nonce", [5, 1.5, True, None, [1], {"a": 1}])
def test_a_nonce_that_is_no_text_is_none(tmp_path, nonce):
    """What hangs on it goes the way of no nonce at all, whether a signal brought it or an answer."""
    store = Store.open(str(tmp_path / "s.db"))
    store.submit("t", plan(wait("w", "go"), branch("b", "w", call("even"), call("odd"))))
    assert store.signal("t", "s", "go", {"nonce": nonce})["disposition"] == "released"
    store.submit("u", plan(call("a"), branch("b", "a", call("even"), call("odd"))))
    for ticket in in_hand(store).values():
        if ticket.operation == "a":
            store.settle(under(ticket), "succeeded", {"nonce": nonce}, "")
    for task in ("t", "u"):
        assert states(views.status(store, task))["odd"] == "skipped"


@pytest.mark.parametrize("nonce", [{}, {"nonce": 5}, {"nonce": "n"}])
def test_a_sweep_takes_what_it_found_by_its_digest(tmp_path, nonce):
    """A store that says of an orphan that it is committed need not say more than its digest."""
    store = Store.open(str(tmp_path / "s.db"))
    store.submit("t", plan(artifact("a")))
    ticket = in_hand(store)["a"]
    store.settle(under(ticket), "failed", None, "")
    found = {"committed": True, "digest": answer_to(ticket)["digest"], **nonce}
    store.settle(under(in_hand(store)["a~sweep"]), "succeeded", found, "")
    assert [one["state"] for one in store.artifacts("t")["artifacts"]] == ["accepted"]


@pytest.mark.parametrize("name", ["steer", "notice"])
@pytest.mark.parametrize("operation", [[], {}, 10**30, None, "nobody"])
def test_what_addresses_nothing_is_unmatched(tmp_path, name, operation):
    """An operation that is not even a text is none of the plan's."""
    store = Store.open(str(tmp_path / "s.db"))
    store.submit("t", plan(call("a")))
    assert (
        store.signal("t", "s", name, {"operation": operation, "params": {}, "nonce": "n"})["disposition"] == "unmatched"
    )


def test_what_can_be_counted_is_admitted(tmp_path):
    """The largest numbers a plan may have are kept, and read again."""
    store = Store.open(str(tmp_path / "s.db"))
    allowance = {"calls": AMOUNT_MAX, "elapsed_ns": COUNT_MAX, "reserve": {"calls": AMOUNT_MAX}}
    store.submit("t", {**plan(sleep("z", COUNT_MAX)), "allowance": allowance, "deadline_ns": COUNT_MAX})
    assert store.next_timer_ns() is not None


def test_no_answer_costs_more_than_can_be_counted():
    """What a model says that it used is bounded, and yes is no number of tokens."""
    assert tokens_used({"usage": {"tokens": 10**30}}) == AMOUNT_MAX


def test_a_text_is_read_as_it_was_written():
    """What JSON has is read: all of Unicode, whole numbers of any size, nesting up to the limit."""
    value = {"emoji": "\U0001f600", "large": 10**300, "small": -0.5, "deep": json.loads("[" * 300 + "]" * 300)}
    assert jsontext.read(json.dumps(value), unique=True) == value
    assert jsontext.read(json.dumps(value, ensure_ascii=False).encode()) == value


def test_a_client_is_told_why_it_could_not_be_read(tmp_path):
    """A request that is refused as a whole is answered without its id; its sender takes that for a no, and asks no more."""

    async def main():
        async with served(tmp_path / "s.db") as (_, port), Client("127.0.0.1", port) as client:
            with pytest.raises(Refusal, match="bad-request: status: task must be str"):
                await client.call("status", {"task": 7})
            with pytest.raises(Refusal, match="half of a surrogate pair"):
                await client.status("\ud800")

    trio.run(main)


@pytest.mark.parametrize(("service", "state"), [("mailer", "blocked"), ("ledger", "done")])
@pytest.mark.parametrize("odd", [json.loads("[" * 399 + "]" * 399), float("nan"), "\ud800", "y" * LINE_BYTES_MAX])
def test_an_answer_that_cannot_be_reported_is_as_good_as_lost(tmp_path, service, state, odd):
    """It is said that it came to nothing that can be told; so a blind call is not made again, and others have their limits."""

    class Odd(FakeTools):
        async def call(self, request):
            answer = await super().call(request)
            return {**answer, "odd": odd} if len(self.calls) == 1 else answer

    tools = Odd()

    async def main():
        async with working(tmp_path / "s.db", tools) as client:
            await client.submit("t", plan(call("a", service)))
            return await until(client, "t", "done", "blocked")

    assert (trio.run(main)["state"], len(tools.calls)) == (state, 1 if state == "blocked" else 2)


def test_what_is_too_large_to_be_asked_is_not_sent(tmp_path):
    """It is refused with its size, and nothing is admitted."""

    async def main():
        async with served(tmp_path / "s.db") as (_, port), Client("127.0.0.1", port) as client:
            with pytest.raises(
                Refusal, match=f"too-large: submit is .* bytes of JSON; a line is at most {LINE_BYTES_MAX}"
            ):
                await client.submit("t", plan(call("a", params={"x": "y" * LINE_BYTES_MAX})))
            assert (await client.status("t"))["state"] == "unknown"

    trio.run(main)


def test_what_no_request_could_hold_is_answered(tmp_path):
    """What a task was told piece by piece is more than one line may bring, and comes back as one answer."""

    async def main():
        async with served(tmp_path / "s.db") as (_, port), Client("127.0.0.1", port) as client:
            await client.submit("t", plan(wait("w", "go")))
            payload = {"text": "x" * (LINE_BYTES_MAX // 2)}
            for number in range(3):
                await client.signal("t", str(number), "other", payload)
            assert len((await client.journal("t"))["signals"]) == 3

    trio.run(main)


def test_an_answer_that_is_too_large_is_refused(tmp_path, monkeypatch):
    """Its sender says so, and goes on with the connection."""
    monkeypatch.setattr(rpc.Lines.send, "__defaults__", (300,))

    async def main():
        async with served(tmp_path / "s.db") as (_, port), Client("127.0.0.1", port) as client:
            with pytest.raises(Refusal, match=r"too-large: what there is to answer is .* a line is at most 300"):
                await client.call("artifacts", {"task": "x" * 400})

    trio.run(main)


def test_a_line_that_is_too_long_is_refused_before_the_connection_ends(tmp_path):
    """Whoever sends it can read why nothing more is taken."""

    async def main():
        async with served(tmp_path / "s.db") as (_, port):
            stream = await trio.open_tcp_stream("127.0.0.1", port)
            lines = Lines(stream)
            await stream.send_all(b"x" * (LINE_BYTES_MAX + 1))
            answer = json.loads(await lines.receive() or b"")
            assert (answer["id"], answer["error"]["code"]) == (None, "too-large")
            await trio.aclose_forcefully(stream)

    trio.run(main)


def test_what_is_carried_costs_no_more_than_it_says():
    """Thousands of references to thousands of operations are looked at once each; walking the plan for each took a minute."""
    names = tuple(f"a{number}" for number in range(3_000))
    steps = parse(plan(*map(call, names), *(call(f"z{number}", carries=names) for number in range(7))))
    assert [step.carries for step in steps[-7:]] == [names] * 7


def test_a_field_that_is_there_twice_is_found_among_many():
    """Counting each name by itself, among all others, took hours."""
    fields = ",".join(f'"{number}":1' for number in range(400_000))
    with pytest.raises(ValueError, match="the field '399999' is there twice"):
        jsontext.read(f'{{{fields},"399999":1}}', unique=True)


def test_approvals_cost_no_more_than_they_say():
    """A plan full of approvals is read in a moment; walking it for each of them kept a server from everybody else."""
    numbers = range(4_900)
    steps = parse(plan(*(approve(f"ok{one}", f"a{one}") for one in numbers), *(call(f"a{one}") for one in numbers)))
    assert len(steps) == 2 * len(numbers)


@pytest.mark.parametrize("told", [{"body": {"retry_after_ns": 10**40}}, {"retry_after_ns": 10**40}])
def test_no_receiver_puts_work_off_for_ever(told):
    """However long it asks for, what is reported is a time that can be kept."""
    with pytest.raises(Busy) as busy:
        interpret(429, told.get("body"), retry_after_ns=told.get("retry_after_ns", 0))
    assert busy.value.retry_after_ns == RETRY_AFTER_NS_MAX


@pytest.mark.parametrize("secret", ["plain", "back\\slash", 'quo"te', "apo'strophe"])
def test_a_secret_is_hidden_as_it_is_quoted(secret):
    """An error that quotes what came over the wire does not tell the secret in it either."""
    hide = Credentials({"S": secret}).hide
    for quoted in (secret, repr(secret), repr(secret.encode()), json.dumps(secret), f"'{secret}\\n\""):
        assert secret not in hide(quoted)
        assert "[S]" in hide(quoted)
        assert secret.replace("\\", "\\\\") not in hide(quoted)


def test_every_key_fits_into_a_header():
    """Keys of any ids are sent, each as itself; those that a header can carry are sent as they are."""
    keys = ["t.1:a", "a b", " a", "a ", "\u00dc.1:a", "%C3%9C.1:a", "a\r\nX: y", "a\0", "", "utf-8''a%20", "utf-8''"]
    sent = [_in_a_header(key) for key in keys]
    assert sent[:2] == keys[:2]
    assert len(set(sent)) == len(keys)
    assert all(text.isascii() and text.isprintable() and text.strip() == text for text in sent)
