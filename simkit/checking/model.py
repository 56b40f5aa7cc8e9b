"""Models: what an object does when one client alone uses it. Pure values and pure functions."""

from __future__ import annotations

import enum
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Final

import attrs

#: What is asked of the object: the operation's name, then its arguments, as in `("put", "key", 1)`.
Asked = tuple[Any, ...]
State = Hashable


class _Sign(enum.Enum):
    REFUSED = "refused"
    UNKNOWN = "unknown"
    WHOLE = "whole"

    def __repr__(self) -> str:
        return self.name


#: What `Model.step` returns when the object cannot give this answer in this state.
REFUSED: Final = _Sign.REFUSED
#: The answer of an operation that never returned; a model accepts it wherever some answer is possible.
UNKNOWN: Final = _Sign.UNKNOWN
#: What `Model.partition` returns for an operation that concerns all parts; a history that has one is not taken apart.
WHOLE: Final = _Sign.WHOLE


def _one_part(_asked: Asked) -> Hashable:
    return None


def _may_write(_asked: Asked, _answer: Any) -> bool:
    return False


@attrs.frozen
class Model:
    """What an object does, step by step.

    Args:
        name: how reports call it.
        initial: the state that every part begins in. States are hashable, and equal states behave the same.
        step: `step(state, asked, answer)` gives the state after the operation, or `REFUSED` when the object could not
            have given this answer. It must be a function of its arguments, and accept `UNKNOWN` for an answer.
        partition: `partition(asked)` names the part of the object that an operation concerns. Parts that are
            independent are judged one by one, which is exact (Herlihy and Wing's locality) and much faster.
        reads: `reads(asked, answer)` says whether the operation leaves *every* state as it is. Saying so is optional, and
            makes a search faster: such an operation is placed as soon as its answer is right.
        grows: `grows(asked)` says that an operation only adds to a state, as an append does. Optional, with `within`.
        within: `within(state, asked, answer)` says whether operations that grow may lead from the state to one in which
            this answer, of an operation that `reads`, is right. Where they cannot, a search looks no further.
        operations: the names of the operations that the object has, each with the names of its arguments ("key value").
            Optional: a check then says at once of an operation that it is none of these.
    """

    name: str
    initial: State
    step: Callable[[Any, Asked, Any], Any]
    partition: Callable[[Asked], Hashable] = _one_part
    reads: Callable[[Asked, Any], bool] = _may_write
    grows: Callable[[Asked], bool] | None = None
    within: Callable[[Any, Asked, Any], bool] | None = None
    operations: Mapping[str, str] | None = None

    def knows(self, asked: Asked) -> bool:
        """Whether the object has such an operation, with so many arguments; always when the model does not list any."""
        if self.operations is None:
            return True
        arguments = self.operations.get(asked[0]) if isinstance(asked[0], str) else None
        return arguments is not None and len(arguments.split()) == len(asked) - 1
