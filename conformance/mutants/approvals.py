"""Mutants of APR-1 to APR-7: decisions nobody waits for, that are good for too much or too long, or for nobody any more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.mutants import Patch, mutant
from reference_runtime.approvals import Approvals
from reference_runtime.control import Control
from reference_runtime.model import approval_digest
from reference_runtime.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reference_runtime.approvals import Approval
    from reference_runtime.model import Grant, Json
    from reference_runtime.rows import Operation


@mutant("nobody-waits-for-approval", "APR-1", shown_by="gate/undisturbed")
def nobody_waits_for_approval(patch: Patch) -> None:
    """An approval is asked for and shown, and the run goes on as if it had been given."""

    def ask_approval(self: Approvals, leaf: Operation) -> None:
        original(self, leaf)
        if self._move(leaf, "release", leaf.generation, leaf.version, None, "asked"):
            self._advance(leaf.attempt, leaf.id)

    original = Approvals.ask_approval
    patch.replace(Approvals, "ask_approval", ask_approval)
    patch.replace(Approvals, "is_held", lambda _self, _attempt, _operation: False)
    patch.replace(Approvals, "authority_for", lambda _self, _op: {})


@mutant("approved-by-name", "APR-2", shown_by="gate/stale-decision@waiting:consent>pay")
def approved_by_name(patch: Patch) -> None:
    """An approval is bound to the operation, whatever its parameters are."""

    def digest_of(self: Approvals, attempt: str, operation: str) -> str:
        op = self._operation(attempt, operation)
        return approval_digest(op.id, op.tool, {})

    patch.replace(Approvals, "digest_of", digest_of)


@mutant("digest-not-compared", "APR-2", shown_by="gate/stale-decision@waiting:consent>pay")
def digest_not_compared(patch: Patch) -> None:
    """What a decision is bound to is stored, and not compared with anything."""
    patch.replace(Approvals, "is_bound", lambda _self, _approval, _digest: True)


@mutant("digest-compared-once", "APR-2", shown_by="gate/steer@consent#1.received>pay")
def digest_compared_once(patch: Patch) -> None:
    """A decision is compared with what is proposed as it comes; what is changed after that is approved all the same."""

    def is_bound(self: Approvals, approval: Approval, digest: str) -> bool:
        return approval.state == "approved" or original(self, approval, digest)

    original = Approvals.is_bound
    patch.replace(Approvals, "is_bound", is_bound)
    patch.replace(Control, "void_approvals", lambda _self, _attempt, _operation: None)


@mutant("denial-is-an-answer", "APR-3", shown_by="gate/deny@waiting:consent")
def denial_is_an_answer(patch: Patch) -> None:
    """A denial ends the wait as an approval does, and nobody looks at which it was."""

    def take_decision(self: Approvals, approval: Approval, decision: str, actor: str, nonce: str) -> None:
        del decision
        original(self, approval, "approve", actor, nonce)

    original = Approvals._take_decision  # noqa: SLF001 - a mutant goes where it should not
    patch.replace(Approvals, "_take_decision", take_decision)


@mutant("validity-not-kept", "APR-3", shown_by="gate/late-decision@waiting:consent")
def validity_not_kept(patch: Patch) -> None:
    """The validity of an approval is shown to people, and never looked at."""
    patch.replace(Approvals, "is_expired", lambda _self, _approval, _now_ns: False)
    patch.replace(Approvals, "expire", lambda _self, _leaf: None)


@mutant("validity-of-the-decision-only", "APR-3", shown_by="signatures/kill@waiting:rest~2000000000ns")
def validity_of_the_decision_only(patch: Patch) -> None:
    """An approval that was given in time is good for ever."""

    def may_release(self: Approvals, approval: Approval, granted: bool | None, now_ns: int) -> bool:
        return original(self, approval._replace(expires_ns=None), granted, now_ns)

    def expire(self: Approvals, leaf: Operation) -> None:
        approval = self.approval(leaf.attempt, leaf.id)
        if approval is not None and approval.state == "pending":
            expired(self, leaf)

    original, expired = Approvals.may_release, Approvals.expire
    patch.replace(Approvals, "may_release", may_release)
    patch.replace(Approvals, "expire", expire)


@mutant("authority-of-the-decision-only", "APR-4", shown_by="gate/revoke@waiting:consent")
def authority_of_the_decision_only(patch: Patch) -> None:
    """Who may decide is looked at as the decision comes; nobody asks again as the operation leaves."""
    patch.replace(Approvals, "authority_for", lambda _self, _op: {})


@mutant("no-is-not-heard", "APR-4", shown_by="gate/revoke@waiting:consent")
def no_is_not_heard(patch: Patch) -> None:
    """The approver's authority is asked for at release, and any answer will do."""

    def release(self: Approvals, op: Operation, granted: Mapping[str, bool]) -> bool:
        return original(self, op, dict.fromkeys(granted, True))

    original = Approvals.release
    patch.replace(Approvals, "release", release)


@mutant("authority-remembered", "APR-4", shown_by="counsel/revoke@waiting:second")
def authority_remembered(patch: Patch) -> None:
    """A worker asks once whether somebody has authority, and knows it for as long as it lives."""

    async def ask_authority(self: Worker, grant: Grant) -> dict[str, bool]:
        known = told.setdefault(self, {})
        if any(actor not in known for actor in grant.authority.values()):
            found = await original(self, grant)
            known |= {grant.authority[leaf]: is_allowed for leaf, is_allowed in found.items()}
        return {leaf: known[actor] for leaf, actor in grant.authority.items() if actor in known}

    told: dict[Worker, dict[str, bool]] = {}
    original = Worker.ask_authority
    patch.replace(Worker, "ask_authority", ask_authority)


@mutant("no-word-is-a-yes", "APR-4", shown_by="gate/revoke@waiting:consent+reset@consent#1.received")
def no_word_is_a_yes(patch: Patch) -> None:
    """A desk that cannot be asked has not said no."""

    async def ask_authority(self: Worker, grant: Grant) -> dict[str, bool]:
        return dict.fromkeys(grant.authority, True) | await original(self, grant)

    original = Worker.ask_authority
    patch.replace(Worker, "ask_authority", ask_authority)


@mutant("last-decision-counts", "APR-5", shown_by="gate/cross@waiting:consent")
def last_decision_counts(patch: Patch) -> None:
    """Every decision is taken, whatever was decided before."""

    def disposition_of_decision(self: Approvals, approval: Approval, decision: str) -> str:
        del self, approval
        return "approved" if decision == "approve" else "denied"

    patch.replace(Approvals, "disposition_of_decision", disposition_of_decision)


@mutant("one-decision-for-all", "APR-5", shown_by="signatures/late-decision@waiting:board")
def one_decision_for_all(patch: Patch) -> None:
    """A decision is taken for everything that its run asks about at that moment."""

    def take_decision(self: Approvals, approval: Approval, decision: str, actor: str, nonce: str) -> None:
        rows = self._rows(
            "SELECT operation FROM approval WHERE attempt = ? AND state = 'pending' ORDER BY operation",
            approval.attempt,
        )
        for (operation,) in rows:
            one = self.approval(approval.attempt, operation)
            assert one is not None, f"{operation} asked for a decision and is gone"
            original(self, one, decision, actor, nonce)

    original = Approvals._take_decision  # noqa: SLF001 - a mutant goes where it should not
    patch.replace(Approvals, "_take_decision", take_decision)


@mutant("anybody-decides", "APR-6", shown_by="gate/forge@waiting:consent")
def anybody_decides(patch: Patch) -> None:
    """Whoever knows the id of an approval may decide about it."""
    patch.replace(Approvals, "may_decide", lambda _self, _actor: True)


@mutant("anybody-denies", "APR-6", shown_by="gate/forge@waiting:consent")
def anybody_denies(patch: Patch) -> None:
    """To say yes takes authority; to say no, the id of the approval is enough."""
    saying: list[str] = []

    def decide(self: Approvals, task: str, operation: str, decision: str, *said: str) -> Json:
        saying.append(decision)
        try:
            return original(self, task, operation, decision, *said)
        finally:
            saying.pop()

    def may_decide(self: Approvals, actor: str) -> bool:
        return saying[-1:] == ["deny"] or original_may_decide(self, actor)

    original, original_may_decide = Approvals.decide, Approvals.may_decide
    patch.replace(Approvals, "decide", decide)
    patch.replace(Approvals, "may_decide", may_decide)


@mutant("expiry-ends-nothing", "APR-7", shown_by="gate/late-decision@waiting:consent")
def expiry_ends_nothing(patch: Patch) -> None:
    """An approval that has expired is shown so, and the run goes on waiting for it."""

    def expire(self: Approvals, leaf: Operation) -> None:
        approval = self.approval(leaf.attempt, leaf.id)
        if approval is not None and approval.state == "pending":
            self._stand(approval, "expired", approval.actor)

    patch.replace(Approvals, "expire", expire)


@mutant("questions-left-open", "APR-7", shown_by="signatures/cancel@waiting:board")
def questions_left_open(patch: Patch) -> None:
    """What a run has asked for when it ends, or goes another way, stays as it is."""
    patch.replace(Approvals, "withdraw_approvals", lambda _self, _attempt, _operation=None: None)


@mutant("no-is-asked-again", "APR-7", shown_by="signatures/revoke@waiting:board")
def no_is_asked_again(patch: Patch) -> None:
    """What may not be released for want of authority goes back into the queue, to be claimed again at once."""
    patch.replace(Approvals, "ask_again", lambda _self, _approval: None)
