"""What is asked of `run`, as values: as what its seeds are to be run, and how much may be spent on a failure."""

from __future__ import annotations

from typing import Literal

import attrs

Kernel = Literal["fast", "fallback"]


@attrs.frozen
class Order:
    """As what seeds are to be run; small and picklable. `target` is what was typed after `-t`."""

    target: str
    configuration: str | None = None
    mutant: str | None = None
    kernel: Kernel = "fast"
    boundaries: bool = False  # crash at every storage boundary of each as well
    show: bool = False  # tell each whole
    swarm: bool = True  # let disks and network misbehave in some of them
    #: Crash each everywhere, and in so many pairs of places, and into so many states of the disk; None: no sweep.
    sweep: int | None = None


@attrs.frozen
class Bounds:
    """How much may be spent on one failure: runs to shrink it, and as many to explain it; seconds for both, 0 for no bound."""

    runs: int = 0
    seconds: float = 0.0


#: Failures are kept as they were found.
NOT_SHRUNK = Bounds()
