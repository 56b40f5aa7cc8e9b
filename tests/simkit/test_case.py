"""Cases: saved whole, loaded or refused with a reason, replayed without the seed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from simkit.case import SCHEMA, Case
from simkit.errors import SimkitError
from simkit.strategy import RandomWalk
from simkit.tape import Tape
from simkit.world import Outcome, World, run


def sample(**changes: Any) -> Case:
    """A case with something in every field."""
    case = Case(
        world="simulated",
        target={"name": "reference", "version": "1"},
        scenario={"name": "chain", "plan": {"steps": ["é", 1, None]}},
        seed=7,
        options={"drop": 2},
        departures={("net", "a->b", 3): 1, ("disk/db", "write", 0): 2},
        schedule=((1, 2), (3, 1)),
        expect={"obligation": "DUR-1", "anomaly": "amnesia"},
        digest="0f",
    )
    return attrs.evolve(case, **changes)


def test_a_case_survives_saving(tmp_path: Path) -> None:
    """What is loaded equals what was saved, and the file is named by it."""
    case = sample()
    path = case.save(tmp_path / "cases")
    assert path.name == f"{case.id}.json"
    assert Case.load(path) == case
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_the_id_is_of_the_content() -> None:
    """Equal cases have one id whatever the order of keys, any change gives another."""
    assert sample().id == sample(target={"version": "1", "name": "reference"}).id
    changes: list[dict[str, Any]] = [{"seed": 8}, {"schedule": ()}, {"departures": {}}, {"expect": None}]
    others = {sample(**change).id for change in changes}
    assert len(others | {sample().id}) == 5
    assert len(sample().id) == 12


async def chancy(world: World) -> list[int]:
    """A program with choices, bytes and a schedule."""
    stream, log = world.tape.stream("work"), []

    async def work(number: int) -> None:
        for _ in range(3):
            await world.sleep_ns(stream.randrange("latency", 50))
            log.append(number * 1000 + stream.choose("pick", 4) + stream.randbytes("nonce", 1)[0])

    async with trio.open_nursery() as nursery:
        for number in range(4):
            nursery.start_soon(work, number)
    return log


def test_a_case_replays_without_the_seed_having_a_say(tmp_path: Path) -> None:
    """Departures and schedule, through the file, repeat value and digest on both kernels."""
    tape = Tape.from_seed(99)
    first: Outcome[list[int]] = run(chancy, tape=tape, strategy=RandomWalk(tape.stream("walk")))
    case = sample(seed=99, departures=first.departures, schedule=first.schedule, digest=first.digest)
    loaded = Case.load(case.save(tmp_path))
    for kernel in ("fast", "fallback"):
        again = run(chancy, tape=loaded.tape(), strategy=loaded.strategy(), kernel=kernel)  # type: ignore[arg-type]
        assert again.error is None
        assert (again.value, again.digest) == (first.value, loaded.digest)


Change = Callable[[dict[str, Any]], None]
WRONG: list[tuple[Change, str, str]] = [
    (lambda data: data.update(schema="simkit/case/3"), "case-version", "simkit/case/3"),
    (lambda data: data.pop("schema"), "case-version", SCHEMA),
    (lambda data: data.pop("departures"), "case-malformed", "departures: expected rows"),
    (lambda data: data.update(seed="7"), "case-malformed", "seed: expected a whole number from 0 or null, got text"),
    (lambda data: data.update(seed=True), "case-malformed", "seed: expected a whole number from 0 or null, got true"),
    (lambda data: data.update(schedule=[[1]]), "case-malformed", "schedule: expected rows"),
    (lambda data: data.update(departures=[["a", "b", 0, 0]]), "case-malformed", "departures: expected rows"),
    (lambda data: data.update(world="dream"), "case-malformed", "world: expected one of"),
    (lambda data: data.update(scenario=[]), "case-malformed", "scenario: expected an object, got a list"),
    (lambda data: data.update(colour="red"), "case-malformed", "colour: unknown field"),
]


@pytest.mark.parametrize(("change", "code", "told"), WRONG)
def test_a_wrong_case_is_told(tmp_path: Path, change: Change, code: str, told: str) -> None:
    """The error has its code, the field and what was expected there."""
    data = sample().to_json()
    change(data)
    path = tmp_path / "case.json"
    path.write_text(json.dumps(data))
    with pytest.raises(SimkitError) as caught:
        Case.load(path)
    assert caught.value.problem.code == code
    assert told in str(caught.value)
    assert str(path) in caught.value.problem.where


def test_every_wrong_field_is_named_at_once() -> None:
    """Nobody mends a file error by error."""
    data = {**sample().to_json(), "seed": -1, "options": 3, "extra": 1}
    with pytest.raises(SimkitError) as caught:
        Case.from_json(data)
    assert all(name in caught.value.problem.what for name in ("seed:", "options:", "extra:"))


@pytest.mark.parametrize("length", [0, 1, 40, 300])
def test_a_truncated_case_is_told(tmp_path: Path, length: int) -> None:
    """Cut anywhere, it is called cut short, at its line."""
    path = sample().save(tmp_path)
    path.write_text(path.read_text(encoding="utf-8")[:length].rstrip(), encoding="utf-8")
    with pytest.raises(SimkitError, match="cut short") as caught:
        Case.load(path)
    assert str(path) in caught.value.problem.where


@pytest.mark.parametrize(
    ("content", "told"),
    [(b"\xff\xfe", "UTF-8"), (b"[1]", "it holds a list"), (b"{]", "not JSON"), (b"[" * 100_000, "nested too deeply")],
)
def test_what_is_no_case_is_told(tmp_path: Path, content: bytes, told: str) -> None:
    """Binary, another shape, no JSON, and JSON made to hurt."""
    path = tmp_path / "case.json"
    path.write_bytes(content)
    with pytest.raises(SimkitError, match=told):
        Case.load(path)


def test_a_missing_or_unreadable_case_is_told(tmp_path: Path) -> None:
    """A path that is not there, and one that is a folder."""
    with pytest.raises(SimkitError, match="case-missing"):
        Case.load(tmp_path / "nowhere.json")
    with pytest.raises(SimkitError, match="case-unreadable"):
        Case.load(tmp_path)


# ---- cases that are not what simkit wrote


def edited(tmp_path: Path, change: Change, name: str = "") -> Case:
    """The sample's file after `change`, read again; under another name where one is given."""
    path = sample().save(tmp_path)
    data = json.loads(path.read_text(encoding="utf-8"))
    change(data)
    other = path.with_name(f"{name or path.stem}.json")
    other.write_text(json.dumps(data), encoding="utf-8")
    return Case.load(other)


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data["target"].update(version="2"),
        lambda data: data["scenario"].update(name="other"),
        lambda data: data.update(kit="99.9"),
        lambda data: data.update(expect=None),
        lambda data: data.update(digest="00"),
        lambda data: data.update(id="0123456789ab"),
    ],
    ids=["target", "scenario", "kit", "expect", "digest", "id"],
)
@pytest.mark.parametrize("name", ["", "mine"])
def test_a_case_edited_by_hand_says_so(tmp_path: Path, change: Change, name: str) -> None:
    """Whatever was changed, and whatever the file is called: it may be wanted, and is not what simkit wrote."""
    case = edited(tmp_path, change, name)
    assert case.altered.startswith("edited by hand")
    assert case.id in case.altered


@pytest.mark.parametrize("name", ["", "mine"])
def test_a_case_that_only_moved_is_not_called_edited(tmp_path: Path, name: str) -> None:
    """Layout and the name of the file are no content; saved again it is the same file."""
    case = edited(tmp_path, lambda data: None, name)
    assert (case.altered, case) == ("", sample())
    assert case.save(tmp_path / "again").read_text() == sample().save(tmp_path).read_text()


def test_a_case_under_the_name_of_another_says_so(tmp_path: Path) -> None:
    """One id by its name and another by its content; also where an earlier build wrote no id into it."""
    assert edited(tmp_path, lambda data: None, "0123456789ab").altered.endswith(f"{sample().id} by its content")
    assert edited(tmp_path, lambda data: data.pop("id")).altered == ""


def test_a_case_without_an_id_is_held_against_its_name(tmp_path: Path) -> None:
    """As builds wrote them that did not put it in."""

    def change(data: dict[str, Any]) -> None:
        del data["id"]
        data["seed"] = 8

    assert edited(tmp_path, change).altered.startswith("edited by hand, or renamed")
    assert edited(tmp_path, change, "mine").altered == ""


@pytest.mark.parametrize("left", ["departures", "schedule", "digest"])
def test_a_simulated_case_is_not_turned_into_one_of_real_processes(tmp_path: Path, left: str) -> None:
    """What only simulated runs have would be dropped without a word."""
    empty: dict[str, Any] = {"departures": [], "schedule": [], "digest": "", "ladder": None}

    def change(data: dict[str, Any]) -> None:
        data.update({name: value for name, value in empty.items() if name != left}, world="process")

    with pytest.raises(SimkitError, match=f"of real processes, and has {left}"):
        edited(tmp_path, change)
