"""How SQLite gets its memory is said before anything else of it is used, and never behind the back of who uses it already."""

from __future__ import annotations

import subprocess
import sys

LOOKS = "print(IS_SETTLED, apsw.status(apsw.SQLITE_STATUS_MEMORY_USED)[0] == 0, db.execute('SELECT 1').get)"


def said_by(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()


def test_whoever_loads_the_runtime_first_has_nothing_counted() -> None:
    """SQLite is set up before its first use: it counts no memory."""
    program = f"from reference_runtime import IS_SETTLED\nimport apsw\ndb = apsw.Connection(':memory:')\n{LOOKS}"
    assert said_by(program) == "True True 1"


def test_who_has_a_connection_already_keeps_it() -> None:
    """A program that uses SQLite already is left as it is, and the runtime works all the same."""
    program = f"import apsw\ndb = apsw.Connection(':memory:')\nfrom reference_runtime import IS_SETTLED\n{LOOKS}"
    assert said_by(program) == "False False 1"
