"""The command line: its help is what it was, and what goes wrong is told with an exit code of its own."""

from __future__ import annotations

import functools
import json
import os
import random
import socket
import sys
from pathlib import Path

import apsw
import attrs
import pytest
import trio
from trio.testing import MockClock, memory_stream_pair

from reference_runtime import Client, Patience, Server, Unreachable, cli
from reference_runtime.__main__ import COMMANDS, main, worker
from reference_runtime.cli import say
from reference_runtime.cli_options import parser
from reference_runtime.model import Grant, Json, Policy, Refusal
from reference_runtime.retries import backoff_ns
from reference_runtime.rpc import Lines
from reference_runtime.schema import SCHEMA_VERSION
from tests.asking_rig import Asking, asking
from tests.runtime_plans import work_off
from tests.runtime_rig import MS, approve, call, plan, wait


@pytest.mark.parametrize("command", [[], *([one] for one in COMMANDS)])
def test_help(command, capsys, snapshot, monkeypatch):
    """The wording of every help page is held."""
    monkeypatch.setenv("COLUMNS", "100")
    with pytest.raises(SystemExit) as left:
        main([*command, "--help"])
    assert left.value.code == 0
    assert capsys.readouterr().out == snapshot


_MARKS = [
    "from reference_runtime.workflow import workflow",
    "from reference_runtime.evolution import transform",
]


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["doctor", "--store", "nowhere.db"], "store-missing: nowhere.db does not exist"),
        (["serve", "--store", "no/folder/s.db"], "store-missing"),
        (["worker", "--services", "ftp://x"], "bad-setting: services address 'ftp://x'; expected http://host:port"),
        (["doctor", "--store", "empty.db"], "store-missing: empty.db does not exist, or is empty"),
        (["serve", "--store", "."], "store-missing: . is a folder; expected the name of a file"),
        (
            ["serve", "--store", "s.db", "--lease", "100ms", "--commit-delay", "26ms"],
            "bad-setting: a commit delay of 26ms; with a lease of 100ms it may be at most 25ms, so that answers come in time;",
        ),
        (["serve", "--store", "n" * 300], "is no place for a store: [Errno 36] File name too long"),
        (["worker", "--services", "http://x:y"], "bad-setting: services address 'http://x:y': Port could not be cast"),
        (["submit", "t", "nowhere.json"], "plan-unreadable: nowhere.json: No such file or directory"),
        (["submit", "t", "deep.json"], "bad-plan: deep.json: it is nested more than"),
        (["submit", "t", "list.json"], "bad-plan: list.json is []; expected an object: a plan, or a workflow"),
        (
            ["worker", "--services", "http://x:1", "--workflows", "single.py"],
            "no-workflows: single.py cannot be imported: a module is named without .py and its folder: single",
        ),
        (
            ["worker", "--services", "http://x:1", "--workflows", "sngle"],
            "cannot be imported: ModuleNotFoundError: No module named 'sngle'; looked for in ",
        ),
        (
            ["worker", "--services", "http://x:1", "--workflows", "needy"],
            "no-workflows: needy cannot be imported: ModuleNotFoundError: No module named 'nowhere_to_be_found'\n",
        ),
        (["submit", "t", "twice.json"], "bad-plan: twice.json: the field 'version' is there twice"),
        (
            ["worker", "--services", "http://x:1", "--workflows", "raising"],
            "no-workflows: raising cannot be imported: ZeroDiv",
        ),
        (["worker", "--services", "http://x:1", "--workflows", ""], "no-workflows"),
        (
            ["serve", "--store", "s.db", "--transforms", "raising"],
            "no-transforms: raising cannot be imported: ZeroDivision",
        ),
        (
            ["worker", "--services", "http://x:1", "--workflows", "doubled"],
            "two-workflows: doubled: 'one' names two functions",
        ),
        (
            ["worker", "--services", "http://x:1", "--workflows", "single", "--workflows", "other"],
            "two-workflows: other: 'two' names two functions",
        ),
        (
            ["serve", "--store", "s.db", "--transforms", "single", "--transforms", "other"],
            "two-transforms: other: 'same' names two functions",
        ),
    ],
)
def test_a_refusal_is_one_line_and_exit_1(argv, said, capsys, tmp_path, monkeypatch):
    """What cannot be is said on standard error, with nothing on standard output."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "deep.json").write_text("[" * 100_000)
    (tmp_path / "twice.json").write_text('{"version": 1, "version": 1}')
    (tmp_path / "list.json").write_text("[]")
    (tmp_path / "needy.py").write_text("import nowhere_to_be_found")
    (tmp_path / "raising.py").write_text("1 / 0")
    for name, functions in {"doubled": ("one", "one"), "single": ("two",), "other": ("two",)}.items():
        marked = [f"n{n} = workflow({one!r})(lambda ctx, _, n={n}: n)" for n, one in enumerate(functions)]
        lines = [*_MARKS, *marked, "same = transform('same')(lambda state: state)"]
        (tmp_path / f"{name}.py").write_text("\n".join(lines))
    (tmp_path / "empty.db").touch()
    assert main(argv) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert said in err


def test_a_server_is_given_its_times(tmp_path, monkeypatch):
    """Those of its command line."""
    given: dict[str, object] = {}

    def server(_store: object, **more: object) -> None:
        given.update(more)
        raise Refusal("enough", "it need not be up")

    monkeypatch.setattr("reference_runtime.__main__.Server", server)
    times = ["--lease", "2s", "--commit-delay", "5ms"]
    assert main(["serve", "--store", str(tmp_path / "s.db"), "--listen", "127.0.0.1:0", *times]) == 1
    assert (given["lease_ns"], given["commit_delay_ns"]) == (2000 * MS, 5 * MS)


def test_a_place_that_is_taken_is_told_with_the_option_that_names_another(capsys, tmp_path, monkeypatch):
    """In words, without the number of the error."""
    monkeypatch.chdir(tmp_path)
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        place = f"127.0.0.1:{other.getsockname()[1]}"
        assert main(["serve", "--store", "s.db", "--listen", place]) == 1
    err = capsys.readouterr().err
    assert f"cannot-listen: {place}: Address already in use; --listen takes another place" in err
    assert list(tmp_path.iterdir()) == []


def test_a_host_that_nobody_is_called_by_is_told_at_once(capsys, monkeypatch):
    """No patience mends a name; and what a refused connection was refused with is told when patience ends."""
    monkeypatch.setattr(cli, "PATIENCE_NS", 50 * MS)
    assert main(["status", "t", "--server", "127.0.0.1:1"]) == 3
    assert "no answer from 127.0.0.1:1 within 0.05 s ([Errno 111] Error connecting to" in capsys.readouterr().err
    monkeypatch.setattr(cli, "PATIENCE_NS", 3600 * 1000 * MS)
    assert main(["status", "t", "--server", "nohost.invalid:7411"]) == 3
    assert "status: there is no host of the name 'nohost.invalid'" in capsys.readouterr().err


@pytest.mark.parametrize(
    "argv",
    [
        ["status"],
        ["status", "t", "--server", "here"],
        ["status", "t", "--server", "127.0.0.1:65536"],
        ["events", "t", "--after", "-1"],
        ["tasks", "--limit", "0"],
        ["tasks", "--state", "sleeping"],
        ["pause"],
        ["signal", "t", "go", "--payload", "[1]"],
        ["signal", "t", "go", "--payload", "[" * 100_000],
        ["serve", "--store", "s.db", "--lease-ns", "0"],
        ["serve", "--store", "s.db", "--lease-ns", "9" * 5_000],
        ["serve", "--store", "s.db", "--commit-delay", "101ms"],
        ["serve", "--store", "s.db", "--commit-delay-ns", "100000001"],
        ["serve", "--store", "s.db", "--tasks-max", "-1"],
        ["serve", "--store", "s.db", "--tries-max", "0"],
        ["serve", "--store", "s.db", "--approver", ""],
        ["serve", "--store", "s.db", "--lookups-max", "0"],
        ["serve", "--store", "s.db", "--deaths-max", "0"],
        ["serve", "--store", "s.db", "--backoff-max-ns", "0"],
        ["worker", "--services", "http://x:1", "--slots", "0"],
        ["worker", "--services", "http://x:1", "--grace-ns", "-1"],
        ["fly"],
    ],
)
def test_usage_is_exit_2(argv, capsys):
    """A command line that cannot be read is a usage error."""
    with pytest.raises(SystemExit) as left:
        main(argv)
    assert left.value.code == 2
    assert "usage:" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "approvers"),
    [
        ([], ("alice",)),
        (["--approver", "bob"], ("bob",)),
        (["--approver", "bob", "--approver", "carol"], ("bob", "carol")),
    ],
)
def test_a_server_knows_who_may_decide(argv, approvers, capsys, tmp_path, monkeypatch):
    """Who is named, and the default only where nobody is."""
    assert _policy(argv, tmp_path, monkeypatch).approvers == approvers


@pytest.mark.parametrize(
    ("argv", "tries", "backoff_ns"),
    [([], 1000, 60 * 10**9), (["--tries-max", "7", "--backoff-max-ns", "5000000000"], 7, 5 * 10**9)],
)
def test_a_server_knows_how_long_it_tries(argv, tries, backoff_ns, tmp_path, monkeypatch):
    """Up to a minute between two tries where nothing is said, and otherwise as the options say."""
    policy = _policy(argv, tmp_path, monkeypatch)
    assert (policy.tries_max, policy.backoff_ns_max) == (tries, backoff_ns)


@pytest.mark.parametrize(
    ("argv", "lookups", "deaths"), [([], 1000, 5), (["--lookups-max", "7", "--deaths-max", "2"], 7, 2)]
)
def test_a_server_knows_how_long_it_asks_and_what_is_poison(argv, lookups, deaths, tmp_path, monkeypatch):
    """As many questions as calls where nothing is said, and otherwise as the options say."""
    policy = _policy(argv, tmp_path, monkeypatch)
    assert (policy.lookups_max, policy.deaths_max) == (lookups, deaths)


def test_an_outage_of_eight_hours_is_outlasted(tmp_path, monkeypatch):
    """A receiver that is out for eight hours is still tried, or asked, as it comes back, however chance falls."""
    policy = _policy([], tmp_path, monkeypatch)
    for most in (policy.tries_max, policy.lookups_max):
        waits = (backoff_ns(tries, policy, _Hasty()) for tries in range(1, most))
        assert sum(waits) > 8 * 3600 * 10**9


class _Hasty(random.Random):
    """Chance that makes every wait as short as it can be."""

    def randrange(self, *_: object) -> int:
        return 0


def _policy(argv: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> Policy:
    """By which policy `serve` opens its store."""
    seen: list[Policy] = []

    async def serve(server: Server, *_: object, **__: object) -> None:
        seen.append(server.store.policy)
        raise KeyboardInterrupt

    monkeypatch.setattr("reference_runtime.__main__.Server.serve_on", serve)
    assert main(["serve", "--store", str(folder / "s.db"), "--listen", "127.0.0.1:0", *argv]) == 130
    return seen[0]


def test_a_server_that_is_not_there_is_exit_3(capsys, monkeypatch):
    """Nobody answering is told apart from a refusal, with a hint."""
    monkeypatch.setattr("reference_runtime.cli.PATIENCE_NS", 10_000_000)
    assert main(["status", "t", "--server", "127.0.0.1:1"]) == 3
    assert "python -m reference_runtime serve" in capsys.readouterr().err


def test_doctor_reads_a_store(tmp_path, capsys):
    """Settings and integrity of a store that nobody serves."""
    from reference_runtime import Store

    path = str(tmp_path / "s.db")
    store = Store.open(path)
    store.submit("t", plan(call("a")))
    store.close()
    assert main(["doctor", "--store", path]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["schema"], said["integrity"], said["journal_mode"]) == (SCHEMA_VERSION, "ok", "wal")


def test_a_full_disk_is_told_with_its_store(tmp_path, capsys, monkeypatch):
    """What the server stops over names the store and says what to do; its last words are not a traceback of the clean-up."""

    def full(*_, **__):
        raise apsw.FullError("database or disk is full")

    monkeypatch.setattr("reference_runtime.__main__.Server.serve_on", full)
    path = tmp_path / "s.db"
    assert main(["serve", "--store", str(path), "--listen", "127.0.0.1:0"]) == 1
    said = f"error: store-full: {path}: its disk is full; nothing was acknowledged that is not in it; make room there"
    assert said in capsys.readouterr().err


# -- asking a server


def test_commands_show_their_dispositions(tmp_path, capsys):
    """A task is paused, resumed and paused again, and stopped; what it was told is in its journal."""

    async def program(ask: Asking, server: Server) -> None:
        server.store.submit("t", plan(call("a")))
        for command, paused in (("pause", True), ("resume", False), ("pause", True)):
            assert await ask.one(command, "t") == {"disposition": "accepted"}
            assert (await ask.one("status", "t"))["paused"] is paused
        assert await ask.one("retry", "t") == {"disposition": "nothing-parked"}
        assert await ask.one("cancel", "t", "--id", "stop") == {"disposition": "accepted"}
        assert await ask.one("cancel", "t", "--id", "stop") == {"disposition": "accepted"}
        late = {"disposition": "too-late", "why": "the task has ended: cancelled"}
        assert await ask.one("cancel", "t") == late
        audit = (await ask.one("journal", "t"))["audit"]
        said = [(one["action"], one["detail"]) for one in audit if one["authority"].startswith("command")]
        told = [("pause", "accepted"), ("unpause", "accepted"), ("pause", "accepted")]
        told += [("retry", "nothing-parked"), ("cancel", "accepted")]
        assert said == [*told, ("cancel", "too-late")]
        assert await ask.one("artifacts", "t") == {"artifacts": []}

    asking(tmp_path, capsys, program)


def test_an_id_means_one_command(tmp_path, capsys):
    """An id that paused a task cannot stop it."""

    async def program(ask: Asking, server: Server) -> None:
        server.store.submit("t", plan(call("a")))
        assert await ask.one("pause", "t", "--id", "1") == {"disposition": "accepted"}
        assert await ask("cancel", "t", "--id", "1") == (1, [])

    asking(tmp_path, capsys, program)


QUESTIONS = ["status", "events", "journal", "artifacts", "cancel", "pause", "resume"]


def test_an_unknown_task_is_exit_1(tmp_path, capsys):
    """Whatever is asked about a task that nobody submitted: one line names it, and there is no data."""

    async def program(ask: Asking, _: Server) -> None:
        words = [["signal", "t", "go"], ["decide", "t", "ok", "approve", "--actor", "alice"]]
        for argv in [*([one, "t"] for one in QUESTIONS), *words]:
            command = functools.partial(main, [*argv, "--server", f"127.0.0.1:{ask.port}"])
            assert await trio.to_thread.run_sync(command) == 1
            out, err = capsys.readouterr()
            assert out == "", argv
            assert err.startswith("error: unknown-task: no task 't'"), argv
            assert err.count("\n") == 1

    asking(tmp_path, capsys, program)


@pytest.mark.parametrize("operation", ["ok", "o" * 256])
def test_what_is_asked_again_can_be_decided_again(tmp_path, capsys, operation):
    """In the same words, whatever the approval is called; what was decided and is not asked again is a duplicate."""

    async def program(ask: Asking, server: Server) -> None:
        server.store.submit("t", plan(approve(operation, "a"), call("a")))
        words = ["decide", "t", operation, "approve", "--actor", "alice"]
        assert await ask(*words) == (0, [{"disposition": "approved"}])
        assert await ask(*words) == (0, [{"disposition": "duplicate"}])
        (lease,) = server.store.claim("w", [], 1)
        assert isinstance(lease, Grant)
        server.store.dispatch(attrs.evolve(lease, granted={operation: False}))  # authority was withdrawn meanwhile
        assert [one["state"] for one in (await ask("status", "t"))[1][0]["approvals"]] == ["pending"]
        assert await ask(*words) == (0, [{"disposition": "approved"}])
        assert [one["state"] for one in (await ask("status", "t"))[1][0]["approvals"]] == ["approved"]

    asking(tmp_path, capsys, program)


def test_events_are_lines_and_the_last_is_the_cursor(tmp_path, capsys, monkeypatch):
    """All pages are shown; who comes back with the cursor sees the rest and nothing twice."""
    monkeypatch.setattr("reference_runtime.events.PAGE", 2)

    async def program(ask: Asking, server: Server) -> None:
        server.store.submit("t", plan(call("a"), call("b"), wait("w", "go")))
        work_off(server.store)
        code, (*events, last) = await ask("events", "t")
        kinds = ["admitted", "dispatched", "succeeded", "dispatched", "succeeded"]
        assert (code, [event["kind"] for event in events]) == (0, kinds)
        assert [event["cursor"] for event in events] == [1, 2, 3, 4, 5]
        assert last["next"] == 5
        assert [frame["kind"] for frame in last["control"]] == ["heartbeat", "idle"]
        server.store.signal("t", "1", "go", {"nonce": "n"})
        code, (*events, last) = await ask("events", "t", "--after", "5")
        assert [event["cursor"] for event in events] == [6, 7]
        assert (last["next"], [frame["kind"] for frame in last["control"]]) == (7, ["end"])
        assert await ask("events", "t", "--after", "8") == (1, [])

    asking(tmp_path, capsys, program)


def test_tasks_are_lines_and_the_last_is_the_id_to_come_back_with(tmp_path, capsys, monkeypatch):
    """As many as asked for, over as many pages as that takes, also where nothing is on one; then where it went on."""
    monkeypatch.setattr("reference_runtime.listing.LOOKED_AT_MAX", 1)

    async def program(ask: Asking, server: Server) -> None:
        for id_ in "abcd":
            server.store.submit(id_, plan(call("x") if id_ in "ad" else wait("w", "go")))
        code, (*rows, last) = await ask("tasks")
        assert (code, [one["task"] for one in rows], last) == (0, ["a", "b", "c", "d"], {"next": None})
        assert rows[1] == {
            "task": "b",
            "state": "waiting",
            "phase": "waiting",
            "reason": None,
            "on": "go",
            "approvals": [],
        }
        code, (*rows, last) = await ask("tasks", "--state", "running")
        assert (code, [one["task"] for one in rows], last) == (0, ["a", "d"], {"next": None})
        code, (*rows, last) = await ask("tasks", "--limit", "3")
        assert (code, [one["task"] for one in rows], last) == (0, ["a", "b", "c"], {"next": "c"})
        code, (*rows, last) = await ask("tasks", "--after", "b", "--limit", "1")
        assert (code, [one["task"] for one in rows], last) == (0, ["c"], {"next": "c"})
        code, (*rows, last) = await ask("tasks", "--state", "done")
        assert (code, rows, last) == (0, [], {"next": None})

    asking(tmp_path, capsys, program)


def test_following_ends_with_the_task(tmp_path, capsys, monkeypatch):
    """With --follow what happens later is shown too, until nothing more can come."""
    server_events, asked = Server.events, trio.Event()

    async def noted(self, task, after):
        page = await server_events(self, task, after)
        if not page["events"]:
            asked.set()
        return page

    monkeypatch.setattr(Server, "events", noted)

    async def program(ask: Asking, server: Server) -> None:
        found: list[Json] = []

        async def follow() -> None:
            code, lines = await ask("events", "t", "--follow")
            assert code == 0
            found.extend(lines)

        server.store.submit("t", plan(wait("w", "go")))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(follow)
            await asked.wait()  # it has seen all there was
            server.store.signal("t", "1", "go", {"nonce": "n"})
        assert [one.get("kind") for one in found] == ["admitted", "succeeded", "succeeded", None]
        assert found[-1]["next"] == 3

    asking(tmp_path, capsys, program)


def test_a_reader_who_is_gone_is_no_error(monkeypatch):
    """Writing to a pipe that nobody reads is told to the command, and leaves nothing to fail at the end."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as out:
        monkeypatch.setattr(sys, "stdout", out)
        assert not say({"cursor": 1})
        out.flush()


# -- a server that is silent


def test_a_silence_is_told_once_for_each(monkeypatch):
    """A long silence is told once, a short one never; the next long one is told again."""
    told: list[float] = []

    async def run():
        async def answer(stream):
            lines = Lines(stream)
            while (line := await lines.receive()) is not None:
                if not is_silent:
                    await lines.send({"id": json.loads(line)["id"], "ok": {}})

        async def connect(host, port):
            if is_silent:
                raise OSError("refused")
            ours, theirs = memory_stream_pair()
            nursery.start_soon(answer, theirs)
            return ours

        monkeypatch.setattr("reference_runtime.client.connect", connect)
        async with trio.open_nursery() as nursery, Client("h", 1, on_silence=told.append) as client:
            for seconds, count in ((30, 1), (4, 1), (4, 1), (30, 2)):
                is_silent = True
                with pytest.raises(Unreachable):
                    await client.call("ping", {}, Patience(total_ns=seconds * 10**9))
                assert len(told) == count
                is_silent = False
                await client.call("ping", {})

    trio.run(run, clock=MockClock(autojump_threshold=0))
    assert all(5 <= seconds < 8 for seconds in told)


@pytest.mark.parametrize("log", ["off", "info"])
def test_a_worker_without_a_server_says_so_once(log, capsys):
    """On standard error: a line for people, or with a log, whose lines are all JSON, an event of it."""
    argv = ["worker", "--server", "127.0.0.1:1", "--services", "lines://127.0.0.1:1", "--log", log, "--grace-ns", "0"]

    async def run():
        with trio.move_on_after(30):
            await worker(parser(COMMANDS).parse_args(argv))

    trio.run(run, clock=MockClock(autojump_threshold=0))
    out, err = capsys.readouterr()
    (line,) = err.splitlines()
    assert out == ""
    if log == "off":
        assert line.startswith("warning: no answer from 127.0.0.1:1 for ")
    else:
        said = json.loads(line)
        assert (said["event"], said["server"]) == ("unanswering", "127.0.0.1:1")
        assert said["seconds"] >= 5
