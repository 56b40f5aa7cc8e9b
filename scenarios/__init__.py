"""What may happen and what must hold, as pure data and pure functions: no clock, no I/O, no trio.

- `plan`: what a task is asked to do, of the operations in `operation`; laid out by `unrolling`, checked by `plan_checks`,
  written by `plan_json`; `interruption`: what is done to the world, and where it strikes; `meanings`: in words
- `generate`, `generate_interruptions`, `strategies`: both drawn from a tape or by Hypothesis
- `story`, `stories`, `catalogue`: the named scenarios and the tiers
- `history`: what an outside observer saw; `observed`, `bodies`, `joining`, `index`: facts joined from it, of which more are
  derived: of operations (`lineage`, `outlived`, `repetition`, `turns`, `unwinding`), of workers (`tenure`, `versions`), of
  time and means (`terms`, `spending`), of words given (`consent`, `stops`), of what a harness shows (`chronicle`,
  `publishing`), of children (`kinship`), of ends (`endings`, `reasons`, `ability`); `remembered`: a memo for them
- `obligations`: one judge for each promise; `verdict`, `rules`: what many findings add up to
- `requirements`: the frozen sets that a certificate refers to; `faults`: public reports, and what would have caught them
"""
