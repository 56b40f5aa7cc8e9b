"""Performing: how a worker carries out an operation that is more than one request, and what its one answer is.

Most operations are one request. Publishing an artifact is many: its parts are put one by one, and a commit that names the
digest of the whole makes them visible together. What an earlier invocation has put is not put again. A sweep asks what lies
at an orphan's location and removes what was not committed. Requests to the store carry no key: a location holds one content.
"""

from __future__ import annotations

import base64
from collections.abc import Collection

import attrs

from reference_runtime.artifacts import SWEEP
from reference_runtime.contents import content, cut, digest_of
from reference_runtime.ids import made_anew, swept
from reference_runtime.model import Json, Ticket
from reference_runtime.promises import CHECKER, STORE
from reference_runtime.tools import Request, Tools, Unknown, Unsent


def leaf_of(ticket: Ticket) -> str:
    """The operation that a receiver knows: that behind a sweep, or behind a check made anew, else the one it is.

    A later segment's number in front of an id belongs to it: what was asked for there is another operation.
    """
    if ticket.tool == STORE and "parts" not in ticket.params:
        return swept(ticket.operation, SWEEP)
    return made_anew(ticket.operation) if ticket.tool == CHECKER else ticket.operation


class Performer:
    """Carries requests out by `tools`; raises as a tool does."""

    def __init__(self, tools: Tools) -> None:
        self.tools = tools

    async def perform(self, request: Request, *, is_repeat: bool) -> Json:
        """The answer of one invocation. `is_repeat`: an earlier one may have got somewhere."""
        if request.tool != STORE:
            return await self.tools.call(request)
        if "parts" in request.params:
            return await self.publish(request, is_repeat=is_repeat)
        return await self.sweep(request)

    async def publish(self, request: Request, *, is_repeat: bool) -> Json:
        """Put the parts that are missing, then commit them under the digest of what was meant to be published."""
        data = content(request.task, request.operation, int(request.params["size"]))
        pieces = cut(data, int(request.params["parts"]))
        there = await self._there(request) if is_repeat else {}
        if there.get("committed"):
            return {name: there[name] for name in ("nonce", "digest", "location", "request") if name in there}
        missing = self.missing(len(pieces), there.get("parts") or ())
        for number in missing:
            await self._put(request, number, pieces, is_first=not there and number == missing[0])
        said = {"action": "commit", "parts": len(pieces)}
        try:
            return await self.tools.call(self._about(request, said, digest=self.name_of(data)))
        except Unsent as error:
            raise Unknown(f"parts were put, the commit could not be sent: {error}") from error

    def missing(self, parts: int, there: Collection[int]) -> list[int]:
        """The numbers (from 1) of the parts that have to be put."""
        return [number for number in range(1, parts + 1) if number not in there]

    def name_of(self, data: bytes) -> str:
        """The digest under which content is committed: that of the bytes that were meant, not of what arrived."""
        return digest_of(data)

    async def _put(self, request: Request, number: int, pieces: list[bytes], *, is_first: bool) -> None:
        piece = pieces[number - 1]
        said = {"action": "put", "parts": len(pieces), "data": base64.b64encode(piece).decode("ascii")}
        try:
            answer = await self.tools.call(self._about(request, said, part=number))
        except Unsent as error:
            if is_first:
                raise
            raise Unknown(f"part {number} could not be sent after others were: {error}") from error
        if answer.get("digest") != digest_of(piece):
            raise Unknown(f"part {number} arrived as {answer.get('digest')}; it is put again")

    async def sweep(self, request: Request) -> Json:
        """What became of an orphan: `committed` with its `digest` and `nonce`, or removed."""
        there = await self._there(request)
        if there.get("committed"):
            return {name: there[name] for name in ("committed", "digest", "nonce", "request") if name in there}
        await self.tools.call(self._about(request, {"action": "abort"}))
        return {"committed": False}

    async def _there(self, request: Request) -> Json:
        return await self.tools.lookup(self._about(request, {"action": "list"})) or {}

    def _about(self, request: Request, said: Json, **fields: object) -> Request:
        """A request about the operation's location; everything else of it stays."""
        params = {**said, "location": request.params["location"]}
        return attrs.evolve(request, key=None, params=params, fields={**request.fields, **fields})
