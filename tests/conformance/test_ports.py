"""The engine's port: kept from everybody else while its run lasts, free for the engine, given back afterwards."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from conformance import ports
from simkit.errors import SimkitError


def test_the_engine_can_listen_on_it_again_and_again() -> None:
    """The reservation does not stand in its way, also when it does not ask to reuse the address."""
    with ports.reserved() as port:
        for _ in range(2):
            with socket.create_server((ports.LOOPBACK, port), reuse_port=False):
                pass


def test_two_runs_never_get_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though one of them has not begun to listen yet; the next run may have it when the first is over."""
    with ports.reserved() as port:
        pass
    monkeypatch.setattr(ports, "_choices", lambda: [port])
    with ports.reserved() as first:
        assert first == port
        with pytest.raises(SimkitError, match="no-free-port"), ports.reserved():
            pass
    with ports.reserved() as again:
        assert again == port


def test_a_port_that_somebody_listens_on_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody was asked to keep clear of it."""
    with socket.create_server((ports.LOOPBACK, 0)) as server:
        taken = server.getsockname()[1]
        monkeypatch.setattr(ports, "_choices", lambda: [taken])
        with pytest.raises(SimkitError, match="no-free-port"), ports.reserved():
            pass


@pytest.mark.parametrize(
    ("told", "choices"),
    [
        ("32768\t60999\n", range(10_000, 32_768)),
        ("10100\t60999\n", range(10_000, 65_536)),
        ("nonsense", range(10_000, 32_768)),
        (None, range(10_000, 32_768)),
    ],
)
def test_it_lies_outside_what_the_system_hands_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: str | None, choices: range
) -> None:
    """An outgoing connection of anybody gets none of these; where there are hardly any, all will do."""
    file = tmp_path / "range"
    if told is not None:
        file.write_text(told, encoding="ascii")
    monkeypatch.setattr(ports, "_SYSTEMS_OWN", file)
    assert ports._choices() == choices
