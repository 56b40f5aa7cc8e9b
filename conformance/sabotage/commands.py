"""What the target is asked out of turn: to stop, to hold on, to do something else, and what it must not heed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from conformance import questions
from conformance.questions import Question
from scenarios.history import Applied, Received, Started
from scenarios.plan import Model, Wait

if TYPE_CHECKING:
    from conformance.control import Answer
    from conformance.sabotage.scene import Passing, Scene
    from scenarios.interruption import Interruption
    from simkit.services import Fault

#: Two directions for one operation, in the order in which they are given.
DIRECTIONS: tuple[Mapping[str, Any], ...] = ({"amount": 101}, {"amount": 102})
#: How many times as many tokens a model is directed to use.
_LONGER = (4, 5)
#: How often it is looked, while a pause lasts, whether all are back.
_RESTS_MAX = 10_000
#: A signal name that no plan waits for.
NOBODY = "nobody"


async def cancel(scene: Scene, one: Interruption, _passing: Passing | None) -> Fault | None:
    """Cancel the run; a call at whose barrier this is waits until that has been answered. Each time is a command of its own."""
    scene.note(one)
    await told(scene, questions.command("cancel", scene.run, scene.number_of("cancel")))
    return None


async def halt(scene: Scene, one: Interruption, _passing: Passing | None) -> Fault | None:
    """Pause the run, and let it go on after a while."""
    scene.note(one)
    number = scene.noted
    pause = questions.command("pause", scene.run, number)
    answer = await scene.client.ask(pause)
    if answer.outcome == "indefinite":
        scene.soon(_hold_at_last, scene, pause, one.ns, number)
    else:
        await scene.acknowledged(pause, answer)
        scene.soon(_go_on, scene, one.ns, number)
    return None


async def _hold_at_last(scene: Scene, pause: Question, ns: int, number: int) -> None:
    """Let the run go on only once it is certainly paused: a pause that arrives after that would hold it for good."""
    await _insist(scene, pause)
    await _go_on(scene, ns, number)


async def _go_on(scene: Scene, ns: int, number: int) -> None:
    with scene.patience.held():
        await _rest(scene, ns)
    await _insist(scene, questions.command("unpause", scene.run, number))


async def _rest(scene: Scene, ns: int) -> None:
    """A while; where somebody came up meanwhile another one from then on, with as much time as a takeover needs. Else the pause
    of a target that is slow to come up would be over before anybody could see whether a restart has forgotten it.
    """
    since_ns = scene.world.now_ns()
    await scene.world.sleep_ns(ns)
    for _ in range(_RESTS_MAX):
        left_ns = _left_ns(scene, since_ns, max(ns, scene.subject.bounds.grace_ns))
        if left_ns <= 0 or scene.crew.has_stopped:
            return
        await scene.world.sleep_ns(left_ns)


def _left_ns(scene: Scene, since_ns: int, ns: int) -> int:
    """How long it takes until all have been up for `ns`, as far as they were not already at `since_ns`; a little while nobody
    can tell.
    """
    if not scene.crew.is_complete:
        return scene.subject.bounds.poll_ns
    started = (one.at_ns for one in reversed(scene.recorder.events) if isinstance(one, Started))
    last_ns = next(started, since_ns)
    return last_ns + ns - scene.world.now_ns() if last_ns > since_ns else 0


async def steer(scene: Scene, one: Interruption, _passing: Passing | None) -> Fault | None:
    """Give two directions for an operation, one after the other."""
    target = one.target or one.site.op
    if target is None:
        scene.miss(one)
        return None
    scene.note(one)
    for params in directions_for(scene.plan.leaf(target)):
        number = scene.number_of(f"steer:{target}")
        await told(scene, questions.steer(scene.run, target, number, params, scene.world.nonce()))
    return None


def directions_for(leaf: object) -> tuple[Mapping[str, Any], ...]:
    """Two directions for an operation. A model is asked the same, and to use more than was set aside for it."""
    if not isinstance(leaf, Model):
        return DIRECTIONS
    return tuple({**leaf.params, "tokens": times * leaf.tokens, "uses": times * leaf.tokens} for times in _LONGER)


async def unmatched(scene: Scene, one: Interruption, _passing: Passing | None) -> Fault | None:
    """Send a signal that nothing waits for."""
    scene.note(one)
    await told(scene, questions.signal(scene.run, "unmatched", NOBODY, {"nonce": scene.nonce_of("unmatched")}))
    return None


async def late_signal(scene: Scene, one: Interruption, _passing: Passing | None) -> Fault | None:
    """Send one more signal of a name whose waits are over: of the wait that is named, else of the plan's first."""
    named = scene.plan.leaf(one.target or one.site.op or "")
    wait = named if isinstance(named, Wait) else next(iter(scene.plan.waits()), None)
    if wait is None:
        scene.miss(one)
        return None
    scene.note(one)
    await told(
        scene, questions.signal(scene.run, f"{wait.id}:late", wait.signal, {"nonce": scene.nonce_of(f"late:{wait.id}")})
    )
    return None


async def misuse(scene: Scene, one: Interruption, _passing: Passing | None) -> Fault | None:
    """Start another plan under the run's own id."""
    scene.note(one)
    await told(scene, questions.misuse(scene.run, scene.plan))
    return None


async def notice(scene: Scene, one: Interruption, _passing: Passing | None) -> Fault | None:
    """After a while tell the harness twice that the effect of an operation happened, and once of an effect it knows not."""
    scene.soon(_notice, scene, one)
    return None


async def _notice(scene: Scene, one: Interruption) -> None:
    with scene.patience.held():
        await scene.world.sleep_ns(one.ns)
    op = one.target or one.site.op or ""
    nonce = _effect_of(scene, op)
    if nonce is None:
        scene.miss(one)
        return
    scene.note(one)
    word = questions.notice(scene.run, op, nonce, scene.plan.operations_of_children().get(op))
    await _insist(scene, word)
    scene.headway.noticed(op)
    for question in (word, questions.notice(scene.run, NOBODY, scene.nonce_of("notice"))):
        await _insist(scene, question)


def _effect_of(scene: Scene, op: str) -> str | None:
    """The nonce of the first effect of an operation, if it has had one."""
    calls = {one.call for one in scene.recorder.events if isinstance(one, Received) and one.op == op}
    effects = (one.nonce for one in scene.recorder.events if isinstance(one, Applied) and one.call in calls)
    return next(effects, None)


async def repeat(scene: Scene, one: Interruption, _passing: Passing | None) -> Fault | None:
    """Ask again, as a client that was not sure: the start, or the latest question of another verb."""
    verb = one.site.verb or "start"
    if not scene.client.has_asked(verb):
        scene.miss(one)
        return None
    scene.note(one)
    if one.site.where == "ack":
        await scene.client.again(verb)
    else:
        scene.beside(_repeat, scene, verb)
    return None


async def _repeat(scene: Scene, verb: str) -> None:
    """Of the next worker when there is none right now."""
    while scene.crew.worker is None:
        await scene.world.sleep_ns(scene.subject.bounds.poll_ns)
    await scene.client.again(verb)


async def told(scene: Scene, question: Question) -> Answer:
    """Ask, and go on asking in the background while nobody knows whether it has arrived; the first answer."""
    answer = await scene.client.ask(question)
    if answer.outcome == "indefinite":
        scene.soon(_insist, scene, question)
    else:
        await scene.acknowledged(question, answer)
    return answer


async def _insist(scene: Scene, question: Question) -> None:
    """Ask until there is a definite answer, or the run has had its time."""
    while scene.patience.within(1):
        if not scene.crew.lives(scene.crew.worker):
            await scene.world.sleep_ns(scene.subject.bounds.poll_ns)
            continue
        answer = await scene.client.ask(question)
        if answer.outcome != "indefinite":
            await scene.acknowledged(question, answer)
            return
        await scene.world.sleep_ns(scene.subject.bounds.poll_ns)
