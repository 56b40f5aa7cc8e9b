"""Actions of the catalogue on a real process with every verb: killed, kept down, deployed, doubled, damaged, and asked."""

from __future__ import annotations

import sys
from pathlib import Path

import attrs
import pytest
import trio

from conformance import targets
from conformance.driver import Observation, observe
from conformance.manifest import Limits, Operations, Shows, Verbs
from conformance.possible import obstacle
from conformance.processes import Processes
from conformance.subject import subject_of
from conformance.worlds.process import ProcessWorld
from scenarios.history import Answered, Asked, Closed, Died, Down, Received, Scanned, Started
from scenarios.interruption import Interruption, Scenario, Site
from scenarios.plan import Approve, Call, Plan, Seq, Wait
from simkit.errors import SimkitError
from tests.conformance.seen_rig import at, events, final, outcomes

#: A harness in one thread: a journal in a file, carried out from where it ends.
PROGRAM = """
import json, os, signal, threading, time
from simkit_adapter import Busy, Refused, Rejected, Unknown, call, leaves, lookup, serve, state_folder

LOCK = threading.RLock()
LEAVING = threading.Event()
if not os.environ.get("SIMKIT_CODE"):
    signal.signal(signal.SIGTERM, lambda *_: LEAVING.set())

class Run:
    def __init__(self, name, plan):
        self.name, self.plan = name, plan
        self.kept = {"answers": {}, "signals": {}, "decisions": {}, "cancelled": False, "paused": False, "code": []}
        if self.path.exists():
            self.kept = json.loads(self.path.read_text())["kept"]
        self.kept["code"].append(os.environ.get("SIMKIT_CODE", "1"))
        self.save()
        threading.Thread(target=self.main, daemon=True).start()

    @property
    def path(self):
        return state_folder() / (self.name + ".json")

    def save(self):
        with LOCK:
            new = self.path.with_suffix(f".new{os.getpid()}")
            new.write_text(json.dumps({"name": self.name, "plan": self.plan, "kept": self.kept}))
            new.replace(self.path)

    def main(self):
        for op in leaves(self.plan):
            while op["id"] not in self.kept["answers"] and not self.kept["cancelled"]:
                time.sleep(0.01)
                if LEAVING.is_set():
                    os._exit(0)
                if not self.kept["paused"] and (answer := self.work(op)) is not None and not self.kept["cancelled"]:
                    self.kept["answers"][op["id"]] = answer
                    self.save()

    def work(self, op):
        if op["op"] == "wait":
            taken = self.kept["answers"].values()
            return next((n for s, n in self.kept["signals"].values() if s == op["signal"] and n not in taken), None)
        if op["op"] == "approve":
            decision = self.kept["decisions"].get(op["id"])
            return decision and decision["nonce"]
        try:
            return call(op, self.name, self.kept["answers"])
        except (Unknown, Busy):
            return None

class Adapter:
    def __init__(self):
        found = (json.loads(path.read_text()) for path in state_folder().glob("*.json"))
        self.runs = {one["name"]: Run(one["name"], one["plan"]) for one in list(found)}

    def start(self, run, plan, key):
        known = self.runs.get(run)
        if known and known.plan != plan:
            raise Refused("another plan")
        self.runs[run] = known or Run(run, plan)

    def signal(self, run, name, payload, id):
        self.runs[run].kept["signals"][id] = [name, payload["nonce"]]
        self.runs[run].save()
        return {"disposition": "buffered"}

    def decide(self, run, operation, decision, digest, actor, payload, id):
        if actor != "alice":
            raise Refused("no-authority")
        self.runs[run].kept["decisions"].setdefault(operation, payload)
        self.runs[run].save()
        return {"disposition": "approved"}

    def cancel(self, run, id):
        self.runs[run].kept["cancelled"] = True
        self.runs[run].save()
        return {"disposition": "accepted"}

    def pause(self, run, id):
        self.runs[run].kept["paused"] = True
        self.runs[run].save()

    def unpause(self, run, id):
        self.runs[run].kept["paused"] = False
        self.runs[run].save()

    def events(self, run, after):
        done = list(self.runs[run].kept["answers"]) if run in self.runs else []
        rows = [{"cursor": n, "kind": "accepted", "operation": op} for n, op in enumerate(done, 1)]
        return {"events": rows[after:], "next": len(rows)}

    def artifacts(self, run):
        return {"artifacts": []}

    def journal(self, run):
        return {"transitions": [], "code": self.runs[run].kept["code"] if run in self.runs else []}

    def status(self, run):
        if run not in self.runs:
            return "unknown"
        kept, ops = self.runs[run].kept, list(leaves(self.runs[run].plan))
        if kept["cancelled"]:
            return {"state": "cancelled", "cancel": "quiescent"}
        left = [op for op in ops if op["id"] not in kept["answers"]]
        if not left:
            return {"state": "done", "result": kept["answers"]}
        on = left[0].get("signal") or (left[0]["id"] if left[0]["op"] == "approve" else None)
        return {"state": "waiting" if on else "running", "on": on, "paused": kept["paused"]}

serve(Adapter())
"""
PAY = Call("pay", "ledger", {"amount": 7})
PLAN = Plan(Seq("main", (Call("a", "ledger"), Approve("ok", "pay"), PAY, Wait("w", "go"), Call("b", "ledger"))))
MS = 1_000_000


def watch(folder: Path, *interruptions: Interruption, plan: Plan = PLAN) -> Observation:
    """Run the program above on real processes."""
    (folder / "adapter").mkdir()
    (folder / "adapter" / "adapter.py").write_text(PROGRAM)
    naive = targets.parse("naive")
    worker = attrs.evolve(naive.manifest.units["worker"], command=("{python}", "adapter.py"))
    manifest = attrs.evolve(
        naive.manifest,
        units={"worker": worker},
        operations=Operations(("seq", "call", "wait", "approve", "secrets")),
        verbs=Verbs(
            (
                "start",
                "status",
                "signal",
                "decide",
                "cancel",
                "pause",
                "unpause",
                "events",
                "artifacts",
                "journal",
                "leave",
            )
        ),
        shows=Shows(),
        limits=Limits(settle_ms=5000, call_timeout_ms=500, poll_ms=10, lease_ms=1),
    )
    target = attrs.evolve(naive, folder=folder / "adapter", manifest=manifest)
    scenario = Scenario("test", plan, interruptions)
    assert obstacle(scenario, "process", manifest) == ""

    async def main() -> Observation:
        with trio.fail_after(60):
            async with Processes() as processes:
                world = ProcessWorld(target, sys.executable, folder, processes, 1)
                return await observe(world, subject_of(manifest), scenario, "r")

    return trio.run(main)


def test_an_undisturbed_run_is_decided_signalled_and_read(tmp_path: Path) -> None:
    """By every verb there is."""
    seen = watch(tmp_path)
    asked = {one.verb for one in events(seen, Asked)}
    assert asked == {"start", "status", "decide", "signal", "events", "artifacts", "journal"}
    (page, *_) = [one.body for one in events(seen, Answered) if one.body and "events" in one.body]
    assert [row["operation"] for row in page["events"]] == ["a", "ok", "pay", "w", "b"]
    assert events(seen, Closed)[0].reason == "settled"


def test_a_worker_stays_down_and_comes_back_with_other_code(tmp_path: Path) -> None:
    """Its journal shows which versions have worked at the run, and nobody was asked meanwhile."""
    deploy = Interruption("deploy", at("a", "applied"), ns=300 * MS, arg="2")
    seen = watch(tmp_path, deploy)
    (death,), (down,), (_, back) = events(seen, Died), events(seen, Down), events(seen, Started)
    assert down.ns == 300 * MS
    assert back.at_ns - death.at_ns >= 300 * MS
    assert not [one for one in events(seen, Asked) if death.at_ns < one.at_ns < back.at_ns]
    journals = [one.body["code"] for one in events(seen, Answered) if one.body and "code" in one.body]
    assert journals[-1] == ["1", "2"]
    assert (final(seen), seen.unfired) == ("done", ())


def test_a_worker_is_asked_to_leave(tmp_path: Path) -> None:
    """By SIGTERM: it ends what it is at, and itself; the next one does the rest."""
    seen = watch(tmp_path, Interruption("leave", at("a", "received")))
    (death,) = events(seen, Died)
    assert (death.cause, death.incarnation) == ("left", 1)
    assert [(one.op, one.incarnation) for one in events(seen, Received)] == [("a", 1), ("pay", 2), ("b", 2)]
    assert (final(seen), seen.unfired) == ("done", ())


def test_a_worker_that_dies_of_the_request_is_not_judged(tmp_path: Path) -> None:
    """SIGTERM kills whoever does not handle it, as the second version of this program does."""
    leave = Interruption("leave", at("pay", "received"))
    with pytest.raises(SimkitError, match="leave-unheard"):
        watch(tmp_path, Interruption("deploy", at("a", "applied"), arg="2"), leave)


def test_a_second_process_stands_beside_the_first(tmp_path: Path) -> None:
    """On the same state folder, with a port of its own."""
    seen = watch(tmp_path, Interruption("second", at("a", "applied")))
    assert [one.incarnation for one in events(seen, Started)] == [1, 2]
    assert events(seen, Died) == []
    assert events(seen, Closed)[0].reason == "settled"


def test_a_wiped_worker_has_forgotten_the_run(tmp_path: Path) -> None:
    """Everything it had stored is gone."""
    seen = watch(tmp_path, Interruption("wipe", at("pay", "applied")))
    assert seen.unfired == ()
    assert final(seen) == "unknown"


def test_commands_strike_real_processes(tmp_path: Path) -> None:
    """Pause and go on, a forged decision, a lost acknowledgement, another plan, a signal of no wait, and a crowd."""
    strikes = (
        Interruption("misuse", at("a", "applied")),
        Interruption("halt", at("a", "applied"), ns=100 * MS),
        Interruption("crowd", Site("ack", verb="start"), arg="3"),
        Interruption("forge", Site("waiting", "ok")),
        Interruption("lose-ack", Site("ack", "ok", verb="decide")),
        Interruption("unmatched", at("pay", "applied")),
        Interruption("late-signal", Site("end")),
    )
    seen = watch(tmp_path, *strikes)
    assert seen.unfired == ()
    assert outcomes(seen, "decide") == [
        "error: no-authority",
        "error: no-authority",
        "indefinite: the kit threw the acknowledgement away",
        "approved",
    ]
    assert "error: another plan" in outcomes(seen, "start")
    assert {one.run for one in events(seen, Received)} == {"r", *(f"r-crowd-{n}" for n in (1, 2, 3))}
    assert (final(seen), events(seen, Closed)[0].reason) == ("done", "settled")


@pytest.mark.parametrize("action", ["cancel", "repeat"])
def test_a_cancel_ends_a_real_run(action: str, tmp_path: Path) -> None:
    """Once, or asked twice under one id."""
    strikes = [Interruption("cancel", at("pay", "received"))]
    if action == "repeat":
        strikes.append(Interruption("repeat", Site("ack", verb="cancel")))
    seen = watch(tmp_path, *strikes)
    assert {one.id for one in events(seen, Asked, verb="cancel")} == {"r:cancel:1"}
    assert (final(seen), seen.unfired) == ("cancelled", ())


def test_a_real_worker_is_searched_for_secrets(tmp_path: Path) -> None:
    """Its name in the plan is no secret; nothing is found, everywhere was looked."""
    plan = Plan(Seq("main", (Call("a", "ledger", secret="card"), Call("b", "ledger"))))
    seen = watch(tmp_path, plan=plan)
    (scan,) = events(seen, Scanned)
    assert (set(scan.places), scan.found) == ({"store", "logs", "status", "events", "artifacts", "journal"}, ())
    assert [one.secret for one in events(seen, Received)] == [True, False]
