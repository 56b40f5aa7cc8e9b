"""Gathering: what is ready at once is taken in one transaction, so that one sync makes all of it durable.

Where only one lease is out, there is nobody to gather and a report is a transaction of its own. Where more are, the first one
opens a transaction that is committed as soon as everybody who is ready has had a turn; while that waits for the device, the
next ones become ready. The slower the device, the more share its syncs. No answer leaves before the commit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from reference_runtime.holding import Holding

if TYPE_CHECKING:
    from reference_runtime.store import Store


#: What may open a transaction that others share, and how many leases its asker holds for it.
SHARING = {"submit": 0, "settle": 1, "take_turn": 1}


class Gathering(Holding):
    """Waiting for the commit that others share."""

    store: Store
    nursery: trio.Nursery | None
    _gathered: trio.Event | None = None  # set once what is shared at the moment is durable

    def is_gathering(self, verb: str) -> bool:
        """Whether there may be more who have something to say at once as somebody asks this: what is shared already has others
        in it, and of the leases that are out one is the asker's own if he reports.
        """
        return self.store.is_shared() or len(self._holders) > SHARING.get(verb, len(self._holders))

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
        await trio.lowlevel.checkpoint()  # whoever is ready by now comes first
        self.store.commit_shared()
