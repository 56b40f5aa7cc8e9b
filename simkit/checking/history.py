"""Histories: what clients asked of an object and what it answered, with the moments of call and return.

What counts is the order of these moments, so a history recorded in a simulated program numbers them: within one instant of
virtual time many things happen one after another. Of an operation that did not return, nobody knows whether it took effect:
it may at any moment after its call, or never.
"""

from __future__ import annotations

from collections.abc import Hashable
from types import TracebackType
from typing import Any, Protocol, Self

import attrs

from simkit.checking.model import UNKNOWN, Asked
from simkit.errors import Problem, SimkitError
from simkit.points import current_world

_TOLD_LENGTH = 60


@attrs.frozen
class Operation:
    """One operation of a client.

    `called` and `returned` are moments on any one scale: positions in a log, nanoseconds, seconds. At equal moments a
    call counts as before a return, so that the two operations overlap.
    """

    process: Hashable  # who called; told in reports, nothing depends on it
    asked: Asked  # name and arguments, as in ("put", "key", 1)
    answer: Any  # UNKNOWN when it did not return
    called: float
    returned: float | None  # None when it did not return
    called_ns: int | None = None  # virtual time, for reports
    returned_ns: int | None = None

    def __attrs_post_init__(self) -> None:
        if self.returned is not None and self.returned < self.called:
            raise _impossible(f"{self} returned at {self.returned}, before its call at {self.called}", "a later return")
        if not self.asked:
            raise _impossible("an operation asks for nothing", 'its name and arguments, as in ("put", "key", 1)')

    @property
    def definite(self) -> bool:
        """Whether it returned."""
        return self.returned is not None

    def __str__(self) -> str:
        answer = "?" if self.returned is None else told(self.answer)
        return f"{_told_call(self.process, self.asked)} → {answer}"


def _told_call(process: Hashable, asked: Asked) -> str:
    name, *arguments = asked
    return f"{process}: {name}({', '.join(map(told, arguments))})"


def told(value: Any) -> str:
    """A value for reports, its middle left out when it is long."""
    whole = repr(value)
    return whole if len(whole) <= _TOLD_LENGTH else f"{whole[: _TOLD_LENGTH // 2]} … {whole[-_TOLD_LENGTH // 2 :]}"


class HasTime(Protocol):
    """A world, as far as a history needs one."""

    @property
    def now_ns(self) -> int:
        """Virtual time."""
        ...


class History:
    """Records operations as they happen.

    Args:
        world: tells the virtual time, for reports; without one, reports tell only the order.
    """

    def __init__(self, world: HasTime | None = None) -> None:
        self._world = world
        self._moment = 0
        self._calls: list[Call] = []

    def call(self, process: Hashable, name: str, *arguments: Any) -> Call:
        """Begin an operation: `with history.call("client 1", "get", "x") as op: op.returns(await store.get("x"))`.

        A body that ends without saying `returns` has answered None. One that raises, or whose process is killed in it,
        leaves the operation unknown, unless it said `failed`.
        """
        call = Call(self, process, (name, *arguments))
        self._calls.append(call)
        return call

    def operations(self) -> tuple[Operation, ...]:
        """All operations that were called and did not fail, in the order of their calls."""
        return tuple(call.operation() for call in self._calls if not call.has_failed)

    def __len__(self) -> int:
        return len(self._calls)

    def now(self) -> tuple[int, int | None]:
        """The next moment, and the virtual time."""
        self._moment += 1
        return self._moment, None if self._world is None else self._world.now_ns


class Call:
    """An operation that is under way; a context manager around what the client does."""

    def __init__(self, history: History, process: Hashable, asked: Asked) -> None:
        self._history = history
        self._process = process
        self._asked = asked
        self._answer: Any = UNKNOWN
        self._called = history.now()
        self._returned: tuple[int, int | None] | None = None
        self._known = True
        self.has_failed = False
        self._tell("")

    def _tell(self, outcome: str) -> None:
        """A row of a space-time table, where the run is drawn."""
        world = current_world()
        if world is not None and world.trace.asides is not None:
            world.trace.aside("operation", _told_call(self._process, self._asked) + outcome)

    def returns(self, answer: Any = None) -> None:
        """It has returned, now, with this answer; values that change later must be copied."""
        if self._returned is not None:
            raise _impossible(f"{self.operation()} returns a second time", "one answer of each operation")
        self._answer = answer
        self._returned = self._history.now()
        self._tell(f" → {told(answer)}")

    def failed(self) -> None:
        """It has failed so that it certainly had no effect: it counts as never called."""
        self.has_failed = True
        self._tell(" fails")

    def unknown(self) -> None:
        """Nobody can tell whether it took effect, as after a timeout, though the client goes on."""
        self._known = False
        self._returned = None
        self._answer = UNKNOWN
        self._tell(" → ?")

    def operation(self) -> Operation:
        """As it stands now."""
        returned, returned_ns = (None, None) if self._returned is None else self._returned
        called, called_ns = self._called
        return Operation(self._process, self._asked, self._answer, called, returned, called_ns, returned_ns)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._returned is None and self._known and not self.has_failed:
            if kind is None:
                self.returns()
            else:
                self.unknown()


def _impossible(what: str, expected: str) -> SimkitError:
    return SimkitError(Problem("impossible-history", what, "a history of operations", expected))
