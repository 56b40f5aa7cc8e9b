"""Whether a simulation is the same everywhere: the same programs in another loop, another process, on another Python.

A *way* runs all programs and gives their digests by name; ways are compared with the first one, and where a digest differs
the traces of that program are fetched from both, so that the first event which differs can be named.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import attrs

from conformance import specimens, targets
from conformance.simulate import simulate
from conformance.targets import Target
from simkit.errors import SimkitError
from simkit.world import KernelName

if TYPE_CHECKING:
    from simkit.trace import Event

__all__ = ["Elsewhere", "Here", "MissingError", "Way", "WayError", "child", "combined", "difference", "programs"]

#: Seeds of a target whose digests are compared.
SEEDS = (0, 1, 2, 3, 4, 5)
_CHILD_S = 600
_CHILD = "import sys; from conformance.campaign.sameness import child; child(*sys.argv[1:])"
_SHOWN_CHARS = 120
_CANNOT_LOAD = "adapter-cannot-load"

#: An event as it counts, and as it is shown.
Told = tuple[str, str]
Digests = Mapping[str, str]


class WayError(Exception):
    """A way that gives no digests, and why."""


class MissingError(WayError):
    """The target needs what that Python's environment has not: it cannot be compared there."""


class Way(Protocol):
    """Somewhere to run the programs."""

    def digests(self) -> Digests:
        """The digest of each program."""
        ...

    def events(self, program: str) -> Sequence[Told]:
        """The trace of one program."""
        ...


@attrs.frozen
class Here:
    """In this process."""

    target: Target | None
    kernel: KernelName = "fast"

    def digests(self) -> Digests:
        return {name: run(self.kernel)[0] for name, run in programs(self.target).items()}

    def events(self, program: str) -> Sequence[Told]:
        _, events = programs(self.target)[program](self.kernel)
        return [_told(event) for event in events]


@attrs.frozen
class Elsewhere:
    """In a process of its own, of `python`, with `environ` on top of what is there."""

    target: Target | None
    python: Path
    environ: Mapping[str, str]
    ours: bool = True  # whether it is the interpreter of this environment, which may need our PYTHONPATH

    def digests(self) -> Digests:
        found = self._ask()
        if not isinstance(found, dict):
            raise WayError(f"an answer that is none: {str(found)[:_SHOWN_CHARS]}")
        return {str(name): str(digest) for name, digest in found.items()}

    def events(self, program: str) -> Sequence[Told]:
        return [(str(counts), str(shown)) for counts, shown in self._ask(program)]

    def _ask(self, program: str = "") -> Any:
        text, configuration = ("", "") if self.target is None else (self.target.text, self.target.configuration)
        environ = {**os.environ, **self.environ}
        if not self.ours:
            for name in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"):
                environ.pop(name, None)
        try:
            done = subprocess.run(  # noqa: S603  # our own interpreter and our own code
                [str(self.python), "-P", "-c", _CHILD, text, configuration, program],
                env=environ,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=_CHILD_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise WayError(str(error)) from error
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or ["no word"])[-1]
            raise WayError(f"it left with {done.returncode}: {last}")
        try:
            answer = json.loads(done.stdout)
        except ValueError as error:
            raise WayError(f"it answered {done.stdout[:_SHOWN_CHARS]!r}") from error
        if isinstance(answer, dict) and _CANNOT_LOAD in answer:
            raise MissingError(answer[_CANNOT_LOAD])
        return answer


def child(text: str, configuration: str, program: str) -> None:
    """What runs elsewhere: print all digests, or the trace of one program, as JSON."""
    here = Here(targets.parse(text, configuration) if text else None)
    try:
        answer: object = here.events(program) if program else here.digests()
    except SimkitError as error:
        if error.problem.code != _CANNOT_LOAD:
            raise
        answer = {_CANNOT_LOAD: error.problem.what}
    sys.stdout.write(json.dumps(answer) + "\n")


Run = Callable[[KernelName], tuple[str, Sequence["Event"]]]


def programs(target: Target | None) -> dict[str, Run]:
    """What is compared, by name: seeds of a target; without one, every specimen and seeds of the reference runtime."""
    if target is not None:
        return {f"{target.name}, seed {seed}": _of_target(target, seed) for seed in SEEDS}
    own = {f"{name}, seed {seed}": _of_specimen(name, seed) for name in specimens.SPECIMENS for seed in specimens.SEEDS}
    return {**own, **programs(targets.parse("reference"))}


def combined(digests: Digests) -> str:
    """One digest for all."""
    text = "\n".join(f"{name} {digest}" for name, digest in sorted(digests.items()))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def difference(one: Way, other: Way, left: Digests, right: Digests) -> str:
    """Where two ways part: the first program whose digests differ, and its first event; empty when nowhere."""
    program = next((name for name, digest in left.items() if right.get(name) != digest), None)
    if program is None:
        return ""
    if program not in right:
        return f"{program}: not run"
    events = itertools.zip_longest(one.events(program), other.events(program), fillvalue=("", "the end"))
    for ours, theirs in events:
        if ours[0] != theirs[0]:
            return f"{program}: {_short(ours[1])} | {_short(theirs[1])}"
    return f"{program}: digests differ, and a second time they do not: it differs from run to run"


def _of_target(target: Target, seed: int) -> Run:
    def run(kernel: KernelName) -> tuple[str, Sequence[Event]]:
        outcome = simulate(target, seed, kernel=kernel).outcome
        return outcome.digest, list(outcome.trace.events())

    return run


def _of_specimen(name: str, seed: int) -> Run:
    def run(kernel: KernelName) -> tuple[str, Sequence[Event]]:
        trail = specimens.trail(name, seed, kernel)
        return trail.digest, trail.events

    return run


def _told(event: Event) -> Told:
    """Names of tasks are for people and no part of a digest."""
    detail = " ".join(event.detail.split(" ")[:2]) if event.kind == "step" else event.detail
    return f"{event.now_ns} {event.kind} {detail}", str(event)


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS] + "…"
