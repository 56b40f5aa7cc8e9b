"""`python -m reference_runtime`: run a server or a worker, and talk to a server.

Data goes to standard output, as JSON; everything else to standard error. Exit codes: 0 done, 1 refused, 2 usage,
3 the server could not be reached, 130 interrupted.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack

import apsw
import trio

from reference_runtime import cli
from reference_runtime.bounding import AtMost
from reference_runtime.cli import client_of, complaining_of_silence, complaining_of_turns, say
from reference_runtime.cli_options import Command, code_of, parser, policy_of
from reference_runtime.connections import Connections, descriptors_for, keep_alive
from reference_runtime.credentials import SECRETS, Credentials
from reference_runtime.evolution import load_transforms
from reference_runtime.gathering import check_commit_delay
from reference_runtime.handle import NS, Unreachable
from reference_runtime.log import OFF, Log, to_standard_error
from reference_runtime.memory import keep_freed
from reference_runtime.model import Refusal
from reference_runtime.promises import load_declared
from reference_runtime.rpc import VERBS
from reference_runtime.schema import DAMAGED, PRAGMAS, SCHEMA_VERSION
from reference_runtime.server import Server
from reference_runtime.store import Store
from reference_runtime.tools import connect
from reference_runtime.worker import Worker
from reference_runtime.workflow import load

KEPT = "nothing was acknowledged that is not in it"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; its exit code."""
    options = parser(COMMANDS).parse_args(argv)
    command: Command = options.command
    try:
        return trio.run(command, options) or 0
    except BaseException as error:  # noqa: BLE001 - told, or raised again
        return _explain(_cause(error), getattr(options, "store", None) or "the store", _name_of(command))


def _cause(error: BaseException) -> BaseException:
    """The first thing that went wrong in a nursery, which speaks of all of them at once."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _name_of(command: Command) -> str:
    return next(name for name, one in COMMANDS.items() if one is command)


def _explain(error: BaseException, store: str, command: str) -> int:
    """Tell what a user can meet, and its exit code; anything else is a bug and is raised again."""
    match error:
        case Refusal():
            return _complain(1, str(error))
        case Unreachable():
            said = str(error)
            verb, colon, rest = said.partition(": ")
            told = f"{command}: {rest}" if colon and verb in VERBS else said  # what is asked has a name of its own
            return _complain(3, f"{told}; is `python -m reference_runtime serve` running there?")
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
    check_commit_delay(options.commit_delay_ns, options.lease_ns)
    keep_freed()
    log = to_standard_error() if options.log == "info" else OFF
    async with AsyncExitStack() as stack:
        listeners = await _listening(stack, *options.listen)  # first, or there would be a store for nothing
        await _serve(options, listeners, log)


async def _listening(stack: AsyncExitStack, host: str, port: int) -> list[trio.SocketListener]:
    try:
        listeners = await trio.open_tcp_listeners(port, host=host)
    except OSError as error:
        why = f"{os.strerror(error.errno) if error.errno else error}; --listen takes another place"
        raise Refusal("cannot-listen", f"{host}:{port}: {why}") from error
    for listener in listeners:
        await stack.enter_async_context(listener)
    keep_alive(listeners)
    return listeners


async def _serve(options: argparse.Namespace, listeners: list[trio.SocketListener], log: Log) -> None:
    transforms, tools = load_transforms(*options.transforms), load_declared(*options.tools)
    store = Store.open(options.store, policy=policy_of(options), transforms=transforms, tools=tools)
    store.forget_when_told(os.environ)
    room = descriptors_for(options.connections_max)
    if room < options.connections_max:
        log("fewer-connections", asked=options.connections_max, room=room)
    server = Server(
        store,
        lease_ns=options.lease_ns,
        commit_delay_ns=options.commit_delay_ns,
        connections=Connections(room, log=log),
        log=log,
    )
    logging.getLogger("trio.serve_listeners").addFilter(_without_traceback)
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_when_told, nursery.cancel_scope.cancel)
            await nursery.start(server.serve_on, listeners)
            say({"listening": f"{options.listen[0]}:{listeners[0].socket.getsockname()[1]}", "store": options.store})
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
        client_of(options, complaining_of_silence(options, log)),
        tools,
        name=options.name,
        slots=options.slots,
        grace_ns=options.grace_ns,
        log=complaining_of_turns(log),
        workflows=load(*options.workflows),
        code=code_of(options),
        bounding=lambda seconds: AtMost(min(seconds, options.turn_ns / NS)),
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_when_told, one.stop)
        await one.run()
        nursery.cancel_scope.cancel()


async def doctor(options: argparse.Namespace) -> None:
    """Check a store nobody serves, or that a server answers."""
    if options.store is None:
        async with client_of(options) as client:
            say({"server": "{}:{}".format(*options.server), **await client.call("ping", {})})
        return
    path = trio.Path(options.store)
    if not await path.exists() or (await path.is_file() and (await path.stat()).st_size == 0):
        raise Refusal(
            "store-missing", f"{options.store} does not exist, or is empty; expected a store that was served before"
        )
    store = Store.open(options.store)
    settings = {name: store.db.pragma(name) for name in PRAGMAS}
    integrity = str(store.db.pragma("integrity_check"))
    say({"store": options.store, "schema": SCHEMA_VERSION, "integrity": integrity, **settings})
    store.close()
    if integrity != "ok":
        raise Refusal(DAMAGED, f"{options.store}: {integrity:.200}; restore the folder from a copy")


def _without_traceback(record: logging.LogRecord) -> bool:
    """Have trio tell in one line that the system has no descriptor for another connection; where it was is of no interest."""
    record.exc_info = None
    return True


async def _when_told(stop: Callable[[], object]) -> None:
    with trio.open_signal_receiver(signal.SIGTERM) as signals:
        async for _ in signals:
            stop()


def _complain(code: int, message: str) -> int:
    print(f"error: {message}", file=sys.stderr)  # noqa: T201 - the command's output
    return code


COMMANDS: Mapping[str, Command] = {
    "serve": serve,
    "worker": worker,
    "submit": cli.submit,
    "status": cli.status,
    "tasks": cli.tasks,
    "workers": cli.workers,
    "events": cli.events,
    "signal": cli.send_signal,
    "decide": cli.decide,
    "cancel": cli.cancel,
    "pause": cli.pause,
    "resume": cli.resume,
    "retry": cli.retry,
    "settle": cli.settle,
    "artifacts": cli.artifacts,
    "journal": cli.journal,
    "doctor": doctor,
}

if __name__ == "__main__":
    sys.exit(main())
