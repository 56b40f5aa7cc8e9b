"""asyncio programs, unchanged, in a simulated world: `await simkit.aio.run(main)` stands where `asyncio.run(main())` stood.

The event loop is the kernel's: each step of an asyncio task is a step that a strategy may choose, timers are the world's,
streams and datagrams go over its network, `asyncio.to_thread` over its threads. A kill unwinds nothing.

The map: `loop` is the event loop, `lanes` how its callbacks become steps, `futures` its tasks and futures, `ordering` their
order in sets, `transports`, `servers`, `datagrams` the network, `running` starts a program and winds it up.
"""

from __future__ import annotations

from simkit.aio.loop import SimulatedLoop
from simkit.aio.running import in_trio, run

__all__ = ["SimulatedLoop", "in_trio", "run"]
