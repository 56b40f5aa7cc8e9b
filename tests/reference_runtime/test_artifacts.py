"""Artifacts: staged, verified, accepted as versions, never changed, never orphaned; and how a worker publishes one."""

from __future__ import annotations

import base64
import tempfile
from pathlib import Path

import apsw
import attrs
import hypothesis.strategies as st
import pytest
import trio
from hypothesis import given, settings

from reference_runtime import Policy, Request, Store, views
from reference_runtime.contents import content, cut, digest_of
from reference_runtime.model import Json, Rejected, Ticket
from reference_runtime.performing import Performer, leaf_of
from reference_runtime.tools import Rejected as Refused
from reference_runtime.tools import Unknown, Unsent
from tests.runtime_plans import answer_to, artifact, claim, settle, work_off
from tests.runtime_rig import call, par, plan, states, under

POLICY = Policy(backoff_ns_min=2, backoff_ns_max=2, deaths_max=1000, landing_ns=0)


@pytest.fixture
def store(tmp_path):
    return Store.open(str(tmp_path / "s.db"), policy=POLICY)


def listed(store: Store, task: str = "t") -> list[tuple[str, int | None, str, str]]:
    """Name, version, operation and state of a task's artifacts."""
    rows = store.artifacts(task)["artifacts"]
    return [(row["name"], row["version"], row["operation"], row["state"]) for row in rows]


# -- contents


def test_the_content_is_the_operations_own():
    """The same for every invocation, another one for every operation, and of the size that was asked for."""
    assert content("t", "a", 200) == content("t", "a", 200)
    assert content("t", "a", 200) != content("t", "b", 200)
    assert [len(content("t", "a", size)) for size in (0, 1, 63, 64, 65)] == [0, 1, 63, 64, 65]


@given(st.binary(max_size=50), st.integers(1, 60))
def test_parts_are_the_whole(data, parts):
    """Cutting loses nothing and gives as many parts as were asked for, also when there are fewer bytes."""
    assert b"".join(cut(data, parts)) == data
    assert len(cut(data, parts)) == parts


# -- acceptance


def test_a_partial_upload_is_listed_as_such(store):
    """Content is known before its first byte leaves, and accepted only with the operation."""
    store.submit("t", plan(artifact("a")))
    assert listed(store) == []
    (ticket,) = claim(store)
    assert listed(store) == [("report", None, "a", "partial")]
    settle(store, ticket)
    assert listed(store) == [("report", 1, "a", "accepted")]
    data = content("t", "a", 100)
    (entry,) = store.artifacts("t")["artifacts"]
    assert (entry["digest"], entry["size"], entry["location"]) == (digest_of(data), 100, ticket.params["location"])


def test_what_the_store_has_must_be_what_was_meant(store):
    """A commit of other bytes is no artifact, however well it is reported."""
    store.submit("t", plan(artifact("a")))
    (ticket,) = claim(store)
    settle(store, ticket, digest=digest_of(b"else"))
    assert states(views.status(store, "t")) == {"a": "failed"}
    assert views.status(store, "t")["reason"] is None
    assert work_off(store) == ["t:a~sweep"]
    assert (listed(store), views.status(store, "t")["reason"].partition(":")[0]) == ([], "digest-mismatch")


def test_a_replacement_is_a_new_version(store):
    """What was accepted before stays what it was, and is called superseded."""
    store.submit("t", plan(artifact("a"), artifact("b", size=7), artifact("c", "other")))
    settle(store, claim(store)[0])
    first = store.artifacts("t")["artifacts"][0]
    work_off(store)
    assert listed(store) == [
        ("other", 1, "c", "accepted"),
        ("report", 1, "a", "superseded"),
        ("report", 2, "b", "accepted"),
    ]
    kept = store.artifacts("t")["artifacts"][1]
    assert {**kept, "state": "accepted"} == first


def test_an_accepted_entry_cannot_be_changed(store):
    """The file itself refuses to change or to delete it."""
    store.submit("t", plan(artifact("a")))
    work_off(store)
    for sql in ("UPDATE artifact SET digest = 'x'", "DELETE FROM artifact"):
        with pytest.raises(apsw.ConstraintError, match="stays"):
            store.db.execute(sql)


def test_a_late_word_registers_nothing_twice(store):
    """A stale report leaves the entries alone; a repeat of the accepted one too."""
    store.submit("t", plan(artifact("a")))
    (stale,) = claim(store)
    store.reclaim(stale.generation)
    (ticket,) = claim(store)
    assert ticket.params == stale.params
    settle(store, ticket)
    assert isinstance(store.settle(under(stale), "succeeded", answer_to(stale), ""), Rejected)
    assert settle(store, ticket) is None
    assert listed(store) == [("report", 1, "a", "accepted")]


def test_artifacts_of_a_failed_task_are_kept(store):
    """What was accepted before the failure is still there."""
    store.submit("t", plan(artifact("a"), call("b")))
    settle(store, claim(store)[0])
    settle(store, claim(store)[0], "failed")
    assert (views.status(store, "t")["state"], listed(store)) == ("failed", [("report", 1, "a", "accepted")])


# -- orphans


def test_an_orphan_is_swept_before_the_run_is_over(store):
    """Content that its operation failed to commit is removed, by an operation like any other, over a restart too."""
    store.submit("t", plan(artifact("a")))
    settle(store, claim(store)[0], "failed")
    assert (views.status(store, "t")["state"], views.status(store, "t")["phase"]) == ("running", "checking")
    path = store.db.filename
    store.close()
    store = Store.open(path, policy=POLICY)
    (sweep,) = claim(store)
    assert (sweep.operation, sweep.params["location"]) == ("a~sweep", "t.1:a")
    settle(store, sweep)
    status = views.status(store, "t")
    assert (status["state"], states(status), listed(store)) == ("failed", {"a": "failed"}, [])


def test_a_sweep_that_finds_a_commit_registers_it(store):
    """An unresolved upload that was committed after all is an artifact, and its operation is reconciled."""
    store = Store.open(store.db.filename + "2", policy=attrs.evolve(POLICY, tries_max=1))
    store.submit("t", plan(artifact("a")))
    (ticket,) = claim(store)
    settle(store, ticket, "unknown")
    assert states(views.status(store, "t")) == {"a": "unresolved"}
    (sweep,) = claim(store)
    data = content("t", "a", 100)
    store.settle(under(sweep), "succeeded", {"committed": True, "digest": digest_of(data), "nonce": "late"}, "")
    assert listed(store) == [("report", 1, "a", "accepted")]
    status = views.status(store, "t")
    assert (status["state"], status["result"]) == ("done", {"a": "late"})


def test_what_waited_for_an_upload_goes_on_when_a_sweep_finds_it(store):
    """It is accepted, so what follows is opened in the same moment, and the call that was lost is confirmed."""
    once = {**artifact("a"), "tries": 1}
    store.submit("t", {**plan(once, call("b", carries=("a",))), "allowance": {"calls": 2}})
    (upload,) = claim(store)
    settle(store, upload, "unknown")
    (sweep,) = claim(store)
    found = {"committed": True, "digest": answer_to(upload)["digest"], "nonce": "late"}
    store.settle(under(sweep), "succeeded", found, "")
    assert states(views.status(store, "t")) == {"a": "reconciled", "b": "planned"}
    (following,) = claim(store)
    assert (following.operation, following.carries) == ("b", {"a": "late"})
    settle(store, following)
    assert views.status(store, "t")["state"] == "done"
    assert views.status(store, "t")["usage"]["calls"] == {"allowance": 2, "consumed": 2, "reserved": 0, "unknown": 0}


def test_a_sweep_that_finds_something_else_abandons_it(store):
    """Content that was committed and is not what was meant is not the runtime's to remove; it is listed as what it is."""
    store.submit("t", plan(artifact("a")))
    settle(store, claim(store)[0], "failed")
    (sweep,) = claim(store)
    store.settle(under(sweep), "succeeded", {"committed": True, "digest": "other", "nonce": "n"}, "")
    assert views.status(store, "t")["state"] == "failed"
    assert listed(store) == [("report", None, "a", "abandoned")]


def test_a_sweep_that_cannot_be_made_does_not_change_the_end(store):
    """It gives up after a while; the run ends as it would have, and the content is listed as abandoned."""
    store.submit("t", plan(artifact("a")))
    settle(store, claim(store)[0], "failed")
    for _ in range(50):
        for ticket in claim(store):
            settle(store, ticket, "unknown")
    assert views.status(store, "t")["state"] == "failed"
    assert listed(store) == [("report", None, "a", "abandoned")]


def test_a_sweep_that_is_refused_is_an_end(store):
    """A store that does not let anybody clear up is asked once; what lies there stays, for all to see."""
    store.submit("t", plan(artifact("a")))
    settle(store, claim(store)[0], "failed")
    settle(store, claim(store)[0], "failed")
    assert views.status(store, "t")["state"] == "failed"
    assert listed(store) == [("report", None, "a", "abandoned")]


def test_what_may_be_on_its_way_is_waited_for(tmp_path):
    """An upload of which something was lost is swept only when it must have landed; one that is known, at once."""
    policy = attrs.evolve(POLICY, tries_max=1, landing_ns=3600 * 10**9)
    store = Store.open(str(tmp_path / "late.db"), policy=policy)
    store.submit("t", plan(par(artifact("a"), artifact("b"))))
    a, b = sorted(claim(store, 2), key=lambda ticket: ticket.operation)
    settle(store, a, "unknown")
    settle(store, b, "failed")
    assert [sweep.operation for sweep in claim(store, 9)] == ["b~sweep"]
    due_ns = store._value("SELECT due_ns FROM operation WHERE id = 'a~sweep'")
    ended_ns = store._value("SELECT ended_ns FROM invocation WHERE operation = 'a'")
    assert due_ns - ended_ns == policy.landing_ns


def test_what_is_owned_is_not_swept(store):
    """As long as an operation may still be accepted its content is its own."""
    store.submit("t", plan(par(artifact("a"), call("b"))))
    a, b = sorted(claim(store, 2), key=lambda ticket: ticket.operation)
    settle(store, b, "failed")
    assert store.orphans("t.1") == []
    assert claim(store) == []
    settle(store, a)
    assert listed(store) == [("report", 1, "a", "accepted")]


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["succeeded", "failed", "unknown", "silence"])), max_size=20)
)
def test_nothing_accepted_is_ever_lost_or_changed(steps):
    """In any order of reports and silences: versions are dense, entries stay, and every end leaves no staged content."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store.open(str(Path(folder) / "s.db"), policy=POLICY)
        store.submit("t", plan(par(*(artifact(f"a{n}", size=n) for n in range(3)), call("b"))))
        seen: list[Json] = []
        held = claim(store, 4)
        for number, step in [*steps, *[(0, "succeeded")] * 12]:
            held += claim(store, 4)
            if not held:
                break
            ticket = held.pop(number % len(held))
            if step == "silence":
                store.reclaim(ticket.generation)
            else:
                is_refused_sweep = ticket.operation.endswith("~sweep") and step == "failed"
                settle(store, ticket, "unknown" if is_refused_sweep else step)  # type: ignore[arg-type]
            now = [{**row, "state": ""} for row in store.artifacts("t")["artifacts"] if row["state"] != "partial"]
            assert all(row in now for row in seen)
            assert [row["version"] for row in now] == list(range(1, len(now) + 1))
            seen = now
        assert views.status(store, "t")["state"] in ("done", "failed")
        assert [row for row in store.artifacts("t")["artifacts"] if row["state"] == "partial"] == []
        store.close()


# -- publishing


@attrs.define
class FakeStore:
    """A store of artifacts: staged parts and committed contents; `script` raises on the nth request."""

    script: dict[int, Exception] = attrs.field(factory=dict)
    staged: dict[int, bytes] = attrs.field(factory=dict)
    committed: bytes | None = None
    asked: list[str] = attrs.field(factory=list)
    keys: set[str | None] = attrs.field(factory=set)

    def _note(self, request: Request) -> Json:
        params = request.params
        self.asked.append(f"{params['action']}{request.fields.get('part', '')}")
        self.keys.add(request.key)
        if error := self.script.get(len(self.asked)):
            raise error
        return params

    async def call(self, request: Request) -> Json:
        params = self._note(request)
        if params["action"] == "put":
            self.staged[request.fields["part"]] = data = base64.b64decode(params["data"])
            return {"part": request.fields["part"], "digest": digest_of(data)}
        if params["action"] == "abort":
            self.staged.clear()
            return {"location": params["location"]}
        whole = b"".join(self.staged[n] for n in sorted(self.staged)) if self.committed is None else self.committed
        if digest_of(whole) != request.fields["digest"]:
            raise Refused("400: digest")
        self.committed, self.staged = whole, {}
        return {"nonce": "n", "digest": digest_of(whole), "size": len(whole), "location": params["location"]}

    async def lookup(self, request: Request) -> Json | None:
        params = self._note(request)
        told = {"location": params["location"], "parts": sorted(self.staged), "committed": self.committed is not None}
        return {**told, "nonce": "n", "digest": digest_of(self.committed or b"")}


def publish(outside: FakeStore, *, is_repeat: bool = False, **params: object) -> Json:
    asked = {"location": "t.1:a", "size": 100, "parts": 3, **params}
    request = Request("store", "t", "a", "t.1:a", asked if "size" in asked else params, {})
    return trio.run(lambda: Performer(outside).perform(request, is_repeat=is_repeat))


def test_parts_then_a_commit():
    """One request for each part and one that names the digest of the whole; none of them carries a key."""
    outside = FakeStore()
    answer = publish(outside)
    assert outside.asked == ["put1", "put2", "put3", "commit"]
    assert (outside.committed, answer["digest"]) == (content("t", "a", 100), digest_of(content("t", "a", 100)))
    assert outside.keys == {None}


def test_what_was_put_is_not_put_again():
    """A later invocation asks first, and goes on where the earlier one was lost."""
    outside = FakeStore({3: Unknown("reset")})
    with pytest.raises(Unknown):
        publish(outside)
    outside.script.clear()
    outside.asked.clear()
    publish(outside, is_repeat=True)
    assert outside.asked == ["list", "put3", "commit"]
    outside.asked.clear()
    assert publish(outside, is_repeat=True)["nonce"] == "n"
    assert outside.asked == ["list"]


@pytest.mark.parametrize(("nth", "error"), [(1, Unsent), (2, Unknown), (4, Unknown)])
def test_unsent_means_that_nothing_left(nth, error):
    """When a later request cannot be sent, something of the operation has left already: the outcome is unknown."""
    with pytest.raises(error):
        publish(FakeStore({nth: Unsent("refused")}))


def test_a_part_that_arrived_otherwise_is_not_committed():
    """The digest of every part is compared before the commit."""

    class Garbling(FakeStore):
        async def call(self, request: Request) -> Json:
            return {**await FakeStore.call(self, request), "digest": "00"}

    outside = Garbling()
    with pytest.raises(Unknown, match="part 1"):
        publish(outside)
    assert outside.asked == ["put1"]


def sweep(outside: FakeStore) -> Json:
    request = Request("store", "t", "a~sweep", None, {"location": "t.1:a"}, {})
    return trio.run(lambda: Performer(outside).perform(request, is_repeat=False))


def test_a_sweep_removes_what_was_staged_and_keeps_what_was_committed():
    """It asks before it removes; content that was committed is told with its digest."""
    outside = FakeStore(staged={1: b"x"})
    assert sweep(outside) == {"committed": False}
    assert (outside.asked, outside.staged) == (["list", "abort"], {})
    outside = FakeStore(committed=b"abc")
    assert sweep(outside) == {"committed": True, "digest": digest_of(b"abc"), "nonce": "n"}
    assert outside.asked == ["list"]


@pytest.mark.parametrize(
    ("tool", "operation", "params", "leaf"),
    [
        ("store", "a", {"parts": 1}, "a"),
        ("store", "a~sweep", {}, "a"),
        ("store", "2~a#1", {"parts": 1}, "2~a#1"),
        ("store", "2~a#1~sweep", {}, "2~a#1"),
        ("checker", "c~3", {}, "c"),
        ("checker", "2~c#1", {}, "2~c#1"),
        ("checker", "2~c#1~3", {}, "2~c#1"),
        ("checker", "2~5", {}, "2~5"),
        ("checker", "5~~2", {}, "5"),
        ("checker", "2~5~2", {}, "2~5"),
        ("store", "2~~sweep", {}, "2"),
        ("store", "2~2~sweep", {}, "2~2"),
        ("registry", "2~5", {}, "2~5"),
        ("mailer", "2~all1.0.mailer#1", {}, "2~all1.0.mailer#1"),
    ],
)
def test_receivers_know_operations_by_their_own_ids(tool, operation, params, leaf):
    """Content is of the operation that publishes it, in whatever segment, and a sweep or a new check is about that one."""
    ticket = Ticket("t", "t.1", operation, 1, 1, "call", tool, None, params, {}, ())
    assert leaf_of(ticket) == leaf
