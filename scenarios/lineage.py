"""Lineage: which answer of which operation was used where, as a graph.

Every answer and every signal carries a fresh nonce, and plans say which later call hands it on. That makes the origin of
each effect checkable without trusting anybody's word:

    ("answer", op, nonce) ──▶ ("call", n)                 request n carried it
    ("call", n)           ──▶ ("answer", op, nonce)       request n was answered with it
    ("answer", op, nonce) ──▶ ("status", i)               the status answered at event i showed it as accepted

An operation has *forked* when two of its answers were used. `uses` lists every use in order of observation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias

import attrs

from scenarios.history import Applied, Replied
from scenarios.index import Facts
from scenarios.joining import of_kinds
from scenarios.remembered import latest

if TYPE_CHECKING:
    import networkx as nx

Node: TypeAlias = tuple[str, str, str] | tuple[str, int]


@attrs.frozen
class Use:
    """One use of one operation's answer: handed on by a request, or shown as accepted by a status."""

    op: str
    nonce: str
    at: int
    by: Literal["request", "status"]
    user: str = ""  # the operation that handed it on

    @property
    def where(self) -> str:
        return f"handed on by {self.user!r}" if self.by == "request" else "shown as accepted"


def uses(facts: Facts, op: str | None = None) -> tuple[Use, ...]:
    """Every use of an answer (of `op`, or of any operation of the plan), in order of observation."""
    return _uses(facts).get(op, ())


@latest
def _uses(facts: Facts) -> Mapping[str | None, tuple[Use, ...]]:
    """The uses of each operation's answers, and under None those of all."""
    known = facts.ancestors
    handed = [
        Use(name, nonce, request.at, "request", request.op)
        for request in facts.sent
        if not request.event.lookup
        for name, nonce in request.carries.items()
    ]
    shown = [
        Use(name, nonce, seen.answered, "status")
        for seen in facts.statuses
        for name, nonce in seen.accepted().items()
        if nonce is not None
    ]
    ordered = sorted((use for use in (*handed, *shown) if use.op in known), key=lambda use: use.at)
    found: dict[str | None, list[Use]] = {None: ordered}
    for use in ordered:
        found.setdefault(use.op, []).append(use)
    return {op: tuple(used) for op, used in found.items()}


def fork(facts: Facts, op: str) -> tuple[Use, Use] | None:
    """The first use of one answer of `op` and the first use of another one; None while only one was ever used.

    What may be taken back may be answered anew, and does not fork by it.
    """
    if facts.is_revocable(op):
        return None
    found = uses(facts, op)
    other = next((use for use in found if use.nonce != found[0].nonce), None)
    return (found[0], other) if other else None


def given(facts: Facts) -> dict[str, dict[str, int]]:
    """Call, artifact or wait → every answer that anybody gave of it, with the first event at which it may have been known.

    What a service made counts as given though its reply was lost: it may have been asked for it again.
    """
    found: dict[str, dict[str, int]] = {}
    by_call = {request.event.call: request.op for request in facts.sent}
    for at, event in of_kinds(facts.history, Applied, Replied):
        if event.call in by_call and event.nonce is not None:
            found.setdefault(by_call[event.call], {}).setdefault(event.nonce, at)
    for notice in facts.notices():
        if notice.about is not None and notice.nonce is not None:
            found.setdefault(notice.about, {}).setdefault(notice.nonce, notice.asked_at)
    for wait in facts.history.plan.waits():
        sent = {one.nonce: one.asked_at for one in facts.signals if one.name == wait.signal and one.nonce is not None}
        found.setdefault(wait.id, {}).update(sent)
    return found


def lineage(facts: Facts) -> nx.DiGraph[Node]:
    """The graph described at the top of this module; every node and edge of use has its event index as `at`."""
    import networkx as nx

    graph: nx.DiGraph[Node] = nx.DiGraph()
    for request in facts.sent:
        node: Node = ("call", request.event.call)
        graph.add_node(node, at=request.at, op=request.op)
        for name, nonce in request.carries.items():
            graph.add_edge(("answer", name, nonce), node, at=request.at)
        if request.reply is not None and request.reply.nonce is not None:
            graph.add_edge(node, ("answer", request.op, request.reply.nonce), at=request.replied_at)
    for use in uses(facts):
        if use.by == "status":
            graph.add_edge(("answer", use.op, use.nonce), ("status", use.at), at=use.at)
    return graph


def provenance(graph: nx.DiGraph[Node], op: str, nonce: str) -> tuple[Node, ...]:
    """Everything the answer `nonce` of `op` came from, earliest first; empty when nobody has seen it."""
    import networkx as nx

    node: Node = ("answer", op, nonce)
    if node not in graph:
        return ()
    order = {found: place for place, found in enumerate(graph.nodes)}
    return tuple(sorted(nx.ancestors(graph, node), key=order.__getitem__))
