"""Hosts that are off without having told anybody: their peers are half open.

What is sent to such a host is not answered. The sender gives up after its retransmissions, with ETIMEDOUT; or the host
boots, knows nothing of the connection, and answers what is sent again with a reset.
"""

from __future__ import annotations

import errno
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
        for end in self._unanswered.pop(place, ()):
            self._network.call_later(RETRANSMISSION_NS, end.deny)

    def _give_up(self, end: Endpoint) -> None:
        waiting = self._unanswered.get(end.place, [])
        if any(end is other for other in waiting):
            self._unanswered[end.place] = [other for other in waiting if other is not end]
            self._network.count("timed-out")
            end.peer.reset_received(errno.ETIMEDOUT)
