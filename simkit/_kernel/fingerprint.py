"""Whether the installed trio is one that the fast loop was written for, told by the digest of the files it relies on.

A file that differs in so much as a comment counts as another trio: then the fallback runs, which asks far less of trio's
internals, and a warning says so. After review, the new version's digest is added to `KNOWN`.
"""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

import trio

#: What the fast loop and its shortcuts copy or reach into.
FILES = (
    "_core/_run.py",
    "_core/_traps.py",
    "_core/_asyncgens.py",
    "_core/_entry_queue.py",
    "_core/_generated_run.py",
    "_core/_instrumentation.py",
    "_core/_local.py",
    "_core/_parking_lot.py",
    "_core/_run_context.py",
    "_highlevel_socket.py",
    "_socket.py",
    "_sync.py",
    "_threads.py",
    "_timeouts.py",
    "_util.py",
)
#: Reviewed versions of trio by digest.
KNOWN = {"603bfb9d2b0f6972faaa91c698a0c734": "0.35.0"}


class KernelFallbackWarning(RuntimeWarning):
    """The simulation runs on the slower kernel because this trio is not a reviewed one."""


@functools.cache
def fingerprint() -> str:
    """Digest of the installed trio's relevant files; empty when they cannot be read."""
    digest = hashlib.blake2b(digest_size=16)
    folder = Path(trio.__file__).parent
    try:
        for name in FILES:
            digest.update(name.encode() + b"\0" + folder.joinpath(name).read_bytes().replace(b"\r\n", b"\n"))
    except OSError:
        return ""
    return digest.hexdigest()


def is_known() -> bool:
    """Whether the fast loop may run on the installed trio."""
    return fingerprint() in KNOWN


#: Taken at import: a simulation may run where files cannot be read.
fingerprint()
