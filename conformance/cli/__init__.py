"""The command line: `simkit certify | run | replay | mutants | cases | list | explain | doctor`.

    app       the commands (cyclopts)                         session   runs one command: events out, exit code back
    options   what several commands take
    usage     what people may type: seeds, targets, names     engine    the one door to the engine behind it, opened late
    streams   what a command was started with
    listing   `cases` and `list`                              explain   `explain`
    saved     what is known of a saved case
    relations what belongs to an obligation: judge, mutants, stories, faults

Nothing heavy is imported before a command needs it: `--help`, `list obligations` and `explain` load no trio.
"""

from __future__ import annotations

from conformance.cli.app import main

__all__ = ["main"]
