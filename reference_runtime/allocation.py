"""SQLite's own memory: small pieces come out of room that each connection has, and nobody counts the rest.

To prepare a statement takes hundreds of small pieces, each of which SQLite asks the C library for, under a lock, and counts. It
keeps no more than fifty kilobytes of room by the connection, and what it counts nobody here asks for. This can only be said
before SQLite is used at all, and it is the whole process's: a program that has loaded it before us keeps what it has.
"""

from __future__ import annotations

import sys

#: The room of a connection: bytes of a piece, and how many such pieces.
_PIECE_BYTES, _PIECES = 1200, 200


def settle() -> bool:
    """Set SQLite up, once for this process; False, and nothing is changed, where apsw is loaded already."""
    if "apsw" in sys.modules:
        return False
    import apsw

    apsw.shutdown()  # nothing has been opened yet
    apsw.config(apsw.SQLITE_CONFIG_MEMSTATUS, False)
    apsw.config(apsw.SQLITE_CONFIG_LOOKASIDE, _PIECE_BYTES, _PIECES)
    apsw.initialize()
    return True


IS_SETTLED = settle()
