"""What the parser of the command line refuses, as a problem that says what was expected and which command has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cyclopts import CoercionError, UnknownOptionError

from conformance import invocation
from conformance.cli import usage
from simkit.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cyclopts import App, CycloptsError

#: What can be typed where such a value is wanted.
_WANTED = {int: "a whole number", float: "a number"}


def problem(error: CycloptsError, words: Sequence[str], app: App) -> Problem:
    """The problem of a command line that was refused with `error`."""
    error.verbose = False
    command = next((word for word in words if word in app), "")
    hint = f"`simkit {command} --help` tells the options" if command else "`simkit --help` tells the commands"
    if isinstance(error, UnknownOptionError) and command:
        hint = "; ".join(filter(None, (_elsewhere(error.token.keyword or error.token.value, app), hint)))
    return Problem("usage", str(error).strip(), usage.program(words), _expected(error), hint)


def _expected(error: CycloptsError) -> str:
    """What a value should have been, where the message does not say it."""
    wanted: Any = error.target_type if isinstance(error, CoercionError) else None
    if wanted not in _WANTED or not isinstance(error, CoercionError) or error.token is None:
        return ""
    return f"{error.token.keyword} and {_WANTED[wanted]}" if error.token.keyword else _WANTED[wanted]


def _elsewhere(option: str, app: App) -> str:
    """Which commands have the option that this one has not."""
    having = [invocation.line(name, option) for name in _commands(app) if option in _options(app, name)]
    return f"there is {', '.join(f'`{one}`' for one in having)}" if having else ""


def _commands(app: App) -> Iterator[str]:
    yield from (name for name in app if not name.startswith("-"))


def _options(app: App, command: str) -> set[str]:
    return {name for argument in app[command].assemble_argument_collection() for name in argument.names}
