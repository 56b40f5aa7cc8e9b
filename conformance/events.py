"""The event stream: everything a campaign has to say, as frozen values. Engines emit it, reports only consume it.

    Installing* → CampaignBegan → (Installing | Progress)* → (RunFinished | ViolationFound)* → VerdictReached* → Certified? →
    CampaignEnded

`replay` says `Replayed`, `doctor` says `Checked`, `mutants` says `MutantJudged`, `list` and `cases` say `Listed`, or of an
obligation `ObligationListed`, `explain` says `Explained`; `RunShown` is a whole run as a table, `Noted` a sentence by the
way, and anything that goes wrong is `Trouble`.

`to_json` gives one JSON line's object, `from_json` reads it back. The schema that ships
beside this module (`schemas/event.schema.json`) is that shape.

`Certified` and `CampaignEnded` are said by the command line, which alone knows how a command ended; an engine says the
rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

import attrs
import cattrs

from conformance.files import LATER
from scenarios.verdict import Kind, Level, Outcome, Verdict
from simkit.errors import ExitCode, Problem

#: Named on every line, so that a line found alone says what it is.
SCHEMA = "simkit/event/1"

World = Literal["process", "simulated"]
#: `clean`: nothing was violated by a run of which no violation was expected. `stopped`: it was not to be run to its end.
Answer = Literal["reproduced", "fixed", "clean", "different", "diverged", "stopped", "inconclusive"]
#: "caught" is by its own obligation and nothing else.
Fate = Literal["caught", "caught by another", "survived"]


def _counts(values: Mapping[str, int]) -> dict[str, int]:
    return dict(values)


@attrs.frozen
class CampaignBegan:
    """A command is about to run `total` runs (None: not known yet) of `target`, with these drawn or given options."""

    target: str
    command: str
    world: World
    tier: str | None = None
    options: Mapping[str, Any] = attrs.field(factory=dict)
    total: int | None = None


@attrs.frozen
class Installing:
    """One line of news about making the target's environment."""

    text: str


@attrs.frozen
class Progress:
    """How far it is. For people only: never written to the journal, never on stdout."""

    done: int
    total: int | None = None
    note: str = ""
    unit: str = "runs"  # what is counted; each has a time of its own
    stopping: bool = False  # it has been asked to stop, so that nobody knows what is left


@attrs.frozen
class RunFinished:
    """One run was judged. `fired` are the labels of the interruptions that really took place."""

    scenario: str
    outcome: Outcome
    seed: int | None = None
    fired: tuple[str, ...] = ()
    case_id: str | None = None


@attrs.frozen
class Row:
    """One row of a space-time table: what happened at `at_ns` in one lane; `evidence` marks the rows that prove the
    violation.

    `index` is the event's position in the history; a row that stands for several left-out events has none.
    """

    at_ns: int
    lane: str
    text: str
    evidence: bool = False
    index: int | None = None


@attrs.frozen
class RunShown:
    """Everything that happened in one run, as asked for by `--show`; like answers to one question are one row."""

    scenario: str
    table: tuple[Row, ...]
    seed: int | None = None


@attrs.frozen
class ViolationFound:
    """A forbidden observation with everything a failure block shows.

    `claimed` is False for a promise the target does not make: shown as observed, failing nothing. `why` is the fault
    and the ordering around the proof; `where` a file and line in the target, when known; `kept` the folder with all that was
    seen of the run. The two replay lines are whole shell lines.
    """

    obligation: str
    anomaly: str
    sentence: str
    scenario: str
    seed: int | None = None
    case_id: str | None = None
    table: tuple[Row, ...] = ()
    replay_case: str = ""
    replay_seed: str = ""
    name: str = ""  # the obligation's name in words, e.g. "acknowledged task survives"
    why: str = ""
    where: str = ""
    claimed: bool = True
    kept: str = ""
    shrunk: str = ""  # how small the run was made in how many runs, where it was
    decides: str = ""  # what it fails with and not without, by runs that left one thing out


@attrs.frozen
class VerdictReached:
    """One obligation over the whole campaign."""

    verdict: Verdict
    name: str = ""
    level: Literal["MUST", "SHOULD"] = "MUST"
    profile: str = ""


@attrs.frozen
class Replayed:
    """What a replay answered. Simulated cases compare digests; process cases say how often they reproduced."""

    answer: Answer
    scenario: str
    case_id: str | None = None
    expected: str = ""  # obligation and anomaly of the case, e.g. "DUR-3 recomputed"
    got: str = ""
    recorded_digest: str | None = None
    digest: str | None = None
    times: int = 1  # runs in which it reproduced …
    of: int = 1  # … of this many
    at_event: int | None = None  # for "diverged": the first event that differs, recorded and replayed side by side
    recorded: str = ""
    replayed: str = ""
    since_event: int | None = None  # the first event that may differ, where it is only known to lie between the two
    altered: str = attrs.field(
        default="", metadata={LATER: True}
    )  # how the case is not what simkit wrote, if it is not
    reason: str = attrs.field(default="", metadata={LATER: True})  # for "inconclusive": why no run says anything
    beside: str = attrs.field(default="", metadata={LATER: True})  # what else was violated, which nobody claims


@attrs.frozen
class MutantJudged:
    """What became of one mutant. `runs` of it were made, up to the one that caught it or in vain, of which `unjudged` could
    not be judged; `others` are the obligations that blame it besides its own.
    """

    mutant: str
    obligation: str
    outcome: Fate
    scenario: str = ""  # the run that caught it
    seed: int | None = None
    runs: int = 0
    seconds: float = 0.0
    others: tuple[str, ...] = ()
    unjudged: int = 0


@attrs.frozen
class Checked:
    """One check of `doctor`. `exit_code` is what its failure means for the command."""

    name: str
    ok: bool
    detail: str = ""
    hint: str = ""
    exit_code: ExitCode = ExitCode.TARGET
    skipped: bool = False  # it could not be made: no failure, and told as loudly as one


@attrs.frozen
class Listed:
    """One row of `list` or `cases`."""

    kind: str
    id: str
    title: str = ""
    fields: Mapping[str, str] = attrs.field(factory=dict)


@attrs.frozen
class ObligationListed:
    """One row of `list obligations`: a promise of the catalogue and all that belongs to it.

    Without a judge yet, `judge` (module:function) and `minimum` are None. `scenarios` are the stories of the catalogue that
    exercise it, `learnt_from` the numbers of reported faults.
    """

    id: str
    level: Level
    kind: Kind
    group: str
    profile: str
    promise: str
    judge: str | None
    minimum: int | None
    anomalies: tuple[str, ...] = ()
    scenarios: tuple[str, ...] = ()
    mutants: tuple[str, ...] = ()
    causes: tuple[str, ...] = ()
    learnt_from: tuple[str, ...] = ()


@attrs.frozen
class Noted:
    """A sentence by the way: nothing went wrong."""

    text: str


@attrs.frozen
class Explained:
    """The answer of `explain`: titled sections in reading order."""

    kind: str
    id: str
    title: str
    sections: Mapping[str, str] = attrs.field(factory=dict)


@attrs.frozen
class Certified:
    """A certificate was made. `granted` are whole profiles; `refused` says of every other claimed one why not; `uncovered` says
    of a granted one which of its promises nothing in this world could put to the test.
    """

    subject: str
    digest: str
    path: str = ""  # empty when it could not be written
    granted: tuple[str, ...] = ()
    refused: Mapping[str, str] = attrs.field(factory=dict)
    mutants_caught: int = 0
    mutants_total: int = 0
    uncovered: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict, metadata={LATER: True})
    durability: str = attrs.field(default="", metadata={LATER: True})  # the class, as the certificate has it
    #: How many promises each of these profiles demands.
    demanded: Mapping[str, int] = attrs.field(factory=dict, metadata={LATER: True})


@attrs.frozen
class Trouble:
    """Something of the kit, its input or its target went wrong."""

    problem: Problem


@attrs.frozen
class CampaignEnded:
    """The last word of certify, run, replay, mutants and doctor. `counts` are those of `conformance.tally`."""

    counts: Mapping[str, int] = attrs.field(converter=_counts)
    seconds: float
    seeds_per_second: float
    exit_code: ExitCode
    reason: str = ""


Event: TypeAlias = (
    CampaignBegan
    | Installing
    | Progress
    | RunFinished
    | RunShown
    | ViolationFound
    | VerdictReached
    | Replayed
    | MutantJudged
    | Checked
    | Listed
    | ObligationListed
    | Noted
    | Explained
    | Certified
    | Trouble
    | CampaignEnded
)
Emit: TypeAlias = Callable[[Event], None]

KINDS: Mapping[str, type[Event]] = {
    cls.__name__: cls
    for cls in (
        CampaignBegan,
        Installing,
        Progress,
        RunFinished,
        RunShown,
        ViolationFound,
        VerdictReached,
        Replayed,
        MutantJudged,
        Checked,
        Listed,
        ObligationListed,
        Noted,
        Explained,
        Certified,
        Trouble,
        CampaignEnded,
    )
}

_CONVERTER = cattrs.Converter(forbid_extra_keys=True)


def to_json(event: Event) -> dict[str, Any]:
    """The JSON object of one line; field order is the declared one."""
    return {"schema": SCHEMA, "event": type(event).__name__, **_CONVERTER.unstructure(event)}


def from_json(data: Mapping[str, Any]) -> Event:
    """Read one line back. Raises KeyError for an unknown event and a cattrs error naming the field that is off."""
    fields = {key: value for key, value in data.items() if key not in {"schema", "event"}}
    event: Event = _CONVERTER.structure(fields, KINDS[data["event"]])
    return event


# ---- what an engine's functions return besides emitting


@attrs.frozen
class Summary:
    """The end of `run`: the exit code earned, with the reason in one sentence (empty: let the counts speak)."""

    exit_code: ExitCode
    reason: str = ""


@attrs.frozen
class DoctorResult:
    """All checks of `doctor`, in order."""

    checks: tuple[Checked, ...]
