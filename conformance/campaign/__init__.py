"""The engine behind the command line: it runs, judges, keeps and tells; reports and exit codes are not its affair.

    docket        findings of many runs → violations told, cases kept, verdicts
    seeds         `run`: drawn scenarios by seed, simulated, over several processes; or real where nothing can be simulated
    parallel      the processes seeds are shared out to; none of them outlives the campaign
    patience      Ctrl-C while real processes run: everything is left in order
    certification `certify`: the scenarios of a tier on real processes, and the certificate
    matrix        `mutants`: every mutant before every judge, over several processes
    proof         the mutants that prove the judges of this build, kept for as long as it does not change
    replaying     `replay`: a saved case or a named scenario again
    checkup       `doctor`

Importing this package loads trio; the command line does so only when it is about to run something.
"""

from conformance.campaign.certification import certify
from conformance.campaign.checkup import doctor
from conformance.campaign.matrix import mutants
from conformance.campaign.replaying import replay, replay_scenario
from conformance.campaign.seeds import run

__all__ = ["certify", "doctor", "mutants", "replay", "replay_scenario", "run"]
