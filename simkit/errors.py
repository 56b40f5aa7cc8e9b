"""Errors as values that print themselves: what happened, where, what was expected, what to do.

Every error a user can meet in the kit is a `SimkitError` carrying one frozen `Problem`; the command line prints it and
leaves with its exit code. Both are pickle-safe, so that a worker process can send one home.
"""

from __future__ import annotations

import enum

import attrs

#: So much of a wrong value is shown.
_SHOWN_CHARS = 80


class ExitCode(enum.IntEnum):
    """Exit codes of every `simkit` command; with several at once the first of `ORDER` wins."""

    PASSED = 0
    VIOLATION = 1
    USAGE = 2
    INCONCLUSIVE = 3
    TARGET = 4
    NOTHING_SELECTED = 5
    DIVERGED = 6
    INTERNAL = 70
    INTERRUPTED = 130


#: Precedence when one command met several outcomes. What was judged outranks a store that could not be written: a full
#: disk turns a pass into `USAGE` (its certificate is not there), and hides no violation.
ORDER = (
    ExitCode.INTERRUPTED,
    ExitCode.INTERNAL,
    ExitCode.DIVERGED,
    ExitCode.VIOLATION,
    ExitCode.TARGET,
    ExitCode.INCONCLUSIVE,
    ExitCode.NOTHING_SELECTED,
    ExitCode.USAGE,
    ExitCode.PASSED,
)


def worst(codes: list[ExitCode]) -> ExitCode:
    """The one exit code that stands for `codes`; `PASSED` for none."""
    return min(codes, key=ORDER.index, default=ExitCode.PASSED)


@attrs.frozen
class Problem:
    """One thing that went wrong, told so that the reader can act on it."""

    code: str  # stable, kebab-case, e.g. "adapter-silent"
    what: str
    where: str
    expected: str = ""
    hint: str = ""
    exit_code: ExitCode = ExitCode.USAGE

    def __str__(self) -> str:
        rows = [f"error[{self.code}]: {self.what}", f"  where:    {self.where}"]
        if self.expected:
            rows.append(f"  expected: {self.expected}")
        if self.hint:
            rows.append(f"  hint:     {self.hint}")
        return printable("\n".join(rows))


class SimkitError(Exception):
    """An error of the kit, its input or its target; `problem` tells which."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.problem = problem

    def __str__(self) -> str:
        return str(self.problem)


class OptionError(SimkitError, ValueError):
    """An option or argument has a value that it cannot have; a ValueError too, for whoever expects one."""


def shown_of(value: object) -> str:
    """`repr(value)`, also of what cannot be shown: a program's values do as they like."""
    try:
        return repr(value)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001
        return f"<{type(value).__name__} whose repr() raises {type(error).__name__}>"


def printable(text: str) -> str:
    """The text as it may stand on a terminal, whoever wrote it: all but new lines and tabs that cannot be printed, the escapes
    that move a cursor or set a title among them, is told by its number.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in "\n\t" else ascii(char)[1:-1] for char in text)


def told(error: BaseException) -> str:
    """The type and the words of an exception, fit for a terminal; also of one that has none to give."""
    try:
        text = f"{type(error).__name__}: {error}"
    except KeyboardInterrupt:
        raise
    except BaseException as worse:  # noqa: BLE001
        return f"{type(error).__name__}: <its str() raises {type(worse).__name__}>"
    return printable(text)


def wrong(option: str, value: object, expected: str, hint: str = "") -> OptionError:
    """The error for `option` (as the caller writes it, e.g. `NetworkOptions.latency_ns`) that has `value`."""
    shown = shown_of(value)
    if len(shown) > _SHOWN_CHARS:
        shown = shown[:_SHOWN_CHARS] + "…"
    return OptionError(Problem("option-wrong", f"{option} cannot be {shown}", option, expected, hint))
