"""When the kit reads beside the status: after what struck, once everybody is back, and no further than there is an answer."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import trio

from conformance.control import Answer
from conformance.looks import LOOKS_MAX, Looks


class Scene:
    """A scene with nothing but what a look needs; `outcomes` are those of the verbs that do not answer as they should."""

    def __init__(self, *kinds: str, **outcomes: str) -> None:
        self.asked: list[str] = []
        self.outcomes = outcomes
        self.noted = 1
        self.plan = SimpleNamespace(kinds=lambda: frozenset(kinds or {"call", "artifact"}))
        self.crew = SimpleNamespace(is_complete=True)
        self.client = SimpleNamespace(read=self.read)

    def has(self, *verbs: str) -> bool:
        return set(verbs) <= {"events", "artifacts", "journal"}

    async def read(self, verb: str, **_fields: object) -> Answer:
        self.asked.append(verb)
        outcome: Any = self.outcomes.get(verb, "ok")
        body = {"events": [], "next": 0} if verb == "events" else {}
        return Answer(outcome, ok=body if outcome == "ok" else {})


def looked(scene: Scene, times: int = 1) -> list[str]:
    """What was read by so many looks after strikes."""
    looks = Looks(scene)  # type: ignore[arg-type]  # of all that a scene has, a look needs this much

    async def look() -> None:
        for _ in range(times):
            await looks.after_strikes()

    trio.run(look)
    return scene.asked


def test_a_strike_is_followed_by_one_look() -> None:
    """Everything is read, once for everything that has struck."""
    assert looked(Scene(), times=3) == ["events", "artifacts", "journal"]


def test_artifacts_are_listed_at_the_end_where_the_plan_makes_none() -> None:
    """None can come and go in between; that there are none after all is asked once."""
    scene = Scene("call")
    assert looked(scene) == ["events", "journal"]
    trio.run(_last_look, scene)
    assert scene.asked[2:] == ["events", "artifacts", "journal"]


async def _last_look(scene: Scene) -> None:
    await Looks(scene).last({}, has_stopped=False)  # type: ignore[arg-type]  # as above


def test_nothing_is_read_while_a_unit_is_down() -> None:
    """Who cannot answer is not waited for; the look is made when it is back."""
    scene = Scene()
    scene.crew.is_complete = False
    assert looked(scene) == []
    scene.crew.is_complete = True
    assert looked(scene) == ["events", "artifacts", "journal"]


@pytest.mark.parametrize(
    ("silent", "read"),
    [
        ("events", ["events"]),
        ("artifacts", ["events", "artifacts"]),
        ("journal", ["events", "artifacts", "journal"]),
    ],
)
def test_silence_ends_a_look_which_is_made_again(silent: str, read: list[str]) -> None:
    """As often as there is no answer, within the bound on looks."""
    assert looked(Scene(**{silent: "indefinite"}), times=2) == read * 2
    assert looked(Scene(**{silent: "indefinite"}), times=LOOKS_MAX + 5) == read * LOOKS_MAX


def test_a_refusal_is_an_answer() -> None:
    """Whoever says no need not be asked again."""
    assert looked(Scene(journal="error"), times=2) == ["events", "artifacts", "journal"]
