"""What the store shows, as people read it: a line for each, every column in its place, and nothing that a terminal obeys."""

from __future__ import annotations

from reference_runtime import Server, tables
from reference_runtime.listing import tasks
from reference_runtime.views import journal, status
from tests.asking_rig import Asking, asking
from tests.runtime_rig import approve, call, finish, plan


def test_tasks_are_a_line_each(store):
    """With what each waits for, and why it ended as it did."""
    store.submit("long-name", plan(approve("ok", "a"), call("a")))
    store.submit("t", plan(call("a", "mailer")))
    finish(store, "unknown")
    header, first, second = tables.tasks(tasks(store, "", 10, "")["tasks"])
    assert header.split() == ["TASK", "STATE", "PHASE", "ON", "APPROVALS", "REASON"]
    assert first.split() == ["long-name", "waiting", "waiting", "ok", "ok", "-"]
    assert second.split()[:3] == ["t", "blocked", "ended"]
    assert second.endswith("…")
    assert [line.index(word) for line, word in ((header, "STATE"), (first, "waiting"), (second, "blocked"))] == [11] * 3


def test_a_status_says_why_and_what_to_do_and_lists_its_operations(store):
    """In whole, and with what the task asks for."""
    store.submit("t", plan(approve("ok", "b"), call("b"), call("a", "mailer")))
    lines = tables.status("t", status(store, "t"))
    assert lines[0] == "t: waiting, on ok (waiting)"
    assert ["ok", "b", "pending"] in [line.split() for line in lines]
    assert ["b", "planned", "0", "-", "-"] in [line.split() for line in lines]
    store.submit("s", plan(call("a", "mailer")))
    finish(store, "unknown")
    standing = {**status(store, "s"), "remedy": "do\x1b[2J it"}
    assert tables.status("s", standing)[:3] == [
        "s: blocked (ended)", f"reason: {standing['reason']}", r"remedy: do\x1b[2J it"
    ]  # fmt: skip


def test_a_journal_is_a_table_for_each_of_its_parts(store):
    """Of those that have anything, in their order, with the columns that say something."""
    store.submit("t", plan(call("a")))
    finish(store)
    lines = tables.journal(journal(store, "t"))
    parts = [line for line in lines if line.endswith(":")]
    assert parts[:2] == ["transitions:", "invocations:"]
    assert "signals:" not in parts
    at = lines.index("invocations:")
    header, row = lines[at + 1].split(), lines[at + 2].split()
    assert dict(zip(header, row, strict=True))["OPERATION"] == "a"
    assert "EXTERNAL" not in header


def test_the_command_line_shows_them(tmp_path, capsys):
    """With `--format text`, as the functions make them; more tasks than asked for are told."""

    async def program(ask: Asking, server: Server) -> None:
        for task in ("t", "u"):
            server.store.submit(task, plan(call("a")))
        assert await ask.lines("status", "t", "--format", "text") == tables.status("t", await ask.one("status", "t"))
        assert await ask.lines("journal", "t", "--format", "text") == tables.journal(await ask.one("journal", "t"))
        _, (first, second, _) = await ask("tasks")
        assert await ask.lines("tasks", "--format", "text") == tables.tasks([first, second])
        assert await ask.lines("tasks", "--format", "text", "--limit", "1") == [
            *tables.tasks([first]),
            "more: --after t",
        ]

    asking(tmp_path, capsys, program)
