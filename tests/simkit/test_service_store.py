"""The store of artifacts: parts, commits, what is left of uploads, and what the kit fetches."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import attrs
import trio
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from simkit.services import Artifact, Fault, Reply, Request
from tests.service_rig import Counter, World, at

WHERE = "r/report/1"


def store(
    action: str, *, location: str = WHERE, part: int | None = None, digest: str | None = None, **params: Any
) -> Request:
    lookup = action in {"get", "list"}
    return Request(
        "store",
        "r",
        "a",
        params={"action": action, "location": location, **params},
        lookup=lookup,
        part=part,
        digest=digest,
    )


def put(part: int, data: bytes, parts: int = 2, *, location: str = WHERE) -> Request:
    return store("put", location=location, part=part, parts=parts, data=base64.b64encode(data).decode())


def commit(data: bytes, parts: int = 2, *, location: str = WHERE) -> Request:
    return store("commit", location=location, parts=parts, digest=hashlib.sha256(data).hexdigest())


def test_parts_become_visible_whole_by_a_commit() -> None:
    """Before it there are parts and nothing to get, after it the content; the commit's nonce is the artifact's."""
    counter = Counter()
    first = counter.settle(put(1, b"he"))
    assert (first.reply.body["part"], first.reply.nonce, first.effect) == (1, None, None)
    assert counter.ask(store("list")).body["parts"] == [1]
    assert counter.ask(store("get")).kind == "missing"
    assert counter.state.artifact(WHERE) == Artifact(b"he", committed=False)
    counter.ask(put(2, b"llo"))
    settled = counter.settle(commit(b"hello"))
    assert settled.effect
    assert settled.reply.body == {
        "nonce": settled.effect.nonce,
        "location": WHERE,
        "digest": hashlib.sha256(b"hello").hexdigest(),
        "size": 5,
    }
    got = counter.ask(store("get"))
    assert (base64.b64decode(got.body["data"]), got.nonce) == (b"hello", settled.effect.nonce)
    listed = counter.ask(store("list")).body
    assert (listed["parts"], listed["committed"], listed["nonce"]) == ([], True, settled.effect.nonce)
    assert counter.state.artifact(WHERE) == Artifact(b"hello", committed=True)
    assert counter.state.artifact("elsewhere") is None


def test_a_commit_is_keyed_by_its_location() -> None:
    """Again with the same digest it is the first answer, with another one a mismatch; neither is a new effect."""
    counter = Counter()
    for request in (put(1, b"he"), put(2, b"llo")):
        counter.ask(request)
    first, again, other = (counter.ask(commit(data)) for data in (b"hello", b"hello", b"other"))
    assert (again.kind, again.nonce) == ("saved", first.nonce)
    assert (other.kind, counter.state.effects) == ("mismatch", 1)


def test_a_commit_without_all_parts_or_of_other_content_is_refused() -> None:
    """The refusal names the missing parts, or the digest of what is there; both leave the parts where they are."""
    counter = Counter()
    counter.ask(put(2, b"llo", 3))
    assert counter.ask(commit(b"hello", 3)).body == {"error": "incomplete", "missing": [1, 3]}
    counter.ask(put(1, b"he"))
    refused = counter.ask(commit(b"HELLO"))
    assert (refused.status, refused.body["digest"]) == (400, hashlib.sha256(b"hello").hexdigest())
    assert counter.ask(commit(b"hello")).kind == "executed"


def test_a_part_put_again_replaces_itself() -> None:
    """A retried part makes no second one."""
    counter = Counter()
    for request in (put(1, b"he"), put(2, b"XX"), put(2, b"llo"), put(1, b"he")):
        counter.ask(request)
    assert counter.ask(commit(b"hello")).kind == "executed"


def test_a_part_that_was_under_way_lands_after_its_upload_was_given_up() -> None:
    """Held before it was applied, it lands after the abort, or beside what was committed meanwhile, and is on record."""

    async def main() -> tuple[list[tuple[Any, ...]], World]:
        world = World()
        reached, release = trio.Event(), trio.Event()

        async def hold(_call: int, request: Request, _nth: int, barrier: str) -> Fault | None:
            if (
                request.part == 2
                and request.params["data"] == base64.b64encode(b"late").decode()
                and barrier == "received"
            ):
                reached.set()
                await release.wait()
            return None

        async with trio.open_nursery() as nursery:
            nursery.start_soon(world.ask, put(2, b"late"), hold)
            await reached.wait()
            for request in (put(1, b"he"), store("abort"), put(1, b"x", 1), commit(b"x", 1)):
                assert (await world.ask(request)).status == 200  # type: ignore[union-attr]
            release.set()
        return [row for row in world.facts.rows if row[0] == "stored"], world

    rows, world = trio.run(main)
    assert [row[2] for row in rows] == ["staged", "removed", "staged", "committed", "staged"]
    assert world.outside.services.artifact(WHERE) == Artifact(b"x", committed=True)


def test_a_lost_reply_to_a_commit_leaves_it_committed() -> None:
    """The facts say committed, the caller heard nothing, and its next try gets the nonce."""

    async def main() -> tuple[list[Any], list[tuple[Any, ...]]]:
        world = World()
        got = [
            await world.ask(
                request, at("applied", Fault("drop")) if request.action == "commit" else at("replied", Fault("gone"))
            )
            for request in (
                put(1, b"x", 1),
                attrs.evolve(commit(b"x", 1), op="b"),
                attrs.evolve(commit(b"x", 1), op="c"),
            )
        ]
        return got, [row[:1] + row[2:3] for row in world.facts.rows if row[0] in {"stored", "applied"}]

    got, rows = trio.run(main)
    assert got[1] == "dropped"
    assert isinstance(got[2], Reply)
    assert got[2].kind == "saved"
    assert rows == [("stored", "staged"), ("applied", 1), ("stored", "committed")]


@given(st.binary(max_size=40), st.integers(1, 5))
def test_any_content_in_any_number_of_parts_comes_back_as_it_was(data: bytes, parts: int) -> None:
    """Cut into parts, put in reverse, committed: the content, byte for byte."""
    counter, size = Counter(), -(-len(data) // parts)
    for part in range(parts, 0, -1):
        counter.ask(put(part, data[(part - 1) * size : part * size], parts))
    assert counter.ask(commit(data, parts)).kind == "executed"
    assert counter.state.artifact(WHERE) == Artifact(data, committed=True)


class StoreMachine(RuleBasedStateMachine):
    """Any order of requests at two locations, against a model of what must lie there."""

    locations = st.sampled_from(["x", "y"])

    @initialize()
    def begin(self) -> None:
        self.counter = Counter()
        self.staged: dict[str, dict[int, bytes]] = {"x": {}, "y": {}}
        self.committed: dict[str, bytes] = {}

    @rule(location=locations, part=st.integers(1, 2), data=st.sampled_from([b"a", b"b"]))
    def put(self, location: str, part: int, data: bytes) -> None:
        assert self.counter.ask(put(part, data, location=location)).status == 200
        self.staged[location][part] = data

    @rule(location=locations, data=st.sampled_from([b"aa", b"ab", b"bb"]))
    def commit(self, location: str, data: bytes) -> None:
        kind = self.counter.ask(commit(data, location=location)).kind
        parts = self.staged[location]
        if location in self.committed:
            assert kind == ("saved" if self.committed[location] == data else "mismatch")
        elif len(parts) == 2 and parts[1] + parts[2] == data:
            assert kind == "executed"
            self.committed[location], self.staged[location] = data, {}
        else:
            assert kind == "rejected"

    @rule(location=locations)
    def abort(self, location: str) -> None:
        removed = self.counter.settle(store("abort", location=location)).placed is not None
        assert removed is bool(self.staged[location])
        self.staged[location] = {}

    @invariant()
    def holds_what_it_must(self) -> None:
        for location, parts in self.staged.items():
            listed = self.counter.ask(store("list", location=location)).body
            assert listed["parts"] == sorted(parts)
            found = self.counter.state.artifact(location)
            if location in self.committed:
                assert found == Artifact(self.committed[location], committed=True)
            else:
                assert found == (
                    Artifact(b"".join(parts[n] for n in sorted(parts)), committed=False) if parts else None
                )
        assert self.counter.state.effects == len(self.committed)


TestStoreMachine = StoreMachine.TestCase
