"""Tools: how a worker reaches the outside, and the words for what came of it.

A tool returns the receiver's answer, a JSON object with a `nonce`, or raises one of five: `Unknown` (bytes left, no answer
tells what became of them), `Busy` (refused before executing, ask later), `Rejected` (a definite no), `Unsent` (not a byte
left), `Undispatchable` (nor ever will). Telling these apart is the whole art: each permits something else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Protocol

import attrs

from reference_runtime.credentials import Credentials
from reference_runtime.model import Json

NS = 1_000_000_000
CALL_NS = 10 * NS
#: Longest answer that is read. However its characters are escaped, its report still fits into a line to the server.
BODY_BYTES_MAX = 1024 * 1024 + 64 * 1024
#: Longest that is told of how long a receiver asks to be left alone: a day; the policy makes it shorter.
RETRY_AFTER_NS_MAX = 24 * 3600 * NS


class Failure(Exception):  # noqa: N818 - an outcome, not a fault
    """No answer, and what is known of it: `external`, the receiver's id of the request; `retry_after_ns`, how long it asks to
    be left alone (0: it does not say); `reason`, a code in kebab-case where the kind of failure is not it.
    """

    def __init__(self, message: str, *, external: str | None = None, retry_after_ns: int = 0, reason: str = "") -> None:
        super().__init__(message)
        self.external = external
        self.retry_after_ns = retry_after_ns
        self.reason = reason


class Unknown(Failure):
    """The request left; whether it was executed cannot be told."""


class Busy(Failure):
    """The receiver is executing this very request, or cannot begin now: ask again later, the same way."""


class Rejected(Failure):
    """The receiver refused for good; asking again unchanged changes nothing."""


class Unsent(Failure):
    """Not a byte left: the receiver could not be reached."""


class Undispatchable(Failure):
    """Not a byte left, nor ever will: there is no way to say this request."""

    def __init__(self, message: str) -> None:
        super().__init__(message, reason="undispatchable")


@attrs.frozen
class Request:
    """One invocation as the receiver sees it. `key` is None for receivers that take none.

    `secret` is the name of a credential, whose value the tool puts in; `fields` holds whatever else the receiver takes:
    `token`, `remaining_ns`, `part`, `subject`, `version`, `digest`, `actor`.
    """

    tool: str
    task: str
    operation: str
    key: str | None
    params: Json
    carries: Mapping[str, str]
    script: tuple[str, ...] = ()
    secret: str | None = None
    fields: Json = attrs.field(factory=dict)


class Tools(Protocol):
    """The outside, as a worker calls it."""

    async def call(self, request: Request) -> Json:
        """Carry out a request; its answer. Raises `Unknown`, `Busy`, `Rejected`, `Unsent` or `Undispatchable`."""

    async def lookup(self, request: Request) -> Json | None:
        """The answer of the effect this request once made, or None when it made none. Raises as `call` does."""


#: What an answer says, at least one of these: the field and its type.
_TOLD: Mapping[str, type] = {"nonce": str, "allowed": bool, "part": int, "location": str}
#: Who asks, and by which password, in an address.
_USER = re.compile(r"://[^/]*@")
#: Refusals before anything was begun: the key is in use, it is too early, there is no room.
_BUSY = (409, 425, 429, 529)
#: What a receiver calls a fencing token older than the newest it has seen: whoever brought it has a successor, and may not
#: come again with it.
FENCED = "fenced"


def interpret(status: int, body: Any, *, saved: bool = False, retry_after_ns: int = 0) -> Json:
    """What an HTTP-like answer means. A 5xx the receiver has *saved* for a key is final; any other is an unknown outcome.

    An answer has a `nonce`; that of one who was asked for authority has `allowed` instead, and what a store says of parts and
    places has a `part` or a `location`. Raises as a tool does.
    """
    told = body if isinstance(body, dict) else {}
    if status == 200 and any(isinstance(told.get(name), kind) for name, kind in _TOLD.items()):
        return told
    facts: dict[str, Any] = {
        "external": external_of(told),
        "retry_after_ns": min(_duration_ns(told.get("retry_after_ns")) or retry_after_ns, RETRY_AFTER_NS_MAX),
    }
    if status == 409 and told.get("error") == FENCED:
        raise Rejected(f"{status}: {body!r:.200}", **facts, reason=FENCED)
    if status in _BUSY:
        raise Busy(f"{status}: {body!r:.200}", **facts)
    if (400 <= status < 500 and status != 408) or (status >= 500 and saved):
        raise Rejected(f"{status}: {body!r:.200}", **facts)
    raise Unknown(f"{status}: {body!r:.200}", **facts)


def external_of(body: Json) -> str | None:
    """The receiver's own id of a request, when its answer tells one."""
    external = body.get("request")
    return external if isinstance(external, str) else None


def _duration_ns(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def connect(address: str, *, timeout_ns: int = CALL_NS, secrets: Credentials | None = None) -> Tools:
    """The tools at `http://host:port`, or at `lines://host:port` for JSON lines, with the secrets that requests may name.

    Raises ValueError for another scheme, and for an address with more in it: nothing would read that. What would be a password
    in it is not repeated.
    """
    from urllib.parse import urlsplit

    from reference_runtime.wire import HttpTools, LineTools

    shown = _USER.sub("://[user]@", address)
    try:
        url = urlsplit(address)
        host, port = url.hostname, url.port
    except ValueError as error:
        raise ValueError(f"services address {shown!r}: {error}") from None
    is_plain = url.path in ("", "/") and not (url.query or url.fragment or "@" in url.netloc)
    if url.scheme not in ("http", "lines") or host is None or port is None or not is_plain:
        raise ValueError(
            f"services address {shown!r}; expected http://host:port or lines://host:port, and nothing else:"
            " a tool is at its own name there, and secrets are given by SIMKIT_SECRETS"
        )
    wire = HttpTools if url.scheme == "http" else LineTools
    return wire(host, port, timeout_ns, secrets or Credentials())
