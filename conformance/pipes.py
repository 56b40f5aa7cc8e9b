"""The pipes to and from a process, which break and end only after `departed`, which waits for the end of the process.

A dying process closes its streams before it is dead: whoever met their end at once would find it alive.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio


class Input(trio.abc.SendStream):
    """Standard input of a process; breaks after its end."""

    def __init__(self, stream: trio.abc.SendStream, departed: Callable[[], Awaitable[None]]) -> None:
        self._stream, self._departed = stream, departed

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        try:
            await self._stream.send_all(data)
        except trio.BrokenResourceError:
            await self._departed()
            raise

    async def wait_send_all_might_not_block(self) -> None:
        await self._stream.wait_send_all_might_not_block()

    async def aclose(self) -> None:
        await self._stream.aclose()


class Output(trio.abc.ReceiveStream):
    """Standard output of a process; ends after its end."""

    def __init__(self, stream: trio.abc.ReceiveStream, departed: Callable[[], Awaitable[None]]) -> None:
        self._stream, self._departed = stream, departed

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        data = await self._stream.receive_some(max_bytes)
        if not data:
            await self._departed()
        return data

    async def aclose(self) -> None:
        await self._stream.aclose()
