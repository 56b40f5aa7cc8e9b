"""Programs of threads, unchanged, in a simulated world: `await simkit.threaded.run(main)` in a process.

`threading` with its locks, conditions and events, `queue` and `concurrent.futures` run as they are, on locks of ours: one
thread at a time, and which one goes on when is drawn from the tape. Whoever takes a lock, waits or sleeps gives way to
others. A kill unwinds nothing while the world lasts.

The map: `running` starts a program, `locks` are what its threads wait for, `starting` makes threads, `stand_ins` puts both
where the standard library looks for them.
"""

from __future__ import annotations

from simkit.threaded.running import in_trio, run

__all__ = ["in_trio", "run"]
