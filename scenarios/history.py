"""Histories: what an outside observer saw of one run, typed, append-only and serialisable.

The order of `History.events` is the one total order of observation; an event's index is its position. `at_ns` is the
observer's clock (virtual in simulation, monotonic in the process world), for durations only. What could not be
established is marked *indefinite*, never guessed.

Calls at services: `Received → Applied? → Replied?`, joined by `call`. Asks of the kit to the adapter: `Asked → Answered?`,
joined by `ask`; an ask without an answer is indefinite (the worker died, or the answer was thrown away on purpose). What the
children of the run send is recorded as sent by the run itself, by operations `<child>/<id>`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeAlias, get_args

import attrs
import cattrs

from scenarios.plan import Plan

State = Literal["unknown", "running", "waiting", "done", "failed", "cancelled", "blocked"]
OperationState = Literal[
    "planned", "dispatched", "succeeded", "failed", "unknown", "reconciled", "unresolved", "skipped"
]
Phase = Literal[
    "admitted", "running", "waiting", "paused", "cancelling", "compensating", "checking", "delivering", "ended"
]
CancelState = Literal["accepted", "delivered", "quiescent"]
ApprovalState = Literal["pending", "approved", "denied", "expired", "released", "withdrawn"]

#: States after which a run does not move by itself. `blocked` is one: an explicit, owned end such as an unresolved effect.
TERMINAL: frozenset[str] = frozenset({"done", "failed", "cancelled", "blocked"})
#: Operation states that show an accepted answer.
ACCEPTED: frozenset[str] = frozenset({"succeeded", "reconciled"})
#: Operation states that show an outcome which nobody knows, or never will.
IN_DOUBT: frozenset[str] = frozenset({"unknown", "unresolved"})


@attrs.frozen
class OperationStatus:
    """One operation as a status shows it; `nonce` is the accepted answer, when there is one.

    `ready`: everything it depends on is there, and it may move. `tries`: how often it has been sent. `detail`: why it is so.
    """

    id: str
    state: OperationState
    nonce: str | None = None
    ready: bool | None = None
    tries: int | None = None
    detail: str | None = None


@attrs.frozen
class Usage:
    """How one allowance stands: what is confirmed, set aside, and held for answers that were lost."""

    allowance: int | None = None
    consumed: int = 0
    reserved: int = 0
    unknown: int = 0


@attrs.frozen
class ChildStatus:
    """A child as its owner shows it."""

    run: str
    state: str
    detached: bool = False


@attrs.frozen
class ApprovalStatus:
    """A decision as the run shows it: about which operation, bound to which digest."""

    operation: str
    of: str
    digest: str | None = None
    state: ApprovalState = "pending"


@attrs.frozen
class Status:
    """A run as the harness shows it. Fields a harness does not have stay None or empty.

    `result` of a done run is the mapping of leaf id to accepted nonce (calls, and waits with their signal's nonce).
    `usage` is by what is limited (`calls`, `tokens`, `elapsed_ns`), `signals` by command id.
    """

    state: State
    on: str | None = None  # signal name or approval, for "waiting"
    result: Mapping[str, str] | None = None
    error: str | None = None  # for "failed", and the reason of "blocked"
    attempt: str | None = None
    execution: str | None = None
    version: int | None = None
    operations: tuple[OperationStatus, ...] = ()
    reason: str | None = None  # of a terminal state: a code, and perhaps ": " and words
    phase: Phase | None = None
    dependency: str | None = None  # the leaf now waited for
    usage: Mapping[str, Usage] | None = None
    children: tuple[ChildStatus, ...] = ()
    cancel: CancelState | None = None
    paused: bool | None = None
    approvals: tuple[ApprovalStatus, ...] = ()
    signals: Mapping[str, str] | None = None  # command id → disposition
    delivered: bool | None = None  # was the result handed over?

    @property
    def reason_code(self) -> str | None:
        """The reason without its words."""
        return None if self.reason is None else self.reason.partition(":")[0]


@attrs.frozen
class Received:
    """A request reached a service. `lookup` asks for an earlier effect by reference and applies nothing.

    `token`: the fencing token it brought. `remaining_ns`: the time its caller said was left. `subject`: what a checker is
    asked about, as `name@version#digest`. `secret`: it brought the secret it was to bring. `part`: of an upload, from 1; an
    upload's commit has none.
    """

    at_ns: int
    call: int
    service: str
    run: str
    op: str
    incarnation: int  # of the worker that called: known by its port, not by its word
    key: str | None = None
    params: str = ""  # digest of everything the key stands for: params and carried nonces
    carries: Mapping[str, str] = attrs.field(factory=dict)
    lookup: bool = False
    token: int | None = None
    remaining_ns: int | None = None
    subject: str | None = None
    secret: bool = False
    part: int | None = None


@attrs.frozen
class Applied:
    """The service made a new effect (or, for a read, a new answer) with a fresh nonce."""

    at_ns: int
    call: int
    effect: int
    nonce: str


@attrs.frozen
class Replied:
    """The service's answer. `kind`: executed, saved (a key's first answer again), found, missing, busy, mismatch,
    rejected (definite refusal), error (5xx), fenced (an older token than the newest seen), limited (not now: 429, 529).
    `delivery`: sent (handed to the network), or dropped, reset. `usage`: tokens a model counted. `external`: the service's own
    id of the request. `outcome`: what a checker found.
    """

    at_ns: int
    call: int
    status: int
    kind: str
    nonce: str | None = None
    delivery: Literal["sent", "dropped", "reset"] = "sent"
    usage: int | None = None
    external: str | None = None
    outcome: str | None = None


@attrs.frozen
class Started:
    """A process of the target came up. Incarnations are numbered from 1 over all units of one history."""

    at_ns: int
    incarnation: int
    unit: str
    code: str = ""  # the version of the code it runs, where the kit chose one


@attrs.frozen
class Died:
    at_ns: int
    incarnation: int
    unit: str
    cause: Literal["killed", "power", "exited", "left"]  # left: by itself, as it had been asked to


@attrs.frozen
class Paused:
    at_ns: int
    incarnation: int


@attrs.frozen
class Resumed:
    at_ns: int
    incarnation: int


@attrs.frozen
class Asked:
    """The kit asked the adapter something. For a signal: `name`, the command `id` and the payload's `nonce`.

    For a decision: `operation` (the approval), `decision`, `digest`, `actor`, and `nonce`. `payload` is canonical JSON text: a
    signal's payload; of a start it is given only where the kit misuses the id for another plan, and is that plan.
    """

    at_ns: int
    ask: int
    verb: str
    run: str
    incarnation: int
    id: str | None = None
    name: str | None = None
    nonce: str | None = None
    operation: str | None = None
    decision: str | None = None
    digest: str | None = None
    actor: str | None = None
    payload: str | None = None


@attrs.frozen
class Answered:
    """The adapter's answer. `ok`, a definite `error`, or `indefinite`; `status` for the verb status, `body` for what every
    other verb answered.
    """

    at_ns: int
    ask: int
    outcome: Literal["ok", "error", "indefinite"]
    detail: str = ""
    status: Status | None = None
    body: Mapping[str, Any] | None = None


@attrs.frozen
class Authority:
    """From here on `actor` may decide, or may not."""

    at_ns: int
    actor: str
    granted: bool


@attrs.frozen
class Scanned:
    """The kit searched `places` (store, status, events, artifacts, journal, logs) for secrets; `found` is `place:name` each."""

    at_ns: int
    places: tuple[str, ...]
    found: tuple[str, ...] = ()


@attrs.frozen
class Fetched:
    """The kit fetched an accepted artifact from the store by its location; `digest` (sha256) and `size` of what came."""

    at_ns: int
    name: str
    version: int
    digest: str
    size: int
    found: bool


@attrs.frozen
class Stored:
    """The store service has content at `location`: part of an upload, an upload that was committed, or no longer."""

    at_ns: int
    location: str
    state: Literal["staged", "committed", "removed"]


@attrs.frozen
class Down:
    """A unit that has just died is kept down for `ns`."""

    at_ns: int
    unit: str
    ns: int


#: Label of the `Fired` from which on, until `Quiet`, the world itself misbehaves: slow and failing disks, bad links.
STORM = "storm"


@attrs.frozen
class Fired:
    """An interruption took place; `label` is `Interruption.label`, or `STORM`."""

    at_ns: int
    label: str


@attrs.frozen
class Quiet:
    """From here on no fault happens, storage is back and a worker is available."""

    at_ns: int


@attrs.frozen
class Stalled:
    """The observer's own machine stood still for `ns` until now: nobody on it got on as fast as usual (process world only)."""

    at_ns: int
    ns: int


@attrs.frozen
class Closed:
    """Observation ended: `settled` (terminal, within the bound), `slow` (within four bounds), `bound` (not even then), or
    `stopped`: what it has stored was damaged, and the target does not go on with it.
    """

    at_ns: int
    reason: Literal["settled", "slow", "bound", "stopped"]


Event: TypeAlias = (
    Received
    | Applied
    | Replied
    | Started
    | Died
    | Paused
    | Resumed
    | Asked
    | Answered
    | Authority
    | Scanned
    | Fetched
    | Stored
    | Down
    | Fired
    | Quiet
    | Stalled
    | Closed
)
KINDS: Mapping[str, type] = {cls.__name__: cls for cls in get_args(Event)}


def _texts(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(values)


def _pairs(values: Iterable[tuple[str, Iterable[str]]]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return tuple((name, tuple(others)) for name, others in values)


@attrs.frozen
class Declared:
    """What the adapter's manifest declares and judges must know."""

    early_signal: Literal["buffered", "refused"] = "buffered"
    timer_grain_ns: int = 0  # a timer may fire so early by the observer's clock (granularity of the target's)
    shows_operations: bool = False  # status lists operations with their states
    shows_attempts: bool = False  # status carries attempt and execution ids
    verbs: tuple[str, ...] = attrs.field(default=("start", "status", "signal", "resume"), converter=_texts)
    slots: int | None = None  # the most operations under way at once
    grace_ns: int | None = None  # how long what ignores a stop may go on
    deaths_max: int | None = None  # work that killed this many workers is not restarted
    key_lifetime_ns: int | None = None  # of the receivers' keys, as the harness is told
    late_signal: Literal["late", "refused"] = "late"  # what becomes of a signal whose waits have ended
    unmatched_signal: Literal["buffered", "refused"] = "buffered"  # and of one that nothing waits for
    lease_ns: int | None = None  # how long an owner may be silent before another takes over
    call_timeout_ns: int | None = None  # how long its workers are told to wait for a receiver's answer
    #: Versions of its code, the oldest first, each with those whose work it may go on with.
    codes: tuple[tuple[str, tuple[str, ...]], ...] = attrs.field(default=(), converter=_pairs)


@attrs.frozen
class History:
    """One run of one plan under one set of interruptions."""

    run: str
    plan: Plan
    declared: Declared
    events: tuple[Event, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "run": self.run,
            "plan": self.plan.to_json(),
            "declared": attrs.asdict(self.declared),
            "events": [{"event": type(event).__name__, **_CONVERTER.unstructure(event)} for event in self.events],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> History:
        """Read a history; raises KeyError or cattrs errors naming the field that is off."""
        events: tuple[Event, ...] = tuple(
            _CONVERTER.structure({k: v for k, v in row.items() if k != "event"}, KINDS[row["event"]])
            for row in data["events"]
        )
        return cls(data["run"], Plan.from_json(data["plan"]), Declared(**data["declared"]), events)


_CONVERTER = cattrs.Converter(forbid_extra_keys=True)
