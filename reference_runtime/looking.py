"""The server's verbs that only look: each answers with what the store, and the server beside it, have to show."""

from __future__ import annotations

from abc import abstractmethod

from reference_runtime import fleet, listing, views
from reference_runtime.events import events
from reference_runtime.holding import NS
from reference_runtime.log import OFF, Log
from reference_runtime.missing import lacking
from reference_runtime.model import Json
from reference_runtime.presence import Presence
from reference_runtime.remedies import remedy
from reference_runtime.vouch_verb import VouchVerb


class Looking(VouchVerb):
    """What a server shows, and who is there to be given work."""

    def __init__(self, lease_ns: int, log: Log = OFF) -> None:
        super().__init__(lease_ns, log)
        self._presence = Presence(lease_ns / NS)

    @abstractmethod
    def _is_new(self) -> bool:
        """Whether not everybody has had a term yet to come back to this server."""

    async def status(self, task: str, explain: bool | None = None) -> Json:
        """How a task stands. A result that is shown for the first time counts as delivered from here on.

        `explain`: also what the store does not know, why it may wait for ever (`missing`), and what to do where it is blocked
        (`remedy`).
        """
        standing = views.status(self.store, task)
        if standing.get("delivered") is False:
            self.store.deliver(task)
        if not explain:
            return standing
        lacks = None if self._is_new() else self._missing(task)
        return {**standing, "missing": lacks, "remedy": remedy(self.store, task)}

    def _missing(self, task: str) -> str | None:
        return lacking(self.store, task, self._runners.names(), self._presence.there())

    async def events(self, task: str, after: int) -> Json:
        """What happened to a task past a cursor, and the cursor to come back with."""
        return events(self.store, task, after)

    async def tasks(self, after: str, limit: int, state: str) -> Json:
        return listing.tasks(self.store, after, limit, state)

    async def workers(self) -> Json:
        runs = {one: sorted(names) for one, names in self._runners.by_execution().items()}
        return {"workers": fleet.workers(self.store, self._presence.heard_s(), runs)}

    async def artifacts(self, task: str) -> Json:
        return self.store.artifacts(task)

    async def journal(self, task: str) -> Json:
        return views.journal(self.store, task)
