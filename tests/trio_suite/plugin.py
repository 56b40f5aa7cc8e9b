"""A pytest plugin, for trio's own tests: `trio.run` runs on simkit's kernel, and what is listed is expected to fail.

Loaded into a pytest of its own (see `test_trio_suite.py`) that runs the tests which trio ships. `SIMKIT_TRIO_KERNEL` names
the loop, fast or fallback.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import trio
import trio.testing
from trio._core import _run
from trio.abc import Clock

import simkit
from simkit._kernel import fallback, loop, threads
from simkit._kernel.kernel import Kernel
from simkit.tape import Tape
from simkit.world import World
from tests.trio_suite.skipped import FAILING, IN_WORLD, UNSAFE

_KERNEL: Any = os.environ.get("SIMKIT_TRIO_KERNEL", "fast")
_DRIVE = {"fast": loop.drive, "fallback": fallback.drive}[_KERNEL]
threads.STUCK_S = 0.5  # some tests let a thread wait for another one
_STEPS_MAX = 2_000_000
_TIME_NS_MAX = 10**9 * 3600 * 24 * 365
_NS = 10**9
#: The test that runs, when it has a world.
_in_world: list[str] = []


class VirtualMockClock(Clock):
    """trio's MockClock as trio's tests use it, told by the kernel's clock, which always jumps when nothing is runnable."""

    def __init__(self) -> None:
        self.kernel: Kernel | None = None

    def current_time(self) -> float:
        return 0.0 if self.kernel is None else self.kernel.timers.now_ns / _NS

    def start_clock(self) -> None:
        """The kernel's clock has begun."""

    def deadline_to_sleep_time(self, deadline: float) -> float:
        raise NotImplementedError("asked by a loop that is not the kernel's")

    def jump(self, seconds: float) -> None:
        if seconds < 0:
            raise ValueError("time can't go backwards")
        assert self.kernel is not None
        self.kernel.timers.jump(round(seconds * _NS))


def run(
    async_fn: Callable[..., Any],
    *args: Any,
    clock: Any = None,
    instruments: Sequence[Any] = (),
    restrict_keyboard_interrupt_to_checkpoints: bool = False,
    strict_exception_groups: bool = True,
) -> Any:
    """As `trio.run`, on the kernel."""
    if hasattr(_run.GLOBAL_RUN_CONTEXT, "runner"):
        raise RuntimeError("Attempted to call run() from inside a run()")
    if instruments or restrict_keyboard_interrupt_to_checkpoints:
        raise NotImplementedError("the kernel has neither instruments nor signals")
    if _in_world:
        return _run_in_world(async_fn, args, clock)
    kernel = Kernel(None, lambda _: None, steps_max=_STEPS_MAX, time_ns_max=_TIME_NS_MAX)
    kernel.runner.strict_exception_groups = strict_exception_groups
    if isinstance(clock, VirtualMockClock):
        clock.kernel = kernel
    elif clock is not None:
        raise NotImplementedError("the kernel has its own clock")
    with threads.installed(kernel, lambda: 50_000):
        return kernel.run(_DRIVE, async_fn, args)


def _run_in_world(async_fn: Callable[..., Any], args: tuple[Any, ...], clock: Any) -> Any:
    async def main(world: World) -> Any:
        if isinstance(clock, VirtualMockClock):
            clock.kernel = world.kernel
        return await async_fn(*args)

    return simkit.run(main, tape=Tape.from_seed(0), kernel=_KERNEL, guard=False).unwrap()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Note whether this test has a world."""
    _in_world[:] = [item.name] if item.path.stem in IN_WORLD else []


for _module in (trio, trio._core, _run):
    _module.run = run  # type: ignore[attr-defined]


@pytest.fixture
def mock_clock() -> Clock:
    """Replaces that of trio's plugin."""
    return VirtualMockClock()


@pytest.fixture
def autojump_clock() -> Clock:
    """Replaces that of trio's plugin."""
    return VirtualMockClock()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Expect to fail what is listed, and nothing else."""
    listed = {f"{name.split('::')[0]}" for name in (*FAILING, *UNSAFE)} & {item.path.stem for item in items}
    left = {name for name in (*FAILING, *UNSAFE) if name.split("::")[0] in listed}
    for item in items:
        name = f"{item.path.stem}::{item.name}"  # with its parameters
        if name not in FAILING:
            name = f"{item.path.stem}::{getattr(item, 'originalname', item.name)}"
        left.discard(name)
        if name in UNSAFE:
            item.add_marker(pytest.mark.skip(reason=UNSAFE[name]))
        elif name in FAILING:
            item.add_marker(pytest.mark.xfail(reason=FAILING[name], strict=True))
    assert not left, f"listed, and not there: {sorted(left)}"
