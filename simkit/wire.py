"""A wire: a two-way stream of bytes between the outside and a process, on no network.

For what a test harness has to say to its own programs: it takes no time, and no fault of links or disks reaches it. What it
carries is traced by its size. When the process ends, however it does, the outside reads what had been sent, and then the
end of the stream.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from simkit._kernel.parking import Spot
from simkit.process import ProcessDead

if TYPE_CHECKING:
    from simkit.trace import Trace

__all__ = ["WireEnd", "wire"]


class _Way:
    """One direction."""

    __slots__ = ("arrived", "is_deaf", "is_over", "name", "reader")

    def __init__(self, name: str) -> None:
        self.name = name
        self.arrived = bytearray()
        self.reader = Spot()
        #: Whether nobody sends any more, and whether nobody receives.
        self.is_over = self.is_deaf = False


class WireEnd(trio.abc.Stream):
    """One end. To send is no checkpoint, as there is always room; to receive is one where nothing has arrived yet."""

    def __init__(self, trace: Trace, receives: _Way, sends: _Way) -> None:
        self._trace, self._receives, self._sends = trace, receives, sends
        self._is_dead = False

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Hand over `data`; raises BrokenResourceError when the other end is closed, ClosedResourceError when this one is."""
        self._check()
        way = self._sends
        if way.is_deaf:
            raise trio.BrokenResourceError("the other end of this wire is closed")
        self._trace.record("wire", way.name, len(data))
        way.arrived += data
        way.reader.wake()

    async def wait_send_all_might_not_block(self) -> None:
        """It never does."""
        self._check()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """What has arrived, at most `max_bytes`; b"" at the end of the stream. Raises ClosedResourceError when closed, and
        BusyResourceError when another task is receiving.
        """
        self._check()
        way = self._receives
        while not way.arrived:
            if way.is_over:
                return b""
            if way.reader.task is not None:
                raise trio.BusyResourceError("another task is already receiving on this wire")
            await way.reader.wait()
        taken = bytes(way.arrived[:max_bytes])
        del way.arrived[:max_bytes]
        return taken

    async def aclose(self) -> None:
        """Close this end; the other one reads what was sent, and then the end of the stream."""
        self._close()

    def die(self) -> None:
        """The process that holds this end has ended: none of its tasks runs again."""
        self._is_dead = True
        self._receives.reader.task = None
        self._close()

    def _close(self) -> None:
        if not self._receives.is_deaf:
            self._receives.is_deaf = self._sends.is_over = True
            self._receives.reader.fail(trio.ClosedResourceError("another task closed this end of the wire"))
            self._sends.reader.wake()

    def _check(self) -> None:
        if self._is_dead:
            raise ProcessDead(f"the wire {self._sends.name} belongs to a process that is gone")
        if self._receives.is_deaf:
            raise trio.ClosedResourceError("this end of the wire is closed")


def wire(trace: Trace, name: str) -> tuple[WireEnd, WireEnd]:
    """Two ends that face each other: the outside's, and that of the process called `name`, which has to be told when it ends
    (`process.on_death(end.die)`).
    """
    there, back = _Way(f"outside>{name}"), _Way(f"{name}>outside")
    return WireEnd(trace, back, there), WireEnd(trace, there, back)
