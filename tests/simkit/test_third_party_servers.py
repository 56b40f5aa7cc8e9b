"""A released server runs unchanged in a simulation: hypercorn on trio serves an ASGI application, httpx and httpx2 ask it.

hypercorn is started by its public entry point, `hypercorn.trio.serve(app, config, shutdown_trigger=…)`: without the
trigger it waits for signals, which no simulated process gets.
"""

from __future__ import annotations

import functools
import importlib
import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import trio

from simkit.network import NetworkOptions
from simkit.process import Process
from simkit.tape import Tape
from simkit.world import World, run
from tests.simkit.rig import outcome_of

hypercorn = pytest.importorskip("hypercorn", reason="NOT TESTED: hypercorn is not installed; it belongs to `test`")
hypercorn_trio = pytest.importorskip("hypercorn.trio")

Send = Callable[[dict[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[dict[str, Any]]]

JOURNAL = Path("/state/orders.jsonl")
clients = pytest.mark.parametrize("library", ["httpx", "httpx2"])


def client_library(name: str) -> Any:
    return pytest.importorskip(name, reason=f"NOT TESTED: {name} is not installed; it belongs to the group `test`")


# ------------------------------------------------------------------------------------------------------ the application
async def shop(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """POST /orders keeps an order durably, thinks for a second, and says how many there are; GET tells them."""
    if scope["type"] == "lifespan":
        await _lifespan(receive, send)
        return
    if scope["method"] == "POST":
        _keep(json.loads(await _body(receive)))
        await trio.sleep(1)
    await _reply(send, _orders())


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        kind = (await receive())["type"]
        await send({"type": f"{kind}.complete"})
        if kind == "lifespan.shutdown":
            return


async def _body(receive: Receive) -> bytes:
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            return body


async def _reply(send: Send, value: object) -> None:
    body = json.dumps(value).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    for part in (body[:5], body[5:]):
        await send({"type": "http.response.body", "body": part, "more_body": part != body[5:]})


def _keep(order: object) -> None:
    with JOURNAL.open("a") as file:
        file.write(json.dumps(order) + "\n")
        file.flush()
        os.fsync(file.fileno())
    folder = os.open(JOURNAL.parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


def _orders() -> list[object]:
    return [json.loads(line) for line in JOURNAL.read_text().splitlines()] if JOURNAL.exists() else []


async def serve(shutdown: Callable[[], Awaitable[None]] = trio.sleep_forever) -> None:
    config = hypercorn.Config()
    config.bind = ["0.0.0.0:80"]
    config.errorlog = None
    await hypercorn_trio.serve(shop, config, shutdown_trigger=shutdown)


# --------------------------------------------------------------------------------------------------------- the clients
async def order(library: Any, *things: str) -> list[Any]:
    """Order one after another over one connection."""
    async with library.AsyncClient(base_url="http://server", timeout=30) as client:
        return [(await client.post("/orders", json=thing)).json() for thing in things]


async def insist(library: Any, thing: str) -> Any:
    """Order once, and ask again until somebody answers, as a careful client does."""
    async with library.AsyncClient(base_url="http://server", timeout=5) as client:
        try:
            await client.post("/orders", json=thing)
        except library.TransportError as error:
            seen = type(error).__name__
        else:
            return "answered at once", None
        while True:
            try:
                return seen, (await client.get("/orders")).json()
            except library.TransportError:
                await trio.sleep(1)


async def value_of(process: Process) -> Any:
    status = await process.wait()
    if status.error is not None:
        raise status.error
    return status.value


async def ask_twice(library: Any, world: World) -> tuple[Any, Any]:
    """Two clients at a time."""
    world.host("server").start(serve)
    await trio.sleep(1)
    one = world.host("one").start(order, library, "tea", "cake")
    other = world.host("other").start(order, library, "milk")
    return await value_of(one), await value_of(other)


@clients
@pytest.mark.slow
def test_clients_ask_a_server(library: str) -> None:
    """A released client asks a released server on another host; equal seeds, equal traces, on both kernels."""
    program = functools.partial(ask_twice, client_library(library))
    outcome = outcome_of(program, 3)
    one, other = outcome.unwrap()
    assert sorted(one[-1]) == ["cake", "milk", "tea"]
    assert "milk" in other[0]
    assert outcome.digest == run(program, tape=Tape.from_seed(3), kernel="fallback").digest
    assert outcome.digest == outcome_of(program, 3).digest
    assert outcome.now_ns > 2_000_000_000  # two orders of the first client, a second each


async def kill_in_the_middle(library: Any, after_s: float, world: World) -> Any:
    """The server is killed while it thinks about an order, and runs again a while later."""
    server = world.host("server").start(serve)
    await trio.sleep(1)
    client = world.host("client").start(insist, library, "tea")
    await trio.sleep(after_s)
    server.kill()
    await trio.sleep(3)
    world.host("server").start(serve)
    return await value_of(client)


@clients
@pytest.mark.slow
def test_a_server_killed_in_a_request_is_an_error_and_runs_again(library: str) -> None:
    """The client meets an error of the transport; the order that was durable is there once after the restart."""
    program = functools.partial(kill_in_the_middle, client_library(library), 0.5)
    seen, orders = outcome_of(program, 1).unwrap()
    assert seen in {"ReadError", "RemoteProtocolError"}
    assert orders == ["tea"]
    assert outcome_of(program, 1).digest == run(program, tape=Tape.from_seed(1), kernel="fallback").digest


@clients
@pytest.mark.slow
def test_a_loss_of_power_keeps_what_was_synced(library: str) -> None:
    """As a kill, but the machine goes down; the order was synced with its name, and is kept whatever is lost."""

    async def main(world: World) -> Any:
        world.host("server").start(serve)
        await trio.sleep(1)
        client = world.host("client").start(insist, client_library(library), "tea")
        await trio.sleep(0.5)
        world.host("server").power_loss("lose")
        await trio.sleep(3)
        world.host("server").start(serve)
        return await value_of(client)

    for seed in range(3):
        assert outcome_of(main, seed).unwrap()[1] == ["tea"]


@clients
@pytest.mark.slow
def test_a_server_shuts_down_when_it_is_told_to(library: str) -> None:
    """hypercorn's own shutdown: what is asked is answered, its process exits, and nobody listens any more."""
    asks = client_library(library)

    async def main(world: World) -> tuple[Any, str, str]:
        told = trio.Event()
        server = world.host("server").start(serve, told.wait)
        await trio.sleep(1)
        client = world.host("client").start(order, asks, "tea")
        await trio.sleep(0.5)
        told.set()
        answers = await value_of(client)
        ended = str(await server.wait())
        late = await world.host("client").start(order, asks, "cake").wait()
        return answers, ended, type(late.error).__name__

    assert outcome_of(main).unwrap() == ([["tea"]], "exited", "ConnectError")


@pytest.mark.slow
def test_a_bad_network_is_answered_in_the_end() -> None:
    """With connections that break by chance, a client that insists gets its answer in every run, and sees errors in some."""
    library = importlib.import_module("httpx")

    async def main(world: World) -> Any:
        world.network.options = NetworkOptions(breaks=(1, 12))
        world.host("server").start(serve)
        await trio.sleep(1)
        client = world.host("client").start(insist, library, "tea")
        await trio.sleep(60)
        world.calm()
        return await value_of(client)

    seen = [outcome_of(main, seed).unwrap()[0] for seed in range(12)]
    assert "answered at once" in seen
    assert len(set(seen)) > 1
