"""The replayer: drives an async function by hand against the recorded history of its commands and outcomes.

A workflow may await three things only: an `Ask` (one operation), and `Join`s of several awaitables, all of which must end
or the first of which wins. Each `Ask` becomes a *command*; the workflow moves when an *outcome* is delivered. Outcomes are
delivered one at a time, in the order in which the store accepted them, and the function runs until nothing in it can move
before the next one is looked at. So what it does is a function of its input and the sequence of outcomes: how many of
them arrived together, in which process, and whether the function was begun anew in between, cannot matter.

There is no event loop, no clock and no I/O here: coroutines are resumed with `send` and `throw`, in the order in which
they became able to move. Whatever else a workflow awaits is refused by name, since nothing could record it.

Identity: a command has a place (branch, and its number in it) and an id. Ids are explicit, or the branch with the
operation's name and how many of that name came before it there. Draws of time, chance and identifiers are known by their
id alone and take no number, so that one draw more shifts nothing. The check of commands against history is by place.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from contextlib import nullcontext
from typing import Any

import attrs

from reference_runtime.bounding import Bound
from reference_runtime.commands import (
    ABANDON,
    DRAW,
    NOTED,
    Ask,
    Command,
    ContinueAsNew,
    Continued,
    Divergence,
    End,
    ForeignAwait,
    Join,
    Made,
    Misuse,
    Outcome,
    Returned,
    Site,
    Stopped,
    TooLong,
    Trouble,
    in_words,
)
from reference_runtime.endings import CONTEXT_ONLY, ended_by, whatever_it_raises
from reference_runtime.model import Json, canonical, digest
from reference_runtime.naming import command_of, fault_of_ask, named, slot_of
from reference_runtime.whereabouts import beginning, beside, foreign, frames_of, line_of, place

JSON = "expected null, truth values, numbers, texts, and lists and dicts of these, whose keys are texts"
#: Commands of one history; who needs more cuts it with `continue_as_new`.
COMMANDS_MAX = 10_000
#: How often a coroutine that is let go may refuse to end.
CLOSES_MAX = 10


@attrs.define(eq=False)
class _Branch:
    """One coroutine: what it is called, what it waits for, and what it is about to be told."""

    path: str
    coroutine: Coroutine[Any, Any, Any]
    group: _Group | None = None
    index: int = 0
    numbered: int = 0
    named: dict[str, int] = attrs.field(factory=dict)
    awaits: str | None = None
    inner: _Group | None = None
    next_value: Any = None
    next_error: BaseException | None = None
    is_over: bool = False

    def count(self, name: str) -> int:
        self.named[name] = self.named.get(name, 0) + 1
        return self.named[name]


@attrs.define(eq=False)
class _Group:
    """The branches of one `Join`, and what came of them so far."""

    mode: str
    owner: _Branch
    branches: list[_Branch] = attrs.field(factory=list)
    values: dict[int, Any] = attrs.field(factory=dict)
    winner: int | None = None
    error: BaseException | None = None
    is_stopping: bool = False


class Replay:
    """One workflow function on its way through its history.

    `fresh` are the commands that history does not know yet; `end` is set when the function is over, `trouble` when it
    diverged or broke a rule, after which it does not move any more. `prefix` is put before every id. `made` is what its
    context notes its operations in. `is_planned`: the store knows from the beginning what it will ask for, approvals too.
    `bound`: what its code runs within, from one await to the next; it may raise `TooLong`.
    """

    def __init__(
        self,
        start: Callable[[], Coroutine[Any, Any, Any]],
        recorded: Iterable[Command] = (),
        prefix: str = "",
        made: Made | None = None,
        *,
        is_planned: bool = False,
        bound: Bound = nullcontext,
    ) -> None:
        self.fresh: list[Command] = []
        self.issued = 0
        self.end: End | None = None
        self.trouble: Trouble | None = None
        self.prefix = prefix
        self._begun_at = ""
        self._made = Made() if made is None else made
        self._is_planned = is_planned
        self._bound = bound
        self._expected = {slot_of(command): command for command in recorded}
        self._ids: set[str] = set()
        self._sites: dict[str, Site | None] = {}  # by what was called for since `recorded`
        self._new: dict[str, Command] = {}  # fresh since the last outcome: nothing of it can have been sent
        self._approved: dict[str, Command] = {}  # what approvals are about, as they say it
        self._waiting: dict[str, _Branch] = {}
        self._early: dict[str, Outcome] = {}  # outcomes of operations this code has not asked for yet
        self._ready: deque[_Branch] = deque()
        self._branches: list[_Branch] = []
        try:
            with self._bound():
                begun: object = start()
        except TooLong as late:  # no async function: one of those begins with its first step
            self.trouble = Misuse(str(late))
            return
        except TypeError as error:  # none of its code has run: it is called with what it does not take
            self.trouble = Misuse(
                f"a workflow takes its context and one input, as in `async def f(ctx, input)`; {error}{beginning(start)}"
            )
            return
        if not isinstance(begun, Coroutine):
            self.trouble = Misuse(
                f"a workflow is an async function that returns; this one gave {type(begun).__qualname__}"
                f"{beginning(start)}"
            )
            return
        self._begun_at = beginning(begun)
        root = _Branch("", begun)
        self._branches.append(root)
        self._ready.append(root)
        self._run()

    def deliver(self, outcome: Outcome) -> None:
        """Tell the workflow how an operation ended, and let it run until nothing in it can move."""
        branch = self._waiting.pop(outcome.operation, None)
        if branch is None:
            if outcome.operation not in self._ids:
                self._early[outcome.operation] = outcome
            return
        self._answer(branch, outcome)
        self._run()

    def awaits(self, operation: str) -> bool:
        """Whether something in the workflow waits for this operation."""
        return operation in self._waiting

    def missing(self) -> Command | None:
        """The first recorded command that this code, with everything delivered, has not issued; None when all were.

        While a fresh draw is unanswered the code is merely behind, and the question waits.
        """
        if any(command.kind == DRAW for command in self.fresh) and self.end is None:
            return None
        return next((one for one in self._expected.values() if one.kind != DRAW), None)

    def check(self) -> Trouble | None:
        """What is wrong with this run of the code, once every recorded outcome was delivered."""
        if self.trouble is None and (lost := self.missing()) is not None:
            got = next((one for one in self.fresh if one.kind != DRAW), None)
            self.trouble = Divergence(lost.branch, lost.sequence, lost, got)
        return self.trouble

    def recorded(self) -> None:
        """The fresh commands are part of history from now on."""
        self.fresh = []
        self._sites.clear()

    def places(self) -> dict[str, str]:
        """On which lines the fresh commands were written, by their ids, as far as that is known."""
        found = {one.id: line_of(self._sites.get(one.id)) for one in self.fresh}
        return {id_: line for id_, line in found.items() if line}

    def close(self) -> None:
        """Let go of the function, wherever it is; it can issue nothing more."""
        for branch in reversed(self._branches):
            for _ in range(CLOSES_MAX):
                with whatever_it_raises(), self._bound():
                    branch.coroutine.close()
                    break

    # -- moving

    def _run(self) -> None:
        self._new.clear()
        while self._ready and self.trouble is None:
            self._step(self._ready.popleft())

    def _answer(self, branch: _Branch, value: Any = None, error: BaseException | None = None) -> None:
        branch.awaits = None
        branch.next_value, branch.next_error = value, error
        self._ready.append(branch)

    def _step(self, branch: _Branch) -> None:
        value, error = branch.next_value, branch.next_error
        branch.next_value = branch.next_error = None
        self._made.by = branch
        try:
            with self._bound():
                asked = branch.coroutine.send(value) if error is None else branch.coroutine.throw(error)
        except StopIteration as stop:
            self._over(branch, stop.value, None)
        except TooLong as late:
            self.trouble = Misuse(str(late))
        except KeyboardInterrupt:
            raise
        except BaseException as raised:  # noqa: BLE001 - it is the workflow's end, and of nothing else that runs here
            self._over(branch, None, raised)
        else:
            self._take(branch, asked)

    def _take(self, branch: _Branch, asked: object) -> None:
        self._made.use(asked)
        if isinstance(asked, Ask):
            self._ask(branch, asked)
            if isinstance(self.trouble, Misuse):
                self.trouble = Misuse(f"{self.trouble.message}{beside(asked.made_at)}")
        elif isinstance(asked, Join):
            self._join(branch, asked)
        else:
            self._refuse_foreign(branch, asked)

    def _refuse_foreign(self, branch: _Branch, asked: object) -> None:
        message = f"{CONTEXT_ONLY}; {foreign(branch.coroutine, asked)}"
        self.trouble = Misuse(message)
        with whatever_it_raises():
            branch.coroutine.throw(ForeignAwait(message))  # so that what it entered is left in order

    # -- commands

    def _ask(self, branch: _Branch, ask: Ask[Any]) -> None:
        id_ = self.prefix + (ask.id if ask.id is not None else _name(branch, ask.name))
        if ask.asked or id_ in self._ids:
            self.trouble = Misuse(f"operation {id_!r} is asked for twice; each needs an id of its own")
            return
        fault = None if self._is_planned else fault_of_ask(ask)  # a plan's were looked at as it was submitted
        if fault is not None and not self._is_expected(branch, ask, id_):
            self.trouble = Misuse(fault)
            return
        ask.asked = True
        self._sites[id_] = ask.made_at
        leaf = named(ask.leaf, id_, self.prefix)
        try:
            self._issue(branch, str(leaf["op"]), id_, leaf)
        except (TypeError, ValueError, RecursionError) as error:
            self.trouble = Misuse(f"{leaf['op']} {id_!r:.80} says what is no JSON ({error}); {JSON}")
            return
        early = self._early.pop(id_, None) if ask.waits else NOTED
        if early is not None:
            self._answer(branch, early)
        else:
            branch.awaits = id_
            self._waiting[id_] = branch

    def _issue(self, branch: _Branch, kind: str, id_: str, spec: Json) -> None:
        if kind != DRAW:
            branch.numbered += 1
        number = 0 if kind == DRAW else branch.numbered
        command = Command(branch.path, number, kind, id_, digest(spec), spec)
        expected = self._expected.pop(slot_of(command), None)
        if expected is None:  # what it says is what it says now, whatever the function does with its lists afterwards
            command = attrs.evolve(command, spec=json.loads(canonical(spec)))
            self.trouble = self._misuse_of_approvals(command)
            self.fresh.append(command)
            self._new[id_] = command
        elif expected != command:
            self.trouble = Divergence(command.branch, command.sequence, expected, command)
        if kind == "approve" and "action" in spec:
            action = command_of(spec["action"])
            self._approved.setdefault(action.id, action)
        self._ids.add(id_)
        self.issued += 1
        if self.issued > COMMANDS_MAX:
            self.trouble = Misuse(f"more than {COMMANDS_MAX} commands; cut the history with continue_as_new")

    def _misuse_of_approvals(self, command: Command) -> Misuse | None:
        """What is wrong with a fresh command: what is approved is what has to be asked for, and not before it is approved."""
        one, known = command, self._approved.get(command.id)
        if command.kind == "approve":
            of = str(command.spec.get("of"))
            if of in self._ids and of not in self._new and not self._is_planned:
                return Misuse(
                    f"approve {command.id!r} is about {of!r}, which was asked for before it, and may have been sent by now;"
                    " await the approval first"
                )
            if "action" in command.spec:
                one = command_of(command.spec["action"])
                known = self._approved.get(one.id, self._new.get(one.id))
        if known is None or (known.kind, known.digest) == (one.kind, one.digest):
            return None
        return Misuse(
            f"operation {one.id!r} is not what is to be approved under this id: that is {known.shown(one)}, the code has"
            f" {one.shown(known)}; what is approved is awaited as it is, and anything else has an id of its own"
        )

    def _is_expected(self, branch: _Branch, ask: Ask[Any], id_: str) -> bool:
        return (branch.path, id_ if ask.leaf["op"] == DRAW else branch.numbered + 1) in self._expected

    # -- branches

    def _join(self, owner: _Branch, join: Join) -> None:
        number = owner.count(f"join {join.mode}")
        base = f"{owner.path}.{join.mode}{number}" if owner.path else f"{join.mode}{number}"
        group = owner.inner = _Group(join.mode, owner)
        for index, part in enumerate(join.parts):
            branch = _Branch(f"{base}.{index}", _coroutine(part), group, index)
            group.branches.append(branch)
            self._branches.append(branch)
            self._ready.append(branch)
        if not group.branches:
            self._leave(group)

    def _over(self, branch: _Branch, value: Any, error: BaseException | None) -> None:
        branch.is_over = True
        self._branches.remove(branch)
        if error is not None and not isinstance(error, ContinueAsNew):
            self._made.forget(branch)
        group = branch.group
        if group is None:
            self._finish(value, error)
            return
        if isinstance(error, Stopped):
            pass  # as it was told to
        elif error is not None:
            group.error = group.error or error
        elif not group.is_stopping:
            group.values[branch.index] = value
            group.winner = branch.index if group.mode == "first" else None
        if (group.winner is not None or group.error is not None) and not group.is_stopping:
            self._stop_group(group)
        if all(one.is_over for one in group.branches):
            self._leave(group)

    def _leave(self, group: _Group) -> None:
        """All branches are over: their owner goes on."""
        owner = group.owner
        owner.inner = None
        if owner.next_error is not None:  # it is being stopped itself
            self._ready.append(owner)
        elif group.error is not None and group.winner is None:
            self._answer(owner, error=group.error)
        elif group.mode == "first":
            self._answer(owner, None if group.winner is None else (group.winner, group.values[group.winner]))
        else:
            self._answer(owner, [group.values.get(index) for index in range(len(group.branches))])

    def _stop_group(self, group: _Group) -> None:
        abandoned: list[str] = []
        self._stop_branches(group, abandoned)
        if abandoned:
            id_ = self.prefix + _name(group.owner, ABANDON)
            self._issue(group.owner, ABANDON, id_, {"op": ABANDON, "id": id_, "operations": abandoned})

    def _stop_branches(self, group: _Group, abandoned: list[str]) -> None:
        group.is_stopping = True
        for branch in [one for one in group.branches if not one.is_over]:
            branch.next_error = Stopped()
            if branch.awaits is not None:
                abandoned.append(branch.awaits)
                del self._waiting[branch.awaits]
                branch.awaits = None
                self._ready.append(branch)
            elif branch.inner is not None and not branch.inner.is_stopping:
                self._stop_branches(branch.inner, abandoned)

    def _finish(self, value: Any, error: BaseException | None) -> None:
        if error is not None and not isinstance(error, ContinueAsNew):
            ended = ended_by(error)
            if isinstance(ended, Misuse):
                self.trouble = ended
            else:
                self.end = ended
        elif (forgotten := self._made.forgotten()) is not None:
            self.trouble = Misuse(
                f"the function is over, and {in_words(forgotten)} was made but never awaited, so it was not done;"
                f" await it, or make it only where it is awaited{beside(forgotten.made_at)}"
            )
        elif error is not None:
            self.end = Continued(error.state, place(frames_of(error)))
        else:
            self.end = Returned(value, self._begun_at)


def _name(branch: _Branch, name: str) -> str:
    number = branch.count(name)
    return f"{branch.path}.{name}#{number}" if branch.path else f"{name}#{number}"


def _coroutine(part: Awaitable[Any]) -> Coroutine[Any, Any, Any]:
    if isinstance(part, Coroutine):
        return part

    async def wait() -> Any:
        return await part

    return wait()
