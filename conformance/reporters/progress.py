"""Progress on standard error: a live line on a terminal, else one line every ten seconds; with an estimate of what is left."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TextIO

import attrs
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from conformance.events import Installing, Progress

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.events import Event

EVERY_S = 10.0
#: An estimate needs this many seconds to go by.
ESTIMATE_AFTER_S = 5.0
_REDRAWS_S = 0.1
_TASK = TaskID(0)  # the only one


class Shower(Protocol):
    """Shows progress; `pause` gives the terminal to other output until the next event."""

    def show(self, event: Event) -> None: ...

    def pause(self) -> None: ...


def shower(stream: TextIO, environ: Mapping[str, str] | None = None) -> Shower:
    """A live line when `stream` is a real terminal and this is no CI; else lines."""
    env = os.environ if environ is None else environ
    live = stream.isatty() and not env.get("CI") and env.get("TERM") != "dumb"
    return Live(Console(file=stream)) if live else Lines(stream)


@attrs.define
class Estimate:
    """How long the rest will take at the rate so far."""

    _began: float = 0.0
    _before: int | None = None  # how many were done when the clock began
    _unit: str = ""

    def left(self, event: Progress, now: float) -> str:
        """Words to put after how far it is; none while there is too little to go by."""
        if self._before is None or event.done < self._before or event.unit != self._unit:
            self._began, self._before, self._unit = now, event.done, event.unit
        done, elapsed = event.done - self._before, now - self._began
        if event.stopping or event.total is None or event.done >= event.total or not done or elapsed < ESTIMATE_AFTER_S:
            return ""
        seconds = elapsed * (event.total - event.done) / done
        return f" · about {seconds / 60:.0f} min left" if seconds >= 90 else f" · about {max(1, round(seconds))} s left"


@attrs.define
class Lines:
    """At most one line every ten seconds, of progress or of an installation; only the first of either is told at once."""

    stream: TextIO
    clock: Callable[[], float] = time.monotonic
    _began: float | None = None
    _last: float | None = None
    _estimate: Estimate = attrs.field(factory=Estimate)
    _installing: bool = False

    def show(self, event: Event) -> None:
        now = self.clock()
        if self._began is None:
            self._began = now
        if isinstance(event, Progress):
            left = self._estimate.left(event, now)
            self._installing = False
        elif not isinstance(event, Installing):
            return
        first, self._installing = not self._installing, isinstance(event, Installing)
        if not (self._installing and first) and now - (self._began if self._last is None else self._last) < EVERY_S:
            return
        self._last = now
        self._say(now, event.text if isinstance(event, Installing) else _words(event) + left)

    def _say(self, now: float, text: str) -> None:
        assert self._began is not None
        self.stream.write(f"[{now - self._began:5.0f} s] {text}\n")
        self.stream.flush()

    def pause(self) -> None:
        """Lines disturb nothing."""


@attrs.define
class Live:
    """A bar that is redrawn only when something is shown (no thread) and taken away while others print."""

    console: Console
    clock: Callable[[], float] = time.monotonic
    _bar: Bar | None = None
    _shown: bool = False
    _last: float = float("-inf")
    _estimate: Estimate = attrs.field(factory=Estimate)

    def show(self, event: Event) -> None:
        now = self.clock()
        left = self._estimate.left(event, now) if isinstance(event, Progress) else ""
        if not isinstance(event, Progress | Installing) or now - self._last < _REDRAWS_S:
            return
        self._last = now
        if self._bar is None:
            self._bar = _make_bar(self.console)
        if isinstance(event, Progress):
            self._bar.update(
                _TASK,
                completed=event.done,
                total=event.total,
                description=" · ".join(filter(None, (event.unit, event.note))) + left,
            )
        else:
            self._bar.update(_TASK, description=event.text)
        if self._shown:
            self._bar.refresh()
        else:
            self._bar.start()
        self._shown = True

    def pause(self) -> None:
        if self._bar is not None and self._shown:
            self._bar.stop()
            self._shown = False
            self._last = float("-inf")


def _make_bar(console: Console) -> Bar:
    columns = (
        TimeElapsedColumn(),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TextColumn("{task.description}", markup=False),
    )
    bar = Bar(*columns, console=console, transient=True, auto_refresh=False)
    bar.add_task("", total=None)
    return bar


def _described(event: Progress) -> str:
    return event.unit + (f" · {event.note}" if event.note else "")


def _words(event: Progress) -> str:
    of = f"/{event.total}" if event.total is not None else ""
    return f"{event.done}{of} {event.unit}" + (f" · {event.note}" if event.note else "")
