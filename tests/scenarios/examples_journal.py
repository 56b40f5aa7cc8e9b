"""Examples for JRN-1 2 3 4."""

from __future__ import annotations

from typing import Any

from scenarios.plan import Artifact
from tests.scenarios.build import Story, plan
from tests.scenarios.examples import breaks, holds
from tests.scenarios.words import sha256_of

PAIR = plan("a ledger", "b ledger a")
READ = plan("r reader", "b ledger r")
SHIP = plan("s registry", "b ledger s")
PUBLISH = plan("a ledger", "p artifact report 64 2")
REPORT = Artifact("p", "report", 64)
CHECKED = plan(REPORT, "q check p")


def intent(op: str, generation: int = 1, **more: Any) -> dict[str, Any]:
    """An invocation as a journal tells it, with the key that `Story` sends."""
    row = {"generation": generation, "operation": op, "action": "call", "key": f"key:{op}", "digest": f"of {op}"}
    return {**row, "execution": "w", "attempt": "t", **more}


def path(op: str, *states: str, sequence: int = 1) -> list[dict[str, Any]]:
    """The transitions of an operation that begins planned, and then comes to `states`."""
    ways = zip(("planned", *states), states, strict=False)
    return [
        {"sequence": sequence + n, "operation": op, "from": before, "to": after, "move": "m", "reason": "a reason"}
        for n, (before, after) in enumerate(ways)
    ]


# --- JRN-1 ------------------------------------------------------------------------------------------------------------
holds(
    "JRN-1",
    "the worker was killed over the call, whose intent is in the journal",
    Story(PAIR).up().start().request("a").crash().journal(invocations=[intent("a")]),
)
holds(
    "JRN-1",
    "the repeat of another worker has an intent of its own",
    Story(PAIR)
    .up()
    .start()
    .request("a")
    .crash()
    .journal(invocations=[intent("a")])
    .call("a")
    .journal(invocations=[intent("a"), intent("a", 2)]),
)
holds(
    "JRN-1",
    "what is sent while the journal is being asked for need not be in it",
    Story(PAIR)
    .up()
    .start()
    .request("a")
    .crash()
    .ask("journal")
    .request("a")
    .answer("ok", body={"invocations": [intent("a")], "transitions": [], "audit": []}),
)
holds(
    "JRN-1",
    "an intent that nothing was ever sent for is no fault, nor is a client that sends one try twice",
    Story(READ)
    .up()
    .start()
    .call("r", "error")
    .request("r")
    .crash()
    .journal(invocations=[intent("r", key=None), intent("b")]),
)
holds(
    "JRN-1",
    "an upload is one try, in as many requests as it has parts",
    Story(PUBLISH)
    .up()
    .start()
    .call("a")
    .upload("p", commit=False)
    .request("p")
    .crash()
    .journal(invocations=[intent("a"), intent("p")]),
)
holds(
    "JRN-1",
    "one try may send twice, as long as it has no answer",
    Story(PAIR)
    .up(unit="engine")
    .up()
    .start()
    .request("a")
    .kill(unit="engine", incarnation=1)
    .up(unit="engine")
    .reply("error")
    .call("a")
    .journal(invocations=[intent("a")]),
)
breaks(
    "JRN-1",
    "a call was received, and the journal knows nothing of it",
    Story(PAIR).up().start().request("a").crash().journal(invocations=[]),
    "phantom effect",
)
breaks(
    "JRN-1",
    "the intent has no key",
    Story(PAIR).up().start().request("a").crash().journal(invocations=[intent("a", key=None)]),
    "phantom effect",
)
breaks(
    "JRN-1",
    "the intent does not say what was to be sent",
    Story(PAIR).up().start().request("a").crash().journal(invocations=[intent("a", digest=None)]),
    "phantom effect",
)
breaks(
    "JRN-1",
    "the second worker went by the first one's intent",
    Story(PAIR).up().start().request("a").crash().call("a").journal(invocations=[intent("a")]),
    "phantom effect",
)

breaks(
    "JRN-1",
    "the engine forgot the first try, which had been answered, and records the second only",
    Story(PAIR)
    .up(unit="engine")
    .up()
    .start()
    .request("a")
    .applied()
    .kill("power", unit="engine", incarnation=1)
    .reply()
    .up(unit="engine")
    .call("a", "saved")
    .journal(invocations=[intent("a")]),
    "phantom effect",
)

# --- JRN-2 ------------------------------------------------------------------------------------------------------------
holds(
    "JRN-2",
    "lost, repeated, accepted",
    Story(PAIR)
    .up()
    .start()
    .request("a")
    .crash()
    .call("a")
    .journal(transitions=path("a", "dispatched", "unknown", "dispatched", "succeeded")),
)
holds(
    "JRN-2",
    "two operations at once are two chains, and a creation may be told",
    Story(PAIR)
    .up()
    .start()
    .request("a")
    .crash()
    .journal(
        transitions=[
            {"sequence": 1, "operation": "a", "to": "planned", "move": "create"},
            {"sequence": 2, "operation": "b", "to": "planned", "move": "create"},
            *path("a", "dispatched", "unknown", sequence=3),
        ]
    ),
)
holds(
    "JRN-2",
    "given up, and settled by a late word; a stale report was refused",
    Story(plan("a ledger", "m mailer a"))
    .up()
    .start()
    .call("a")
    .request("m")
    .applied()
    .crash()
    .notice("m")
    .journal(
        transitions=[
            *path("a", "dispatched", "succeeded"),
            *path("m", "dispatched", "unknown", "unresolved", "reconciled", sequence=5),
        ],
        rejected=[{"generation": 1, "operation": "a", "report": "unknown"}],
    ),
    exercised=2,
)
holds(
    "JRN-2",
    "states in words of the harness's own are not understood",
    Story(PAIR).up().start().journal(transitions=[*path("a", "queued", "leased", "queued")]),
    exercised=0,
)
breaks(
    "JRN-2",
    "a late word leads back from the end",
    Story(PAIR).up().start().call("a").journal(transitions=path("a", "dispatched", "succeeded", "unknown")),
    "torn view",
)
breaks(
    "JRN-2",
    "what got lost is planned once more",
    Story(PAIR).up().start().request("a").crash().journal(transitions=path("a", "dispatched", "planned")),
    "torn view",
)
breaks(
    "JRN-2",
    "a transition begins where the operation was not",
    Story(PAIR)
    .up()
    .start()
    .call("a")
    .journal(
        transitions=[
            *path("a", "dispatched", "succeeded"),
            {"sequence": 9, "operation": "a", "from": "dispatched", "to": "unknown", "move": "lose"},
        ]
    ),
    "torn view",
)
breaks(
    "JRN-2",
    "dispatched out of nothing",
    Story(PAIR)
    .up()
    .start()
    .call("a")
    .journal(transitions=[{"sequence": 1, "operation": "a", "to": "dispatched", "move": "dispatch"}]),
    "torn view",
)

# --- JRN-3 ------------------------------------------------------------------------------------------------------------
LOST = path("a", "dispatched", "unknown", "dispatched", "succeeded")
holds(
    "JRN-3",
    "the reply was dropped, the outcome is unknown, the call is repeated",
    Story(PAIR).up().start().call("a", delivery="dropped").call("a", "saved").journal(transitions=LOST),
)
holds(
    "JRN-3",
    "nobody has noticed yet that the worker is dead",
    Story(PAIR).up().start().request("a").crash().journal(transitions=path("a", "dispatched")),
    exercised=0,
)
holds(
    "JRN-3",
    "busy is no loss, and after a loss a refusal may end it",
    Story(PAIR)
    .up()
    .start()
    .call("a", "busy")
    .call("a", "error")
    .call("a", "rejected")
    .journal(transitions=path("a", "dispatched", "unknown", "dispatched", "unknown", "dispatched", "failed")),
)
holds(
    "JRN-3",
    "of a reader that is out for good nothing can have happened, which is a step of its own",
    Story(READ)
    .up()
    .start()
    .call("r", "error")
    .call("r", "error")
    .journal(transitions=path("r", "dispatched", "unknown", "dispatched", "unknown", "failed")),
)
holds(
    "JRN-3",
    "lost, and looked up",
    Story(SHIP)
    .up()
    .start()
    .request("s")
    .applied()
    .crash()
    .look_up("s", "found")
    .journal(transitions=path("s", "dispatched", "unknown", "unknown", "reconciled")),
)
holds(
    "JRN-3",
    "the checker was asked again after its answer had got lost, and its word was no",
    Story(CHECKED)
    .up()
    .start()
    .upload("p")
    .request("q", subject=f"report@1#{sha256_of(REPORT)}")
    .applied()
    .reply(delivery="dropped", outcome="failed")
    .check("q", "failed")
    .journal(transitions=path("q", "dispatched", "unknown", "dispatched", "failed")),
)
holds(
    "JRN-3",
    "it was lost, asked for again and refused, as the journal was being read",
    Story(PAIR)
    .up()
    .start()
    .call("a", delivery="reset")
    .ask("journal")
    .call("a", "rejected")
    .answer(body={"transitions": list(path("a", "dispatched", "unknown", "dispatched", "failed"))}),
)
breaks(
    "JRN-3",
    "an answer that got lost is a failure",
    Story(PAIR).up().start().call("a", delivery="reset").journal(transitions=path("a", "dispatched", "failed")),
    "false certainty",
)
breaks(
    "JRN-3",
    "a lost call is repeated without a word",
    Story(PAIR).up().start().request("a").crash().call("a").journal(transitions=path("a", "dispatched", "succeeded")),
    "false certainty",
)
breaks(
    "JRN-3",
    "it was looked up, and had never been unknown",
    Story(SHIP)
    .up()
    .start()
    .request("s")
    .applied()
    .crash()
    .look_up("s", "found")
    .journal(transitions=path("s", "dispatched", "succeeded")),
    "false certainty",
)

# --- JRN-4 ------------------------------------------------------------------------------------------------------------
holds(
    "JRN-4",
    "the saved answer to the repeat has an id of its own",
    Story(PAIR)
    .up()
    .start()
    .call("a", delivery="dropped", external="x1")
    .call("a", "saved", external="x2")
    .status("running", ops={"a": "succeeded a1"})
    .journal(invocations=[intent("a"), intent("a", 2, external="x2")]),
)
holds(
    "JRN-4",
    "what a look-up found was told under the look-up's id",
    Story(SHIP)
    .up()
    .start()
    .request("s")
    .applied()
    .crash()
    .request("s", lookup=True)
    .reply("found", external="x7")
    .status("running", ops={"s": "reconciled s1"})
    .journal(invocations=[intent("s", key=None), intent("s", 2, key=None, action="lookup", external="x7")]),
)
holds(
    "JRN-4",
    "a receiver that gives no ids, and an answer that the dead worker took with it",
    Story(PAIR)
    .up()
    .start()
    .call("a", external="x1")
    .crash()
    .call("a", "saved", external="x2")
    .call("b")
    .status("running", ops={"a": "succeeded a1", "b": "succeeded b1"})
    .journal(invocations=[intent("a"), intent("a", 2, external="x2"), intent("b")]),
    exercised=0,
)
holds(
    "JRN-4",
    "not accepted yet when the journal was asked for",
    Story(PAIR).up().start().call("a", external="x1").journal(invocations=[intent("a")]),
    exercised=0,
)
breaks(
    "JRN-4",
    "the id was not kept",
    Story(PAIR)
    .up()
    .start()
    .call("a", external="x1")
    .status("running", ops={"a": "succeeded a1"})
    .journal(invocations=[intent("a")]),
    "amnesia",
)
breaks(
    "JRN-4",
    "of a look-up only the answer is kept",
    Story(SHIP)
    .up()
    .start()
    .request("s")
    .applied()
    .crash()
    .request("s", lookup=True)
    .reply("found", external="x7")
    .status("running", ops={"s": "reconciled s1"})
    .journal(invocations=[intent("s", key=None), intent("s", 2, key=None, action="lookup")]),
    "amnesia",
)
