"""The one door from the command line to the engine. It opens late, because an engine loads trio; tests put a fake behind it.

An engine emits events as it works, all but the last words `Certified`, `Replayed` and `CampaignEnded`, which the command
line says itself from what comes back. It asks `stopping()` between runs and, once that is true, finishes the running one,
saves it and returns what it has. Problems of target or input are raised as `SimkitError`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from conformance.certificate import Certificate
    from conformance.events import DoctorResult, Emit, Replayed, Summary
    from conformance.look import Look
    from conformance.order import Bounds, Order
    from conformance.store import Store
    from simkit.case import Case

_MODULE = "conformance.campaign"


class Engine(Protocol):
    """What `conformance.campaign` provides. `target` is what was typed after `-t`; `jobs` None leaves it to the engine."""

    def certify(
        self,
        target: str,
        *,
        config: str | None,
        tier: str,
        requirements: str | None,
        jobs: int | None,
        store: Store,
        emit: Emit,
        stopping: Callable[[], bool],
    ) -> Certificate: ...

    def run(
        self,
        order: Order,
        seeds: Sequence[int],
        *,
        shrink: Bounds,
        jobs: int | None,
        store: Store,
        emit: Emit,
        stopping: Callable[[], bool],
    ) -> Summary: ...

    def replay(
        self,
        case: Case,
        *,
        target: str | None,
        config: str | None,
        show: bool,
        look: Look,
        store: Store,
        emit: Emit,
        stopping: Callable[[], bool],
    ) -> Replayed: ...

    def replay_scenario(
        self,
        target: str,
        *,
        config: str | None,
        mutant: str | None,
        scenario: str,
        show: bool,
        look: Look,
        store: Store,
        emit: Emit,
        stopping: Callable[[], bool],
    ) -> Replayed: ...

    def mutants(
        self,
        target: str,
        *,
        config: str | None,
        only: Sequence[str],
        seeds: int,
        jobs: int | None,
        emit: Emit,
        stopping: Callable[[], bool],
    ) -> Summary: ...

    def doctor(
        self, target: str | None, *, config: str | None, store: Store, emit: Emit, stopping: Callable[[], bool]
    ) -> DoctorResult: ...


def load() -> Engine:
    """The engine."""
    return cast("Engine", importlib.import_module(_MODULE))
