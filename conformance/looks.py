"""What the kit reads of a run beside its status: events, artifacts and journal, the artifacts themselves, traces of secrets.

None of it at every poll: after each interruption that struck, as soon as the target answers again, and at the end. Events are
read on from the last cursor, and artifacts are listed in the middle only where the plan makes any.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Final

from conformance.canaries import is_found
from scenarios.history import Answered, Asked, Fetched, Scanned
from scenarios.plan import Call

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from conformance.sabotage.scene import Scene

#: Looks in the middle of one run, and pages of events at one look.
LOOKS_MAX: Final = 20
PAGES_MAX: Final = 50
_READ: Final = ("events", "artifacts", "journal")
#: States of artifacts that were accepted once, and can be fetched for ever.
_ACCEPTED: Final = frozenset({"accepted", "superseded"})


class Looks:
    """The looks at one run."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._cursor = 0
        self._seen = self._taken = 0
        self._accepted: dict[tuple[str, int], str] = {}  # name and version of artifacts → location
        self._verbs = [verb for verb in _READ if scene.has(verb)]
        self._makes_artifacts = "artifact" in scene.plan.kinds()

    async def after_strikes(self) -> None:
        """Look, if something has struck since the last look and everybody is back who could answer."""
        noted = self._scene.noted
        if self._verbs and noted > self._seen and self._taken < LOOKS_MAX and self._scene.crew.is_complete:
            self._taken += 1
            if await self._look():
                self._seen = noted

    async def last(self, secrets: Mapping[str, str], *, has_stopped: bool) -> None:
        """Look at everything, fetch what was published, and search all that was written for `secrets`. A target that has
        stopped is asked nothing more.
        """
        if not has_stopped:
            await self._look(pages=PAGES_MAX, is_last=True)
            await self._read_again()
        for (name, version), location in self._accepted.items():
            self._fetch(name, version, location)
        if secrets:
            self._scan(secrets)

    async def _look(self, pages: int = 1, *, is_last: bool = False) -> bool:
        """Read everything, of the events so many pages; False, and no more was asked, when nobody answered."""
        client = self._scene.client
        if "events" in self._verbs and not await self._read_events(pages):
            return False
        if "artifacts" in self._verbs and (is_last or self._makes_artifacts):
            answer = await client.read("artifacts")
            if answer.outcome == "indefinite":
                return False
            for one in answer.ok.get("artifacts", ()):
                if one.get("state") in _ACCEPTED:
                    self._accepted[one["name"], one["version"]] = one["location"]
        return "journal" not in self._verbs or (await client.read("journal")).outcome != "indefinite"

    async def _read_events(self, pages: int) -> bool:
        for _ in range(pages):
            answer = await self._scene.client.read("events", after=self._cursor)
            if answer.outcome != "ok" or not answer.ok["events"]:
                return answer.outcome != "indefinite"
            self._cursor = answer.ok["next"]
        return True

    async def _read_again(self) -> None:
        """Ask for events from an old cursor, as a reader who lost its place does."""
        if "events" in self._verbs and self._cursor:
            await self._scene.client.read("events", after=self._cursor // 2)

    def _fetch(self, name: str, version: int, location: str) -> None:
        stored = self._scene.outside.services.artifact(location)
        found = stored is not None and stored.committed
        data = stored.data if stored is not None and stored.committed else b""
        digest = hashlib.sha256(data).hexdigest() if found else ""
        self._scene.recorder.add(Fetched(self._scene.world.now_ns(), name, version, digest, len(data), found))

    def _scan(self, secrets: Mapping[str, str]) -> None:
        seen = self._scene.world.scan(secrets)
        places = dict.fromkeys(seen.places)
        found = dict.fromkeys(seen.found)
        for place, text in self._told():
            places[place] = None
            told = text.encode()
            found.update((f"{place}:{name}", None) for name, value in secrets.items() if is_found(value, told))
        self._scene.recorder.add(Scanned(self._scene.world.now_ns(), tuple(places), tuple(found)))

    def _told(self) -> Iterator[tuple[str, str]]:
        """Every status and body that the target has answered with, by the verb it was asked."""
        verbs: dict[int, str] = {}
        for event in self._scene.recorder.events:
            if isinstance(event, Asked):
                verbs[event.ask] = event.verb
            elif isinstance(event, Answered) and (verb := verbs[event.ask]) in {"status", *_READ}:
                yield verb, f"{event.status!r}{json.dumps(event.body)}{event.detail}"


def secrets_of(calls: tuple[object, ...]) -> tuple[str, ...]:
    """Names of the secrets that a plan's calls hand over, each once."""
    return tuple(dict.fromkeys(one.secret for one in calls if isinstance(one, Call) and one.secret is not None))
