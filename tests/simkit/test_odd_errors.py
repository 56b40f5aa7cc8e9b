"""Programs that raise what cannot be shown, compared or copied: they are found, told, saved and replayed like any other."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import pytest
import trio

import simkit
from simkit.errors import OptionError, shown_of, told
from simkit.exploring.running import Budget
from simkit.network import NetworkOptions

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class WordlessError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


class WordlessBaseError(BaseException):
    def __repr__(self) -> str:
        raise SystemExit(3)

    __str__ = __repr__


class UnlikeError(Exception):
    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("like nothing")

    def __bool__(self) -> bool:
        raise RuntimeError("neither true nor false")


class PickyError(Exception):
    def __init__(self, *, needed: int) -> None:
        super().__init__(needed)


def nested() -> BaseException:
    return BaseExceptionGroup(
        "outer", [WordlessError(), BaseExceptionGroup("inner", [SystemExit(3), WordlessBaseError()])]
    )


MAKERS: dict[str, Callable[[], BaseException]] = {
    "WordlessError": WordlessError,
    "WordlessBaseError": WordlessBaseError,
    "UnlikeError": UnlikeError,
    "PickyError": functools.partial(PickyError, needed=1),
    "BaseExceptionGroup": nested,
    "SystemExit": functools.partial(SystemExit, 4),
    "GeneratorExit": GeneratorExit,
    "ValueError": functools.partial(ValueError, "\0 \ud800 \x1b[31m\n" + "x" * 100_000),
}


def losing_updates(make: Callable[[], BaseException], *, process: bool = False) -> Any:
    async def program(world: simkit.World) -> None:
        count = 0

        async def add() -> None:
            nonlocal count
            before = count
            await trio.sleep(0)
            count = before + 1

        async def race() -> None:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(add)
                nursery.start_soon(add)
            if count != 2:
                raise make()

        if not process:
            await race()
        else:
            status = await world.host("desk").start(race).wait()
            assert isinstance(str(status) + repr(status), str)
            if status.error is not None:
                raise status.error

    return program


@pytest.mark.parametrize("process", [False, True])
@pytest.mark.parametrize("name", MAKERS)
def test_odd_errors_are_found_told_and_replayed(name: str, process: bool, tmp_path: Path) -> None:
    """By search, campaign, exploration; the case keeps the type, and comes back from its file."""
    program = losing_updates(MAKERS[name], process=process)
    found = simkit.search(program, save=tmp_path)
    assert found
    assert type(found.error).__name__ == name
    assert isinstance(repr(found), str)
    assert found.path is not None
    assert str(simkit.replay(simkit.Case.load(found.path), program)).startswith(f"case {found.case.id}: reproduced")

    campaign = simkit.campaign(program, 30, processes_may_fail=True)
    assert campaign.failures
    assert {one.error.partition(":")[0] for one in campaign.failures} == {name}
    assert f"fails: {name}" in str(campaign)

    report = simkit.explore(program, budget=Budget(runs=60, explain=50))
    assert len(report.findings) == 1
    assert isinstance(str(report) + repr(report), str)


def test_what_cannot_be_shown_is_named_by_its_type() -> None:
    """In messages about wrong options too."""
    assert told(WordlessError()) == "WordlessError: <its str() raises RuntimeError>"
    assert shown_of(WordlessBaseError()) == "<WordlessBaseError whose repr() raises SystemExit>"
    wordless: Any = WordlessError()
    with pytest.raises(OptionError, match="latency_ns cannot be <WordlessError whose repr"):
        NetworkOptions(latency_ns=wordless)


def test_words_are_fit_for_a_terminal() -> None:
    """What cannot be printed, or would change its colours, is escaped; and nobody reads a megabyte."""
    assert told(ValueError("a\x1b[31m\udcff\0é\n")) == "ValueError: a\\x1b[31m\\udcff\\x00é\n"
    campaign = simkit.campaign(losing_updates(MAKERS["ValueError"]), 30)
    assert campaign.failures
    str(campaign).encode()
    long = simkit.campaign(losing_updates(functools.partial(ValueError, "x" * 10**6)), 30)
    assert all(len(one.error) < 1000 for one in long.failures)
