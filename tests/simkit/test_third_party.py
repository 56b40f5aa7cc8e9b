"""Released libraries run unchanged in a simulation: httpx as a client of h11, and TLS by trio's SSLStream.

What TLS puts on the wire is not the seed's: OpenSSL draws its keys from the system. Times and order are; sizes are too,
and with them the trace, when the certificate's signatures have one length: RSA's have, those of elliptic curves (DER) vary
by a byte or two from run to run.
"""

from __future__ import annotations

import functools
import ssl
from typing import Any

import pytest
import trio

from simkit.tape import Tape
from simkit.world import World, run
from tests.simkit.rig import outcome_of

h11 = pytest.importorskip("h11")
httpx = pytest.importorskip("httpx", reason="NOT TESTED: httpx is not installed; it belongs to the group `test`")
trustme = pytest.importorskip("trustme", reason="NOT TESTED: trustme is not installed; it belongs to the group `test`")

_READ_BYTES = 65536


async def _answer(stream: trio.abc.Stream) -> None:
    """An HTTP/1.1 server in the way of h11's manual, for one connection."""
    connection = h11.Connection(h11.SERVER)
    target = b""
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(await stream.receive_some(_READ_BYTES))
        elif isinstance(event, h11.Request):
            target = event.target
        elif isinstance(event, h11.EndOfMessage):
            body = b"you asked for " + target
            head = h11.Response(status_code=200, headers=[("content-length", str(len(body)))])
            for part in (head, h11.Data(data=body), h11.EndOfMessage()):
                await stream.send_all(connection.send(part))
            connection.start_next_cycle()
        else:
            return


async def _fetch(url: str, verify: Any = True) -> list[Any]:
    async with httpx.AsyncClient(verify=verify) as client:
        answers = [await client.get(f"{url}/{number}") for number in range(3)]
        return [(answer.status_code, answer.text) for answer in answers]


EXPECTED = [(200, f"you asked for /{number}") for number in range(3)]


async def _plain(world: World) -> tuple[list[Any], bool]:
    world.host("server").start(trio.serve_tcp, _answer, 80)
    status = await world.host("client").start(_fetch, "http://server").wait()
    if status.error is not None:
        raise status.error
    return status.value, world.now_ns > 0


@pytest.mark.slow
def test_httpx_talks_to_an_h11_server() -> None:
    """httpx on trio fetches over the simulated network, unchanged; equal seeds give equal traces, on both kernels."""
    first, again = outcome_of(_plain, 3), run(_plain, tape=Tape.from_seed(3), kernel="fallback")
    assert first.unwrap() == (EXPECTED, True)
    assert first.digest == again.digest


@pytest.mark.slow
def test_a_server_that_dies_is_a_connection_error() -> None:
    """What httpx makes of a reset in the simulation is what it makes of one in earnest."""

    async def dying(stream: trio.abc.Stream) -> None:
        await stream.receive_some(_READ_BYTES)
        await trio.sleep_forever()

    async def main(world: World) -> object:
        server = world.host("server").start(trio.serve_tcp, dying, 80)
        client = world.host("client").start(_fetch, "http://server")
        await trio.sleep(1)
        server.kill()
        return (await client.wait()).error

    assert isinstance(outcome_of(main).unwrap(), httpx.NetworkError | httpx.RemoteProtocolError)


def _contexts() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A server's and a client's; made outside, as certificates are files of the machine."""
    kind = trustme.KeyType.RSA  # whose signatures are all of one length
    authority = trustme.CA(key_type=kind)
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("server", key_type=kind).configure_cert(server)
    client = ssl.create_default_context()
    authority.configure_trust(client)
    return server, client


async def _tls(server: ssl.SSLContext, client: ssl.SSLContext, world: World) -> list[Any]:
    async def echo(stream: trio.SSLStream[trio.SocketStream]) -> None:
        async for data in stream:
            await stream.send_all(data.upper())
        await stream.aclose()

    async def ask() -> list[Any]:
        stream = await trio.open_ssl_over_tcp_stream("server", 443, ssl_context=client)
        answers = []
        for word in (b"one", b"two"):
            await stream.send_all(word)
            answers.append(await stream.receive_some(100))
        await stream.aclose()
        return [*answers, world.now_ns]

    world.host("server").start(functools.partial(trio.serve_ssl_over_tcp, echo, 443, server))
    status = await world.host("client").start(ask).wait()
    if status.error is not None:
        raise status.error
    return status.value


@pytest.mark.slow
def test_tls_runs_over_the_simulated_network() -> None:
    """trio.SSLStream shakes hands, carries data and closes; with keys of their own, all runs of a seed have one trace."""
    contexts = _contexts()
    outcomes = [outcome_of(functools.partial(_tls, *contexts), 5) for _ in range(8)]
    assert outcomes[0].unwrap()[:2] == [b"ONE", b"TWO"]
    assert len({(str(outcome.value), outcome.digest) for outcome in outcomes}) == 1


@pytest.mark.slow
def test_a_certificate_of_somebody_else_is_refused() -> None:
    """A handshake with an authority that the client does not know fails as it does in earnest."""
    server, _ = _contexts()
    _, client = _contexts()
    outcome = outcome_of(functools.partial(_tls, server, client))
    assert isinstance(outcome.error, trio.BrokenResourceError)
    assert isinstance(outcome.error.__cause__, ssl.SSLCertVerificationError)


@pytest.mark.slow
def test_httpx_over_tls() -> None:
    """https is no different: httpx with the authority's context fetches from an h11 server behind SSLStream."""
    server, client = _contexts()

    async def main(world: World) -> Any:
        world.host("server").start(functools.partial(trio.serve_ssl_over_tcp, _answer, 443, server))
        status = await world.host("client").start(_fetch, "https://server", client).wait()
        if status.error is not None:
            raise status.error
        return status.value

    assert outcome_of(main).unwrap() == EXPECTED
