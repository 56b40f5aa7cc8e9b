"""A loose replay that looks at chosen steps: whose they are, and where the task stands before it takes them."""

from __future__ import annotations

import sysconfig
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from simkit.shrinking.loose import LooseSchedule
from simkit.strategy import Segment, TaskView

if TYPE_CHECKING:
    from simkit._kernel.kernel import Kernel

#: A task's name, and its stack outermost first, as "file:line in function".
Witnessed = tuple[str, tuple[str, ...]]

_NOT_THE_PROGRAM = tuple(
    f"{folder}/"
    for folder in (Path(__file__).parent.parent, Path(trio.__file__).parent, Path(sysconfig.get_path("stdlib")))
)


class Witness(LooseSchedule):
    """Follows `plan`, and sees the steps `(task number, which of its steps, from 1)`."""

    def __init__(self, plan: Iterable[Segment], steps: Iterable[tuple[int, int]]) -> None:
        super().__init__(plan)
        self.kernel: Kernel | None = None
        self.seen: dict[tuple[int, int], Witnessed] = {}
        self._watched = frozenset(steps)
        self._counts: dict[int, int] = {}

    def pick(self, runnable: Sequence[TaskView], step: int) -> int:
        """As the loose schedule; looks before the step is taken."""
        index = super().pick(runnable, step)
        view = runnable[index]
        nth = self._counts[view.number] = self._counts.get(view.number, 0) + 1
        if nth == 1:  # the steps that it may never take are its own as well
            self.seen.update(
                {step: (_short(view.name), ()) for step in sorted(self._watched) if step[0] == view.number}
            )
        if (view.number, nth) in self._watched:
            self.seen[view.number, nth] = (_short(view.name), self._stack(view.number))
        return index

    def _stack(self, number: int) -> tuple[str, ...]:
        kernel = self.kernel
        tasks = [] if kernel is None else [task for task in kernel.tasks() if kernel.number(task) == number]
        return tuple(
            f"{Path(frame.f_code.co_filename).name}:{line} in {frame.f_code.co_name}"
            for task in tasks
            for frame, line in task.iter_await_frames()
            if not frame.f_code.co_filename.startswith(_NOT_THE_PROGRAM)
        )


def _short(name: str) -> str:
    """A task's name without its module and the functions around it."""
    return name.rsplit(".", 1)[-1]
