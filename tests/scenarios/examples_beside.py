"""Examples of what promises mean where other runs are beside the one that is judged: EFF-2, CAN-5."""

from __future__ import annotations

from scenarios.history import Applied, Asked, Received, Replied, State, Status
from tests.scenarios.build import Story, plan
from tests.scenarios.examples import breaks, holds

ONE = plan("a ledger")
PAIR = plan("a ledger", "b ledger a")
#: A name that begins like that of the run.
OTHER = "r10"


class Beside(Story):
    """A story with a second run in it."""

    def other(self, key: str, service: str = "ledger") -> Beside:
        """The other run has a call carried out under this key."""
        self.calls += 1
        nonce = f"n{self.calls}"
        self.add(Received(self.now_ns, self.calls, service, OTHER, "a", self.worker, key))
        self.add(Applied(self.now_ns, self.calls, self.calls, nonce))
        return self.add(Replied(self.now_ns, self.calls, 200, "executed", nonce))

    def asked(self, verb: str, state: State | None = None) -> Beside:
        """The other run is asked something, and the answer is a yes or, for a status, this state."""
        self.asks += 1
        self.add(Asked(self.now_ns, self.asks, verb, OTHER, self.worker, OTHER))
        return self.answer("ok", None if state is None else Status(state))


def beside() -> Beside:
    return Beside(PAIR).up().start().asked("start")


# --- EFF-2 ------------------------------------------------------------------------------------------------------------
holds(
    "EFF-2",
    "the key of another run at another receiver",
    Beside(ONE).up().start().asked("start").call("a", key="1").other("1", "flaky").done(),
    exercised=0,
)
holds(
    "EFF-2",
    "each run has keys of its own",
    Beside(ONE).up().start().asked("start").call("a", key="r1:a").other("r10:a").done(),
    exercised=0,
)
breaks(
    "EFF-2",
    "the key is the same in every run",
    Beside(ONE).up().start().asked("start").call("a", key="a").other("a").done(),
    "key drift",
)

# --- CAN-5 ------------------------------------------------------------------------------------------------------------
holds(
    "CAN-5",
    "a run beside goes on",
    beside()
    .request("a")
    .cancel()
    .applied()
    .reply()
    .asked("status", "running")
    .status("cancelled")
    .asked("status", "done"),
)
holds(
    "CAN-5",
    "a run beside was stopped by somebody",
    beside().request("a").cancel().asked("cancel").applied().reply().status("cancelled").asked("status", "cancelled"),
)
breaks(
    "CAN-5",
    "a run beside was stopped as well, for its name",
    beside().request("a").cancel().applied().reply().status("cancelled").asked("status", "cancelled"),
    "leak",
)
holds(
    "CAN-5",
    "another run was started, and nobody has looked after it since the stop",
    Beside(ONE).up().start().asked("start").asked("status", "running").cancel().status("cancelled").settled(),
    exercised=0,
)
