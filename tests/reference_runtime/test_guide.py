"""The guide, as its reader would follow it: its files are saved, its commands typed into a shell, its worker really killed."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reference_runtime.commands import Outcome, Raised
from reference_runtime.documents import workflow_of
from reference_runtime.model import UNKNOWN
from reference_runtime.promises import SEMANTICS
from reference_runtime.replay import Replay
from reference_runtime.workflow import Context

GUIDE = Path(__file__).parents[2] / "docs" / "guide-first-agent.md"
pytestmark = [pytest.mark.slow, pytest.mark.repository]
#: A reader looks again at a status that is not there yet, this often at most.
LOOKS_MAX = 200
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def _blocks(language: str) -> list[str]:
    return [text for found, text in _BLOCK.findall(GUIDE.read_text(encoding="utf-8")) if found == language]


def _steps(block: str) -> Iterator[tuple[str, list[str]]]:
    """The commands of a console block, each with the lines the guide shows for it."""
    command, shown = "", list[str]()
    for line in block.splitlines():
        if line.startswith("$ "):
            if command:
                yield command, shown
            command, shown = line[2:], []
        else:
            shown.append(line)
    yield command, shown


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


class Shell:
    """A shell with job control in a folder; the guide's two ports are free ones here."""

    def __init__(self, folder: Path) -> None:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        env = {**os.environ, "PATH": path, "PYTHONPATH": str(GUIDE.parents[1]), "PYTHONUNBUFFERED": "1"}
        self.process = subprocess.Popen(
            ["bash", "--norc", "--noprofile"],
            cwd=folder,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.server, self.outside = _free_port(), _free_port()
        self.type("set -m")

    def type(self, command: str) -> list[str]:
        """The lines a command says before the shell takes the next one."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{self._here(command)}\necho '@@@'\n")
        self.process.stdin.flush()
        said: list[str] = []
        while (line := self.process.stdout.readline()).rstrip("\n") != "@@@":
            assert line, f"the shell is gone after {command!r}: {said}"
            said.append(line.rstrip("\n"))
        return said

    def _here(self, command: str) -> str:
        command = command.replace("7500", str(self.outside))
        option = "--listen" if " serve " in command else "--server"
        return re.sub(r"(reference_runtime \w+)", rf"\1 {option} 127.0.0.1:{self.server}", command)

    def jobs(self) -> list[int]:
        """Those that run: bash may keep one that has ended in its list, until it is asked for in full."""
        return [int(line) for line in self.type("jobs -rp") if line.isdigit()]

    def is_left_alone(self) -> bool:
        """Whether every process that was begun in it ends."""
        return any(not self.jobs() or self.type("sleep 0.3") for _ in range(LOOKS_MAX))


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    one = Shell(tmp_path)
    yield one
    for job in one.jobs():
        with contextlib.suppress(ProcessLookupError):
            os.killpg(job, signal.SIGKILL)
    one.process.kill()
    one.process.communicate()


def _pattern(shown: str) -> re.Pattern[str]:
    """A line as the guide shows it, with dots for what is left out."""
    return re.compile(".*".join(re.escape(part) for part in shown.split("…")))


def _follow(shell: Shell, command: str, shown: list[str]) -> None:
    """Type a command, and find what the guide shows; a status may have to be looked at again."""
    for _ in range(LOOKS_MAX):
        said = shell.type(command)
        if all(any(_pattern(line).fullmatch(one) for one in said) for line in shown):
            return
        if " status " not in command:
            break
    raise AssertionError(f"{command}\nshows {shown}\nbut said {said}")


def test_the_agent_notes_its_undo_before_it_pays():
    """Or a stop that comes during the payment would leave it as it is."""
    made: dict[str, Any] = {}
    exec(_blocks("python")[0], made)
    replay = Replay(lambda: made["invoice"].function(Context("t"), {"from": "Ada", "text": "120, please"}))
    for operation, answer in {
        "model#1": {"text": "120"},
        "reader#1": {"account": "DE89"},
        "ok": {"nonce": "n"},
    }.items():
        replay.deliver(Outcome(operation, "succeeded", answer))
    assert replay.check() is None
    asked = [(one.kind, one.spec.get("of", one.id)) for one in replay.fresh]
    assert asked[-2:] == [("compensate", "pay"), ("call", "pay")]
    replay.close()


def test_the_order_undoes_what_it_took_when_nobody_writes():
    """Its wait has an end, and its child is a workflow with its input."""
    made: dict[str, Any] = {}
    (text,) = [block for block in _blocks("python") if 'workflow("order")' in block]
    exec(text, made)
    for payload, comes_to in ((None, "raised: TimeoutError: no letter within a day"), ({"text": "120"}, "invoice")):
        replay = Replay(lambda: made["order"].function(Context("t"), "Ada"))
        replay.deliver(Outcome("take", "succeeded", {"nonce": "n"}))
        replay.deliver(Outcome("letter#1", "succeeded", payload))
        assert replay.check() is None
        assert (replay.fresh[0].kind, replay.fresh[0].spec["of"]) == ("compensate", "take")
        if isinstance(replay.end, Raised):
            assert replay.end.reason.startswith(comes_to)
        else:
            assert workflow_of(replay.fresh[-1].spec["plan"]) == (comes_to, {"from": "Ada", "text": "120"})
            assert payload is not None
        replay.close()


def test_the_tools_of_the_guide_are_those_there_are():
    """Each is in its table, with what becomes of a lost answer by the promise it makes."""
    rows = re.findall(
        r"^\| `(\w+)` \| .* \| (.*) \|$", GUIDE.read_text(encoding="utf-8").split("## Run it")[0], re.MULTILINE
    )
    told = {"is asked for again": "repeat", "the same": "repeat", "is looked up": "lookup", "is shown as": "none"}
    remedies = {tool: next(told[words] for words in told if lost.startswith(words)) for tool, lost in rows}
    assert remedies == {tool: UNKNOWN[promise] for tool, promise in SEMANTICS.items()}


def test_the_guide_is_true(tmp_path, shell):
    """Every file and every command of the guide: killed in the middle of a payment, the agent pays once."""
    for text in _blocks("python"):
        named = re.match(r"# (\w+\.py)\n", text)
        if named:
            (tmp_path / named[1]).write_text(text.replace("7500", str(shell.outside)), encoding="utf-8")
    letter, post, till = _blocks("json")
    (tmp_path / "post.json").write_text(post, encoding="utf-8")
    (tmp_path / "letter.json").write_text(letter, encoding="utf-8")
    (tmp_path / "till.json").write_text(till, encoding="utf-8")
    for block in _blocks("console"):
        for command, shown in _steps(block):
            _follow(shell, command, shown)
    assert shell.is_left_alone(), shell.type("jobs -l")
    assert (tmp_path / "payments.txt").read_text(encoding="utf-8") == "120 to DE89\n1 to DE01\n"
