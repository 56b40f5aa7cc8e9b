"""A handle on a server, wherever that is: its verbs as methods.

How a question gets there and its answer back is for those who inherit: over the network (`client`), or within one process
(`embedded`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Literal, Self

import attrs

from reference_runtime.model import Json, Receipt
from reference_runtime.rpc import TASKS

NS = 1_000_000_000
#: Why nothing of what was asked was looked at, whoever asked: it is too long, or cannot be read.
UNSAYABLE = frozenset({"too-large", "bad-request"})


class Unreachable(Exception):  # noqa: N818 - the state of things, as the caller sees it
    """No answer within the caller's patience: what was asked for may or may not have happened."""


@attrs.frozen
class Patience:
    """How a client deals with silence. `total_ns` None: for ever, for those who have nothing better to do.

    `answer_ns` is how long one try waits for its answer, `answer_ns_max` up to where each may wait twice as long as the one
    before: what there is to say of a long task may take long to say, and asking anew would only begin it anew. None: as ever.
    """

    total_ns: int | None = 10 * NS
    answer_ns: int = 2 * NS  # longer than the server makes a claim wait
    answer_ns_max: int | None = None
    backoff_ns_min: int = 5_000_000
    backoff_ns_max: int = 500_000_000


class Handle(ABC):
    """What a server can be asked. As a context manager it lets go at the end of what it kept."""

    @abstractmethod
    async def call(self, verb: str, params: Mapping[str, Any], patience: Patience | None = None) -> Json:
        """Ask until answered. Raises `Refusal` for a no, `Unreachable` when patience ends."""

    async def submit(self, task: str, plan: Mapping[str, Any]) -> Receipt:
        """Have a task done. Raises `Refusal` (`bad-plan`, `conflict`) or `Unreachable`."""
        return Receipt(**await self.call("submit", {"task": task, "plan": plan}))

    async def status(self, task: str, *, explain: bool = False) -> Json:
        """How a task stands; its state is `unknown` when there is none. `explain`: with what is `missing`."""
        return await self.call("status", {"task": task, "explain": True} if explain else {"task": task})

    async def tasks(self, after: str = "", limit: int = TASKS, state: str = "") -> Json:
        """Tasks past id `after`, in order: `tasks`, and `next` to come back with, or None. Raises `Refusal` (`bad-request`)."""
        return await self.call("tasks", {"after": after, "limit": limit, "state": state})

    async def workers(self) -> list[Json]:
        """Who is there to be given work, or has some in hand: what it runs, when it was last heard of, and what it holds."""
        found: list[Json] = (await self.call("workers", {}))["workers"]
        return found

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

    async def settle(
        self,
        task: str,
        id_: str,
        operation: str,
        word: Literal["happened", "never-happened"],
        *,
        actor: str,
        nonce: str,
    ) -> Json:
        """Vouch for what became of an effect that was given up as unresolved; its disposition is `settled`. `nonce`: what the
        effect is known by, where it happened. Raises `Refusal`: `not-unresolved` where nothing is unknown.
        """
        said = {"operation": operation, "word": word, "actor": actor, "nonce": nonce}
        return await self.call("vouch", {"task": task, "id": id_, **said})

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:  # noqa: B027 - a handle may have nothing to let go of
        """Let go of what was kept."""
