"""The adapter helper: protocol without I/O, services over HTTP, and a real process on its stdio."""

from __future__ import annotations

import ast
import contextlib
import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import trio
import trio.testing

from conformance.helper import simkit_adapter as helper
from tests.adapter_rig import HELPER, Services, call, par, plan, seq, sleep, wait


class Fake:
    """An adapter whose verbs answer what the test wants."""

    def start(self, run, plan, key):
        if key == "no":
            raise helper.Refused("not today")
        if key == "perhaps":
            raise helper.Indefinite("who knows")
        if key == "crash":
            raise ZeroDivisionError("1/0")
        return {"started": run}

    def status(self, run):
        return {"unknown": "unknown", "odd": {1, 2}}.get(run, {"state": "done", "result": {"a": "n"}})


def ask(adapter, **message):
    line = json.dumps({"seq": 7, **message}).encode()
    return json.loads(trio.run(helper.Protocol(adapter).handle, line))


def test_hello_says_who_answers():
    """Hello tells protocol and Python, and what the adapter adds; another protocol is refused."""

    class Named(Fake):
        async def hello(self):
            return {"name": "fake"}

    assert ask(Fake(), verb="hello", protocol=1)["ok"]["protocol"] == 1
    assert ask(Named(), verb="hello", protocol=1)["ok"]["name"] == "fake"
    assert ask(Fake(), verb="hello", protocol=9)["error"]["kind"] == "definite"


def test_answers_errors_and_doubts_are_told_apart(capsys):
    """A refusal is definite; doubt, and an exception nobody thought of, are indefinite, the latter with a traceback."""
    start = {"verb": "start", "run": "r", "plan": {}}
    assert ask(Fake(), **start, key="k") == {"seq": 7, "ok": {"started": "r"}}
    assert ask(Fake(), **start, key="no")["error"] == {"kind": "definite", "message": "not today"}
    assert ask(Fake(), **start, key="perhaps")["error"]["kind"] == "indefinite"
    assert capsys.readouterr().err == ""
    assert ask(Fake(), **start, key="crash")["error"] == {"kind": "indefinite", "message": "ZeroDivisionError: 1/0"}
    assert "1/0" in capsys.readouterr().err


def test_a_status_is_filled_in():
    """An adapter may answer a mere state, or leave fields out."""
    assert ask(Fake(), verb="status", run="unknown")["ok"]["state"] == "unknown"
    assert ask(Fake(), verb="status", run="r")["ok"] == {**helper._STATUS, "state": "done", "result": {"a": "n"}}


class Whole(Fake):
    """Has every optional verb, and echoes what it was asked."""

    def __getattr__(self, verb):
        if verb not in helper.VERBS:
            raise AttributeError(verb)
        return lambda **fields: {verb: fields}


@pytest.mark.parametrize("verb", [verb for verb in helper.VERBS if verb not in {"hello", "start", "status"}])
def test_an_optional_verb_is_a_method_or_a_definite_no(verb):
    """What it answers comes back as it is; an adapter without the method refuses, and the kit may rely on that."""
    fields = {name: name for name in helper.VERBS[verb]}
    assert ask(Whole(), verb=verb, **fields) == {"seq": 7, "ok": {verb: fields}}
    called = ", ".join(("self", *fields))
    refusal = {"kind": "definite", "message": f"the class Fake has no method `{verb}({called})`"}
    assert ask(Fake(), verb=verb, **fields)["error"] == refusal


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ({"verb": "sing"}, "unknown verb 'sing'; there are hello, start, status, signal, resume"),
        ({"verb": "status", "run": "r", "colour": 1, "size": 2}, "status: unknown fields colour, size; it takes run"),
        ({"verb": "signal", "run": "r", "name": "go"}, "signal: fields payload, id are missing"),
        ({"verb": "resume", "run": "r"}, "the class Fake has no method `resume(self, run)`"),
        ({"verb": "status", "run": "odd"}, "the adapter's answer is not JSON"),
    ],
)
def test_what_is_off_in_a_request_is_named(message, told):
    """A wrong request, or an answer that is no JSON, becomes an error answer with the same seq."""
    answer = ask(Fake(), **message)
    assert answer["seq"] == 7
    assert answer["error"]["message"].startswith(told)


@pytest.mark.parametrize("line", [b"garbage", b"[]", b'{"verb": "hello"}', b'{"seq": "1"}', b"\xff"])
def test_a_line_that_is_no_request_is_answered(line):
    """Garbage on the line gets a definite error, never a dead adapter."""
    assert json.loads(trio.run(helper.Protocol(Fake()).handle, line))["error"]["kind"] == "definite"


def test_streams_of_trio_fit():
    """`serve_streams` serves sync and async verbs over trio streams, whatever the chunks, until the other side closes."""

    class Slow(Fake):
        async def status(self, run):
            await trio.lowlevel.checkpoint()
            return "running"

    async def main():
        kit, adapter = trio.testing.memory_stream_pair()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(helper.serve_streams, Slow(), adapter.receive_some, adapter.send_all)
            await kit.send_all(b'{"seq": 1, "verb": "sta')
            await kit.send_all(b'tus", "run": "r"}\n{"seq": 2, "verb": "start", "run": "r", "plan": {}, "key": "k"}\n')
            received = b""
            while received.count(b"\n") < 2:
                received += await kit.receive_some()
            await kit.send_eof()
        return [json.loads(line) for line in received.splitlines()]

    status, start = trio.run(main)
    assert status["ok"]["state"] == "running"
    assert start == {"seq": 2, "ok": {"started": "r"}}


def test_an_endless_line_is_cut_off(monkeypatch):
    """A line without an end does not fill the memory."""
    monkeypatch.setattr(helper, "LINE_BYTES_MAX", 100)

    async def receive():
        return b"x" * 64

    async def send(data):
        raise AssertionError(data)

    with pytest.raises(ValueError, match="longer than 100 bytes"):
        trio.run(helper.serve_streams, Fake(), receive, send)


TREE = plan(call("a"), par("p", seq("s", call("b"), sleep("n", 1)), wait("w", "go")), par("none"), call("z"))


def test_dependencies_are_the_plans():
    """The helper reads the same order out of a plan as the kit does."""
    from scenarios.plan import Plan

    graph = Plan.from_json(TREE).dependencies()
    assert helper.dependencies(TREE) == {node: list(graph.predecessors(node)) for node in graph}


def test_open_leaves_are_those_that_may_begin():
    """A leaf is open once all before it is accepted, and until it is itself."""
    ids = lambda accepted: [op["id"] for op in helper.open_leaves(TREE, accepted)]  # noqa: E731 - three uses below
    assert ids({}) == ["a"]
    assert ids({"a": "1"}) == ["b", "w"]
    assert ids({"a": "1", "b": "2", "w": "3"}) == ["n"]
    assert ids({"a": "1", "b": "2", "w": "3", "n": "", "z": ""}) == []


def test_a_request_carries_what_the_plan_says():
    """Keys go to services that honour them, unless told otherwise; only the named answers travel along."""
    op = call("b", carries=("a",), amount=2)
    request = helper.service_request(op, "r", {"a": "n1", "x": "n2"})
    assert request["key"] == "r:b"
    assert request["carries"] == {"a": "n1"}
    assert request["params"] == {"amount": 2}
    assert helper.service_request(call("m", "mailer"), "r", {})["key"] is None
    assert helper.service_request(call("m", "mailer"), "r", {}, keyed=True)["key"] == "r:m"
    assert helper.service_request(op, "r", {"a": "1"}, keyed=False)["key"] is None
    assert helper.service_request(op, "r", {"a": "1"}, keyed="own")["key"] == "own"


@pytest.mark.parametrize(
    ("status", "error"),
    [(409, "Busy"), (422, "Rejected"), (400, "Rejected"), (503, "Unknown"), (500, "Unknown"), (302, "Unknown")],
)
def test_answers_of_services_are_told_apart(status, error):
    """Busy, rejected and unknown are three different things."""
    with pytest.raises(getattr(helper, error)):
        helper.service_answer(status, {"error": "x"})
    assert helper.service_answer(200, {"nonce": "n"}) == "n"
    with pytest.raises(helper.Unknown):
        helper.service_answer(200, {"nonce": 3})


def test_calls_reach_the_services(monkeypatch):
    """A call comes back with the nonce, a keyed one repeated with the same; a lookup finds what was applied."""
    with contextlib.closing(Services()) as services:
        monkeypatch.setenv("SIMKIT_SERVICES", services.address)
        assert helper.call(call("a"), "r", {}) == "a-1"
        assert helper.call(call("a"), "r", {}) == "a-1"
        assert services.requests == [("a", "r:a"), ("a", "r:a")]
        monkeypatch.setenv("SIMKIT_SERVICES", services.address.removeprefix("http://"))
        assert helper.lookup(call("q", "registry"), "r") is None
        assert helper.call(call("q", "registry"), "r", {}) == "q-1"
        assert helper.lookup(call("q", "registry"), "r") == "q-1"
        services.hook = lambda op, nth, barrier: 503 if barrier == "applied" else None
        with pytest.raises(helper.Unknown, match="503"):
            helper.call(call("b"), "r", {})
    with pytest.raises(helper.Unknown, match="no answer"):
        helper.call(call("c"), "r", {})


PROGRAM = """
    import asyncio, os, sys
    import simkit_adapter
    class Adapter:
        {async_}def status(self, run):
            print("noise on standard output"); os.write(1, b"more noise\\n")
            {pause}
            assert sys.stdin.read() == ""
            return "running"
    simkit_adapter.serve(Adapter())
"""


@pytest.mark.parametrize("pause", ["", "await asyncio.sleep(0)"], ids=["sync", "asyncio"])
def test_a_program_may_print_and_read(pause, tmp_path):
    """Only answers reach the kit; the program's own output goes to its error log, its input is empty; it ends with us."""
    text = textwrap.dedent(PROGRAM).format(async_="async " if pause else "", pause=pause)
    done = subprocess.run(
        [sys.executable, "-c", text],
        input=b'{"seq": 1, "verb": "status", "run": "r"}\n{"seq": 2, "verb": "status", "run": "r"}\n',
        capture_output=True,
        env={"PYTHONPATH": str(HELPER)},
        check=False,
        timeout=30,
    )
    assert [json.loads(line)["ok"]["state"] for line in done.stdout.splitlines()] == ["running", "running"]
    assert done.stderr.count(b"more noise") == 2
    assert done.returncode == 0


def test_the_helper_is_one_file_of_the_standard_library():
    """It can be copied anywhere: no import from outside the standard library, and syntax that Python 3.9 reads."""
    text = Path(helper.__file__).read_text()
    tree = ast.parse(text, feature_version=(3, 9))
    names = {
        alias.name.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names
    }
    names |= {node.module.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
    assert names <= sys.stdlib_module_names
