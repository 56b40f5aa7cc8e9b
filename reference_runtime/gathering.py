"""Gathering: what is ready at once is taken in one transaction, so that one sync makes all of it durable.

Where only one lease is out, there is nobody to gather and a report is a transaction of its own. Where more are, the first one
opens a transaction that is committed as soon as everybody who is ready has had a turn; while that waits for the device, the
next ones become ready. The slower the device, the more share its syncs. No answer leaves before the commit.

Where syncs are dear, it may be kept open a while for others to join (the commit delay). Whoever asks meanwhile, if only to
look, is answered after it as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from reference_runtime.durations import spelled
from reference_runtime.holding import NS, Holding
from reference_runtime.model import Refusal

if TYPE_CHECKING:
    from reference_runtime.store import Store


#: What may open a transaction that others share, and how many leases its asker holds for it.
SHARING = {"submit": 0, "settle": 1, "take_turn": 1}
#: The longest commit delay, a small part of what anybody waits for an answer (`handle.Patience`).
COMMIT_DELAY_NS_MAX = NS // 10
#: How many times a lease must outlast it: a worker gives up an answer to a sign of life after a quarter of a lease.
_DELAYS_OF_LEASE = 4


def check_commit_delay(delay_ns: int, lease_ns: int) -> None:
    """Raises `Refusal` (`bad-setting`) for a commit delay by which workers would take their work for lost."""
    most = min(COMMIT_DELAY_NS_MAX, lease_ns // _DELAYS_OF_LEASE)
    if not 0 <= delay_ns <= most:
        raise Refusal(
            "bad-setting",
            f"a commit delay of {spelled(delay_ns)}; with a lease of {spelled(lease_ns)} it may be at most {spelled(most)},"
            " so that answers come in time; make it shorter, or the lease longer",
        )


class Gathering(Holding):
    """Waiting for the commit that others share."""

    store: Store
    nursery: trio.Nursery | None
    commit_delay_ns: int
    _gathered: trio.Event | None = None  # set once what is shared at the moment is durable

    def is_gathering(self, verb: str) -> bool:
        """Whether there may be more who have something to say at once as somebody asks this: what is shared already has others
        in it, and of the leases that are out one is the asker's own if he reports.
        """
        return self.store.is_shared() or len(self._holders) > SHARING.get(verb, len(self._holders))

    def awaits_commit(self, _verb: str) -> bool:
        """Whether the answer to this, which is about to be given, may be about what is not durable yet: to whatever it is."""
        return self.store.is_shared()

    async def committed(self) -> None:
        """Wait until what was shared is durable; for ever, when the server ends before that."""
        if self._gathered is None:
            assert self.nursery is not None, "only a server that is up is asked"
            self._gathered = trio.Event()
            self.store.afterwards(self._gathered_all)
            self.nursery.start_soon(self._commit_soon)
        await self._gathered.wait()

    def abandon_gathered(self) -> None:
        """Undo what nobody was told of yet, as the server ends."""
        self.store.abandon_shared()
        self._gathered = None

    def _gathered_all(self) -> None:
        assert self._gathered is not None
        self._gathered.set()
        self._gathered = None

    async def _commit_soon(self) -> None:
        if self.commit_delay_ns:
            await trio.sleep(self.commit_delay_ns / NS)
        await trio.lowlevel.checkpoint()  # whoever is ready by now comes first
        self.store.commit_shared()
