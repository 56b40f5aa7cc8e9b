"""Misuse: a context that is asked for what it does not have, told with what was expected.

It is the code that is wrong, and not the task: so the task is put aside as blocked, and goes on once the code is put right.
What is raised is also the error that Python itself would raise, so that a function which caught that one goes on as it did.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ParamSpec, TypeVar

from reference_runtime.commands import Ask, Join
from reference_runtime.guessing import meant
from reference_runtime.whereabouts import caller

P = ParamSpec("P")
T = TypeVar("T")
#: What arguments of these names have to be, for the words about one that is not.
_EXPECTED: Mapping[str, tuple[type, str]] = {
    "params": (Mapping, "an object (a dict)"),
    "plan": (Mapping, "an object (a dict): a plan, or a workflow with its input"),
    "leaf": (Mapping, "an operation as in a plan (a dict)"),
    "carries": (Iterable, "ids of operations (a list)"),
    "script": (Iterable, "a list"),
    "id": (str, "a text"),
}
#: What Python says of an `await` of what cannot be awaited, in its versions.
_NOT_AWAITABLE = ("can't be used in 'await' expression", "object can't be awaited")


class WrongUse(TypeError, ValueError, AttributeError):  # noqa: N818 - it is told as what it is
    """A context was used in a way it cannot be; the text says how, and what was expected."""


def told(method: Callable[P, T]) -> Callable[P, T]:
    """A method of a context that raises `WrongUse` for what it cannot be called with, and notes by what it was called."""

    @functools.wraps(method)
    def used(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            made = method(*args, **kwargs)
        except WrongUse:
            raise
        except (TypeError, ValueError, AttributeError, KeyError) as error:
            raise WrongUse(_words(method, error, args, kwargs)) from error
        if isinstance(made, Ask | Join):
            made.made_at = caller(1)
        return made

    return used


def _words(method: Callable[..., Any], error: Exception, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    signature = inspect.signature(method)
    try:
        given: Mapping[str, Any] = signature.bind(*args, **kwargs).arguments
    except TypeError as unbound:
        unknown = next((name for name in kwargs if name not in signature.parameters), "")
        return (
            f"ctx.{method.__name__}: {unbound}{meant(unknown, signature.parameters)}; it is {_shown(method, signature)}"
        )
    for name, value in given.items():
        if value is not None and name in _EXPECTED and not isinstance(value, _EXPECTED[name][0]):
            return f"ctx.{method.__name__}: {name} is {value!r:.80}; expected {_EXPECTED[name][1]}"
    return f"ctx.{method.__name__}: {error}{' is missing' if isinstance(error, KeyError) else ''}"


def _shown(method: Callable[..., Any], signature: inspect.Signature) -> str:
    """How a method is called: the names of its arguments, without their types."""
    bare = [one.replace(annotation=inspect.Parameter.empty) for one in signature.parameters.values()][1:]
    return f"ctx.{method.__name__}{signature.replace(parameters=bare, return_annotation=inspect.Signature.empty)}"


def is_no_awaitable(error: BaseException, text: str) -> bool:
    """Whether an error is that of an `await` of what is none, such as a method of the context that was not called."""
    return isinstance(error, TypeError) and any(words in text for words in _NOT_AWAITABLE)
