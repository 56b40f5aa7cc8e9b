"""The standard streams and the current folder, as a command can rely on them, whatever it was started with.

A stream that is closed becomes the null device, so that no file is opened in its place; what an encoding cannot write is
written escaped.
"""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

from simkit.errors import Problem, SimkitError


def settle() -> None:
    """Make all three streams usable."""
    if None in (sys.stdin, sys.stdout, sys.stderr):
        while (number := os.open(os.devnull, os.O_RDWR)) <= 2:  # takes the lowest free one
            pass
        os.close(number)
        sys.stdin = sys.stdin or open(0, encoding="utf-8")  # noqa: SIM115 - open as long as the process
        sys.stdout = sys.stdout or open(1, "w", encoding="utf-8")  # noqa: SIM115
        sys.stderr = sys.stderr or open(2, "w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def check_folder() -> None:
    """Raises SimkitError when the current folder has been removed, and every relative path with it."""
    try:
        Path.cwd()
    except OSError as error:
        what = f"the current folder cannot be used: {error.strerror}"
        raise SimkitError(
            Problem("folder-gone", what, "current folder", "a folder that exists", "change to one that does")
        ) from error
