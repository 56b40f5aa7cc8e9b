"""The runner: takes turns for a worker's workflows, reruns their functions, and reports what they ask for.

`advance` is the whole of a turn, and pure: a function that is still warm, or is begun anew, is told the outcomes it has not
heard of, and what it asks for comes back. Warm functions are only a saving: they are told the same outcomes in the same
order, and one whose report was not taken is let go.

A function that waits for the very operation that this worker carries out is told of its result before the store is, and what it
asks for next goes into the same report (`look_ahead`). Nothing leaves a function but commands, so where the result is not
taken, or comes at another place in the history, it is as if the function had never been told: it is let go.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from functools import partial

import attrs
import trio

from reference_runtime.bounding import Bound
from reference_runtime.commands import Command, Continued, Divergence, End, Made, Outcome, Raised, Returned
from reference_runtime.documents import INTERPRETER
from reference_runtime.handle import UNSAYABLE, Handle, Patience
from reference_runtime.log import OFF, Log
from reference_runtime.model import Json, Refusal
from reference_runtime.replay import JSON, Replay
from reference_runtime.rpc import LINE_BYTES_MAX
from reference_runtime.turns import accepted
from reference_runtime.workflow import Context, Workflow

#: What a line needs beside what a turn says.
MARGIN_BYTES = 64 * 1024
#: The most that is told of why a turn could not be reported.
TROUBLE_MAX = 1000
#: Turns at a time, and functions kept warm in between.
TURNS = 8
WARM_MAX = 256
#: How many turns a function takes one right after the other before it is the others' time.
FOLLOWING_MAX = 8
FOR_EVER = Patience(total_ns=None)


@attrs.define(eq=False)
class Warm:
    """A function as a turn left it: its history's segment and length, and how many outcomes it was told."""

    workflow: str
    replay: Replay
    segment: int
    length: int
    seen: int

    @property
    def known(self) -> list[int]:
        return [self.segment, self.length, self.seen]


def begin(workflow: Workflow, turn: Json, bound: Bound = nullcontext) -> Warm:
    """A function at its very beginning, with the commands its history says it will ask for."""
    segment = turn["segment"]
    made = Made()
    start = partial(workflow.function, Context(turn["task"], segment, made), turn["input"])
    recorded = [Command(**command) for command in turn["commands"]]
    is_planned = workflow.name == INTERPRETER
    replay = Replay(start, recorded, f"{segment}~" if segment > 1 else "", made, is_planned=is_planned, bound=bound)
    return Warm(workflow.name, replay, segment, len(recorded), 0)


def tell(warm: Warm, outcomes: Sequence[Json]) -> None:
    """Tell a function outcomes that it has not heard of, in their order."""
    for outcome in outcomes:
        warm.replay.deliver(Outcome(**outcome))
    warm.seen += len(outcomes)


def advance(warm: Warm, outcomes: Sequence[Json]) -> Json:
    """Tell a function the last it has not heard of; its new commands, how it ended if it did, and what is wrong if it is."""
    tell(warm, outcomes)
    trouble = warm.replay.check()
    commands = [attrs.asdict(command) for command in warm.replay.fresh]
    places = warm.replay.places()
    if trouble is not None:
        return _parted(trouble) if isinstance(trouble, Divergence) else _troubled(str(trouble))
    warm.length += len(commands)
    warm.replay.recorded()
    said = {"commands": commands, "end": _end(warm.replay.end), "trouble": "", "places": places}
    try:
        size = len(json.dumps(said))
    except (TypeError, ValueError, RecursionError) as error:
        return _troubled(
            f"refused: workflow {warm.workflow!r} {_ended(warm.replay.end)}, which is no JSON ({error}); {JSON}"
            f"{warm.replay.end.place if isinstance(warm.replay.end, Returned | Continued) else ''}"
        )
    if size > LINE_BYTES_MAX - MARGIN_BYTES:
        return _troubled(
            f"refused: what one turn asks for is {size} bytes of JSON; at most {LINE_BYTES_MAX - MARGIN_BYTES}"
        )
    return said


def _troubled(trouble: str) -> Json:
    """Why a function does not go on."""
    return {"commands": [], "end": {}, "trouble": trouble}


def _parted(trouble: Divergence) -> Json:
    """Why a function that does not do what its history says does not go on. `expected` is the id of the command of history that
    it should have asked for; the one that it has instead goes along, so that both can be shown by who knows what both say.
    """
    said = _troubled(str(trouble))
    if trouble.expected is None:
        return said
    got = [] if trouble.got is None else [attrs.asdict(trouble.got)]
    if len(json.dumps(got)) > LINE_BYTES_MAX - MARGIN_BYTES:
        got = []
    return {**said, "commands": got, "expected": trouble.expected.id}


def _end(end: End | None) -> Json:
    match end:
        case Returned(value):
            return {"returned": value}
        case Raised(reason=reason):
            return {"raised": reason}
        case Continued(state):
            return {"continued": state}
    return {}


def _ended(end: End | None) -> str:
    """With what a function has ended, in words."""
    match end:
        case Returned(value):
            return f"returned {value!r:.80}"
        case Continued(state):
            return f"goes on with {state!r:.80}"
    return "asks for something"


class Runner:
    """Turns for one execution of a worker; `run` until cancelled. `batch`: most outcomes told at a time, 0: what fits;
    `bound`: what a function's code runs within, from one await to the next.
    """

    def __init__(
        self,
        client: Handle,
        workflows: Sequence[Workflow],
        execution: str,
        batch: int = 0,
        *,
        log: Log = OFF,
        bound: Bound = nullcontext,
    ) -> None:
        self.bound = bound
        self.batch = batch
        self.log = log
        self.client = client
        self.workflows: Mapping[str, Workflow] = {one.name: one for one in workflows}
        self.execution = execution
        self._warm: OrderedDict[str, Warm] = OrderedDict()
        self._leading: dict[str, Warm] = {}  # functions that are ahead of the store
        self._ahead: dict[str, trio.Event] = {}  # their attempts: set when that is over
        self._nursery: trio.Nursery | None = None
        self._holding: set[int] = set()
        self._put_off = 0  # turns that are ours, and that come again with the next claim

    async def run(self) -> None:
        try:
            async with trio.open_nursery() as self._nursery:
                while True:
                    turns = await self._claim()
                    self._put_off = 0
                    async with trio.open_nursery() as nursery:
                        for turn in turns:
                            nursery.start_soon(self._perform, turn, FOLLOWING_MAX)
        finally:
            self._nursery = None
            while self._warm:
                _let_go(self._warm.popitem()[1])

    async def _claim(self) -> list[Json]:
        ask = {
            "execution": self.execution,
            "codes": {name: one.code for name, one in self.workflows.items()},
            "warm": {attempt: warm.known for attempt, warm in self._warm.items()},
            "holding": sorted(self._holding),
            "limit": TURNS + self._put_off,  # or who always has one more turn would leave no room
            "batch": self.batch,
        }
        answer = await self.client.call("claim_turns", ask, FOR_EVER)
        return [turn for turn in answer["turns"] if turn["generation"] not in self._holding]  # nor taken up meanwhile

    async def _perform(self, turn: Json, most: float = float("inf")) -> None:
        """Run a turn, and those that follow at once from its report, `most` in all. One more is left to a claim: what is ours
        and not listed as held is given to us again, beside what is due of others.
        """
        attempt = turn["attempt"]
        while attempt in self._ahead:
            await self._ahead[attempt].wait()
        warm = self._warm.pop(attempt, None)
        while turn and most > 0:
            most -= 1
            generation = turn["generation"]
            self._holding.add(generation)
            try:
                said, warm = await self._advance(turn, warm)
                self._tell_of(turn["task"], warm)
                turn, warm = await self._report(turn, said, warm)
            except Refusal:
                return
            finally:
                self._holding.discard(generation)
        self._put_off += bool(turn)
        if warm is not None:
            self._keep(attempt, warm)

    async def _advance(self, turn: Json, warm: Warm | None) -> tuple[Json, Warm | None]:
        """What a turn comes to. Raises `Refusal` when the turn is somebody else's by now."""
        try:
            if warm is None or [warm.segment, warm.length] != [turn["segment"], turn["length"]]:
                _let_go(warm)
                warm = None
                if turn["is_warm"]:  # it was when the turn was asked for
                    ask = {"generation": turn["generation"], "known": [], "batch": self.batch}
                    turn = await self.client.call("tell_more", ask, FOR_EVER)
                warm = begin(self.workflows[turn["workflow"]], turn, self.bound)
            told, is_all = turn["told"][max(0, warm.seen - turn["after"]) :], turn["is_all"]
            while not is_all:
                tell(warm, told)
                ask = {"generation": turn["generation"], "known": warm.known, "batch": self.batch}
                more = await self.client.call("tell_more", ask, FOR_EVER)
                told, is_all = more["told"], more["is_all"]
            return advance(warm, told), warm
        except Refusal:
            _let_go(warm)
            raise
        except Exception as error:  # noqa: BLE001 - not the function's own: it could not even be begun, or said
            _let_go(warm)
            return _troubled(f"refused: {type(error).__name__}: {error}"), None

    async def _report(self, turn: Json, said: Json, warm: Warm | None) -> tuple[Json, Warm | None]:
        """Have a turn taken; the one that follows from it, if any. A function that is over, or not taken, is let go."""
        code = self.workflows[turn["workflow"]].code
        known = [] if warm is None else warm.known
        held = {name: turn[name] for name in ("attempt", "generation", "segment", "length")}
        held["outcomes"] = turn["outcomes"] if warm is None else warm.seen
        ask = {"turn": held, "execution": self.execution, "code": code, "known": known, "batch": self.batch, **said}
        try:
            answer = await self.client.call("take_turn", ask, FOR_EVER)
        except Refusal as no:
            trouble = _troubled(f"refused: {no.message:.{TROUBLE_MAX}}")
            if no.code in UNSAYABLE and said != trouble:  # it is ours still, and would be given to us again and again
                _let_go(warm)
                return await self._report(turn, trouble, None)
            answer = {"turn": {}, "is_taken": False}
        if reason := answer.get("put_aside"):
            self.log("put-aside", task=turn["task"], workflow=turn["workflow"], code=code, reason=reason)
        if said["end"] or not answer["is_taken"]:
            _let_go(warm)
            warm = None
        return answer["turn"], warm

    # -- ahead of the store

    def look_ahead(self, attempt: str, operation: str, answer: Json) -> Json | None:
        """How a workflow goes on with the result of an operation that is about to be reported; None where that has to wait.

        Who gets something has to say what came of it, by `looked_ahead`.
        """
        warm = self._warm.get(attempt)
        if self._nursery is None or warm is None or not warm.replay.awaits(operation):
            return None
        del self._warm[attempt]
        turn = {"attempt": attempt, "segment": warm.segment, "length": warm.length, "outcomes": warm.seen + 1}
        try:
            said = advance(warm, [accepted(operation, answer)])
            self._tell_of(attempt.rpartition(".")[0], warm)
        except Exception:  # noqa: BLE001 - whoever takes the turn comes to it, and can say so
            said = _troubled("refused")
        if said["trouble"]:
            _let_go(warm)
            return None
        self._ahead[attempt] = trio.Event()
        self._leading[attempt] = warm
        asked = {"commands": said["commands"], "end": said["end"], "code": self.workflows[warm.workflow].code}
        return {"turn": turn, "known": warm.known, "batch": self.batch, **asked}

    def looked_ahead(self, attempt: str, ahead: Json, came_to: Json) -> None:
        """Go on from where a function is, or let it go, by what came of its looking ahead; `came_to` is empty where that is not
        known.
        """
        warm = self._leading.pop(attempt)
        if not came_to.get("is_taken") or ahead["end"] or self._nursery is None:
            _let_go(warm)
        else:
            self._keep(attempt, warm)
        self._ahead.pop(attempt).set()
        if "turn" in came_to and self._nursery is not None:
            self._nursery.start_soon(self._perform, came_to["turn"])

    def _tell_of(self, task: str, warm: Warm | None) -> None:
        """Have the worker's log say where an error came from that ended a function."""
        if warm is not None and isinstance(warm.replay.end, Raised) and warm.replay.end.trace:
            self.log("raised", task=task, workflow=warm.workflow, traceback=warm.replay.end.trace)

    def _keep(self, attempt: str, warm: Warm) -> None:
        self._warm[attempt] = warm
        if len(self._warm) > WARM_MAX:
            _let_go(self._warm.popitem(last=False)[1])


def _let_go(warm: Warm | None) -> None:
    if warm is not None:
        warm.replay.close()
