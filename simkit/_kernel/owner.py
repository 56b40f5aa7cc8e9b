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


OWNER: contextvars.ContextVar[Owner | None] = contextvars.ContextVar("simkit_owner", default=None)
