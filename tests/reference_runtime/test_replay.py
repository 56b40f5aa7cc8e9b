"""The replayer: the same outcomes give the same commands, whatever the batches and processes; other code is noticed."""

from __future__ import annotations

import asyncio
import functools
import os
import random
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
import pytest
import trio
from hypothesis import given, settings

from reference_runtime import replay as replaying
from reference_runtime.commands import Command, Divergence, Misuse, Outcome, Returned, Stopped
from reference_runtime.model import digest
from reference_runtime.replay import Replay
from reference_runtime.workflow import OperationFailed
from tests.replay_rig import CTX, PROGRAMS, Log, again, begin, ids, live, ok, perform


@settings(max_examples=400, deadline=None)
@given(program=PROGRAMS, data=st.data())
def test_what_a_workflow_does_depends_on_its_outcomes_only(program, data):
    """A run with turns of any size and deaths anywhere asks for what a run from nothing asks for, and ends the same way."""
    log, lived = live(program, lambda n: data.draw(st.integers(0, n - 1)))
    cold = log.start()
    for outcome in log.outcomes:
        cold.deliver(outcome)
    assert cold.check() is None
    if lived.end is not None:
        assert (cold.fresh, cold.end) == ([], lived.end)
    lived.close()
    cold.close()


@settings(max_examples=150, deadline=None)
@given(program=PROGRAMS, seed=st.integers(0, 2**32))
def test_batches_do_not_matter(program, seed):
    """Fifty other ways to cut the outcomes into batches ask for the same commands in the same order."""
    chance = random.Random(seed)
    log, lived = live(program, chance.randrange)
    lived.close()
    first = again(log, random.Random(0))
    assert first[: len(log.commands)] == log.commands
    for turn in range(1, 50):
        assert again(log, random.Random(turn)) == first


@settings(max_examples=200, deadline=None)
@given(program=PROGRAMS, other=PROGRAMS, seed=st.integers(0, 2**32))
def test_other_code_diverges_or_repeats_every_command(program, other, seed):
    """Whatever the new code is, it is found out unless it asks again for all that history says was asked for."""
    log, lived = live(program, random.Random(seed).randrange)
    lived.close()
    replay = Replay(lambda: perform(CTX, other), log.commands)
    issued = []
    for outcome in log.outcomes:
        replay.deliver(outcome)
    trouble = replay.check()
    issued = [one for one in log.commands if one not in replay._expected.values()]
    lost = [one for one in log.commands if one not in issued and one.kind != "nondet"]
    behind = any(one.kind == "nondet" for one in replay.fresh) and replay.end is None
    assert trouble is not None or behind or not lost
    replay.close()


_SHOW = """
import random
from tests.replay_rig import again, live
program = [("gather", [[("op", "ledger"), ("race", [[("op", "reader")], [("op", "mailer")], [("draw", "uuid")]])],
    [("race", [[("op", "ledger")], [("op", "ledger")]]), ("op", "mailer")]]), ("op", "reader")]
for seed in range(10):
    log, lived = live(program, random.Random(seed).randrange)
    print([str(one) for one in again(log, random.Random(seed))], lived.end)
    lived.close()
"""


@pytest.mark.slow
def test_hash_seeds_do_not_matter():
    """Races whose losers are stopped, in processes of five hash seeds: the same commands to the last digit."""
    said = set()
    for seed in range(5):
        env = {**os.environ, "PYTHONHASHSEED": str(seed)}
        said.add(subprocess.run([sys.executable, "-c", _SHOW], env=env, check=True, capture_output=True).stdout)
    assert len(said) == 1


def test_the_order_of_acceptance_wakes():
    """Two operations that ended between two turns wake the function in the order in which they were accepted."""

    async def agent():
        order: list[str] = []

        async def one(name: str) -> None:
            await CTX.call("ledger", id=name)
            order.append(name)
            await CTX.call("ledger", id=f"after-{name}")

        await CTX.gather(one("a"), one("b"))

    replay = begin(agent)
    replay.recorded()
    for id_ in "ba":
        replay.deliver(ok(id_))
    assert ids(replay) == ["after-b", "after-a"]
    replay.close()


def _drawing(*, draws: int) -> Callable[[], Any]:
    async def agent():
        for _ in range(draws):
            await CTX.random()
        first = await CTX.call("ledger", {"amount": 1})
        second = await CTX.call("ledger", {"amount": 2})
        return [first["nonce"], second["nonce"]]

    return agent


@pytest.mark.parametrize(("before", "after"), [(0, 1), (1, 2), (2, 0)])
def test_a_draw_more_or_less_shifts_nothing(before, after):
    """Code with another number of draws keeps the ids of all later operations, and goes on with their outcomes."""
    old = begin(_drawing(draws=before))
    outcomes, commands = [], []
    while old.end is None:
        commands += old.fresh
        outcomes += [ok(one.id, "0.5") for one in old.fresh]
        fresh = old.fresh
        old.recorded()
        for one in fresh:
            old.deliver(ok(one.id, "0.5"))
    new = begin(_drawing(draws=after), commands)
    for outcome in outcomes:
        new.deliver(outcome)
    while new.end is None:
        assert new.check() is None
        drawn = new.fresh
        assert {one.kind for one in drawn} == {"nondet"}
        new.recorded()
        for one in drawn:
            new.deliver(ok(one.id, "0.25"))
    assert new.check() is None
    assert new.end == old.end


def _two(first: str, second: str, amount: int = 1) -> Callable[[], Any]:
    async def agent():
        await CTX.call("ledger", {"amount": amount}, id=first)
        await CTX.wait(second, id=second)

    return agent


async def _only_a() -> None:
    await CTX.call("ledger", {"amount": 1}, id="a")


async def _longer() -> None:
    await _two("a", "b")()
    await CTX.sleep(1, id="c")


@pytest.mark.parametrize(
    ("other", "expected", "got"),
    [
        (_two("x", "b"), "call 'a'", "call 'x'"),
        (_two("a", "b", amount=2), "call 'a'", "call 'a'"),
        (_two("a", "x"), "wait 'b'", "wait 'x'"),
        (_only_a, "wait 'b'", "no command"),
    ],
)
def test_a_divergence_shows_both_commands(other, expected, got):
    """A command of another name, with other arguments, or none at all, is told beside the one in history."""
    old = begin(_two("a", "b"))
    old.deliver(ok("a"))
    new = begin(other, old.fresh)
    new.deliver(ok("a"))
    trouble = new.check()
    assert isinstance(trouble, Divergence)
    assert expected in str(trouble.expected)
    assert got in str(trouble.got or "no command")
    assert str(trouble) == (
        f"diverged: at main:{trouble.sequence} history has {trouble.expected}, the code has {trouble.got or 'no command'}"
    )
    for one in (old, new):
        one.close()


def test_a_divergence_shows_arguments_where_they_are_at_hand():
    """A history told by digests alone leaves the code's side, and what is long is cut."""

    def sleeper(ns: int, *more: str) -> Callable[[], Any]:
        async def agent():
            await CTX.operation({"op": "sleep", "id": "s", "ns": ns, "more": list(more)})

        return agent

    (known,) = begin(sleeper(1)).fresh
    told = Command(known.branch, known.sequence, known.kind, known.id, known.digest)
    both = str(begin(sleeper(2), [known]).check())
    assert f"history has main:1 sleep 's' {known.digest[:12]} {{\"ns\":1}}, the code has main:1 sleep 's' " in both
    assert both.endswith(' {"ns":2}')
    assert f"history has main:1 sleep 's' {known.digest[:12]}, the code" in str(begin(sleeper(2), [told]).check())
    long = str(begin(sleeper(2, "x" * 1000), [told]).check())
    assert long.endswith("x…")
    assert len(long) < 500


def test_code_that_goes_on_where_history_ends_is_compatible():
    """What is added after everything that was recorded is new work, not a divergence."""
    old = begin(_two("a", "b"))
    old.deliver(ok("a"))
    new = begin(_longer, old.fresh)
    for id_ in "ab":
        new.deliver(ok(id_))
    assert new.check() is None
    assert ids(new) == ["c"]
    for one in (old, new):
        one.close()


@pytest.mark.parametrize(
    ("foreign", "named"),
    [
        (trio.lowlevel.checkpoint, "awaits trio._core._run.checkpoint"),
        (functools.partial(asyncio.sleep, 0), "awaits asyncio.tasks.sleep"),
    ],
)
def test_a_foreign_await_is_refused_by_name(foreign, named):
    """What is awaited without the context is named, the function's own blocks are left in order, and nothing is recorded."""
    left = []

    async def agent():
        try:
            await foreign()
        finally:
            left.append("left")
        await CTX.call("ledger")

    async def hosted():
        return begin(agent)

    replay = trio.run(hosted)
    assert isinstance(replay.check(), Misuse)
    line = agent.__code__.co_firstlineno + 2
    assert str(replay.trouble) == (
        f"refused: a workflow may await operations of its context only; {__file__}:{line} {named}"
    )
    assert (left, replay.fresh, replay.end) == (["left"], [], None)
    replay.close()


def test_an_id_is_used_once():
    """Asking twice under one id is refused, with the line: the second could not be told from the first."""

    async def agent():
        await CTX.gather(
            CTX.call("ledger", id="a"),
            CTX.call("reader", id="a"),
        )

    replay = begin(agent)
    assert str(replay.check()) == (
        "refused: operation 'a' is asked for twice; each needs an id of its own"
        f" (test_replay.py:{agent.__code__.co_firstlineno + 3})"
    )
    replay.close()


@pytest.mark.parametrize(
    ("id_", "fault"),
    [
        ("a~sweep", "'a~sweep' has a ~ in it; that is kept"),
        ("2~a", "'2~a' has a ~ in it"),
        ("pay:eur", "'pay:eur' has a : in it; that is kept for requests"),
        ("", "'' is empty"),
        ("a\n", "has the character U+000A"),
        ("x" * 257, "has 257 characters; at most 256"),
    ],
)
@pytest.mark.parametrize("prefix", ["", "2~"])
@pytest.mark.parametrize("is_given", [True, False])
def test_an_id_is_one(id_, fault, prefix, is_given):
    """As in a plan, whether it is given or made of a name; one that history has already is let be."""

    def ask():
        return CTX.call("ledger", id=id_) if is_given else CTX.wait(id_)

    async def agent():
        await CTX.gather(CTX.wait("go"), ask())

    replay = begin(agent, prefix=prefix)
    assert fault in str(replay.check())
    assert ("name" in str(replay.check())) is not is_given
    made = prefix + (id_ if is_given else f"all1.1.{id_}#1")
    spec = {**ask().leaf, "id": made}
    known = [replay.fresh[0], Command("all1.1", 1, spec["op"], made, digest(spec))]
    later = begin(agent, known, prefix)
    assert (later.check(), later.fresh) == (None, [])
    for one in (replay, later):
        one.close()


def test_a_long_history_makes_no_bad_ids():
    """A name is looked at by itself: how deep the branch is in which it is asked for is no fault of it."""

    async def deep(n: int) -> None:
        if n:
            await CTX.gather(deep(n - 1))
        else:
            await CTX.wait("go")

    replay = begin(lambda: deep(60))
    assert replay.check() is None
    assert len(replay.fresh[0].id) > 256
    replay.close()


@pytest.mark.parametrize(
    "said", [{1: 2, "1": 3}, {"x": [{None: 1, "y": 2}]}, {"x": {1, 2}}, {(1, 2): 3}, {"x": "\ud800"}]
)
def test_what_is_no_json_is_refused_by_its_operation(said):
    """Its name, what is wrong with it, what was expected, and the line."""

    async def agent():
        await CTX.call("reader", {"said": said}, id="look")

    replay = begin(agent)
    assert str(replay.check()).startswith("refused: call 'look' says what is no JSON (")
    assert str(replay.check()).endswith(f"whose keys are texts (test_replay.py:{agent.__code__.co_firstlineno + 1})")
    assert replay.fresh == []
    replay.close()


@pytest.mark.parametrize("same", [0, 150, 5_000])
def test_what_differs_is_shown_wherever_it_is(same):
    """Of commands that say much, the piece in which they part, with what stands before it; never more than that."""

    def one(more: str) -> Command:
        spec = {"op": "call", "id": "a", "params": {"text": "x" * same + more + "z" * 4_000}}
        return Command("", 1, "call", "a", digest(spec), spec)

    said = str(Divergence("", 1, one("old"), one("new")))
    history, code = said.split(", the code has ")
    assert ("xold" if same else "old") in history
    assert ("xnew" if same else "new") in code
    assert len(said) < 900
    assert str(Divergence("", 1, one("old"), None)).endswith("…, the code has no command")


def test_history_is_bounded(monkeypatch):
    """A workflow that never cuts its history is stopped with the way to do so."""
    monkeypatch.setattr(replaying, "COMMANDS_MAX", 5)

    async def agent():
        while True:
            await CTX.compensate("a", "ledger", {})

    replay = begin(agent)
    assert "continue_as_new" in str(replay.check())
    replay.close()


def test_a_race_stops_its_losers():
    """The first to end wins; what the others waited for is abandoned by a command of its own, and their blocks are left."""
    left = []

    async def loser():
        try:
            await CTX.gather(CTX.sleep(5, id="slow"), CTX.wait("never", id="never"))
        except Stopped:
            left.append("stopped")
            raise

    async def agent():
        return await CTX.race(loser(), CTX.call("ledger", id="fast"))

    replay = begin(agent)
    replay.recorded()
    replay.deliver(ok("fast", "n1"))
    assert replay.end == Returned((1, {"nonce": "n1"}))
    assert [(one.kind, one.spec["operations"]) for one in replay.fresh] == [("abandon", ["slow", "never"])]
    assert left == ["stopped"]
    before = replay.end
    replay.deliver(ok("slow"))
    assert replay.end == before


def test_a_failure_stops_what_runs_beside_it():
    """In a gather the first error ends the others, which may still tidy up, and is raised afterwards."""

    async def tidy():
        try:
            await CTX.wait("never", id="never")
        finally:
            await CTX.call("mailer", id="tidy")

    async def agent():
        try:
            await CTX.gather(tidy(), CTX.call("ledger", id="pay"))
        except OperationFailed as failed:
            return failed.reason

    replay = begin(agent)
    replay.recorded()
    replay.deliver(Outcome("pay", "failed", None, "no money"))
    assert ids(replay) == ["abandon#1", "tidy"]
    assert replay.end is None
    replay.deliver(ok("tidy"))
    assert replay.end == Returned("no money")


def test_what_is_asked_for_is_what_was_said_when_it_was():
    """A list that goes on growing is in a command as it was, however many outcomes come in between: its digest says so."""
    log: list[str] = []

    async def one():
        await CTX.call("ledger", id="a")
        log.append("a")
        await CTX.call("ledger", {"log": log}, id="c")

    async def two():
        await CTX.call("ledger", id="b")
        log.append("b")

    async def agent():
        await CTX.gather(one(), two())

    replay = begin(agent)
    replay.deliver(ok("a"))
    replay.deliver(ok("b"))
    (asked,) = [command for command in replay.fresh if command.id == "c"]
    assert asked.spec["params"] == {"log": ["a"]}
    assert asked.digest == digest(asked.spec)
    replay.close()


def test_a_compensation_has_the_limits_of_a_call():
    """Also the name of a secret, as a call has."""

    async def agent():
        await CTX.compensate("a", "ledger", {"n": 1}, secret="bank", tries=2)

    (asked,) = begin(agent).fresh
    said = {"op": "compensate", "of": "a", "service": "ledger", "params": {"n": 1}, "secret": "bank", "tries": 2}
    assert asked.spec == {**said, "id": "compensate#1"}


def test_a_signal_with_nothing_in_it_has_come():
    """What a wait gives when its time was over is told apart from what it gives for an empty signal."""

    async def agent():
        return [await CTX.wait("go", timeout_ns=5), await CTX.wait("go", timeout_ns=5)]

    replay = begin(agent)
    replay.deliver(Outcome("go#1", "succeeded", {}))
    replay.deliver(Outcome("go#2", "succeeded"))
    assert replay.end == Returned([{}, None])


def test_ids_of_a_later_segment_are_its_own():
    """After a cut every id, and what refers to one, has the segment before it."""

    async def agent():
        first = CTX.call("ledger", id="pay", carries=["note"])
        await CTX.call("mailer", id="note")
        await CTX.approve(first)

    replay = begin(agent, prefix="2~")
    replay.deliver(ok("2~note"))
    note, approve = replay.fresh
    assert note.id == "2~note"
    assert (approve.spec["of"], approve.spec["action"]["id"]) == ("2~pay", "2~pay")
    assert approve.spec["action"]["carries"] == ["2~note"]
    replay.close()


def test_a_log_that_was_lived_through_is_not_empty():
    """The rig itself: a program with a race leaves commands, an abandonment and outcomes behind."""
    log, lived = live([("race", [[("op", "ledger")], [("op", "reader")]])], random.Random(3).randrange)
    lived.close()
    assert isinstance(log, Log)
    assert [one.kind for one in log.commands] == ["call", "call", "abandon"]
    assert len(log.outcomes) >= 1
