"""Async generators of a run: closed in the order in which they were first iterated, and those of the dead not at all."""

from __future__ import annotations

import logging
import sys
import weakref
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any

import trio
from trio._core._run import Runner

from simkit._kernel.owner import OWNER, Owner

if TYPE_CHECKING:
    from simkit._kernel.kernel import Kernel

AnyGenerator = AsyncGenerator[Any, Any]
_UNHEARD = logging.getLogger("trio.async_generator_errors")  # where trio tells of them as well


class SimAsyncGenerators:
    """Knows every async generator of the run, whose it is, and in which order they were first iterated."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self._known: dict[int, tuple[weakref.ref[AnyGenerator], Owner | None]] = {}
        self._over = False
        #: Abandoned when no task could be started for them any more.
        self._late: list[AnyGenerator] = []
        self._previous: Any = None
        # Names that trio reads:
        self.alive: tuple[()] = ()

    def install_hooks(self, _runner: Runner) -> None:
        """Be told of every async generator from now on."""
        self._previous = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(firstiter=self._first_iterated, finalizer=self._abandoned)

    def close(self) -> None:
        """The run is over: what is still suspended is dropped, not unwound."""
        self._over = True
        if self._previous is not None:
            sys.set_asyncgen_hooks(*self._previous)
            self._previous = None

    def _first_iterated(self, agen: AnyGenerator) -> None:
        self._known.pop(id(agen), None)  # an address that is used again goes to the end of the order
        self._known[id(agen)] = (weakref.ref(agen), OWNER.get())

    def _abandoned(self, agen: AnyGenerator) -> None:
        """Nobody refers to `agen` any more, and it has not finished."""
        _, owner = self._known.pop(id(agen), (None, None))
        if self._over or (owner is not None and not owner.alive):
            return
        nursery = self.kernel.runner.system_nursery
        if nursery is None or nursery._closed:
            self._late.append(agen)
        else:
            self.kernel.call_soon(self._start_closing, agen, owner)

    def _start_closing(self, agen: AnyGenerator, owner: Owner | None) -> None:
        nursery = self.kernel.runner.system_nursery
        if nursery is None or nursery._closed:
            self._late.append(agen)
        elif owner is None or owner.alive:
            self.kernel.spawn_system(_close, (agen,), "close async generator", owner)

    @property
    def are_left(self) -> bool:
        """Whether any is known that may be open."""
        return bool(self._known or self._late)

    async def close_remaining(self) -> None:
        """Close what the outside left open, oldest first; also what that opens."""
        while self._known or self._late:
            open_ = [(ref(), owner) for ref, owner in self._known.values()]
            self._known.clear()
            left = [*self._late, *(agen for agen, owner in open_ if agen is not None and owner is None)]
            self._late.clear()
            if not left:
                return
            del open_
            for agen in left:
                await _close(agen)


async def _close(agen: AnyGenerator) -> None:
    """Close one async generator; waiting is cancelled at once, errors have nowhere to go but the log."""
    name = getattr(agen, "__qualname__", "")
    with trio.CancelScope(shield=True) as scope:
        scope.cancel()
        try:
            await agen.aclose()
        except Exception:  # noqa: BLE001  # as trio does
            _UNHEARD.exception("Exception ignored during finalization of async generator %s", name)
