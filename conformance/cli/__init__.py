"""The command line: `simkit certify | run | replay | cases | list | explain | doctor`.

    app       the commands and their options (cyclopts)       session   runs one command: events out, exit code back
    usage     what people may type: seeds, targets, names     engine    the one door to the engine behind it, opened late
    streams   what a command was started with
    listing   `cases` and `list`                              explain   `explain`

Nothing heavy is imported before a command needs it: `--help`, `list --obligations` and `explain` load no trio.
"""

from __future__ import annotations

from conformance.cli.app import main

__all__ = ["main"]
