"""Plans with the runtime's heavier operations in a line each, and the answers that their receivers would give."""

from __future__ import annotations

from reference_runtime import Store
from reference_runtime.contents import content, digest_of
from reference_runtime.model import Json, Rejected, Report, Ticket
from tests.runtime_rig import plan, under


def artifact(id_: str, name: str = "report", *, size: int = 100, parts: int = 2) -> Json:
    return {"op": "artifact", "id": id_, "name": name, "size": size, "parts": parts}


def check(id_: str, of: str, **more: object) -> Json:
    return {"op": "check", "id": id_, "of": of, **more}


def child(id_: str, *children: Json, **more: object) -> Json:
    return {"op": "child", "id": id_, "plan": plan(*children), **more}


def model(id_: str, tokens: int = 6, **more: object) -> Json:
    return {"op": "model", "id": id_, "prompt": "think", "tokens": tokens, **more}


def wanting(data: Json, **terms: object) -> Json:
    """A plan with an allowance, a deadline, …"""
    return {**data, **terms}


def claim(store: Store, limit: int = 1) -> list[Ticket]:
    """The tickets of what there is to claim, for a worker that knows of every lease it has."""
    leases = store.claim("w", [generation for generation, _ in store.leases()], limit)
    tickets = [lease if isinstance(lease, Ticket) else store.dispatch(lease) for lease in leases]
    assert all(isinstance(one, Ticket) for one in tickets)
    return tickets  # type: ignore[return-value]


def answer_to(ticket: Ticket, outcome: str = "passed", **more: object) -> Json:
    """What the receiver of a ticket says when all goes well."""
    nonce = {"nonce": f"n-{ticket.operation}"}
    if ticket.operation.endswith("~sweep"):
        return {"committed": False}
    if ticket.tool == "store":
        data = content(ticket.task, ticket.operation, ticket.params["size"])
        return {**nonce, "digest": digest_of(data), "size": len(data), "location": ticket.params["location"], **more}
    if ticket.tool == "checker":
        return {**nonce, **ticket.fields, "outcome": outcome, **more}
    return {**nonce, **more}


def settle(store: Store, ticket: Ticket, report: Report = "succeeded", **more: object) -> Rejected | None:
    """Report on a ticket; `more` goes into its answer (`outcome` is a checker's)."""
    answer = answer_to(ticket, **more) if report in ("succeeded", "found") else None  # type: ignore[arg-type]
    return store.settle(under(ticket), report, answer, "" if answer else report)


def work_off(store: Store, bound: int = 100) -> list[str]:
    """Carry out whatever can be, successfully; the operations, `task:operation`, in order."""
    done: list[str] = []
    for _ in range(bound):
        tickets = claim(store)
        if not tickets:
            return done
        done.append(f"{tickets[0].task}:{tickets[0].operation}")
        settle(store, tickets[0])
    raise AssertionError(f"still working after {bound} steps: {done[-5:]}")
