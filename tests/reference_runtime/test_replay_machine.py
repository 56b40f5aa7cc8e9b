"""Random workflows on a real store, with turns that get lost, holders that come back late, and servers that start again.

At the end the store's own history is replayed from nothing by the pure replayer: it must ask for the same commands in the same
order, and end as the task did.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any, Literal

import attrs
import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from reference_runtime import Store, runner, views
from reference_runtime.commands import Outcome, Raised, Returned
from reference_runtime.model import Grant, Json, Policy, Rejected
from reference_runtime.replay import Replay
from reference_runtime.turns import Turn
from reference_runtime.workflow import Context, Workflow
from tests.replay_rig import PROGRAMS, perform
from tests.runtime_rig import under

POLICY = Policy(backoff_ns_min=2, backoff_ns_max=2, deaths_max=1000)
STEPS_MAX = 40
HEALING_MAX = 400


@attrs.define
class World:
    """One store, one task, and whoever holds what of it."""

    path: str
    store: Store
    agent: Workflow
    warm: dict[str, runner.Warm] = attrs.field(factory=dict)
    stale: list[tuple[Turn, Json]] = attrs.field(factory=list)
    answers: int = 0
    execution: int = 0

    def restart(self) -> None:
        self.store.close()
        self.store = Store.open(self.path, policy=POLICY)

    def turn(self, fate: str) -> None:
        """Lease the turn there is, run it warm or cold, and have it taken, lost, or taken twice."""
        self.execution += 1
        for turn in self.store.claim_turns(f"w#{self.execution}", {"agent": "1"}, (), 8):
            following: Turn | None = turn
            while following is not None:
                following = self._run(following, fate)

    def _run(self, turn: Turn, fate: str) -> Turn | None:
        warm = self.warm.pop(turn.attempt, None)
        commands, told, is_warm = self.store.history(turn, warm.known if warm else ())
        if warm is None or not is_warm or fate == "cold":
            if warm is not None:
                warm.replay.close()
            commands, told, _ = self.store.history(turn)
            said = {"task": "t", "input": json.loads(turn.input), "segment": turn.segment, "commands": commands}
            warm = runner.begin(self.agent, said)
        report = runner.advance(warm, told)
        assert report["trouble"] == ""
        self.stale.append((turn, report))
        if fate == "lost":
            warm.replay.close()
            self.store.reclaim(turn.generation)
            return None
        rejected, following = self.store.take_turn(turn, "1", report["commands"], report["end"], f"w#{self.execution}")
        assert rejected is None
        self.warm[turn.attempt] = warm
        return following

    def late(self, which: int) -> None:
        """A holder of long ago speaks up again: nothing changes."""
        if self.stale:
            turn, report = self.stale[which % len(self.stale)]
            before = views.status(self.store, "t")
            rejected, _ = self.store.take_turn(turn, "1", report["commands"], report["end"], "late")
            assert isinstance(rejected, Rejected)
            assert views.status(self.store, "t") == before

    def work(self, parity: int, *, fails: bool) -> bool:
        """Carry out one operation; whether there was any."""
        for lease in self.store.claim("w", (), 1):
            ticket = self.store.dispatch(lease) if isinstance(lease, Grant) else lease
            assert not isinstance(ticket, Rejected)
            self.answers += 1
            number = str(2 * self.answers + parity)
            answer = None if fails else {"nonce": number}
            assert self.store.settle(under(ticket), "failed" if fails else "succeeded", answer, number) is None
            return True
        return False


def _live(world: World, data: st.DataObject) -> Json:
    """Let anything happen, then only good things until the task has ended; its status."""
    for _ in range(data.draw(st.integers(0, STEPS_MAX))):
        match data.draw(st.sampled_from(["turn", "turn", "cold", "lost", "work", "work", "fail", "late", "restart"])):
            case "work" | "fail" as how:
                world.work(data.draw(st.integers(0, 1)), fails=how == "fail")
            case "late":
                world.late(data.draw(st.integers(0, 9)))
            case "restart":
                world.restart()
            case fate:
                world.turn(fate)
    for _ in range(HEALING_MAX):
        world.turn("cold")
        if not world.work(0, fails=False) and views.status(world.store, "t")["state"] in ("done", "failed"):
            return views.status(world.store, "t")
    raise AssertionError(f"it never ended: {views.status(world.store, 't')}")


def _again(world: World, program: Any) -> tuple[list[tuple[Any, ...]], Replay]:
    """The store's outcomes, told from nothing and one by one; the commands that come of it."""
    rows = world.store._rows(
        "SELECT o.id, o.state, o.answer, o.reason FROM outcome_history h JOIN operation o ON o.attempt = h.attempt"
        " AND o.id = h.operation ORDER BY h.number"
    )
    replay = Replay(lambda: perform(Context("t"), program))
    for id_, state, answer, reason in rows:
        ended: Literal["failed", "succeeded"] = "failed" if state == "failed" else "succeeded"
        replay.deliver(Outcome(id_, ended, json.loads(answer) if answer else None, reason or ""))
    return [(one.branch, one.sequence, one.kind, one.id, one.digest) for one in replay.fresh], replay


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(program=PROGRAMS, data=st.data())
def test_any_workflow_survives_anything(program, data):
    """Whatever was lost, late or begun anew, the history left behind is one that the code itself gives."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "s.db")
        world = World(path, Store.open(path, policy=POLICY), Workflow("agent", "1", perform))
        world.store.submit("t", {"version": 1, "workflow": "agent", "input": program})
        status = _live(world, data)
        recorded = world.store._rows("SELECT branch, sequence, kind, id, digest FROM command_history ORDER BY number")
        commands, replay = _again(world, json.loads(json.dumps(program)))
        assert commands == recorded
        if isinstance(replay.end, Returned):
            assert (status["state"], status["result"]) == ("done", json.loads(json.dumps(replay.end.value)))
        else:
            assert isinstance(replay.end, Raised)
            assert (status["state"], status["error"]) == ("failed", replay.end.reason)
        world.late(data.draw(st.integers(0, 9)))
        world.store.close()


async def add_up(ctx: Context, taken: Any) -> list[str]:
    """Take `item`s two at a time, in a history cut after each pair, until `close` wins a race."""
    taken = list(taken or [])
    for _ in range(2):
        which, payload = await ctx.race(ctx.wait("item"), ctx.wait("close"))
        if which == 1:
            return taken
        taken.append(payload["nonce"])
    return ctx.continue_as_new(taken)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_stream_of_signals_through_cuts_and_crashes(data):
    """Every acknowledged signal is taken once and in order, however turns, cuts, losses and restarts fall between them."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "s.db")
        world = World(path, Store.open(path, policy=POLICY), Workflow("agent", "1", add_up))
        world.store.submit("t", {"version": 1, "workflow": "agent", "input": None})
        sent: list[str] = []
        for _ in range(data.draw(st.integers(1, 25))):
            match data.draw(
                st.sampled_from(["send", "send", "send", "turn", "cold", "lost", "late", "restart", "again"])
            ):
                case "send":
                    sent.append(str(len(sent)))
                    world.store.signal("t", sent[-1], "item", {"nonce": sent[-1]})
                case "again" if sent:
                    world.store.signal("t", sent[-1], "item", {"nonce": sent[-1]})
                case "late" | "again":
                    world.late(data.draw(st.integers(0, 9)))
                case "restart":
                    world.restart()
                case fate:
                    world.turn(fate)
        for _ in range(len(sent) + 2):
            world.turn("cold")
        world.store.signal("t", "close", "close", {"nonce": ""})
        world.turn("turn")
        status = views.status(world.store, "t")
        assert (status["state"], status["result"]) == ("done", sent)
        world.store.close()
