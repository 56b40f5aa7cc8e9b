"""SO_KEEPALIVE, as Linux does it: who has heard nothing for a time asks whether the peer is still there.

The first probe goes out after TCP_KEEPIDLE without a word, further ones TCP_KEEPINTVL apart. TCP_KEEPCNT of them without
an answer end the connection with ETIMEDOUT; a machine that is on again and knows nothing of it answers with a reset.
While something is under way that TCP sends again by itself, there are no probes: that has a time-out of its own.
"""

from __future__ import annotations

import errno
import socket as stdlib_socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from simkit._kernel.timers import Timer
    from simkit._network.endpoint import Endpoint
    from simkit._network.ether import Ether

__all__ = ["DEFAULTS", "RANGES", "Keepalive", "wanted"]

_TCP = stdlib_socket.IPPROTO_TCP
#: By number, as some platforms lack the names: TCP_KEEPIDLE, TCP_KEEPINTVL, TCP_KEEPCNT of Linux.
IDLE, INTERVAL, COUNT = (_TCP, 4), (_TCP, 5), (_TCP, 6)
ON = (stdlib_socket.SOL_SOCKET, stdlib_socket.SO_KEEPALIVE)
#: Seconds, seconds and probes, as Linux has them where nothing is set, and at most.
DEFAULTS: Mapping[tuple[int, int], int] = {IDLE: 7200, INTERVAL: 75, COUNT: 9}
RANGES: Mapping[tuple[int, int], int] = {IDLE: 32767, INTERVAL: 32767, COUNT: 127}
_NS = 1_000_000_000


def wanted(options: Mapping[tuple[int, int], int | bytes]) -> tuple[int, int, int] | None:
    """Idle time and interval in nanoseconds, and the number of probes, if the options of a socket ask for any."""
    if not options.get(ON):
        return None
    idle_s, interval_s, count = (int(options.get(name, DEFAULTS[name])) for name in (IDLE, INTERVAL, COUNT))
    return idle_s * _NS, interval_s * _NS, count


class Keepalive:
    """The probes of one end."""

    def __init__(self, network: Ether, end: Endpoint, settings: tuple[int, int, int]) -> None:
        self.settings = settings
        self._network = network
        self._end = end
        self._unanswered = 0
        self._timer: Timer | None = None
        self._look_later(settings[0])

    def stop(self) -> None:
        """No more probes."""
        if self._timer is not None:
            self._timer.cancel()

    def _look_later(self, delay_ns: int) -> None:
        self._timer = self._network.call_later(delay_ns, self._look)

    def _look(self) -> None:
        """Ask the peer, if nothing was heard for so long."""
        end, network = self._end, self._network
        idle_ns, interval_ns, count = self.settings
        if end.over:
            return
        silent_ns = network.now_ns - max(end.peer.out.arrived_ns, end.out.arrived_ns)
        if end.out.waits_for_answer or silent_ns < idle_ns:
            self._unanswered = 0
            self._look_later(max(idle_ns - silent_ns, interval_ns if end.out.waits_for_answer else 1))
        elif self._unanswered >= count:
            network.count("timed-out", end.place, end.peer.place)
            end.reset_received(errno.ETIMEDOUT)
        else:
            network.note("probe", end.connection, end.place, end.peer.place, 0)
            if not network.reaches(end.place, end.peer.place):
                self._unanswered += 1
                self._look_later(interval_ns)
            elif end.peer.vanished:
                network.post(end.peer.place, end.place, end.reset_received)
            else:
                self._unanswered = 0
                self._look_later(idle_ns)
