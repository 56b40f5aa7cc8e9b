"""The state of all services of one outside: it lies outside every crash and is never rolled back. No I/O.

A request passes in two steps, since a crash may strike between them: `begin` (its key is taken, its token noted) and
`settle` (the effect and the saved answer come into being, together). `abandon` gives the key back when it never settled.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from simkit.services import checker, model
from simkit.services.contracts import (
    CONTRACTS,
    FENCED,
    KEY_LIFETIME_NS,
    LIMITED,
    MISSING,
    REJECTED,
    Effect,
    Reply,
    Request,
    Settled,
    Ticket,
)
from simkit.services.desk import Desk
from simkit.services.keys import Fence, Keys
from simkit.services.operation import Operations
from simkit.services.store import Artifact, Store


class Services:
    """State of all services of one outside.

    `nonce` must give a fresh, unguessable string every time; `now_ns` ages keys, which live for `key_lifetime_ns`, and
    long-running operations.
    """

    def __init__(
        self, nonce: Callable[[], str], now_ns: Callable[[], int], *, key_lifetime_ns: int = KEY_LIFETIME_NS
    ) -> None:
        self._nonce = nonce
        self._keys = Keys(now_ns, key_lifetime_ns)
        self._fence = Fence()
        self._references: dict[tuple[str, str], str] = {}
        self._store = Store()
        self._desk = Desk()
        #: Everything long-running, for the kit to look into.
        self.operations = Operations(now_ns, nonce)
        self._effects = 0

    @property
    def effects(self) -> int:
        """How many effects there have been."""
        return self._effects

    # -- the kit's side ----------------------------------------------------------------------------------------------

    def grant(self, actor: str) -> None:
        """Give `actor` authority at the desk."""
        self._desk.grant(actor)

    def revoke(self, actor: str) -> None:
        """Withdraw the authority of `actor` at the desk."""
        self._desk.revoke(actor)

    def artifact(self, location: str) -> Artifact | None:
        """What the store has at `location`, None when nothing was ever put there or it was removed."""
        return self._store.artifact(location)

    def forget_key(self, service: str, key: str) -> bool:
        """Forget the answer saved for `key` at `service`, or what is found there by the reference `key`; was there one?"""
        found = self._references.pop((service, key), None) is not None
        found = (service == "operation" and self.operations.forget(key)) or found
        return self._keys.forget((service, key)) or found

    # -- the callers' side -------------------------------------------------------------------------------------------

    def begin(self, call: int, request: Request) -> Ticket:
        """Take in a request: what key or token decides is decided at once, else it holds its key until it is settled."""
        ticket = Ticket(call, request, request.fingerprint())
        if request.lookup:
            return ticket
        if self._is_fenced_off(request):
            return attrs.evolve(ticket, early=FENCED)
        if request.key is None or not self._takes_key(request):
            return ticket
        return self._keys.claim(ticket, (request.service, request.key))

    def settle(self, ticket: Ticket, entry: str = "ok") -> Settled:
        """Carry the request out as its script's `entry` says; effect and saved answer come into being together."""
        if ticket.early:
            return Settled(ticket.early)
        if ticket.request.lookup:
            return Settled(self._look_up(ticket.request))
        settled = self._settle(ticket, entry)
        if settled.executed:
            self._keys.save(ticket, settled.reply)
        self._keys.release(ticket)
        return settled

    def abandon(self, ticket: Ticket) -> None:
        """Give the key back if the request never settled; nothing happened, nothing is saved."""
        self._keys.release(ticket)

    def _takes_key(self, request: Request) -> bool:
        """Of what an operation is asked, only its start is keyed."""
        return CONTRACTS[request.service].keyed and (request.service != "operation" or request.action == "start")

    def _is_fenced_off(self, request: Request) -> bool:
        return request.service == "fenced" and not self._fence.pass_by(request)

    def _settle(self, ticket: Ticket, entry: str) -> Settled:
        request = ticket.request
        if self._is_fenced_off(request):
            return Settled(FENCED)  # a newer token was seen while this request was on its way
        if limited := LIMITED.get(entry):
            return Settled(limited)
        if entry == "reject":
            # A ledger executed and failed, which it saves; everybody else refused before executing.
            return Settled(REJECTED, executed=CONTRACTS[request.service].saves_failures)
        match request.service:
            case "store":
                return self._store.settle(request, lambda: self._make(ticket))
            case "operation":
                return self.operations.settle(request, lambda: self._make(ticket))
            case "model":
                return model.complete(request, entry, self._make(ticket))
            case "checker":
                return checker.check(request, entry, self._make(ticket))
        effect = self._make(ticket)
        if CONTRACTS[request.service].looked_up:
            self._references.setdefault((request.service, request.reference), effect.nonce)
        return Settled(Reply(200, {"nonce": effect.nonce}, "executed", effect.nonce), effect, executed=True)

    def _look_up(self, request: Request) -> Reply:
        match request.service:
            case "store":
                return self._store.look_up(request)
            case "operation":
                return self.operations.look_up(request)
            case "desk":
                return self._desk.look_up(request)
        # The first effect under a reference is the answer for ever: a later duplicate must not change what was found.
        nonce = self._references.get((request.service, request.reference))
        return Reply(200, {"nonce": nonce}, "found", nonce) if nonce else MISSING

    def _make(self, ticket: Ticket) -> Effect:
        """The next effect; its nonce is as long as `params.answer_bytes` asks for, padded with dots."""
        self._effects += 1
        length = int(ticket.request.params.get("answer_bytes") or 0)
        return Effect(self._effects, ticket.call, self._nonce().ljust(length, "."))
