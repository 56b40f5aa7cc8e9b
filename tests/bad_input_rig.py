"""Commands as someone types them, as real processes, on small adapters each broken in its own way.

Bench       a folder with adapters in it, and `simkit` run there; whatever it started must be gone when it ends
Ran         how a command ended, and what it told
running     one that is to be interrupted
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

SIMKIT = Path(sys.executable).with_name("simkit")
MARK = "BAD_INPUT_TEST"  # inherited by every process of a test
DEADLINE_S = 60
PROC = Path("/proc")

#: For a module of such tests.
MARKS = [
    pytest.mark.slow,
    pytest.mark.skipif(not SIMKIT.exists(), reason="the console script is not installed"),
    pytest.mark.skipif(not (PROC / "self/environ").exists(), reason="survivors are looked for in /proc"),
]

MANIFEST = """
protocol = 1

[harness]
name = "bad"
version = "1"
storage = "none"

[units.worker]
command = ["{python}", "-S", "adapter.py"]
control = true

[operations]
supported = ["seq", "call"]

[claims.EFF-11]
statement = "Done means that every effect has happened."
source = "this test"

[limits]
settle_ms = 300
boot_ms = 30000
poll_ms = 5
"""

PRELUDE = """
import http.client, json, os, signal, subprocess, sys, time

def read():
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    return json.loads(line)

def put(text):
    sys.stdout.write(text)
    sys.stdout.flush()

def ok(message, **fields):
    put(json.dumps({"seq": message["seq"], "ok": fields}) + "\\n")

def post(path, body):
    services = http.client.HTTPConnection(os.environ["SIMKIT_SERVICES"].partition("//")[2], timeout=5)
    services.request("POST", path, body if isinstance(body, str) else json.dumps(body))
    services.getresponse().read()

def serve(**states):
    while True:
        message = read()
        ok(message, **(states if message["verb"] == "status" else {}))
"""

#: Claims that every effect has happened, and calls nobody.
LIAR = "serve(state='done', result={})"

GOOD = """
import simkit_adapter as kit

FOLDER = kit.state_folder()

class Adapter:
    def start(self, run, plan, key):
        (FOLDER / "plan").write_text(json.dumps(plan))
    def status(self, run):
        if not (FOLDER / "plan").exists():
            return "unknown"
        answers = json.loads((FOLDER / "answers").read_text()) if (FOLDER / "answers").exists() else {}
        for op in kit.leaves(json.loads((FOLDER / "plan").read_text())):
            if op["id"] not in answers:
                try:
                    answers[op["id"]] = kit.call(op, run, answers)
                except (kit.Unknown, kit.Busy):
                    return "running"
                (FOLDER / "new").write_text(json.dumps(answers))
                (FOLDER / "new").replace(FOLDER / "answers")
                return "running"
        return {"state": "done", "result": answers}

kit.serve(Adapter())
"""
#: Slow enough to be interrupted in the middle.
SLOW = GOOD.replace("def status(self, run):", "def status(self, run):\n        time.sleep(0.3)")


@attrs.frozen
class Ran:
    """How a command ended."""

    code: int
    out: str
    err: str

    def tells(self, code: str, *words: str) -> None:
        """It told this problem once, with all four parts and these words, and without a traceback of ours."""
        blocks = [block for block in self.err.split("error[")[1:] if block.startswith(f"{code}]")]
        assert len(blocks) == 1, self.err
        for part in ("where:", "expected:", "hint:", *words):
            assert part in blocks[0], self.err
        assert "Traceback" not in self.err or "last words" in blocks[0], self.err


def survivors(mark: str) -> list[str]:
    """Command lines of live processes that carry `mark`."""
    found = []
    for folder in PROC.iterdir():
        with contextlib.suppress(OSError):
            if folder.name.isdecimal() and f"{MARK}={mark}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                found.append((folder / "cmdline").read_text().replace("\0", " "))
    return found


def command_line(words: tuple[object, ...], shell: str = "") -> list[str]:
    """The command line; `shell` is something to say to the shell before."""
    line = [str(SIMKIT), *map(str, words)]
    return ["sh", "-c", f"{shell}\nexec {shlex.join(line)}"] if shell else line


def surroundings(folder: Path, variables: dict[str, str]) -> dict[str, str]:
    return {**os.environ, MARK: str(folder), "COLUMNS": "100", **variables}


@attrs.frozen
class Bench:
    """The folder of one test."""

    folder: Path

    def adapter(self, program: str, manifest: str = MANIFEST, name: str = "target") -> Path:
        """Make an adapter of a program and a manifest; returns its folder."""
        folder = self.folder / name
        folder.mkdir()
        (folder / "adapter.toml").write_text(manifest)
        (folder / "adapter.py").write_text(PRELUDE + program)
        return folder

    def simkit(self, *words: object, shell: str = "", cwd: Path | None = None, **variables: str) -> Ran:
        """Run a command to its end; `shell` is said to the shell before. No process it started may outlive it."""
        done = subprocess.run(
            command_line(words, shell),
            cwd=cwd or self.folder,
            env=surroundings(self.folder, variables),
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
        assert survivors(str(self.folder)) == []
        return Ran(done.returncode, done.stdout, done.stderr)


@contextlib.contextmanager
def running(tmp_path: Path, *words: object, seen: int = 1) -> Iterator[subprocess.Popen[str]]:
    """A command in a process group of its own, under way: `seen` runs are finished."""
    environment = surroundings(tmp_path, {"SIMKIT_CACHE": str(tmp_path / "cache")})
    with subprocess.Popen(
        command_line((*words, "--format", "json")),
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            assert process.stdout is not None
            while seen:
                line = process.stdout.readline()
                assert line, process.stderr.read() if process.stderr else ""
                seen -= '"event": "RunFinished"' in line
            yield process
        finally:
            process.kill()


def end_of(process: subprocess.Popen[str]) -> tuple[int, list[dict[str, Any]], str]:
    """Exit code, the events that were still told, and standard error."""
    out, err = process.communicate(timeout=DEADLINE_S)
    return process.returncode, [json.loads(line) for line in out.splitlines()], err
