"""Options that several commands share, as cyclopts reads them from annotations."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import attrs
from cyclopts import Parameter

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
ScenarioName = Annotated[str | None, Parameter(name="--scenario", help="A scenario by name, e.g. chain/undisturbed.")]


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
