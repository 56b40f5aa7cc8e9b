"""The staged explorer: `explore(program)` goes from the default run to single strikes, pairs, schedules, mixes and mutants.

The map: `explorer` the whole, `stages` what each does, `running` the runs within the budget, `jobs` one run.

- `kinds` what a departure is called, `plan` the single strikes of a run, `pairs` and `cones` which two belong together,
  `sampling` which of too many: all pure
- `masks` and `lanes`: runs under swarm masks and a portfolio of schedules, some of them healed; `mutants`: changed tapes
- `book` counts, `report` the result as values, `simplest` the least that fails

What a run can be struck with is on its tape, see `simkit.tape` (open tapes) and `simkit.striking`.
"""

from simkit.exploring.explorer import explore
from simkit.exploring.report import Finding, Report, Sites, Stage, Unfinished
from simkit.exploring.running import Budget
from simkit.exploring.stages import STAGES

__all__ = ["STAGES", "Budget", "Finding", "Report", "Sites", "Stage", "Unfinished", "explore"]
