"""The audit trail: complete, append-only, and of no use to anything that decides."""

from __future__ import annotations

import ast
import random
import re
import tempfile
from pathlib import Path

import apsw
import hypothesis.strategies as st
import pytest
import trio
from hypothesis import given, settings

import reference_runtime
from reference_runtime import Policy, Refusal, Server, Store, views
from reference_runtime.model import Json
from tests.runtime_plans import artifact, check, child, claim, settle, wanting
from tests.runtime_rig import call, par, plan, under, wait

POLICY = Policy(backoff_ns_min=2, backoff_ns_max=2)
FOLDER = Path(reference_runtime.__file__).parent
#: Who may read the two projections: those who show them, and those who number their lines.
READERS = {"audit": {"audit", "views"}, "transition": {"events", "views", "rows"}}


@pytest.fixture
def store(tmp_path):
    return Store.open(str(tmp_path / "s.db"), policy=POLICY)


def trail(store: Store) -> list[tuple[str, str, str, str, str]]:
    rows = views.journal(store, "t")["audit"]
    return [(row["actor"], row["authority"], row["action"], row["target"], row["detail"]) for row in rows]


def test_who_did_what_under_which_authority(store):
    """Submits, commands, claims, reports and refusals are there in order, each once, with a time."""
    approve = {"op": "approve", "id": "ok", "of": "b"}
    store.submit("t", plan(call("a"), wait("w", "go"), approve, call("b")))
    store.submit("t", plan(call("a"), wait("w", "go"), approve, call("b")))
    (stale,) = claim(store)
    store.reclaim(stale.generation)
    (ticket,) = claim(store)
    settle(store, ticket)
    settle(store, ticket)
    store.settle(under(stale), "failed", None, "late")
    store.signal("t", "s1", "go", {"nonce": "n"})
    store.signal("t", "s1", "go", {"nonce": "n"})
    digest = views.status(store, "t")["approvals"][0]["digest"]
    store.decide("t", "ok", "approve", digest, "alice", "d1", "n")
    store.cancel("t", "c1")
    rows = trail(store)
    assert [row[:4] for row in rows] == [
        ("client", "task id t", "submit", "t"),
        ("w", "lease 1", "claim", "a"),
        ("w", "lease 2", "claim", "a"),
        ("w", "lease 2", "settle", "a"),
        ("w", "lease 1", "refuse", "a"),
        ("client", "signal s1", "signal", "go"),
        ("alice", "command d1", "decide", "ok"),
        ("client", "command c1", "cancel", "t"),
    ]
    assert [row["sequence"] for row in views.journal(store, "t")["audit"]] == list(range(1, 9))
    assert all(row["at_ns"] > 0 for row in views.journal(store, "t")["audit"])


def test_a_refused_decision_is_on_record(store):
    """The transaction it was asked in is undone; that somebody asked is not."""
    store.submit("t", plan({"op": "approve", "id": "ok", "of": "b"}, call("b")))

    async def main() -> None:
        said: Json = {"operation": "ok", "decision": "approve", "digest": "0", "actor": "mallory", "payload": {}}
        with pytest.raises(Refusal, match="no-authority"):
            await Server(store).decide("t", "d1", **said)

    trio.run(main)
    assert trail(store)[1:] == [("mallory", "command d1", "refuse", "ok", "no-authority")]


def test_the_file_refuses_to_change_it(store):
    """Neither an update nor a delete gets through; only the one function that forgets it all, and then it holds again."""
    store.submit("t", plan(call("a")))
    for sql in ("UPDATE audit SET actor = 'nobody'", "DELETE FROM audit"):
        with pytest.raises(apsw.ConstraintError, match="append-only"):
            store.db.execute(sql)
    assert store.forget_audit() == 1
    assert trail(store) == []
    store.audit("t", "x", "y", "signal", "z")
    with pytest.raises(apsw.ConstraintError, match="append-only"):
        store.db.execute("DELETE FROM audit")


@pytest.mark.parametrize(
    ("environ", "lines"), [({}, 1), ({"SIMKIT_FORGET": "logs"}, 1), ({"SIMKIT_FORGET": "audit"}, 0)]
)
def test_it_is_forgotten_on_order_only(store, environ, lines):
    """The engine's environment says so, or it stays."""
    store.submit("t", plan(call("a")))
    assert store.forget_when_told(environ) == (not lines)
    assert len(trail(store)) == lines


def _sql(module: Path) -> list[str]:
    tree = ast.parse(module.read_text(encoding="utf-8"))
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return [text for text in texts if not text.startswith("INSERT INTO transition")]


@pytest.mark.parametrize("table", sorted(READERS))
def test_nothing_that_decides_reads_it(table):
    """No statement of any other module takes rows out of the audit trail or the transition log."""
    reading = re.compile(rf"\b(?:FROM|JOIN|UPDATE)\s+{table}\b", re.IGNORECASE)
    guilty = {
        module.stem
        for module in sorted(FOLDER.glob("*.py"))
        if module.stem not in READERS[table] and any(reading.search(text) for text in _sql(module))
    }
    assert guilty == set()


STEPS = st.lists(
    st.tuples(
        st.integers(0, 5), st.sampled_from(["succeeded", "failed", "unknown", "busy", "silence", "signal", "restart"])
    ),
    max_size=20,
)


def _decisions(path: Path, steps: list[tuple[int, str]], *, forget: bool) -> list[Json]:
    """Everything the store decides along the way: what it gives out, and how the task and its child stand."""
    store = Store.open(str(path), policy=POLICY, rng=random.Random(1))
    branches = par(call("a", "registry"), wait("w", "go"), child("k", call("x", "mailer")), call("b"))
    store.submit("t", wanting(plan(artifact("r"), check("c", "r"), branches, call("z")), allowance={"calls": 9}))
    held, decided = claim(store, 9), list[Json]()
    for number, step in steps:
        if forget:
            store.forget_audit()
            store.db.execute("DELETE FROM transition")
        if step == "restart":
            store.close()
            store = Store.open(str(path), policy=POLICY, rng=random.Random(1))
        elif step == "signal":
            store.signal("t", str(number), "go", {"nonce": f"s{number}"})
        elif held:
            ticket = held.pop(number % len(held))
            if step == "silence":
                store.reclaim(ticket.generation)
            else:
                settle(store, ticket, step)  # type: ignore[arg-type]
        more = claim(store, 9)
        held += more
        decided.append(
            {"given": [repr(one) for one in more], **{one: views.status(store, one) for one in ("t", "t/k")}}
        )
    store.close()
    return decided


@settings(max_examples=15, deadline=None)
@given(STEPS)
def test_decisions_are_the_same_without_it(steps):
    """With the trail and the log deleted before every step, exactly the same is given out and shown."""
    with tempfile.TemporaryDirectory() as folder:
        kept, forgotten = (_decisions(Path(folder) / f"{name}.db", steps, forget=name) for name in (False, True))
        assert kept == forgotten
