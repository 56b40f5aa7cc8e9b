"""Coverage-guided mutation of tapes: what a run showed decides what is tried next.

- `features`: what a run showed, as strings: `Features` watches runs. `scope` says whose code counts, `edges` which of it ran
  (`monitoring` on Python 3.12 and later, `tracing` before), `events` what happened, `shapes` what the disks looked like
- `corpus`: tapes worth changing, with energies, on disk; `entry`: one of them
- `mutation`: another tape from one of a corpus; `tapes` and `schedules`: the changes
- `driver`: `guided`, a search that goes round in this circle
"""

from simkit.coverage.corpus import Corpus, CorpusDamagedWarning
from simkit.coverage.driver import Guided, guided
from simkit.coverage.edges import EdgesSkippedWarning
from simkit.coverage.entry import Entry
from simkit.coverage.features import Features
from simkit.coverage.mutation import Mutant, mutate

__all__ = [
    "Corpus",
    "CorpusDamagedWarning",
    "EdgesSkippedWarning",
    "Entry",
    "Features",
    "Guided",
    "Mutant",
    "guided",
    "mutate",
]
