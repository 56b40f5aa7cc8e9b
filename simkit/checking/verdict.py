"""Verdicts: linearizable, not linearizable with evidence, or inconclusive with the reason. Only the first is true."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NoReturn

import attrs

from simkit.checking.history import Operation, told
from simkit.errors import ExitCode, Problem, SimkitError

Answer = Literal["linearizable", "not linearizable", "inconclusive"]
#: So many operations, states and neighbours are printed; the evidence has all of them.
_TOLD_MAX = 6
_MS = 1_000_000


@attrs.frozen
class Evidence:
    """Why there is no order: everything that returned earlier has one, and no such order has a place for `misplaced`.

    An operation that overlaps with it may have a place in the order already, with the answer that it got later.
    """

    misplaced: Operation
    order: tuple[Operation, ...]  # of all that returned before, and of what overlaps as far as it helps
    states: tuple[Any, ...]  # in which an order of these may end
    overlapping: tuple[Operation, ...]  # operations that overlap with it
    operations: int  # of this part of the history
    exact: bool = True  # False when a bound was met before it was clear which operation has no place: it or a later one

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"  {self.misplaced}{_when(self.misplaced)}"
        which = "has" if self.exact else "or a later one has"
        if self.order:
            yield f"{which} no place, after {len(self.order)} of {self.operations} operations in order, the last of them:"
        else:
            yield f"{which} no place, before any other of {self.operations} operations"
        if len(self.order) > _TOLD_MAX:
            yield "  …"
        yield from (f"  {one}{_when(one)}" for one in self.order[-_TOLD_MAX:])
        where = "which may end in the state" if self.order else "the state being"
        yield f"{where}: {_listed([told(state) for state in self.states])}"
        if self.overlapping:
            yield "at the same time:"
            yield from (f"  {one}{_when(one)}" for one in self.overlapping[:_TOLD_MAX])
            if len(self.overlapping) > _TOLD_MAX:
                yield f"  … and {len(self.overlapping) - _TOLD_MAX} more"


class NotLinearizableError(AssertionError):
    """A history is not linearizable; a fault of the program, not of the kit."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict)
        self.verdict = verdict

    def __str__(self) -> str:
        return str(self.verdict)


@attrs.frozen
class Verdict:
    """What a check found. True only when the history is linearizable: a bound that was met is not a pass."""

    model: str
    answer: Answer
    operations: int
    parts: int
    situations: int  # distinct ones that the search met
    evidence: Evidence | None = None  # when not linearizable
    reason: str = ""  # why inconclusive

    def __bool__(self) -> bool:
        return self.answer == "linearizable"

    def __str__(self) -> str:
        begins = f"{self.answer}, as a {self.model}:"
        if self.answer == "inconclusive":
            return f"{begins} {self.reason}"
        counted = f"{begins} {self.operations} operations in {self.parts} {'part' if self.parts == 1 else 'parts'}"
        return counted if self.evidence is None else f"{counted}\n{self.evidence}"

    def confirm(self) -> None:
        """Return when linearizable; raise NotLinearizableError with the evidence, or SimkitError when inconclusive."""
        if self.answer == "not linearizable":
            raise NotLinearizableError(self)
        if not self:
            self._undecided()

    def _undecided(self) -> NoReturn:
        raise SimkitError(
            Problem(
                "check-inconclusive",
                f"the history could not be judged: {self.reason}",
                f"a check of {self.operations} operations as a {self.model}",
                "a verdict within the bounds",
                "record more, or judge a shorter history, or more parts; `bounds=Bounds(…)` sets others",
                ExitCode.INCONCLUSIVE,
            )
        )


def _when(operation: Operation) -> str:
    called, returned = operation.called_ns, operation.returned_ns
    if called is None:
        return ""
    ended = "" if returned is None else f" to {returned / _MS:g}"
    return f"   ({called / _MS:g}{ended} ms)"


def _listed(words: list[str]) -> str:
    more = f", … ({len(words)} in all)" if len(words) > _TOLD_MAX else ""
    return " or ".join(words[:_TOLD_MAX]) + more
