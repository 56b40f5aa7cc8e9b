"""Examples for APR-1 2 3 4 5 6 7."""

from __future__ import annotations

import attrs

from scenarios.history import STORM, ApprovalState, ApprovalStatus
from scenarios.plan import Call, approval_digest
from tests.scenarios.build import Story, par, plan, seq
from tests.scenarios.examples import breaks, holds

GATE = plan("a ledger", "k approve b", "b ledger a")
BRIEF = plan("a ledger", "k approve b 500", "b ledger a")
TWO = plan("a ledger", par(seq("k approve b", "b ledger a"), seq("l approve c", "c ledger a")))
CODED = attrs.evolve(GATE, code="1")
CODES = {"codes": (("1", ("1",)), ("3", ("3",)))}
CHANGED = {"amount": 101}


def story(of: object = GATE, **declared: object) -> Story:
    """Up and started, and what comes before the approval has been done."""
    return Story(of, **declared).up().start().call("a")  # type: ignore[arg-type]


def digest_of(of: Story, approve: str, params: dict[str, object] | None = None) -> str:
    about = of.plan.leaf(approve).of  # type: ignore[union-attr]
    leaf = of.plan.leaf(about)
    assert isinstance(leaf, Call)
    return approval_digest(leaf, params)


def shows(
    of: Story, state: str, *approvals: tuple[str, ApprovalState], on: str | None = None, **fields: object
) -> Story:
    """A status with these approvals, each as it stands."""
    params = fields.pop("params", None)
    listed = tuple(
        ApprovalStatus(id_, of.plan.leaf(id_).of, digest_of(of, id_, params), standing)  # type: ignore[union-attr, arg-type]
        for id_, standing in approvals
    )
    return of.status(state, on, approvals=listed, **fields)  # type: ignore[arg-type]


def asks(of: Story, **fields: object) -> Story:
    """A status that shows the run waiting for `k`."""
    return shows(of, "waiting", ("k", "pending"), on="k", **fields)


# --- APR-1 ------------------------------------------------------------------------------------------------------------
holds("APR-1", "approved, then sent", asks(story()).decide("k").desk("k").call("b").done().settled())
holds(
    "APR-1",
    "nobody knows whether the decision has arrived, and it has",
    asks(story()).decide("k", outcome="indefinite").crash().desk("k").call("b").done().settled(),
)
holds(
    "APR-1",
    "sent before the decision is answered",
    asks(story())
    .ask(
        "decide",
        id="r1:k:1",
        operation="k",
        decision="approve",
        digest=digest_of(story(), "k"),
        actor="alice",
        nonce="n1",
    )
    .desk("k")
    .request("b")
    .answer("ok", body={"disposition": "approved"}, ask=3)
    .applied()
    .reply(),
)
holds(
    "APR-1",
    "the harness shows no approvals, only what it waits for",
    story().status("waiting", "k").decide("k").desk("k").call("b").done().settled(),
)
breaks("APR-1", "nobody was waited for", asks(story()).call("b").done().settled(), "out of order")
breaks(
    "APR-1",
    "a restart lets go what was held",
    asks(story()).crash().call("b").decide("k").done().settled(),
    "out of order",
)
breaks(
    "APR-1",
    "a decision that was refused lets it go",
    asks(story()).decide("k", outcome="error").call("b").done().settled(),
    "out of order",
)


# --- APR-2 ------------------------------------------------------------------------------------------------------------
def changed(of: Story, **fields: object) -> Story:
    """The parameters of `b` are changed."""
    return of.steer("b", CHANGED, **fields)  # type: ignore[arg-type]


holds(
    "APR-2",
    "changed while it was asked about, and decided as it is shown then",
    asks(changed(asks(story())), params=CHANGED)
    .decide("k", params=CHANGED)
    .desk("k")
    .call("b", params="changed")
    .done()
    .settled(),
)
holds(
    "APR-2",
    "the old decision is refused, the new one counts",
    changed(asks(story()))
    .decide("k", outcome="error")
    .decide("k", nth=2, params=CHANGED)
    .desk("k")
    .call("b", params="changed")
    .done()
    .settled(),
)
holds(
    "APR-2",
    "changed to what it was before, so that the first decision fits again",
    changed(asks(story())).steer("b", {"of": "b"}, nth=2).decide("k").desk("k").call("b").done().settled(),
    exercised=2,
)
holds(
    "APR-2",
    "the change came too late: it had been sent",
    changed(asks(story()).decide("k").desk("k").call("b"), disposition="late").done().settled(),
    exercised=0,
)
holds(
    "APR-2",
    "a harness with digests of its own shows another one after the change",
    changed(asks(story())).decide("k", digest="own-2").desk("k").call("b", params="changed").done().settled(),
)
breaks(
    "APR-2",
    "the decision about what it had been counts",
    changed(asks(story())).decide("k").desk("k").call("b", params="changed").done().settled(),
    "stale acceptance",
)
breaks(
    "APR-2",
    "changed between the decision and the release",
    changed(asks(story()).decide("k")).desk("k").call("b", params="changed").done().settled(),
    "stale acceptance",
)
breaks(
    "APR-2",
    "what is shown does not change with what is proposed",
    asks(changed(asks(story()))).decide("k").desk("k").call("b", params="changed").done().settled(),
    "stale acceptance",
)


# --- APR-3 ------------------------------------------------------------------------------------------------------------
def denied(of: Story) -> Story:
    """The run has failed over a denial."""
    return shows(of, "failed", ("k", "denied"), reason="denied: k by alice", error="denied")


def expired(of: Story) -> Story:
    return shows(of, "failed", ("k", "expired"), reason="expired: k", error="expired")


holds("APR-3", "denied, and over", denied(asks(story()).decide("k", "deny")).settled())
holds(
    "APR-3",
    "expired, and a late decision is refused",
    expired(asks(story(BRIEF)).later(600)).decide("k", outcome="error").settled(),
)
holds(
    "APR-3",
    "approved and sent in time, answered long after that",
    asks(story(BRIEF)).decide("k").desk("k").request("b").later(900).applied().reply().done().settled(),
    exercised=0,
)
holds(
    "APR-3",
    "released in time, and just past its time as it arrives",
    asks(story(BRIEF)).later(450).decide("k").desk("k").later(80).status("running").call("b").done().settled(),
)
holds(
    "APR-3",
    "released in time, and held up by a world that had misbehaved until just then",
    asks(story(BRIEF).fired(STORM)).decide("k").desk("k").quiet().later(1200).status("running").call("b").done().settled(),
)
holds(
    "APR-3",
    "sent again after its time, since nobody knew what had become of it",
    asks(story(BRIEF))
    .decide("k")
    .desk("k")
    .request("b")
    .applied()
    .crash()
    .later(900)
    .call("b", "saved")
    .done()
    .settled(),
    exercised=0,
)
holds(
    "APR-3",
    "its time began anew when something else was proposed",
    changed(asks(story(BRIEF)).later(400))
    .decide("k", params=CHANGED)
    .later(300)
    .desk("k")
    .call("b", params="changed")
    .done()
    .settled(),
    exercised=0,
)
holds(
    "APR-3",
    "its time is over, and it is asked for once more",
    asks(shows(asks(story(BRIEF)).later(600), "waiting", ("k", "expired")))
    .decide("k")
    .desk("k")
    .call("b")
    .done()
    .settled(),
)
breaks(
    "APR-3",
    "a denial lets it go",
    asks(story()).decide("k", "deny").call("b").done().settled(),
    "resurrection",
)
breaks(
    "APR-3",
    "a decision after its time counts",
    asks(story(BRIEF)).later(600).decide("k").desk("k").call("b").done().settled(),
    "resurrection",
)
breaks(
    "APR-3",
    "approved in time, and sent when that was over long ago",
    asks(story(BRIEF)).decide("k").kill().later(1200).up().desk("k").call("b").done().settled(),
    "resurrection",
)
breaks(
    "APR-3",
    "the world has been quiet for long",
    asks(story(BRIEF).fired(STORM)).decide("k").desk("k").quiet().later(2500).status("running").call("b").done().settled(),
    "resurrection",
)
breaks(
    "APR-3",
    "a restart renews its time, and it is shown as asked for as if nothing had been",
    asks(asks(story(BRIEF)).kill().later(600).up()).decide("k").desk("k").call("b").done().settled(),
    "resurrection",
)
breaks(
    "APR-3",
    "shown expired, and sent all the same",
    shows(asks(story()), "running", ("k", "expired")).decide("k").desk("k").call("b").done().settled(),
    "resurrection",
)

# --- APR-4 ------------------------------------------------------------------------------------------------------------
holds(
    "APR-4",
    "withdrawn before the release: it is asked about again",
    asks(asks(story()).decide("k").authority(granted=False).desk("k"))
    .authority(granted=True)
    .decide("k", nth=2)
    .desk("k")
    .call("b")
    .done()
    .settled(),
)
holds(
    "APR-4",
    "withdrawn just after the desk had said yes",
    asks(story()).decide("k").desk("k").authority(granted=False).call("b").done().settled(),
)
holds(
    "APR-4",
    "withdrawn, and given back before the desk was asked",
    asks(story()).decide("k").authority(granted=False).authority(granted=True).desk("k").call("b").done().settled(),
)
holds(
    "APR-4",
    "withdrawn while the desk was asked",
    asks(story())
    .decide("k")
    .request("k", lookup=True)
    .authority(granted=False)
    .reply("found", nonce=None)
    .call("b")
    .done()
    .settled(),
)
breaks(
    "APR-4",
    "the desk is not asked again",
    asks(story()).decide("k").authority(granted=False).call("b").done().settled(),
    "stale acceptance",
)
breaks(
    "APR-4",
    "the desk says no, and it is sent",
    asks(story()).decide("k").authority(granted=False).desk("k").call("b").done().settled(),
    "stale acceptance",
)
breaks(
    "APR-4",
    "what the desk said before counts, and not its last word",
    asks(story()).decide("k").desk("k").authority(granted=False).desk("k").call("b").done().settled(),
    "stale acceptance",
)

# --- APR-5 ------------------------------------------------------------------------------------------------------------
holds(
    "APR-5",
    "the same decision twice, and once sent",
    asks(story()).decide("k").decide("k").desk("k").call("b").done().settled(),
)
holds(
    "APR-5",
    "yes and no: the no is refused",
    asks(story()).decide("k").decide("k", "deny", nth=2, outcome="error").desk("k").call("b").done().settled(),
)
holds(
    "APR-5",
    "sent again under its key after a crash, by the same approval",
    asks(story()).decide("k").desk("k").request("b").applied().crash().call("b", "saved").done().settled(),
)
holds(
    "APR-5",
    "two approvals, each with its decision",
    shows(story(TWO), "waiting", ("k", "pending"), ("l", "pending"), on="k")
    .decide("k")
    .desk("k")
    .call("b")
    .decide("l")
    .desk("l")
    .call("c")
    .done()
    .settled(),
    exercised=0,
)
holds(
    "APR-5",
    "approved, asked again, and denied then",
    denied(
        asks(asks(story()).decide("k").authority(granted=False).desk("k"))
        .authority(granted=True)
        .decide("k", "deny", nth=2)
    ).settled(),
)
breaks(
    "APR-5",
    "decided once more, and sent once more",
    asks(story()).decide("k").desk("k").call("b").decide("k").call("b").done().settled(),
    "duplicate effect",
)
breaks(
    "APR-5",
    "one decision releases both",
    shows(story(TWO), "waiting", ("k", "pending"), ("l", "pending"), on="k")
    .decide("k")
    .desk("k")
    .call("b")
    .call("c")
    .done()
    .settled(),
    "duplicate effect",
)
breaks(
    "APR-5",
    "yes and no, and both are told that they count",
    asks(story()).decide("k").decide("k", "deny", nth=2).desk("k").call("b").done().settled(),
    "torn view",
)
breaks(
    "APR-5",
    "no and then yes",
    denied(asks(story()).decide("k", "deny").decide("k", nth=2)).settled(),
    "torn view",
)

# --- APR-6 ------------------------------------------------------------------------------------------------------------
holds(
    "APR-6",
    "a stranger is refused, and then somebody decides who may",
    asks(story()).decide("k", actor="mallory", outcome="error").decide("k", nth=2).desk("k").call("b").done().settled(),
)
holds(
    "APR-6",
    "nobody knows whether the stranger's decision has arrived",
    asks(story())
    .decide("k", actor="mallory", outcome="indefinite")
    .decide("k", nth=2)
    .desk("k")
    .call("b")
    .done()
    .settled(),
    exercised=0,
)
holds(
    "APR-6",
    "somebody new, who has been given authority",
    asks(story()).authority("bob", granted=True).decide("k", actor="bob").desk("k").call("b").done().settled(),
    exercised=0,
)
holds(
    "APR-6",
    "a stranger denies, is refused, and the run goes on",
    asks(story())
    .decide("k", "deny", actor="mallory", outcome="error")
    .decide("k", nth=2)
    .desk("k")
    .call("b")
    .done()
    .settled(),
)
breaks(
    "APR-6",
    "a stranger is told that it counts",
    asks(story()).decide("k", actor="mallory").settled(),
    "phantom effect",
)
breaks(
    "APR-6",
    "a stranger's denial ends the run",
    denied(asks(story()).decide("k", "deny", actor="mallory")).settled(),
    "phantom effect",
)
breaks(
    "APR-6",
    "only a stranger's decision can have released it",
    asks(story()).decide("k", actor="mallory", outcome="indefinite").desk("k").call("b").done().settled(),
    "phantom effect",
)

# --- APR-7 ------------------------------------------------------------------------------------------------------------
holds("APR-7", "denied, and the run says so", denied(asks(story()).decide("k", "deny")).settled())
holds("APR-7", "expired, and the run says so", expired(asks(story(BRIEF)).later(600)).settled())
holds(
    "APR-7",
    "cancelled meanwhile: nobody is asked any more",
    shows(asks(story()).cancel(), "cancelled", ("k", "withdrawn"), reason="cancelled", cancel="quiescent").settled(),
)
holds(
    "APR-7",
    "blocked, for want of code that goes on with it, and still asked for: other code may come",
    shows(
        asks(story(CODED, **CODES)).kill().up(code="3"),
        "blocked",
        ("k", "pending"),
        reason="code-incompatible",
        error="code-incompatible",
    ).settled(),
)
holds(
    "APR-7",
    "the desk says no, so it is asked again, and once more",
    asks(asks(asks(story()).decide("k").authority(granted=False).desk("k")).decide("k", nth=2).desk("k"))
    .decide("k", nth=3)
    .desk("k")
    .decide("k", nth=4)
    .desk("k")
    .authority(granted=True)
    .decide("k", nth=5)
    .desk("k")
    .call("b")
    .done()
    .settled(),
    exercised=0,
)
breaks(
    "APR-7",
    "expired, and waited for without end",
    shows(asks(story(BRIEF)).later(600), "waiting", ("k", "expired"), on="k").bound(),
    "stuck",
)
breaks(
    "APR-7",
    "denied, and waited for without end",
    shows(asks(story()).decide("k", "deny"), "running", ("k", "denied")).bound(),
    "stuck",
)
breaks(
    "APR-7",
    "waited for without end, when no code is there that goes on with the run",
    asks(asks(story(CODED, **CODES)).kill().up(code="3")).bound(),
    "stuck",
)
breaks(
    "APR-7",
    "the desk is asked over and over",
    asks(story()).decide("k").authority(granted=False).desk("k").desk("k").desk("k").desk("k").desk("k").bound(),
    "stuck",
)
breaks(
    "APR-7",
    "the run is over, and still asks",
    shows(asks(story()).cancel(), "cancelled", ("k", "pending"), reason="cancelled", cancel="quiescent").settled(),
    "torn view",
)
