"""simkit: a simulated world in one process, in which plain trio code runs, crashes and recovers, and every run replays.

The map, from the caller's side:

- `world`: `run(main, tape=…)` simulates one program; `World`, `Host`, `Outcome`; `limits`: its bounds; `choosing`,
  `surroundings`: how it asks a strategy, and what it has around it; `aio`, `threaded`: programs of asyncio and of threads
- `tape`: the one source of choice; `strategy`: who takes the next step; `trace`: what happened, and its digest
- `searching`: runs under one schedule after another (`search`); `strategies`: how they are chosen; `effects`: what steps touch;
  `discovery`: how likely the next is to show something new
- `process`: killed without unwinding, paused, resumed; `host`: a machine; `clock`: its wall clock; `wire`: to the outside
- `campaigns`, `parallel`: many seeds, over processes and machines (`campaign`)
- `exploring`: crashes, faults, schedules, singly and together, in stages (`explore`); `striking`: what they strike
- `coverage`: what a run showed decides what is tried next (`guided`); `watching`: who looks at runs from beside
- `crashes`: a crash at every boundary; `faults`: all that can go wrong; `swarm`: a mix for each run; `copies`: what stays good
- `points`: named points in a program, `maybe`, `always`, `sometimes`; `point_coverage`: which of them were hit
- `disk`, `sqlite`, `network`, `services`: what a program finds in the world
- `shrinking`, `explanation`, `chances`, `blame`: from a failing run to the least that fails, and to what decides
- `checking`: histories of what clients called and got, and whether they are linearizable (`check`)
- `testing`, `pytest_plugin`, `settings`: `@simkit.test`, a test that runs in a world of its own, seed by seed; `trials`: these
  runs; `stateful`: machines of rules, drawn by hypothesis; `spacetime`: a run as a table of who did what when
- `guard`: what is not deterministic is virtual or refused
- `case`: a run as a JSON file, with the `ladder` of its trace; `replaying`: what becomes of it (`divergence`), and what stands
  where on the way (`stepwise`, `standstill`, `debugging`); `errors`: what users meet; `mixups`, `unawaited`: what is easily
  got wrong

`_kernel` steps trio's tasks; it alone touches trio's internals. Importing this package loads none of the above.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simkit._kernel.deadlock import DeadlockError as DeadlockError
    from simkit._kernel.stepping import step as step
    from simkit._kernel.stepping import touch as touch
    from simkit._kernel.timers import Timer as Timer
    from simkit.campaigns import Campaign as Campaign
    from simkit.campaigns import campaign as campaign
    from simkit.case import Case as Case
    from simkit.checking import History as History
    from simkit.checking import Model as Model
    from simkit.checking import check as check
    from simkit.coverage import guided as guided
    from simkit.crashes import (
        CrashPoint as CrashPoint,
    )
    from simkit.crashes import (
        crash_everywhere as crash_everywhere,
    )
    from simkit.crashes import (
        crash_points as crash_points,
    )
    from simkit.crashes import (
        power_losses as power_losses,
    )
    from simkit.disk import Disk as Disk
    from simkit.disk import File as File
    from simkit.errors import OptionError as OptionError
    from simkit.errors import Problem as Problem
    from simkit.errors import SimkitError as SimkitError
    from simkit.explanation import Explanation as Explanation
    from simkit.explanation import explain as explain
    from simkit.exploring import explore as explore
    from simkit.guard import RefusedError as RefusedError
    from simkit.limits import BoundError as BoundError
    from simkit.limits import Limits as Limits
    from simkit.patience import LivenessError as LivenessError
    from simkit.points import (
        always as always,
    )
    from simkit.points import (
        eventually as eventually,
    )
    from simkit.points import (
        maybe as maybe,
    )
    from simkit.points import (
        reachable as reachable,
    )
    from simkit.points import (
        sometimes as sometimes,
    )
    from simkit.points import (
        unreachable as unreachable,
    )
    from simkit.process import (
        ExitStatus as ExitStatus,
    )
    from simkit.process import (
        Process as Process,
    )
    from simkit.process import (
        ProcessDead as ProcessDead,
    )
    from simkit.process import (
        current_process as current_process,
    )
    from simkit.replaying import (
        Divergence as Divergence,
    )
    from simkit.replaying import (
        Replayed as Replayed,
    )
    from simkit.replaying import (
        replay as replay,
    )
    from simkit.replaying import (
        replay_until as replay_until,
    )
    from simkit.searching import (
        Found as Found,
    )
    from simkit.searching import (
        NotFound as NotFound,
    )
    from simkit.searching import (
        search as search,
    )
    from simkit.shrinking import Retrial as Retrial
    from simkit.shrinking import shrink as shrink
    from simkit.stateful import StateMachine as StateMachine
    from simkit.strategy import (
        Fifo as Fifo,
    )
    from simkit.strategy import (
        RandomWalk as RandomWalk,
    )
    from simkit.strategy import (
        ReplayDivergedError as ReplayDivergedError,
    )
    from simkit.strategy import (
        ReplaySchedule as ReplaySchedule,
    )
    from simkit.strategy import (
        Strategy as Strategy,
    )
    from simkit.strategy import (
        TaskView as TaskView,
    )
    from simkit.tape import Stream as Stream
    from simkit.tape import Tape as Tape
    from simkit.testing import test as test
    from simkit.trace import Trace as Trace
    from simkit.trace import first_difference as first_difference
    from simkit.world import Host as Host
    from simkit.world import Outcome as Outcome
    from simkit.world import World as World
    from simkit.world import run as run

#: Where each public name lives. Loaded when first asked for, so that `--help` loads neither trio nor SQLite.
_HOMES = {
    "DeadlockError": "simkit._kernel.deadlock",
    "Timer": "simkit._kernel.timers",
    "step": "simkit._kernel.stepping",
    "touch": "simkit._kernel.stepping",
    "Campaign": "simkit.campaigns",
    "campaign": "simkit.campaigns",
    "Case": "simkit.case",
    "History": "simkit.checking",
    "Model": "simkit.checking",
    "check": "simkit.checking",
    "Disk": "simkit.disk",
    "File": "simkit.disk",
    "BoundError": "simkit.limits",
    "Limits": "simkit.limits",
    "OptionError": "simkit.errors",
    "Problem": "simkit.errors",
    "SimkitError": "simkit.errors",
    "explore": "simkit.exploring",
    "Explanation": "simkit.explanation",
    "explain": "simkit.explanation",
    "guided": "simkit.coverage",
    "CrashPoint": "simkit.crashes",
    "crash_points": "simkit.crashes",
    "crash_everywhere": "simkit.crashes",
    "power_losses": "simkit.crashes",
    "RefusedError": "simkit.guard",
    "LivenessError": "simkit.patience",
    "always": "simkit.points",
    "eventually": "simkit.points",
    "maybe": "simkit.points",
    "reachable": "simkit.points",
    "sometimes": "simkit.points",
    "unreachable": "simkit.points",
    "ExitStatus": "simkit.process",
    "Process": "simkit.process",
    "ProcessDead": "simkit.process",
    "current_process": "simkit.process",
    "Retrial": "simkit.shrinking",
    "shrink": "simkit.shrinking",
    "Found": "simkit.searching",
    "NotFound": "simkit.searching",
    "Divergence": "simkit.replaying",
    "Replayed": "simkit.replaying",
    "replay": "simkit.replaying",
    "replay_until": "simkit.replaying",
    "search": "simkit.searching",
    "Fifo": "simkit.strategy",
    "RandomWalk": "simkit.strategy",
    "ReplayDivergedError": "simkit.strategy",
    "ReplaySchedule": "simkit.strategy",
    "Strategy": "simkit.strategy",
    "TaskView": "simkit.strategy",
    "Stream": "simkit.tape",
    "Tape": "simkit.tape",
    "StateMachine": "simkit.stateful",
    "test": "simkit.testing",
    "Trace": "simkit.trace",
    "first_difference": "simkit.trace",
    "Host": "simkit.world",
    "Outcome": "simkit.world",
    "World": "simkit.world",
    "run": "simkit.world",
}

__all__ = sorted(_HOMES)  # noqa: PLE0605  # the one list


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'simkit' has no attribute {name!r}")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
