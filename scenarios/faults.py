"""The kinds of faults that people have really reported of durable runtimes, and the obligations that are there to catch each.

Every kind is told in our own words: it stands for all harnesses that behave so, not for the one of the report. An obligation
names those it was learnt from (`Obligation.learnt_from`); a test holds both directions together.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import attrs

from scenarios.obligations.groups import place


@attrs.frozen
class Reported:
    """One kind of fault."""

    number: str  # F01 …
    area: str
    kind: str  # what goes wrong, one sentence
    obligations: tuple[str, ...]  # ids, in the catalogue's order; any of them is broken by it


#: Number, area, ids of obligations, what goes wrong.
_TABLE: Final = """
F01 | cancellation | CAN-2 CAN-3 CAN-6 JRN-9 OWN-7 | A run called cancelled turns successful when the step under way comes back.
F02 | ownership | DUR-1 DUR-6 OWN-4 | A storage error while runs of the dead are taken over leaves one without an owner.
F03 | storage | EFF-8 DUR-11 | One statement of a protocol takes a busy store for fatal where all the others would try again.
F04 | cancellation | EFF-4 CAN-8 | A cancel that lost its race is answered just like one that took effect.
F05 | ownership | OWN-1 OWN-3 DUR-10 | Two recoverers of one run read different messages, and the loser goes on with its own.
F06 | recovery | DUR-6 EFF-6 EFF-8 | Recovery begins before the host has what the work needs, and takes that for failing work.
F07 | replay | CAN-4 JRN-9 | A cancellation is recorded as the result of the step it interrupted, and replayed as such.
F08 | replay | DUR-3 DUR-14 CHI-2 | Which finished steps are run again depends on how the place to resume from was named.
F09 | journal | DUR-2 DUR-3 DUR-4 | The result of a step that ended beside a slower one is not stored yet when it is said to be.
F10 | journal | DUR-2 DUR-4 | The mark of a question that a step asks overwrites what the same step has written.
F11 | timers | SCH-1 SCH-2 SCH-10 | Work leaves one place before it has arrived in the next, and is lost when that move fails.
F12 | children | DUR-3 DUR-8 EFF-11 CHI-2 | Recovered branches begin anew though they had ended, or are joined too early.
F13 | completion | DUR-8 EFF-11 RTY-6 BUD-8 | Work reopened with more to do counts as finished as nothing happens to be queued.
F14 | effects | DUR-12 EFF-1 EFF-4 EFF-5 APR-5 | The approval is used up, the run fails: asked again, it acts twice or never.
F15 | children | DUR-5 DUR-13 CHI-2 | A parent waits for the end of a child that had ended before the parent was recorded.
F16 | journal | DUR-9 SCH-3 SIG-2 JRN-2 | One handle is closed as many times as its end is announced.
F17 | journal | OWN-1 OWN-2 JRN-2 | A late record of the start is written behind the record of the end.
F18 | journal | DUR-6 EFF-6 EFF-12 SCH-2 JRN-1 | A claim without its journal entry leaves work that is owned and never moves.
F19 | ownership | EFF-8 OWN-10 DLN-2 DLN-3 STA-4 | A connection long quiet is taken for a dead worker, whose work gets a twin.
F20 | cursors | STA-3 DUR-11 | An event half written leaves a hole in the numbering at which readers stop or give up.
F21 | waits | SIG-2 SCH-5 SCH-12 EFF-9 | An event is handed to a wait that timed out long ago, and the open one goes without.
F22 | journal | DUR-5 SCH-3 SCH-11 | One repeated start ends the background writer that everything else depends on.
F23 | artifacts | EFF-11 ART-2 ART-6 | Output that a failure left half written counts as finished the next time.
F24 | artifacts | ART-2 CPL-1 | A step is held to be done because its file is there, whatever is in it.
F25 | timers | SCH-1 OWN-6 | The next time of a schedule swings back and forth where the local clock repeats an hour.
F26 | signals | SCH-4 SCH-5 | A signal is refused because the run is just passing from one incarnation to the next.
F27 | capacity | SCH-7 SIG-5 BUD-7 | Signals that keep coming never let a run close its history and go on in a fresh one.
F28 | timers | SCH-1 OWN-4 | The timer that watches over a step is gone once the step's owner has reloaded its state.
F29 | signals | SIG-1 SIG-5 | The main flow ends while signals that were acknowledged still wait for their handlers.
F30 | replay | DUR-8 DUR-10 VER-5 | A replay that is fed in other batches sees a message before the step it came after.
F31 | evolution | DUR-7 DUR-9 EFF-2 VER-1 VER-5 | One more draw of chance in newer code moves the identity of all that follows.
F32 | replay | DUR-10 VER-5 | Pending waits are cancelled in an order that changes from process to process.
F33 | timers | CAN-3 SCH-12 | A timer goes off while its cancellation is on the way, and leaves two records or none.
F34 | ownership | DUR-1 SIG-1 OWN-2 OWN-5 | An owner already replaced acknowledges an input that its successor never learns of.
F35 | waits | SCH-4 SIG-1 EFF-9 | What arrives before its wait exists is gone when a crash follows.
F36 | waits | SCH-4 | An event sent right after the start is kept at one time and missed at another.
F37 | waits | SIG-2 SCH-12 OWN-3 | Waking what was waiting also clears away a wait that was added since it was looked at.
F38 | deadlines | SCH-1 SCH-6 DLN-1 | An expiry that was armed once goes by a date that has been moved since.
F39 | cancellation | DUR-1 CAN-1 CAN-5 CAN-7 | A termination that was acknowledged is forgotten by a restart.
F40 | capacity | SCH-11 RTY-3 EFF-10 RTY-4 | Results of work that was cleared away are delivered for ever and refused each time.
F41 | signals | SIG-1 SIG-5 | Events not handled yet are lost when a run goes on in a fresh history.
F42 | evolution | DUR-2 DUR-14 | The double that tests run against behaves unlike the real store.
F43 | capacity | DUR-6 OWN-9 RTY-1 SCH-9 BUD-6 | A run that waits for its next try loses its slot, and with it all tries left.
F44 | compensation | EFF-3 CMP-5 | What undoes a step works from what its parent says now, not from what was recorded then.
F45 | compensation | CMP-1 | Steps are undone in another order than the reverse of their completion.
F46 | ownership | EFF-8 OWN-8 OWN-9 RTY-1 RTY-5 | One death is noticed again and again, and each notice costs a try.
F47 | ownership | DUR-7 OWN-1 OWN-2 | The late report of a first stretch of work is taken for the report of the second.
F48 | timers | DUR-5 SCH-1 SCH-3 OWN-10 RTY-5 BUD-4 | A delay longer than a message is hidden multiplies the work it delays.
F49 | ownership | DUR-12 OWN-1 OWN-3 JRN-2 | A rescuer goes by an old list and rewrites what has ended or begun anew meanwhile.
F50 | ownership | DUR-7 OWN-4 OWN-10 STA-4 | By host name or age the dead pass for living, or somebody long at work for dead.
F51 | deadlines | RTY-2 OWN-10 SCH-12 | The clock of a step runs on while it is parked, so that it times out and gets a twin.
F52 | cursors | STA-3 | Frames that carry no event move a reader's cursor past events it has not seen.
F53 | cursors | STA-3 | A second break of the connection makes a reader forget where it was to go on.
F54 | keys | DUR-6 EFF-1 EFF-2 EFF-4 EFF-7 EFF-10 | A key's lock and record share one lifetime; a crash wedges it or acts twice.
F55 | replay | DUR-9 EFF-3 VER-5 | What a process has cached decides what is journalled, so that cold and warm hosts disagree.
F56 | journal | DUR-3 DUR-4 EFF-12 | When an effect has just been made, nothing is stored from which one could go on behind it.
F57 | budgets | BUD-1 BUD-2 RTY-6 BUD-3 BUD-5 BUD-8 | A retry, or the next turn, is granted the whole allowance anew.
"""


def _row(line: str) -> Reported:
    number, area, obligations, kind = (part.strip() for part in line.split("|"))
    return Reported(number, area, kind, tuple(sorted(obligations.split(), key=place)))


#: Every kind by its number.
FAULTS: Final[Mapping[str, Reported]] = MappingProxyType(
    {one.number: one for one in map(_row, _TABLE.strip().splitlines())}
)


def learnt_by(obligation: str) -> tuple[str, ...]:
    """The numbers of the kinds that this obligation is there to catch."""
    return tuple(one.number for one in FAULTS.values() if obligation in one.obligations)
