"""A port for the engine of one run: nobody else gets it while the run lasts, and the engine alone listens on it.

To probe for a free port and let it go again is a race that two runs lose together: one's engine cannot start, and one's
worker talks to the other's engine, which looks as if a task had been forgotten. So the port lies outside the range from
which the system hands out ports by itself, and a UDP socket bound to the same number tells every other run, of this kit
or of another one on this machine, that it is taken.
"""

from __future__ import annotations

import contextlib
import random
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from simkit.errors import ExitCode, Problem, SimkitError

LOOPBACK: Final = "127.0.0.1"
TRIES_MAX: Final = 200
#: Ports from here up to where the system's own begin.
LOWEST: Final = 10_000
_HIGHEST = 65_535
#: With fewer than this many below them we take from all.
_FEW = 1_000
_SYSTEMS_OWN = Path("/proc/sys/net/ipv4/ip_local_port_range")


@contextlib.contextmanager
def reserved() -> Iterator[int]:
    """A port of the loopback, kept for the caller while the block runs."""
    choices = _choices()
    for _ in range(TRIES_MAX):
        port = random.SystemRandom().choice(choices)
        with contextlib.ExitStack() as stack:
            sign = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            try:
                sign.bind((LOOPBACK, port))
                _check_free(port)
            except OSError:
                continue
            yield port
            return
    raise SimkitError(
        Problem(
            "no-free-port",
            f"none of {TRIES_MAX} ports tried is free for the engine",
            f"{LOOPBACK}, ports {choices[0]} to {choices[-1]}",
            "a machine with ports to spare",
            "what listens on so many ports? Run fewer jobs at a time",
            ExitCode.INTERNAL,
        )
    )


def _check_free(port: int) -> None:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, port))


def _choices() -> Sequence[int]:
    """Ports the system gives to nobody who did not name one; where that is not known, a usual guess."""
    try:
        begin = int(_SYSTEMS_OWN.read_text(encoding="ascii").split()[0])
    except (OSError, ValueError, IndexError):
        begin = 32_768
    return range(LOWEST, begin) if begin - LOWEST >= _FEW else range(LOWEST, _HIGHEST + 1)
