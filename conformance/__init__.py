"""Harnesses put to the test: adapters, the two worlds, verdicts, certificates, reports and the command line.

- `targets`, `manifest`, `install`, `subject`: what is tested, and the environment it runs in
- `adapters`, `helper`: the programs that interpret a plan on a harness; `control`: the kit's side of their protocol
- `driver`, `client`, `crew`, `saboteur`, `injector`, `headway`, `recorder`: one run of one scenario, to its history
- `world`, `worlds`, `hosted`, `processes`, `members`, `ports`, `simulate`: where it runs, real or simulated
- `campaign`: many runs, judged; `mutants`: the reference runtime with one small fault each, which proves the judges
- `events`, `tally`, `failure`, `reporters`: what a campaign says, and how it is shown
- `certificate`, `store`, `schemas`: what is kept; `cli`: seven commands over all of it
"""
