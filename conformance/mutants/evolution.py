"""Mutants of VER-1 to VER-5: code that is not asked what it is, refusals that cost something, decisions that change."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from conformance.mutants import Patch, mutant
from reference_runtime import runner, schema
from reference_runtime.commands import Outcome
from reference_runtime.evolution import Code, Evolution
from reference_runtime.replay import Replay
from reference_runtime.turns import Turns

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from reference_runtime.model import Json
    from reference_runtime.replay import _Branch
    from reference_runtime.runner import Warm
    from reference_runtime.turns import Turn


@mutant("code-not-asked", "VER-1", shown_by="rollout/deploy@pay#1.applied=3+deploy@end=1")
def code_not_asked(patch: Patch) -> None:
    """Work is given to every worker, whatever code it says that it runs."""
    patch.replace(Evolution, "fits", lambda _self, _execution: None)
    patch.replace(Evolution, "may_continue", lambda _self, _code, _written: True)


@mutant("schema-not-compared", "VER-1", shown_by="rollout/deploy@waiting:hold(engine)=0")
def schema_not_compared(patch: Patch) -> None:
    """A store is opened without a look at the version of its schema: what is known of the tables is there, after all."""
    patch.replace(schema, "check_version", lambda _path, _version, _known: None)


@mutant("places-not-compared", "VER-1", shown_by="rollout/deploy@waiting:hold=3+deploy@end=1", config="replay")
def places_not_compared(patch: Patch) -> None:
    """A replay looks for what the code asks for anywhere in its history: that it stands elsewhere by now is not noticed."""

    def issue(self: Replay, branch: _Branch, kind: str, id_: str, spec: Json) -> None:
        others = {slot: command for slot, command in self._expected.items() if command.id != id_}
        is_recorded, self._expected = len(others) < len(self._expected), {}
        original(self, branch, kind, id_, spec)
        self._expected = others
        if is_recorded:
            self.fresh = [command for command in self.fresh if command.id != id_]

    original = Replay._issue  # noqa: SLF001 - a mutant goes where it should not
    patch.replace(Replay, "_issue", issue)


def _after_carrying_over(patch: Patch, spoil: Callable[[Evolution, str], None]) -> None:
    """Do this to an attempt once what is saved of it was carried over to newer code."""

    def carry_over(self: Evolution, task: str, attempt: str, execution: str, name: str) -> None:
        original(self, task, attempt, execution, name)
        spoil(self, attempt)

    original = Evolution._carry_over  # noqa: SLF001 - a mutant goes where it should not
    patch.replace(Evolution, "_carry_over", carry_over)


@mutant("transform-of-what-was-sent", "EFF-3", shown_by="rollout/deploy@pay#1.applied=4")
def transform_of_what_was_sent(patch: Patch) -> None:
    """A transform is given what was sent already as well, and what it makes of it is sent the next time."""

    def spoil(self: Evolution, attempt: str) -> None:
        self.db.execute(
            "UPDATE operation SET request = json_set(request, '$.params.unit', 'cent')"
            " WHERE attempt = ? AND kind = 'call' AND request IS NOT NULL",
            (attempt,),
        )

    _after_carrying_over(patch, spoil)


@mutant("transform-loses-the-last", "EFF-11", shown_by="rollout/deploy@waiting:hold=4")
def transform_loses_the_last(patch: Patch) -> None:
    """Of what a transform is to carry over the last operation is left behind."""

    def spoil(self: Evolution, attempt: str) -> None:
        row = self._row(
            "SELECT id FROM operation WHERE attempt = ? AND kind = 'call' AND request IS NULL ORDER BY position DESC",
            attempt,
        )
        if row is not None:
            self.db.execute("DELETE FROM dependency WHERE attempt = ? AND operation = ?", (attempt, row[0]))
            self.db.execute("DELETE FROM operation WHERE attempt = ? AND id = ?", (attempt, row[0]))

    _after_carrying_over(patch, spoil)


@mutant("transform-begins-anew", "DUR-3", shown_by="rollout/deploy@waiting:hold=4")
def transform_begins_anew(patch: Patch) -> None:
    """What was read before the new code came is read again by it: it might be something else to it."""

    def spoil(self: Evolution, attempt: str) -> None:
        self.db.execute(
            "UPDATE operation SET state = 'planned', request = NULL, answer = NULL, due_ns = ?, version = version + 1"
            " WHERE attempt = ? AND semantics = 'read' AND state = 'succeeded'",
            (time.time_ns(), attempt),
        )

    _after_carrying_over(patch, spoil)


@mutant("bound-to-one-build", "VER-2", shown_by="rollout/deploy@begin#1.applied=2")
def bound_to_one_build(patch: Patch) -> None:
    """Work stays with the version that began it; that newer code says it goes on with it is not heard."""
    patch.replace(Code, "continues", property(lambda self: (self.version,)))
    patch.replace(Code, "replays", property(lambda self: (self.version,)))


@mutant("refusal-fails-the-run", "VER-3", shown_by="rollout/deploy@pay#1.applied=3+deploy@end=1")
def refusal_fails_the_run(patch: Patch) -> None:
    """A run that nobody there has fitting code for is failed, with that as the reason."""

    def strand(self: Evolution, attempt: str, reason: str | None) -> bool:
        if reason is None:
            return original(self, attempt, reason)
        with self._transaction():
            self.db.execute("UPDATE attempt SET outcome = 'failed', reason = ? WHERE id = ?", (reason, attempt))
            self._log_run(attempt, "failed", reason)
            self._touch(attempt)
            return True

    original = Evolution._strand  # noqa: SLF001 - a mutant goes where it should not
    patch.replace(Evolution, "_strand", strand)


@mutant("refused-work-unqueued", "VER-3", shown_by="rollout/deploy@pay#1.applied=3+deploy@end=1")
def refused_work_unqueued(patch: Patch) -> None:
    """Work that nobody there has fitting code for is taken off the queue, so that it is not looked at again and again."""

    def strand(self: Evolution, attempt: str, reason: str | None) -> bool:
        changed = original(self, attempt, reason)
        if reason is not None:
            with self._transaction():
                self.db.execute("UPDATE operation SET due_ns = NULL WHERE attempt = ?", (attempt,))
        return changed

    original = Evolution._strand  # noqa: SLF001 - a mutant goes where it should not
    patch.replace(Evolution, "_strand", strand)


@mutant("version-of-the-beginning", "VER-4", shown_by="mixed-fleet/deploy@open#1.applied=2+second@waiting:hold=1")
def version_of_the_beginning(patch: Patch) -> None:
    """Work counts as written by the code that began it, however much of it newer code has done since."""

    def take_up(self: Evolution, attempt: str, execution: str) -> str:
        written = self._value("SELECT code FROM attempt WHERE id = ?", attempt)
        taken = original(self, attempt, execution)
        self.db.execute("UPDATE attempt SET code = ifnull(?, code) WHERE id = ?", (written, attempt))
        return taken

    original = Evolution.take_up
    patch.replace(Evolution, "take_up", take_up)


@mutant("order-of-acceptance-lost", "VER-5", shown_by="crossroads/kill@waiting:gate~150000000ns", config="replay")
def order_of_acceptance_lost(patch: Patch) -> None:
    """What a replay is told of its history comes in the order of the plan, not in that of acceptance."""

    def history(self: Turns, turn: Turn, known: Sequence[int] = ()) -> tuple[list[Json], list[Json], bool]:
        commands, outcomes, is_warm = original(self, turn, known)
        rows = self._rows("SELECT id FROM operation WHERE attempt = ? ORDER BY position", turn.attempt)
        position = {id_: place for place, (id_,) in enumerate(rows)}
        return commands, sorted(outcomes, key=lambda one: position[one["operation"]]), is_warm

    original = Turns.history
    patch.replace(Turns, "history", history)


@mutant("batch-told-at-once", "VER-5", shown_by="crossroads/kill@waiting:gate~150000000ns", config="replay")
def batch_told_at_once(patch: Patch) -> None:
    """A function is told all of one batch before it may take the next step: so who wins a race may depend on the batch."""

    def tell(warm: Warm, outcomes: Sequence[Json]) -> None:
        replay = warm.replay
        for outcome in (Outcome(**one) for one in outcomes):
            branch = replay._waiting.pop(outcome.operation, None)  # noqa: SLF001 - a mutant goes where it should not
            if branch is not None:
                replay._answer(branch, outcome)  # noqa: SLF001
            elif outcome.operation not in replay._ids:  # noqa: SLF001
                replay._early[outcome.operation] = outcome  # noqa: SLF001
        replay._run()  # noqa: SLF001
        warm.seen += len(outcomes)

    patch.replace(runner, "tell", tell)
