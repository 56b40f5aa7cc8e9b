"""The replayer: the same outcomes give the same commands, whatever the batches and processes; other code is noticed."""

from __future__ import annotations

import asyncio
import functools
import json
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
from reference_runtime.commands import Command, Continued, Divergence, Made, Misuse, Outcome, Raised, Returned, Stopped
from reference_runtime.model import digest
from reference_runtime.replay import Replay
from reference_runtime.workflow import Context, OperationFailed
from tests.replay_rig import PROGRAMS, Log, again, live, perform

CTX = Context("t")


def _begin(function: Callable[[], Any], recorded: tuple[Any, ...] | list[Any] = (), prefix: str = "") -> Replay:
    return Replay(function, recorded, prefix)


def _ok(operation: str, nonce: str = "n", **more: Any) -> Outcome:
    return Outcome(operation, "succeeded", {"nonce": nonce, **more})


def _ids(replay: Replay) -> list[str]:
    return [command.id for command in replay.fresh]


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

    replay = _begin(agent)
    replay.recorded()
    for id_ in "ba":
        replay.deliver(_ok(id_))
    assert _ids(replay) == ["after-b", "after-a"]
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
    old = _begin(_drawing(draws=before))
    outcomes, commands = [], []
    while old.end is None:
        commands += old.fresh
        outcomes += [_ok(one.id, "0.5") for one in old.fresh]
        fresh = old.fresh
        old.recorded()
        for one in fresh:
            old.deliver(_ok(one.id, "0.5"))
    new = _begin(_drawing(draws=after), commands)
    for outcome in outcomes:
        new.deliver(outcome)
    while new.end is None:
        assert new.check() is None
        drawn = new.fresh
        assert {one.kind for one in drawn} == {"nondet"}
        new.recorded()
        for one in drawn:
            new.deliver(_ok(one.id, "0.25"))
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
    old = _begin(_two("a", "b"))
    old.deliver(_ok("a"))
    new = _begin(other, old.fresh)
    new.deliver(_ok("a"))
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

    (known,) = _begin(sleeper(1)).fresh
    told = Command(known.branch, known.sequence, known.kind, known.id, known.digest)
    both = str(_begin(sleeper(2), [known]).check())
    assert f"history has main:1 sleep 's' {known.digest[:12]} {{\"ns\":1}}, the code has main:1 sleep 's' " in both
    assert both.endswith(' {"ns":2}')
    assert f"history has main:1 sleep 's' {known.digest[:12]}, the code" in str(_begin(sleeper(2), [told]).check())
    long = str(_begin(sleeper(2, "x" * 1000), [told]).check())
    assert long.endswith("x…")
    assert len(long) < 500


def test_code_that_goes_on_where_history_ends_is_compatible():
    """What is added after everything that was recorded is new work, not a divergence."""
    old = _begin(_two("a", "b"))
    old.deliver(_ok("a"))
    new = _begin(_longer, old.fresh)
    for id_ in "ab":
        new.deliver(_ok(id_))
    assert new.check() is None
    assert _ids(new) == ["c"]
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
        return _begin(agent)

    replay = trio.run(hosted)
    assert isinstance(replay.check(), Misuse)
    line = agent.__code__.co_firstlineno + 2
    assert str(replay.trouble) == (
        f"refused: a workflow may await operations of its context only; {__file__}:{line} {named}"
    )
    assert (left, replay.fresh, replay.end) == (["left"], [], None)
    replay.close()


def test_an_id_is_used_once():
    """Asking twice under one id is refused: the second could not be told from the first."""

    async def agent():
        await CTX.gather(CTX.call("ledger", id="a"), CTX.call("reader", id="a"))

    replay = _begin(agent)
    assert "'a' is asked for twice" in str(replay.check())
    replay.close()


@pytest.mark.parametrize(
    ("id_", "fault"),
    [
        ("a~sweep", "'a~sweep' has a ~ in it; that is kept"),
        ("2~a", "'2~a' has a ~ in it"),
        ("", "'' is empty"),
        ("a\n", "has the character U+000A"),
        ("x" * 257, "has 257 characters; at most 256"),
    ],
)
@pytest.mark.parametrize("prefix", ["", "2~"])
def test_an_id_that_is_given_is_one(id_, fault, prefix):
    """As in a plan; one that history has already is let be, and so are those that are made of names."""

    async def agent():
        await CTX.gather(CTX.wait("some\nname"), CTX.call("ledger", id=id_))

    replay = _begin(agent, prefix=prefix)
    assert fault in str(replay.check())
    spec = {**CTX.call("ledger").leaf, "id": prefix + id_}
    known = [
        Command("all1.0", 1, "wait", f"{prefix}all1.0.some\nname#1", replay.fresh[0].digest),
        Command("all1.1", 1, "call", prefix + id_, digest(spec)),
    ]
    later = _begin(agent, known, prefix)
    assert (later.check(), later.fresh) == (None, [])
    for one in (replay, later):
        one.close()


def test_history_is_bounded(monkeypatch):
    """A workflow that never cuts its history is stopped with the way to do so."""
    monkeypatch.setattr(replaying, "COMMANDS_MAX", 5)

    async def agent():
        while True:
            await CTX.compensate("a", "ledger", {})

    replay = _begin(agent)
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

    replay = _begin(agent)
    replay.recorded()
    replay.deliver(_ok("fast", "n1"))
    assert replay.end == Returned((1, {"nonce": "n1"}))
    assert [(one.kind, one.spec["operations"]) for one in replay.fresh] == [("abandon", ["slow", "never"])]
    assert left == ["stopped"]
    before = replay.end
    replay.deliver(_ok("slow"))
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

    replay = _begin(agent)
    replay.recorded()
    replay.deliver(Outcome("pay", "failed", None, "no money"))
    assert _ids(replay) == ["abandon#1", "tidy"]
    assert replay.end is None
    replay.deliver(_ok("tidy"))
    assert replay.end == Returned("no money")


async def _forgets_a_call(ctx: Context) -> None:
    ctx.call("ledger", id="a")


async def _forgets_a_compensation(ctx: Context) -> None:
    ctx.compensate("pay", "ledger", {})
    await ctx.call("ledger", id="pay")


async def _forgets_a_draw_in_a_branch(ctx: Context) -> None:
    async def part() -> None:
        await ctx.call("ledger", id="pay")
        ctx.now()

    await ctx.gather(part(), _part(ctx))


async def _part(ctx: Context) -> None:
    await ctx.wait("go", id="go")


async def _forgets_a_gather(ctx: Context) -> None:
    ctx.gather(ctx.call("ledger", id="a"), ctx.call("ledger", id="b"))


async def _forgets_and_cuts(ctx: Context) -> None:
    ctx.operation({"op": "sleep", "ns": 1, "id": "s"})
    ctx.continue_as_new(1)


def _noting(function: Callable[[Context], Any]) -> Replay:
    """A function, with a context that notes what it makes, as a runner begins it; all it asks for has succeeded."""
    made = Made()
    replay = Replay(lambda: function(Context("t", 1, made)), made=made)
    for operation in ("pay", "go"):
        replay.deliver(_ok(operation))
    return replay


@pytest.mark.parametrize(
    ("function", "named"),
    [
        (_forgets_a_call, "call 'a'"),
        (_forgets_a_compensation, "compensate 'compensate'"),
        (_forgets_a_draw_in_a_branch, "draw 'time'"),
        (_forgets_a_gather, "gather of 2"),
        (_forgets_and_cuts, "sleep 's'"),
    ],
)
def test_what_was_never_awaited_is_told(function, named):
    """A function is not over while something it made of its context was forgotten; what was forgotten is named."""
    replay = _noting(function)
    assert str(replay.check()) == (
        f"refused: the function is over, and {named} was made but never awaited, so it was not done;"
        " await it, or make it only where it is awaited"
    )
    assert replay.end is None
    replay.close()


async def _raises(ctx: Context) -> None:
    ctx.call("ledger", id="a")
    raise OperationFailed("b", "no")


async def _approves_only(ctx: Context) -> None:
    await ctx.approve(ctx.call("ledger", id="a"), id="go")


async def _loses_a_race(ctx: Context) -> None:
    async def loser() -> None:
        later = ctx.call("ledger", id="later")
        await ctx.wait("never", id="never")
        await later

    async def failing() -> None:
        ctx.call("ledger", id="unused")
        raise OperationFailed("b", "no")

    await ctx.race(loser(), ctx.wait("go", id="go"))
    with pytest.raises(OperationFailed):
        await ctx.gather(failing())


async def _awaits_later(ctx: Context) -> None:
    both: list[Any] = [ctx.call("ledger", id="pay"), ctx.race(ctx.wait("go", id="go"), ctx.sleep(5, id="slow"))]
    for one in both:
        await one


@pytest.mark.parametrize(
    ("function", "end"),
    [
        (_raises, Raised("no")),
        (_approves_only, Returned(None)),
        (_loses_a_race, Returned(None)),
        (_awaits_later, Returned(None)),
    ],
)
def test_what_is_not_needed_is_not_forgotten(function, end):
    """What was about to be done when an error came or a race was lost, what is only approved, and what is awaited later."""
    replay = _noting(function)
    assert (replay.check(), replay.end) == (None, end)


def test_ends():
    """A value, an error in words, a failed operation by its reason, and a cut with its state."""

    async def returns():
        return 3

    async def raises():
        raise KeyError("x")

    async def fails():
        raise OperationFailed("a", "a failed: no")

    async def cuts():
        await CTX.gather(_cut())

    ends = [_begin(one).end for one in (returns, raises, fails, cuts)]
    line = raises.__code__.co_firstlineno + 1
    raised = Raised(f"raised: KeyError: 'x' (test_replay.py:{line})")
    assert ends == [Returned(3), raised, Raised("a failed: no"), Continued({"n": 1})]


def test_an_error_is_told_with_the_users_own_line():
    """Inside Python's own code, or this package's, it is the line that went there; the whole way is kept beside it."""

    async def decodes():
        json.loads("{")

    async def misspells():
        await CTX.gather(CTX.wait("never"), _coloured())

    for function, where in ((decodes, decodes), (misspells, _coloured)):
        end = _begin(function).end
        assert isinstance(end, Raised)
        assert end.reason.endswith(f" (test_replay.py:{where.__code__.co_firstlineno + 1})")
        assert f"{function.__code__.co_firstlineno + 1}, in {function.__name__}" in end.trace


async def _coloured() -> None:
    await CTX.call("ledger", colour="red")


@pytest.mark.parametrize(
    ("needs_a_loop", "named"),
    [
        (functools.partial(asyncio.sleep, 1), "asyncio.tasks.sleep (RuntimeError: no running event loop)"),
        (lambda: asyncio.Queue().get(), "asyncio.queues.Queue.get (AttributeError: "),
    ],
)
def test_what_needs_an_event_loop_is_refused_by_name(needs_a_loop, named):
    """It is a foreign await like any other: the code may be put right, and the task goes on."""

    async def waits():
        await needs_a_loop()

    async def agent():
        await CTX.gather(waits())

    replay = _begin(agent)
    line = waits.__code__.co_firstlineno + 1
    assert str(replay.check()).startswith(
        f"refused: a workflow may await operations of its context only; {__file__}:{line} awaits {named}"
    )
    assert (replay.end, replay.fresh) == (None, [])
    replay.close()


def test_an_error_of_ones_own_is_no_missing_loop():
    """Also a RuntimeError: it ends the function."""

    async def raises():
        raise RuntimeError("no more")

    end = _begin(raises).end
    assert isinstance(end, Raised)
    assert end.reason.startswith("raised: RuntimeError: no more (")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (SystemExit(3), "raised: SystemExit: 3"),
        (asyncio.CancelledError(), "raised: CancelledError: "),
        (GeneratorExit(), "raised: GeneratorExit: "),
        (BaseExceptionGroup("two", [SystemExit(1)]), "raised: BaseExceptionGroup: two (1 sub-exception)"),
        (
            UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
            "raised: UnicodeDecodeError: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte",
        ),
    ],
)
@pytest.mark.parametrize("depth", [0, 1])
def test_whatever_a_workflow_raises_is_its_own_end(error, said, depth):
    """Also what would end a process: others have their work in hand in the same one."""

    async def raises():
        raise error

    async def within():
        await CTX.gather(raises(), CTX.wait("never"))

    line = raises.__code__.co_firstlineno + 1
    assert _begin(within if depth else raises).end == Raised(f"{said} (test_replay.py:{line})")


def test_an_interrupt_is_no_end_of_a_workflow():
    """It was meant for the worker, in whose code ever it arrived."""

    async def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _begin(interrupted)


def _plain() -> dict[str, int]:
    return {"n": 1}


async def _yielding() -> Any:
    yield 1


@pytest.mark.parametrize(("function", "named"), [(_plain, "dict"), (_yielding, "async_generator")])
def test_a_function_that_cannot_be_driven_is_refused(function, named):
    """It may be mended, and tried again; what it asked for is nothing."""
    replay = _begin(function)
    assert str(replay.check()) == f"refused: a workflow is an async function that returns; this one gave {named}"
    assert (replay.end, replay.fresh) == (None, [])
    replay.close()


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

    replay = _begin(agent)
    replay.deliver(_ok("a"))
    replay.deliver(_ok("b"))
    (asked,) = [command for command in replay.fresh if command.id == "c"]
    assert asked.spec["params"] == {"log": ["a"]}
    assert asked.digest == digest(asked.spec)
    replay.close()


def test_a_compensation_has_the_limits_of_a_call():
    """Also the name of a secret, as a call has."""

    async def agent():
        await CTX.compensate("a", "ledger", {"n": 1}, secret="bank", tries=2)

    (asked,) = _begin(agent).fresh
    said = {"op": "compensate", "of": "a", "service": "ledger", "params": {"n": 1}, "secret": "bank", "tries": 2}
    assert asked.spec == {**said, "id": "compensate#1"}


def test_a_signal_with_nothing_in_it_has_come():
    """What a wait gives when its time was over is told apart from what it gives for an empty signal."""

    async def agent():
        return [await CTX.wait("go", timeout_ns=5), await CTX.wait("go", timeout_ns=5)]

    replay = _begin(agent)
    replay.deliver(Outcome("go#1", "succeeded", {}))
    replay.deliver(Outcome("go#2", "succeeded"))
    assert replay.end == Returned([{}, None])


async def _cut() -> None:
    CTX.continue_as_new({"n": 1})


def test_ids_of_a_later_segment_are_its_own():
    """After a cut every id, and what refers to one, has the segment before it."""

    async def agent():
        first = CTX.call("ledger", id="pay", carries=["note"])
        await CTX.call("mailer", id="note")
        await CTX.approve(first)

    replay = _begin(agent, prefix="2~")
    replay.deliver(_ok("2~note"))
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
