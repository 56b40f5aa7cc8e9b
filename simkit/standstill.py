"""A run at a standstill: where every task stands, what time it is, what lies on the disks and under way on the network.

`look_at(world, …)` takes the picture between two steps; it changes nothing, so that the run can go on from there.
"""

from __future__ import annotations

import sysconfig
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import attrs
import trio

if TYPE_CHECKING:
    from types import CodeType

    from trio.lowlevel import Task

    from simkit.host import Host
    from simkit.world import World

_NOT_THE_PROGRAM = (
    "<frozen ",
    "<attrs generated ",
    *(
        f"{folder}/"
        for folder in (Path(__file__).parent, Path(trio.__file__).parent, Path(sysconfig.get_path("stdlib")))
    ),
)
_SHOWN_MAX = 20
TaskState = Literal["next", "runnable", "paused", "waiting"]


@attrs.frozen
class StandingTask:
    """One task."""

    number: int
    name: str
    process: str | None  # "host/name#pid", None for the outside
    state: TaskState
    #: The program's own frames, outermost first, as "file:line in function".
    stack: tuple[str, ...]
    #: What it called last below these; empty where the program itself is at work.
    waits_in: str = ""

    def __str__(self) -> str:
        whose = f" of {self.process}" if self.process else ""
        doing = f"{self.state} in {self.waits_in}" if self.waits_in and self.state != "next" else self.state
        return "\n".join([f"#{self.number} {self.name}{whose}: {doing}", *(f"    {place}" for place in self.stack)])


@attrs.frozen
class StandingFile:
    """One file of a disk."""

    path: str
    size: int  # bytes
    pending: int  # changes of its data that a power loss may undo


@attrs.frozen
class StandingHost:
    """One host: its processes, and its disk."""

    name: str
    processes: tuple[str, ...]
    boundaries: int  # storage boundaries crossed so far
    files: tuple[StandingFile, ...]
    up: bool = True

    def __str__(self) -> str:
        who = ", ".join(self.processes) or "no process"
        head = f"{self.name}: {who}{'' if self.up else ', off'}; {self.boundaries} storage boundaries"
        rows = [f"    {one.path}  {one.size} bytes{_unsynced(one.pending)}" for one in self.files[:_SHOWN_MAX]]
        more = len(self.files) - _SHOWN_MAX
        return "\n".join([head, *rows, *([f"    … and {more} more files"] if more > 0 else [])])


@attrs.frozen
class Standstill:
    """The state of a run right before a step."""

    event: int  # the number of the event that is next: the step of the task that is "next"
    step: int  # which step of the run that is, from 0
    now_ns: int
    tasks: tuple[StandingTask, ...]
    hosts: tuple[StandingHost, ...]
    connections: tuple[str, ...]
    fired: tuple[str, ...]  # faults that have happened, with how often
    asked: int | None = None  # the number of the event that the replay was to stop before

    def sections(self) -> dict[str, str]:
        """What there is to tell, by title, without what is empty."""
        sections: dict[str, tuple[object, ...]] = {
            "tasks": self.tasks,
            "hosts": self.hosts,
            "connections": self.connections[:_SHOWN_MAX],
            "faults so far": self.fired,
        }
        return self._why_here() | {title: "\n".join(map(str, rows)) for title, rows in sections.items() if rows}

    def _why_here(self) -> dict[str, str]:
        """Why it is not the event that was asked for, if it is not."""
        if self.asked in {None, self.event}:
            return {}
        where = (
            f"within the step that begins at event {self.event}"
            if self.asked > self.event
            else f"between two steps, of which the next begins at event {self.event}"
        )
        return {f"event {self.asked}": f"it lies {where}; a replay stops only before a step"}

    def __str__(self) -> str:
        head = f"before event {self.event}, step {self.step}, at {self.now_ns} ns"
        parts = [f"{title}\n{textwrap.indent(text, '  ')}" for title, text in self.sections().items()]
        return "\n\n".join([head, *parts])


def look_at(world: World, task: Task, step: int, runnable: frozenset[int]) -> Standstill:
    """The state of `world` as `task`, one of the `runnable` (by number), is about to take step number `step` (from 0)."""
    kernel = world.kernel
    tasks = [
        _task(world, one, "next" if one is task else "runnable" if kernel.number(one) in runnable else "waiting")
        for one in kernel.tasks()
        if one.parent_nursery is not None  # the root is trio's own
    ]
    return Standstill(
        event=len(world.trace),
        step=step,
        now_ns=world.now_ns,
        tasks=tuple(tasks),
        hosts=tuple(_host(host) for host in world.hosts.values()),
        connections=tuple(_connections(world)),
        fired=tuple(f"{what} × {times}" for what, times in world.fired().items()),
    )


def frames_of(task: Task) -> Iterator[tuple[CodeType, int, bool]]:
    """The frames of a task at rest, outermost first: code, line, and whether it is the program's own."""
    for frame, line in task.iter_await_frames():
        code = frame.f_code
        yield code, line, is_of_program(code)


def is_of_program(code: CodeType) -> bool:
    """Whether it is the program's own: neither the kit's, nor trio's, nor the standard library's."""
    return not code.co_filename.startswith(_NOT_THE_PROGRAM)


def _task(world: World, task: Task, state: TaskState) -> StandingTask:
    kernel = world.kernel
    owner = kernel.owner(task)
    frames = list(frames_of(task))
    own = [f"{code.co_filename}:{line} in {code.co_name}" for code, line, is_own in frames if is_own]
    last_own = max((at for at, (_, _, is_own) in enumerate(frames) if is_own), default=-1)
    below = frames[last_own + 1 :]
    if state == "waiting" and owner is not None and kernel.holds(owner):
        state = "paused"
    return StandingTask(
        kernel.number(task),
        task.name.rsplit(".", 1)[-1],
        None if owner is None else owner.label,
        state,
        tuple(own),
        below[0][0].co_qualname if below else "",
    )


def _host(host: Host) -> StandingHost:
    files: tuple[StandingFile, ...] = ()
    if host.has_disk:
        found = host.disk.inodes().items()
        files = tuple(StandingFile(path, node.size, len(node.pending)) for path, node in found)
    processes = tuple(process.label for process in host.processes)
    return StandingHost(host.name, processes, host.boundaries, files, host.up)


def _connections(world: World) -> Iterator[str]:
    if not world.has_network:
        return
    told: set[int] = set()
    for number, end in sorted(world.network.connections.items()):
        if end.connection in told:
            continue
        told.add(end.connection)
        here, there = (
            f"{place}:{address[1]}" for place, address in ((end.place, end.local), (end.peer.place, end.remote))
        )
        yield f"{number}: {here} – {there}{' (closed here)' if end.closed else ''}"


def _unsynced(pending: int) -> str:
    return "" if not pending else f", {pending} changes not synced"
