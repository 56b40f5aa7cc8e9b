"""What may happen and what must hold, as pure data and pure functions: no clock, no I/O, no trio.

- `plan`: what a task is asked to do; `interruption`: what is done to the world, and where it strikes
- `generate`, `strategies`: both drawn from a tape or by Hypothesis; `catalogue`: the named scenarios and the tiers
- `history`: what an outside observer saw; `observed`, `index`, `lineage`: facts joined and derived from it once
- `obligations`: one judge for each promise; `verdict`, `rules`: what many findings add up to
- `requirements`: the frozen sets that a certificate refers to
"""
