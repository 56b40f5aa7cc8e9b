"""Contracts of the outside's services, without I/O: what is asked, what is answered, and what each service promises.

    Request      what a caller asks (`simkit.services.requests` reads one from JSON and names the field that is off)
    Reply        what the service says to it
    CONTRACTS    which promises each service makes (see the table below)

    service    keyed   failures saved   lookup   one call more is
    ledger     yes     yes              no       the saved answer of its key
    registry   no      -                yes      a new effect
    mailer     no      -                no       a new effect
    reader     no      -                no       a fresh answer, nothing changes
    flaky      yes     no               no       the saved success of its key
    fenced     yes     no               no       as flaky; refused when its token is older than the newest seen
    model      no      -                no       a fresh answer, metered: it costs tokens again
    store      (1)     -                yes      put: the part again; commit: the first commit's answer
    desk       no      -                only     whether an actor has authority at this moment
    operation  yes     no               yes      start: the saved answer of its key; the rest changes nothing twice
    checker    no      -                no       a fresh verdict on a named subject and version

    (1) a commit is keyed by its location: what is committed there stays, and other content is a mismatch

Keys follow the published contract of payment interfaces: the first executing request's answer is kept for its key and
given again; other parameters under the same key are refused; a second request while the first executes is told so; a
refusal before execution saves nothing; keys are forgotten after 24 hours (or as configured) and then start anew. A
request without a key at a keyed service is simply executed.

The fields of a request, all optional but the first three:

    service, run, op         whom, for which run and operation; a child's run is named `<parent run>/<child>`
    key, params, carries     the idempotency key; what is asked for; earlier nonces that are handed on
    script, lookup           how this operation's requests are to fare, one after the other; asks for an earlier effect
    token, remaining_ns      the caller's fencing token; the time its caller leaves it
    secret, actor            a credential (seen, never recorded); on whose behalf
    part, subject, version, digest   of an artifact: which part; its name, version and content

Answers, each with the external id `request` beside what stands here:

    200 {"nonce", …}                   done; more fields by service
    200 {"allowed", "actor"}           desk            200 {"nonce", "outcome", "subject", "version", "digest"}    checker
    400 {"error": "rejected"}          a definite no   400 {"error": "incomplete", "missing"}, {"error": "digest"}  store
    404 {"error": "missing"}           409 {"error": "busy"}       409 {"error": "fenced"}     422 {"error": "mismatch"}
    429, 529 {"error", "retry_after_ns"}   nothing happened        503 {"error": "unavailable"}   who knows
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

import attrs

from simkit.errors import ExitCode, Problem

Kind: TypeAlias = Literal[
    "executed", "saved", "found", "missing", "busy", "mismatch", "rejected", "fenced", "limited", "error"
]

#: What an entry of any call's script may say. The n-th request of an operation follows the n-th entry, later ones "ok".
SCRIPT_ENTRIES: Final = (
    "ok",
    "error-before",
    "error-after",
    "reset-before",
    "reset-after",
    "reject",
    "slow",
    "429",
    "529",
    "cut",
)
#: What the script of look-ups may say; every other entry means "ok" there.
LOOKUP_ENTRIES: Final = ("ok", "down")
#: What a checker may come to.
CHECK_OUTCOMES: Final = ("passed", "failed", "unavailable", "timeout", "skipped")

#: How long a key and its saved answer are kept, unless the outside was told otherwise.
KEY_LIFETIME_NS: Final = 24 * 3600 * 1_000_000_000

#: How long one who is told 429 or 529 is asked to wait.
RETRY_AFTER_NS: Final = 50_000_000

#: Longest request body (and simulated line) a service reads.
BODY_BYTES_MAX: Final = 1 << 20
#: Longest nonce that `params.answer_bytes` may ask for.
ANSWER_BYTES_MAX: Final = 1 << 20


@attrs.frozen
class Contract:
    """What one service promises its callers; `entries` are the script entries that only it knows."""

    keyed: bool = False
    saves_failures: bool = False
    looked_up: bool = False
    called: bool = True
    entries: tuple[str, ...] = ()


CONTRACTS: Final[Mapping[str, Contract]] = {
    "ledger": Contract(keyed=True, saves_failures=True),
    "registry": Contract(looked_up=True),
    "mailer": Contract(),
    "reader": Contract(),
    "flaky": Contract(keyed=True),
    "fenced": Contract(keyed=True),
    "model": Contract(entries=("duplicate", "wrong", "unmetered")),
    "store": Contract(looked_up=True),
    "desk": Contract(looked_up=True, called=False),
    "operation": Contract(keyed=True, looked_up=True),
    "checker": Contract(entries=CHECK_OUTCOMES),
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
    token: int | None = None
    remaining_ns: int | None = None
    secret: str | None = attrs.field(default=None, repr=False)
    part: int | None = None
    subject: str | None = None
    version: int | None = None
    digest: str | None = None
    actor: str | None = None

    @property
    def reference(self) -> str:
        """The caller's own name for the effect, by which a registry finds it: `<run>:<op>`."""
        return f"{self.run}:{self.op}"

    @property
    def action(self) -> str:
        """What a store or an operation is asked to do."""
        return str(self.params.get("action", "start"))

    def fingerprint(self) -> str:
        """What the key stands for: all that is asked, and nothing of who asks and when; 16 bytes of blake2b in hex."""
        asked: list[object] = [self.params, self.carries]
        if more := {name: value for name in _ASKED if (value := getattr(self, name)) is not None}:
            asked.append(more)
        return hashlib.blake2b(_canonical(asked), digest_size=16).hexdigest()

    def scripted(self, nth: int) -> str:
        """The script's entry for request number `nth` (from 1) of this operation; look-ups are counted apart."""
        entry = self.script[nth - 1] if nth <= len(self.script) else "ok"
        return "ok" if self.lookup and entry not in LOOKUP_ENTRIES else entry


_ASKED: Final = ("part", "subject", "version", "digest")


@attrs.frozen
class Reply:
    """A service's answer. `nonce` is the answer's identity, present when an effect was made, saved or found.

    `usage` counts the tokens a model metered, `outcome` is a checker's; `external` is the receiver's own id of the
    request, which its body tells as `request`.
    """

    status: int
    body: Mapping[str, Any]
    kind: Kind
    nonce: str | None = None
    usage: int | None = None
    outcome: str | None = None
    external: str | None = None

    def identified(self, call: int) -> Reply:
        """The same answer as the one to request number `call` of its outside."""
        external = f"req-{call:06}"
        return attrs.evolve(self, body={**self.body, "request": external}, external=external)


#: Stands for the answer of a request that was cut off before there was one.
NO_REPLY: Final = Reply(0, {}, "error")
UNAVAILABLE: Final = Reply(503, {"error": "unavailable"}, "error")
BUSY: Final = Reply(409, {"error": "busy"}, "busy")
FENCED: Final = Reply(409, {"error": "fenced"}, "fenced")
MISMATCH: Final = Reply(422, {"error": "mismatch"}, "mismatch")
REJECTED: Final = Reply(400, {"error": "rejected"}, "rejected")
MISSING: Final = Reply(404, {"error": "missing"}, "missing")
#: Refusals for lack of room: nothing happened, and nothing was saved.
LIMITED: Final[Mapping[str, Reply]] = {
    "429": Reply(429, {"error": "too-many-requests", "retry_after_ns": RETRY_AFTER_NS}, "limited"),
    "529": Reply(529, {"error": "overloaded", "retry_after_ns": RETRY_AFTER_NS}, "limited"),
}


def bad_request(error: BadRequestError) -> Reply:
    """The answer to a request that could not be read; it is no request yet, so it has no external id."""
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
class Placed:
    """A fact of the store: what became of the content at `location`."""

    location: str
    state: Literal["staged", "committed", "removed"]


@attrs.frozen
class Settled:
    """The answer of a request, the effect it made if it made one, whether it was executed at all, facts of the store."""

    reply: Reply
    effect: Effect | None = None
    executed: bool = False
    placed: Placed | None = None


def _canonical(value: object) -> bytes:
    """One text for one value: sorted names, no blanks, ASCII, finite numbers."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode("ascii")
