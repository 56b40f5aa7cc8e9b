"""Who owns a task: the process in its context. `None` is the outside, which no kill can reach."""

from __future__ import annotations

import contextvars
from typing import Protocol


class Owner(Protocol):
    """A process, as far as the kernel cares."""

    @property
    def alive(self) -> bool:
        """Whether its tasks may still run."""
        ...

    @property
    def label(self) -> str:
        """Its name in traces and messages."""
        ...


class Inner(Protocol):
    """Whose steps a kernel task takes, when it takes them for a task of another library."""

    def get_coro(self) -> object:
        """The coroutine that is stepped."""
        ...


#: Set in the context of kernel tasks that step somebody else's coroutine, so that one can see where that one is.
INNER: contextvars.ContextVar[Inner | None] = contextvars.ContextVar("simkit_inner", default=None)
OWNER: contextvars.ContextVar[Owner | None] = contextvars.ContextVar("simkit_owner", default=None)
