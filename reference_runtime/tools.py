"""Tools: how a worker reaches the outside, and the words for what came of it.

A tool returns the receiver's answer, a JSON object with a `nonce`, or raises one of four: `Unknown` (bytes left, no answer
tells what became of them), `Busy` (refused before executing, ask later), `Rejected` (a definite no), `Unsent` (not a byte
left). Telling these apart is the whole art: each permits something else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import attrs

from reference_runtime.model import Json

NS = 1_000_000_000
CALL_NS = 10 * NS
BODY_BYTES_MAX = 4 * 1024 * 1024


class Unknown(Exception):  # noqa: N818 - an outcome, not a fault
    """The request left; whether it was executed cannot be told."""


class Busy(Exception):  # noqa: N818 - as above
    """The receiver is executing this very request, or cannot begin now: ask again later, the same way."""


class Rejected(Exception):  # noqa: N818 - as above
    """The receiver refused for good; asking again unchanged changes nothing."""


class Unsent(Exception):  # noqa: N818 - as above
    """Not a byte left: the receiver could not be reached."""


@attrs.frozen
class Request:
    """One invocation as the receiver sees it. `key` is None for receivers that take none."""

    tool: str
    task: str
    operation: str
    key: str | None
    params: Json
    carries: Mapping[str, str]
    script: tuple[str, ...] = ()


class Tools(Protocol):
    """The outside, as a worker calls it."""

    async def call(self, request: Request) -> Json:
        """Carry out a request; its answer. Raises `Unknown`, `Busy`, `Rejected` or `Unsent`."""

    async def lookup(self, request: Request) -> Json | None:
        """The answer of the effect this request once made, or None when it made none. Raises as `call` does."""


def interpret(status: int, body: Any, *, saved: bool = False) -> Json:
    """What an HTTP-like answer means. A 5xx the receiver has *saved* for a key is final; any other is an unknown outcome."""
    if status == 200 and isinstance(body, dict) and isinstance(body.get("nonce"), str):
        return body
    if status in (409, 425, 429):
        raise Busy(f"{status}: {body}")
    if (400 <= status < 500 and status != 408) or (status >= 500 and saved):
        raise Rejected(f"{status}: {body}")
    raise Unknown(f"{status}: {body!r:.200}")


def connect(address: str, *, timeout_ns: int = CALL_NS) -> Tools:
    """The tools at `http://host:port`, or at `lines://host:port` for JSON lines. Raises ValueError for another scheme."""
    from urllib.parse import urlsplit

    from reference_runtime.wire import HttpTools, LineTools

    url = urlsplit(address)
    if url.scheme not in ("http", "lines") or url.hostname is None or url.port is None:
        raise ValueError(f"services address {address!r}; expected http://host:port or lines://host:port")
    if url.scheme == "http":
        return HttpTools(url.hostname, url.port, timeout_ns)
    return LineTools(url.hostname, url.port, timeout_ns)
