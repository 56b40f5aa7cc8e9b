"""Calls between clients, workers and the server: one JSON object a line, over any byte stream.

`{"id": 7, "verb": "submit", "params": {"task": "t1", "plan": {…}}}` is answered by `{"id": 7, "ok": {…}}` or
`{"id": 7, "error": {"code": "conflict", "message": "…"}}`. An error is a definite no. No answer means nothing: every verb
may be repeated as it is, and repeating is the caller's way to find out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import trio

from reference_runtime import jsontext
from reference_runtime.ids import check_id, check_task_id
from reference_runtime.model import Facts, Grant, Json, Refusal

LINE_BYTES_MAX = 4 * 1024 * 1024
#: Longest answer: what a long task has become is more than anybody says at once.
ANSWER_BYTES_MAX = 64 * LINE_BYTES_MAX
#: What a peer can do to a connection; none of it says anything about what the peer did.
LOST = (OSError, trio.BrokenResourceError, trio.ClosedResourceError)

#: The code of the refusal of a connection, whatever would be asked over it: it may be tried again.
CROWDED = "too-many-connections"
#: What is sent at a time; how long a peer takes is counted from piece to piece.
PIECE_BYTES = 256 * 1024

#: The verbs, their fields and the types these must have; a field that is not listed is refused by name.
VERBS: Mapping[str, Mapping[str, type]] = {
    "ping": {},
    "submit": {"task": str, "plan": dict},
    "status": {"task": str},
    "signal": {"task": str, "id": str, "name": str, "payload": dict},
    "tasks": {"after": str, "limit": int, "state": str},
    "workers": {},
    "journal": {"task": str},
    "events": {"task": str, "after": int},
    "artifacts": {"task": str},
    "decide": {
        "task": str,
        "id": str,
        "operation": str,
        "decision": str,
        "digest": str,
        "actor": str,
        "payload": dict,
    },
    "cancel": {"task": str, "id": str},
    "pause": {"task": str, "id": str},
    "unpause": {"task": str, "id": str},
    "retry": {"task": str, "id": str},
    "vouch": {"task": str, "id": str, "operation": str, "word": str, "actor": str, "nonce": str},
    "hello": {"name": str, "code": dict},
    "claim": {"execution": str, "holding": list, "limit": int},
    "heartbeat": {"execution": str, "generations": list},
    "dispatch": {"grant": dict},
    "settle": {
        "grant": dict,
        "report": str,
        "answer": dict,
        "detail": str,
        "facts": dict,
        "execution": str,
        "limit": int,
    },
    "release": {"execution": str},
    "claim_turns": {"execution": str, "codes": dict, "warm": dict, "holding": list, "limit": int, "batch": int},
    "tell_more": {"generation": int, "known": list, "batch": int},
    "take_turn": {
        "turn": dict,
        "execution": str,
        "code": str,
        "known": list,
        "batch": int,
        "commands": list,
        "end": dict,
        "trouble": str,
    },
}


#: Fields that may be left out.
OPTIONAL: Mapping[str, Mapping[str, type]] = {
    "settle": {"ahead": dict},
    "status": {"explain": bool},
    "take_turn": {"expected": str, "places": dict},
}
#: The field in which a verb brings an id that is its caller's to choose.
GIVES_ID: Mapping[str, str] = {
    **dict.fromkeys(("signal", "decide", "cancel", "pause", "unpause", "retry", "vouch"), "id"),
    "hello": "name",
}
#: Fields that say how many at most; to the database a negative limit is none.
COUNTS = frozenset({"limit", "batch"})
#: Fields that are lists of numbers, and the only ones.
NUMBERS = frozenset({"holding", "generations", "known"})
#: Fields that are objects of any names, and what is under these.
NAMED: Mapping[str, type] = {"codes": str, "warm": list, "places": str}
#: Fields of which more is looked at than their type.
PARTICULAR = COUNTS | NUMBERS | NAMED.keys()
#: What `tasks` may ask for, and how many it shows: as a rule, and at most.
STATES = ("waiting", "running", "blocked", "done", "failed", "cancelled")
TASKS, TASKS_MAX = 100, 500
#: What the store can keep of a whole number.
WHOLE_MIN, WHOLE_MAX = -(2**63), 2**63 - 1


class Stranger(ValueError):  # noqa: N818 - what is told of whoever answers
    """Something answers that is no server of these verbs."""


class Lines:
    """A byte stream cut into lines of at most `bytes_max` bytes.

    `since` is when a line began that has not ended, or the piece of one that is being sent; None between lines.
    """

    def __init__(self, stream: trio.abc.Stream, bytes_max: int = LINE_BYTES_MAX) -> None:
        self.stream = stream
        self.bytes_max = bytes_max
        self._pending = bytearray()
        self._searched = 0
        self.since: float | None = None

    async def send(self, message: Json, bytes_max: int = ANSWER_BYTES_MAX) -> None:
        """Send one line. Raises `Refusal` (`too-large`), and sends nothing, when that would be longer than `bytes_max`."""
        line = line_of(message, bytes_max)
        self.since = trio.current_time()
        if len(line) <= PIECE_BYTES:
            await self.stream.send_all(line)
        else:
            for start in range(0, len(line), PIECE_BYTES):
                self.since = trio.current_time()
                await self.stream.send_all(line[start : start + PIECE_BYTES])
        self.since = None

    async def receive(self) -> bytes | None:
        """The next line, or None at the end. Raises ValueError when a line is too long."""
        while (end := self._pending.find(b"\n", self._searched)) < 0:
            self._searched = len(self._pending)
            if self._searched > self.bytes_max:
                raise ValueError(f"a line is at most {self.bytes_max} bytes")
            if self._pending and self.since is None:
                self.since = trio.current_time()
            chunk = await self.stream.receive_some()
            if not chunk:
                return None
            self._pending += chunk
        self.since = None
        line = bytes(self._pending[:end])
        del self._pending[: end + 1]
        self._searched = 0
        return line

    async def until_end(self) -> None:
        """Return when the peer has ended the stream; what it says before is kept for `receive`, as much as a line may have."""
        while len(self._pending) <= self.bytes_max:
            chunk = await self.stream.receive_some()
            if not chunk:
                return
            self._pending += chunk
        await trio.sleep_forever()


def line_of(message: Json, bytes_max: int) -> bytes:
    """A message as it is sent. Raises `Refusal` (`too-large`)."""
    line = json.dumps(message).encode() + b"\n"
    if len(line) > bytes_max:
        what = message.get("verb") or "what there is to answer"
        raise Refusal("too-large", f"{what} is {len(line)} bytes of JSON; a line is at most {bytes_max}")
    return line


def parse_request(line: bytes) -> tuple[int, str, Json]:
    """Id, verb and checked parameters of a request. Raises `Refusal` (`bad-request`, `bad-id`) naming what is off."""
    try:
        message = jsontext.read(line, unique=True)
    except ValueError as error:
        raise Refusal("bad-request", f"not a JSON line: {error}: {line[:120]!r}") from None
    if not isinstance(message, dict) or not _is_a(message.get("id"), int):
        raise Refusal("bad-request", f"a request is an object with an integer id; got {line[:120]!r}")
    verb, params = str(message.get("verb")), message.get("params")
    if verb not in VERBS:
        raise Refusal("bad-request", f"unknown verb {verb!r}; there are {', '.join(VERBS)}")
    if not isinstance(params, dict):
        raise Refusal("bad-request", f"{verb}: params must be an object; got {params!r:.80}")
    check_fields(verb, params, VERBS[verb], OPTIONAL.get(verb))
    if verb == "submit":
        check_task_id(params["task"])
    elif (named := GIVES_ID.get(verb)) is not None:
        check_id(f"{verb}: {named}", params[named])
    return int(message["id"]), verb, params


def check_fields(what: str, data: Json, fields: Mapping[str, type], optional: Mapping[str, type] | None = None) -> None:
    """Refuse an object that has other fields than these, or lacks one, or has one of another type. Raises `Refusal`."""
    optional = optional or {}
    if unknown := [name for name in data if name not in fields and name not in optional]:
        known = ", ".join((*fields, *optional))
        raise Refusal("bad-request", f"{what}: unknown fields {', '.join(unknown):.120}; it takes {known}")
    given = {name: wanted for name, wanted in optional.items() if data.get(name) is not None}
    for name, wanted in {**fields, **given}.items():
        if (type(data.get(name)) is not wanted or wanted is int) and not _is_a(data.get(name), wanted):
            raise Refusal("bad-request", f"{what}: {name} must be {_called(wanted)}; got {data.get(name)!r:.80}")
        if name not in PARTICULAR:
            continue
        if name in COUNTS and data[name] < 0:
            raise Refusal("bad-request", f"{what}: {name} must be 0 or more; got {data[name]}")
        if name in NUMBERS and not _are_numbers(data[name]):
            raise Refusal("bad-request", f"{what}: {name} must be a list of {_called(int)}; got {data[name]!r:.80}")
        for key, value in data[name].items() if name in NAMED else ():
            if not _is_a(value, NAMED[name]) or (isinstance(value, list) and not _are_numbers(value)):
                raise Refusal("bad-request", f"{what}: {name}: {key!r:.80} must not have {value!r:.80}")


def _is_a(value: object, wanted: type) -> bool:
    """Whether a value is of a type, where yes and no are no numbers, and a number is one that can be kept."""
    if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
        return False
    return not isinstance(value, int) or WHOLE_MIN <= value <= WHOLE_MAX


def _are_numbers(values: Sequence[object]) -> bool:
    return all(_is_a(one, int) for one in values)


def _called(wanted: type) -> str:
    return "int of 64 bits" if wanted is int else wanted.__name__


def read_facts(data: Json) -> Facts:
    """What a report tells beside its kind. Raises `Refusal` (`bad-request`)."""
    check_fields("facts", data, {}, {"external": str, "retry_after_ns": int, "reason": str})
    return Facts(**{name: value for name, value in data.items() if value is not None})


def read_grant(data: Json) -> Grant:
    """A lease, as its holder shows it. Raises `Refusal` (`bad-request`)."""
    lease: dict[str, type] = {"attempt": str, "operation": str, "generation": int, "version": int}
    check_fields("grant", data, lease, {"task": str, "authority": dict, "granted": dict})
    if data["generation"] < 1:  # as of an operation that nobody ever had: its word would fit
        raise Refusal("bad-request", f"grant: generation must be 1 or more; got {data['generation']}")
    return Grant(**data)


def parse_answer(line: bytes | None, id_: int) -> Json:
    """The answer to request `id_`, the only one that was asked on its connection; a request that could not be read is refused
    without its id. Raises ValueError when it is none, so that it counts as lost.
    """
    try:
        message: Any = json.loads(line or b"null")
    except RecursionError:
        raise ValueError("the answer is nested too deep") from None
    except ValueError:
        raise Stranger(f"something answers there that is no such server: {(line or b'')[:120]!r}") from None
    said = message.keys() if isinstance(message, dict) else set[str]()
    ids = (id_, None) if "error" in said else (id_,)
    kind = "error" if "error" in said else "ok"
    if not isinstance(message, dict) or not isinstance(message.get(kind), dict) or message.get("id") not in ids:
        raise ValueError(f"expected the answer to request {id_}; got {(line or b'')[:120]!r}")
    answer: Json = message
    return answer


def refusal_in(answer: Json) -> Refusal | None:
    """The refusal that an answer is; None where it has a result."""
    if "error" not in answer:
        return None
    return Refusal(str(answer["error"].get("code")), str(answer["error"].get("message")))
