"""The vocabulary of the runtime: identities, states, the table of legal transitions, and the values that travel.

Identities: a *task* is requested work, an *attempt* one pursuit of it, an *operation* one logical action, an
*invocation* one try at it, an *execution* one activation of a worker. One lease covers exactly one invocation, and both
are named by the lease's *generation*, a number that is given out once and never again.

An attempt's *condition* (may it move?) is kept apart from its *outcome* (how did it end?), so that an attempt can be
over and still own an operation whose effect nobody could establish.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, get_args

import attrs

State = Literal["planned", "dispatched", "succeeded", "failed", "unknown", "reconciled", "unresolved", "skipped"]
Move = Literal[
    "dispatch",
    "accept",
    "refuse",
    "lose",
    "look_up",
    "find",
    "miss",
    "give_up",
    "exhaust",
    "notice",
    "disown",
    "release",
    "decline",
    "skip",
]
Kind = Literal[
    "call", "wait", "sleep", "approve", "model", "child", "artifact", "check", "fail", "nondet", "compensate",
    "race", "branch", "sweep",
]  # fmt: skip
#: The kinds that a worker carries out; all others are decided by the store itself.
DISPATCHED: frozenset[Kind] = frozenset({"call", "model", "artifact", "check", "compensate", "sweep"})
Semantics = Literal["read", "keyed", "lookup", "blind", "metered", "fenced"]
Outcome = Literal["succeeded", "failed", "cancelled", "unresolved"]
#: What recovery does about an unknown outcome: send the same request again, ask the receiver first, or leave it.
Remedy = Literal["repeat", "lookup", "none"]
#: What one invocation came to, in the words of the worker that made it.
Report = Literal["succeeded", "failed", "unknown", "busy", "unsent", "found", "missing"]

#: Every transition an operation may make; what is not listed is refused.
TRANSITIONS: Mapping[tuple[State, Move], State] = {
    ("planned", "dispatch"): "dispatched",  # intent is durable; bytes may leave from now on
    ("planned", "release"): "succeeded",  # a wait got its signal, a sleep its hour; neither leaves the runtime
    ("planned", "decline"): "failed",  # a definite no of the runtime's own: a denied approval, a planned failure
    ("planned", "skip"): "skipped",  # decided against: the other arm, a lost race, nothing to compensate
    ("dispatched", "accept"): "succeeded",
    ("dispatched", "refuse"): "failed",  # a definite no
    ("dispatched", "lose"): "unknown",  # it may have happened; nobody here knows
    ("unknown", "dispatch"): "dispatched",  # the same request again, where the receiver's contract allows it
    ("unknown", "look_up"): "unknown",  # asking changes nothing
    ("unknown", "lose"): "unknown",  # the question itself went unanswered
    ("unknown", "miss"): "unknown",  # the receiver knows of no effect: what was asked for may be asked for again
    ("unknown", "find"): "reconciled",  # the receiver knows the effect
    ("unknown", "give_up"): "unresolved",  # stays visible, with its owner, for somebody to settle
    ("unknown", "exhaust"): "failed",  # no further try, and it is known that none of them had an effect
    ("unknown", "skip"): "skipped",  # stopped before a further try, and none had an effect: no result of its own
    ("unknown", "notice"): "reconciled",  # the receiver's own late word that the effect happened
    ("unresolved", "notice"): "reconciled",  # the way out: somebody settled it, and it happened
    ("unresolved", "disown"): "failed",  # the other one: a person vouches that it never happened
}
ACCEPTED: frozenset[State] = frozenset({"succeeded", "reconciled"})

#: The transition each report asks for; what is no result leaves the outcome unknown.
MOVES: Mapping[Report, Move] = {
    "succeeded": "accept",
    "failed": "refuse",
    "found": "find",
    "unknown": "lose",
    "busy": "lose",
    "unsent": "lose",
    "missing": "miss",
}

#: The reason of an `unsent` whose holder did not even begin, as its lease had run out: it counts as no try.
NOT_BEGUN = "not-begun"

#: An outcome nobody knows: repeat what may be repeated, look up what can be, and leave the rest alone.
UNKNOWN: Mapping[Semantics, Remedy] = {
    "read": "repeat",
    "keyed": "repeat",
    "lookup": "lookup",
    "blind": "none",
    "metered": "repeat",
    "fenced": "repeat",
}

Json: TypeAlias = dict[str, Any]


@functools.cache
def sources(move: Move) -> tuple[State, ...]:
    """The states from which `move` is legal."""
    return tuple(state for state, known in TRANSITIONS if known == move)


@functools.cache
def target(move: Move) -> State:
    """The state to which `move` leads; it is the same from wherever it is legal."""
    return next(to for (_, known), to in TRANSITIONS.items() if known == move)


def mermaid() -> str:
    """The table of transitions as the text of a Mermaid state diagram; every way between two states is one arrow."""
    ways: dict[tuple[State, State], list[Move]] = {}
    for (state, move), to in TRANSITIONS.items():
        ways.setdefault((state, to), []).append(move)
    leaving = {state for state, _ in ways}
    lines = ["stateDiagram-v2", "    [*] --> planned"]
    lines += [f"    {state} --> {to}: {', '.join(moves)}" for (state, to), moves in ways.items()]
    lines += [f"    {state} --> [*]" for state in get_args(State) if state not in leaving or state == "unresolved"]
    return "\n".join(lines) + "\n"


def approval_digest(operation: str, service: str, params: Mapping[str, Any]) -> str:
    """What a decision about an operation is bound to: 32 hex digits of its id, its receiver and its parameters."""
    return hashlib.blake2b(canonical([operation, service, params]).encode()).hexdigest()[:32]


def flat(value: attrs.AttrsInstance) -> Json:
    """The fields of a value by name, as they are: nothing below them is copied."""
    return {name: getattr(value, name) for name in _names(type(value))}


@functools.cache
def _names(cls: type[attrs.AttrsInstance]) -> tuple[str, ...]:
    return tuple(field.name for field in attrs.fields(cls))


def arm(nonce: object) -> Literal["A", "B"]:
    """Which way a decision goes that hangs on an accepted nonce: B when its last hex digit is odd, else A, as for what is none.

    Whoever signals or answers may call anything a nonce; what is no text is none.
    """
    last = nonce[-1:] if isinstance(nonce, str) else ""
    return "B" if last in "13579bdfBDF" and last else "A"


#: Made once: `json.dumps` makes one for each text that is not written the usual way.
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def canonical(value: object) -> str:
    """The one JSON text of a value: sorted keys, no spaces."""
    return _ENCODER.encode(value)


def digest(value: object) -> str:
    """A short, stable fingerprint of a JSON value."""
    return hashlib.blake2b(canonical(value).encode(), digest_size=16).hexdigest()


#: The most calls, tokens or leases that anything is allowed, or says it used, at once: their sums can be stored.
AMOUNT_MAX = 10**14


class Refusal(Exception):  # noqa: N818 - it is an answer, not a fault
    """A definite no: nothing was changed and asking again unchanged will not help. `code` is stable, kebab-case."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


#: Who may decide about approvals where nobody is named.
APPROVERS = ("alice",)


@attrs.frozen
class Policy:
    """How often and how slowly something is tried again. Counted in the store, so across crashes and workers."""

    tries_max: int = 1000  # calls of one operation; a plan may ask for fewer
    lookups_max: int = 20  # questions in one search for what became of a call
    deaths_max: int = 5  # workers that may die with one operation in hand
    key_lifetime_ns: int = 24 * 3600 * 1_000_000_000  # how long a receiver remembers a key, at least
    backoff_ns_min: int = 20_000_000
    backoff_ns_max: int = 1_000_000_000
    retry_after_ns_max: int = 3600 * 1_000_000_000  # no receiver puts work off for longer
    compensations_max: int = 8  # calls of one compensation
    grace_ns: int = 5_000_000_000  # how long a stop leaves what is in flight alone
    landing_ns: int = 10_000_000_000  # how long a request may be on its way after its sender gave it up
    tasks_max: int | None = None  # open at once, children among them, for one more to be admitted; None: no limit
    approvers: tuple[str, ...] = APPROVERS  # who may decide at all; authority itself is asked for at release


@attrs.frozen
class Receipt:
    """The acknowledgement of a task: it is durable."""

    task: str
    attempt: str


@attrs.frozen
class Grant:
    """A lease: permission for one invocation of one operation. `version` is the state the permission is based on.

    `authority`: whose authority its holder has to ask for before it may be dispatched, by approve leaf; `granted`: what the
    holder found, for those where it was told.
    """

    attempt: str
    operation: str
    generation: int
    version: int
    task: str = attrs.field(default="", eq=False)
    authority: Mapping[str, str] = attrs.field(factory=dict, eq=False)
    granted: Mapping[str, bool] = attrs.field(factory=dict, eq=False)


@attrs.frozen
class Ticket:
    """A durable intent, as the worker carries it out: what the request says was fixed when it was first recorded."""

    task: str
    attempt: str
    operation: str
    generation: int
    version: int
    action: Literal["call", "lookup"]
    tool: str
    key: str | None  # None where the receiver takes none
    params: Json
    carries: Mapping[str, str]
    script: tuple[str, ...] = attrs.field(converter=tuple)
    invocation: int = 1  # ordinal among the calls of this operation
    secret: str | None = None  # the name of a secret; only the worker knows its value
    fields: Json = attrs.field(
        factory=dict
    )  # further fields of this one request: token, remaining_ns, part, subject, …


@attrs.frozen
class Facts:
    """What a worker knows of an invocation beside its outcome.

    `external` is the receiver's own id of the request; `reason` a code in kebab-case where the report's own name is not it.
    """

    external: str | None = None
    retry_after_ns: int = 0
    reason: str = ""


@attrs.frozen
class Rejected:
    """A holder's word that no longer counted; it was kept as evidence and changed nothing."""

    reason: str


@attrs.frozen
class Tally:
    """How an attempt stands: what decides whether, and how, it is over. Yes or no each, so that nothing is counted."""

    failing: bool  # something failed that counts; nothing new begins
    stopping: bool  # a stop was accepted; nothing new begins
    unresolved: bool  # an effect that counts could not be established
    pending: bool  # not everything is settled
    leased: bool  # in a worker's hands
    runnable: bool  # claimable now or after a delay
    waiting: bool  # an open wait, a running timer, a pending approval
    children: bool = False  # owned and not over
