"""Histories nobody would write: any events in any order, over few enough names that they often fit together."""

from __future__ import annotations

import attrs
from hypothesis import strategies as st

from scenarios.history import (
    KINDS,
    Answered,
    ApprovalStatus,
    ChildStatus,
    Declared,
    Event,
    Fetched,
    History,
    OperationStatus,
    Replied,
    Status,
    Usage,
)
from scenarios.plan import Call
from tests.scenarios.build import par, plan, seq
from tests.scenarios.words import RUN

PLANS = (
    plan("a reader", par(seq("b ledger a", "w wait go"), "m mailer"), "s sleep 5", "c registry a,w"),
    plan(
        "w wait go",
        "v wait go",
        "a flaky w,v",
        "s sleep 0",
        Call("b", "ledger", {"of": "a"}),
        Call("c", "ledger", {"of": "a"}),
    ),
)
OPS = st.sampled_from(("a", "b", "c", "m", "s", "w", "nobody"))
NONCES = st.sampled_from(("n1", "n2", "n3"))
FEW = st.integers(1, 4)
#: What a payload or a body may be, of the right shape or of any other.
PAYLOADS = st.sampled_from(
    (
        "",
        "{",
        "[]",
        '{"nonce":"n1"}',
        '{"nonce":"n2","operation":"a"}',
        '{"nonce":3,"operation":[],"params":{"amount":1}}',
    )
)
_ROWS: st.SearchStrategy[object] = st.lists(
    st.dictionaries(
        st.sampled_from(
            (
                "cursor",
                "kind",
                "operation",
                "version",
                "sequence",
                "from",
                "to",
                "name",
                "digest",
                "size",
                "state",
                "generation",
            )
        ),
        st.sampled_from((1, 2, "a", "succeeded", None, [], {})),
    )
    | st.just("odd"),
    max_size=2,
)
BODIES = st.dictionaries(
    st.sampled_from(
        (
            "disposition",
            "consumer",
            "events",
            "next",
            "control",
            "artifacts",
            "transitions",
            "invocations",
            "rejected",
            "audit",
        )
    ),
    st.sampled_from(("released", "late", "approved", 1, None)) | _ROWS,
    max_size=4,
)
_FIELDS: dict[str, st.SearchStrategy[object]] = {
    "at_ns": st.integers(0, 20_000_000),
    "call": FEW,
    "effect": FEW,
    "ask": FEW,
    "incarnation": st.integers(1, 3),
    "service": st.sampled_from(("ledger", "reader", "mailer", "registry", "flaky")),
    "run": st.sampled_from((RUN, RUN, RUN, "other")),
    "op": OPS,
    "key": st.sampled_from((None, "k1", "k2")),
    "params": st.sampled_from(("p1", "p2")),
    "carries": st.dictionaries(OPS, NONCES, max_size=2),
    "lookup": st.sampled_from((False, False, False, True)),
    "nonce": st.none() | NONCES,
    "status": st.sampled_from((200, 404, 409, 503)),
    "kind": st.sampled_from(("executed", "saved", "found", "missing", "busy", "mismatch", "rejected", "error")),
    "delivery": st.sampled_from(("sent", "sent", "dropped", "reset")),
    "unit": st.sampled_from(("worker", "engine")),
    "cause": st.sampled_from(("killed", "power", "exited")),
    "verb": st.sampled_from(("start", "status", "signal", "resume")),
    "id": st.sampled_from((None, "1", "2")),
    "name": st.sampled_from((None, "go", "stop")),
    "outcome": st.sampled_from(("ok", "ok", "error", "indefinite")),
    "detail": st.just(""),
    "label": st.sampled_from(
        ("kill@a#1.applied", "delay@b#1.received", "repeat@ack:start", "odd", "early@ack:start+kill@t+5ns")
    ),
    "reason": st.sampled_from(("settled", "slow", "bound")),
    "token": st.none() | FEW,
    "remaining_ns": st.none() | st.integers(-5, 5),
    "subject": st.sampled_from((None, "report@1#d1")),
    "secret": st.booleans(),
    "part": st.none() | FEW,
    "usage": st.none() | FEW,
    "external": st.sampled_from((None, "x1")),
    "code": st.sampled_from(("", "1", "2")),
    "operation": st.none() | OPS,
    "decision": st.sampled_from((None, "approve", "deny")),
    "digest": st.sampled_from(("d1", "d2")),
    "actor": st.sampled_from(("alice", "mallory")),
    "payload": st.none() | PAYLOADS,
    "body": st.none() | BODIES,
    "granted": st.booleans(),
    "places": st.just(("store", "logs")),
    "found": st.just(("store:token",)),
    "version": FEW,
    "size": FEW,
    "location": st.sampled_from(("l1", "l2")),
    "state": st.sampled_from(("staged", "committed", "removed")),
    "ns": st.integers(0, 9),
}
_OPERATION = st.builds(
    OperationStatus,
    OPS,
    st.sampled_from(("planned", "dispatched", "succeeded", "failed", "unknown", "reconciled", "unresolved", "skipped")),
    st.none() | NONCES,
)
_STATUS = st.builds(
    Status,
    st.sampled_from(("unknown", "running", "waiting", "done", "failed", "cancelled", "blocked")),
    st.sampled_from((None, "go")),
    st.none() | st.dictionaries(OPS, NONCES, max_size=3),
    st.none(),
    st.sampled_from((None, "t1", "t2")),
    st.sampled_from((None, "e1", "e2")),
    st.none(),
    st.lists(_OPERATION, max_size=3).map(tuple),
    st.sampled_from((None, "check-failed: no", "cancelled")),
    st.sampled_from((None, "running", "ended")),
    st.none() | OPS,
    st.none() | st.dictionaries(st.sampled_from(("calls", "tokens")), st.builds(Usage, st.none() | FEW, FEW, FEW, FEW)),
    st.lists(st.builds(ChildStatus, st.just("r1/k"), st.just("running"), st.booleans()), max_size=1).map(tuple),
    st.sampled_from((None, "accepted", "quiescent")),
    st.sampled_from((None, True, False)),
    st.lists(st.builds(ApprovalStatus, OPS, OPS, st.none(), st.sampled_from(("pending", "approved"))), max_size=1).map(
        tuple
    ),
    st.none() | st.dictionaries(st.sampled_from(("1", "2")), st.sampled_from(("released", "late"))),
    st.sampled_from((None, True, False)),
)


def _event(kind: type) -> st.SearchStrategy[Event]:
    fields = {field.name: _FIELDS[field.name] for field in attrs.fields(kind)}
    if "verb" not in fields and "nonce" in fields and "delivery" not in fields:
        fields["nonce"] = NONCES  # of an Applied
    if kind is Answered:
        fields["status"] = st.none() | _STATUS
    if kind is Replied:
        fields["outcome"] = st.sampled_from((None, "passed", "failed"))
    if kind is Fetched:
        fields |= {"found": st.booleans(), "name": st.just("report")}
    return st.builds(kind, **fields)


EVENTS = st.one_of([_event(kind) for kind in KINDS.values()])
DECLARED = st.builds(
    Declared, st.sampled_from(("buffered", "refused")), st.sampled_from((0, 1_000_000)), st.booleans(), st.booleans()
)


def histories() -> st.SearchStrategy[History]:
    return st.builds(History, st.just(RUN), st.sampled_from(PLANS), DECLARED, st.lists(EVENTS, max_size=60).map(tuple))
