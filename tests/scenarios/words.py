"""More words of the language of `tests.scenarios.build`: commands, decisions, uploads, checks, and what a harness tells.

story.cancel().halt().go_on().steer("a", {"amount": 101}).notice("a")
story.decide("ok", "deny", actor="mallory", outcome="error").authority("alice", granted=False).desk("ok")
story.upload("report", parts=2).check("q", "failed").stored("l1", "removed").fetched("report", 1)
story.journal(transitions=[…]).page([…], after=3, cursor=5).artifacts([…])
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

from scenarios.history import Authority, Down, Event, Fetched, Scanned, Stored
from scenarios.plan import Approve, Artifact, Call, Check, Model, Plan, approval_digest
from scenarios.plan import content as content_of

if TYPE_CHECKING:
    from scenarios.history import Status

Outcome = Literal["ok", "error", "indefinite"]
Rows = Sequence[Mapping[str, Any]]
RUN = "r1"


class Words:
    """Mixed into `Story`, which has the events, the clock and the basic words."""

    plan: Plan
    now_ns: int
    answers: dict[str, str]

    if TYPE_CHECKING:

        def add(self, event: Event) -> Self: ...
        def ask(self, verb: str, **fields: Any) -> Self: ...
        def answer(
            self,
            outcome: Outcome = "ok",
            status: Status | None = None,
            ask: int | None = None,
            body: Mapping[str, Any] | None = None,
        ) -> Self: ...
        def request(self, op: str, **fields: Any) -> Self: ...
        def applied(self, call: int | None = None) -> Self: ...
        def reply(self, kind: str = "executed", **fields: Any) -> Self: ...

    # --- commands -------------------------------------------------------------------------------------------------

    def command(
        self, verb: str, id_: str, outcome: Outcome = "ok", disposition: str | None = None, **fields: Any
    ) -> Self:
        """Asked and answered at once; with a disposition, where the harness gives one."""
        body = {"disposition": disposition} if disposition is not None and outcome == "ok" else None
        return self.ask(verb, id=id_, **fields).answer(outcome, body=body)

    def cancel(self, outcome: Outcome = "ok", disposition: str | None = "accepted", nth: int = 1) -> Self:
        return self.command("cancel", f"{RUN}:cancel:{nth}", outcome, disposition)

    def halt(self, outcome: Outcome = "ok", nth: int = 1) -> Self:
        """The run is asked to pause. (`pause` stops a worker.)"""
        return self.command("pause", f"{RUN}:pause:{nth}", outcome)

    def go_on(self, outcome: Outcome = "ok", nth: int = 1) -> Self:
        return self.command("unpause", f"{RUN}:unpause:{nth}", outcome)

    def steer(
        self,
        op: str,
        params: Mapping[str, Any],
        nth: int = 1,
        outcome: Outcome = "ok",
        disposition: str | None = "released",
    ) -> Self:
        payload = {"operation": op, "params": dict(params), "nonce": f"steer:{op}:{nth}"}
        return self.command(
            "signal",
            f"{RUN}:{op}:steer:{nth}",
            outcome,
            disposition,
            name="steer",
            nonce=payload["nonce"],
            operation=op,
            payload=canonical_text(payload),
        )

    def notice(
        self, op: str, nonce: str | None = None, outcome: Outcome = "ok", disposition: str | None = "released"
    ) -> Self:
        """A receiver's word that `op` took effect, with the nonce of its latest effect."""
        told = nonce or self.answers.get(op, f"{op}?")
        payload = {"operation": op, "nonce": told}
        return self.command(
            "signal",
            f"{RUN}:{op}:notice",
            outcome,
            disposition,
            name="notice",
            nonce=told,
            operation=op,
            payload=canonical_text(payload),
        )

    def misuse(self, outcome: Outcome = "error") -> Self:
        """Another plan is started under the run's id."""
        return self.ask("start", id=RUN, payload='{"root":{},"version":1}').answer(outcome)

    # --- decisions ------------------------------------------------------------------------------------------------

    def decide(
        self,
        approve: str,
        decision: Literal["approve", "deny"] = "approve",
        nth: int = 1,
        *,
        actor: str = "alice",
        digest: str | None = None,
        params: Mapping[str, Any] | None = None,
        outcome: Outcome = "ok",
        disposition: str | None = "auto",
    ) -> Self:
        """Decision number `nth`, bound to what is proposed (`params`, once steered; or another `digest`)."""
        leaf = self.plan.leaf(approve)
        assert isinstance(leaf, Approve)
        nonce = f"dec:{approve}:{nth}"
        if decision == "approve" and outcome == "ok":
            self.answers[approve] = nonce
        said = {"approve": "approved", "deny": "denied"}[decision] if disposition == "auto" else disposition
        return self.command(
            "decide",
            f"{RUN}:{approve}:{nth}",
            outcome,
            said,
            operation=approve,
            decision=decision,
            digest=digest or self.proposed(leaf.of, params),
            actor=actor,
            nonce=nonce,
        )

    def proposed(self, op: str, params: Mapping[str, Any] | None = None) -> str:
        """The digest that an approval of `op` is bound to."""
        leaf = self.plan.leaf(op)
        assert isinstance(leaf, Call | Model)
        return approval_digest(leaf, params)

    def authority(self, actor: str = "alice", *, granted: bool) -> Self:
        return self.add(Authority(self.now_ns, actor, granted))

    def desk(self, approve: str, kind: str = "found") -> Self:
        """The harness asks the desk whether the actor may still decide."""
        return self.request(approve, lookup=True).reply(kind, nonce=None)

    # --- artifacts and checks -------------------------------------------------------------------------------------

    def upload(self, op: str, *, parts: int | None = None, commit: bool = True, by: int | None = None) -> Self:
        """All parts are put, and committed."""
        leaf = self.plan.leaf(op)
        assert isinstance(leaf, Artifact)
        for part in range(1, (parts or leaf.parts) + 1):
            self.request(op, part=part, by=by).reply("executed", nonce=None)
        return self.request(op, by=by).applied().reply() if commit else self

    def check(self, op: str, outcome: str = "passed", version: int = 1, digest: str | None = None) -> Self:
        """A whole check: the checker's word on a version of its subject."""
        leaf = self.plan.leaf(op)
        assert isinstance(leaf, Check)
        subject = self.plan.leaf(leaf.of)
        assert isinstance(subject, Artifact)
        about = f"{subject.name}@{version}#{digest or sha256_of(subject)}"
        return self.request(op, subject=about).applied().reply(outcome=outcome)

    def stored(self, location: str, state: Literal["staged", "committed", "removed"] = "committed") -> Self:
        return self.add(Stored(self.now_ns, location, state))

    def fetched(
        self, name: str, version: int = 1, digest: str | None = None, size: int | None = None, *, found: bool = True
    ) -> Self:
        """The kit fetched an accepted artifact; what came is what the plan's artifact of this name is, unless told."""
        made = next((one for one in self.plan.artifacts() if one.name == name), None)
        digest = digest or (sha256_of(made) if made and found else "")
        return self.add(
            Fetched(self.now_ns, name, version, digest, size or (made.size if made and found else 0), found)
        )

    # --- what a harness tells of itself, and what the kit looks through --------------------------------------------

    def journal(
        self,
        transitions: Rows | None = None,
        invocations: Rows | None = None,
        rejected: Rows | None = None,
        audit: Rows | None = None,
        deliveries: Rows | None = None,
    ) -> Self:
        """The lists that are given; a harness that keeps nothing of the kind leaves the others away."""
        lists = {
            "transitions": transitions,
            "invocations": invocations,
            "rejected": rejected,
            "audit": audit,
            "deliveries": deliveries,
        }
        body = {name: list(rows) for name, rows in lists.items() if rows is not None}
        return self.ask("journal").answer("ok", body=body)

    def page(self, events: Rows, *, after: int = 0, cursor: int = 0, control: Rows | None = None) -> Self:
        """The events after one cursor, and the `cursor` to go on from."""
        body = {"events": list(events), "next": cursor, "control": list(control or ())}
        return self.ask("events", payload=canonical_text({"after": after})).answer("ok", body=body)

    def artifacts(self, listed: Rows) -> Self:
        return self.ask("artifacts").answer("ok", body={"artifacts": list(listed)})

    def scanned(self, *found: str, places: tuple[str, ...] = ("store", "status", "events", "logs")) -> Self:
        """The kit searched for secrets; `found` is `place:name` each."""
        return self.add(Scanned(self.now_ns, places, found))

    def down(self, ms: int, unit: str = "worker") -> Self:
        """The unit that has just died is kept down."""
        return self.add(Down(self.now_ns, unit, ms * 1_000_000))


def canonical_text(value: object) -> str:
    """As the driver records a payload."""
    from scenarios.operation import canonical

    return canonical(value)


def sha256_of(artifact: Artifact) -> str:
    """The digest of what an artifact publishes."""
    return hashlib.sha256(content_of(RUN, artifact.id, artifact.size)).hexdigest()
