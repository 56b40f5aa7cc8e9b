"""The device's own bound: a step is a block written into room that is there already, and synced. Nothing is recorded by it.

Whoever makes each step durable on its own, before the next one of its task begins, cannot be faster on this device; steps of
tasks side by side could share a sync, which this does not do.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tests.benchmarks.contestants.wire import Load, serve

PATH = Path(sys.argv[1]) / "bare.log"
#: What a step writes, and how much room there is; at its end writing begins anew.
BLOCK_BYTES, ROOM_BYTES = 4096, 4 * 1024 * 1024
SYNC = getattr(os, "fdatasync", os.fsync)


def main() -> None:
    with PATH.open("wb+", buffering=0) as file:
        file.write(bytes(ROOM_BYTES))
        os.fsync(file.fileno())
        at = 0

        def carry_out(load: Load) -> None:
            nonlocal at
            for _ in range(load.steps):
                os.pwrite(file.fileno(), bytes(BLOCK_BYTES), at)
                SYNC(file.fileno())
                at = (at + BLOCK_BYTES) % ROOM_BYTES

        serve({"version": "", "journal_mode": "none", "synchronous": "each step"}, carry_out)


if __name__ == "__main__":
    main()
