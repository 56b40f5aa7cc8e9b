"""Approvals: what the kit decides of those that a status shows, in time and by whoever may, or otherwise.

Undisturbed, every pending approval is approved by `ACTOR`, bound to the digest that the status shows, with a nonce of its own.
One that becomes pending again (directions have changed what it is about, or authority was withdrawn) is decided again, under
another id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import attrs
import trio

from conformance import questions
from conformance.questions import ACTOR, STRANGER, Question
from conformance.sabotage import commands
from scenarios.plan import Approve, Call, Model, approval_digest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from conformance.control import Answer
    from conformance.sabotage.scene import Scene
    from scenarios.history import Status
    from scenarios.interruption import Interruption
    from simkit.services import Request

#: So often an approval that is pending again and again is decided.
DECISIONS_MAX = 8
DECISIONS: Final[tuple[Literal["approve", "deny"], ...]] = ("approve", "deny")
#: Actions that are decisions themselves; whatever else strikes at an approval leaves it to be decided as usual.
ACTIONS = frozenset({"deny", "forge", "revoke", "late-decision", "cross", "stale-decision"})


@attrs.define(eq=False)
class _Desk:
    """One approval: how many decisions there were, whether the latest one was taken, the one nobody knows the fate of, and
    whether it is spoken for.
    """

    decisions: int = 0
    is_decided: bool = False
    open: Question | None = None
    is_reserved: bool = False


class Decisions:
    """What is decided in one run."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._desks: dict[str, _Desk] = {}
        self._revoking: trio.Event | None = None  # set once authority has been withdrawn
        self._is_out = False  # whether the actor is without authority, and decides nothing

    async def attend(self, status: Status) -> bool:
        """Decide what is pending; False when there was nothing to do."""
        if not self._scene.has("decide") or self._is_out:
            return False
        done = False
        for approve, digest in self._pending(status):
            desk = self._desks.setdefault(approve.id, _Desk())
            if desk.is_reserved or desk.decisions >= DECISIONS_MAX:
                continue
            done = True
            await self._decide(approve, "approve", digest)
        return done

    async def twist(self, one: Interruption, status: Status) -> None:
        """Decide the approval at which `one` strikes otherwise than usual."""
        found = [(approve, digest) for approve, digest in self._pending(status) if approve.id == one.site.op]
        if not found:
            self._scene.miss(one)
            return
        approve, digest = found[0]
        match one.action:
            case "deny":
                self._scene.note(one)
                await self._decide(approve, "deny", digest)
            case "forge":
                self._scene.note(one)
                await self._forge(approve, digest)
            case "cross":
                self._scene.note(one)
                await self._decide(approve, "approve", digest)
                await self._decide(approve, "deny", digest)
            case "stale-decision":
                await self._decide_stale(one, approve, digest)
            case "revoke":
                await self._revoke(one, approve, digest)
            case _:
                self._reserve(approve, self._decide_late, one, approve, digest)

    def pending(self, status: Status) -> Iterator[str]:
        """Ids of the approvals that wait for a decision."""
        return (approve.id for approve, _ in self._pending(status))

    async def at_desk(self, request: Request) -> None:
        """A look-up at the desk is answered only after an approval whose actor is about to lose authority has been told; who
        looks up before telling waits two polls at most.
        """
        if self._revoking is not None and request.service == "desk":
            with trio.move_on_after(2 * self._scene.subject.bounds.poll_ns / 1e9):
                await self._revoking.wait()

    def _pending(self, status: Status) -> Iterable[tuple[Approve, str]]:
        """The approvals that are shown as pending, with what they are bound to."""
        plan = self._scene.plan
        shown = {one.operation: one for one in status.approvals}
        if status.state == "waiting" and status.on is not None and status.on not in shown:
            waiting = plan.leaf(status.on)
            # A harness that shows no more than this may take a moment to go on after it was told.
            is_open = isinstance(waiting, Approve) and not self._desks.setdefault(waiting.id, _Desk()).is_decided
            return [(waiting, self._digest(waiting))] if is_open and isinstance(waiting, Approve) else []
        found = ((plan.leaf(one.operation), one) for one in shown.values() if one.state == "pending")
        return [(leaf, one.digest or self._digest(leaf)) for leaf, one in found if isinstance(leaf, Approve)]

    def _digest(self, approve: Approve) -> str:
        of = self._scene.plan.leaf(approve.of)
        assert isinstance(of, Call | Model), f"approval {approve.id} is about {approve.of}"
        return approval_digest(of)

    async def _decide(self, approve: Approve, decision: Literal["approve", "deny"], digest: str) -> Answer:
        """Decide once more; the decision before, as long as nobody knows whether it has arrived."""
        scene, desk = self._scene, self._desks.setdefault(approve.id, _Desk())
        question = desk.open
        if question is None or (question.digest, question.decision) != (digest, decision):
            desk.decisions += 1
            question = questions.decide(scene.run, approve, desk.decisions, decision, digest, scene.world.nonce())
        answer = await scene.client.ask(question)
        desk.open = question if answer.outcome == "indefinite" else None
        if answer.outcome == "ok":
            desk.is_decided = True
            scene.headway.decided(approve)
            scene.patience.disturb()
            await scene.acknowledged(question, answer)
        return answer

    async def _forge(self, approve: Approve, digest: str) -> None:
        """Somebody without authority says yes, and then no."""
        for decision in DECISIONS:
            nonce = self._scene.world.nonce()
            forged = questions.decide(
                self._scene.run, approve, f"forged:{decision}", decision, digest, nonce, actor=STRANGER
            )
            await commands.told(self._scene, forged)

    async def _decide_stale(self, one: Interruption, approve: Approve, digest: str) -> None:
        """Change what the approval is about, decide by the old digest, and then by the one that is shown."""
        scene = self._scene
        scene.note(one)
        target = one.target or approve.of
        await commands.told(scene, questions.steer(scene.run, target, 1, commands.DIRECTIONS[0], scene.world.nonce()))
        await self._decide(approve, "approve", digest)
        status = (await scene.client.status()).status
        if status is not None:
            await self.attend(status)

    async def _revoke(self, one: Interruption, approve: Approve, digest: str) -> None:
        """Approve, and withdraw the actor's authority before the release can have looked it up; grant it again after `ns`."""
        self._revoking = trio.Event()
        try:
            answer = await self._decide(approve, "approve", digest)
            if answer.outcome == "ok":
                self._scene.note(one)
                self._scene.outside.revoke(ACTOR)
                self._is_out = True
                self._reserve(approve, self._grant, one, approve)
            else:
                self._scene.miss(one)
        finally:
            self._revoking.set()
            self._revoking = None

    async def _grant(self, one: Interruption, approve: Approve) -> None:
        await self._scene.world.sleep_ns(one.ns)
        self._scene.outside.grant(ACTOR)
        self._is_out = False
        self._desks[approve.id].is_decided = False

    async def _decide_late(self, one: Interruption, approve: Approve, digest: str) -> None:
        scene = self._scene
        if approve.validity_ns is None:
            scene.miss(one)
            return
        await scene.world.sleep_ns(approve.validity_ns + scene.subject.bounds.poll_ns)
        scene.note(one)
        await self._decide(approve, "approve", digest)

    def _reserve(self, approve: Approve, work: object, *args: object) -> None:
        """Leave the approval to `work`, in the background; the run is not stuck meanwhile."""
        self._desks.setdefault(approve.id, _Desk()).is_reserved = True
        self._scene.soon(self._alone, approve, work, *args)

    async def _alone(self, approve: Approve, work: object, *args: object) -> None:
        try:
            with self._scene.patience.held():
                await work(*args)  # type: ignore[operator]  # a method of this class
        finally:
            self._desks[approve.id].is_reserved = False
