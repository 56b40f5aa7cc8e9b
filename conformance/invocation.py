"""How simkit was called, so that a line it prints can be pasted where it was printed.

`program()` is the first word of such a line: plain `simkit` when that is what a shell finds here, else the path it was
called by, as short as it can be said from the current folder.
"""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path

NAME = "simkit"


def program() -> str:
    """The word to call this program by, from the current folder."""
    called = Path(sys.argv[0]) if sys.argv and sys.argv[0] else Path(NAME)
    if called.name != NAME or not called.is_file():  # inside another program, such as a test runner
        return NAME
    found = shutil.which(NAME)
    if found is not None and Path(found).samefile(called):
        return NAME
    here = Path.cwd()
    return str(called.relative_to(here)) if called.is_relative_to(here) else str(called)


def line(*words: str) -> str:
    """A whole shell line that calls this program."""
    return shlex.join([program(), *words])
