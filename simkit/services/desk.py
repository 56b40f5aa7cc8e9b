"""The desk: who may decide, asked at the moment it matters; authority can be withdrawn and given again. No I/O."""

from __future__ import annotations

from simkit.services.contracts import Reply, Request

#: Who has authority from the beginning.
ALICE = "alice"


class Desk:
    """The actors with authority."""

    def __init__(self) -> None:
        self._may_decide = {ALICE}

    def grant(self, actor: str) -> None:
        self._may_decide.add(actor)

    def revoke(self, actor: str) -> None:
        self._may_decide.discard(actor)

    def look_up(self, request: Request) -> Reply:
        """Whether the request's actor (its field, else `params.actor`) has authority now."""
        actor = request.actor or request.params["actor"]
        return Reply(200, {"allowed": actor in self._may_decide, "actor": actor}, "found")
