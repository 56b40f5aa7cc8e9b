"""The way of messages from one place to another, as long as little can happen there: what is looked up once, not for each.

A road knows a link's latencies, losses and doublings by heart. It holds until somebody asks for other weather.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simkit._network.ether import NetworkOptions
    from simkit._storage.faults import Ratio
    from simkit.tape import Stream

__all__ = ["Road"]


class Road:
    """From `source` to `target`, by these options."""

    __slots__ = ("doubles", "draw", "loses", "travel_ns")

    def __init__(self, options: NetworkOptions, stream: Stream, source: str, target: str, *, spared: bool) -> None:
        link = f"{source}>{target}"
        #: Draws which of `travel_ns` a message takes; None: there is but one.
        self.draw: Callable[[], int] | None = None
        self.travel_ns: tuple[int, ...] = (options.loopback_latency_ns,)
        #: Draws whether a message is lost, and whether it is doubled; None: never.
        self.loses: Callable[[], int] | None = None
        self.doubles: Callable[[], int] | None = None
        if source != target:
            self.draw = stream.chooser(f"latency:{link}", options.spread_weights)
            self.travel_ns = tuple(options.latency_ns * factor for factor in options.spread)
            if not spared:
                self.loses = _drawing(stream, f"datagram-loss:{link}", options.datagram_losses)
                self.doubles = _drawing(stream, f"datagram-duplicate:{link}", options.datagram_duplicates)


def _drawing(stream: Stream, site_key: str, how_often: Ratio) -> Callable[[], int] | None:
    """As `Stream.chance` of this site and ratio; None when that never happens."""
    num, den = how_often
    if num <= 0:
        return None
    return stream.chooser(site_key, (den - num, num)) if num < den else _always


def _always() -> int:
    return 1
