"""The process's memory: what was freed is kept for what comes next.

A step of a task takes and frees some hundred kilobytes in one go: the pages of its commit, the small trees that SQLite makes
for a statement (a list of values, a RETURNING), the journal of a statement. As soon as 128 KB at the end of the heap are free,
the GNU C library hands them back to the system, and the next step has them mapped anew, page by page: 80 to 330 page faults a
step were counted, which is up to two thirds of a millisecond. So a process that serves a store keeps them.
"""

from __future__ import annotations

import ctypes

#: Parameters of `mallopt` (see its manual), and what they are set to: bytes at the end of the heap that are kept, bytes that it
#: grows by, and bytes from which on a piece is mapped by itself.
_KEPT = ((-1, 16 * 1024 * 1024), (-2, 1024 * 1024), (-3, 1024 * 1024))


def keep_freed() -> bool:
    """Have this process keep memory that was freed; False where its C library does not let anybody say so."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # another library; no library of that kind; Windows
        return False
    return all(mallopt(parameter, value) == 1 for parameter, value in _KEPT)
