"""Durable steps beside those of other harnesses, on the same plans, each contestant in an environment and a process of its own.

A step is a call that does nothing, whose result is durable before the next of its task begins. Every contestant has one
SQLite file in the same folder of the repository, on whatever device that is, and says itself how durable its connection is.
They take turns. DBOS comes twice: as it ships, and with the journal mode that the others have. The device itself comes last:
a write and a sync for each step, and nothing else, which is what a step of a chain can cost at best.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Self

from conformance import install, targets
from simkit.errors import SimkitError
from tests.benchmarks.contest import Contest
from tests.benchmarks.contestants.wire import Load

_REPOSITORY = Path(__file__).resolve().parent.parent.parent
#: How many times a peer's pace ours shall be.
TIMES = 3
#: Steps of a chain, and of a fan-out; tasks side by side, and the steps of each.
CHAIN, FAN, TASKS, STEPS = 20, 10, 50, 5
#: Tasks of a measurement where they follow one another.
IN_TURN = 4
LEAVE_S = 20
#: The contestant that is no peer.
BARE = "the device alone"


class Child:
    """A contestant's process, from its first line to its last; `about` is what it says of itself."""

    def __init__(self, command: list[str], folder: Path) -> None:
        folder.mkdir()
        self._command = [command[0], "-m", f"tests.benchmarks.contestants.{command[1]}", str(folder), *command[2:]]
        self._process = subprocess.Popen(
            self._command,
            cwd=_REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._numbers = itertools.count()
        self.about: dict[str, str] = self._answer()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Let it leave; one that does not is killed."""
        self._process.stdin.close()
        try:
            self._process.wait(LEAVE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def carry_out(self, shape: str, width: int, tasks: int, *, together: bool) -> int:
        """Have new tasks carried out; how many steps that were."""
        number = next(self._numbers)
        load = Load(shape, width, tuple(f"t{number}-{task}" for task in range(tasks)), together)
        self._process.stdin.write(load.to_json() + "\n")
        self._process.stdin.flush()
        return int(self._answer()["steps"])

    def _answer(self) -> dict[str, str]:
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self._command} left with {self._process.wait()}")
        return json.loads(line)


def contests(scale: int) -> Iterator[Contest]:
    """A chain, a fan-out and tasks side by side, `scale` per cent of the usual tasks; the contestants' processes end with the
    last of them.
    """
    in_turn, together = max(1, IN_TURN * scale // 100), max(2, TASKS * scale // 100)
    with _children() as children:
        yield _contest(f"durable steps: a chain of {CHAIN}", children, "chain", CHAIN, in_turn, together=False)
        yield _contest(f"durable steps: a fan-out of {FAN}", children, "fan", FAN, in_turn * 2, together=False)
        yield _contest(
            f"durable steps: {together} tasks side by side", children, "chain", STEPS, together, together=True
        )


def _contest(title: str, children: dict[str, Child], shape: str, width: int, tasks: int, *, together: bool) -> Contest:
    contestants: dict[str, Callable[[], int]] = {
        name: partial(child.carry_out, shape, width, tasks, together=together) for name, child in children.items()
    }
    names = list(contestants)
    return Contest(
        title,
        "steps",
        contestants,
        dict.fromkeys([name for name in names[2:] if not name.startswith(BARE)], TIMES),
        clock=time.perf_counter,
        also_ours=(names[1],),
    )


@contextmanager
def _children() -> Iterator[dict[str, Child]]:
    """The contestants that can be had, by what they are; both styles of the runtime first."""
    home = _REPOSITORY / ".simkit"
    home.mkdir(exist_ok=True)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="steps-", dir=home)))
        children = {}
        for number, (name, command) in enumerate(_commands()):
            child = stack.enter_context(Child(command, folder / str(number)))
            said = child.about
            children[f"{name} ({said['journal_mode']}, synchronous {said['synchronous']})"] = child
        yield children


def _commands() -> list[tuple[str, list[str]]]:
    """Name, and interpreter, program and further arguments of every contestant; a peer that cannot be had is told of."""
    commands = [
        ("plans", [sys.executable, "runtime_steps", "plans"]),
        ("replay", [sys.executable, "runtime_steps", "replay"]),
    ]
    for peer, program, variants in (
        ("dbos", "dbos_steps", ((), ("WAL",))),
        ("langgraph", "langgraph_steps", ((),)),
    ):
        target = targets.parse(peer)
        try:
            python = install.ensure(target, _progress).python
        except SimkitError as error:
            print(f"NOT MEASURED beside {target.title}: {error}", file=sys.stderr, flush=True)
            continue
        commands += [(f"{peer} {target.version}", [python, program, *more]) for more in variants]
    return [*commands, (BARE, [sys.executable, "bare_steps"])]


def _progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
