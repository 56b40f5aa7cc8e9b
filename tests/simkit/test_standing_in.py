"""What a run puts in place of trio's and the standard library's functions, what of it stays between runs, and who notices."""

from __future__ import annotations

import os
import random
import sys
import tempfile
import threading
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from simkit._guard import dice
from simkit._kernel import shortcuts
from simkit.guard import keeping
from simkit.tape import Tape
from simkit.world import Outcome, World, run

#: In a list, where the guard does not find it.
_REAL = [time.time]
_OURS = shortcuts.__name__.replace(".", "/")


def simulate(main: Callable[[World], object], seed: int = 1) -> Outcome[object]:
    return run(main, tape=Tape.from_seed(seed))  # type: ignore[arg-type]


async def chance(_world: World) -> tuple[float, float, float]:
    """What a program sees of time and chance."""
    await trio.sleep(1)
    return random.random(), random.gauss(0, 1), time.time()


# ---- the shared generator


@pytest.mark.parametrize("is_block", [True, False])
def test_the_shared_generator_is_put_aside_and_back(monkeypatch: pytest.MonkeyPatch, is_block: bool) -> None:
    """As a block of memory, or by its own methods where that block is not known: the half of a pair that `gauss` keeps too."""
    monkeypatch.setattr(dice, "_is_block", is_block and dice._is_block)
    random.seed(5)
    random.gauss(0, 1)
    before = random.getstate()
    back = dice.seed(7)
    expected = random.Random(random.Random(7).getrandbits(64))
    assert [random.random() for _ in range(1000)] == [expected.random() for _ in range(1000)]
    assert random.gauss(0, 1) == expected.gauss(0, 1)
    back()
    assert random.getstate() == before


@pytest.mark.parametrize("is_block", [True, False])
def test_a_seed_that_was_seen_gives_what_it_gave(monkeypatch: pytest.MonkeyPatch, is_block: bool) -> None:
    """The generator of a tape is copied when it is still known, and made when it is not: the same in both cases."""
    monkeypatch.setattr(dice, "_is_block", is_block and dice._is_block)
    monkeypatch.setattr(dice, "_kept", {})
    expected = random.Random(random.Random(7).getrandbits(64)).random()
    asked: list[int] = []

    def drawn(entropy: int) -> float:
        def noise_seed() -> int:
            asked.append(entropy)
            return entropy + 4

        back = dice.seed_for(entropy, noise_seed)
        try:
            return random.random()
        finally:
            back()

    random.seed(5)
    random.gauss(0, 1)
    before = random.getstate()
    assert drawn(3) == drawn(3) == expected
    assert len(asked) == (1 if dice._is_block else 2)
    for entropy in range(100, 100 + dice._KEPT_MAX):
        assert drawn(entropy) != expected
    assert len(dice._kept) == (dice._KEPT_MAX if dice._is_block else 0)
    assert drawn(3) == expected
    assert random.getstate() == before


def test_the_block_is_known_on_this_python() -> None:
    """Where the generator's state lies is known for this Python, so that nothing falls back."""
    assert dice._is_block


@pytest.mark.parametrize("kept", [False, True])
def test_a_run_leaves_the_generator_of_the_outside_alone(kept: bool) -> None:
    """What the outside draws after a run is what it would have drawn without one."""
    random.seed(11)
    expected = [random.random() for _ in range(3)]
    random.seed(11)
    seen = []
    if kept:
        with keeping():
            for _ in range(3):
                seen.append(random.random())
                simulate(chance)
    else:
        for _ in range(3):
            seen.append(random.random())
            simulate(chance)
    assert seen == expected


# ---- the guard's stand-ins between runs


def test_stand_ins_stay_for_the_block_and_no_longer() -> None:
    """Inside the block they stay between runs; after it the real functions are back."""
    assert time.time is _REAL[0]
    with keeping():
        stand_in = time.time
        assert stand_in is not _REAL[0]
        assert abs(time.time() - _REAL[0]()) < 60, "outside a run they tell the real time"
        with keeping():
            simulate(chance)
        assert time.time is stand_in
    assert time.time is _REAL[0]


def test_a_run_in_a_block_is_the_run_that_it_is_without() -> None:
    """The digest does not tell whether the stand-ins were kept."""
    alone = simulate(chance)
    with keeping():
        inside = [simulate(chance) for _ in range(3)]
    assert {(one.digest, one.value) for one in inside} == {(alone.digest, alone.value)}


def test_a_folder_of_the_outside_is_removed_in_a_block(tmp_path: Path) -> None:
    """What tempfile makes between two runs is of the machine, and goes when its object does."""
    with keeping():
        simulate(chance)
        folder = tempfile.TemporaryDirectory(dir=tmp_path)
        assert os.listdir(tmp_path)  # noqa: PTH208  # which has a stand-in
        simulate(chance)
        folder.cleanup()
        forgotten = tempfile.TemporaryDirectory(dir=tmp_path)
        with pytest.warns(ResourceWarning):
            del forgotten
        assert not os.listdir(tmp_path)  # noqa: PTH208  # likewise


def test_mocks_of_the_outside_come_and_go_within_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever patches the same names in between finds and leaves them as expected."""
    with keeping():
        simulate(chance)
        with monkeypatch.context() as patch:
            patch.setattr(time, "time", lambda: 42.0)
            assert time.time() == 42.0
            outcome = simulate(chance)
            assert outcome.value[2] == 42.0, "who mocks what is virtual means it"  # type: ignore[index]
        assert simulate(chance).value[2] != 42.0  # type: ignore[index]
    assert time.time is _REAL[0]


def test_a_module_that_comes_within_a_block_is_guarded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module imported between two runs of a block gets its stand-ins too."""
    late = types.ModuleType("simkit_late")
    late.now = _REAL[0]  # type: ignore[attr-defined]

    async def main(_world: World) -> bool:
        return bool(late.now() == time.time())  # type: ignore[attr-defined]

    with keeping():
        simulate(chance)
        monkeypatch.setitem(__import__("sys").modules, "simkit_late", late)
        assert simulate(main).unwrap() is True
    assert late.now is _REAL[0]  # type: ignore[attr-defined]


def test_a_module_that_comes_in_place_of_another_is_guarded() -> None:
    """There are as many modules as before, and by the same names: still it is another one."""
    for _ in range(3):
        late = types.ModuleType("simkit_late")
        late.now = _REAL[0]  # type: ignore[attr-defined]

        async def main(_world: World, late: Any = late) -> bool:
            return bool(late.now() == time.time())

        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(sys.modules, "simkit_late", late)
            assert simulate(main).unwrap() is True


def test_a_block_that_fails_is_left_in_order() -> None:
    """An exception takes the stand-ins with it."""

    def fail() -> None:
        with keeping():
            simulate(chance)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert time.time is _REAL[0]


# ---- the kernel's stand-ins in trio


async def naps() -> list[object]:
    """Sleeps, checkpoints, scopes and a lock, and what became of them."""
    told: list[object] = []
    lock = trio.Lock()
    with trio.move_on_after(2) as scope:
        await trio.sleep(1)
        async with lock:
            await trio.lowlevel.checkpoint()
        await trio.sleep(5)
    begun = trio.current_time() - 2
    told += [scope.cancelled_caught]
    with trio.CancelScope() as scope:
        scope.cancel()
        try:
            await trio.sleep(0)
        except trio.Cancelled:
            told.append("cancelled")
            raise
    for wrong in (-1.0, float("nan")):
        with pytest.raises(ValueError, match="must"):
            await trio.sleep(wrong)
    with trio.move_on_after(1):
        await trio.sleep(float("inf"))
    told.append(round(trio.current_time() - begun, 6))
    return told


def test_outside_a_simulation_trio_is_what_it_was() -> None:
    """With the equivalents installed, trio's own loop runs as before."""
    clock = MockClock(autojump_threshold=0)
    shortcuts.give_back()
    assert _OURS not in trio.sleep.__code__.co_filename
    own = trio.run(naps, clock=clock)
    shortcuts.take()
    assert _OURS in trio.sleep.__code__.co_filename
    again = MockClock(autojump_threshold=0)
    taken = trio.run(naps, clock=again)
    assert taken == own


@pytest.mark.parametrize("kernel", ["fast", "fallback"])
def test_inside_it_says_the_same(kernel: str) -> None:
    """Inside a simulation the equivalents answer as trio's functions do."""

    async def main(_world: World) -> list[object]:
        return await naps()

    outcome = run(main, tape=Tape.from_seed(1), kernel=kernel)  # type: ignore[arg-type]
    assert outcome.unwrap() == [True, "cancelled", 3.0]


def test_trio_in_another_thread_is_not_mistaken_for_the_simulation() -> None:
    """A real trio beside a simulation asks for its own time and its own tasks."""
    told: list[object] = []
    begun, ended = threading.Event(), threading.Event()

    async def real() -> None:
        begun.set()
        await trio.to_thread.run_sync(ended.wait)
        task = trio.lowlevel.current_task()
        with trio.move_on_after(0.001):
            await trio.sleep(100)
        await trio.lowlevel.checkpoint()
        told.append(type(task).__name__)

    thread = threading.Thread(target=trio.run, args=(real,))

    async def main(_world: World) -> str:
        await trio.sleep(1)
        return type(trio.lowlevel.current_task()).__name__

    thread.start()
    begun.wait(10)
    outcome = simulate(main)
    ended.set()
    thread.join(10)
    assert outcome.unwrap() == "SimTask"
    assert told == ["Task"]
