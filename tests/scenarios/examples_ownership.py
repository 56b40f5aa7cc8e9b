"""Examples for OWN-2 3 5 7."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from scenarios.history import STORM
from scenarios.plan import Approve, Call, Child, Plan, Seq
from tests.scenarios.build import Story, plan
from tests.scenarios.examples import breaks, holds

READ = plan("a reader", "b ledger a")
QUOTE = plan("a reader")
FENCED = plan("a fenced")
LETTER = Plan(Seq("main", (Approve("ok", "m"), Call("m", "mailer", {"amount": 100}))))
JOURNAL: dict[str, object] = {
    "verbs": ("start", "status", "signal", "resume", "journal"),
    "lease_ns": 10_000_000,
    "call_timeout_ns": 500_000_000,
}


def story(of: Plan, **declared: object) -> Story:
    return Story(of, **declared).up().start()


def stopped_over(of: Plan = READ, **declared: object) -> Story:
    """Worker 1 is stopped over `a`, whose answer a1 reaches it there; worker 2 is up."""
    return story(of, **declared).request("a").pause().applied().reply().up()


def asked(params: dict[str, Any], carries: dict[str, str] | None = None) -> str:
    """What a request says, as receivers fingerprint it."""
    text = json.dumps([params, carries or {}], sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode("ascii"), digest_size=16).hexdigest()


# --- OWN-2 ------------------------------------------------------------------------------------------------------------
holds(
    "OWN-2",
    "the newer owner's answer counts, the replaced one's does not",
    stopped_over().request("a").resume(1).applied().reply().call("b", carries={"a": "a2"}).done({"a": "a2"}),
)
holds(
    "OWN-2",
    "the newer owner had done it already",
    stopped_over().call("a").call("b", carries={"a": "a2"}).resume(1).done({"a": "a2"}),
)
holds(
    "OWN-2",
    "nobody had begun anew when the first came back",
    stopped_over().resume(1).call("b", by=1, carries={"a": "a1"}).done({"a": "a1"}),
    exercised=0,
)
holds(
    "OWN-2",
    "both were given the one answer of their key",
    story(plan("a ledger")).request("a").pause().applied().reply().up().call("a", "saved").resume(1).done(),
    exercised=0,
)
holds(
    "OWN-2",
    "the newer owner died, and the first one goes on",
    stopped_over().request("a").kill().resume(1).call("b", by=1, carries={"a": "a1"}).done({"a": "a1"}),
    exercised=0,
)
holds(
    "OWN-2",
    "the first had handed in its answer before it was stopped",
    story(READ).call("a").pause().up().request("a").resume(1).call("b", by=1, carries={"a": "a1"}).done({"a": "a1"}),
    exercised=0,
)
KID = plan(Child("kid", plan("a reader", "b ledger a").root))
holds(
    "OWN-2",
    "in a child too, by the names of its own plan",
    story(KID)
    .request("kid/a")
    .pause()
    .applied()
    .reply()
    .up()
    .request("kid/a")
    .resume(1)
    .applied()
    .reply()
    .call("kid/b", carries={"a": "kid/a2"})
    .done({"kid/a": "kid/a2"}),
)
breaks(
    "OWN-2",
    "a child hands on the answer of a worker that was replaced, by the names of its own plan",
    story(KID)
    .request("kid/a")
    .pause()
    .applied()
    .reply()
    .up()
    .request("kid/a")
    .resume(1)
    .applied()
    .reply()
    .call("kid/b", carries={"a": "kid/a1"}),
    "stale acceptance",
)
breaks(
    "OWN-2",
    "the replaced owner's answer is shown as accepted",
    stopped_over().request("a").resume(1).status("running", ops={"a": "succeeded a1"}),
    "stale acceptance",
)
breaks(
    "OWN-2",
    "the replaced owner's answer is handed on",
    stopped_over().request("a").resume(1).call("b", carries={"a": "a1"}),
    "stale acceptance",
)
breaks(
    "OWN-2",
    "what the newer owner had brought is overwritten",
    stopped_over().call("a").status("running", ops={"a": "succeeded a2"}).resume(1).done({"a": "a1"}),
    "stale acceptance",
)

# --- OWN-3 ------------------------------------------------------------------------------------------------------------
FIRST, SECOND = {"amount": 101}, {"amount": 102}


def claimed() -> Story:
    """A worker has the approved letter in hand and asks the desk; meanwhile it is changed twice, and approved anew."""
    return (
        story(LETTER)
        .decide("ok")
        .desk("ok")
        .steer("m", FIRST)
        .steer("m", SECOND, nth=2)
        .decide("ok", nth=2, params=SECOND)
    )


holds("OWN-3", "it is sent as it was changed last", claimed().call("m", params=asked(SECOND)).done())
holds(
    "OWN-3",
    "the second change came too late, and says so",
    story(LETTER)
    .decide("ok")
    .desk("ok")
    .steer("m", FIRST)
    .decide("ok", nth=2, params=FIRST)
    .call("m", params=asked(FIRST))
    .steer("m", SECOND, nth=2, disposition="late")
    .done(),
)
holds(
    "OWN-3",
    "a change that nobody answers for yet may count or not",
    story(LETTER)
    .decide("ok")
    .desk("ok")
    .steer("m", FIRST)
    .decide("ok", nth=2, params=FIRST)
    .desk("ok")
    .ask("signal", id="2", name="steer", operation="m", payload='{"operation":"m","params":{"amount":102}}')
    .call("m", params=asked(FIRST)),
)
holds(
    "OWN-3",
    "both changes had to be asked again, and came to be taken in either order",
    story(LETTER)
    .decide("ok")
    .desk("ok")
    .steer("m", FIRST, outcome="indefinite")
    .steer("m", SECOND, nth=2, outcome="indefinite")
    .steer("m", SECOND, nth=2)
    .steer("m", FIRST)
    .decide("ok", nth=2, params=FIRST)
    .call("m", params=asked(FIRST))
    .done(),
)
holds(
    "OWN-3",
    "it was changed before anybody had claimed it",
    story(LETTER).steer("m", FIRST).decide("ok", params=FIRST).desk("ok").call("m", params=asked(FIRST)).done(),
    exercised=0,
)
holds(
    "OWN-3",
    "a stopped worker's request had been on its way",
    story(LETTER)
    .decide("ok")
    .desk("ok")
    .pause()
    .up()
    .steer("m", FIRST)
    .request("m", by=1, params=asked({"amount": 100})),
)
breaks(
    "OWN-3",
    "it is sent as its worker had read it",
    claimed().call("m", params=asked({"amount": 100})).done(),
    "stale acceptance",
)
breaks(
    "OWN-3",
    "the second change is missed",
    claimed().call("m", params=asked(FIRST)).done(),
    "stale acceptance",
)

# --- OWN-5 ------------------------------------------------------------------------------------------------------------
holds(
    "OWN-5",
    "the token grows with each owner",
    story(FENCED).request("a", token=1).crash().request("a", token=2).crash().call("a", token=5).done(),
    exercised=2,
)
holds(
    "OWN-5",
    "the replaced owner comes with its old token and is turned away",
    story(FENCED)
    .pause()
    .up()
    .request("a", token=2)
    .crash()
    .call("a", token=3)
    .resume(1)
    .call("a", "fenced", by=1, token=1)
    .done(),
)
holds(
    "OWN-5",
    "one owner may send one token twice",
    story(FENCED).call("a", token=4, delivery="dropped").call("a", "saved", token=4).done(),
    exercised=0,
)
holds(
    "OWN-5",
    "who knows nothing of tokens is not judged",
    story(FENCED).request("a").crash().call("a").done(),
    exercised=0,
)
holds(
    "OWN-5",
    "in a storm, requests overtake each other",
    story(FENCED).fired(STORM).request("a", token=2).crash().call("a", token=1).quiet(),
    exercised=0,
)
breaks(
    "OWN-5",
    "the token stays what it was with the first owner",
    story(FENCED).request("a", token=7).crash().call("a", "saved", token=7),
    "stale acceptance",
)
breaks(
    "OWN-5",
    "the next worker counts from one again",
    story(FENCED).call("a", token=1, delivery="dropped").request("a", token=2).crash().call("a", "fenced", token=1),
    "stale acceptance",
)
breaks(
    "OWN-5",
    "one request comes without its token",
    story(FENCED).request("a", token=1).crash().call("a", token=None),
    "stale acceptance",
)

# --- OWN-7 ------------------------------------------------------------------------------------------------------------
KEPT = {"generation": 1, "operation": "a", "report": "succeeded", "nonce": "a1"}

holds(
    "OWN-7",
    "the replaced owner's word is in the journal",
    stopped_over(QUOTE, **JOURNAL).call("a").resume(1).later(30).done({"a": "a2"}).journal(rejected=[KEPT]),
)
holds(
    "OWN-7",
    "it had no time yet to bring it",
    stopped_over(QUOTE, **JOURNAL).call("a").resume(1).journal(rejected=[]).later(30).done({"a": "a2"}),
    exercised=0,
)
holds(
    "OWN-7",
    "it died instead of bringing it",
    stopped_over(QUOTE, **JOURNAL).call("a").resume(1).kill(incarnation=1).later(30).journal(rejected=[]),
    exercised=0,
)
holds(
    "OWN-7",
    "a journal is not to be had",
    stopped_over(QUOTE).call("a").resume(1).later(30).done({"a": "a2"}),
    exercised=0,
)
holds(
    "OWN-7",
    "it says no more than that nobody knows",
    stopped_over(QUOTE, **JOURNAL)
    .call("a")
    .resume(1)
    .later(30)
    .journal(rejected=[{**KEPT, "report": "unknown", "nonce": None}]),
)
holds(
    "OWN-7",
    "its own patience was over when it came back: it had nothing to tell",
    story(QUOTE, **JOURNAL)
    .request("a")
    .pause()
    .applied()
    .reply()
    .up()
    .call("a")
    .later(600)
    .resume(1)
    .later(30)
    .journal(rejected=[]),
    exercised=0,
)
holds(
    "OWN-7",
    "nobody was there to bring it to until just now",
    stopped_over(QUOTE, **JOURNAL)
    .up("engine")
    .call("a")
    .kill("power", unit="engine", incarnation=3)
    .resume(1)
    .later(30)
    .up("engine")
    .journal(rejected=[]),
    exercised=0,
)
breaks(
    "OWN-7",
    "nothing is kept of it, though who takes it was back for long",
    stopped_over(QUOTE, **JOURNAL)
    .up("engine")
    .call("a")
    .kill("power", unit="engine", incarnation=3)
    .resume(1)
    .up("engine")
    .later(30)
    .journal(rejected=[]),
    "amnesia",
)
breaks(
    "OWN-7",
    "nothing is kept of it",
    stopped_over(QUOTE, **JOURNAL).call("a").resume(1).later(30).done({"a": "a2"}).journal(rejected=[]),
    "amnesia",
)
breaks(
    "OWN-7",
    "only another's is kept",
    stopped_over(QUOTE, **JOURNAL).call("a").resume(1).later(30).journal(rejected=[{**KEPT, "operation": "b"}]),
    "amnesia",
)
