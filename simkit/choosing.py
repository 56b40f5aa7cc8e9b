"""A strategy as the kernel asks for it: by index where it can, else by views of the tasks; and held to what it may say."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from simkit._kernel.kernel import Kernel
from simkit._kernel.stepping import Peek
from simkit._kernel.timers import BoundMetError
from simkit.errors import SimkitError
from simkit.strategy import RandomWalk, Strategy, StrategyError, TaskView

if TYPE_CHECKING:
    from trio.lowlevel import Task


class Choice:
    """A strategy, as the kernel asks for it."""

    def __init__(self, strategy: Strategy) -> None:
        self.always = bool(getattr(strategy, "every_step", False))
        self._strategy = strategy
        self.index: Callable[[int, int], int] | None = getattr(strategy, "index", None)
        if self.index is not None and not type(strategy).__module__.startswith("simkit."):
            self.index = self._checked(self.index)  # the kernel takes what ours say as it is
        self.uniform = strategy.uniform if type(strategy) is RandomWalk else None
        #: Set while a run goes on.
        self.kernel: Kernel | None = None
        self._views: _Views | None = None

    def pick(self, runnable: list[Task], step: int) -> int:
        if self._views is None:
            assert self.kernel is not None
            self._views = _Views(self.kernel)
        views = list(map(self._views.__getitem__, runnable[:]))
        try:
            index = self._strategy.pick(views, step)
        except SimkitError:
            raise
        except (BoundMetError, Exception) as error:
            raise self._fault(step, error) from error
        if type(index) is not int or not 0 <= index < len(views):
            raise StrategyError.nonsense(self._strategy, step, index, len(views))
        assert self.kernel is not None
        if self.kernel.pending:  # what was declared is being done
            self.kernel.pending.pop(views[index].number, None)
        return index

    def _checked(self, index: Callable[[int, int], int]) -> Callable[[int, int], int]:
        def checked(count: int, step: int) -> int:
            try:
                picked = index(count, step)
            except SimkitError:
                raise
            except (BoundMetError, Exception) as error:
                raise self._fault(step, error) from error
            if type(picked) is not int or not 0 <= picked < count:
                raise StrategyError.nonsense(self._strategy, step, picked, count)
            return picked

        return checked

    def _fault(self, step: int, error: BoundMetError | Exception) -> StrategyError:
        """What is to be said of a strategy that raised, or did not come to an end."""
        if isinstance(error, BoundMetError):
            return StrategyError.endless(self._strategy, step, error.args[0])
        return StrategyError.of(self._strategy, f"step {step} of the schedule", error)

    def let_go(self) -> None:
        """The run is over."""
        self.kernel = self._views = None


class _Views(dict["Task", TaskView]):
    """The view of each task, made when it is first seen; asked for every runnable task at every step."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__()
        self._kernel = kernel

    def __missing__(self, task: Task) -> TaskView:
        kernel = self._kernel
        number, owner = kernel.number(task), kernel.owner(task)
        peek = Peek(task, number, kernel.pending)
        view = self[task] = TaskView(number, task.name, None if owner is None else owner.label, peek)
        return view
