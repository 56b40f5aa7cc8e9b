"""A mutant of OWN-10 whose server forgets that there are living owners."""

from __future__ import annotations

from conformance.mutants import Patch, mutant
from conformance.mutants.restarts import on_restart
from reference_runtime.store import Store


@mutant("restart-takes-leases-back", "OWN-10", shown_by="caretaker/kill@sweep#1.received(engine)")
def restart_takes_leases_back(patch: Patch) -> None:
    """A server that comes up takes back all that was given out, whoever is at it."""

    def reclaim(store: Store) -> None:
        for generation, _ in store.leases():
            store.reclaim(generation)

    on_restart(patch, reclaim)
