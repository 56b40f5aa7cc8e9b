"""Released asyncio libraries run unchanged in a simulation: aiohttp on both sides, httpx on asyncio, TLS by asyncio's own."""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

import pytest
import trio

from simkit import RandomWalk, Tape, World, aio
from simkit.world import Outcome, run

aiohttp = pytest.importorskip("aiohttp", reason="NOT TESTED: aiohttp is not installed; it belongs to the group `test`")
web = pytest.importorskip("aiohttp.web", reason="NOT TESTED: aiohttp is not installed; it belongs to the group `test`")
httpx = pytest.importorskip("httpx", reason="NOT TESTED: httpx is not installed; it belongs to the group `test`")
trustme = pytest.importorskip("trustme", reason="NOT TESTED: trustme is not installed; it belongs to the group `test`")

pytestmark = pytest.mark.slow
ANSWERS = [{"path": "/0"}, {"path": "/1"}]


def outcome_of(main: Any, seed: int, **options: Any) -> Outcome[Any]:
    tape = Tape.from_seed(seed)
    return run(main, tape=tape, strategy=RandomWalk(tape.stream("schedule")), **options)


async def _server() -> None:
    async def answer(request: Any) -> Any:
        await asyncio.sleep(0.5)
        return web.json_response({"path": request.path})

    application = web.Application()
    application.router.add_get("/{name}", answer)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "0.0.0.0", 80).start()
    await asyncio.sleep(3600)


async def _by_aiohttp() -> list[Any]:
    async with aiohttp.ClientSession() as client:
        answers = []
        for number in range(2):
            async with client.get(f"http://server/{number}") as answer:
                answers.append(await answer.json())
        return answers


async def _by_httpx() -> list[Any]:
    async with httpx.AsyncClient() as client:
        return [(await client.get(f"http://server/{number}")).json() for number in range(2)]


async def _asked(world: World, client: Any) -> Any:
    server = world.host("server").start(aio.run, _server)
    await trio.sleep(1)
    status = await world.host("client").start(aio.run, client).wait()
    for ended in (server.status, status):
        if ended is not None and ended.error is not None:
            raise ended.error
    return status.value


@pytest.mark.parametrize("client", [_by_aiohttp, _by_httpx])
def test_a_server_of_aiohttp_answers(client: Any) -> None:
    """Over the simulated network; equal seeds give equal traces, on both kernels."""

    async def main(world: World) -> Any:
        return await _asked(world, client)

    for seed in range(3):
        outcome = outcome_of(main, seed)
        assert outcome.unwrap() == ANSWERS
        assert outcome.now_ns > 2 * 10**9
        assert outcome_of(main, seed, kernel="fallback").digest == outcome.digest


def test_a_killed_server_breaks_the_request_and_a_new_one_answers() -> None:
    """The client meets what it would meet in earnest, and may ask again."""

    async def persistent() -> tuple[str, Any]:
        try:
            await _by_aiohttp()
        except aiohttp.ClientConnectionError as error:
            await asyncio.sleep(2)
            return type(error).__name__, await _by_aiohttp()
        return "", None

    async def main(world: World) -> Any:
        server = world.host("server").start(aio.run, _server)
        await trio.sleep(1)
        client = world.host("client").start(aio.run, persistent)
        await trio.sleep(0.25)
        server.kill()
        await trio.sleep(0.25)
        world.host("server").start(aio.run, _server)
        status = await client.wait()
        if status.error is not None:
            raise status.error
        return status.value

    name, answers = outcome_of(main, 1).unwrap()
    assert name  # of a kind of ClientConnectionError: which one depends on whether it tried again by itself
    assert answers == ANSWERS


def test_tls_by_asyncio_itself() -> None:
    """A TLS server and client of asyncio's streams, certificates checked."""
    authority = trustme.CA(key_type=trustme.KeyType.RSA)
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("server", key_type=trustme.KeyType.RSA).configure_cert(serving)
    asking = ssl.create_default_context()
    authority.configure_trust(asking)

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await reader.readline()).upper())
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    async def server() -> None:
        async with await asyncio.start_server(echo, "", 443, ssl=serving) as listening:
            await listening.serve_forever()

    async def client() -> tuple[bytes, Any]:
        reader, writer = await asyncio.open_connection("server", 443, ssl=asking)
        writer.write(b"hello\n")
        await writer.drain()
        line = await reader.readline()
        version = writer.get_extra_info("ssl_object").version()
        writer.close()
        return line, version

    async def main(world: World) -> Any:
        world.host("server").start(aio.run, server)
        await trio.sleep(1)
        status = await world.host("client").start(aio.run, client).wait()
        if status.error is not None:
            raise status.error
        return status.value

    assert outcome_of(main, 0).unwrap() == (b"HELLO\n", "TLSv1.3")
