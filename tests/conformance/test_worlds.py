"""Both worlds: what a unit is launched with, what can be done to its machine, and where secrets are looked for."""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import trio

from conformance.world import World
from conformance.worlds.process import ProcessWorld
from conformance.worlds.room import CAN_BE_TAKEN
from conformance.worlds.simulated import SimulatedWorld
from simkit.errors import SimkitError
from tests.conformance.worlds_rig import SETTINGS, Module, kept, process, shown, simulated


class Broken(Module):
    """An engine that breaks down over what it cannot send, and says what that was."""

    async def run_engine(self, env: Mapping[str, str]) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._send, json.loads(env["SIMKIT_SECRETS"]))

    async def _send(self, secrets: Mapping[str, str]) -> None:
        raise ConnectionError(f"cannot send {secrets['card']}")


async def launches(world: World) -> list[dict[str, Any]]:
    """The variables of a worker without, and of one with everything."""
    plain = await world.launch("worker", 1)
    first = (await shown(plain))["env"]
    await plain.kill(power=False)
    world.entrust(("card",))
    second = await world.launch("worker", 2, code="2", forget="audit")
    return [first, (await shown(second))["env"]]


@pytest.mark.parametrize("kind", ["simulated", "process"])
def test_a_unit_is_told_its_code_its_secrets_and_what_to_forget(kind: str, tmp_path: Path) -> None:
    """By its environment, and only where there is something to tell."""
    plain, full = simulated(lambda world, _: launches(world)) if kind == "simulated" else process(tmp_path, launches)
    assert plain == dict.fromkeys(SETTINGS)
    assert (full["SIMKIT_CODE"], full["SIMKIT_FORGET"]) == ("2", "audit")
    assert json.loads(full["SIMKIT_SECRETS"])["card"].startswith("canary-")


async def finds(world: World) -> list[tuple[str, ...]]:
    """Where a secret is found before it is written, and after."""
    secrets = world.entrust(("card", "pin"))
    unit = await world.launch("worker", 1)
    before = world.scan(secrets)
    await kept(unit, secrets["card"])
    after = world.scan(secrets)
    assert unit.control is not None
    return [before.places, before.found, after.found]


@pytest.mark.parametrize("kind", ["simulated", "process"])
def test_secrets_are_found_in_what_units_have_stored(kind: str, tmp_path: Path) -> None:
    """By name, and never one that is not there."""
    told = simulated(lambda world, _: finds(world)) if kind == "simulated" else process(tmp_path, finds)
    assert told == [("store", "logs"), (), ("store:card",)]


def test_secrets_are_found_in_logs(tmp_path: Path) -> None:
    """What a program prints to its error output is looked through."""

    async def talk(world: ProcessWorld) -> tuple[str, ...]:
        secrets = world.entrust(("card",))
        await kept(await world.launch("worker", 1), "k", say=secrets["card"])
        return world.scan(secrets).found

    assert process(tmp_path, talk) == ("logs:card",)


def test_secrets_are_found_in_the_words_that_a_simulated_unit_ends_with() -> None:
    """Of every exception in it, as the traceback of a program would have them."""

    async def talk(world: SimulatedWorld, _: Module) -> tuple[str, ...]:
        secrets = world.entrust(("card", "pin"))
        unit = await world.launch("engine", 1)
        while unit.alive:
            await world.sleep_ns(1_000_000)
        return world.scan(secrets).found

    assert simulated(talk, Broken()) == ("logs:card",)


async def wiped(world: World) -> list[list[str]]:
    unit = await world.launch("worker", 1)
    await kept(unit, "k")
    before = (await shown(unit))["files"]
    await unit.kill(power=False)
    unit.wipe()
    return [before, (await shown(await world.launch("worker", 2)))["files"]]


@pytest.mark.parametrize("kind", ["simulated", "process"])
def test_a_wiped_unit_comes_back_with_nothing(kind: str, tmp_path: Path) -> None:
    """What it had stored is gone, and the folder is there."""
    told = simulated(lambda world, _: wiped(world)) if kind == "simulated" else process(tmp_path, wiped)
    assert told == [["r"], []]


def test_one_bit_of_the_largest_file_is_flipped_for_real(tmp_path: Path) -> None:
    """Of a real unit's own folder; where nothing is stored there is nothing to damage."""

    async def talk(world: ProcessWorld) -> tuple[bool, bool, list[int]]:
        unit = await world.launch("worker", 1)
        engine = await world.launch("engine", 2)
        await kept(unit, "\0")
        for one in (unit, engine):
            await one.kill(power=False)
        struck = unit.flip(), engine.flip()
        data = (tmp_path / "state" / "worker" / "r").read_bytes()
        return *struck, [byte for byte in data if byte]

    flipped, nothing, changed = process(tmp_path, talk, "engine")
    assert (flipped, nothing) == (True, False)
    assert len(changed) == 1
    assert changed[0].bit_count() == 1


def test_what_a_real_machine_cannot_do_is_refused(tmp_path: Path) -> None:
    """Loudly: boundaries, and the clock of a unit that does not follow it."""

    async def talk(world: ProcessWorld) -> list[str]:
        unit = await world.launch("worker", 1)
        codes = []
        for strike in (
            lambda: unit.jump(1),
            lambda: world.fail_once("worker", 1, lambda: True),
            lambda: world.watch_boundary("worker", 1, lambda: None),
        ):
            with pytest.raises(SimkitError) as caught:
                strike()
            codes.append(caught.value.problem.code)
        return codes

    assert process(tmp_path, talk) == ["not-in-process-world"] * 3


@pytest.mark.skipif(not CAN_BE_TAKEN, reason="limits of running processes cannot be changed here")
def test_a_real_unit_has_no_room_for_a_while(tmp_path: Path) -> None:
    """It is told at each write, also as another process that was started meanwhile; what was there can be read, and once there
    is room again all is as before.
    """

    async def talk(world: ProcessWorld) -> list[str]:
        first = await world.launch("worker", 1)
        before = await kept(first, "a")
        first.full(True)
        struck = await kept(first, "bb")
        await first.kill(power=False)
        second = await world.launch("worker", 2)
        assert (await shown(second))["files"] == ["r"]
        began_without = await kept(second, "bb")
        first.full(False)
        return [before, struck, began_without, await kept(second, "ccc")]

    before, struck, began_without, after = process(tmp_path, talk)
    assert (before, after) == ("", "")
    assert os.strerror(errno.EFBIG) in struck
    assert os.strerror(errno.EFBIG) in began_without
    assert (tmp_path / "state" / "r").read_bytes() == b"ccc" * 100


def test_the_clock_of_a_real_unit_jumps(tmp_path: Path) -> None:
    """However it asks for the time of day, and as another process of that unit too; before the first look nothing jumps."""

    async def talk(world: ProcessWorld) -> list[list[float]]:
        first = await world.launch("worker", 1)
        assert first.jump(3600 * 10**9) is False
        looks = [(await shown(first))["clocks"]]
        assert first.jump(3600 * 10**9) is True
        looks.append((await shown(first))["clocks"])
        world.demand_noticed()
        await first.kill(power=False)
        second = await world.launch("worker", 2)
        looks.append((await shown(second))["clocks"])
        assert second.jump(-7200 * 10**9) is True
        with pytest.raises(SimkitError, match="jump-missed"):
            world.demand_noticed()
        looks.append((await shown(second))["clocks"])
        world.demand_noticed()
        return looks

    began = time.time()
    looks = process(tmp_path, talk, clock=True)
    for clocks, hours in zip(looks, (0, 1, 1, -1), strict=True):
        assert [round((clock - began) / 3600) for clock in clocks] == [hours] * 3


def test_a_simulated_bit_flips_in_the_largest_file() -> None:
    """Once, and the tape says where."""

    async def talk(world: SimulatedWorld, _: Module) -> list[bool]:
        engine = await world.launch("engine", 1)
        await trio.sleep(0.05)
        await engine.kill(power=False)
        disk = engine.process.host.disk
        before = {path: bytes(node.cache) for path, node in disk.inodes().items()}
        assert engine.flip()
        after = {path: bytes(node.cache) for path, node in disk.inodes().items()}
        assert [path for path in before if before[path] != after[path]] == ["/state/large"]
        return [byte != 0xFF for byte in after["/state/large"]]

    assert simulated(talk).count(True) == 1


def test_a_simulated_disk_is_full_for_a_while() -> None:
    """Writes fail with ENOSPC meanwhile, and succeed before and after."""

    async def talk(world: SimulatedWorld, module: Module) -> list[int | None]:
        engine = await world.launch("engine", 1)
        for on in (True, False):
            await trio.sleep(0.25)
            engine.full(on)
        await trio.sleep(0.25)
        return module.failures

    failures = simulated(talk)
    assert set(failures) == {None, errno.ENOSPC}
    assert (failures[0], failures[-1]) == (None, None)


def test_a_simulated_clock_jumps() -> None:
    """Only the wall clock of that machine, and back where it says so."""

    async def talk(world: SimulatedWorld, module: Module) -> list[float]:
        engine = await world.launch("engine", 1)
        await trio.sleep(0.25)
        engine.jump(-3600 * 10**9)
        await trio.sleep(0.1)
        return module.hours

    *_, before, after = simulated(talk)
    assert before - after == pytest.approx(3600, abs=1)


@pytest.mark.parametrize("strikes", [True, False])
def test_an_operation_of_a_simulated_disk_fails_once(strikes: bool) -> None:
    """At the boundary that was asked for, where the answer there is yes; the next one is fine."""

    async def talk(world: SimulatedWorld, module: Module) -> list[int | None]:
        world.fail_once("engine", 7, lambda: strikes)
        await world.launch("engine", 1)
        await trio.sleep(0.5)
        return module.failures

    failures = simulated(talk)
    assert failures.count(errno.EIO) == (1 if strikes else 0)
    assert failures[-1] is None


def test_a_second_simulated_worker_has_a_machine_of_its_own() -> None:
    """Beside the living one; both answer."""

    async def talk(world: SimulatedWorld, _: Module) -> list[list[str]]:
        first = await world.launch("worker", 1)
        await kept(first, "k")
        second = await world.launch("worker", 2)
        return [(await shown(unit))["files"] for unit in (first, second)]

    assert simulated(talk) == [["r"], []]
