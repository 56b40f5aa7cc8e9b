"""The command line, where something was misspelt, comes too early or is known to nobody: what is said beside the refusal."""

from __future__ import annotations

import pytest
import trio

from reference_runtime import Server
from reference_runtime.__main__ import main
from tests.asking_rig import Asking, asking
from tests.runtime_rig import call, finish, plan, wait


@pytest.mark.parametrize(
    ("argv", "usage", "said"),
    [
        (
            ["worker", "--services", "http://x:1", "--lease", "2"],
            "usage: reference_runtime worker [-h] [--server",
            "reference_runtime worker: error: unrecognized arguments: --lease 2\n",
        ),
        (
            ["worker", "--services", "http://x:1", "--workflow_s", "x"],
            "usage: reference_runtime worker [-h] [--server",
            "unrecognized arguments: --workflow_s x; did you mean '--workflows'?",
        ),
        (["statu", "t"], "usage: reference_runtime [-h] COMMAND", "did you mean 'status'?"),
        (["decide", "t", "ok", "aprove", "--actor", "a"], "usage: reference_runtime decide", "did you mean 'approve'?"),
        (["tasks", "--state", "xyz"], "usage: reference_runtime tasks", "(choose from 'waiting', "),
        (
            ["serve", "--store", "s", "--port", "1"],
            "usage: reference_runtime serve",
            "--port 1; did you mean '--listen'?",
        ),
        (["status", "t", "--port=1"], "usage: reference_runtime status", "--port=1; did you mean '--server'?"),
        (["status", "t", "--server", "http://h:1"], "usage: ", "'http://h:1' is not host:port; leave out http://"),
        (["status", "t", "--server", "http://h:1/"], "usage: ", "'http://h:1/' is not host:port; leave out http://"),
        ([], "usage: reference_runtime [-h] COMMAND", "required: COMMAND; there are serve, worker, submit, status, "),
    ],
)
def test_a_word_that_is_none_is_told_with_its_commands_usage(argv, usage, said, capsys):
    """And with what was probably meant."""
    with pytest.raises(SystemExit) as left:
        main(argv)
    assert left.value.code == 2
    err = capsys.readouterr().err
    assert err.startswith(usage)
    assert said in err


def test_a_plan_that_is_refused_is_told_with_its_file(tmp_path, capsys):
    """By whoever found the mistake, with what was probably meant."""

    async def program(ask: Asking, server: Server) -> None:
        path = tmp_path / "letter.json"
        for text, said in (
            ('{"version": 1, "workflow": "a", "inptu": 1}', "a workflow has no inptu; it has "),
            ('{"version": 1, "workflow": "a", "inptu": 1}', "; did you mean 'input'?"),
            ('{"version": 1, "workflow": "a", "code": 1}', "workflow 'a': code must be str; got 1"),
            ('{"version": 1, "root": {}, "code": 1}', f"{path}: plan: code must be str; got 1"),
            ('{"version": 1,', "is not JSON: Expecting property name"),
            ('{"workflow": "a"}', "version is missing; expected version 1 beside workflow 'a'"),
            ('{"version": 1, "workflo": "a"}', "; did you mean 'workflow'?"),
            (
                '{"version": 1}',
                "a plan has version 1 and a root, a workflow version 1 and a workflow; got {'version': 1}",
            ),
        ):
            path.write_text(text)
            err = await ask.refused("submit", "t", str(path))
            assert err.startswith(f"error: bad-plan: {path}")
            assert said in err

    asking(tmp_path, capsys, program)


@pytest.mark.parametrize("command", [["doctor"], ["resume", "t"], ["settle", "t", "a", "happened", "--actor", "b"]])
def test_who_gets_no_answer_is_told_by_the_command_that_was_typed(command, capsys):
    """And not by the verb that it asks."""
    assert main([*command, "--server", "127.0.0.1:1", "--patience", "50ms"]) == 3
    assert capsys.readouterr().err.startswith(f"error: {command[0]}: no answer from 127.0.0.1:1 within 0.05 s (")


def test_something_else_that_answers_is_told(capsys):
    """Such as a web server, with what it says."""

    async def web(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        await stream.send_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async def run() -> int:
        async with trio.open_nursery() as nursery:
            listeners = await nursery.start(trio.serve_tcp, web, 0)
            port = listeners[0].socket.getsockname()[1]
            argv = ["doctor", "--server", f"127.0.0.1:{port}", "--patience", "300ms"]
            code = await trio.to_thread.run_sync(main, argv)
            nursery.cancel_scope.cancel()
        return code

    assert trio.run(run) == 3
    assert "(something answers there that is no such server: b'HTTP/1.1 400 Bad Request" in capsys.readouterr().err


def test_a_signal_that_nothing_waits_for_is_kept_with_a_word(tmp_path, capsys):
    """On standard error: what the task waits for instead, or that it has ended blocked."""

    async def program(ask: Asking, server: Server) -> None:
        server.store.submit("t", plan(wait("w", "address")))
        assert await ask.warned("signal", "t", "addres") == (
            "warning: 't' waits for 'address'; 'addres' is kept until something waits for that\n"
        )
        assert await ask.warned("signal", "t", "address") == ""
        server.store.submit("b", plan(call("a", "mailer")))
        finish(server.store, "unknown")
        assert await ask.warned("signal", "b", "go") == (
            "warning: 'b' has ended blocked; nothing takes 'go' unless `settle` lets it go on\n"
        )

    asking(tmp_path, capsys, program)


def test_what_nobody_knows_is_settled_from_the_command_line(tmp_path, capsys):
    """By a name, once per id; where nothing is unknown that is refused."""

    async def program(ask: Asking, server: Server) -> None:
        server.store.submit("t", plan(call("a", "mailer")))
        finish(server.store, "unknown")
        word = ("settle", "t", "a", "happened", "--actor", "ada", "--id", "v")
        assert await ask.one(*word) == await ask.one(*word) == {"disposition": "settled", "word": "happened"}
        assert (await ask.one("status", "t"))["result"] == {"a": "v"}
        err = await ask.refused("settle", "t", "a", "never-happened", "--actor", "ada")
        assert err == "error: not-unresolved: operation 'a' is reconciled; unresolved: none\n"

    asking(tmp_path, capsys, program)
