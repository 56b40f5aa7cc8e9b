"""Who waits for a task outlasts a restart of the server, misses nothing, sees nothing twice, and gives up in the end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
from trio.testing import MockClock, memory_stream_pair

from reference_runtime import Client, Refusal, Unreachable
from reference_runtime.__main__ import COMMANDS
from reference_runtime.cli_options import parser
from reference_runtime.events import frames
from reference_runtime.model import Json
from reference_runtime.rpc import Lines
from tests.runtime_rig import DEADLINE_S, call, plan, wait

DONE = {"state": "done", "missing": None}


@attrs.define
class Engine:
    """A server that is away between two moments; `answers` says what it answers to a verb, asked for the nth time."""

    away: tuple[float, float]
    answers: Callable[[str, int, Json], Json]
    asked: list[Json] = attrs.field(factory=list)

    async def connect(self, nursery: trio.Nursery) -> trio.abc.Stream:
        ours, theirs = memory_stream_pair()
        nursery.start_soon(self._answer, Lines(theirs))
        return ours

    async def _answer(self, lines: Lines) -> None:
        while (line := await lines.receive()) is not None:
            if self.away[0] <= trio.current_time() < self.away[1]:
                await lines.stream.aclose()
                return
            request = json.loads(line)
            self.asked.append(request)
            nth = sum(one["verb"] == request["verb"] for one in self.asked)
            await lines.send({"id": request["id"], "ok": self.answers(request["verb"], nth, request["params"])})


def _ask(engine: Engine, monkeypatch: pytest.MonkeyPatch, *argv: str) -> int | None:
    """Run one command against an engine, whose clock begins at 0."""
    options = parser(COMMANDS).parse_args(argv)

    async def run() -> int | None:
        async with trio.open_nursery() as nursery:

            async def connect(*_: object) -> trio.abc.Stream:
                return await engine.connect(nursery)

            monkeypatch.setattr("reference_runtime.client.connect", connect)
            code: int | None = await options.command(options)
            nursery.cancel_scope.cancel()
            return code

    try:
        return trio.run(run, clock=MockClock(autojump_threshold=0))
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None


def _submitted(verb: str, nth: int, _: Json) -> Json:
    if verb == "submit":
        return {"task": "t", "attempt": "t.1"}
    return DONE if trio.current_time() > 100 else {"state": "running", "missing": None}


def _told(_: str, __: int, params: Json) -> Json:
    """Ten events at a time from a stream of fifty, the last of them late."""
    last = 50 if trio.current_time() > 100 else 30
    cursors = range(params["after"] + 1, min(params["after"] + 10, last) + 1)
    is_read = (cursors[-1] if cursors else params["after"]) == last
    kinds = frames("succeeded" if last == 50 else None, "running", is_read=is_read)
    control = [{"kind": kind, "version": 1} for kind in kinds]
    return {
        "events": [{"cursor": one} for one in cursors],
        "next": cursors[-1] if cursors else params["after"],
        "control": control,
    }


@pytest.fixture
def document(tmp_path: Path) -> str:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan(call("a"))))
    return str(path)


def _lines(text: str) -> list[Json]:
    return [json.loads(line) for line in text.splitlines()]


def test_who_waits_outlasts_what_who_asks_does_not(document, monkeypatch, capsys):
    """50 s of silence are outlasted once the server had answered; whoever asks one that is not there hears so after 10 s."""
    assert _ask(Engine((1, 51), _submitted), monkeypatch, "submit", "t", document, "--wait") == 0
    out, err = capsys.readouterr()
    assert (_lines(out), err.count("warning: no answer from 127.0.0.1:7411 for")) == ([DONE], 1)
    with pytest.raises(Unreachable, match=r"submit: no answer from 127\.0\.0\.1:7411 within 10 s"):
        _ask(Engine((0, 51), _submitted), monkeypatch, "submit", "t", document, "--wait")


@pytest.mark.parametrize(
    ("more", "away_s", "within"),
    [([], 61, "60 s"), (["--patience", "250ms"], 2, "0.25 s"), (["--patience", "2m"], 121, "120 s")],
)
def test_patience_ends_with_what_to_do(document, monkeypatch, capsys, more, away_s, within):
    """A bound of one's own is taken, shorter or longer; the message says how to go on."""
    engine = Engine((1, 1 + away_s), _submitted)
    with pytest.raises(Unreachable, match=f"within {within}") as told:
        _ask(engine, monkeypatch, "submit", "t", document, "--wait", *more)
    assert str(told.value).endswith("; the task is kept: submit it again with --wait to go on waiting")
    assert capsys.readouterr().out == ""


def test_a_stream_goes_on_at_its_cursor(monkeypatch, capsys):
    """After a silence of 50 s the next event is the one after the last."""
    engine = Engine((1, 51), _told)
    _ask(engine, monkeypatch, "events", "t", "--follow")
    *events, last = _lines(capsys.readouterr().out)
    assert [one["cursor"] for one in events] == list(range(1, 51))
    assert last["next"] == 50
    with pytest.raises(Unreachable, match="; go on with --after 30, nothing before it was left out"):
        _ask(Engine((1, 62), _told), monkeypatch, "events", "t", "--follow")
    assert [one["cursor"] for one in _lines(capsys.readouterr().out)] == list(range(1, 31))


def test_who_waits_for_what_is_there_no_more_is_told(document, monkeypatch, capsys):
    """A server that comes back with another store knows nothing of the task, and will never say that it has ended."""

    def replaced(verb: str, nth: int, params: Json) -> Json:
        if verb == "status" and 10 < nth < 50:
            return {"state": "unknown", "missing": None}
        return _submitted(verb, nth, params)

    with pytest.raises(Refusal, match=r"unknown-task: no task 't' at 127\.0\.0\.1:7411"):
        _ask(Engine((0, 0), replaced), monkeypatch, "submit", "t", document, "--wait")
    assert capsys.readouterr().out == ""


def test_an_answer_may_take_long(monkeypatch, capsys):
    """What there is to say of a long task is waited for longer and longer, and not asked for again and again as it comes."""

    class Slow(Engine):
        async def _answer(self, lines: Lines) -> None:
            while (line := await lines.receive()) is not None:
                self.asked.append(json.loads(line))
                await trio.sleep(3.9)
                with suppress(trio.BrokenResourceError):  # nobody waits for it any more
                    await lines.send({"id": self.asked[-1]["id"], "ok": {"audit": []}})

    engine = Slow((0, 0), _submitted)
    _ask(engine, monkeypatch, "journal", "t")
    assert (_lines(capsys.readouterr().out), len(engine.asked)) == ([{"audit": []}], 2)
    with pytest.raises(Unreachable, match="within 5 s"):
        _ask(Slow((0, 0), _submitted), monkeypatch, "journal", "t", "--patience", "5s")


def test_a_worker_has_no_patience_to_be_given():
    """It never gives up on its server."""
    with pytest.raises(SystemExit):
        parser(COMMANDS).parse_args(["worker", "--services", "http://x:1", "--patience", "1s"])


# -- real processes


@contextmanager
def _process(*argv: str) -> Any:
    env = {**os.environ, "PYTHONWARNINGS": "error", "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "reference_runtime", *argv]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as one:
        try:
            yield one
        finally:
            one.kill()


def _serve(path: Path, port: int = 0) -> AbstractContextManager[subprocess.Popen[str]]:
    return _process("serve", "--store", str(path), "--listen", f"127.0.0.1:{port}", "--lease", "200ms")


def _port(server: subprocess.Popen[str]) -> int:
    assert server.stdout is not None
    return int(json.loads(server.stdout.readline())["listening"].rpartition(":")[2])


def _kill(server: subprocess.Popen[str]) -> None:
    server.send_signal(signal.SIGKILL)
    server.wait()


def _submit(port: int, document: Json) -> None:
    async def run() -> None:
        async with Client("127.0.0.1", port) as client:
            await client.submit("t", document)

    trio.run(run)


def _signal(port: int, name: str) -> None:
    async def run() -> None:
        async with Client("127.0.0.1", port) as client:
            await client.signal("t", name, name, {"nonce": name})

    trio.run(run)


@pytest.mark.slow
def test_events_are_followed_through_a_server_that_is_killed(tmp_path):
    """The stream has every cursor once, of before and after, and ends with the task."""
    store = tmp_path / "s.db"
    with _serve(store) as first:
        port = _port(first)
        _submit(port, plan(wait("w", "go"), wait("v", "on")))
        with _process("events", "t", "--follow", "--server", f"127.0.0.1:{port}") as reader:
            assert json.loads(reader.stdout.readline())["cursor"] == 1  # it has seen what there was
            _kill(first)
            with _serve(store, port) as second:
                _port(second)
                _signal(port, "go")
                assert json.loads(reader.stdout.readline())["cursor"] == 2
                _kill(second)
                with _serve(store, port) as third:
                    _port(third)
                    _signal(port, "on")
                    out, err = reader.communicate(timeout=DEADLINE_S)
    *events, last = _lines(out)
    assert ([one["cursor"] for one in events], last["next"], reader.returncode) == ([3, 4], 4, 0), err


@pytest.mark.slow
def test_the_end_is_waited_for_through_a_server_that_is_killed(tmp_path):
    """One line, and exit code 0, as if nothing had been."""
    store, path = tmp_path / "s.db", tmp_path / "plan.json"
    path.write_text(json.dumps(plan(wait("w", "go"))))
    with _serve(store) as first:
        port = _port(first)
        _submit(port, json.loads(path.read_text()))
        with _process("submit", "t", str(path), "--wait", "--server", f"127.0.0.1:{port}") as waiting:
            _kill(first)
            with _serve(store, port) as second:
                _port(second)
                _signal(port, "go")
                out, err = waiting.communicate(timeout=DEADLINE_S)
    (told,) = _lines(out)
    assert (told["state"], told["result"], waiting.returncode) == ("done", {"w": "go"}, 0), err


@pytest.mark.slow
def test_patience_that_ends_is_exit_3(tmp_path):
    """With the cursor to come back with; what was shown before stays shown."""
    with _serve(tmp_path / "s.db") as server:
        port = _port(server)
        _submit(port, plan(wait("w", "go")))
        words = ("events", "t", "--follow", "--patience", "200ms", "--server", f"127.0.0.1:{port}")
        with _process(*words) as reader:
            assert json.loads(reader.stdout.readline())["cursor"] == 1
            _kill(server)
            out, err = reader.communicate(timeout=DEADLINE_S)
    assert (out, reader.returncode) == ("", 3)
    assert f"error: events: no answer from 127.0.0.1:{port} within 0.2 s" in err
    assert "; go on with --after 1, nothing before it was left out; is `python -m reference_runtime serve`" in err
