"""The command line: `simkit certify | run | replay | mutants | cases | verify | list | explain | doctor`.

    app           the commands (cyclopts)                 session   runs one command: events out, exit code back
    options       what several commands take              engine    the one door to the engine behind it, opened late
    usage         what people may type: seeds, targets, names; `mistyped` says what they meant
    streams       what a command was started with           interrupts   signals that ask it to end
    certificates  what `certify` and `verify` say         listing   `cases` and `list`
    explain       `explain`, by what is to be explained: `saved` cases, `stories`, `happenings`, the `vocabulary` of verdicts,
                  error `codes`, and by `relations` what belongs to an obligation: judge, mutants, stories, faults

Nothing heavy is imported before a command needs it: `--help`, `list obligations` and `explain` load no trio.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from conformance.cli import interrupts

if TYPE_CHECKING:
    from collections.abc import Sequence

_INTERRUPTED = 130  # `ExitCode.INTERRUPTED`, which is not loaded yet


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code. The console script hands it to `sys.exit`."""
    begun = False
    try:
        with interrupts.taken(interrupts.raises):
            from conformance.cli import app

            begun = True
            return app.main(argv)
    except KeyboardInterrupt:  # a command that has begun answers for it by itself
        if sys.stderr is not None:
            sys.stderr.write(
                "interrupted\n" if begun else "interrupted before anything was run: there is nothing to keep\n"
            )
        return _INTERRUPTED


__all__ = ["main"]
