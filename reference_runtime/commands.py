"""Commands and outcomes: what a workflow asks for, what came of it, and how the two may fail to fit.

An `Ask` is what a workflow awaits, and becomes a `Command` of its history; the `Outcome` that the store accepted wakes it. A
`Join` is several of these at once. These are values and awaitables only; `replay` is what drives them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from types import CodeType
from typing import Any, Generic, Literal, TypeAlias, TypeVar

import attrs

from reference_runtime.model import Json, canonical

T = TypeVar("T")
#: An instruction of somebody's code, from which its line is known when that is asked for.
Site: TypeAlias = tuple[CodeType, int]
DRAW = "nondet"
ABANDON = "abandon"
#: The most characters that are shown of what a command says, and of those before the first in which it is another one.
ARGUMENTS_MAX = 300
BEFORE_MAX = 100


@attrs.frozen
class Command:
    """One thing a workflow asked for: its place, its identity, and what it says (`spec`, an operation as in a plan)."""

    branch: str
    sequence: int
    kind: str
    id: str
    digest: str
    spec: Mapping[str, Any] = attrs.field(factory=dict, eq=False)

    def __str__(self) -> str:
        return f"{self.place} {self.shown()}"

    @property
    def place(self) -> str:
        """Its branch, and its number there."""
        return f"{self.branch or 'main'}:{self.sequence}"

    def shown(self, beside: Command | None = None) -> str:
        """It without its place; of much that it says, the piece where it parts from the one it is shown `beside`."""
        text, other = self.arguments(), "" if beside is None else beside.arguments()
        same = next((at for at, (its, others) in enumerate(zip(text, other, strict=False)) if its != others), 0)
        start = max(0, same - BEFORE_MAX) if max(len(text), len(other)) > ARGUMENTS_MAX else 0
        piece = text[start : start + ARGUMENTS_MAX]
        cut = f"{'…' * (start > 0)}{piece}{'…' * (start + len(piece) < len(text))}"
        return f"{self.kind} {self.id!r} {self.digest[:12]}{f' {cut}' if cut else ''}"

    def arguments(self) -> str:
        """What it says beside its kind and id, as JSON, where that is at hand: of a history workers are told digests only."""
        said = {name: value for name, value in self.spec.items() if name not in ("op", "id") and value != []}
        return canonical(said) if said else ""


@attrs.frozen
class Outcome:
    """How one operation ended, as the store accepted it. `answer` is what came back, `reason` why it failed."""

    operation: str
    state: Literal["succeeded", "failed"]
    answer: Any = None
    reason: str = ""


@attrs.frozen
class Divergence:
    """A workflow that does not do what its history says it did: both commands of the place where they part."""

    branch: str
    sequence: int
    expected: Command | None
    got: Command | None

    def __str__(self) -> str:
        return (
            f"diverged: at {self.branch or 'main'}:{self.sequence} history has "
            f"{_shown(self.expected, self.got)}, the code has {_shown(self.got, self.expected)}"
        )


def _shown(one: Command | None, beside: Command | None) -> str:
    return "no command" if one is None else f"{one.place} {one.shown(beside)}"


@attrs.frozen
class Misuse:
    """A rule of workflows that was broken, with what to do about it."""

    message: str

    def __str__(self) -> str:
        return f"refused: {self.message}"


@attrs.frozen
class Returned:
    """The workflow ended with a value (JSON). `place`: where its function begins; on which line it returned nobody knows."""

    value: Any
    place: str = attrs.field(default="", eq=False, repr=False)


@attrs.frozen
class Raised:
    """The workflow ended with an error. `trace` is the way to an error that nobody meant for a reader."""

    reason: str
    trace: str = attrs.field(default="", eq=False, repr=False)


@attrs.frozen
class Continued:
    """The workflow begins anew, with `state` and an empty history; `place`: where it said so."""

    state: Any
    place: str = attrs.field(default="", eq=False, repr=False)


#: What an operation that is noted only comes to.
NOTED = Outcome("", "succeeded")
End: TypeAlias = Returned | Raised | Continued
Trouble: TypeAlias = Divergence | Misuse


class Stopped(BaseException):
    """Thrown into a branch that is not needed any more: a race was won, or a branch beside it failed."""


class TooLong(BaseException):
    """Raised within a workflow that computes for too long."""


class ContinueAsNew(BaseException):
    """Raised by a workflow that wants its history cut."""

    def __init__(self, state: object) -> None:
        super().__init__(state)
        self.state = state


class ForeignAwait(BaseException):
    """Thrown into a workflow that awaits what nothing can record."""


@attrs.define(eq=False)
class Ask(Generic[T]):
    """One operation to be asked for when awaited; `read` makes the workflow's value of its outcome, or raises."""

    name: str
    leaf: Json  # the operation as in a plan, without its id
    read: Callable[[Outcome], T]
    id: str | None = None
    waits: bool = True  # False: noted, and the workflow goes on at once
    asked: bool = False
    made_at: Site | None = None

    def __await__(self) -> Generator[Ask[T], Outcome, T]:
        outcome = yield self
        return self.read(outcome)


@attrs.define(eq=False)
class Join:
    """Several awaitables side by side, begun in their order. `all` gives a list of values, `first` index and value."""

    mode: Literal["all", "first"]
    parts: Sequence[Awaitable[Any]]
    made_at: Site | None = None

    def __await__(self) -> Generator[Join, Any, Any]:
        return (yield self)


A = TypeVar("A", bound=Ask[Any] | Join)


@attrs.define(eq=False)
class Made:
    """What a function has made of its context and not used yet: neither awaited, nor given to something that is.

    What is left when the function returns was meant to be done, and never was. `by` is the branch that is running.
    """

    by: object = None
    left: dict[Ask[Any] | Join, object] = attrs.field(factory=dict)

    def note(self, one: A) -> A:
        self.left[one] = self.by
        return one

    def use(self, one: object) -> None:
        if isinstance(one, Ask | Join):
            self.left.pop(one, None)

    def forget(self, by: object) -> None:
        """A branch ended with an error: what it was about to do is not needed."""
        if self.left:
            self.left = {one: maker for one, maker in self.left.items() if maker is not by}

    def forgotten(self) -> Ask[Any] | Join | None:
        """The first that is left."""
        return next(iter(self.left), None)


def in_words(one: Ask[Any] | Join) -> str:
    """What a function has made, by its kind and name."""
    if isinstance(one, Join):
        return f"{'gather' if one.mode == 'all' else 'race'} of {len(one.parts)}"
    kind = "draw" if one.leaf["op"] == DRAW else one.leaf["op"]
    return f"{kind} {(one.name if one.id is None else one.id)!r}"
