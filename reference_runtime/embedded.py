"""A server in the process of those who ask it: no port is open, and no answer is ever lost.

What is asked is a line of JSON here, too: it is refused for what it would be refused for over the network, and nobody shares a
list with the store. An error of the storage ends the server, as ever; who asked is not answered.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import trio

from reference_runtime.handle import NS, Handle, Patience, Unreachable
from reference_runtime.model import Json
from reference_runtime.rpc import LINE_BYTES_MAX, line_of, refusal_in
from reference_runtime.server import Server


class Embedded(Handle):
    """A handle on a server in this process, which has to be up (`Server.up`, `Server.serve`)."""

    def __init__(self, server: Server, *, patience: Patience | None = None) -> None:
        self.server = server
        self.patience = patience or Patience()

    async def call(self, verb: str, params: Mapping[str, Any], patience: Patience | None = None) -> Json:
        """Ask until answered. Raises `Refusal` for a no, `Unreachable` when the server is not up or patience ends."""
        line = line_of({"id": 1, "verb": verb, "params": params}, LINE_BYTES_MAX).rstrip()
        await trio.lowlevel.checkpoint()  # the last chance to give it up: from here on it is asked
        if not self.server.is_up():
            raise Unreachable(f"{verb}: the server in this process is not up")
        if self.server.may_wait(verb):
            answer = await self._wait(verb, line, (patience or self.patience).total_ns)
        else:
            answer = await self._answer(verb, line, may_wait=False)
        if (no := refusal_in(answer)) is not None:
            raise no
        result: Json = answer["ok"]
        return result

    async def _wait(self, verb: str, line: bytes | None, total_ns: int | None) -> Json:
        """Ask what may take its time, for as long as patience and the server last; no line: see these end."""
        total_s = float("inf") if total_ns is None else total_ns / NS
        with trio.move_on_after(total_s) as guest:
            self.server.guests[guest] = None
            try:
                if line is not None:
                    return await self._answer(verb, line)
                await trio.sleep_forever()
            finally:
                del self.server.guests[guest]
        why = "it is not up any more" if not self.server.is_up() else f"no answer within {total_s:g} s"
        raise Unreachable(f"{verb}: the server in this process: {why}")

    async def _answer(self, verb: str, line: bytes, *, may_wait: bool = True) -> Json:
        try:
            answer = await self.server.answer(line, may_wait=may_wait)
        except Exception as error:  # noqa: BLE001 - the server's end, whatever it is; nobody knows what an answer would be worth
            self.server.fail(error)
            return await self._wait(verb, None, None)  # until it is given up, as all who ask are
        assert answer is not None, "only a connection can be gone"
        return answer


@asynccontextmanager
async def embedded(server: Server) -> AsyncIterator[Embedded]:
    """Have a server up for as long as the context lasts, for this process alone. Workers take the handle, too."""
    raised: list[BaseException] = []
    try:
        async with server.up():
            try:
                yield Embedded(server)
            except BaseException as error:
                raised.append(error)
                raise
    except BaseExceptionGroup as group:
        if list(group.exceptions) == raised:  # it is the block's own, and nothing befell the server
            raise raised[0] from None
        raise
