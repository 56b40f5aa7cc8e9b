"""`python -m reference_runtime`: run a server or a worker, and talk to a server.

Data goes to standard output, as JSON; everything else to standard error. Exit codes: 0 done, 1 refused, 2 usage,
3 the server could not be reached, 130 interrupted.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, get_args

import apsw
import trio

from reference_runtime import jsontext
from reference_runtime.client import Client, Patience, Unreachable
from reference_runtime.credentials import SECRETS, Credentials
from reference_runtime.evolution import Code, CodePolicy, load_transforms
from reference_runtime.log import OFF, to_standard_error
from reference_runtime.model import Policy, Refusal
from reference_runtime.schema import DAMAGED, PRAGMAS, SCHEMA_VERSION
from reference_runtime.server import LEASE_NS, NS, Server
from reference_runtime.store import Store
from reference_runtime.tools import CALL_NS, connect
from reference_runtime.worker import GRACE_NS, SLOTS, Worker
from reference_runtime.workflow import load

ADDRESS = "127.0.0.1:7411"
ENDS = ("done", "failed", "cancelled", "blocked")
WATCH_S = 0.05
PATIENCE_NS = 10 * NS
PORT_MAX = 65_535
KEPT = "nothing was acknowledged that is not in it"
COUNT_MAX = 10**18


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; its exit code."""
    options = _parser().parse_args(argv)
    command: Callable[[argparse.Namespace], Awaitable[int | None]] = options.command
    try:
        return trio.run(command, options) or 0
    except BaseException as error:  # noqa: BLE001 - told, or raised again
        return _explain(_cause(error), getattr(options, "store", None) or "the store")


def _cause(error: BaseException) -> BaseException:
    """The first thing that went wrong in a nursery, which speaks of all of them at once."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _explain(error: BaseException, store: str) -> int:
    """Tell what a user can meet, and its exit code; anything else is a bug and is raised again."""
    match error:
        case Refusal():
            return _complain(1, str(error))
        case Unreachable():
            return _complain(3, f"{error}; is `python -m reference_runtime serve` running there?")
        case apsw.CorruptError():
            return _complain(1, f"{DAMAGED}: {error}; nothing of it is served any more")
        case apsw.FullError():
            return _complain(1, f"store-full: {store}: its disk is full; {KEPT}; make room there and start again")
        case apsw.Error():
            name = apsw.mapping_extended_result_codes.get(getattr(error, "extendedresult", 0), type(error).__name__)
            return _complain(
                1, f"store-failed: {store}: {error} ({name}); {KEPT}; see to its disk (room, limits) and start again"
            )
        case KeyboardInterrupt():
            return 130
    raise error


async def serve(options: argparse.Namespace) -> None:
    """Own a store and serve it until told to stop."""
    host, port = options.listen
    transforms = {name: one for module in options.transforms for name, one in load_transforms(module).items()}
    store = Store.open(options.store, policy=Policy(tasks_max=options.tasks_max), transforms=transforms)
    store.forget_when_told(os.environ)
    server = Server(store, lease_ns=options.lease_ns)
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_when_told, nursery.cancel_scope.cancel)
            try:
                listeners = await nursery.start(server.serve, host, port)
            except OSError as error:
                raise Refusal("cannot-listen", f"{host}:{port}: {error}") from error
            _say({"listening": f"{host}:{listeners[0].socket.getsockname()[1]}", "store": options.store})
    except BaseException:
        store.leave()
        raise
    store.close()


async def worker(options: argparse.Namespace) -> None:
    """Do a server's work until told to stop; SIMKIT_SECRETS holds the secrets that calls may name."""
    try:
        secrets = Credentials.from_json(os.environ.get(SECRETS, "{}"))
        tools = connect(options.services, timeout_ns=options.call_timeout_ns, secrets=secrets)
    except ValueError as error:
        raise Refusal("bad-setting", str(error)) from None
    log = to_standard_error() if options.log == "info" else OFF
    one = Worker(
        _client(options),
        tools,
        name=options.name,
        slots=options.slots,
        grace_ns=options.grace_ns,
        log=log,
        workflows=[one for module in options.workflows for one in load(module)],
        code=_code(options),
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_when_told, one.stop)
        await one.run()
        nursery.cancel_scope.cancel()


async def submit(options: argparse.Namespace) -> int:
    """Have a task done; with --wait, see it to its end."""
    async with _client(options) as client:
        receipt = await client.submit(options.task, _json(options.plan))
        if not options.wait:
            _say({"task": receipt.task, "attempt": receipt.attempt})
            return 0
        while (standing := await client.status(options.task))["state"] not in ENDS:  # noqa: ASYNC110 - over a network
            await trio.sleep(WATCH_S)
        _say(standing)
        return 0 if standing["state"] == "done" else 1


async def status(options: argparse.Namespace) -> None:
    """Show how a task stands."""
    async with _client(options) as client:
        _say(await client.status(options.task))


async def send_signal(options: argparse.Namespace) -> None:
    """Tell a task something, once per id."""
    async with _client(options) as client:
        _say(await client.signal(options.task, options.id or options.name, options.name, options.payload))


async def decide(options: argparse.Namespace) -> None:
    """Approve or deny what a task asks for, as it stands now, once per id."""
    async with _client(options) as client:
        asked = {one["operation"]: one["digest"] for one in (await client.status(options.task)).get("approvals", ())}
        if options.operation not in asked:
            raise Refusal(
                "not-pending",
                f"{options.operation!r} of {options.task!r} does not ask for a decision; asking: {', '.join(asked) or 'none'}",
            )
        id_ = options.id or f"{options.operation}:{options.decision}"
        said = {"digest": asked[options.operation], "actor": options.actor, "nonce": id_}
        _say(await client.decide(options.task, id_, options.operation, options.decision, **said))


async def events(options: argparse.Namespace) -> None:
    """Show what was tried, received and refused for a task."""
    async with _client(options) as client:
        _say(await client.journal(options.task))


async def doctor(options: argparse.Namespace) -> None:
    """Check a store nobody serves, or that a server answers."""
    if options.store is None:
        async with _client(options) as client:
            _say({"server": "{}:{}".format(*options.server), **await client.call("ping", {})})
        return
    path = trio.Path(options.store)
    if not await path.exists() or (await path.is_file() and (await path.stat()).st_size == 0):
        raise Refusal(
            "store-missing", f"{options.store} does not exist, or is empty; expected a store that was served before"
        )
    store = Store.open(options.store)
    settings = {name: store.db.pragma(name) for name in PRAGMAS}
    integrity = str(store.db.pragma("integrity_check"))
    _say({"store": options.store, "schema": SCHEMA_VERSION, "integrity": integrity, **settings})
    store.close()
    if integrity != "ok":
        raise Refusal(DAMAGED, f"{options.store}: {integrity:.200}; restore the folder from a copy")


async def _when_told(stop: Callable[[], object]) -> None:
    with trio.open_signal_receiver(signal.SIGTERM) as signals:
        async for _ in signals:
            stop()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("reference_runtime", description="A small durable runtime for agents.")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def add(name: str, command: Callable[[argparse.Namespace], Awaitable[Any]], *, task: bool = False) -> Any:
        one = commands.add_parser(name, help=command.__doc__, description=command.__doc__)
        one.set_defaults(command=command)
        if task:
            one.add_argument("task", help="the task's id")
        if command is not serve:
            one.add_argument("--server", type=_address, default=_address(ADDRESS), help=f"host:port ({ADDRESS})")
        return one

    _add_daemons(add)
    submitting = add("submit", submit, task=True)
    submitting.add_argument("plan", help="a file with the plan's JSON; - for standard input")
    submitting.add_argument("--wait", action="store_true", help="until the task has ended; exit 1 unless it is done")
    add("status", status, task=True)
    signalling = add("signal", send_signal, task=True)
    signalling.add_argument("name", help="the signal's name")
    signalling.add_argument("--id", help="a repeat has the same id (the name)")
    signalling.add_argument("--payload", type=_object, default={"nonce": ""}, help="a JSON object")
    deciding = add("decide", decide, task=True)
    deciding.add_argument("operation", help="the id of the approval, as the status shows it")
    deciding.add_argument("decision", choices=("approve", "deny"))
    deciding.add_argument("--actor", required=True, help="who decides")
    deciding.add_argument("--id", help="a repeat has the same id (OPERATION:DECISION)")
    add("events", events, task=True)
    add("doctor", doctor).add_argument("--store", help="check this file instead of a server")
    return parser


def _add_daemons(add: Callable[..., Any]) -> None:
    serving = add("serve", serve)
    serving.add_argument("--store", required=True, help="the file, made on first use")
    serving.add_argument(
        "--listen", type=_address, default=_address(ADDRESS), help=f"host:port ({ADDRESS}); port 0: any"
    )
    serving.add_argument(
        "--lease-ns", type=_count(1), default=LEASE_NS, help=f"how long silence keeps work ({LEASE_NS})"
    )
    serving.add_argument("--tasks-max", type=_count(1), help="tasks open at once; one more is refused (no limit)")
    serving.add_argument(
        "--transforms", metavar="MODULE", action="append", default=[], help="a module with transforms; may be repeated"
    )
    working = add("worker", worker)
    working.add_argument("--services", required=True, help="where the tools are: http://host:port or lines://host:port")
    working.add_argument(
        "--workflows", metavar="MODULE", action="append", default=[], help="a module with workflows; may be repeated"
    )
    working.add_argument("--code", metavar="VERSION", default="1", help="the version of the code that it runs (1)")
    working.add_argument(
        "--older",
        metavar="VERSION",
        action="append",
        default=[],
        help="a version whose work it goes on with; may be repeated",
    )
    working.add_argument(
        "--transform",
        metavar="VERSION=NAME",
        type=_pair,
        action="append",
        default=[],
        help="the server's transform by which it goes on with the work of a version; may be repeated",
    )
    working.add_argument(
        "--policy", choices=get_args(CodePolicy), help="how it goes on with the work of others (as the options say)"
    )
    working.add_argument("--name", default="worker", help="what its executions are called (worker)")
    working.add_argument("--slots", type=_count(1), default=SLOTS, help=f"operations at a time ({SLOTS})")
    working.add_argument(
        "--call-timeout-ns", type=_count(1), default=CALL_NS, help=f"how long a call may take ({CALL_NS})"
    )
    working.add_argument(
        "--grace-ns", type=_count(0), default=GRACE_NS, help=f"how long a stop waits for calls under way ({GRACE_NS})"
    )
    working.add_argument("--log", choices=("off", "info"), default="off", help="JSON lines on standard error (off)")


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not (port.isascii() and port.isdigit()) or len(port) > 5 or int(port) > PORT_MAX:
        raise argparse.ArgumentTypeError(f"{text!r} is not host:port, with a port of at most {PORT_MAX}")
    return host, int(port)


def _count(low: int) -> Callable[[str], int]:
    """A reader of whole numbers that are not too small, and not too large for the store's clocks."""

    def read(text: str) -> int:
        number = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else -1
        if not low <= number <= COUNT_MAX:
            raise argparse.ArgumentTypeError(f"{text!r:.80} is no whole number from {low} to {COUNT_MAX}")
        return number

    return read


def _code(options: argparse.Namespace) -> Code:
    """What a worker says of its code; the policy is the one that its other options are for, where none is named."""
    meant: CodePolicy = "transform" if options.transform else "compatible" if options.older else "refuse"
    return Code(options.code, options.policy or meant, tuple(options.older), dict(options.transform))


def _pair(text: str) -> tuple[str, str]:
    older, _, name = text.partition("=")
    if not older or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not VERSION=NAME")
    return older, name


def _object(text: str) -> Any:
    try:
        value = jsontext.read(text, unique=True)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r:.80} is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError(f"{text!r:.80} is not a JSON object")
    return value


def _client(options: argparse.Namespace) -> Client:
    return Client(*options.server, patience=Patience(total_ns=PATIENCE_NS))


def _json(path: str) -> Any:
    try:
        return jsontext.read(sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes(), unique=True)
    except (OSError, ValueError) as error:
        raise Refusal("bad-plan", f"{path}: {error}") from error


def _say(data: Any) -> None:
    with suppress(BrokenPipeError):
        print(json.dumps(data), flush=True)  # noqa: T201 - the command's output


def _complain(code: int, message: str) -> int:
    print(f"error: {message}", file=sys.stderr)  # noqa: T201 - the command's output
    return code


if __name__ == "__main__":
    sys.exit(main())
