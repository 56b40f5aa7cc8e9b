"""The commands that ask a server: each asks, and shows the answer as JSON on standard output."""

from __future__ import annotations

import argparse
import json
import os
import sys
import uuid
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

import trio

from reference_runtime import fleet, jsontext, tables
from reference_runtime.client import Client
from reference_runtime.handle import NS, Patience, Unreachable
from reference_runtime.log import OFF, Log
from reference_runtime.model import Json, Refusal
from reference_runtime.remedies import retrying
from reference_runtime.rpc import TASKS_MAX

ENDS = ("done", "failed", "cancelled", "blocked")
WATCH_S = 0.05
#: How long the server may give no answer, and how long once it has given one and is waited for: that outlasts a restart.
PATIENCE_NS = 10 * NS
OUTAGE_NS = 60 * NS
#: How many turns that were put aside a worker remembers, so that it tells each once.
TOLD_MAX = 1_000


async def submit(options: argparse.Namespace) -> int:
    """Have a task done; with --wait, see it to its end."""
    async with client_of(options, complaining_of_silence(options)) as client:
        plan = _plan_in(options.plan)
        try:
            receipt = await client.submit(options.task, plan)
        except Refusal as no:
            where = "" if options.plan == "-" else f"{options.plan}: "
            raise (Refusal(no.code, f"{where}{no.message}") if no.code == "bad-plan" else no) from None
        if not options.wait:
            say({"task": receipt.task, "attempt": receipt.attempt})
            return 0
        _outlast_a_restart(client, options)
        try:
            standing = await _end_of(client, options.task)
        except Unreachable as error:
            raise Unreachable(f"{error}; the task is kept: submit it again with --wait to go on waiting") from error
        say(standing)
        if (remedy := standing.get("remedy")) is not None:
            _warn(f"{options.task!r} is blocked: {remedy}")
        return 0 if standing["state"] == "done" else 1


async def _end_of(client: Client, task: str) -> Json:
    """The status of a task once it has ended; what is missing meanwhile is told once, on standard error. Raises `Refusal`
    (`unknown-task`) where the server came back without it: with another store, or an older copy.
    """
    is_told = False
    while (standing := await _standing(client, task))["state"] not in ENDS:
        if standing["missing"] is not None and not is_told:
            is_told = True
            _warn(standing["missing"])
        await trio.sleep(WATCH_S)
    return standing


async def status(options: argparse.Namespace) -> None:
    """Show how a task stands."""
    async with client_of(options) as client:
        standing = await _standing(client, options.task)
    if options.format == "text":
        _write_all(tables.status(options.task, standing))
    else:
        say(standing)


async def send_signal(options: argparse.Namespace) -> None:
    """Tell a task something, once per id."""
    async with client_of(options) as client:
        answer = await client.signal(options.task, options.id or options.name, options.name, options.payload)
        say(answer)
        if answer["disposition"] == "buffered" and (hint := _kept(options, await client.status(options.task))):
            _warn(hint)


def _kept(options: argparse.Namespace, standing: Json) -> str | None:
    """What there is to say of a signal that nothing has taken yet; None where nothing else is waited for."""
    if standing["state"] == "blocked" and standing["phase"] == "ended":
        return f"{options.task!r} has ended blocked; nothing takes {options.name!r} unless `settle` lets it go on"
    if standing["state"] == "waiting" and standing["on"] not in (None, options.name):
        return f"{options.task!r} waits for {standing['on']!r}; {options.name!r} is kept until something waits for that"
    return None


async def decide(options: argparse.Namespace) -> None:
    """Approve or deny what a task asks for, as it stands now, once per id."""
    async with client_of(options) as client:
        asked = {
            one["operation"]: one["digest"] for one in (await _standing(client, options.task)).get("approvals", ())
        }
        if options.operation not in asked:
            raise Refusal(
                "not-pending",
                f"{options.operation!r} of {options.task!r} does not ask for a decision; asking: {', '.join(asked) or 'none'}",
            )
        id_ = options.id or uuid.uuid4().hex  # to decide again on what is asked again is no repeat
        said = {"digest": asked[options.operation], "actor": options.actor, "nonce": id_}
        say(await client.decide(options.task, id_, options.operation, options.decision, **said))


async def cancel(options: argparse.Namespace) -> None:
    """Stop a task for good."""
    await _command(options, Client.cancel)


async def pause(options: argparse.Namespace) -> None:
    """Have nothing more of a task sent until it is resumed."""
    await _command(options, Client.pause)


async def resume(options: argparse.Namespace) -> None:
    """Let a paused task go on."""
    await _command(options, Client.unpause)


async def retry(options: argparse.Namespace) -> None:
    """Have a workflow tried again whose turn was put aside, as blocked."""
    await _command(options, Client.retry)


async def settle(options: argparse.Namespace) -> None:
    """Say what became of an effect that nobody could establish, once per id, and let its task go on."""
    async with client_of(options) as client:
        id_ = options.id or uuid.uuid4().hex
        known_by = {"actor": options.actor, "nonce": options.nonce or id_}
        say(await client.settle(options.task, id_, options.operation, options.word, **known_by))


async def events(options: argparse.Namespace) -> None:
    """Show what happened to a task, one event a line, and last the cursor to come back with."""
    after = options.after
    async with client_of(options, complaining_of_silence(options)) as client:
        while True:
            page = await _events_past(client, options.task, after)
            after = page["next"]
            if options.follow:
                _outlast_a_restart(client, options)
            if not all(say(event) for event in page["events"]):
                return
            is_over = any(frame["kind"] == "end" for frame in page["control"])
            if is_over or not (page["events"] or options.follow):
                say({"next": after, "control": page["control"]})
                return
            if not page["events"]:
                await trio.sleep(WATCH_S)


async def _events_past(client: Client, task: str, after: int) -> Json:
    """A page of events. Raises `Unreachable` with what to come back with."""
    try:
        return await client.events(task, after)
    except Unreachable as error:
        raise Unreachable(f"{error}; go on with --after {after}, nothing before it was left out") from error


async def tasks(options: argparse.Namespace) -> None:
    """Show the tasks there are, one a line, and last the id to come back with."""
    after, left, listed = options.after, options.limit, list[Json]()
    async with client_of(options) as client:
        while after is not None and left > 0:
            page = await client.tasks(after, min(left, TASKS_MAX), options.state or "")
            after, left = page["next"], left - len(page["tasks"])
            listed += page["tasks"] if options.format == "text" else []
            if options.format == "json" and not all(say(task) for task in page["tasks"]):
                return
    if options.format == "text":
        _write_all([*tables.tasks(listed), *([] if after is None else [f"more: --after {tables.printed(after)}"])])
    else:
        say({"next": after})


async def workers(options: argparse.Namespace) -> None:
    """Show the workers that are there, one a line: what they run, when they were last heard of, and what they have in hand."""
    async with client_of(options) as client:
        found = await client.workers()
    _write_all(fleet.table(found) if options.format == "text" else map(json.dumps, found))


async def journal(options: argparse.Namespace) -> None:
    """Show what was tried, received and refused for a task."""
    async with client_of(options) as client:
        told = await client.journal(options.task)
    if options.format == "text":
        _write_all(tables.journal(told))
    else:
        say(told)


async def artifacts(options: argparse.Namespace) -> None:
    """Show every version of a task's artifacts, and what was uploaded and not accepted."""
    async with client_of(options) as client:
        say(await client.artifacts(options.task))


def client_of(options: argparse.Namespace, on_silence: Callable[[float], object] | None = None) -> Client:
    """A client of the server that the options name, which is as patient as they say."""
    return Client(*options.server, patience=_patience(options.patience_ns or PATIENCE_NS), on_silence=on_silence)


def _patience(total_ns: int) -> Patience:
    """As much patience in all, and with a slow answer at most half of it, so that a lost one is asked for again."""
    return Patience(total_ns=total_ns, answer_ns_max=total_ns // 2)


def _outlast_a_restart(client: Client, options: argparse.Namespace) -> None:
    """Have a client wait longer from now on: its server was there, and is likely to come back. Every question may be repeated,
    and a cursor means the same to whoever serves the store, so nothing is missed or seen twice.
    """
    client.patience = _patience(options.patience_ns or OUTAGE_NS)


def complaining_of_silence(options: argparse.Namespace, log: Log = OFF) -> Callable[[float], None]:
    """What tells that a server is silent: the log where there is one, whose lines are all JSON, else a line of its own."""
    address = "{}:{}".format(*options.server)

    def complain(seconds: float) -> None:
        if log is OFF:
            _warn(f"no answer from {address} for {seconds:.0f} s; going on trying")
        log("unanswering", server=address, seconds=round(seconds, 3))

    return complain


def complaining_of_turns(log: Log) -> Log:
    """What tells that a turn was put aside: the log where there is one, else a line of its own, once per task and reason."""
    told: dict[tuple[str, str], None] = {}

    def complain(line: str) -> None:
        said = json.loads(line)
        if said["event"] != "put-aside" or (said["task"], said["reason"]) in told:
            return
        if len(told) >= TOLD_MAX:
            told.pop(next(iter(told)))
        told[said["task"], said["reason"]] = None
        _warn(f"{said['task']!r} is put aside as blocked: {said['reason']}; {retrying(said['task'])}")

    return Log(complain) if log is OFF else log


def _warn(what: str) -> None:
    print(f"warning: {what}", file=sys.stderr, flush=True)  # noqa: T201 - the command's output


def say(data: Any) -> bool:
    """Write a line of JSON to standard output, as `write` does."""
    return write(json.dumps(data))


def write(line: str) -> bool:
    """Write a line to standard output; False when nobody reads it any more, which is no error."""
    try:
        print(line, flush=True)  # noqa: T201 - the command's output
    except BrokenPipeError:
        # What is still buffered has to go somewhere, or the interpreter complains of it as it ends.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
        return False
    return True


def _write_all(lines: Iterable[str]) -> None:
    """Write lines for as long as somebody reads them."""
    all(map(write, lines))


async def _standing(client: Client, task: str) -> Json:
    """The status of a task. Raises `Refusal` (`unknown-task`) when the server has none of that id."""
    standing = await client.status(task, explain=True)
    if standing["state"] == "unknown":
        raise Refusal("unknown-task", f"no task {task!r} at {client.host}:{client.port}")
    return standing


async def _command(options: argparse.Namespace, verb: Callable[[Client, str, str], Awaitable[Json]]) -> None:
    """Give a command and show its disposition. An id of its own for each, since a second pause is no repeat of the first."""
    async with client_of(options) as client:
        say(await verb(client, options.task, options.id or uuid.uuid4().hex))


def _plan_in(path: str) -> Any:
    try:
        plan = jsontext.read(sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes(), unique=True)
    except OSError as error:
        raise Refusal("plan-unreadable", f"{path}: {error.strerror or error}") from error
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise Refusal("bad-plan", f"{path} is not JSON: {error}") from error
    except ValueError as error:
        raise Refusal("bad-plan", f"{path}: {error}") from error
    if not isinstance(plan, dict):
        raise Refusal("bad-plan", f"{path} is {plan!r:.80}; expected an object: a plan, or a workflow with its input")
    return plan
