"""Examples for BUD-5 6 7 8."""

from __future__ import annotations

from typing import Any

import attrs

from scenarios.history import Usage
from scenarios.operation import Allowance, Reserve
from scenarios.plan import Child, Op, Plan
from tests.scenarios.build import MS, Story, par, plan, seq
from tests.scenarios.examples import breaks, holds


def allowed(allowance: Allowance, *children: Op | str) -> Plan:
    return attrs.evolve(plan(*children), allowance=allowance)


def calls(allowance: int, consumed: int = 0, reserved: int = 0, unknown: int = 0) -> dict[str, Any]:
    return {"usage": {"calls": Usage(allowance, consumed, reserved, unknown)}}


def tokens(allowance: int, consumed: int = 0, reserved: int = 0, unknown: int = 0) -> dict[str, Any]:
    return {"usage": {"tokens": Usage(allowance, consumed, reserved, unknown)}}


KID = Child("k", seq("x ledger", "y ledger"), share=Allowance(calls=2))
FAMILY = allowed(Allowance(calls=3), par(KID, "a ledger", "b ledger"))
THOUGHTS = allowed(Allowance(tokens=14), "m model 6", "n model 6")
UNDONE = allowed(
    Allowance(calls=4, reserve=Reserve(calls=2)), "a ledger", "b ledger", "c ledger", "ua undo a", "ub undo b"
)

# --- BUD-5 ------------------------------------------------------------------------------------------------------------
holds(
    "BUD-5",
    "one call fits beside the child's two",
    Story(FAMILY).up().start().request("k/x").call("a").applied(1).reply(call=1).call("k/y"),
    exercised=2,
)
holds(
    "BUD-5",
    "what the child leaves is its owner's again",
    Story(allowed(Allowance(calls=3), Child("k", seq("x ledger"), share=Allowance(calls=2)), "a ledger", "b ledger"))
    .up()
    .start()
    .call("k/x")
    .call("a")
    .call("b"),
)
holds(
    "BUD-5",
    "a child on its own keeps what it was given, and its owner makes do with the rest",
    Story(
        allowed(
            Allowance(calls=3),
            Child("k", seq("x ledger", "y ledger"), detached=True, share=Allowance(calls=2)),
            "a ledger",
        )
    )
    .up()
    .start()
    .call("k/x")
    .call("a")
    .done()
    .call("k/y"),
    exercised=2,
)
breaks(
    "BUD-5",
    "the share is taken from nowhere",
    Story(FAMILY).up().start().request("k/x").call("a").call("b").applied(1).reply(call=1).call("k/y"),
    "overspend",
)
breaks(
    "BUD-5",
    "a child makes more calls than it was given",
    Story(allowed(Allowance(calls=9), Child("k", seq("x ledger", "y ledger", "z ledger"), share=Allowance(calls=2))))
    .up()
    .start()
    .call("k/x")
    .call("k/y")
    .call("k/z"),
    "overspend",
)

# --- BUD-6 ------------------------------------------------------------------------------------------------------------
holds(
    "BUD-6",
    "answers of three leave three each",
    Story(THOUGHTS).up().start().call("m", usage=3).call("n", usage=3).done(**tokens(14, 6)),
    exercised=2,
)
holds(
    "BUD-6",
    "what an error may have cost is not free",
    Story(THOUGHTS).up().start().call("m", "error").call("m", usage=3).call("n", usage=3).done(**tokens(14, 6, 0, 6)),
    exercised=2,
)
holds(
    "BUD-6",
    "a worker died with a request that nobody saw arrive",
    Story(THOUGHTS).up().start().crash().call("m", usage=1).call("n", usage=1).done(**tokens(14, 2, 0, 12)),
    exercised=0,
)
breaks(
    "BUD-6",
    "everything that was reserved is booked as used",
    Story(THOUGHTS).up().start().call("m", usage=3).call("n", usage=3).done(**tokens(14, 12)),
    "overspend",
)
breaks(
    "BUD-6",
    "the reservation is left where it is",
    Story(THOUGHTS).up().start().call("m", usage=3).call("n", usage=1).done(**tokens(14, 4, 8)),
    "overspend",
)

# --- BUD-7 ------------------------------------------------------------------------------------------------------------
holds(
    "BUD-7",
    "what was done is undone from the reserve",
    Story(UNDONE)
    .up()
    .start()
    .call("a")
    .call("b")
    .call("ub")
    .call("ua")
    .status(
        "failed", ops={"a": "succeeded a1", "b": "succeeded b1"}, reason="allowance-exhausted: calls", **calls(4, 4)
    ),
    exercised=2,
)
holds(
    "BUD-7",
    "an undo that nobody saw may have been on its way as its worker died",
    Story(UNDONE)
    .up()
    .start()
    .call("a")
    .call("b")
    .crash()
    .call("ub")
    .status(
        "blocked",
        ops={"a": "succeeded a1", "b": "succeeded b1", "ua": "unresolved"},
        reason="compensation-unresolved: ua after allowance-exhausted: calls",
        **calls(4, 3, 0, 1),
    ),
    exercised=1,
)
holds(
    "BUD-7",
    "the reserve was used up by undoing something twice, as an answer got lost",
    Story(UNDONE)
    .up()
    .start()
    .call("a")
    .call("b")
    .call("ub", delivery="reset")
    .call("ub", "saved")
    .status(
        "blocked",
        ops={"a": "succeeded a1", "b": "succeeded b1", "ua": "unresolved"},
        reason="compensation-unresolved: ua after allowance-exhausted: calls",
        **calls(4, 3, 0, 1),
    ),
    exercised=2,
)
holds(
    "BUD-7",
    "a check comes after the work that used up all but the reserve",
    Story(allowed(Allowance(calls=3, reserve=Reserve(calls=1)), "a ledger", "p artifact report 64 2", "q check p"))
    .up()
    .start()
    .call("a")
    .upload("p")
    .check("q")
    .done(),
)
breaks(
    "BUD-7",
    "ordinary work takes what is kept",
    Story(UNDONE).up().start().call("a").call("b").call("c"),
    "overspend",
)
breaks(
    "BUD-7",
    "a run whose allowance is used up is ended on the spot",
    Story(UNDONE)
    .up()
    .start()
    .call("a")
    .call("b")
    .status(
        "failed", ops={"a": "succeeded a1", "b": "succeeded b1"}, reason="allowance-exhausted: calls", **calls(4, 2)
    ),
    "stuck",
)

# --- BUD-8 ------------------------------------------------------------------------------------------------------------
DEAR = allowed(Allowance(tokens=10), "m model 6", "n model 6")
HASTY = allowed(Allowance(elapsed_ns=100 * MS), "a ledger", "s sleep 900", "b ledger")
SPENT = {"m": "succeeded m1", "n": "failed"}
holds(
    "BUD-8",
    "the run says that its tokens are used up",
    Story(DEAR)
    .up()
    .start()
    .call("m", usage=6)
    .status("failed", ops=SPENT, reason="allowance-exhausted: tokens", **tokens(10, 6)),
)
holds(
    "BUD-8",
    "it failed over a refusal, with little left",
    Story(DEAR).up().start().call("m", "rejected").status("failed", error="rejected", reason="rejected", **tokens(10)),
    exercised=0,
)
holds(
    "BUD-8",
    "its time was over while it slept",
    Story(HASTY)
    .up()
    .start()
    .call("a")
    .later(100)
    .status(
        "failed",
        ops={"a": "succeeded a1", "s": "planned", "b": "planned"},
        reason="allowance-exhausted: elapsed",
        usage={"elapsed_ns": Usage(100 * MS, 100 * MS)},
    ),
)
breaks(
    "BUD-8",
    "what cannot be afforded fails like a refused request",
    Story(DEAR).up().start().call("m", usage=6).status("failed", ops=SPENT, reason="rejected: n", **tokens(10, 6)),
    "amnesia",
)
breaks(
    "BUD-8",
    "the reason is there, and not what was used of it",
    Story(DEAR).up().start().call("m", usage=6).status("failed", ops=SPENT, reason="allowance-exhausted: tokens"),
    "amnesia",
)
breaks(
    "BUD-8",
    "a run that took too long says nothing of it",
    Story(HASTY).up().start().call("a").later(100).status("failed", ops={"a": "succeeded a1"}, error="stopped"),
    "amnesia",
)
