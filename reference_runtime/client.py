"""The client: calls that are repeated until they are answered.

A lost answer says nothing, so a call reconnects and asks the same thing again, after a growing, jittered delay, for as
long as its patience lasts. Every verb may be repeated: tasks and signals by their ids, leases by their generations.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any, Self

import attrs
import trio

from reference_runtime.connecting import connect
from reference_runtime.model import Json, Receipt, Refusal
from reference_runtime.rpc import (
    ANSWER_BYTES_MAX,
    CROWDED,
    LINE_BYTES_MAX,
    LOST,
    TASKS,
    Lines,
    parse_answer,
    refusal_in,
)

NS = 1_000_000_000
CONNECTIONS_IDLE_MAX = 8
#: How long a server does not answer before that is worth a word; a restart takes less.
SILENCE_NS = 5 * NS

#: Why nothing of what was asked was looked at, whoever asked: it is too long, or cannot be read.
UNSAYABLE = frozenset({"too-large", "bad-request"})


class Unreachable(Exception):  # noqa: N818 - the state of things, as the caller sees it
    """No answer within the caller's patience: what was asked for may or may not have happened."""


@attrs.frozen
class Patience:
    """How a client deals with silence. `total_ns` None: for ever, for those who have nothing better to do."""

    total_ns: int | None = 10 * NS
    answer_ns: int = 2 * NS  # longer than the server makes a claim wait
    backoff_ns_min: int = 5_000_000
    backoff_ns_max: int = 500_000_000


class Client:
    """A handle on the server at `host:port`; connections are made when needed and kept while they work.

    As a context manager it closes at the end what it kept. `on_silence` is told, once for each time that the server does not
    answer for `SILENCE_NS`, for how many seconds it has not.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        patience: Patience | None = None,
        rng: random.Random | None = None,
        on_silence: Callable[[float], object] | None = None,
    ) -> None:
        self.host = host
        self.port = port
        self.patience = patience or Patience()
        self.rng = rng or random.Random(random.getrandbits(64))
        self._idle: list[Lines] = []
        self._requests = 0
        self._on_silence = on_silence
        self._silent_since: float | None = None  # when the first request was made that was not answered, and none since
        self._is_silence_told = False

    async def submit(self, task: str, plan: Mapping[str, Any]) -> Receipt:
        """Have a task done. Raises `Refusal` (`bad-plan`, `conflict`) or `Unreachable`."""
        return Receipt(**await self.call("submit", {"task": task, "plan": plan}))

    async def status(self, task: str, *, explain: bool = False) -> Json:
        """How a task stands; its state is `unknown` when there is none. `explain`: with what is `missing`."""
        return await self.call("status", {"task": task, "explain": True} if explain else {"task": task})

    async def tasks(self, after: str = "", limit: int = TASKS, state: str = "") -> Json:
        """Tasks past id `after`, in order: `tasks`, and `next` to come back with, or None. Raises `Refusal` (`bad-request`)."""
        return await self.call("tasks", {"after": after, "limit": limit, "state": state})

    async def signal(self, task: str, id_: str, name: str, payload: Mapping[str, Any]) -> Json:
        """Tell a task something, once per id; its disposition. Raises `Refusal` (`unknown-task`, `conflict`)."""
        return await self.call("signal", {"task": task, "id": id_, "name": name, "payload": payload})

    async def events(self, task: str, after: int = 0) -> Json:
        """What happened to a task past cursor `after`: `events`, `next`, `control`. Raises `Refusal` (`bad-cursor`)."""
        return await self.call("events", {"task": task, "after": after})

    async def artifacts(self, task: str) -> Json:
        """A task's artifacts, every version of them, and what was uploaded and not (yet) accepted."""
        return await self.call("artifacts", {"task": task})

    async def journal(self, task: str) -> Json:
        """What was tried, received and refused for a task."""
        return await self.call("journal", {"task": task})

    async def decide(
        self, task: str, id_: str, operation: str, decision: str, *, digest: str, actor: str, nonce: str
    ) -> Json:
        """Approve or deny what an approve leaf asks; the disposition. Raises `Refusal` for a decision that cannot count."""
        said = {"operation": operation, "decision": decision, "digest": digest, "actor": actor}
        return await self.call("decide", {"task": task, "id": id_, **said, "payload": {"nonce": nonce}})

    async def cancel(self, task: str, id_: str) -> Json:
        """Stop a task for good; its disposition is `accepted` or `too-late`."""
        return await self.call("cancel", {"task": task, "id": id_})

    async def pause(self, task: str, id_: str) -> Json:
        """Dispatch nothing more of a task until it is unpaused."""
        return await self.call("pause", {"task": task, "id": id_})

    async def unpause(self, task: str, id_: str) -> Json:
        """Let a paused task go on."""
        return await self.call("unpause", {"task": task, "id": id_})

    async def retry(self, task: str, id_: str) -> Json:
        """Have a workflow's parked turn tried again; its disposition is `accepted`, `nothing-parked` or `too-late`."""
        return await self.call("retry", {"task": task, "id": id_})

    async def call(self, verb: str, params: Mapping[str, Any], patience: Patience | None = None) -> Json:
        """Ask until answered. Raises `Refusal` for a no (`too-large`: for what was asked; `too-many-connections`: when patience
        ends and there never was room), `Unreachable` when patience ends.
        """
        patience = patience or self.patience
        total_s = float("inf") if patience.total_ns is None else patience.total_ns / NS
        end, tries, crowded = trio.current_time() + total_s, 0, list[Refusal]()
        while (now := trio.current_time()) < end:
            refused = len(crowded)
            with trio.move_on_at(min(end, now + patience.answer_ns / NS)):
                answer = await self._ask(verb, params, crowded)
                if answer is not None:
                    return answer
            if len(crowded) == refused:  # what befell this connection may have befallen those that were idle with it
                await self._let_go_of_idle()
            self._note_silence(now)
            await trio.sleep_until(min(end, trio.current_time() + self.backoff_ns(tries, patience) / NS))
            tries += 1
        if crowded and len(crowded) == tries:  # it was never asked at all
            raise crowded[-1]
        last = f"; the last one it gave was {crowded[-1]}" if crowded else ""
        raise Unreachable(f"{verb}: no answer from {self.host}:{self.port} within {total_s:g} s{last}")

    def backoff_ns(self, tries: int, patience: Patience) -> int:
        """Doubling, half of it left to chance."""
        ceiling = min(patience.backoff_ns_min << min(tries, 30), patience.backoff_ns_max)
        return ceiling // 2 + self.rng.randrange(ceiling // 2 + 1)

    def _note_silence(self, asked: float) -> None:
        """Note that what was asked then has no answer, and tell of it when that has been so for long."""
        if self._silent_since is None:
            self._silent_since = asked
        silent_s = trio.current_time() - self._silent_since
        if silent_s >= SILENCE_NS / NS and not self._is_silence_told and self._on_silence is not None:
            self._is_silence_told = True
            self._on_silence(silent_s)

    async def _ask(self, verb: str, params: Mapping[str, Any], crowded: list[Refusal]) -> Json | None:
        """One request over one connection; None when the answer is lost, or the connection was refused, which is put down in
        `crowded`. The connection is kept only after an answer.
        """
        self._requests += 1
        id_, lines = self._requests, None
        answered = False
        try:
            lines = self._idle.pop() if self._idle else await self._connect()
            await lines.send({"id": id_, "verb": verb, "params": params}, LINE_BYTES_MAX)
            message = parse_answer(await lines.receive(), id_)
            if (no := refusal_in(message)) is not None and no.code == CROWDED:
                crowded.append(no)
                return None
            answered, self._silent_since, self._is_silence_told = True, None, False
        except (*LOST, ValueError):
            return None
        finally:
            if lines is not None and not (answered and self._keep(lines)):
                await trio.aclose_forcefully(lines.stream)
        if no is not None:
            raise no
        result: Json = message["ok"]
        return result

    async def _connect(self) -> Lines:
        return Lines(await connect(self.host, self.port), ANSWER_BYTES_MAX)

    def _keep(self, lines: Lines) -> bool:
        if len(self._idle) < CONNECTIONS_IDLE_MAX:
            self._idle.append(lines)
            return True
        return False

    async def _let_go_of_idle(self) -> None:
        """Close the connections that nobody uses; closing one forcefully does not wait."""
        with trio.CancelScope(shield=True):
            while self._idle:
                await trio.aclose_forcefully(self._idle.pop().stream)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._let_go_of_idle()
