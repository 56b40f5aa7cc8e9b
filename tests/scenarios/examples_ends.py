"""Examples for ends without a cause: DUR-6 and SIG-3."""

from __future__ import annotations

from scenarios.plan import Allowance, Call, Child, Plan, Seq
from tests.scenarios.build import Story, par, plan, seq
from tests.scenarios.examples import breaks, holds

CHAIN = plan("a ledger", "b ledger a")
SHOWN = {"shows_operations": True, "shows_attempts": True}
OPEN = {"a": "succeeded a1", "b": "planned"}


def up(of: Plan = CHAIN, **declared: object) -> Story:
    return Story(of, **SHOWN, **declared).up().start()


def ended(story: Story, state: str = "failed") -> Story:
    """The run is shown ended for a reason that its harness alone knows."""
    assert state in {"failed", "blocked", "cancelled"}
    return (story.status("failed") if state == "failed" else story.status("blocked", error="interrupted")).settled()


# --- DUR-6: what may end a run ------------------------------------------------------------------------------------------
holds(
    "DUR-6", "refused by its receiver, the run has failed", ended(up().call("a").crash().request("b").reply("rejected"))
)
holds(
    "DUR-6",
    "three workers have died of it",
    ended(up().request("a").crash().request("a").crash().request("a").kill().up(), "blocked"),
)
holds(
    "DUR-6", "two are enough, where that is declared", ended(up(deaths_max=2).request("a").crash().crash(), "blocked")
)
holds(
    "DUR-6",
    "it was tried again and again, in vain",
    ended(up().request("a").reply("error").request("a").crash(), "blocked"),
)
holds(
    "DUR-6",
    "its receiver cannot say whether it got the mail",
    ended(up(plan("a mailer", "b ledger a")).request("a").applied().crash(), "blocked"),
)
holds(
    "DUR-6",
    "a mail that nobody saw may have been on its way as its worker died",
    ended(up(plan("a ledger", "m mailer a")).call("a").crash(), "blocked"),
)
holds(
    "DUR-6",
    "a mail arrives as its worker is dead, and nobody hears that it has",
    ended(up(plan("a ledger", "m mailer a")).call("a").crash().call("m", by=1), "blocked"),
)
holds(
    "DUR-6",
    "look-ups find nothing, which they may do too early",
    ended(up(plan("a registry", "b ledger a")).request("a").crash().look_up("a"), "blocked"),
)
holds(
    "DUR-6",
    "the means are used up",
    ended(up(Plan(CHAIN.root, Allowance(calls=1))).call("a").crash(), "blocked"),
)
holds("DUR-6", "no room for it on the disk", ended(up().fired("full@ack:start(engine)").call("a").crash(), "blocked"))
holds("DUR-6", "a storm, in which tries may be lost", ended(up().fired("storm").request("a").crash(), "blocked"))
holds("DUR-6", "the plan has it fail", ended(up(plan("a ledger", "f fail enough")).call("a").crash()))
holds(
    "DUR-6",
    "its key has grown too old to be used again",
    ended(up(key_lifetime_ns=10**9).request("a").crash().later(2000), "blocked"),
)
holds(
    "DUR-6", "a failed limit of tries", ended(up(Plan(Seq("m", (Call("a", "flaky", tries=1),)))).request("a").crash())
)

# --- DUR-6: and what may not --------------------------------------------------------------------------------------------
breaks("DUR-6", "a restart fails what it finds unfinished", ended(up().call("a").crash()), "stuck")
breaks(
    "DUR-6",
    "a restart of the engine blocks it",
    ended(up().up("engine").request("a").applied().kill(unit="engine", incarnation=2).reply(), "blocked"),
    "stuck",
)
breaks(
    "DUR-6",
    "a call that may be repeated is given up with its first answer",
    ended(up().request("a").applied().reply(delivery="dropped"), "blocked"),
    "stuck",
)
breaks(
    "DUR-6",
    "a mail whose turn had not come is in nobody's hands",
    ended(up(plan("a ledger", "m mailer a")).request("a").crash().call("a", "saved"), "blocked"),
    "stuck",
)
breaks("DUR-6", "so is a read", ended(up(plan("a reader", "b ledger a")).request("a").crash()), "stuck")
breaks(
    "DUR-6",
    "its receiver says that the shipment is there, and the run is blocked",
    ended(up(plan("a registry", "b ledger a")).request("a").applied().crash().look_up("a", "found"), "blocked"),
    "stuck",
)
DOUBT = plan("a mailer", "b ledger a")


def told(**ops: str) -> Story:
    """A lost receipt has blocked the run; then there is word of what it was about."""
    lost = (
        up(DOUBT)
        .request("a")
        .applied()
        .reply(delivery="reset")
        .status("blocked", ops={"a": "unresolved", "b": "planned"})
    )
    return lost.notice("a").status("blocked", ops=ops)


holds("DUR-6", "the next one is in doubt too", told(a="reconciled a1", b="unresolved").settled())
holds(
    "DUR-6",
    "word came, and it is not heeded, which is another matter",
    told(a="unresolved", b="planned").settled(),
    but=("EFF-9",),
)
holds(
    "DUR-6",
    "three workers have died before anybody saw what they were at, and it is set aside",
    up().call("a").crash().crash().crash().status("blocked", ops={"a": "succeeded a1", "b": "planned"}).settled(),
)
breaks(
    "DUR-6",
    "it was taken up after three deaths, and is left when it has its answer",
    up()
    .request("a")
    .crash()
    .crash()
    .crash()
    .call("a")
    .status("blocked", ops={"a": "succeeded a1", "b": "planned"})
    .settled(),
    "stuck",
)
LETTER = Child("kid", Seq("k", (Call("letter", "mailer", {"to": 1}),)))
holds(
    "DUR-6",
    "what is in doubt is a child's, which its status does not list",
    up(plan(par(LETTER, seq("a ledger", "b ledger a"))))
    .call("a")
    .request("kid/letter")
    .applied()
    .reply(delivery="reset")
    .status("blocked", ops={"a": "succeeded a1", "b": "planned"})
    .settled(),
)
breaks(
    "DUR-6", "word came, and what waited for it is not begun", told(a="reconciled a1", b="planned").settled(), "stuck"
)


# --- SIG-3 --------------------------------------------------------------------------------------------------------------
def held() -> Story:
    """Paused, with what comes next planned and ready."""
    return up().call("a").halt().status("running", paused=True, ops=OPEN).later(500)


holds(
    "SIG-3",
    "let go on, and then refused",
    ended(held().go_on().request("b").reply("rejected")),
)
breaks(
    "SIG-3",
    "let go on, and blocked: nothing can move",
    held().go_on().status("blocked", ops=OPEN, error="nothing can move").settled(),
    "stuck",
)


NAG = plan("a flaky", "b ledger a")
holds(
    "SIG-3",
    "it was under way when the run was held, and is sent again when it may go on",
    up(NAG)
    .call("a", "error")
    .request("a")
    .halt()
    .reply("error")
    .later(2000)
    .go_on()
    .call("a")
    .call("b")
    .done()
    .settled(),
)
holds(
    "SIG-3",
    "what was sent again before the pause arrives after it",
    up(NAG).request("a").reply("error").halt().request("a").applied().reply().go_on().call("b").done().settled(),
    exercised=0,
)
holds(
    "SIG-3",
    "an answer that was long in coming is asked for again before the pause",
    up(NAG)
    .request("a")
    .later(2000)
    .halt()
    .applied()
    .reply()
    .request("a")
    .reply("saved")
    .go_on()
    .call("b")
    .done()
    .settled(),
)
UPLOAD = plan("p artifact report 64 2", "a ledger p")


def uploading() -> Story:
    """The first part of an upload has been sent, and the run is held."""
    return up(UPLOAD).request("p", part=1).stored("r1:p", "staged").halt()


holds(
    "SIG-3",
    "an upload that is under way goes on with its next part",
    uploading()
    .reply("executed", nonce=None)
    .request("p", part=2)
    .reply("executed", nonce=None)
    .go_on()
    .call("p")
    .stored("r1:p", "committed")
    .call("a")
    .done()
    .settled(),
    exercised=0,
)
breaks(
    "SIG-3",
    "a part of an upload fails while the run is held, and is sent again",
    uploading().reply("error", nonce=None).later(100).request("p", part=1).reply("executed", nonce=None).go_on(),
    "resurrection",
)
breaks(
    "SIG-3",
    "it fails while the run is held, and is sent again",
    up(NAG).request("a").halt().reply("error").later(500).call("a").go_on(),
    "resurrection",
)
breaks(
    "SIG-3",
    "its worker dies while the run is held, and another sends it again",
    up(NAG).request("a").halt().crash().call("a").go_on(),
    "resurrection",
)
