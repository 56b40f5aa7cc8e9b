"""Harnesses put to the test: adapters, the two worlds, verdicts, certificates, reports and the command line.

- `targets`, `manifest` with `manifest_checks`, `install`, `subject`: what is tested, and the environment it runs in; `reach`,
  `possible`: what its manifest rules out, and what a world can do to it
- `adapters`, `helper`: the programs that interpret a plan on a harness; `control`, `questions`: the kit's side
- `driver`, `client`, `crew`, `saboteur`, `sabotage`, `injector`, `headway`, `looks`, `canaries`, `recorder`: one run of one
  scenario, to its history
- `world`, `worlds`, `hosted`, `processes`, `pipes`, `heir`, `machine`, `members`, `ports`, `simulate`: where it runs, real or
  simulated
- `campaign`: many runs, judged; `order`, `look`: what is asked of it; `mutants`: the reference runtime with one small fault
  each, which proves the judges
- `paring`, `reducible`, `reduction`: a scenario made smaller; `specimens`, `pythons`: what `doctor` compares, and where
- `events`, `tally`, `failure`, `picture`, `tracefile`, `reporters`: what a campaign says, and how it is shown
- `certificate` with `certificate_file` and `recomputed`, `store`, `evidence`, `files`, `schemas`: what is kept
- `cli`: the commands over all of it; `invocation`: how they were called
"""
