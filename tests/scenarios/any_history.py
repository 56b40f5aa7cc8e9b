"""Histories nobody would write: any events in any order, over few enough names that they often fit together."""

from __future__ import annotations

import functools

import attrs
from hypothesis import strategies as st

from scenarios.history import (
    KINDS,
    Answered,
    Applied,
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
from scenarios.plan import SEMANTICS, Branch, Call, Child, Loop, Plan, Race, Seq
from scenarios.strategies import plans
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
    plan(
        "a ledger",
        "k approve c 5",
        "c ledger k",
        Race("r", (Call("b", "reader"), Seq("two", (Call("m", "mailer"),)))),
        Branch("v", "a", (Call("w", "ledger"), Call("x", "fenced"))),
        Loop("l", (Call("y", "registry", tries=2),), "y", 2),
        Child("kid", Seq("inner", (Call("a", "ledger"), Call("b", "flaky", {}, ("a",))))),
        "p artifact report 9 2",
        "q check p",
        "u undo a",
        "n nondet uuid",
        "f fail enough",
    ),
)
NONCES = st.sampled_from(("n1", "n2", "n3"))
FEW = st.integers(1, 4)
STATES = (
    *("planned", "dispatched", "succeeded", "failed", "unknown", "reconciled", "unresolved", "skipped"),
    *("succeeded", "reconciled"),
)
#: What a payload or a body may be, of the right shape or of any other.
PAYLOADS = st.sampled_from(
    (
        "",
        "{",
        "[]",
        '{"after":2}',
        '{"nonce":"n1"}',
        '{"nonce":"n2","operation":"a"}',
        '{"nonce":3,"operation":[],"params":{"amount":1}}',
    )
)
_COLUMNS = (
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
    "report",
)
_ROWS: st.SearchStrategy[object] = st.lists(
    st.dictionaries(st.sampled_from(_COLUMNS), st.sampled_from((1, 2, "a", "succeeded", None, [], {})))
    | st.just("odd"),
    max_size=2,
)
_BODY_FIELDS = (
    "disposition",
    "consumer",
    "events",
    "next",
    "control",
    "artifacts",
    "transitions",
    "invocations",
    "audit",
)
BODIES = st.dictionaries(
    st.sampled_from(_BODY_FIELDS),
    st.sampled_from(("released", "late", "approved", "too-late", 1, None)) | _ROWS,
    max_size=4,
)
_FIELDS: dict[str, st.SearchStrategy[object]] = {
    "at_ns": st.integers(0, 20_000_000),
    "call": FEW,
    "effect": FEW,
    "ask": FEW,
    "incarnation": st.integers(1, 3),
    "service": st.sampled_from((*SEMANTICS, "ledger", "ledger", "reader")),
    "run": st.sampled_from((RUN, RUN, RUN, "other")),
    "key": st.sampled_from((None, "k1", "k2")),
    "params": st.sampled_from(("p1", "p2")),
    "lookup": st.sampled_from((False, False, False, True)),
    "nonce": st.none() | NONCES,
    "status": st.sampled_from((200, 404, 409, 429, 503)),
    "kind": st.sampled_from(
        ("executed", "saved", "found", "missing", "busy", "mismatch", "rejected", "fenced", "error")
    ),
    "delivery": st.sampled_from(("sent", "sent", "dropped", "reset")),
    "unit": st.sampled_from(("worker", "engine")),
    "cause": st.sampled_from(("killed", "power", "exited")),
    "verb": st.sampled_from(
        (
            "start",
            "status",
            "signal",
            "resume",
            "decide",
            "cancel",
            "pause",
            "unpause",
            "events",
            "artifacts",
            "journal",
        )
    ),
    "id": st.sampled_from((None, "1", "2")),
    "name": st.sampled_from((None, "go", "stop", "steer", "notice")),
    "outcome": st.sampled_from(("ok", "ok", "error", "indefinite")),
    "detail": st.just(""),
    "label": st.sampled_from(
        (
            *("kill@a#1.applied", "delay@b#1.received", "repeat@ack:start", "odd", "early@ack:start+kill@t+5ns"),
            *("expire@a#1.applied", "wipe@end", "jump@ack:start~9ns", "cancel@waiting:w", "deploy@end=2"),
        )
    ),
    "reason": st.sampled_from(("settled", "slow", "bound", "stopped")),
    "token": st.none() | FEW,
    "remaining_ns": st.none() | st.integers(-5, 5),
    "subject": st.sampled_from((None, "report@1#d1")),
    "secret": st.booleans(),
    "part": st.none() | FEW,
    "usage": st.none() | FEW,
    "external": st.sampled_from((None, "x1")),
    "code": st.sampled_from(("", "1", "2")),
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


def _statuses(ops: st.SearchStrategy[str]) -> st.SearchStrategy[Status]:
    shown = st.builds(OperationStatus, ops, st.sampled_from(STATES), st.none() | NONCES)  # type: ignore[arg-type]
    approvals = st.builds(ApprovalStatus, ops, ops, st.none(), st.sampled_from(("pending", "approved")))  # type: ignore[arg-type]
    return st.builds(
        Status,
        st.sampled_from(("unknown", "running", "waiting", "done", "failed", "cancelled", "blocked")),  # type: ignore[arg-type]
        st.none() | st.just("go") | ops,
        st.none() | st.dictionaries(ops, NONCES, max_size=3),
        st.none(),
        st.sampled_from((None, "t1", "t2")),
        st.sampled_from((None, "e1", "e2")),
        st.none(),
        st.lists(shown, max_size=3).map(tuple),
        st.sampled_from((None, "check-failed: no", "cancelled")),
        st.sampled_from((None, "running", "ended")),
        st.none() | ops,
        st.none()
        | st.dictionaries(st.sampled_from(("calls", "tokens")), st.builds(Usage, st.none() | FEW, FEW, FEW, FEW)),
        st.lists(st.builds(ChildStatus, st.just("r1/k"), st.just("running"), st.booleans()), max_size=1).map(tuple),
        st.sampled_from((None, "accepted", "quiescent")),
        st.none() | st.booleans(),
        st.lists(approvals, max_size=1).map(tuple),
        st.none() | st.dictionaries(st.sampled_from(("1", "2")), st.sampled_from(("released", "late"))),
        st.none() | st.booleans(),
    )


def _event(kind: type, ops: st.SearchStrategy[str]) -> st.SearchStrategy[Event]:
    own: dict[str, st.SearchStrategy[object]] = {
        "op": ops,
        "operation": st.none() | ops,
        "carries": st.dictionaries(ops, NONCES, max_size=2),
    }
    known = _FIELDS | own
    fields = {field.name: known[field.name] for field in attrs.fields(kind)}
    if kind is Applied:
        fields["nonce"] = NONCES
    if kind is Answered:
        fields["status"] = st.none() | _statuses(ops)
    if kind is Replied:
        fields["outcome"] = st.sampled_from((None, "passed", "failed"))
    if kind is Fetched:
        fields |= {"found": st.booleans(), "name": st.just("report")}
    return st.builds(kind, **fields)


@functools.cache
def _events(names: tuple[str, ...]) -> st.SearchStrategy[tuple[Event, ...]]:
    ops = st.sampled_from(names)
    return st.lists(st.one_of([_event(kind, ops) for kind in KINDS.values()]), max_size=60).map(tuple)


DECLARED = st.builds(
    Declared,
    st.sampled_from(("buffered", "refused")),  # type: ignore[arg-type]
    st.sampled_from((0, 1_000_000)),
    st.booleans(),
    st.booleans(),
    key_lifetime_ns=st.sampled_from((None, 5_000_000)),
    deaths_max=st.sampled_from((None, 1)),
)


def _names(written: Plan) -> tuple[str, ...]:
    """A few of its leaves, and somebody it does not know."""
    return (*(leaf.id for leaf in written.leaves()[:12]), "nobody")


_FEW_PLANS = st.sampled_from(PLANS)


def histories(of: st.SearchStrategy[Plan] = _FEW_PLANS) -> st.SearchStrategy[History]:
    """Histories of a few plans that are rich in what fits together, or of the plans given."""
    return of.flatmap(
        lambda written: st.builds(History, st.just(RUN), st.just(written), DECLARED, _events(_names(written)))
    )


def histories_of_anything() -> st.SearchStrategy[History]:
    """Histories of drawn plans."""
    return histories(plans())
