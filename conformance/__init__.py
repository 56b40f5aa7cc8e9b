"""Harnesses put to the test: adapters, the two worlds, verdicts, certificates, reports and the command line.

- `targets`, `manifest`, `install`, `subject`: what is tested, and the environment it runs in
- `adapters`, `helper`: the programs that interpret a plan on a harness; `control`: the kit's side of their protocol
- `driver`, `injector`, `recorder`: one run of one scenario, from interruptions to a history
- `world`, `worlds`, `hosted`, `processes`, `members`, `simulate`: where it runs: real processes, or the simulated world
- `campaign`: many runs, judged; `mutants`: the reference runtime with one small fault each, which proves the judges
- `events`, `tally`, `failure`, `reporters`: what a campaign says, and how it is shown
- `certificate`, `store`, `schemas`: what is kept; `cli`: seven commands over all of it
"""
