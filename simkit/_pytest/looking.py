"""Looking at a replay on its way: stop before an event (`--simkit-until`), debug there (`--simkit-break`), write the trace."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
        """The open file for the trace; None for none."""
        if self.trace is None:
            yield None
            return
        with Path(self.trace).open("w", encoding="utf-8") as file:
            yield file


class Debugger:
    """Opens the debugger with the terminal given back by pytest."""

    def __init__(self, config: pytest.Config) -> None:
        self._capture: Any = config.pluginmanager.getplugin("capturemanager")

    def __call__(self, moment: Moment) -> None:
        from simkit.debugging import debug

        with self._uncaptured():
            debug(moment)

    def check(self) -> None:
        """Raise SimkitError when nobody could type."""
        from simkit.debugging import check_debugger

        with self._uncaptured():
            check_debugger()

    @contextlib.contextmanager
    def _uncaptured(self) -> Iterator[None]:
        with self._capture.global_and_fixture_disabled() if self._capture is not None else contextlib.nullcontext():
            yield


def _misused(what: str, expected: str) -> SimkitError:
    return SimkitError(Problem("replay-look", what, "the command line", expected, exit_code=ExitCode.USAGE))
