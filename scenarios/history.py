"""Histories: what an outside observer saw of one run, typed, append-only and serialisable.

The order of `History.events` is the one total order of observation; an event's index is its position. `at_ns` is the
observer's clock (virtual in simulation, monotonic in the process world), for durations only. What could not be
established is marked *indefinite*, never guessed.

Calls at services: `Received → Applied? → Replied?`, joined by `call`. Asks of the kit to the adapter: `Asked → Answered?`,
joined by `ask`; an ask without an answer is indefinite (the worker died, or the answer was thrown away on purpose).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import attrs
import cattrs

from scenarios.plan import Plan

State = Literal["unknown", "running", "waiting", "done", "failed", "cancelled", "blocked"]
OperationState = Literal["planned", "dispatched", "succeeded", "failed", "unknown", "reconciled", "unresolved"]

#: States after which a run does not move by itself. `blocked` is one: an explicit, owned end such as an unresolved effect.
TERMINAL: frozenset[str] = frozenset({"done", "failed", "cancelled", "blocked"})
#: Operation states that show an accepted answer.
ACCEPTED: frozenset[str] = frozenset({"succeeded", "reconciled"})


@attrs.frozen
class OperationStatus:
    """One operation as a status shows it; `nonce` is the accepted answer, when there is one."""

    id: str
    state: OperationState
    nonce: str | None = None


@attrs.frozen
class Status:
    """A run as the harness shows it. Fields a harness does not have stay None or empty.

    `result` of a done run is the mapping of leaf id to accepted nonce (calls, and waits with their signal's nonce).
    """

    state: State
    on: str | None = None  # signal name, for "waiting"
    result: Mapping[str, str] | None = None
    error: str | None = None  # for "failed", and the reason of "blocked"
    attempt: str | None = None
    execution: str | None = None
    version: int | None = None
    operations: tuple[OperationStatus, ...] = ()


@attrs.frozen
class Received:
    """A request reached a service. `lookup` asks for an earlier effect by reference and applies nothing."""

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
    rejected (definite refusal), error (5xx). `delivery`: sent (handed to the network), or dropped, reset.
    """

    at_ns: int
    call: int
    status: int
    kind: str
    nonce: str | None = None
    delivery: Literal["sent", "dropped", "reset"] = "sent"


@attrs.frozen
class Started:
    """A process of the target came up. Incarnations are numbered from 1 over all units of one history."""

    at_ns: int
    incarnation: int
    unit: str


@attrs.frozen
class Died:
    at_ns: int
    incarnation: int
    unit: str
    cause: Literal["killed", "power", "exited"]


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
    """The kit asked the adapter something. For a signal: `name`, the command `id` and the payload's `nonce`."""

    at_ns: int
    ask: int
    verb: str
    run: str
    incarnation: int
    id: str | None = None
    name: str | None = None
    nonce: str | None = None


@attrs.frozen
class Answered:
    """The adapter's answer. `ok`, a definite `error`, or `indefinite`; `status` for the verb status."""

    at_ns: int
    ask: int
    outcome: Literal["ok", "error", "indefinite"]
    detail: str = ""
    status: Status | None = None


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
class Closed:
    """Observation ended: `settled` (terminal, within the bound), `slow` (within four bounds), `bound` (not even then)."""

    at_ns: int
    reason: Literal["settled", "slow", "bound"]


Event: TypeAlias = (
    Received | Applied | Replied | Started | Died | Paused | Resumed | Asked | Answered | Fired | Quiet | Closed
)
KINDS: Mapping[str, type] = {
    cls.__name__: cls
    for cls in (Received, Applied, Replied, Started, Died, Paused, Resumed, Asked, Answered, Fired, Quiet, Closed)
}


@attrs.frozen
class Declared:
    """What the adapter's manifest declares and judges must know."""

    early_signal: Literal["buffered", "refused"] = "buffered"
    timer_grain_ns: int = (
        0  # a timer may fire this much early by the observer's clock (granularity of the target's clock)
    )
    shows_operations: bool = False  # status lists operations with their states
    shows_attempts: bool = False  # status carries attempt and execution ids


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
