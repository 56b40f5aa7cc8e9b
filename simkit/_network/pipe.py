"""One direction of a connection: segments that arrive in order, each after a latency of its own.

One callback timer per direction at a time, for the segment at the head; no task. A cut link holds the queue where it
is until it heals, as retransmission would.
"""

from __future__ import annotations

import collections
import enum
from collections.abc import Callable, Mapping
from typing import Any, Protocol


class Kind(enum.Enum):
    """What a segment carries."""

    DATA = "data"
    ACK = "ack"  # the reader made room
    FIN = "fin"
    RST = "rst"


#: A segment: when it is due, what it is, its bytes, and for ACK the number of bytes read.
Segment = tuple[int, Kind, bytes, int]


class Wire(Protocol):
    """What the parts of a connection need of the network they are on."""

    @property
    def now_ns(self) -> int: ...

    @property
    def buffer_bytes(self) -> int: ...

    def latency_ns(self, source: str, target: str, size: int = 0) -> int: ...

    def call_at(self, when_ns: int, method: Callable[[], object]) -> None:
        """Call a bound method at `when_ns`."""
        ...

    def hold(self, source: str, target: str, resume: Callable[[], object]) -> bool:
        """When the link is cut, keep `resume` until it heals and return True."""
        ...

    @property
    def cut(self) -> Mapping[tuple[str, str], int]:
        """The links that are cut."""
        ...

    def unacknowledged(self, pipe: Pipe) -> None:
        """Something arrives of which its sender learns nothing, as the link back is cut."""
        ...

    def breaks(self, source: str, target: str) -> bool:
        """Return whether the tape breaks the connection at this segment."""
        ...

    def note(self, what: str, connection: int, source: str, target: str, size: int, data: bytes = b"") -> None:
        """Trace an event."""
        ...

    def arrives(self, source: str, target: str) -> None:
        """A segment with data is about to be there."""
        ...

    def held(self, pipe: Pipe) -> None:
        """Its link holds `pipe` up from now on."""
        ...

    def is_up(self, place: str) -> bool:
        """Return whether the machine there is on."""
        ...

    def unanswered(self, end: Any) -> None:
        """Something was sent to an end whose machine is off."""
        ...

    def forget(self, connection: int) -> None:
        """A connection is over on both sides."""
        ...


class Pipe:
    """Carries segments from host `source` to host `target` and hands them to `deliver`."""

    __slots__ = (
        "_armed",
        "_deliver",
        "_last_due_ns",
        "_queue",
        "_wire",
        "connection",
        "held_ns",
        "source",
        "target",
        "unacked",
        "unheard_ns",
    )

    def __init__(
        self, wire: Wire, connection: int, source: str, target: str, deliver: Callable[[Kind, bytes, int], None]
    ) -> None:
        self.connection = connection
        self.source = source
        self.target = target
        #: Bytes sent of which the sender does not know that they were read.
        self.unacked = 0
        #: Since when its link holds it up; -1 while it does not.
        self.held_ns = -1
        #: Since when the link back was cut when something of it arrived last that is to be acknowledged.
        self.unheard_ns = -1
        self._wire = wire
        self._deliver = deliver
        self._queue: collections.deque[Segment] = collections.deque()
        self._last_due_ns = 0
        self._armed = False

    @property
    def arrived_ns(self) -> int:
        """When the last segment arrived; the beginning of the world when none has, or when it is still under way."""
        return 0 if self._queue else self._last_due_ns

    @property
    def waits_for_answer(self) -> bool:
        """Whether something is on its way that TCP would send again and again."""
        return any(kind in {Kind.DATA, Kind.FIN} for _, kind, _, _ in self._queue)

    @property
    def space(self) -> int:
        """How many bytes the sender may send now."""
        return self._wire.buffer_bytes - self.unacked

    def push(self, kind: Kind, data: bytes = b"", count: int = 0) -> None:
        """Send a segment; it arrives after everything sent before."""
        wire, size = self._wire, len(data)
        self.unacked += size
        due_ns = max(self._last_due_ns, wire.now_ns + wire.latency_ns(self.source, self.target, size))
        self._last_due_ns = due_ns
        self._queue.append((due_ns, kind, data, count))
        if kind is not Kind.ACK:
            what = "send" if kind is Kind.DATA else kind.value
            wire.note(what, self.connection, self.source, self.target, size, data)
        if not self._armed:  # then it is the only one
            self._armed = True
            wire.call_at(due_ns, self._fire)

    def drop(self) -> None:
        """Lose what is in flight."""
        self._queue.clear()

    def _fire(self) -> None:
        """The head is due: deliver it and whatever else is, or wait for the link to heal."""
        wire, queue = self._wire, self._queue
        if queue and wire.hold(self.source, self.target, self._fire):
            self.held_ns = wire.now_ns
            wire.held(self)
            return
        self.held_ns = -1
        if wire.cut and queue and (self.target, self.source) in wire.cut and self.waits_for_answer:
            wire.unacknowledged(self)
        now_ns = wire.now_ns
        while queue and queue[0][0] <= now_ns:
            _, kind, data, count = queue.popleft()
            if kind is Kind.DATA:
                wire.arrives(self.source, self.target)
                wire.note("deliver", self.connection, self.source, self.target, len(data))
            self._deliver(kind, data, count)
        self._armed = bool(queue)
        if queue:
            wire.call_at(queue[0][0], self._fire)
