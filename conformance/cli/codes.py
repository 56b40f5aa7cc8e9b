"""What the kit's error codes and exit codes mean, for `explain`. Pure data; a test holds every code raised against it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from simkit.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Mapping


@attrs.frozen
class Code:
    """One error code: what it means, what usually causes it, what to do."""

    meaning: str
    causes: tuple[str, ...] = ()
    remedy: str = ""


EXITS: Mapping[ExitCode, str] = {
    ExitCode.PASSED: "everything required passed",
    ExitCode.VIOLATION: "a claimed obligation was violated, a case reproduced, or a known deviation is stale",
    ExitCode.USAGE: "the command line, a file it names or the store is not usable",
    ExitCode.INCONCLUSIVE: "nothing was violated, but something was not put to the test often enough or met a limit",
    ExitCode.TARGET: "the target could not be reached, or kit and adapter did not understand one another",
    ExitCode.NOTHING_SELECTED: "nothing was selected, so nothing was judged",
    ExitCode.DIVERGED: "a replay left the recorded path: the target or the kit is not deterministic",
    ExitCode.INTERNAL: "a bug in simkit",
    ExitCode.INTERRUPTED: "interrupted; what was judged until then is printed and kept",
}

_AGAIN = "Certify again; a certificate is never repaired by hand."
_STORE = (
    "Free space, mend permissions, or choose another place with --store DIR. What was judged is printed all the same."
)

CODES: Mapping[str, Code] = {
    "bug": Code("an exception nobody foresaw inside simkit", (), "Report it with the file the message names."),
    "case-ambiguous": Code("the beginning of an id fits several cases", (), "Type more of the id."),
    "case-missing": Code("there is no such case file", ("a typing error", "another folder"), "See `simkit cases`."),
    "case-unknown": Code(
        "no saved case has this id",
        ("it was saved in another store", "a typing error"),
        "See `simkit cases`, or give the case file's path.",
    ),
    "certificate-altered": Code("footer and content disagree", ("the file was edited", "a merge went wrong"), _AGAIN),
    "certificate-malformed": Code("a field is missing, unknown or of another type", ("the file was edited",), _AGAIN),
    "certificate-missing": Code("there is no such certificate", (), "They are kept in .simkit/certificates."),
    "certificate-schema": Code(
        "the certificate is of another schema", ("another version of simkit wrote it",), "Read it with that version."
    ),
    "certificate-truncated": Code("the file breaks off", ("an incomplete copy",), _AGAIN),
    "certificate-unfinished": Code("the certificate has no footer", ("an incomplete copy",), _AGAIN),
    "disk-full": Code("no space is left under the store", ("a full disk", "a quota"), _STORE),
    "explain-unknown": Code("nothing of this name can be explained", (), "See `simkit explain`."),
    "file-unusable": Code("the system refused to open, read or write a file", (), "The message names file and reason."),
    "folder-unwritable": Code("the store may not be written", ("a read-only file system", "another owner"), _STORE),
    "jobs-range": Code("--jobs is out of range", (), "Give a number from 1 to 256."),
    "journal-malformed": Code("a line of a run's journal is no event", ("the file was edited",), "Delete the journal."),
    "path-in-the-way": Code("a file is where a folder must go, or the reverse", (), "Move it, or choose another path."),
    "replay-what": Code("replay was given no run, or two", (), "Give a case, or -t and --scenario."),
    "seeds-malformed": Code("--seeds is not understood", (), "Write 7, 0-999 or 1,5,9."),
    "target-missing": Code("no target was named", (), "Name one: `simkit list --adapters`."),
    "target-twice": Code("two targets were named", (), "Give it once, as argument or by -t."),
    "usage": Code("the command line is not understood", (), "See `simkit --help`."),
}
