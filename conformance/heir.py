"""The heir: a small process that ends whatever a kit has left behind that was killed and could not do so itself.

    appoint(estate)   have one wait for the end of this process; what it is to end then has `<estate>.` at the beginning of its
                      token, see `conformance.members`

A unit that is left running would hold its port and its files, and one day call a service of another run, which has been given
the port of its own. The heir reads from a pipe that nobody else holds open: it ends when this process does, however it does.
Where the system does not show processes there is none. Run as a program it imports nothing but the standard library.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

VARIABLE = b"SIMKIT_UNIT"
#: How long it goes on looking: a process may have been about to begin.
LOOKS = 20
LOOK_S = 0.05


def appoint(estate: str) -> int | None:
    """Start it. Returns the end of the pipe that this process must keep open, or None where no pipe or process is to be had:
    then all is as it would be without.
    """
    try:
        mine, ours = os.pipe()  # neither is inherited, but by the heir as its standard input
    except OSError:
        return None
    actions = [
        (os.POSIX_SPAWN_DUP2, mine, 0),
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
    ]
    try:
        os.posix_spawn(
            sys.executable, [sys.executable, "-I", "-S", __file__, estate], {}, file_actions=actions, setsid=True
        )
    except (OSError, NotImplementedError):
        os.close(ours)
        return None
    finally:
        os.close(mine)
    return ours


def _inherit(estate: str) -> None:
    while os.read(0, 1):
        pass
    mark = b"%s=%s." % (VARIABLE, estate.encode())
    for _ in range(LOOKS):
        for folder in Path("/proc").iterdir():
            with suppress(OSError, ValueError):
                number = int(folder.name)
                if any(word.startswith(mark) for word in (folder / "environ").read_bytes().split(b"\0")):
                    os.kill(number, signal.SIGKILL)
        time.sleep(LOOK_S)


if __name__ == "__main__":
    _inherit(sys.argv[1])
