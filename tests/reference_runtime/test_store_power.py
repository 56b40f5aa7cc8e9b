"""The store on a disk whose syncs fail: what the next server shows as committed outlives a power loss all the same."""

from __future__ import annotations

import errno

import pytest
import trio

from reference_runtime import Store, views
from reference_runtime.model import Policy
from simkit import Tape, World, run
from tests.runtime_rig import call, plan

PATH = "/state/runtime.db"


def opened() -> Store:
    return Store.open(PATH, policy=Policy())


@pytest.mark.parametrize("failing", range(1, 12))
@pytest.mark.parametrize("mode", ["lose", "sample"])
def test_a_failed_sync_is_not_built_upon(failing: int, mode: str) -> None:
    """The first server stops over it. The second acknowledges two more tasks, and loses its power: both are there, and so is
    whatever it had shown of the first.
    """
    acknowledged: set[str] = set()
    syncs = 0

    async def first() -> None:
        store = opened()
        store.submit("one", plan(call("a")))
        acknowledged.add("one")
        store.submit("two", plan(call("a")))
        acknowledged.add("two")

    async def second() -> None:
        store = opened()
        shown = {task for task in ("one", "two") if views.status(store, task)["state"] != "unknown"}
        assert acknowledged <= shown
        acknowledged.update(shown)
        for task in ("three", "four"):
            store.submit(task, plan(call("a")))
            acknowledged.add(task)
        await trio.sleep_forever()

    async def third() -> set[str]:
        store = opened()
        return {task for task in acknowledged if views.status(store, task)["state"] != "unknown"}

    async def main(world: World) -> None:
        nonlocal syncs
        host = world.host("server")

        def fails() -> None:
            host.disk.fail_next("fsync", errno.EIO)

        host.at_boundary(failing * 5, fails)
        await host.start(first).wait()
        host.disk.calm()
        host.start(second)
        await world.sleep_ns(1_000_000)
        assert len(acknowledged) >= 2
        host.power_loss(mode)  # type: ignore[arg-type]
        status = await host.start(third).wait()
        assert status.value == acknowledged, status
        syncs = host.disk.fired.get("fsync-eio", 0)

    run(main, tape=Tape.from_seed(failing)).unwrap()
    assert syncs <= 1
