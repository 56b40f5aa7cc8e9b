"""Everything a Python adapter needs to talk to the kit: one file, standard library only, Python 3.9 or later.

An adapter is a program that the kit starts, kills and starts again. It is asked, one JSON line at a time on standard
input, to `start` a run, to tell its `status`, to `signal` it, and whatever else of `VERBS` its manifest claims; it answers
on standard output:

    {"seq": 1, "verb": "start", "run": "r1", "plan": {...}, "key": "r1"}
    {"seq": 1, "ok": {}}          or    {"seq": 1, "error": {"kind": "definite", "message": "…"}}

Map of this file, top to bottom:

- errors: `Refused` and `Indefinite` are answers of an adapter; `Unknown`, `Busy`, `Rejected`, `Fenced` are answers of a
  service;
- plans: `leaves`, `dependencies` and `open_leaves` read the tree an adapter is given to interpret;
- services: `service_request` and `service_answer` (pure); over HTTP to the services the kit hosts `call` and `lookup`, and
  `authority`, `check` and `publish` for approvals, checks and artifacts;
- protocol: `Protocol` (no I/O), `serve` (this process's stdio), `serve_streams` (any byte streams).

The kit sets SIMKIT_SERVICES (where the services are), SIMKIT_STATE (the folder that is kept over a crash),
SIMKIT_CONFIGURATION and SIMKIT_CALL_TIMEOUT_MS, and where a scenario says so SIMKIT_SECRETS (the values of a plan's secrets,
a JSON object), SIMKIT_CODE (which version of the code this is) and SIMKIT_FORGET (a part of the state to drop at boot).
SIMKIT_CLOCK is for `follow_clock`.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import http.client
import inspect
import json
import mmap
import os
import struct
import sys
import time
import traceback
import urllib.parse
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
    from typing import NoReturn

    Key = str | bool | None

PROTOCOL = 1
LINE_BYTES_MAX = 4 * 1024 * 1024

Json = dict[str, Any]


# --- errors ----------------------------------------------------------------------------------------------------------


class Refused(Exception):  # noqa: N818 - named for the answer it gives
    """Raise it to answer *definitely not*: nothing was accepted, and the kit may rely on that."""


class Indefinite(Exception):  # noqa: N818 - named for the answer it gives
    """Raise it when the harness itself cannot tell whether it accepted; so is every exception nobody thought of."""


class ServiceError(Exception):
    """A service did not simply do what it was asked."""


class Unknown(ServiceError):  # noqa: N818 - as above
    """The request left, and no answer tells what became of it (5xx, reset, timeout): it may have been applied."""


class Busy(ServiceError):  # noqa: N818 - as above
    """Not now, and nothing happened: ask again the same way, with the same key, after `retry_after_ns` if that is told."""

    def __init__(self, message: str, retry_after_ns: int | None = None) -> None:
        super().__init__(message)
        self.retry_after_ns = retry_after_ns


class Rejected(ServiceError):  # noqa: N818 - as above
    """The service definitely refused (4xx); asking again unchanged changes nothing."""


class Fenced(Rejected):
    """Somebody with a newer fencing token was here: this worker no longer owns the operation."""


# --- plans -----------------------------------------------------------------------------------------------------------


def leaves(op: Json) -> Iterator[Json]:
    """The calls, waits and sleeps of a plan or of a part of it, in written order."""
    op = op.get("root", op)
    if "children" not in op:
        yield op
    for child in op.get("children", ()):
        yield from leaves(child)


def dependencies(plan: Json) -> dict[str, list[str]]:
    """For every leaf id the leaf ids that must be accepted before it may begin (direct ones only), in written order."""
    needs: dict[str, list[str]] = {}
    _link(plan.get("root", plan), [], needs)
    return needs


def _link(op: Json, before: list[str], needs: dict[str, list[str]]) -> list[str]:
    """Fill `needs` for `op`, which begins after `before`; return the leaves whose end is the end of `op`."""
    if op["op"] == "seq":
        for child in op["children"]:
            before = _link(child, before, needs)
        return before
    if op["op"] == "par":
        ends = [end for child in op["children"] for end in _link(child, before, needs)]
        return ends or before
    needs[op["id"]] = list(before)
    return [op["id"]]


def open_leaves(plan: Json, accepted: Mapping[str, Any]) -> list[Json]:
    """The leaves that may be under way: not in `accepted` themselves, everything they depend on is."""
    needs = dependencies(plan)
    return [op for op in leaves(plan) if op["id"] not in accepted and all(one in accepted for one in needs[op["id"]])]


# --- services --------------------------------------------------------------------------------------------------------

#: Services that honour an idempotency key; `call` sends one to them unless told otherwise.
KEYED = ("ledger", "flaky", "fenced", "operation")

#: Operations that are worked by one service, which the plan does not name.
_SERVICE_OF = {"model": "model", "artifact": "store", "approve": "desk", "check": "checker"}


def service_request(op: Json, run: str, answers: Mapping[str, str], keyed: Key = "auto", **fields: Any) -> Json:
    """What a call, or a request to the model, sends. `answers` are the accepted nonces so far; those named in `carries`
    travel along.

    `keyed`: "auto" sends the key `run:op` where the receiver honours keys, True always, False or None never, and any
    other string is the key itself (for a harness that makes keys of its own). `fields` are further fields of a request:
    `token` for fencing, `remaining_ns` of a deadline, `secret`, `actor`, and for checkers and stores `subject`, `version`,
    `digest`, `part`.
    """
    service = _service(op)
    if keyed == "auto":
        keyed = service in KEYED
    key = f"{run}:{op['id']}" if keyed is True else (keyed or None)
    carries = {name: answers[name] for name in op.get("carries", ())}
    return {
        "service": service,
        "run": run,
        "op": op["id"],
        "key": key,
        "params": _params(op),
        "carries": carries,
        "script": op.get("script", []),
        "lookup": False,
        **{name: value for name, value in fields.items() if value is not None},
    }


def service_answer(status: int, body: Any) -> str:
    """The nonce of a service's answer. Raises `Unknown`, `Busy`, `Rejected` or `Fenced`."""
    told = body if isinstance(body, dict) else {}
    nonce = told.get("nonce")
    if status == 200 and isinstance(nonce, str):
        return nonce
    _refuse(status, told)
    raise Unknown(f"{status}: {body}")


def call(op: Json, run: str, answers: Mapping[str, str], keyed: Key = "auto", **fields: Any) -> str:
    """Carry out a call of the plan, or its request to the model, and return the nonce of the answer.

    One connection per call, so that a broken one can only mean this call. A secret that the plan names is taken from what
    the kit entrusted to the worker. Raises `Unknown`, `Busy`, `Rejected` or `Fenced`.
    """
    if op.get("secret") is not None:
        fields.setdefault("secret", secret(op["secret"]))
    return service_answer(*_post(service_request(op, run, answers, keyed, **fields)))


def lookup(op: Json, run: str) -> str | None:
    """Ask the service what became of a call: the nonce of its effect, or None when there is none. Raises as `call` does."""
    status, body = _look_up(op.get("service", "registry"), op, run)
    return None if status == 404 else service_answer(status, body)


def authority(op: Json, run: str, actor: str) -> bool:
    """Whether `actor` may, at this moment, decide the approval `op`. Raises `Unknown` when the desk does not say."""
    status, body = _look_up("desk", op, run, actor=actor)
    if status != 200 or not isinstance(body, dict):
        raise Unknown(f"{status}: {body}")
    return body.get("allowed") is True


def check(op: Json, run: str, subject: str, version: int, digest: str) -> Json:
    """Have the checker judge this version of an artifact; the answer has `outcome` and `nonce`. Raises as `call` does."""
    status, body = _post(service_request(op, run, {}, False, subject=subject, version=version, digest=digest))
    service_answer(status, body)
    return dict(body)


def publish(op: Json, run: str, answers: Mapping[str, str], location: str) -> Json:
    """Put the content of the artifact `op` into the store, part by part, and commit it at `location`.

    The answer has `nonce`, `location`, `digest` and `size`. To be asked again after a failure: a part put twice is one part,
    and a second commit gets the answer of the first. Raises as `call` does.
    """
    data, parts = content(run, op["id"], op["size"]), op.get("parts", 1)
    stride = -(-len(data) // parts)
    for n in range(1, parts + 1):
        part = base64.b64encode(data[(n - 1) * stride : n * stride]).decode("ascii")
        put = {"action": "put", "location": location, "parts": parts, "data": part}
        status, body = _post(service_request({**op, "params": put}, run, answers, False, part=n))
        if status != 200:
            service_answer(status, body)
    commit = {**op, "params": {"action": "commit", "location": location, "parts": parts}}
    status, body = _post(service_request(commit, run, answers, False, digest=hashlib.sha256(data).hexdigest()))
    service_answer(status, body)
    return dict(body)


def content(run: str, op: str, size: int) -> bytes:
    """The bytes that the artifact `op` of `run` publishes: the 64-byte blake2b digest of `run:op`, repeated and cut."""
    block = hashlib.blake2b(f"{run}:{op}".encode()).digest()
    return (block * (size // len(block) + 1))[:size]


def secret(name: str) -> str:
    """The value of a secret that the kit entrusted to this process; write it nowhere."""
    return str(json.loads(os.environ["SIMKIT_SECRETS"])[name])


def _service(op: Json) -> str:
    return str(op.get("service") or _SERVICE_OF[op["op"]])


def _params(op: Json) -> Any:
    if op.get("op") == "model":
        return {name: op[name] for name in ("prompt", "tokens", "uses") if op.get(name) is not None}
    return op.get("params", {})


def _refuse(status: int, told: Json) -> None:
    """Raise for a status that says for certain that nothing happened."""
    if status == 409 and told.get("error") == "fenced":
        raise Fenced("409: a newer fencing token has been seen")
    if status == 409:
        raise Busy("409: another request with this key is in progress")
    if status in (429, 529):
        raise Busy(f"{status}: {told}", told.get("retry_after_ns"))
    if 400 <= status < 500:
        raise Rejected(f"{status}: {told}")


def _post(request: Json) -> tuple[int, Any]:
    headers = {"Content-Type": "application/json"}
    if request["key"] is not None:
        headers["Idempotency-Key"] = request["key"]
    if "secret" in request:
        headers["Secret"] = request["secret"]
    body = {name: value for name, value in request.items() if name not in ("service", "key", "lookup", "secret")}
    return _http("POST", f"/{request['service']}", json.dumps(body).encode(), headers)


def _look_up(service: str, op: Json, run: str, **query: str) -> tuple[int, Any]:
    query["reference"] = f"{run}:{op['id']}"
    if op.get("lookups"):
        query["script"] = json.dumps(op["lookups"])
    return _http("GET", f"/{service}?{urllib.parse.urlencode(query)}", None, {})


def _http(method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> tuple[int, Any]:
    address = os.environ["SIMKIT_SERVICES"]
    url = urllib.parse.urlsplit(address if "//" in address else f"//{address}")
    timeout_s = int(os.environ.get("SIMKIT_CALL_TIMEOUT_MS", "2000")) / 1000
    connection = http.client.HTTPConnection(url.hostname or "", url.port, timeout=timeout_s)
    try:
        connection.request(method, path, body, dict(headers))
        reply = connection.getresponse()
        return reply.status, json.loads(reply.read() or b"null")
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise Unknown(f"no answer to {method} {path}: {error!r}") from error
    finally:
        connection.close()


def state_folder() -> Path:
    """The folder that is kept over a crash; an adapter writes nowhere else."""
    return Path(os.environ["SIMKIT_STATE"])


def follow_clock() -> None:
    """Let the kit set the wall clock of this program: `time.time`, `time.time_ns` and their likes for CLOCK_REALTIME.

    Call it before anything reads the time. Nothing happens where the kit sets no clocks; it does where the manifest says
    `clock = true` of the unit. What asks the system in another way (`datetime.now`, SQLite) is not reached.
    """
    if "SIMKIT_CLOCK" not in os.environ:
        return
    with Path(os.environ["SIMKIT_CLOCK"]).open("r+b") as file:
        shared = mmap.mmap(file.fileno(), 16)  # by how much it is off, and what has been added of it
    number, real_ns, clock_ns, realtime = struct.Struct("<q"), time.time_ns, time.clock_gettime_ns, time.CLOCK_REALTIME

    def time_ns() -> int:
        off_ns: int = number.unpack_from(shared, 0)[0]
        number.pack_into(shared, 8, off_ns)
        return real_ns() + off_ns

    def clock_gettime_ns(clock: int) -> int:
        return time_ns() if clock == realtime else clock_ns(clock)

    time.time_ns, time.time = time_ns, lambda: time_ns() / 1e9
    time.clock_gettime_ns, time.clock_gettime = clock_gettime_ns, lambda clock: clock_gettime_ns(clock) / 1e9


def configuration() -> str:
    """Which of the manifest's configurations this process runs."""
    return os.environ.get("SIMKIT_CONFIGURATION", "default")


# --- protocol --------------------------------------------------------------------------------------------------------

#: Verbs and their fields. An adapter has a method of that name taking those fields, and answers with a dict where the verb
#: has something to tell; a verb it has no method for is refused, but for `hello`.
VERBS: Mapping[str, tuple[str, ...]] = {
    "hello": ("protocol",),
    "start": ("run", "plan", "key"),
    "status": ("run",),
    "signal": ("run", "name", "payload", "id"),
    "resume": ("run",),
    "decide": ("run", "operation", "decision", "digest", "actor", "payload", "id"),
    "cancel": ("run", "id"),
    "pause": ("run", "id"),
    "unpause": ("run", "id"),
    "events": ("run", "after"),
    "artifacts": ("run",),
    "journal": ("run",),
}
_STATUS: Json = {
    "state": "unknown",
    "on": None,
    "result": None,
    "error": None,
    "attempt": None,
    "execution": None,
    "version": None,
    "operations": [],
}


class Protocol:
    """Turns a request line into an answer line by asking the adapter; does no I/O of its own."""

    def __init__(self, adapter: Any) -> None:
        self._adapter = adapter

    async def handle(self, line: bytes) -> bytes:
        """Answer one line. Never raises for what the line holds or the adapter does: that becomes an error answer."""
        seq, answer = None, {}
        try:
            message = _parse(line)
            seq = message["seq"]
            _check(message)
            answer = {"ok": await self._ask(message)}
        except Refused as error:
            answer = _error("definite", str(error))
        except Exception as error:  # noqa: BLE001 - whatever an adapter does, the kit gets an answer
            if not isinstance(error, Indefinite):
                with contextlib.suppress(OSError):  # there may be no room for its log
                    traceback.print_exc()
            answer = _error("indefinite", f"{type(error).__name__}: {error}")
        return _line(seq, answer)

    async def _ask(self, message: Json) -> Any:
        verb = message["verb"]
        fields = {name: message[name] for name in VERBS[verb]}
        if verb == "hello":
            return await self._hello(fields["protocol"])
        method = getattr(self._adapter, verb, None)
        if method is None:
            called = ", ".join(("self", *VERBS[verb]))
            raise Refused(f"the class {type(self._adapter).__name__} has no method `{verb}({called})`")
        answer = method(**fields)
        if inspect.isawaitable(answer):
            answer = await answer
        if verb == "status":
            return _status(answer)
        return answer if isinstance(answer, dict) else {}

    async def _hello(self, protocol: int) -> Json:
        if protocol != PROTOCOL:
            raise Refused(f"protocol {protocol!r} asked for; this helper speaks {PROTOCOL}")
        own = self._adapter.hello() if hasattr(self._adapter, "hello") else None
        if inspect.isawaitable(own):
            own = await own
        return {"protocol": PROTOCOL, "python": sys.version.split()[0], **(own or {})}


def _line(seq: int | None, answer: Json) -> bytes:
    try:
        return json.dumps({"seq": seq, **answer}).encode() + b"\n"
    except (TypeError, ValueError) as error:
        answer = _error("indefinite", f"the adapter's answer is not JSON: {error}: {answer!r:.300}")
        return json.dumps({"seq": seq, **answer}).encode() + b"\n"


def _parse(line: bytes) -> Json:
    """The message in a line; raises `Refused` when it is none."""
    try:
        message = json.loads(line)
    except ValueError as error:
        raise Refused(f"not a JSON line: {error}: {line[:120]!r}") from None
    if not isinstance(message, dict) or not isinstance(message.get("seq"), int):
        raise Refused(f"a request is an object with an integer seq; got {line[:120]!r}")
    return message


def _check(message: Json) -> None:
    """Raise `Refused` naming the verb or the fields that are not as they must be."""
    verb = str(message.get("verb"))
    if verb not in VERBS:
        raise Refused(f"unknown verb {verb!r}; there are {', '.join(VERBS)}")
    if unknown := [name for name in message if name not in ("seq", "verb", *VERBS[verb])]:
        raise Refused(f"{verb}: unknown fields {', '.join(unknown)}; it takes {', '.join(VERBS[verb])}")
    if missing := [name for name in VERBS[verb] if name not in message]:
        raise Refused(f"{verb}: fields {', '.join(missing)} are missing")


def _status(answer: Any) -> Any:
    """Fill in what an adapter may leave out of a status; a mere string is the state."""
    if isinstance(answer, str):
        answer = {"state": answer}
    return {**_STATUS, **answer} if isinstance(answer, dict) else answer


def _error(kind: str, message: str) -> Json:
    return {"error": {"kind": kind, "message": message}}


async def serve_streams(
    adapter: Any,
    receive_some: Callable[[], Awaitable[bytes | bytearray]],
    send_all: Callable[[bytes], Awaitable[Any]],
) -> None:
    """Serve over any byte streams (a trio stream's methods fit) until the other side closes."""
    protocol, pending = Protocol(adapter), b""
    while chunk := bytes(await receive_some()):
        *lines, pending = (pending + chunk).split(b"\n")
        for line in lines:
            await send_all(await protocol.handle(line))
        if len(pending) > LINE_BYTES_MAX:
            raise ValueError(f"a request line is longer than {LINE_BYTES_MAX} bytes")


def serve(adapter: Any) -> NoReturn:
    """Serve on standard input and output, one request at a time, until the kit closes its end; then leave at once.

    What the program prints goes to standard error: nothing but answers can reach the kit. An adapter with `async`
    methods runs in one asyncio loop. Leaving skips all clean-up: threads of a harness could hold the process for ever.
    """
    requests, answers = _take_stdio()
    status = 0
    try:
        if any(inspect.iscoroutinefunction(getattr(adapter, verb, None)) for verb in VERBS):
            asyncio.run(_serve_asyncio(adapter, requests, answers))
        else:
            protocol = Protocol(adapter)
            while line := requests.readline():
                _write_all(answers, _run_now(protocol.handle(line)))
    except BrokenPipeError:
        pass  # the kit is gone
    except BaseException:  # noqa: BLE001 - the process ends here
        traceback.print_exc()
        status = 1
    finally:
        sys.stderr.flush()
        os._exit(status)


def _take_stdio() -> tuple[Any, int]:
    """Keep the protocol's two ends for us and give the program /dev/null to read and standard error to print to."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    sys.stdout.flush()
    os.dup2(2, 1)
    return requests, answers


async def _serve_asyncio(adapter: Any, requests: Any, answers: int) -> None:
    loop = asyncio.get_running_loop()

    async def receive_some() -> bytes:
        return await loop.run_in_executor(None, requests.readline)

    async def send_all(data: bytes) -> None:
        _write_all(answers, data)

    await serve_streams(adapter, receive_some, send_all)


def _write_all(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


def _run_now(answer: Coroutine[Any, Any, bytes]) -> bytes:
    """Run a coroutine that never has to wait, as those of a plain adapter."""
    try:
        answer.send(None)
    except StopIteration as done:
        return bytes(done.value)
    raise RuntimeError("a method of this adapter returned an awaitable; declare its verbs `async def`")
