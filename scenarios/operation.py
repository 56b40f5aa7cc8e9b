"""The operations a plan is made of, as frozen values: groups that order others, and leaves that are worked.

Every operation has an id, unique in its plan; step names derive from ids. Groups are `Seq`, `Par`, `Race`, `Branch` and
`Loop`; everything else is a leaf. `Choice` is no operation anybody writes: it is the leaf that stands for the decision of a
race, a branch or a further round of a loop, and it is shown like any other leaf once the decision has been made.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

import attrs

Semantics = Literal["keyed", "lookup", "blind", "read", "metered"]

#: What the receiver behind each hosted service promises; decides what a harness may do with an unknown outcome.
#:
#: `fenced` honours keys and takes a fencing token besides; a request to the `model` may be repeated, and each repeat is paid
#: for; an upload to the `store` is keyed by its location; asking the `desk` and the `checker` changes nothing; an `operation`
#: that takes long honours keys as it is started.
SEMANTICS: Mapping[str, Semantics] = {
    "ledger": "keyed",
    "registry": "lookup",
    "mailer": "blind",
    "reader": "read",
    "flaky": "keyed",
    "fenced": "keyed",
    "model": "metered",
    "store": "keyed",
    "desk": "read",
    "operation": "keyed",
    "checker": "read",
}
#: Services a plan names by operations of their own, never by `call`.
RESERVED_SERVICES: Final = frozenset({"model", "store", "desk", "checker"})

#: What `script` entries of a `call` may say; the n-th request of the operation follows the n-th entry, later ones "ok".
SCRIPT_ENTRIES = (
    "ok", "error-before", "error-after", "reset-before", "reset-after", "reject", "slow", "429", "529", "cut"
)  # fmt: skip
#: A model may besides give its answer twice, or one of the wrong shape, or not say what it has cost.
MODEL_ENTRIES = (*SCRIPT_ENTRIES, "duplicate", "wrong", "unmetered")
#: What a checker says to the n-th request of a check.
CHECK_ENTRIES = ("passed", "failed", "unavailable", "timeout", "skipped")
#: What a receiver that can be looked up does with the n-th look-up of an operation.
LOOKUP_ENTRIES = ("ok", "down")
NONDET_KINDS = ("time", "random", "uuid")


@attrs.frozen
class Reserve:
    """The share of an allowance that only checks and compensations may use."""

    calls: int = 0
    tokens: int = 0


@attrs.frozen
class Allowance:
    """The most a run may use: invocations, tokens, nanoseconds from its start, operations under way at once."""

    calls: int | None = None
    tokens: int | None = None
    elapsed_ns: int | None = None
    concurrency: int | None = None
    reserve: Reserve | None = None


@attrs.frozen
class Call:
    """One effect or read at a hosted service.

    `tries`: the most requests to carry it out, over its whole life. `elapsed_ns`: none later than this after the first.
    `secret`: the name of one to hand over. `tolerate`: a definite refusal is an accepted outcome, without a nonce.
    `lookups`: what look-ups meet. `params` of their own meaning: `answer_bytes` (length of the answer), `poison` (a request
    that the worker's own tool cannot encode).
    """

    id: str
    service: str
    params: Mapping[str, Any] = attrs.field(factory=dict)
    carries: tuple[str, ...] = ()
    script: tuple[str, ...] = ()
    tries: int | None = None
    elapsed_ns: int | None = None
    secret: str | None = None
    tolerate: bool = False
    lookups: tuple[str, ...] = ()


@attrs.frozen
class Wait:
    """Wait for one signal of this name; several waits of one name take one signal each.

    After `timeout_ns` it is accepted without an answer, and takes no later signal.
    """

    id: str
    signal: str
    timeout_ns: int | None = None


@attrs.frozen
class Sleep:
    """A durable timer of `ns` nanoseconds, counted from the moment its dependencies were accepted."""

    id: str
    ns: int


@attrs.frozen
class Approve:
    """A person's decision about the later operation `of`, good for `validity_ns` from when it was made possible."""

    id: str
    of: str
    validity_ns: int | None = None


@attrs.frozen
class Model:
    """One request to the hosted model, for which `tokens` are set aside; it uses `uses` of them, or half."""

    id: str
    prompt: str
    tokens: int
    script: tuple[str, ...] = ()
    carries: tuple[str, ...] = ()
    uses: int | None = None

    @property
    def service(self) -> str:
        return "model"

    @property
    def params(self) -> Mapping[str, Any]:
        """What is asked and how it is metered, as the request says it; an approval is bound to all of it."""
        said = {"prompt": self.prompt, "tokens": self.tokens}
        return said if self.uses is None else {**said, "uses": self.uses}


@attrs.frozen
class Child:
    """A task of its own, `<run>/<id>`, whose plan has `root`; accepted when it has succeeded, or when it has been admitted
    (`detached`). `share` comes out of its owner's allowance.
    """

    id: str
    root: Op
    detached: bool = False
    share: Allowance | None = None


@attrs.frozen
class Artifact:
    """`size` bytes (see `content`) put to the store in `parts` parts and committed under `name`."""

    id: str
    name: str
    size: int
    parts: int = 1
    carries: tuple[str, ...] = ()

    @property
    def service(self) -> str:
        return "store"


@attrs.frozen
class Check:
    """The checker's word on the current version of what the earlier artifact `of` published."""

    id: str
    of: str
    script: tuple[str, ...] = ()
    required: bool = True

    @property
    def service(self) -> str:
        return "checker"


@attrs.frozen
class Fail:
    """The run fails here, definitely, for this reason."""

    id: str
    reason: str


@attrs.frozen
class Nondet:
    """A value that the harness draws once and records; its answer is the value as text."""

    id: str
    kind: Literal["time", "random", "uuid"]


@attrs.frozen
class Compensate:
    """Undo the call `of`, should the run fail or be cancelled after it was accepted. Outside the order of the plan."""

    id: str
    of: str
    service: str
    params: Mapping[str, Any] = attrs.field(factory=dict)
    script: tuple[str, ...] = ()

    @property
    def carries(self) -> tuple[str, ...]:
        return ()


@attrs.frozen
class Choice:
    """The decision of a race, a branch or a loop's next round (`on`: the leaf it depends on; a race has none)."""

    id: str
    kind: Literal["race", "branch", "loop"]
    on: str | None = None


@attrs.frozen
class Seq:
    """Children one after the other."""

    id: str
    children: tuple[Op, ...]


@attrs.frozen
class Par:
    """Children side by side; done when all are."""

    id: str
    children: tuple[Op, ...]


@attrs.frozen
class Race:
    """Children side by side; done when the first of them is. The others are skipped, as far as they are not under way."""

    id: str
    children: tuple[Op, ...]


@attrs.frozen
class Branch:
    """One of two children, by `arm` of the answer of the earlier leaf `on`; the other is skipped."""

    id: str
    on: str
    children: tuple[Op, ...]


@attrs.frozen
class Loop:
    """The children once, and again while `arm` of the body's leaf `on` says so, `times` times at most.

    Copy k of an operation of the body is called `<id>@k`, from 1. Inside a loop of a loop the outer number comes first.
    """

    id: str
    children: tuple[Op, ...]
    on: str
    times: int


#: One request at a time to a service, known by its answer.
Requester: TypeAlias = Call | Model | Compensate
Written: TypeAlias = (
    Call | Wait | Sleep | Approve | Model | Child | Artifact | Check | Fail | Nondet | Compensate
)  # leaves as they are written
Leaf: TypeAlias = Written | Choice
Group: TypeAlias = Seq | Par | Race | Branch | Loop
Op: TypeAlias = Written | Group


#: What an operation or a plan may ask for beside what every harness that knows its kind can do; a manifest names these
#: among the operations it supports. `retries`: limits of tries and time, and look-ups that fail. `sizes`: answers of any
#: size. `allowance`, `deadline`, `code`: of the whole plan.
OPTIONS: Final = (
    "retries", "secrets", "tolerate", "sizes", "poison", "timeout", "validity", "detached", "allowance", "deadline", "code"
)  # fmt: skip


def options_of(op: Op) -> frozenset[str]:
    """Which of `OPTIONS` an operation uses by itself."""
    match op:
        case Call():
            used = {
                "retries": op.tries is not None or op.elapsed_ns is not None or bool(op.lookups),
                "secrets": op.secret is not None,
                "tolerate": op.tolerate,
                "sizes": "answer_bytes" in op.params,
                "poison": "poison" in op.params,
            }
        case Wait():
            used = {"timeout": op.timeout_ns is not None}
        case Approve():
            used = {"validity": op.validity_ns is not None}
        case Child():
            used = {"detached": op.detached, "allowance": op.share is not None}
        case _:
            used = {}
    return frozenset(name for name, is_used in used.items() if is_used)


@attrs.frozen
class Guard:
    """What an operation's turn depends on: the leaf that decides, and what it must decide for the operation to run.

    `arm` is the number of the child for a race and a branch (0 is A, 1 is B), and 1 for a further round of a loop. What a
    detached child does is nobody's turn but its own: `detached` says that its owner does not wait for it.
    """

    by: str
    kind: Literal["race", "branch", "loop", "detached"]
    arm: int


def arm(nonce: str | None) -> int:
    """Which of two ways an answer decides for: the parity of its last hexadecimal digit, 1 for odd; 0 without a digit."""
    try:
        return int((nonce or "0")[-1], 16) % 2
    except ValueError:
        return 0


def canonical(value: object) -> str:
    """The one JSON text of a value: sorted names, no blanks, characters as they are."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def approval_digest(op: Call | Model, params: Mapping[str, Any] | None = None) -> str:
    """What an approval of `op` is bound to: 32 hex digits over its id, service and parameters (`params`, once steered)."""
    bound = canonical([op.id, op.service, dict(op.params if params is None else params)])
    return hashlib.blake2b(bound.encode()).hexdigest()[:32]


def content(run: str, op: str, size: int) -> bytes:
    """The bytes that artifact `op` of `run` publishes: the 64-byte blake2b digest of `run:op`, repeated and cut to `size`."""
    block = hashlib.blake2b(f"{run}:{op}".encode()).digest()
    return (block * (size // len(block) + 1))[:size]
