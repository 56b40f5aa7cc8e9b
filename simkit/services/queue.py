"""The queue: at-least-once delivery with a visibility timeout, as its callers may rely on it. No I/O.

A message that was handed out stays in the queue, hidden for `visibility_ns`. Who acknowledges it with the receipt of its
newest delivery removes it; an older receipt is refused, since the message has been handed out again. After
`deliveries_max` deliveries without an acknowledgement it goes to the dead letters. Even inside the visibility timeout a
queue may hand a message out twice (`receive(twice=True)`): at least once is all it promises.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs


@attrs.frozen
class Handout:
    """One delivery of one message: `delivery` counts from 1, `receipt` is this delivery's own."""

    message: int
    body: Any
    delivery: int
    receipt: str


@attrs.define
class _Message:
    number: int
    body: Any
    visible_ns: int
    deliveries: int = 0
    receipt: str | None = None


class Queue:
    """One queue. `receipt` must give a fresh string every time; `now_ns` only ages deliveries."""

    def __init__(
        self, now_ns: Callable[[], int], receipt: Callable[[], str], *, visibility_ns: int, deliveries_max: int
    ) -> None:
        if visibility_ns <= 0 or deliveries_max <= 0:
            raise ValueError(
                f"visibility_ns {visibility_ns}, deliveries_max {deliveries_max}; expected positive numbers"
            )
        self._now_ns, self._receipt = now_ns, receipt
        self._visibility_ns, self._deliveries_max = visibility_ns, deliveries_max
        self._messages: dict[int, _Message] = {}
        self._dead: list[_Message] = []
        self._sent = 0

    @property
    def dead_letters(self) -> tuple[int, ...]:
        """Numbers of the messages that were given up, in the order in which that happened."""
        self._bury()
        return tuple(message.number for message in self._dead)

    @property
    def waiting(self) -> tuple[int, ...]:
        """Numbers of the messages that are neither acknowledged nor given up, oldest first."""
        self._bury()
        return tuple(self._messages)

    def send(self, body: Any) -> int:
        """Put a message in; its number, from 1."""
        self._sent += 1
        self._messages[self._sent] = _Message(self._sent, body, self._now_ns())
        return self._sent

    def receive(self, *, twice: bool = False) -> Handout | None:
        """Hand out the oldest visible message, hidden from now on; None when there is none.

        `twice` hands out one that is hidden, too, if it has a delivery left: the duplicate that a queue may make.
        """
        self._bury()
        now_ns = self._now_ns()
        for message in self._messages.values():
            if message.deliveries < self._deliveries_max and (twice or message.visible_ns <= now_ns):
                message.deliveries += 1
                message.visible_ns = now_ns + self._visibility_ns
                message.receipt = self._receipt()
                return Handout(message.number, message.body, message.deliveries, message.receipt)
        return None

    def acknowledge(self, receipt: str) -> bool:
        """Remove the message of this delivery; False when it is gone or has been handed out again since."""
        message = self._find(receipt)
        if message is None:
            return False
        del self._messages[message.number]
        return True

    def extend(self, receipt: str, ns: int) -> bool:
        """Keep the message of this delivery hidden for `ns` from now; 0 gives it back. False as for `acknowledge`."""
        message = self._find(receipt)
        if message is None:
            return False
        message.visible_ns = self._now_ns() + ns
        return True

    def _find(self, receipt: str) -> _Message | None:
        self._bury()
        return next((message for message in self._messages.values() if message.receipt == receipt), None)

    def _bury(self) -> None:
        """Give up whatever was delivered as often as may be and has become visible again."""
        now_ns = self._now_ns()
        for message in [*self._messages.values()]:
            if message.deliveries >= self._deliveries_max and message.visible_ns <= now_ns:
                del self._messages[message.number]
                self._dead.append(message)
