"""Mutants of what one status shows, and of what is committed together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import trio

from conformance.mutants import Patch, mutant
from reference_runtime.progress import Progress
from reference_runtime.server import Server

if TYPE_CHECKING:
    from reference_runtime.model import Json

#: Longer than it takes to look again; and than it takes to be killed.
A_MOMENT_S, A_WHILE_S = 0.03, 0.3


def _release_later(patch: Patch, seconds: float) -> None:
    """A settled operation's dependants are released by a second transaction, `seconds` after the first."""
    owed: list[tuple[str, str]] = []
    settling: list[bool] = []

    def advance(self: Progress, attempt: str, operation: str) -> None:
        if settling:
            owed.append((attempt, operation))
        else:
            original_advance(self, attempt, operation)

    def conclude(self: Progress, attempt: str) -> None:
        if all(attempt != one for one, _ in owed):
            original_conclude(self, attempt)

    async def settle(self: Server, *args: Any, **kwargs: Any) -> Json:
        before = len(owed)
        settling.append(True)
        try:
            return await original_settle(self, *args, **kwargs)
        finally:
            settling.pop()
            if len(owed) > before and self.nursery is not None:
                self.nursery.start_soon(release, self)

    async def release(self: Server) -> None:
        await trio.sleep(seconds)
        released, owed[:] = owed[:], []
        with self.store._transaction():  # noqa: SLF001 - a mutant goes where it should not
            for attempt, operation in released:
                original_advance(self.store, attempt, operation)
            for attempt in dict.fromkeys(attempt for attempt, _ in released):
                original_conclude(self.store, attempt)
        self.notify()

    def restarted(self: Server, *args: Any, **kwargs: Any) -> None:
        owed.clear()  # memory of the process that died
        original_init(self, *args, **kwargs)

    original_advance, original_conclude = Progress._advance, Progress._conclude  # noqa: SLF001 - as above
    original_settle, original_init = Server.settle, Server.__init__
    patch.replace(Progress, "_advance", advance)
    patch.replace(Progress, "_conclude", conclude)
    patch.replace(Server, "settle", settle)
    patch.replace(Server, "__init__", restarted)


@mutant("dependants-in-a-second-commit", "DUR-4", shown_by="baton/undisturbed")
def dependants_in_a_second_commit(patch: Patch) -> None:
    """A result is committed first, and what depends on it is released by a second transaction a moment later."""
    _release_later(patch, A_MOMENT_S)


@mutant("release-dies-with-the-engine", "SCH-2", shown_by="baton/kill@t+75000000ns(engine)")
def release_dies_with_the_engine(patch: Patch) -> None:
    """What a result releases is kept in memory for a while, and only then committed."""
    _release_later(patch, A_WHILE_S)
