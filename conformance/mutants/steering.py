"""Mutants of SIG-3 to SIG-6: pauses that do not hold, signals that are lost sight of, and directions that are not followed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from conformance.mutants import Patch, mutant
from conformance.mutants.restarts import on_restart
from reference_runtime import views
from reference_runtime.children import BY_OWNER, Children
from reference_runtime.control import Control
from reference_runtime.evolution import FITS
from reference_runtime.model import canonical
from reference_runtime.ownership import Ownership
from reference_runtime.waits import Waits

if TYPE_CHECKING:
    from collections.abc import Callable

    from reference_runtime.model import Json
    from reference_runtime.rows import Operation
    from reference_runtime.store import Store

_TAKEN = """SELECT 1 FROM event e JOIN attempt a ON a.task = e.task WHERE a.id = ? AND e.name = 'steer'
    AND e.disposition = 'released' AND e.payload ->> 'operation' = ?"""


@mutant("pause-in-memory", "SIG-3", shown_by="hold/halt@pack#1.received+kill@pack#1.applied(engine)")
def pause_in_memory(patch: Patch) -> None:
    """A pause is kept in the memory of the server, and a restart goes on with the run."""
    on_restart(patch, "UPDATE attempt SET paused = 0")


@mutant("pause-not-looked-at", "SIG-3", shown_by="hold/halt@pack#1.received")
def pause_not_looked_at(patch: Patch) -> None:
    """What a step of a paused run opens by its end is handed out like anything else."""

    def runnable(self: Ownership, now_ns: int, limit: int, execution: str | None = None) -> list[Operation]:
        where = f"WHERE o.due_ns <= ?2 AND {FITS} ORDER BY o.due_ns, o.attempt, o.position LIMIT ?3"
        return self._operations(where, self.fits(execution), now_ns, limit) if limit > 0 else []

    patch.replace(Ownership, "runnable", runnable)


@mutant("repeats-go-on-while-held", "SIG-3", shown_by="knocking/halt@knock#1.received")
def repeats_go_on_while_held(patch: Patch) -> None:
    """A pause holds back what is new, and calls that have been tried before are tried again."""

    def runnable(self: Ownership, now_ns: int, limit: int, execution: str | None = None) -> list[Operation]:
        where = f"WHERE o.due_ns <= ?2 AND (NOT a.paused OR o.tries) AND {FITS} ORDER BY o.due_ns, o.position LIMIT ?3"
        return self._operations(where, self.fits(execution), now_ns, limit) if limit > 0 else []

    patch.replace(Ownership, "runnable", runnable)


@mutant("pause-spares-children", "SIG-3", shown_by="halt-all/halt@kid/shoes#1.received")
def pause_spares_children(patch: Patch) -> None:
    """A pause is of one run, and children that it owns go on."""

    def hold(self: Children, attempt: str, by: int, *, is_held: bool) -> None:
        if by != BY_OWNER:
            original(self, attempt, by, is_held=is_held)

    original = Children.hold
    patch.replace(Children, "hold", hold)


@mutant("pause-misses-the-next-child", "SIG-3", shown_by="halt-all/halt@pack#1.received")
def pause_misses_the_next_child(patch: Patch) -> None:
    """A pause holds the children that are there; one that is admitted meanwhile begins."""
    patch.replace(Children, "is_paused", lambda _self, _attempt: False)


@mutant("received-is-used", "SIG-4", shown_by="doorbell/early@ack:start:knock+kill@open#1.applied(engine)")
def received_is_used(patch: Patch) -> None:
    """A signal is said to have released its wait as soon as it is stored."""

    def disposition_of(_self: Waits, consumer: str | None, *, is_over: bool) -> str:
        return "late" if is_over and not consumer else "released"

    patch.replace(Waits, "disposition_of", disposition_of)


def _at_the_end(patch: Patch, change: Callable[[Mapping[str, str]], Mapping[str, str]]) -> None:
    """A status of a run that has ended shows its signals as `change` has them."""

    def status(store: Store, task: str) -> Json:
        found = original(store, task)
        over = found["state"] in ("done", "failed", "cancelled", "blocked")
        return {**found, "signals": change(found["signals"])} if over else found

    original = views.status
    patch.replace(views, "status", status)


@mutant("leftovers-dropped", "SIG-5", shown_by="doorbell/unmatched@ack:start")
def leftovers_dropped(patch: Patch) -> None:
    """When a run ends, signals that nobody used go with it."""
    _at_the_end(patch, lambda signals: {id_: said for id_, said in signals.items() if said == "released"})


@mutant("leftovers-count-as-used", "SIG-5", shown_by="doorbell/unmatched@ack:start")
def leftovers_count_as_used(patch: Patch) -> None:
    """When a run ends, everything that was delivered to it counts as used."""
    _at_the_end(patch, lambda signals: dict.fromkeys(signals, "released"))


@mutant("first-direction-wins", "SIG-6", shown_by="helm/steer@waiting:ready>turn")
def first_direction_wins(patch: Patch) -> None:
    """The first direction for an operation closes the subject, and later ones are acknowledged all the same."""

    def steer(self: Control, attempt: str, payload: Mapping[str, Any]) -> str:
        if self._row(_TAKEN, attempt, payload.get("operation")) is not None:
            return "released"
        return original(self, attempt, payload)

    original = Control.steer
    patch.replace(Control, "steer", steer)


@mutant("directions-in-memory", "SIG-6", shown_by="helm/steer@chart#1.received>log+kill@chart#1.applied(engine)")
def directions_in_memory(patch: Patch) -> None:
    """Directions are kept in the memory of the server, and a restart goes by the plan."""

    def forget(store: Store) -> None:
        rows = store._rows(  # noqa: SLF001 - a mutant goes where it should not
            "SELECT o.attempt, o.id, t.plan FROM operation o JOIN task t ON t.attempt = o.attempt"
            " WHERE o.kind = 'call' AND o.state = 'planned'"
        )
        for attempt, operation, plan in rows:
            written = {leaf["id"]: leaf["params"] for leaf in _leaves(json.loads(plan))}
            store.db.execute(
                "UPDATE operation SET spec = json_set(spec, '$.params', json(?)) WHERE attempt = ? AND id = ?",
                (canonical(written[operation]), attempt, operation),
            )

    on_restart(patch, forget)


def _leaves(value: Any) -> list[Json]:
    """Every object of a plan that has parameters."""
    if isinstance(value, list):
        return [leaf for one in value for leaf in _leaves(one)]
    if not isinstance(value, dict):
        return []
    return [value] if "params" in value else [leaf for one in value.values() for leaf in _leaves(one)]
