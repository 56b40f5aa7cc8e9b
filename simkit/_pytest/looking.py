"""Looking at a replay on its way: stop before an event (`--simkit-until`), debug there (`--simkit-break`), write the trace."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import attrs
import pytest

from simkit.errors import ExitCode, Problem, SimkitError

if TYPE_CHECKING:
    from simkit.stepwise import Moment

#: By the attribute of `Look` that each gives.
OPTIONS = {"until": "--simkit-until", "break_at": "--simkit-break", "trace": "--simkit-trace"}


@attrs.frozen
class Look:
    """What somebody wants to see of a replay."""

    until: int | None = None
    break_at: int | None = None
    trace: str | None = None

    def check(self, *, replays: bool) -> None:
        """Raise SimkitError for a look at what is no replay, or for two places to stop at."""
        asked = [option for name, option in OPTIONS.items() if getattr(self, name) is not None]
        if asked and not replays:
            raise _misused(f"{', '.join(asked)}: there is nothing to look at", "--simkit-replay CASE beside it")
        if self.until is not None and self.break_at is not None:
            raise _misused("--simkit-until and --simkit-break both say where to stop", "one of them")

    @contextlib.contextmanager
    def sink(self) -> Iterator[Any]:
        """The open file for the trace; None for none. SimkitError where it cannot be written."""
        if self.trace is None:
            yield None
            return
        with contextlib.ExitStack() as stack:
            try:
                file = stack.enter_context(Path(self.trace).open("w", encoding="utf-8"))
            except OSError as error:
                raise _misused(f"--simkit-trace: {error}", "a file that can be written") from None
            yield file


class Debugger:
    """Opens the debugger with the terminal given back by pytest, from then on to the end of the block that it is used in:
    whoever steps on from there types again.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._capture: Any = config.pluginmanager.getplugin("capturemanager")
        self._is_open = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        if self._is_open and self._capture is not None:
            self._capture.resume()
        self._is_open = False

    def __call__(self, moment: Moment) -> None:
        from simkit.debugging import debug

        if not self._is_open and self._capture is not None:
            self._capture.suspend(in_=True)
        self._is_open = True
        debug(moment)


@contextlib.contextmanager
def misuse_ends_the_session() -> Iterator[None]:
    """What is wrong with the command line, and only a run can tell, is no failure of the test: no report, nothing for --lf."""
    try:
        yield
    except SimkitError as error:
        problem = error.problem
        if problem.exit_code is not ExitCode.USAGE:
            raise
        pytest.exit(f"{problem.what}; expected {problem.expected}", returncode=pytest.ExitCode.USAGE_ERROR)


def check_terminal(config: pytest.Config) -> None:
    """Raise SimkitError when nobody could type into the debugger. To be asked as the session is configured: pytest captures
    nothing between then and the first test but standard input, which it takes again there.
    """
    from simkit.debugging import check_debugger

    if config.getoption("dist", "no") != "no":
        raise _misused("--simkit-break: processes of xdist have no terminal", "--simkit-break with -n0")
    capture: Any = config.pluginmanager.getplugin("capturemanager")
    if capture is not None:
        capture.suspend(in_=True)
    try:
        check_debugger()
    except SimkitError as error:
        hint = "look at the same moment with --simkit-until, or write the trace with --simkit-trace"
        raise SimkitError(attrs.evolve(error.problem, where="the command line", hint=hint)) from None


def _misused(what: str, expected: str) -> SimkitError:
    return SimkitError(Problem("replay-look", what, "the command line", expected, exit_code=ExitCode.USAGE))
