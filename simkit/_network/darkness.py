"""Hosts that are off without having told anybody: their peers are half open.

What is sent to such a host is not answered. The sender gives up after its retransmissions, with ETIMEDOUT; or the host
boots, knows nothing of the connection, and answers what is sent again with a reset.
"""

from __future__ import annotations

import errno
import functools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simkit._network.endpoint import Endpoint
    from simkit._network.ether import Ether

#: A segment that was not answered is sent again within this long of the host's boot.
RETRANSMISSION_NS = 1_000_000_000


class Darkness:
    """The connections whose one side waits for an answer of a host that is off."""

    def __init__(self, network: Ether) -> None:
        self._network = network
        self._unanswered: dict[str, list[Endpoint]] = {}

    def note(self, end: Endpoint) -> None:
        """Something arrived at `end`, whose host is off."""
        waiting = self._unanswered.setdefault(end.place, [])
        if not any(end is other for other in waiting):
            waiting.append(end)
            self._network.call_later(self._network.options.retransmit_timeout_ns, lambda: self._give_up(end))

    def booted(self, place: str) -> None:
        """The host is on again: what is sent again is answered with a reset."""
        for end in self._unanswered.get(place, ()):
            self._network.call_later(RETRANSMISSION_NS, functools.partial(self._sent_again, end))

    def _sent_again(self, end: Endpoint) -> None:
        if self._network.is_up(end.place) and self._is_over(end):  # else it is off once more: the sender waits on
            end.deny()

    def _is_over(self, end: Endpoint) -> bool:
        """Whether a sender was waiting for an answer of `end`; it does not any more."""
        waiting = self._unanswered.get(end.place, [])
        self._unanswered[end.place] = left = [other for other in waiting if other is not end]
        return len(left) < len(waiting)

    def _give_up(self, end: Endpoint) -> None:
        if self._is_over(end):
            self._network.count("timed-out")
            end.peer.reset_received(errno.ETIMEDOUT)
