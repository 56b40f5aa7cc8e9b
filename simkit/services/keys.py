"""Idempotency keys and fencing tokens: what a receiver remembers of earlier requests. No I/O."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from simkit.services.contracts import BUSY, MISMATCH, Reply, Request, Ticket


@attrs.frozen
class _Saved:
    digest: str
    reply: Reply
    at_ns: int


class Keys:
    """Keys in progress and keys with a saved answer, each of one service; saved ones are kept for `lifetime_ns`."""

    def __init__(self, now_ns: Callable[[], int], lifetime_ns: int) -> None:
        self._now_ns = now_ns
        self._lifetime_ns = lifetime_ns
        self._executing: dict[tuple[str, str], Ticket] = {}
        self._saved: dict[tuple[str, str], _Saved] = {}

    def claim(self, ticket: Ticket, key: tuple[str, str]) -> Ticket:
        """The ticket with its key taken, or with the early answer that the key has for it."""
        if early := self._early(key, ticket.digest):
            return attrs.evolve(ticket, early=early)
        claimed = attrs.evolve(ticket, claim=key)
        self._executing[key] = claimed
        return claimed

    def save(self, ticket: Ticket, reply: Reply) -> None:
        """Keep the answer for the ticket's key, if it holds one."""
        if ticket.claim:
            self._saved[ticket.claim] = _Saved(ticket.digest, reply, self._now_ns())
            self.release(ticket)

    def release(self, ticket: Ticket) -> None:
        """Give the key back if the ticket still holds it."""
        if ticket.claim and self._executing.get(ticket.claim) is ticket:
            del self._executing[ticket.claim]

    def forget(self, key: tuple[str, str]) -> bool:
        """Prune a saved answer before its time; whether there was one."""
        return self._saved.pop(key, None) is not None

    def _early(self, key: tuple[str, str], digest: str) -> Reply | None:
        saved = self._saved.get(key)
        if saved and self._now_ns() - saved.at_ns >= self._lifetime_ns:
            del self._saved[key]
            saved = None
        if saved:
            return attrs.evolve(saved.reply, kind="saved") if saved.digest == digest else MISMATCH
        if executing := self._executing.get(key):
            return BUSY if executing.digest == digest else MISMATCH
        return None


class Fence:
    """The newest fencing token seen of each operation. A request without one is older than every token."""

    def __init__(self) -> None:
        self._newest: dict[tuple[str, str], int] = {}

    def pass_by(self, request: Request) -> bool:
        """Whether no newer token has been seen; remembers this one."""
        name = (request.run, request.op)
        newest = self._newest.get(name)
        if newest is not None and (request.token is None or request.token < newest):
            return False
        if request.token is not None:
            self._newest[name] = request.token
        return True
