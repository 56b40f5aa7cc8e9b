"""What the kit's error codes and exit codes mean, for `explain`. Pure data."""

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
    ExitCode.INTERNAL: "a bug in simkit, or a machine that could not do or give what a run needs: the message says which",
    ExitCode.INTERRUPTED: "interrupted; what was judged until then is printed and kept",
}

_AGAIN = "Certify again; a certificate is never repaired by hand."
_STORE = (
    "Free space, mend permissions, or choose another place with --store DIR. What was judged is printed all the same."
)

CODES: Mapping[str, Code] = {
    "adapter-cannot-load": Code(
        "the module by which an adapter is simulated cannot be imported",
        ("a typing error", "a package that this Python does not have"),
        "Run the file the message names with this interpreter.",
    ),
    "adapter-garbage": Code(
        "the adapter wrote something on the protocol's channel that is no line of the protocol",
        ("a print to standard output without the helper", "a log that goes to standard output"),
        "Serve through simkit_adapter, which keeps standard output for the protocol, or log to standard error.",
    ),
    "adapter-gone": Code(
        "the adapter closed its end of the channel",
        ("its process ended", "it closed standard output"),
        "The end of its standard error tells why; run the unit's command by hand.",
    ),
    "adapter-is-another": Code(
        "what the adapter says of itself is not what it was started for",
        ("another version of the harness is installed", "the manifest was not changed with the harness"),
        "Put right what the manifest names, or what hello answers; a certificate states what the manifest says.",
    ),
    "adapter-malformed": Code(
        "the manifest is malformed",
        ("an unknown key", "a value of another type"),
        "The message names every place; docs/contract.md, under The manifest, has every section and key.",
    ),
    "adapter-malformed-answer": Code(
        "an answer of the adapter has a field that is missing, unknown or of another type",
        ("another protocol version", "a status without a state"),
        "Compare the line in the message with the tables of docs/contract.md.",
    ),
    "adapter-not-found": Code(
        "there is no such adapter",
        ("a typing error", "a path relative to another folder"),
        "See `simkit list adapters`.",
    ),
    "adapter-protocol": Code(
        "the adapter speaks another version of the protocol",
        (),
        "Bring the adapter up to this kit's protocol, or use the kit it was written for.",
    ),
    "adapter-refused-hello": Code(
        "the adapter answered hello with an error",
        ("it speaks another version of the protocol", "its harness cannot be set up"),
        "The message repeats what it said.",
    ),
    "adapter-silent": Code(
        "the adapter did not answer in time",
        ("it waits inside a verb instead of answering", "its output is not flushed", "it is still booting"),
        "Answer at once and work in the background; raise boot_ms in the manifest if booting is slow.",
    ),
    "adapter-unreadable": Code("the manifest cannot be read", (), "The message names file and reason."),
    "bad-departure": Code(
        "a choice recorded in a case is not one", ("the file was edited",), "Find the case again from its seed."
    ),
    "bad-request": Code(
        "a hosted service was sent a request it cannot read: the adapter's fault, never counted against the harness",
        ("a field missing or of another type", "a service that does not exist"),
        "The message names the field; `simkit_adapter.call` writes requests of the right shape.",
    ),
    "bug": Code("an exception nobody foresaw inside simkit", (), "Report it with the file the message names."),
    "cache-full": Code(
        "no space is left where environments are made",
        ("a full disk",),
        "Free space, or choose another folder with SIMKIT_CACHE.",
    ),
    "cache-unusable": Code(
        "the folder of environments cannot be written",
        ("a read-only file system", "another owner"),
        "Choose another folder with SIMKIT_CACHE.",
    ),
    "cannot-listen": Code(
        "the system gave the hosted services no port on loopback",
        ("no loopback in this network namespace", "no file descriptor left"),
        "Mend the machine's network, or run fewer jobs.",
    ),
    "case-ambiguous": Code("the beginning of an id fits several cases", (), "Type more of the id."),
    "case-malformed": Code(
        "a case file is cut short or has a field that is off",
        ("an incomplete copy", "the file was edited"),
        "Find the case again from its seed.",
    ),
    "case-missing": Code("there is no such case file", ("a typing error", "another folder"), "See `simkit cases`."),
    "case-of-a-test": Code(
        "the case is of a test, not of a target", (), "Replay it with pytest: the message has the line."
    ),
    "case-unknown": Code(
        "no saved case has this id",
        ("it was saved in another store", "a typing error"),
        "See `simkit cases`, or give the case file's path.",
    ),
    "case-unreadable": Code("a case file cannot be read", (), "The message names file and reason."),
    "case-version": Code(
        "the case is of another schema",
        ("another version of simkit wrote it",),
        "Replay it with that version, or find it again from its seed.",
    ),
    "certificate-altered": Code("footer and content disagree", ("the file was edited", "a merge went wrong"), _AGAIN),
    "certificate-inconsistent": Code(
        "what a certificate states cannot all be true: rows, claims, profiles or counts contradict one another",
        ("the file was edited, and its digest made anew", "a program other than simkit wrote it"),
        _AGAIN,
    ),
    "certificate-malformed": Code("a field is missing, unknown or of another type", ("the file was edited",), _AGAIN),
    "certificate-missing": Code("there is no such certificate", (), "They are kept in .simkit/certificates."),
    "certificate-schema": Code(
        "the certificate is of another schema", ("another version of simkit wrote it",), "Read it with that version."
    ),
    "certificate-truncated": Code("the file breaks off", ("an incomplete copy",), _AGAIN),
    "certificate-unfinished": Code("the certificate has no footer", ("an incomplete copy",), _AGAIN),
    "clock-stepped": Code(
        "the wall clock of the machine was set while a run went on; nothing is judged by it",
        ("a time service that steps the clock", "a machine that was suspended or moved"),
        "Run again once the clock is right.",
    ),
    "configuration-twice": Code("two configurations were named", (), "Give it once: behind the colon or by --config."),
    "configuration-unknown": Code(
        "the adapter has no such configuration", ("a typing error",), "See `simkit list adapters`."
    ),
    "deadlock": Code(
        "nothing in the simulation can go on, and no timer is set",
        ("tasks wait for one another", "an event nobody sets"),
        "The message lists who waits where.",
    ),
    "disk-full": Code("no space is left under the store", ("a full disk", "a quota"), _STORE),
    "event-unknown": Code(
        "a replay has no event of this number",
        ("a number of another run", "an event of the trace before the code was changed"),
        "`simkit replay CASE --trace -` lists the events; the message says how many there are.",
    ),
    "explain-unknown": Code("nothing of this name can be explained", (), "See `simkit explain`."),
    "file-unusable": Code("the system refused to open, read or write a file", (), "The message names file and reason."),
    "folder-gone": Code("the current folder has been removed", (), "Change to a folder that exists."),
    "folder-unwritable": Code("the store may not be written", ("a read-only file system", "another owner"), _STORE),
    "group-unknown": Code("there is no such group to list", ("a typing error",), "`simkit list` shows the groups."),
    "install-failed": Code(
        "the target's environment could not be made",
        ("a build that needs a compiler",),
        "The message ends with the installer's own words.",
    ),
    "install-no-network": Code(
        "the target is not installed yet and no package registry answers",
        ("no network", "a proxy that is not set"),
        "Connect once; afterwards everything works offline.",
    ),
    "install-no-version": Code(
        "the package registry has no such release", ("a typing error",), "Name a released version."
    ),
    "job-lost": Code(
        "a process that ran seeds was ended from outside",
        ("the system ran out of memory", "somebody killed it"),
        "Run fewer jobs; what was judged before is kept.",
    ),
    "jobs-range": Code("--jobs is out of range", (), "Give a number from 1 to 256."),
    "journal-malformed": Code("a line of a run's journal is no event", ("the file was edited",), "Delete the journal."),
    "jump-missed": Code(
        "a unit's clock was set, and the unit has not looked at it since",
        ("`clock = true` for a unit that goes by another clock", "a unit that never looks again"),
        "Leave `clock = true` away where the wall clock decides nothing.",
    ),
    "kill-missed": Code(
        "a kill was sent, and the process ended of something else at that instant; nothing is judged by it",
        ("a harness that ends itself",),
        "Run again; if it stays, read the end of its standard error.",
    ),
    "kill-survived": Code(
        "a process of the target outlived SIGKILL for ten seconds",
        ("a process stuck in the kernel (state D)", "an overloaded machine"),
        "Look at the processes the message names.",
    ),
    "leave-unheard": Code(
        "a worker that its manifest says can be asked to leave died of SIGTERM",
        ("SIGTERM is not handled in the adapter", "`leave` stands under [verbs] supported by mistake"),
        "Handle SIGTERM: end what has begun, hand back the rest, exit. Or take `leave` out of the manifest.",
    ),
    "list-unknown": Code(
        "nothing in the groups that were named is called so",
        ("a typing error", "another group's name"),
        "`simkit list GROUP` shows all of a group; what one belongs to, parts of names and globs choose among them.",
    ),
    "machine-short": Code(
        "the machine had no room, no process or no descriptor left; what ran then is not judged",
        ("a full disk, mostly where temporary files are", "a limit on processes or open files", "too many jobs"),
        "Free space, choose another place with TMPDIR, raise the limits (ulimit -a), or run fewer jobs.",
    ),
    "mutant-seeds-range": Code(
        "the number of drawn seeds for each mutant is out of range", (), "Give --seeds a number from 0."
    ),
    "mutant-target": Code(
        "a mutant was asked of a target or a command that has none",
        ("mutants are of the reference runtime, in simulation",),
        "Use -t reference; `simkit explain MUTANT` has the line that shows it.",
    ),
    "mutant-unknown": Code("there is no such mutant", ("a typing error",), "See `simkit list mutants`."),
    "never-calls": Code(
        "the first run, which nothing disturbed, was acknowledged and never called a service",
        (
            "an exception in the thread or task of the adapter that works",
            "work that nobody takes up",
            "the wrong address",
        ),
        "The message repeats the worker's last words, and the hint names its logs; `simkit doctor -t` shows the same sooner.",
    ),
    "no-free-port": Code(
        "no port on loopback is free for the engine",
        ("too many jobs", "another program that listens on very many ports"),
        "Run fewer jobs at a time.",
    ),
    "no-terminal": Code(
        "the debugger was asked for, and nobody could type into it",
        ("standard input is a pipe or a file", "a job of a CI"),
        "Use --until or --trace there, or name a debugger of your own with PYTHONBREAKPOINT.",
    ),
    "not-a-certificate": Code(
        "a file that was named as a certificate is none",
        ("a glob that matches other files too", "a copy that came to nothing"),
        "`simkit certify` writes certificates into .simkit/certificates unless --out says otherwise.",
    ),
    "not-in-process-world": Code(
        "an interruption of the simulated world was asked of real processes",
        ("a power loss", "a storage boundary"),
        "Run it in simulation: `simkit run`.",
    ),
    "output-lost": Code(
        "standard output could not be written",
        ("a full disk that it was redirected to",),
        "Send it elsewhere; the journal in the store has every event.",
    ),
    "path-in-the-way": Code("a file is where a folder must go, or the reverse", (), "Move it, or choose another path."),
    "pause-missed": Code(
        "a process of the target was not stopped ten seconds after SIGSTOP",
        ("an overloaded machine",),
        "Run fewer jobs.",
    ),
    "port-in-use": Code(
        "somebody else listens on the port the services were told to take",
        ("another run",),
        "Leave the choice of the port to the kit.",
    ),
    "pythons-not-installed": Code(
        "simkit is not installed where it runs, so that nobody knows what other Pythons would need",
        ("it is run from a copy of its source",),
        "Install it: `make setup`, or `pip install simkit`.",
    ),
    "real-io": Code(
        "simulated code asked for a real file or socket",
        ("a library that opens its own",),
        "Use trio's own streams and the simulated disk.",
    ),
    "refused": Code(
        "simulated code did something the simulation cannot repeat",
        ("real files, sockets, subprocesses or threads",),
        "The message names file and line.",
    ),
    "replay-diverged": Code(
        "a replay left the recorded path",
        ("the code under test changed", "something in it is not deterministic"),
        "Run `simkit doctor -t TARGET`; if it is well, the code changed since the case was saved.",
    ),
    "replay-not-simulated": Code(
        "something was asked of a replay that only a simulated run has: numbered events",
        ("a case of real processes", "--scenario"),
        "Leave --until, --break and --trace away, or find the failure with `simkit run` first.",
    ),
    "replay-unsteady": Code(
        "two replays of one case, one after the other, were not the same run",
        ("something in the target is not deterministic",),
        "`simkit doctor -t TARGET` tells what.",
    ),
    "replay-what": Code(
        "replay was given no run, or two, or two places to stop", (), "Give a case, or -t and --scenario; one place."
    ),
    "requirements-unknown": Code(
        "there is no requirement set of this name", ("a typing error",), "Leave --requirements out for the current one."
    ),
    "resume-missed": Code(
        "a process of the target did not go on ten seconds after SIGCONT", ("an overloaded machine",), "Run fewer jobs."
    ),
    "room-missed": Code(
        "a unit's processes could not be kept from writing, or not be let write again",
        ("a program that sets its own limit on the size of files",),
        "The message names the process.",
    ),
    "scenario-impossible": Code(
        "a scenario asks for what this target, or this world, cannot do",
        ("an action of the simulated world for real processes", "an operation that the manifest does not name"),
        "The message says what of it; `simkit list scenarios` names others.",
    ),
    "scenario-malformed": Code(
        "the scenario inside a case cannot be read",
        ("the file was edited", "another version of simkit wrote it"),
        "Find the case again from its seed.",
    ),
    "scenario-unknown": Code("no scenario has this name", ("a typing error",), "See `simkit list scenarios`."),
    "seeds-malformed": Code("--seeds is not understood", (), "Write 7, 0-999 or 1,5,9."),
    "shrink-range": Code(
        "the bounds of a shrink are out of range", (), "Give --shrink-runs from 0 and --shrink-seconds from 0."
    ),
    "simulation-bound": Code(
        "a simulated run met its limit of steps or of virtual time",
        ("a loop that never waits", "a target that never settles"),
        "It counts as inconclusive; replay it to see where it spins.",
    ),
    "source-missing": Code(
        "the manifest names sources of which there is no file",
        ("a typing error", "paths are from the adapter's folder"),
        "Correct install.sources, or leave it out.",
    ),
    "start-fails": Code(
        "the adapter answered every start with an error, though nothing disturbed it",
        ("an exception in the adapter's `start`", "a harness that the adapter cannot reach"),
        "The message repeats the last error and the worker's last words; run the unit by hand and ask it `start`.",
    ),
    "start-refused": Code(
        "the adapter definitely refused to start the first run it was asked for, so nothing can be judged",
        ("a plan it cannot interpret", "a state folder it cannot use", "a class without a method `start`"),
        "Name under [operations] only what the adapter can interpret; the message repeats what it said.",
    ),
    "status-fails": Code(
        "the adapter answered every status with an error, long after the last disturbance",
        ("an exception in the adapter's `status`", "a store of the harness that the adapter cannot read"),
        "The message repeats the last error and the worker's last words; run the unit by hand and ask it `status`.",
    ),
    "stray-call": Code(
        "a service was called for a run or an operation that is not of the plan: the adapter's fault",
        ("an id made up by the adapter", "state of another run"),
        "Call for the run of `start`, by the ids of the plan; `simkit_adapter.call` does.",
    ),
    "sweep-range": Code("the budget of a sweep is out of range", (), "Give --sweep-budget from 0 to 1000000."),
    "target-changed": Code(
        "files of the adapter changed while it was certified, so that its runs were not all of one target",
        (
            "somebody edited it",
            "the harness or a pipe (`| tee`) writes to a file that was in the adapter's folder before",
        ),
        "Certify again; what a harness writes belongs in SIMKIT_STATE, and other people's reports outside the folder.",
    ),
    "target-missing": Code("no target was named", (), "Name one: `simkit list adapters`."),
    "target-twice": Code("two targets were named", (), "Give it once, as argument or by -t."),
    "target-unsupported": Code(
        "a target of this kind cannot be tested", (), "Name an adapter, name==version, or the path of an adapter.toml."
    ),
    "target-version": Code("this adapter has no versions to choose from", (), "Leave the version out."),
    "too-many-connections": Code(
        "a worker met the kit's limit of connections to the services; what it did after that is not judged",
        ("connections that are never closed", "hundreds of calls at the same time"),
        "Close connections that are no longer used; the message names the limit.",
    ),
    "trace-lost": Code(
        "a trace could not be written to its end",
        ("a full disk", "a reader that went away"),
        "Send it elsewhere; the replay itself was not disturbed.",
    ),
    "usage": Code("the command line is not understood", (), "See `simkit --help`."),
    "worker-cannot-start": Code(
        "the command of a unit cannot be run",
        ("no such program", "no right to run it", "no such folder"),
        "The command stands in the manifest, adapter.toml, under the unit's name.",
    ),
    "worker-died": Code(
        "a process of the target had ended by itself when it was to be killed or paused",
        ("a crash of its own", "an exit of its own"),
        "The message shows the end of its standard error.",
    ),
    "worker-died-at-start": Code(
        "a process of the target ended before it answered its first question",
        ("a missing module", "a state folder it cannot use", "a syntax error in the adapter"),
        "The message shows the end of its standard error.",
    ),
    "worker-keeps-dying": Code(
        "a process of the target ended by itself again and again",
        ("it fails at start", "its state folder is not usable", "a poison task"),
        "The message shows the end of its standard error.",
    ),
    "wrong-result": Code(
        "the result that the adapter shows has ids that are not of the plan, or lacks what it was answered undisturbed",
        ("names of the harness's own in place of the plan's ids", "waits left out of the result"),
        "Show every call and every wait by its id in the plan, with the nonce that was accepted for it.",
    ),
    "wrong-wait": Code(
        "a status shows the run waiting on something that is no signal of its plan",
        ("the wait's id in the place of its signal's name",),
        "Answer `on` with the signal's name, or leave it out while a timer runs.",
    ),
}
