"""The crew over real processes: every coming and going is told once, and when it has become true."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
import trio

from conformance import members, targets
from conformance.crew import EXITS_MAX, Crew
from conformance.evidence import BY_HAND
from conformance.recorder import Recorder
from conformance.subject import subject_of
from conformance.world import Patience
from conformance.worlds.process import ProcessWorld, RealUnit
from scenarios.history import Died, Received, Resumed, Started
from simkit.errors import SimkitError
from tests.conformance.worlds_rig import process

#: Calls as it recovers, long before it speaks to the kit; told to, it ends over it.
EAGER = """
import os, sys
from simkit_adapter import call, serve, state_folder
call({"op": "call", "id": "a", "service": "reader"}, "r", {})
if (state_folder() / "bad").exists():
    sys.exit("bad state")
class Adapter:
    def status(self, run):
        return {"state": "running"}
serve(Adapter())
"""


def crew_of(world: ProcessWorld, recorder: Recorder) -> Crew:
    subject = subject_of(targets.parse("naive").manifest)
    return Crew(world, subject, recorder, Patience(subject.bounds, world.spent_ns))


def test_nothing_is_seen_of_a_worker_before_it_has_started(tmp_path: Path) -> None:
    """In the history its start comes before its first call, also of one that never answers the kit; and then its end."""
    recorder = Recorder("r", time.monotonic_ns)

    async def talk(world: ProcessWorld) -> None:
        crew = crew_of(world, recorder)
        await crew.ensure_up()
        assert crew.worker is not None
        await crew.kill(crew.worker)
        (tmp_path / "state" / "bad").touch()
        crew.is_damaged = True
        await crew.ensure_up()

    process(tmp_path, talk, program=EAGER, recorder=recorder)
    seen = [
        (type(one).__name__, one.incarnation) for one in recorder.events if isinstance(one, Started | Received | Died)
    ]
    assert seen == [(kind, worker) for worker in (1, 2) for kind in ("Started", "Received", "Died")]
    assert [one.cause for one in recorder.events if isinstance(one, Died)] == ["killed", "exited"]


#: Ends over its first question, and leaves a child behind that goes on calling.
PARENT = """
import os, time
from simkit_adapter import call, serve
class Adapter:
    def status(self, run):
        return {"state": "running"}
    def start(self, run, plan, key):
        if os.fork():
            os._exit(3)
        if plan["leaves"]:
            os.setsid()
        while True:
            call({"op": "call", "id": "a", "service": "reader"}, "r", {})
            time.sleep(0.02)
serve(Adapter())
"""


#: Calls and calls.
BUSY = """
import threading, time
from simkit_adapter import call, serve
def work():
    while True:
        call({"op": "call", "id": "a", "service": "reader"}, "r", {})
        time.sleep(0.02)
class Adapter:
    def status(self, run):
        return {"state": "running"}
threading.Thread(target=work, daemon=True).start()
serve(Adapter())
"""


@pytest.mark.skipif(not members.SHOWN, reason="only the group is seen here")
@pytest.mark.parametrize("leaves", [False, True])
def test_nothing_is_left_of_a_unit_that_ended(tmp_path: Path, *, leaves: bool) -> None:
    """Once its end is told, no process that it left behind calls any more."""
    recorder = Recorder("r", time.monotonic_ns)

    async def talk(world: ProcessWorld) -> None:
        crew = crew_of(world, recorder)
        await crew.ensure_up()
        assert crew.worker is not None
        assert crew.worker.control is not None
        with pytest.raises(SimkitError):
            await crew.worker.control.ask("start", 1_000_000_000, run="r", plan={"leaves": leaves}, key="k")
        while not any(isinstance(one, Received) for one in recorder.events):
            await world.sleep_ns(10_000_000)
        await crew.ensure_up()
        seen = len(recorder.events)
        assert [type(one) for one in recorder.events[-2:]] == [Died, Started]
        await world.sleep_ns(300_000_000)
        assert len(recorder.events) == seen

    process(tmp_path, talk, program=PARENT, recorder=recorder)


@pytest.mark.parametrize("damaged", [False, True])
def test_a_machine_without_room_is_no_refusal_of_the_target(tmp_path: Path, *, damaged: bool) -> None:
    """A worker whose start cannot be noted has ended when that is told, and has not stopped over its storage."""
    recorder = Recorder("r", time.monotonic_ns)
    (tmp_path / BY_HAND).symlink_to("/dev/full")

    async def talk(world: ProcessWorld) -> list[object]:
        crew = crew_of(world, recorder)
        crew.is_damaged = damaged
        with pytest.raises(SimkitError, match="machine-short"):
            await crew.ensure_up()
        assert isinstance(recorder.events[-1], Died)
        seen = len(recorder.events)
        await world.sleep_ns(300_000_000)
        return list(recorder.events[seen:])

    assert process(tmp_path, talk, program=BUSY, recorder=recorder) == []


def test_an_end_is_told_once(tmp_path: Path) -> None:
    """Also where the next one does not come up: it is tried as often as is said before the target has stopped."""
    recorder = Recorder("r", time.monotonic_ns)

    async def talk(world: ProcessWorld) -> None:
        crew = crew_of(world, recorder)
        await crew.ensure_up()
        assert isinstance(crew.worker, RealUnit)
        (tmp_path / "state" / "bad").touch()
        crew.is_damaged = True
        os.kill(crew.worker.process.pid, signal.SIGKILL)
        await crew.worker.process.wait()
        while not crew.has_stopped:
            await crew.ensure_up()

    process(tmp_path, talk, program=EAGER, recorder=recorder)
    ends = [one.incarnation for one in recorder.events if isinstance(one, Died)]
    assert ends == list(range(1, EXITS_MAX + 2))


def test_a_worker_that_is_let_go_is_awake_before_it_calls(tmp_path: Path) -> None:
    """What it sends while the system wakes it is not taken for what was on its way before."""
    recorder = Recorder("r", time.monotonic_ns)

    async def talk(world: ProcessWorld) -> list[type]:
        crew = crew_of(world, recorder)
        await crew.ensure_up()
        assert isinstance(crew.worker, RealUnit)
        unit = crew.worker
        resume = unit.process.resume

        async def slowly() -> None:
            await resume()
            while len(recorder.events) < rested + 4:  # noqa: ASYNC110 - as on a machine that takes its time to tell that it runs
                await trio.sleep(0.01)

        unit.process.resume = slowly  # type: ignore[method-assign]
        await crew.pause(unit)
        await world.sleep_ns(200_000_000)  # what was on its way has come
        rested = len(recorder.events)
        await crew.let_go(unit)
        return [type(one) for one in recorder.events[rested:]]

    kinds = process(tmp_path, talk, program=BUSY, recorder=recorder)
    assert kinds[0] is Resumed
    assert {Resumed, Received} <= set(kinds)
