"""Contracts of the outside's services, without I/O: what each request means given everything asked before.

    Request      what a caller asks; `parse_request` reads one from JSON and names the field that is off
    Reply        what the service says to it
    CONTRACTS    which promises each service makes (see the table below)
    Services     the state of all services; it lies outside every crash and is never rolled back

    service   keyed   failures saved   lookup   one call more is
    ledger    yes     yes              no       the saved answer of its key
    registry  no      -                yes      a new effect
    mailer    no      -                no       a new effect
    reader    no      -                no       a fresh answer, nothing changes
    flaky     yes     no               no       the saved success of its key

Keys follow the published contract of payment interfaces: the first executing request's answer is kept for its key and
given again; other parameters under the same key are refused; a second request while the first executes is told so; a
refusal before execution saves nothing; keys are forgotten after 24 hours and then start anew. A request without a key
at a keyed service is simply executed.

A request passes in two steps, since a crash may strike between them: `begin` (its key is taken) and `settle` (the
effect and the saved answer come into being, together). `abandon` gives the key back when it never settled.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TypeAlias

import attrs

from simkit.errors import ExitCode, Problem

Kind: TypeAlias = Literal["executed", "saved", "found", "missing", "busy", "mismatch", "rejected", "error"]

#: What an entry of a call's script may say. The n-th request of an operation follows the n-th entry, later ones "ok".
SCRIPT_ENTRIES: Final = ("ok", "error-before", "error-after", "reset-before", "reset-after", "reject", "slow")

#: How long a key and its saved answer are kept.
KEY_LIFETIME_NS: Final = 24 * 3600 * 1_000_000_000

#: Longest request body (and simulated line) a service reads.
BODY_BYTES_MAX: Final = 1 << 20


@attrs.frozen
class Contract:
    """What one service promises its callers."""

    keyed: bool = False
    saves_failures: bool = False
    looked_up: bool = False


CONTRACTS: Final[Mapping[str, Contract]] = {
    "ledger": Contract(keyed=True, saves_failures=True),
    "registry": Contract(looked_up=True),
    "mailer": Contract(),
    "reader": Contract(),
    "flaky": Contract(keyed=True),
}


class BadRequestError(ValueError):
    """A request that cannot be read; `field` names what is off, `message` what was expected."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(field, message)
        self.field = field
        self.message = message

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


@attrs.frozen
class Request:
    """One request, as any transport delivers it. `carries` maps earlier operations to the nonces they answered."""

    service: str
    run: str
    op: str
    key: str | None = None
    params: Mapping[str, Any] = attrs.field(factory=dict)
    carries: Mapping[str, str] = attrs.field(factory=dict)
    script: tuple[str, ...] = ()
    lookup: bool = False

    @property
    def reference(self) -> str:
        """The caller's own name for the effect, by which a registry finds it."""
        return f"{self.run}:{self.op}"

    def digest(self) -> str:
        """What the key stands for: parameters and carried nonces, as 16 bytes of blake2b in hex."""
        return hashlib.blake2b(_canonical([self.params, self.carries]), digest_size=16).hexdigest()

    def scripted(self, nth: int) -> str:
        """The script's entry for request number `nth` (from 1) of this operation."""
        return self.script[nth - 1] if not self.lookup and nth <= len(self.script) else "ok"


@attrs.frozen
class Reply:
    """A service's answer. `nonce` is the answer's identity, present when an effect was made, saved or found."""

    status: int
    body: Mapping[str, Any]
    kind: Kind
    nonce: str | None = None


#: Stands for the answer of a request that was cut off before there was one.
NO_REPLY: Final = Reply(0, {}, "error")
UNAVAILABLE: Final = Reply(503, {"error": "unavailable"}, "error")
_BUSY: Final = Reply(409, {"error": "busy"}, "busy")
_MISMATCH: Final = Reply(422, {"error": "mismatch"}, "mismatch")
_REJECTED: Final = Reply(400, {"error": "rejected"}, "rejected")
_MISSING: Final = Reply(404, {"error": "missing"}, "missing")


def bad_request(error: BadRequestError) -> Reply:
    """The answer to a request that could not be read."""
    return Reply(400, {"error": "bad-request", "field": error.field, "message": error.message}, "rejected")


def unreadable(error: BadRequestError, where: str) -> Problem:
    """What to tell of a request that could not be read: the adapter's fault, never the harness's."""
    return Problem(
        code="bad-request",
        what=f"a service was sent a request it cannot read: {error}",
        where=where,
        expected="a request with run, op, params, carries and script, to a service that the plan names",
        hint="the adapter's call to the service is wrong; `simkit_adapter.call` makes it right",
        exit_code=ExitCode.TARGET,
    )


@attrs.frozen
class Effect:
    """One thing that happened outside and stays. `number` counts all effects of one outside, from 1."""

    number: int
    call: int
    nonce: str


@attrs.frozen
class Ticket:
    """A request that has begun: `early` when its answer was clear at once, else `claim` names the key it holds."""

    call: int
    request: Request
    digest: str
    early: Reply | None = None
    claim: tuple[str, str] | None = None


@attrs.frozen
class Settled:
    """The answer of a request, the effect it made if it made one, and whether it was executed at all."""

    reply: Reply
    effect: Effect | None = None
    executed: bool = False


@attrs.frozen
class _Saved:
    digest: str
    reply: Reply
    at_ns: int


class Services:
    """State of all services of one outside.

    `nonce` must give a fresh, unguessable string every time; `now_ns` only ages keys.
    """

    def __init__(self, nonce: Callable[[], str], now_ns: Callable[[], int]) -> None:
        self._nonce = nonce
        self._now_ns = now_ns
        self._executing: dict[tuple[str, str], Ticket] = {}
        self._saved: dict[tuple[str, str], _Saved] = {}
        self._references: dict[tuple[str, str], str] = {}
        self._effects = 0

    @property
    def effects(self) -> int:
        """How many effects there have been."""
        return self._effects

    def begin(self, call: int, request: Request) -> Ticket:
        """Take in a request: what its key decides is decided at once, else it holds the key until `settle` or `abandon`."""
        digest = request.digest()
        if request.lookup or request.key is None or not CONTRACTS[request.service].keyed:
            return Ticket(call, request, digest)
        claim = (request.service, request.key)
        if early := self._early(claim, digest):
            return Ticket(call, request, digest, early=early)
        ticket = Ticket(call, request, digest, claim=claim)
        self._executing[claim] = ticket
        return ticket

    def settle(self, ticket: Ticket, *, refuse: bool = False) -> Settled:
        """Carry the request out; its effect and its saved answer come into being together. `refuse`: a definite no."""
        if ticket.early:
            return Settled(ticket.early)
        if ticket.request.lookup:
            return Settled(self._look_up(ticket.request))
        if refuse:
            return self._refuse(ticket)
        effect = self._apply(ticket)
        reply = Reply(200, {"nonce": effect.nonce}, "executed", effect.nonce)
        self._save(ticket, reply)
        return Settled(reply, effect, executed=True)

    def abandon(self, ticket: Ticket) -> None:
        """Give the key back if the request never settled; nothing happened, nothing is saved."""
        if ticket.claim and self._executing.get(ticket.claim) is ticket:
            del self._executing[ticket.claim]

    def _early(self, claim: tuple[str, str], digest: str) -> Reply | None:
        saved = self._saved.get(claim)
        if saved and self._now_ns() - saved.at_ns >= KEY_LIFETIME_NS:
            del self._saved[claim]
            saved = None
        if saved:
            return attrs.evolve(saved.reply, kind="saved") if saved.digest == digest else _MISMATCH
        if executing := self._executing.get(claim):
            return _BUSY if executing.digest == digest else _MISMATCH
        return None

    def _look_up(self, request: Request) -> Reply:
        # The first effect under a reference is the answer for ever: a later duplicate must not change what was found.
        nonce = self._references.get((request.service, request.reference))
        return Reply(200, {"nonce": nonce}, "found", nonce) if nonce else _MISSING

    def _refuse(self, ticket: Ticket) -> Settled:
        """A ledger executed and failed, which it saves; everybody else refused before executing."""
        executed = CONTRACTS[ticket.request.service].saves_failures
        if executed:
            self._save(ticket, _REJECTED)
        self.abandon(ticket)
        return Settled(_REJECTED, executed=executed)

    def _apply(self, ticket: Ticket) -> Effect:
        self._effects += 1
        effect = Effect(self._effects, ticket.call, self._nonce())
        if CONTRACTS[ticket.request.service].looked_up:
            self._references.setdefault((ticket.request.service, ticket.request.reference), effect.nonce)
        return effect

    def _save(self, ticket: Ticket, reply: Reply) -> None:
        if ticket.claim:
            self._saved[ticket.claim] = _Saved(ticket.digest, reply, self._now_ns())
            self.abandon(ticket)


def load_json(text: bytes, *, field: str) -> Any:
    """JSON from the wire, strictly: UTF-8, finite numbers, bounded depth. Raises `BadRequestError` naming `field`."""
    try:
        return json.loads(text.decode("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise BadRequestError(field, f"not JSON ({error!s:.100}); got {text[:80]!r}") from None


def parse_request(data: object, *, given: Mapping[str, object] | None = None) -> Request:
    """A request from decoded JSON. What is `given` by the transport (a path, a header) may not stand in `data`."""
    if not isinstance(data, dict):
        raise BadRequestError("body", f"expected a JSON object; got {data!r:.80}")
    known = tuple(field.name for field in attrs.fields(Request))
    if unknown := sorted(set(data) - set(known)):
        raise BadRequestError(unknown[0], f"unknown field; a request has {', '.join(known)}")
    if twice := sorted(set(data) & set(given or {})):
        raise BadRequestError(twice[0], "given by method, path or header here, not by the body")
    fields = {**data, **(given or {})}
    request = Request(
        service=_known_service(fields.get("service")),
        run=_text(fields, "run"),
        op=_text(fields, "op"),
        key=None if fields.get("key") is None else _text(fields, "key"),
        params=_object(fields, "params"),
        carries=_nonces(fields),
        script=_script(fields),
        lookup=_flag(fields, "lookup"),
    )
    _check(request)
    return request


def _check(request: Request) -> None:
    if request.lookup and not CONTRACTS[request.service].looked_up:
        raise BadRequestError("lookup", f"{request.service} cannot be looked up; registry can")
    try:
        request.digest()
    except ValueError as error:
        raise BadRequestError("params", f"{error!s:.100}; expected finite numbers") from None


def _known_service(name: object) -> str:
    if not isinstance(name, str) or name not in CONTRACTS:
        raise BadRequestError("service", f"no service {name!r:.80}; there are {', '.join(CONTRACTS)}")
    return name


def _text(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or not value:
        raise BadRequestError(name, f"expected a string that is not empty; got {value!r:.80}")
    return value


def _object(fields: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = fields.get(name, {})
    if not isinstance(value, dict):
        raise BadRequestError(name, f"expected an object; got {value!r:.80}")
    return value


def _nonces(fields: Mapping[str, Any]) -> dict[str, str]:
    carries = _object(fields, "carries")
    for op, nonce in carries.items():
        if not isinstance(nonce, str):
            raise BadRequestError(f"carries.{op:.80}", f"expected a nonce, a string; got {nonce!r:.80}")
    return carries


def _script(fields: Mapping[str, Any]) -> tuple[str, ...]:
    script = fields.get("script", [])
    if not isinstance(script, list) or any(entry not in SCRIPT_ENTRIES for entry in script):
        raise BadRequestError("script", f"expected a list of {', '.join(SCRIPT_ENTRIES)}; got {script!r:.80}")
    return tuple(script)


def _flag(fields: Mapping[str, Any], name: str) -> bool:
    value = fields.get(name, False)
    if not isinstance(value, bool):
        raise BadRequestError(name, f"expected true or false; got {value!r:.80}")
    return value


def _canonical(value: object) -> bytes:
    """One text for one value: sorted names, no blanks, ASCII, finite numbers."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode("ascii")


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")
