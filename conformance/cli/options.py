"""Options as cyclopts reads them from annotations: those that several commands share, and those of `run` and `replay`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import attrs
from cyclopts import Parameter

from conformance import order
from conformance.reporters import Format

Target = Annotated[
    str | None, Parameter(name=["--target", "-t"], help="What to test: dbos==3.4.0, reference:replay, a path.")
]
Config = Annotated[str | None, Parameter(name="--config", help="Configuration of the adapter, e.g. exit.")]
Mutant = Annotated[
    str | None, Parameter(name="--mutant", help="Break the reference runtime in this one way; in simulation.")
]
Jobs = Annotated[int | None, Parameter(name="--jobs", help="How many runs at a time; as many as fit when not given.")]
Show = Annotated[bool, Parameter(name="--show", negative=(), help="Print everything that happened, run by run.")]

# ---- of run

Seeds = Annotated[str, Parameter(help="Seeds: 7, 0-999 or 1,5,9.")]
Boundaries = Annotated[bool, Parameter(negative=(), help="Crash at every storage boundary of each seed too.")]
Swarm = Annotated[
    bool, Parameter(help="Draw faults of disks and network too: in some of the seeds, off before liveness counts.")
]
Sweep = Annotated[
    bool,
    Parameter(negative=(), help="Crash at every storage boundary, service barrier and message of each seed, and more."),
]
SweepBudget = Annotated[
    int, Parameter(help="With --sweep: pairs of crashes to try of a seed, and as many power losses by state.")
]
ShrinkRuns = Annotated[int, Parameter(help="Runs to make a failure small, and as many to explain it; 0 for none.")]
ShrinkSeconds = Annotated[float, Parameter(help="Seconds for the same; 0 for no bound but the runs.")]
Kernel = Annotated[order.Kernel, Parameter(help="The simulator's step loop.")]

# ---- of replay

ScenarioName = Annotated[str | None, Parameter(name="--scenario", help="A scenario by name, e.g. chain/undisturbed.")]
Until = Annotated[int | None, Parameter(help="Stop before the step of this event, and print where everything stands.")]
Break = Annotated[
    int | None, Parameter(name="--break", help="Open the debugger before the step of this event, in its task.")
]
Trace = Annotated[
    str | None,
    Parameter(
        allow_leading_hyphen=True,
        help="Write every event to this file as JSON lines, as it goes; - is standard output.",
    ),
]


@Parameter(name="*")
@attrs.frozen
class Common:
    """Options of every command."""

    format: Annotated[
        Format | None, Parameter(help="How to report; pretty on a terminal and plain elsewhere when not given.")
    ] = None
    store: Annotated[Path | None, Parameter(help="Where cases and certificates are kept; .simkit when not given.")] = (
        None
    )


#: Every option of these left away.
PLAIN = Common()
