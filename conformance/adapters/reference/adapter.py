"""The reference runtime: a store server as unit `engine`, a worker with the protocol as unit `worker`.

One file for both worlds. As programs (`adapter.py engine`, `adapter.py worker`) they are real processes that talk over
TCP and standard streams; in the simulated world the two coroutines `run_engine` and `run_worker` are started as simulated
processes, and the same calls are simulated. Settings come from the environment, and from nowhere else:

- SIMKIT_STATE: the folder of the store; SIMKIT_ENGINE_HOST, SIMKIT_ENGINE_PORT: where the server listens;
- SIMKIT_SERVICES: `http://host:port`, or `lines://host:port`; SIMKIT_CALL_TIMEOUT_MS: how long a call may take;
- SIMKIT_SECRETS: the secrets that requests may name, as a JSON object; they go no further than the requests;
- REFERENCE_LEASE_MS: how long a silent worker keeps its work; REFERENCE_DEATHS_MAX: workers that may die over one
  operation; REFERENCE_LOOKUPS_MAX: how often it is asked what became of one; REFERENCE_KEY_LIFETIME_MS: how long receivers
  remember a key; REFERENCE_GRACE_MS: how long a stop leaves what is under way alone; REFERENCE_LANDING_MS: how
  long a request may be on its way; REFERENCE_TASKS_MAX: how many tasks may be open at once; REFERENCE_COMMIT_DELAY_MS: how
  long a commit waits for others to share it;
- REFERENCE_STYLE: `replay` has plans carried out by the interpreter, a workflow;
- SIMKIT_REBATCH: how many outcomes of a history the worker is told at a time;
- SIMKIT_CODE: the version of the code, 1 where it is not given. A worker of code 2 goes on with work of 1. One of code 3 goes
  on with its own only: where plans are state it says so; where they are replayed it has another shape (it runs a plan inside
  a branch of its own), tries to follow the history of 1 and 2, and must be found out. One of code 4 goes on with work of 1 and
  2 by a transform, which has something more sent with every call that was not sent before. An engine of code 0 is of the time
  before the present schema.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING, Any

import trio
from simkit_adapter import Indefinite, Refused, follow_clock, serve_streams

from reference_runtime import Client, Patience, Policy, Refusal, Server, Store, Unreachable, Worker, connect
from reference_runtime.credentials import SECRETS, Credentials
from reference_runtime.documents import replayed
from reference_runtime.evolution import Code
from reference_runtime.interpreter import INTERPRETER, interpret_aside
from reference_runtime.schema import SCHEMA_VERSION
from reference_runtime.workflow import Workflow

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from reference_runtime.model import Json

#: What the oldest program knows, code 0 of the kit: it has to leave every store of today alone.
FIRST_SCHEMA = 1
MS = 1_000_000
#: Short, because the kit waits for the answer: it is told "I cannot tell" and asks again.
PATIENCE = Patience(total_ns=1000 * MS, answer_ns=500 * MS)


async def run_engine(env: Mapping[str, str]) -> None:
    """The store server, until it is killed."""
    policy = Policy(
        lookups_max=int(env.get("REFERENCE_LOOKUPS_MAX", "20")),
        deaths_max=int(env.get("REFERENCE_DEATHS_MAX", "5")),
        key_lifetime_ns=int(env.get("REFERENCE_KEY_LIFETIME_MS", "86400000")) * MS,
        grace_ns=int(env.get("REFERENCE_GRACE_MS", "5000")) * MS,
        landing_ns=int(env.get("REFERENCE_LANDING_MS", "10000")) * MS,
        tasks_max=int(env["REFERENCE_TASKS_MAX"]) if "REFERENCE_TASKS_MAX" in env else None,
    )
    known = FIRST_SCHEMA if env.get("SIMKIT_CODE") == "0" else SCHEMA_VERSION
    transforms = {"in-cents": _in_cents}
    store = Store.open(f"{env['SIMKIT_STATE']}/runtime.db", policy=policy, known=known, transforms=transforms)
    store.forget_when_told(env)
    server = Server(
        store,
        lease_ns=int(env.get("REFERENCE_LEASE_MS", "300")) * MS,
        commit_delay_ns=int(env.get("REFERENCE_COMMIT_DELAY_MS", "0")) * MS,
    )
    await server.serve(_host(env), int(env["SIMKIT_ENGINE_PORT"]))


async def run_worker(env: Mapping[str, str], control: trio.abc.Stream) -> None:
    """A worker, and a client that speaks the adapter protocol over `control`, until the kit closes it or SIGTERM asks the
    worker to leave: then it ends what it has begun, hands back the rest, and ends.
    """
    address = _host(env), int(env["SIMKIT_ENGINE_PORT"])
    tools = connect(
        env["SIMKIT_SERVICES"],
        timeout_ns=int(env.get("SIMKIT_CALL_TIMEOUT_MS", "2000")) * MS,
        secrets=Credentials.from_json(env.get(SECRETS, "{}")),
    )
    async with trio.open_nursery() as nursery:
        is_replay = env.get("REFERENCE_STYLE") == "replay"
        worker = Worker(
            Client(*address),
            tools,
            workflows=[_interpreter(env)] if is_replay else [],
            code=_code(env),
            batch=int(env.get("SIMKIT_REBATCH", "0")),
        )
        nursery.start_soon(_work, worker, nursery.cancel_scope)
        nursery.start_soon(_stop_when_told, worker)
        verbs = Verbs(Client(*address, patience=PATIENCE), is_replay=is_replay)
        await serve_streams(verbs, _receiver(control), control.send_all)
        nursery.cancel_scope.cancel()


async def _work(worker: Worker, over: trio.CancelScope) -> None:
    await worker.run()
    over.cancel()


async def _stop_when_told(worker: Worker) -> None:
    with trio.open_signal_receiver(signal.SIGTERM) as signals:
        async for _ in signals:
            worker.stop()


def _code(env: Mapping[str, str]) -> Code:
    """What this worker is, and what it may go on with."""
    match env.get("SIMKIT_CODE", "1"):
        case "2":
            return Code("2", "compatible", ("1",))
        case "3" if env.get("REFERENCE_STYLE") == "replay":
            return Code("3", "replay", ("1", "2"))
        case "4":
            return Code("4", "transform", transforms={"1": "in-cents", "2": "in-cents"})
        case version:
            return Code(version)


def _in_cents(state: Json) -> Json:
    """Every call says from here on what its amounts are in."""
    return {**state, "params": {name: {**params, "unit": "cent"} for name, params in state["params"].items()}}


def _interpreter(env: Mapping[str, str]) -> Workflow:
    """The interpreter of this worker's version."""
    version = env.get("SIMKIT_CODE", "1")
    return Workflow(INTERPRETER.name, version, interpret_aside if version == "3" else INTERPRETER.function)


class Verbs:
    """The protocol's verbs as calls of the runtime's client."""

    def __init__(self, client: Client, *, is_replay: bool = False) -> None:
        self.client = client
        self.is_replay = is_replay

    async def start(self, run: str, plan: Json, key: str) -> None:
        await _asked(self.client.submit(run, replayed(plan) if self.is_replay else plan))

    async def status(self, run: str) -> Json:
        return await _answer(self.client.status(run))

    async def signal(self, run: str, name: str, payload: Json, id: str) -> Json:
        return await _answer(self.client.signal(run, id, name, payload))

    async def decide(
        self, run: str, operation: str, decision: str, digest: str, actor: str, payload: Json, id: str
    ) -> Json:
        nonce = str(payload.get("nonce", ""))
        return await _answer(self.client.decide(run, id, operation, decision, digest=digest, actor=actor, nonce=nonce))

    async def cancel(self, run: str, id: str) -> Json:
        return await _answer(self.client.cancel(run, id))

    async def pause(self, run: str, id: str) -> Json:
        return await _answer(self.client.pause(run, id))

    async def unpause(self, run: str, id: str) -> Json:
        return await _answer(self.client.unpause(run, id))

    async def events(self, run: str, after: int) -> Json:
        return await _answer(self.client.events(run, after))

    async def artifacts(self, run: str) -> Json:
        return await _answer(self.client.artifacts(run))

    async def journal(self, run: str) -> Json:
        return await _answer(self.client.journal(run))

    async def resume(self, run: str) -> None:
        """Nothing to do: recovery is the runtime's own."""


async def _answer(answer: Awaitable[Json]) -> Json:
    said: Json = await _asked(answer)
    return said


async def _asked(answer: Awaitable[Any]) -> Any:
    try:
        return await answer
    except Refusal as no:
        raise Refused(str(no)) from no
    except Unreachable as silence:
        raise Indefinite(str(silence)) from silence


def _receiver(control: trio.abc.Stream) -> Callable[[], Awaitable[bytes]]:
    async def receive_some() -> bytes:
        return bytes(await control.receive_some())

    return receive_some


def _host(env: Mapping[str, str]) -> str:
    return env.get("SIMKIT_ENGINE_HOST", "127.0.0.1")


def _stdio() -> trio.abc.Stream:
    """The protocol's two ends; what the program prints goes to standard error from now on."""
    requests, answers = os.dup(0), os.dup(1)
    sys.stdout.flush()
    os.dup2(2, 1)
    return trio.StapledStream(trio.lowlevel.FdStream(answers), trio.lowlevel.FdStream(requests))


async def main(unit: str) -> None:
    """Run one unit as this process."""
    if unit == "engine":
        follow_clock()
        await run_engine(os.environ)
    elif unit == "worker":
        await run_worker(os.environ, _stdio())
    else:
        sys.exit(f"unit {unit!r}; there are engine and worker")


if __name__ == "__main__":
    trio.run(main, (sys.argv[1:] or ["worker"])[0])
