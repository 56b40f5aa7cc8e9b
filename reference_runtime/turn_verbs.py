"""The server's verbs for turns: leasing them to the executions that have the code, and taking what comes of them."""

from __future__ import annotations

import itertools
import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, TypeVar

import trio

from reference_runtime.appending import DECISIONS
from reference_runtime.commands import ABANDON
from reference_runtime.gathering import Gathering
from reference_runtime.holding import NS
from reference_runtime.log import OFF, Log
from reference_runtime.model import Json, Refusal
from reference_runtime.presence import Presence, Runners
from reference_runtime.rpc import check_fields
from reference_runtime.turns import Turn, accepted
from reference_runtime.waiting import WaitingRoom

T = TypeVar("T")
#: How much of a history is told at a time; a line has room for more.
CHUNK_BYTES = 1024 * 1024


class TurnVerbs(Gathering, ABC):
    """What a server adds for workers that have workflows."""

    poll_ns: int

    def __init__(self, lease_ns: int, log: Log = OFF) -> None:
        super().__init__(lease_ns, log)
        self._turns = WaitingRoom[Turn]()
        self._runners = Runners(Presence(lease_ns / NS))

    @abstractmethod
    def notify(self) -> None:
        """Wake those for whom what was just committed matters."""

    @abstractmethod
    def serving(self, verb: str) -> AbstractContextManager[None]:
        """One transaction that also leases what comes of it to those who wait."""

    @abstractmethod
    def _unless_left(self, execution: str, take: Callable[[], list[T]]) -> Callable[[], list[T]]:
        """What leases to a request of an execution, and nothing once that has left."""

    def tell_runners(self) -> None:
        """Wake those who wait for a turn, when there is one."""
        if self._turns and self.store.turn_is_due():
            self._turns.wake()

    async def claim_turns(
        self, execution: str, codes: Json, warm: Json, holding: list[int], limit: int, batch: int
    ) -> Json:
        """Lease turns to a worker, waiting a while for some to become due. `warm`: what it still has, by attempt; `batch`: how
        many outcomes it wants to be told at a time, 0: as many as fit.
        """
        take = self._unless_left(execution, partial(self.store.claim_turns, execution, codes, holding, limit))
        with self._runners.asking(execution, codes), self._turns.waits(execution, take) as waiting:
            with trio.move_on_after(self.poll_ns / NS):
                while not (turns := waiting.look()):
                    await waiting.woken()
            turns = turns or waiting.leases
        return {"turns": [self._said(turn, execution, warm.get(turn.attempt, []), batch) for turn in turns]}

    async def take_turn(
        self,
        turn: Json,
        execution: str,
        code: str,
        known: list[int],
        batch: int,
        commands: list[Json],
        end: Json,
        trouble: str,
        expected: str | None = None,
        places: Json | None = None,
    ) -> Json:
        """Take what a workflow asks for, or that this code cannot go on; the turn that follows at once, if any, and over
        what it was put aside (`put_aside`), if it was.

        `expected`: the id of the command of history that the trouble is about; `commands` is then the one there is instead.
        `places`: the lines of code that commands were written on, by their ids, for the words about one that cannot be.
        """
        held = _held(turn)
        _check_commands(commands)
        _check_end(end)
        following, is_taken = None, not trouble
        try:
            if is_taken:
                with self.serving("take_turn"):
                    rejected, following = self.store.take_turn(held, code, commands, end, execution)
            else:
                rejected = self.store.park_turn(held, code, trouble, expected, commands)
        except Refusal as error:  # it was undone as a whole
            trouble = f"refused: {error.message}{_place_of(error.message, commands, places or {})}"
            rejected, is_taken = self.store.park_turn(held, code, trouble), False
        if rejected is not None:
            raise Refusal("stale", rejected.reason)
        self._let_go(held.generation)
        if not is_taken:
            self.notify()
        told = {} if following is None else self._said(following, execution, known, batch)
        return {"turn": told, "is_taken": is_taken, **({} if is_taken else {"put_aside": trouble})}

    def ahead_of(
        self, operation: str, answer: Json, ahead: Json | None, execution: str
    ) -> tuple[Callable[[], object] | None, Json]:
        """What takes how a workflow goes on with a result, if its worker said so, and where it tells what came of that."""
        found: Json = {}
        if ahead is None:
            return None, found
        return partial(self._going_on, accepted(operation, answer), ahead, execution, found), found

    def _going_on(self, told: Json, ahead: Json, execution: str, found: Json) -> None:
        """Take what a worker's function asks for after the result that it reports; `found` is told what came of it."""
        check_fields("ahead", ahead, _AHEAD)
        _check_commands(ahead["commands"])
        _check_end(ahead["end"])
        turn = _held({**ahead["turn"], "generation": 0})
        found["is_taken"], following = self.store.go_on(
            turn, told, ahead["code"], ahead["commands"], ahead["end"], execution
        )
        if following is not None:
            found["turn"] = self._said(following, execution, ahead["known"], ahead["batch"])

    async def tell_more(self, generation: int, known: list[int], batch: int) -> Json:
        """The outcomes of a leased turn past those its holder knows of, as many as fit, and whether these are all; the turn
        from its beginning for one that knows nothing. The lease's term begins anew: a long history takes more than one.
        """
        turn = self.store.leased_turn(generation)
        if turn is None:
            raise Refusal("stale", f"generation {generation} owns no turn")
        self._heard(generation)
        if not known:
            return self._from(turn, known, batch)
        _, outcomes, is_warm = self.store.history(turn, known)
        if not is_warm:
            raise Refusal("stale", f"the history of {turn.attempt} is not the one that is known")
        told = _chunk(outcomes, CHUNK_BYTES, batch)
        return {"told": told or outcomes[:1], "is_all": len(told or outcomes[:1]) == len(outcomes)}

    def _said(self, turn: Turn, execution: str, known: list[int], batch: int) -> Json:
        """A turn as its holder gets it, with as much of its history as it does not have and as fits."""
        self._hold(turn.generation, execution)
        return self._from(turn, known, batch)

    def _from(self, turn: Turn, known: list[int], batch: int) -> Json:
        commands, outcomes, is_warm = self.store.history(turn, known)
        told = _chunk(outcomes, CHUNK_BYTES - len(json.dumps(commands)), batch)
        return {
            "task": turn.task,
            "attempt": turn.attempt,
            "workflow": turn.workflow,
            "input": None if is_warm else json.loads(turn.input),
            "segment": turn.segment,
            "length": turn.length,
            "outcomes": turn.outcomes,
            "generation": turn.generation,
            "is_warm": is_warm,
            "after": known[2] if is_warm else 0,
            "commands": commands,
            "told": told,
            "is_all": len(told) == len(outcomes),
        }


def _chunk(outcomes: list[Json], bytes_max: int, count: int) -> list[Json]:
    """As many outcomes, from the first, as fit into so many bytes of JSON, and `count` at most; 0: any number."""
    sizes = itertools.accumulate(len(json.dumps(outcome)) for outcome in outcomes)
    fitting = [outcome for outcome, size in zip(outcomes, sizes, strict=True) if size <= bytes_max]
    return fitting[:count] if count > 0 else fitting


#: What a command says of itself, and the types this must have.
_COMMAND = {"branch": str, "sequence": int, "kind": str, "id": str, "digest": str, "spec": dict}


#: What a worker says of how a workflow went on with a result that is being reported.
_AHEAD: dict[str, type] = {
    "turn": dict, "code": str, "known": list, "batch": int, "commands": list, "end": dict,
}  # fmt: skip


def _held(data: Json) -> Turn:
    lease: dict[str, type] = {"attempt": str, "segment": int, "length": int, "outcomes": int, "generation": int}
    check_fields("turn", data, lease)
    return Turn(task="", workflow="", input="", **data)


def _place_of(message: str, commands: list[Json], places: Json) -> str:
    """Where the command that a refusal begins with was written, as ` (FILE:LINE)`; empty where nobody said."""
    about = (one for one in commands if message.startswith(f"{one['kind']} {one['id']!r}: "))
    return next((f" ({places[one['id']]})" for one in about if one["id"] in places), "")


def _check_commands(commands: list[Any]) -> None:
    for command in commands:
        if not isinstance(command, dict):
            raise _malformed(f"a command has {', '.join(_COMMAND)}", command)
        check_fields("command", command, _COMMAND)
        kind, spec = command["kind"], command["spec"]
        if (spec.get("op"), spec.get("id")) != (kind, command["id"]):
            raise _malformed(f"the spec of command {command['id']!r:.80} has its kind and its id", spec)
        if kind == ABANDON:
            _check_texts(spec.get("operations"), f"{ABANDON} {command['id']!r:.80} names operations", spec)
        if kind in DECISIONS and not isinstance(spec.get("state"), str):
            raise _malformed(f"{kind} {command['id']!r:.80} has a state", spec)
        if not isinstance(others := spec.get("others", [] if kind not in DECISIONS else None), list):
            raise _malformed(f"{kind} {command['id']!r:.80} has a list of others", spec)
        for leaf in (*others, *([spec["action"]] if "action" in spec else [])):
            told = [leaf.get("op"), leaf.get("id")] if isinstance(leaf, dict) else None
            _check_texts(told, f"{kind} {command['id']!r:.80} speaks of operations that have an op and an id", leaf)


def _check_texts(values: object, expected: str, got: object) -> None:
    if not isinstance(values, list) or not all(isinstance(one, str) for one in values):
        raise _malformed(expected, got)


def _check_end(end: Json) -> None:
    """Refuse what is no end of a function: one of the three ways in which it may be over, or nothing while it is not."""
    if end and (len(end) != 1 or not end.keys() <= _ENDS):
        raise _malformed(f"an end is one of {', '.join(sorted(_ENDS))}, or empty", end)
    if "raised" in end and not isinstance(end["raised"], str):
        raise _malformed("what was raised is told in words", end)


def _malformed(expected: str, got: object) -> Refusal:
    return Refusal("bad-request", f"{expected}; got {got!r:.120}")


_ENDS = frozenset({"returned", "raised", "continued"})
