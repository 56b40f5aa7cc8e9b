"""Virtual time as a program sees it: whole nanoseconds underneath, and never short of what was waited for."""

from __future__ import annotations

import random

import trio

from simkit.tape import Tape
from simkit.world import Limits, World, run


def test_a_time_that_was_waited_for_has_come() -> None:
    """Deadlines and sleeps that are no whole nanoseconds end at or after them, never a hair before (found by seed 150)."""
    dice = random.Random(7)
    waits = [dice.random() * 10 ** dice.randrange(-9, 2) for _ in range(300)]

    async def main(_world: World) -> None:
        for wait in waits:
            deadline = trio.current_time() + wait
            with trio.move_on_at(deadline):
                await trio.sleep_forever()
            assert trio.current_time() >= deadline
            begun = trio.current_time()
            await trio.sleep(wait)
            assert trio.current_time() >= begun + wait

    run(main, tape=Tape.from_seed(1), limits=Limits(steps=100_000)).unwrap()
