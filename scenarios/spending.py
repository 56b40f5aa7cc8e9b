"""Spending: what of a run's allowance was certainly used and held, by what reached the services, and what its statuses say.

A *charge* is one request to have an operation carried out; a request to the model has tokens set aside for it besides. What
a charge weighs at a moment is a lower bound of what a correct harness has put down for it then: what was set aside while it
is under way, and what the service counted once it was answered. Uploads and checks cost calls too, which are not counted
here, as one of them is several requests.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Literal, TypeAlias

import attrs

from scenarios.history import TERMINAL, Usage
from scenarios.index import Facts
from scenarios.observed import Request, Seen
from scenarios.plan import Allowance, Artifact, Check, Child, Compensate, Model

Kind: TypeAlias = Literal["calls", "tokens"]
KINDS: tuple[Kind, ...] = ("calls", "tokens")


@attrs.frozen
class Charge:
    """One request to carry out an operation; `tokens` were set aside for it, none unless it went to the model."""

    request: Request
    tokens: int = 0
    is_cleanup: bool = False  # a compensation, which may use the reserve
    may_be_unmetered: bool = False  # the service does not always say what an answer has cost

    @property
    def at(self) -> int:
        return self.request.at

    @property
    def op(self) -> str:
        return self.request.op

    @property
    def used(self) -> int:
        """Tokens that the service counted."""
        return (self.request.reply.usage or 0) if self.request.reply else 0

    @property
    def most(self) -> int:
        """Tokens that it can have cost, whatever became of it."""
        return max(self.tokens, self.used)

    @property
    def told(self) -> int:
        """The most tokens that can be taken for what it has cost: what the service counted, or all that was set aside where
        the answer does not say.
        """
        return self.tokens if self.is_unmetered else self.used

    @property
    def is_unmetered(self) -> bool:
        """Was it answered without a word of what that has cost? Then nobody but the service knows."""
        reply = self.request.reply
        return self.may_be_unmetered and reply is not None and self.request.answer is not None and reply.usage is None

    @property
    def is_lost(self) -> bool:
        """Was its answer thrown away on its way?"""
        return self.request.reply is not None and self.request.reply.delivery != "sent"

    def replied_by(self, index: int) -> bool:
        """Had the service replied before event `index`, whether or not that arrived?"""
        return self.request.replied_at is not None and self.request.replied_at < index

    def open_at(self, index: int) -> bool:
        """Was it under way at event `index`, as far as its service knows?"""
        return self.at < index and not self.replied_by(index)

    def amount(self, kind: Kind) -> int:
        """What has to be free for it to be admitted. One that did nothing need not count as a call."""
        return (0 if self.request.idle else 1) if kind == "calls" else self.tokens

    def weight(self, kind: Kind, index: int, held: Collection[int]) -> int:
        """What is certainly put down for it at event `index`: in full, if it is one of those that are `held`."""
        if kind == "calls":
            return self.amount(kind)
        if self.at in held or (self.is_unmetered and self.replied_by(index)):
            return self.tokens
        return self.used if self.replied_by(index) else 0


def charges(facts: Facts) -> tuple[Charge, ...]:
    """Every charge of the run and of its children, in order of observation."""
    return tuple(_charge(facts, request) for request in facts.requests if not request.event.lookup)


def _charge(facts: Facts, request: Request) -> Charge:
    leaf = facts.calls.get(request.op)
    if isinstance(leaf, Model):
        return Charge(request, leaf.tokens, may_be_unmetered="unmetered" in leaf.script)
    return Charge(request, is_cleanup=isinstance(leaf, Compensate))


def limited(facts: Facts) -> Iterator[tuple[Kind, int]]:
    """The kinds that the run's allowance limits, with the limit; tokens only where no request may use more than it asks for."""
    plan = facts.history.plan
    models = [leaf for leaf in plan.leaves() if isinstance(leaf, Model)]
    for kind in KINDS:
        most = getattr(plan.allowance, kind) if plan.allowance is not None else None
        if most is not None and (kind == "calls" or all((model.uses or 0) <= model.tokens for model in models)):
            yield kind, most


def reserve(allowance: Allowance | None, kind: Kind) -> int:
    """The share of a kind that is kept for checks and compensations."""
    kept = allowance.reserve if allowance is not None else None
    return getattr(kept, kind) if kept is not None else 0


def is_detached(facts: Facts, charge: Charge) -> bool:
    """Does it belong to a child on its own, whose share was given to it for good?"""
    return any(guard.kind == "detached" for guard in facts.history.plan.guards(charge.op))


def demand(facts: Facts, kind: Kind) -> int:
    """What all operations of the plan ask for together, each tried once."""
    leaves = facts.history.plan.leaves()
    if kind == "tokens":
        return sum(leaf.tokens for leaf in leaves if isinstance(leaf, Model))
    return len(facts.calls) + sum(isinstance(leaf, Artifact | Check) for leaf in leaves)


def is_uncut(facts: Facts, charge: Charge, index: int) -> bool:
    """Was the worker behind a charge neither killed nor stopped before event `index`?"""
    cut = facts.cut_at(charge.request)
    return not facts.late(charge.request) and (cut is None or cut > index)


def held(facts: Facts, found: Iterable[Charge], index: int) -> frozenset[int]:
    """Of these charges, those that are certainly under way at event `index`, by the events of their requests."""
    return frozenset(one.at for one in found if one.open_at(index) and is_uncut(facts, one, index))


def lives(child: Child, found: Iterable[Charge], index: int) -> bool:
    """Had a child certainly been admitted at event `index`, and not ended, or got its share for good?"""
    mine = [one for one in found if one.op.startswith(f"{child.id}/")]
    return any(one.at < index for one in mine) and (child.detached or any(one.at > index for one in mine))


def spent(kind: Kind, found: Iterable[Charge], index: int, held: Collection[int]) -> int:
    """What is certainly put down at event `index` for all that was received before it, in full for those `held`."""
    return sum(one.weight(kind, index, held) for one in found if one.at < index)


def underestimated(facts: Facts) -> int | None:
    """The tokens that a run may use whose requests may take more than is set aside for them; None for every other run.

    Not where there are children: what one took beyond its share counts for its owner only once it is over.
    """
    plan = facts.history.plan
    if plan.allowance is None or any(isinstance(leaf, Child) for leaf in plan.leaves()):
        return None
    takes_more = any(isinstance(leaf, Model) and (leaf.uses or 0) > leaf.tokens for leaf in plan.leaves())
    return plan.allowance.tokens if takes_more else None


def put_down_before(facts: Facts, one: Charge, other: Charge, held: Collection[int]) -> int:
    """The tokens that are certainly put down for one charge as another comes, where it may take more than was set aside.

    All that it used, where the other had to wait for its answer and it was the only try; else no more than was set aside.
    """
    if one.at in held or not one.replied_by(other.at):
        return one.weight("tokens", other.at, held)
    is_known = one.op in facts.ancestors[other.op] and len(facts.dispatches(one.op)) == 1
    return one.used if is_known else min(one.used, one.tokens)


# --- what statuses say ---------------------------------------------------------------------------------------------------


def shown(facts: Facts, kind: Kind) -> list[tuple[Seen, Usage]]:
    """The statuses that show how an allowance of this kind stands, in order."""
    every = ((seen, (seen.status.usage or {}).get(kind)) for seen in facts.statuses)
    return [(seen, usage) for seen, usage in every if usage is not None]


def booked(usage: Usage) -> int:
    """Everything that counts against an allowance."""
    return usage.consumed + usage.reserved + usage.unknown


def is_exact(facts: Facts) -> bool:
    """Can what is shown as consumed be compared with what the services counted?

    Not where a share was given away for good, where a receiver's word or a look-up confirms calls that nobody saw arrive, nor
    where a request failed before it left.
    """
    plan = facts.history.plan
    given = any(isinstance(leaf, Child) and leaf.detached for leaf in plan.leaves())
    asked = any(request.event.lookup for request in facts.requests) or bool(facts.notices())
    return not (given or asked or "poison" in plan.needs())


def counted(facts: Facts, kind: Kind, index: int) -> int:
    """The most that can be confirmed as consumed before event `index`."""
    if kind == "calls":
        return sum(request.at < index and not request.event.lookup for request in facts.sent)
    return sum(one.told for one in charges(facts) if one.replied_by(index))


def ended(facts: Facts) -> Seen | None:
    """The last status, where it shows the run ended."""
    last = facts.last_seen()
    return last if last is not None and last.status.state in TERMINAL else None
