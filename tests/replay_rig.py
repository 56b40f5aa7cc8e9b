"""What the tests of replay share: random workflows as data, and a store in a few lines that accepts outcomes in any order.

A program is a list of statements, each a tuple: `("op", name)`, `("draw", kind)`, `("gather", programs)`,
`("race", programs)`, `("if", then, else)` on the parity of the last value, `("try", program)`, `("note", name)`.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import attrs
import hypothesis.strategies as st

from reference_runtime.commands import ABANDON, DRAW, Command, Outcome
from reference_runtime.replay import Replay
from reference_runtime.workflow import Context, OperationFailed

Program = list[Any]
NAMES = ["ledger", "reader", "mailer"]


def _statements(inner: st.SearchStrategy[Program]) -> st.SearchStrategy[Program]:
    compound = st.one_of(
        st.tuples(st.just("gather"), st.lists(inner, max_size=3)),
        st.tuples(st.just("race"), st.lists(inner, max_size=3)),
        st.tuples(st.just("if"), inner, inner),
        st.tuples(st.just("try"), inner),
    )
    return st.lists(compound | SIMPLE, max_size=3)


SIMPLE = st.one_of(
    st.tuples(st.just("op"), st.sampled_from(NAMES)),
    st.tuples(st.just("draw"), st.sampled_from(["random", "uuid"])),
    st.tuples(st.just("note"), st.sampled_from(NAMES)),
)
PROGRAMS = st.recursive(st.lists(SIMPLE, max_size=4), _statements, max_leaves=12)


async def perform(ctx: Context, program: Program) -> list[Any]:
    """Carry out a program; what its operations came to."""
    seen: list[Any] = []
    for statement in program:
        match statement:
            case ("op", name):
                seen.append((await ctx.call(name, {"last": str(seen[-1:])}))["nonce"])
            case ("draw", "random"):
                seen.append(await ctx.random())
            case ("draw", _):
                seen.append(await ctx.uuid())
            case ("note", name):
                await ctx.compensate("x", name, {})
            case ("gather", parts):
                seen.append(await ctx.gather(*(perform(ctx, part) for part in parts)))
            case ("race", parts):
                seen.append(await ctx.race(*(perform(ctx, part) for part in parts)))
            case ("if", then, otherwise):
                odd = len(str(seen[-1:])) % 2 or str(seen[-1:])[-3:-2] in "13579"
                seen.append(await perform(ctx, then if odd else otherwise))
            case ("try", part):
                try:
                    seen.append(await perform(ctx, part))
                except OperationFailed as failed:
                    seen.append(failed.reason)
    return seen


@attrs.define
class Log:
    """A task's history, as a store would keep it: what was asked for, and what was accepted, in order."""

    program: Program
    commands: list[Command] = attrs.field(factory=list)
    outcomes: list[Outcome] = attrs.field(factory=list)
    open: list[Command] = attrs.field(factory=list)

    def start(self) -> Replay:
        """The program from its beginning, against what is recorded."""
        return Replay(lambda: perform(Context("t"), self.program), self.commands)

    def append(self, command: Command) -> None:
        self.commands.append(command)
        if command.kind == ABANDON:
            gone = command.spec["operations"]
            self.open = [one for one in self.open if one.id not in gone]
        elif command.kind != "compensate":
            self.open.append(command)

    def accept(self, which: int, parity: int, *, fails: bool) -> None:
        """Have one of the open operations end."""
        command = self.open.pop(which % len(self.open))
        number = 2 * len(self.outcomes) + parity
        if fails and command.kind != DRAW:
            self.outcomes.append(Outcome(command.id, "failed", None, f"refused {number}"))
        else:
            self.outcomes.append(Outcome(command.id, "succeeded", {"nonce": str(number)}))


def live(program: Program, choose: Callable[[int], int], steps: int = 60) -> tuple[Log, Replay]:
    """Run a program to its end: turns and acceptances, and processes that die in between, as `choose` has it."""
    log = Log(program)
    replay, told = log.start(), 0
    for _ in range(steps):
        if log.open and choose(3):
            log.accept(choose(8), choose(2), fails=choose(6) == 5)
            continue
        if not choose(3):  # the process is gone, and another one begins from the history
            replay.close()
            replay, told = log.start(), 0
        for outcome in log.outcomes[told:]:
            replay.deliver(outcome)
        told = len(log.outcomes)
        assert replay.check() is None
        for command in replay.fresh:
            log.append(command)
        replay.recorded()
        if replay.end is not None:
            break
    return log, replay


def again(log: Log, chunks: random.Random) -> list[Command]:
    """Every command of a log, replayed from nothing with its outcomes in chunks of any size, as far as they reach."""
    known: list[Command] = []
    told = 0
    while True:
        replay = Replay(lambda: perform(Context("t"), log.program), known)
        for outcome in log.outcomes[:told]:
            replay.deliver(outcome)
        assert replay.check() is None
        known += replay.fresh
        replay.close()
        if told == len(log.outcomes):
            return known
        told = min(len(log.outcomes), told + chunks.randrange(1, 4))


CTX = Context("t")


def begin(function: Callable[[], Any], recorded: tuple[Any, ...] | list[Any] = (), prefix: str = "") -> Replay:
    return Replay(function, recorded, prefix)


def ok(operation: str, nonce: str = "n", **more: Any) -> Outcome:
    return Outcome(operation, "succeeded", {"nonce": nonce, **more})


def ids(replay: Replay) -> list[str]:
    return [command.id for command in replay.fresh]
