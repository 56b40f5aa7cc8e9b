"""The whole catalogue as data: every promise with its id, level and kind, whether this build has a judge for it or not.

What has no judge yet is listed all the same, so that nobody takes silence for a promise that is kept. A judge words its own
promise at more length (`registry.Obligation`); a test holds level, kind and profile of both together.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, cast

import attrs

from scenarios.obligations.groups import GROUPS, Profile
from scenarios.verdict import Kind, Level


@attrs.frozen
class Promise:
    """One row of the catalogue."""

    id: str
    level: Level
    kind: Kind
    promise: str  # in our own words, one sentence

    @property
    def group(self) -> str:
        return self.id.partition("-")[0]

    @property
    def profile(self) -> Profile:
        return GROUPS[self.group].profile


#: Id, level, kind (S safety, L liveness), promise.
_TABLE: Final = """
DUR-1  MUST   S A task that was acknowledged is known under its id after any crash that follows.
DUR-2  MUST   S No result is shown as accepted unless its acceptance was committed, and stays so.
DUR-3  MUST   S An accepted result is used, not worked out again; all that follows carries the accepted value.
DUR-4  MUST   S A result, its operation's new state and the work it releases are seen together or not at all.
DUR-5  MUST   S Asking for one task id again, later or at once, makes one task and gives everybody the same answer.
DUR-6  MUST   L Work that was accepted and can run reaches its end once the faults have stopped.
DUR-7  MUST   S Recovery keeps the ids of task, attempt and operation, and gives each execution a new one of its own.
DUR-8  MUST   S Nothing is dispatched before everything it depends on has been accepted.
DUR-9  MUST   S Equal parameters do not make two operations one, and sending one operation twice does not make it two.
DUR-10 MUST   S The same journal and the same outside evidence lead recovery to the same decisions.
DUR-11 MUST   S Storage that fails leads to a clear error or a stop, never to an acknowledgement of what is lost.
DUR-12 MUST   S An attempt may end with an operation unresolved, and is not relabelled failed because of it.
DUR-13 SHOULD S Other work under a known task id is refused, not answered with the old result.
DUR-14 MUST   S Restored in the old process or a new one, a run goes on alike, and results of any size come back as they were.
JRN-1  MUST   S Operation, key, digest and attempt are on disk before the first byte of a request leaves.
JRN-2  MUST   S States change only along the listed transitions; impossible and backward ones are refused.
JRN-3  MUST   S An unknown outcome is written down as unknown, and can be told from a failed one.
JRN-4  MUST   S Ids that the outside gives to requests and resources are written down with the invocation.
JRN-5  MUST   S A secret handed to a tool is found in no byte stored or shown.
JRN-6  SHOULD S Each skip, retry, reconciliation, compensation and step by hand is kept with its reason.
JRN-7  MUST   S Recovery decides without audit trail, logs and transcripts as it would with them.
JRN-8  SHOULD S The audit trail only grows, and says who did what to which target by what right, and when.
JRN-9  MUST   S A cancellation, or other control, is never recorded as if it were a step's result.
OWN-1  MUST   S An operation is accepted once at most, whatever duplicates, stale workers and races there are.
OWN-2  MUST   S What an owner of an older generation brings is rejected, and overwrites nothing.
OWN-3  MUST   S A result is accepted only against the version of the state that its worker had read.
OWN-4  MUST   L Work whose owner has died or stalled is given to another.
OWN-5  MUST   S A receiver that takes a fencing token is sent the current one, and turns away older ones.
OWN-6  MUST   S Clocks that are off, drift or jump break none of the promises of ownership.
OWN-7  SHOULD S A rejected result is kept for diagnosis, apart from the state.
OWN-8  MUST   S Work that kills its workers again and again is escalated, not begun again for ever.
OWN-9  MUST   S One death uses up one try, however often it is noticed.
OWN-10 MUST   S An owner that is alive gets no twin for being slow, quiet, long at work or named like another.
EFF-1  MUST   S Behind a receiver that honours keys, each intended effect lands exactly once.
EFF-2  MUST   S One operation has one key in every invocation; two never share one, and an unclear answer earns no new one.
EFF-3  MUST   S One key is never sent with two sets of parameters.
EFF-4  MUST   S Where a receiver can be asked what became of a request, it is asked before the request is repeated.
EFF-5  MUST   S An unknown that can be neither looked up nor repeated is not repeated; it stays visible, with an owner.
EFF-6  MUST   L A read whose outcome is unknown is simply repeated.
EFF-7  MUST   S In progress, failed as saved, and key expired are told apart: wait, accept the failure, treat as unknown.
EFF-8  MUST   S After dispatch, a 5xx, a reset or a timeout means unknown, not failed.
EFF-9  SHOULD L A receiver's late word settles the unknown it belongs to, and no other.
EFF-10 MUST   S Reconciliation is an operation of its own, of bounded tries, and may end openly unresolved.
EFF-11 MUST   S A task reported done has every planned effect applied.
EFF-12 MUST   S There is no effect without a durable intent.
RTY-1  MUST   S All invocations of an operation, over crashes and workers, stay within its limit of tries.
RTY-2  MUST   S The limit on elapsed time runs from the first try, also through crashes.
RTY-3  MUST   S Invalid input and denied authority are not sent again unchanged; the caller is told the reason.
RTY-4  SHOULD S Waits between tries grow, and no two clients keep step.
RTY-5  MUST   S Layers of retries do not multiply: one of them owns repetition.
RTY-6  MUST   S An agent that goes on proposing what is rejected comes to a bound that stops it.
CMP-1  MUST   S Only what is known to have happened is undone: in reverse order, by operations of its own, once.
CMP-2  MUST   L Compensation that was interrupted is taken up again.
CMP-3  MUST   S Compensation that keeps failing ends, after bounded tries, openly unresolved.
CMP-4  SHOULD S The history keeps both the effect and what undid it.
CMP-5  MUST   S Compensation works with the inputs recorded when the effect was made.
SCH-1  MUST   S A durable timer fires once and never early, also across restarts.
SCH-2  MUST   S A change of state and the dispatch that follows from it are committed together.
SCH-3  MUST   S A delivery that comes again is accepted once.
SCH-4  MUST   S An event before its wait is kept or refused, as declared, and never silently gone.
SCH-5  MUST   S Repeated, late and unmatched events each meet the disposition declared for them.
SCH-6  MUST   S A wait that asked for a timeout ends by it, also through crashes.
SCH-7  MUST   S Over capacity, admission says so; what was admitted is kept, and no slot is used twice.
SCH-8  MUST   S Work past its deadline is not dispatched.
SCH-9  SHOULD L Waiting takes no worker's slot: more waits than slots still get on.
SCH-10 MUST   S Moving work between timer, queue, running and done loses none and doubles none, also when a move fails.
SCH-11 MUST   S One piece of work that cannot be dispatched does not strand its neighbours.
SCH-12 MUST   S A wait that timed out takes no later event, and one crossed by its event ends in exactly one way.
BUD-1  MUST   S At every admission what is consumed and reserved is within the allowance, also side by side.
BUD-2  MUST   S A restart neither forgets consumption and reservations nor counts them twice.
BUD-3  MUST   S The usage of a lost answer stays held as unknown, apart from what is confirmed or reserved.
BUD-4  MUST   S A hold that runs out does not make a request free that has been dispatched.
BUD-5  MUST   S What a child may use comes out of its parent's allowance.
BUD-6  SHOULD S Settling gives back what was reserved and not used.
BUD-7  SHOULD L Checks and cleanup have a share that generation cannot use up.
BUD-8  MUST   S An allowance used up is a stated reason that can be asked for.
DLN-1  MUST   S The deadline set at first holds through restarts and retries.
DLN-2  SHOULD S The time that is left is handed on with each request.
DLN-3  MUST   S A task outlives the connection that asked for it.
CAN-1  MUST   S Once a stop is acknowledged, nothing under it is newly admitted, also after a restart.
CAN-2  MUST   S Quiescence is reported only when nothing under the stop is at work.
CAN-3  MUST   S Completion and cancellation that race give one outcome, and the effects stay on record.
CAN-4  MUST   S What was unresolved stays visible after the stop.
CAN-5  MUST   S Descendants stop with their owner; detached work has an owner and a handle of its own.
CAN-6  MUST   L Work that is deaf to the request is ended after a bounded grace.
CAN-7  SHOULD L Bounded cleanup gets done, also over a crash.
CAN-8  SHOULD S A stop that came too late is told so.
SIG-1  MUST   S A signal that was acknowledged is not lost, also when history is cut.
SIG-2  MUST   S One command id takes effect once, and what became of it can be read.
SIG-3  MUST   S Between an acknowledged pause and the resume nothing new is dispatched; the resume lets it go on.
SIG-4  SHOULD S That a command was received and that it was carried out are told apart.
SIG-5  MUST   S Commands still being handled when the main flow ends are waited for or reported.
SIG-6  MUST   S Directions that steer are taken into the state in their order.
APR-1  MUST   S What is gated is not dispatched before its approval.
APR-2  MUST   S An approval is for one operation with its parameters; others need a new one.
APR-3  MUST   S Denied or expired means not dispatched.
APR-4  MUST   S The approver's authority is looked at again at release.
APR-5  MUST   S One approval releases one operation once.
APR-6  MUST   S A decision by nobody entitled to it is refused.
APR-7  MUST   L A wait that can no longer be used ends in a stated way, not in a loop of waking and retrying.
ART-1  MUST   S What is accepted can be fetched whole, by its digest, after its worker and the worker's disk are gone.
ART-2  MUST   S An upload cut short is never listed as accepted.
ART-3  MUST   L Content stored and not registered is registered or removed.
ART-4  MUST   S Clean-up removes nothing that somebody owns.
ART-5  MUST   S An accepted entry never changes; what replaces it is a new version.
ART-6  SHOULD S What a failed task had finished is kept, and labelled so.
CPL-1  MUST   S Success takes a check passed by the version that is current.
CPL-2  MUST   S Failed, unavailable, timed out and skipped checks are told apart, and none of them means success.
CPL-3  MUST   S A check's result names checker, version and subject, and survives a crash.
CPL-4  SHOULD S A result that is ready and one that was handed over are told apart.
STA-1  MUST   S The handle of a task gives its status over any connection.
STA-2  MUST   S Versions of the state never go back for one observer, and a stale one can be recognised.
STA-3  MUST   S Who resumes an event cursor misses nothing, and knows a repeat by its id.
STA-4  MUST   S A heartbeat that is missing is not told as a failure.
STA-5  MUST   S Every end has its reason.
VER-1  MUST   S Code that does not fit a saved execution is noticed, and does not just go on.
VER-2  MUST   L Work under way is finished by code that fits it.
VER-3  MUST   S Refusing loses nothing: with fitting code restored, the work goes on.
VER-4  MUST   S An old worker takes no work that newer code has written.
VER-5  MUST   S A history leads to the same decisions in any batches, on a cold or warm host, with any hash seed.
CHI-1  MUST   S No child outlives its owner unnoticed.
CHI-2  MUST   S A child's result is accepted once.
CHI-3  MUST   S A child's deadline and allowance fit into its parent's.
"""
_KINDS: Final[Mapping[str, Kind]] = {"S": "safety", "L": "liveness"}


def _row(line: str) -> Promise:
    id_, level, kind, promise = line.split(None, 3)
    return Promise(id_, cast("Level", level), _KINDS[kind], promise)


#: Every promise by its id, in the catalogue's order.
CATALOGUE: Final[Mapping[str, Promise]] = MappingProxyType(
    {one.id: one for one in map(_row, _TABLE.strip().splitlines())}
)
