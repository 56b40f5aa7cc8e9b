"""The store of artifacts: parts are put one by one, and become visible whole by a commit. No I/O.

    put      stages one part at a location; the same part again replaces it
    commit   makes the parts the content of the location, if all are there and have the digest that was named
    abort    removes the staged parts; one that was under way still lands, and then lies there
    list     what is staged, and whether the location is committed
    get      the committed content

A location holds one content for ever: another commit of the same digest gets the first one's answer, one of another is
refused. Parts that arrive after a commit are staged beside it and change nothing.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable

import attrs

from simkit.services.contracts import MISMATCH, MISSING, Effect, Placed, Reply, Request, Settled


@attrs.frozen
class Artifact:
    """What lies at a location: its committed content, else the staged parts put together."""

    data: bytes
    committed: bool


@attrs.frozen
class _Committed:
    data: bytes
    digest: str
    nonce: str


class Store:
    """Committed contents and staged parts, by location."""

    def __init__(self) -> None:
        self._staged: dict[str, dict[int, bytes]] = {}
        self._committed: dict[str, _Committed] = {}

    def settle(self, request: Request, make: Callable[[], Effect]) -> Settled:
        """Put, commit or abort; only a commit `make`s an effect."""
        location = str(request.params["location"])
        match request.action:
            case "put":
                return self._put(location, request)
            case "commit":
                return self._commit(location, request, make)
            case _:
                removed = self._staged.pop(location, None)
                placed = Placed(location, "removed") if removed else None
                return Settled(Reply(200, {"location": location}, "executed"), executed=True, placed=placed)

    def look_up(self, request: Request) -> Reply:
        location = str(request.params["location"])
        committed = self._committed.get(location)
        if request.action == "list":
            body = {
                "location": location,
                "parts": sorted(self._staged.get(location, ())),
                "committed": committed is not None,
                "nonce": committed.nonce if committed else None,
                "digest": committed.digest if committed else None,
            }
            return Reply(200, body, "found", committed.nonce if committed else None)
        if committed is None:
            return MISSING
        data = base64.b64encode(committed.data).decode("ascii")
        return Reply(200, {**_entry(location, committed), "data": data}, "found", committed.nonce)

    def artifact(self, location: str) -> Artifact | None:
        """What lies at `location`, None when nothing does."""
        if committed := self._committed.get(location):
            return Artifact(committed.data, committed=True)
        if parts := self._staged.get(location):
            return Artifact(_whole(parts), committed=False)
        return None

    def _put(self, location: str, request: Request) -> Settled:
        assert request.part is not None
        data = base64.b64decode(request.params["data"])
        self._staged.setdefault(location, {})[request.part] = data
        body = {"part": request.part, "digest": hashlib.sha256(data).hexdigest()}
        return Settled(Reply(200, body, "executed"), executed=True, placed=Placed(location, "staged"))

    def _commit(self, location: str, request: Request, make: Callable[[], Effect]) -> Settled:
        if earlier := self._committed.get(location):
            same = earlier.digest == request.digest
            return Settled(
                Reply(200, _entry(location, earlier), "saved", earlier.nonce) if same else MISMATCH,
            )
        staged = self._staged.get(location, {})
        if missing := [n for n in range(1, int(request.params["parts"]) + 1) if n not in staged]:
            return Settled(Reply(400, {"error": "incomplete", "missing": missing}, "rejected"))
        data = _whole({n: staged[n] for n in range(1, int(request.params["parts"]) + 1)})
        digest = hashlib.sha256(data).hexdigest()
        if digest != request.digest:
            return Settled(Reply(400, {"error": "digest", "digest": digest}, "rejected"))
        effect = make()
        committed = _Committed(data, digest, effect.nonce)
        self._committed[location] = committed
        del self._staged[location]
        reply = Reply(200, _entry(location, committed), "executed", effect.nonce)
        return Settled(reply, effect, executed=True, placed=Placed(location, "committed"))


def _entry(location: str, committed: _Committed) -> dict[str, object]:
    return {
        "nonce": committed.nonce,
        "location": location,
        "digest": committed.digest,
        "size": len(committed.data),
    }


def _whole(parts: dict[int, bytes]) -> bytes:
    return b"".join(parts[n] for n in sorted(parts))
