"""The engine behind the command line: it runs, judges, keeps and tells; reports and exit codes are not its affair.

    seeds         `run`: drawn scenarios by seed, simulated, over several processes; or real where nothing can be simulated
                  (`seedwork` the runs of one, `sweeping` where it is crashed, `shrinkage` a failure made small)
    certification `certify`: the scenarios of a tier on real processes, and the certificate (`subject`: of what; `cover`:
                  what it can say nothing of)
    matrix        `mutants`: every mutant before every judge, over several processes
    replaying     `replay`: a saved case or a named scenario again (`resimulating` in simulation, `mutant_replay` a mutant)
    checkup       `doctor` (`sameness` of a simulation everywhere)

    real          runs on real processes; `patience` with Ctrl-C, everything is left in order; `aliveness` of the adapter
    parallel      the processes seeds are shared out to; none of them outlives the campaign
    judging       from a run to a `judged` one
    docket        judged runs → violations told, cases kept (`keeping`), verdicts; `kinds` of failure, `happenings`, `vitality`
    sufficiency   how many seeds would have been enough
    proof         the mutants that prove the judges of this build, kept for as long as it does not change

Importing this package loads trio; the command line does so only when it is about to run something.
"""

from conformance.campaign.certification import certify
from conformance.campaign.checkup import doctor
from conformance.campaign.matrix import mutants
from conformance.campaign.replaying import replay, replay_scenario
from conformance.campaign.seeds import run

__all__ = ["certify", "doctor", "mutants", "replay", "replay_scenario", "run"]
