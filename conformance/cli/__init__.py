"""The command line: `simkit certify | run | replay | mutants | cases | verify | list | explain | doctor`.

    app           the commands (cyclopts)                 session   runs one command: events out, exit code back
    options       what several commands take              engine    the one door to the engine behind it, opened late
    usage         what people may type: seeds, targets, names; `mistyped` says what they meant
    streams       what a command was started with
    certificates  what `certify` and `verify` say         listing   `cases` and `list`
    explain       `explain`, by what is to be explained: `saved` cases, `stories`, `happenings`, the `vocabulary` of verdicts,
                  error `codes`, and by `relations` what belongs to an obligation: judge, mutants, stories, faults

Nothing heavy is imported before a command needs it: `--help`, `list obligations` and `explain` load no trio.
"""

from __future__ import annotations

from conformance.cli.app import main

__all__ = ["main"]
