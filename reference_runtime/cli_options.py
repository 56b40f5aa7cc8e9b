"""What the command line takes: its commands, their options, and how the words of these are read."""

from __future__ import annotations

import argparse
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, get_args

from reference_runtime import jsontext
from reference_runtime.cli import OUTAGE_NS, PATIENCE_NS
from reference_runtime.connections import CONNECTIONS_MAX
from reference_runtime.durations import nanoseconds, spelled
from reference_runtime.evolution import Code, CodePolicy
from reference_runtime.gathering import COMMIT_DELAY_NS_MAX
from reference_runtime.ids import fault_of
from reference_runtime.model import APPROVERS, Policy
from reference_runtime.promises import load_declared
from reference_runtime.reading import Reader
from reference_runtime.rpc import STATES, TASKS
from reference_runtime.server import LEASE_NS
from reference_runtime.tools import CALL_NS
from reference_runtime.vouching import WORDS
from reference_runtime.worker import GRACE_NS, SLOTS

ADDRESS = "127.0.0.1:7411"
PORT_MAX = 65_535
COUNT_MAX = 10**18
#: Real receivers are out for minutes and hours: with the policy's own limit of a second all tries would be used up by then.
BACKOFF_NS_MAX = 60 * 1_000_000_000
TURN_NS = LEASE_NS // 2
PATIENCE = (
    f"how long the server may give no answer ({spelled(PATIENCE_NS)}; {spelled(OUTAGE_NS)} for --wait and --follow"
    " once it has given one)"
)
#: Questions of one search: as many as calls of one operation, so that a search outlasts the same outages.
LOOKUPS_MAX = Policy().tries_max

Command = Callable[[argparse.Namespace], Awaitable[int | None]]
Add = Callable[..., Any]


def parser(commands: Mapping[str, Command]) -> argparse.ArgumentParser:
    """Reads a command line into options, of which `command` is the command to run; its docstring is its help."""
    reader = Reader("reference_runtime", description="A small durable runtime for agents.")
    added = reader.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def add(name: str, *, task: bool = False) -> Any:
        command = commands[name]
        one = added.add_parser(name, help=command.__doc__, description=command.__doc__)
        one.set_defaults(command=command, patience_ns=None)
        if task:
            one.add_argument("task", help="the task's id")
        if name != "serve":
            one.add_argument("--server", type=_address, default=_address(ADDRESS), help=f"host:port ({ADDRESS})")
        if name not in ("serve", "worker"):
            one.add_argument("--patience", type=_duration(1), dest="patience_ns", metavar="DURATION", help=PATIENCE)
        return one

    _add_serve(add)
    _add_worker(add)
    _add_questions(add)
    _add_words(add)
    add("doctor").add_argument("--store", help="check this file instead of a server")
    return reader


def _add_questions(add: Add) -> None:
    submitting = add("submit", task=True)
    submitting.add_argument("plan", help="a file with the plan's JSON; - for standard input")
    submitting.add_argument("--wait", action="store_true", help="until the task has ended; exit 1 unless it is done")
    _add_format(add("status", task=True))
    reading = add("events", task=True)
    reading.add_argument("--after", type=_count(0), default=0, metavar="CURSOR", help="only what came after it (0)")
    reading.add_argument("--follow", action="store_true", help="go on until the task has ended")
    _add_listing(add)
    _add_format(add("workers"))
    _add_format(add("journal", task=True))
    add("artifacts", task=True)


def _add_format(command: argparse.ArgumentParser) -> None:
    command.add_argument("--format", choices=("json", "text"), default="json", help="for programs, or people (json)")


def _add_listing(add: Add) -> None:
    listing = add("tasks")
    _add_format(listing)
    listing.add_argument("--state", choices=STATES, help="only those in this state (any)")
    listing.add_argument("--after", default="", metavar="TASK", help="only those whose ids come after this one (all)")
    listing.add_argument("--limit", type=_count(1), default=TASKS, help=f"how many at most ({TASKS})")


def _add_words(add: Add) -> None:
    signalling = add("signal", task=True)
    signalling.add_argument("name", help="the signal's name")
    signalling.add_argument("--id", help="a repeat has the same id (the name)")
    signalling.add_argument("--payload", type=_object, default={"nonce": ""}, help="a JSON object")
    deciding = add("decide", task=True)
    deciding.add_argument("operation", help="the id of the approval, as the status shows it")
    deciding.add_argument("decision", choices=("approve", "deny"))
    deciding.add_argument("--actor", required=True, help="who decides")
    deciding.add_argument("--id", help="a repeat has the same id (a new one)")
    settling = add("settle", task=True)
    settling.add_argument("operation", help="the id of an operation that is unresolved, as the status shows it")
    settling.add_argument("word", choices=WORDS, help="what is known of it by now")
    settling.add_argument("--actor", type=_name, required=True, help="who vouches for it")
    settling.add_argument("--nonce", help="what it is known by where it was done, if it happened (the id)")
    settling.add_argument("--id", help="a repeat has the same id (a new one)")
    for name in ("cancel", "pause", "resume", "retry"):
        add(name, task=True).add_argument("--id", help="a repeat has the same id (a new one)")


def _add_serve(add: Add) -> None:
    serving = add("serve")
    serving.add_argument("--store", required=True, help="the file, made on first use")
    serving.add_argument(
        "--listen", type=_address, default=_address(ADDRESS), help=f"host:port ({ADDRESS}); port 0: any"
    )
    _add_duration(serving, "--lease", LEASE_NS, "how long silence keeps work")
    _add_duration(
        serving,
        "--commit-delay",
        0,
        f"how long a commit waits for others to share it, at most {spelled(COMMIT_DELAY_NS_MAX)} and a quarter of a lease",
        low=0,
        high=COMMIT_DELAY_NS_MAX,
    )
    serving.add_argument("--tasks-max", type=_count(1), help="tasks open at once; one more is refused (no limit)")
    _add_count(serving, "--tries-max", Policy().tries_max, "calls of one operation at most; a plan may ask for fewer")
    _add_count(serving, "--lookups-max", LOOKUPS_MAX, "questions at most in one search for what became of a call")
    _add_count(
        serving,
        "--deaths-max",
        Policy().deaths_max,
        "workers that may be lost over one operation, or one turn, before it is set aside",
    )
    _add_duration(serving, "--backoff-max", BACKOFF_NS_MAX, "how long the wait between two tries may grow")
    _add_count(serving, "--connections-max", CONNECTIONS_MAX, "connections open at once; one more is refused")
    serving.add_argument("--log", choices=("off", "info"), default="off", help="JSON lines on standard error (off)")
    serving.add_argument(
        "--approver",
        metavar="NAME",
        type=_name,
        action="append",
        help=f"who may decide about approvals; may be repeated ({', '.join(APPROVERS)})",
    )
    serving.add_argument(
        "--transforms", metavar="MODULE", action="append", default=[], help="a module with transforms; may be repeated"
    )
    _add_tools(serving, "that may be called")


def _add_worker(add: Add) -> None:
    working = add("worker")
    working.add_argument("--services", required=True, help="where the tools are: http://host:port or lines://host:port")
    working.add_argument(
        "--workflows", metavar="MODULE", action="append", default=[], help="a module with workflows; may be repeated"
    )
    _add_tools(working, "that it carries out")
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
    _add_count(working, "--slots", SLOTS, "operations at a time")
    _add_duration(working, "--call-timeout", CALL_NS, "how long a call may take")
    _add_duration(working, "--turn", TURN_NS, "how long a workflow may compute between awaits, at most half of a lease")
    _add_duration(working, "--grace", GRACE_NS, "how long a stop waits for calls under way", low=0)
    working.add_argument("--log", choices=("off", "info"), default="off", help="JSON lines on standard error (off)")


def _add_tools(command: argparse.ArgumentParser, which: str) -> None:
    what = f"a file that declares tools of one's own {which}; may be repeated"
    command.add_argument("--tools", metavar="FILE", action="append", default=[], help=what)


def _add_count(command: argparse.ArgumentParser, name: str, default: int, what: str, *, low: int = 1) -> None:
    """An option that is a whole number."""
    command.add_argument(name, type=_count(low), default=default, help=f"{what} ({default})")


def _add_duration(
    command: argparse.ArgumentParser, name: str, default: int, what: str, *, low: int = 1, high: int = COUNT_MAX
) -> None:
    """An option that is a duration, and its like in nanoseconds, `NAME-ns`; one of the two may be given."""
    options, kept = command.add_mutually_exclusive_group(), f"{name[2:].replace('-', '_')}_ns"
    options.add_argument(
        name,
        type=_duration(low, high),
        default=default,
        dest=kept,
        metavar="DURATION",
        help=f"{what}: 5s, 250ms, … ({spelled(default)})",
    )
    options.add_argument(
        f"{name}-ns",
        type=_count(low, high),
        default=argparse.SUPPRESS,
        dest=kept,
        metavar="N",
        help="the same in nanoseconds",
    )


def _address(text: str) -> tuple[str, int]:
    scheme, slashes, _ = text.rpartition("://")
    if slashes:
        raise argparse.ArgumentTypeError(f"{text!r} is not host:port; leave out {scheme}://")
    host, _, port = text.rpartition(":")
    if not host or not (port.isascii() and port.isdigit()) or len(port) > 5 or int(port) > PORT_MAX:
        raise argparse.ArgumentTypeError(f"{text!r} is not host:port, with a port of at most {PORT_MAX}")
    return host, int(port)


def _name(text: str) -> str:
    if (fault := fault_of(text)) is not None:
        raise argparse.ArgumentTypeError(f"the name {text!r:.80} {fault}")
    return text


def _count(low: int, high: int = COUNT_MAX) -> Callable[[str], int]:
    """A reader of whole numbers that are not too small, and not too large for the store's clocks."""

    def read(text: str) -> int:
        number = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else -1
        if not low <= number <= high:
            raise argparse.ArgumentTypeError(f"{text!r:.80} is no whole number from {low} to {high}")
        return number

    return read


def _duration(low: int, high: int = COUNT_MAX) -> Callable[[str], int]:
    """A reader of durations in nanoseconds, within the bounds of `_count`."""

    def read(text: str) -> int:
        try:
            ns = nanoseconds(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None
        if not low <= ns <= high:
            raise argparse.ArgumentTypeError(f"{text!r:.80} is not from {spelled(low)} to {spelled(high)}")
        return ns

    return read


def policy_of(options: argparse.Namespace) -> Policy:
    """By what limits a server is run, and who may decide about what it asks."""
    return Policy(
        tries_max=options.tries_max,
        lookups_max=options.lookups_max,
        deaths_max=options.deaths_max,
        backoff_ns_max=options.backoff_max_ns,
        tasks_max=options.tasks_max,
        approvers=tuple(options.approver or APPROVERS),
    )


def code_of(options: argparse.Namespace) -> Code:
    """What a worker says of its code; the policy is the one that its other options are for, where none is named. Raises as
    `load_declared`.
    """
    meant: CodePolicy = "transform" if options.transform else "compatible" if options.older else "refuse"
    tools = {name: one.semantics for name, one in load_declared(*options.tools).items()}
    return Code(options.code, options.policy or meant, tuple(options.older), dict(options.transform), tools)


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
