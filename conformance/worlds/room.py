"""The room on the disk of a unit of real processes, taken away and given back.

A disk that belongs to one unit only is not to be had on every machine; a limit on its processes is: with RLIMIT_FSIZE at
zero the system refuses every write to a file (EFBIG), and reads, pipes and sockets go on as before. A program that does not
ignore SIGXFSZ, as Python and Node do, dies of its first attempt, which is a stop.
"""

from __future__ import annotations

import contextlib
import resource
from typing import TYPE_CHECKING, Final

from simkit.errors import ExitCode, Problem, SimkitError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.processes import UnitProcess

#: Whether the limits of a running process can be changed here: on Linux.
CAN_BE_TAKEN: Final = hasattr(resource, "prlimit")
#: Starts a program that has no room from its first instruction on; the limit itself stays where it can be lifted again.
_WITHOUT: Final = ("sh", "-c", 'ulimit -S -f 0 && exec "$@"', "sh")


class Room:
    """The room of one unit, over all its processes: those that run, and those that are started while there is none."""

    def __init__(self) -> None:
        self.is_gone = False
        self._processes: list[UnitProcess] = []
        self._usual, self._most = resource.getrlimit(resource.RLIMIT_FSIZE)

    def command(self, command: Sequence[str]) -> Sequence[str]:
        """The command of a process that is started now."""
        return (*_WITHOUT, *command) if self.is_gone else command

    def belongs_to(self, process: UnitProcess) -> None:
        """From here on this process stands on the disk too."""
        self._processes.append(process)

    def take(self) -> None:
        """No process writes to a file any more. Raises SimkitError where one still may."""
        self.is_gone = True
        self._limit(0)

    def give_back(self) -> None:
        """All of them may write as before. Raises SimkitError where one still may not."""
        self.is_gone = False
        self._limit(self._usual)

    def _limit(self, soft: int) -> None:
        self._processes = [one for one in self._processes if one.alive]
        for process in self._processes:
            for pid in process.pids():
                with contextlib.suppress(ProcessLookupError):  # it has ended this instant, and writes no more
                    resource.prlimit(pid, resource.RLIMIT_FSIZE, (soft, self._most))
                    if resource.prlimit(pid, resource.RLIMIT_FSIZE)[0] != soft:
                        raise SimkitError(_missed(process, pid, soft))


def _missed(process: UnitProcess, pid: int, soft: int) -> Problem:
    return Problem(
        "room-missed",
        f"{process.name} (process {pid}) was to write files up to {soft} bytes, and has another limit",
        "process world",
        "the system to carry the limit out at once",
        "does the program set its own RLIMIT_FSIZE?",
        ExitCode.INTERNAL,
    )
