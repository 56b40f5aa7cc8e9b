"""The words of the reports for people, as pure functions of events: one place, so that all formats say the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance import events as e
from conformance import invocation

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from conformance.tally import Tally
    from scenarios.verdict import Outcome

#: Events that print nothing of their own: they are counted, and told at the end.
SILENT = (e.RunFinished, e.VerdictReached)
#: Titles of the verdict table's columns.
COLUMNS = ("obligation", "verdict", "exercised", "anomalies / observed")
#: The line under that table.
LEGEND = "exercised a/b: put to the test a times, and at least b are needed to say anything"
#: And under one in which something is broken that nobody claims.
_UNPROMISED = "not-claimed, violated: the target does not promise it; told as it was seen, and no failure"
#: Obligations that one sentence names at most.
_NAMED_MAX = 10

#: What an answer is called where its name is not plain enough.
_CALLED: Mapping[e.Answer, str] = {"clean": "nothing violated", "different": "different failure"}
_ANSWERS: Mapping[str, str] = {
    "reproduced": "the same obligation was violated in the same way",
    "fixed": "nothing was violated any more",
    "clean": "no promise that is claimed was broken",
    "different": "something else was violated",
    "diverged": "the run left the recorded path, so it proves nothing",
    "stopped": "the run was stopped on its way, as asked, and not judged",
    "inconclusive": "nothing was violated, and no run put it to the test",
}


def counted(count: int, what: str) -> str:
    """So many of what is called `what`."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def promises(ids: Sequence[str], seen: str = "") -> str:
    """Obligations in a sentence: by their ids, or where nobody would read so many, by their number and how they are `seen`."""
    return ", ".join(ids) if len(ids) <= _NAMED_MAX else f"{len(ids)} obligations{seen}"


def time(at_ns: int) -> str:
    """Milliseconds with three digits, as tables show them."""
    return f"{at_ns / 1_000_000:.3f} ms"


def began(event: e.CampaignBegan) -> str:
    total = f", {counted(event.total, 'run')}" if event.total is not None else ""
    tier = f" at tier {event.tier}" if event.tier else ""
    options = "".join(f" · {name} {value}" for name, value in event.options.items() if value not in (None, "", False))
    return f"{event.command} {event.target}{tier} in the {event.world} world{total}{options}"


def heading(event: e.ViolationFound) -> str:
    """Id, name and anomaly."""
    name = f" {event.name}" if event.name else ""
    return f"{event.obligation}{name} · {event.anomaly}"


def run(scenario: str, seed: int | None) -> str:
    """A run as people name it. A drawn scenario is called by its seed already."""
    if scenario == f"seed/{seed}":
        return f"seed {seed}"
    return scenario if seed is None else f"{scenario}, seed {seed}"


def facts(event: e.ViolationFound) -> list[tuple[str, str]]:
    """The labelled lines of a failure block between its table and its replay lines."""
    rows = [
        ("why", event.why),
        ("decides", event.decides),
        ("shrunk", event.shrunk),
        ("where", event.where),
        ("run", run(event.scenario, event.seed)),
        ("kept", event.kept),
        ("explain", invocation.line("explain", event.obligation)),
    ]
    return [(label, text) for label, text in rows if text]


def also(event: e.ViolationFound, before: e.ViolationFound | None) -> list[str]:
    """The few lines of a violation in a run whose table has been shown with the one `before`; none where it has not."""
    if before is None or not before.table:
        return []
    rows = [("why", event.why), ("decides", event.decides), ("explain", invocation.line("explain", event.obligation))]
    told = [f"  {label}: {text}" for label, text in rows if text and text != getattr(before, label, "")]
    return [
        f"FAIL {heading(event)} (same run as {before.obligation} {before.anomaly} above)",
        f"  {event.sentence}",
        *told,
    ]


def replays(event: e.ViolationFound) -> list[str]:
    """The replay lines, whole: by case, and by seed or scenario."""
    return [line for line in (event.replay_case, event.replay_seed) if line]


def observations(tally: Tally) -> list[str]:
    """The section of broken promises that are not claimed: what, how often, one example and how to see it again."""
    lines = []
    for key, event in tally.first.items():
        if not event.claimed:
            lines.append(f"  {heading(event)} ({_times(tally.found[key])})")
            lines += [f"    {text}" for text in (event.sentence, *replays(event)[:1])]
    return ["observed, not claimed (fails nothing):", *lines] if lines else []


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def repeats(tally: Tally) -> list[str]:
    """A line for every claimed finding that came more than once."""
    return [
        f"{obligation} {anomaly}: {count - 1} more {'time' if count == 2 else 'times'}"
        for (obligation, anomaly, claimed), count in tally.found.items()
        if count > 1 and claimed
    ]


def cells(event: e.VerdictReached) -> tuple[str, str, str, str]:
    """One row of the verdict table."""
    verdict = event.verdict
    name = f"{verdict.obligation} {event.name}".rstrip() + (" (SHOULD)" if event.level == "SHOULD" else "")
    return name, verdict.outcome, f"{verdict.exercised}/{verdict.minimum}", _remark(event)


def rows(tally: Tally) -> list[e.VerdictReached]:
    """The verdicts that the table shows: all but those of what nobody claims and nothing was seen of, and of a `run` those of
    what it did not come to, where they are so many that they would bury the rest.
    """
    untested = {one.verdict.obligation for one in _untested(tally)}
    return [one for one in tally.verdicts if not _is_idle(one) and one.verdict.obligation not in untested]


def legend(tally: Tally) -> list[str]:
    """The lines under the table: what its numbers mean, and how much it leaves out."""
    idle, untested = sum(map(_is_idle, tally.verdicts)), len(_untested(tally))
    left = [f"{counted(untested, 'obligation')} not put to the test by any of these runs"] if untested else []
    left += [f"{counted(idle, 'obligation')} not claimed, of which nothing was observed"] if idle else []
    broken = any(one.verdict.outcome == "not-claimed" and one.verdict.anomalies for one in tally.verdicts)
    hidden = [f"not shown: {', and '.join(left)}; --format json has all"] if left else []
    return [LEGEND, *([_UNPROMISED] if broken else []), *hidden]


def _untested(tally: Tally) -> list[e.VerdictReached]:
    """Rows of a `run` that only say that it was too small; none where they are few. A certification owes each of them."""
    if tally.began is None or tally.began.command != "run":
        return []
    verdicts = [one.verdict for one in tally.verdicts]
    idle = {
        one.obligation for one in verdicts if one.outcome == "inconclusive" and not (one.exercised or one.anomalies)
    }
    return [one for one in tally.verdicts if one.verdict.obligation in idle] if len(idle) > _NAMED_MAX else []


def _is_idle(event: e.VerdictReached) -> bool:
    verdict = event.verdict
    return verdict.outcome == "not-claimed" and verdict.observed == "nothing" and not verdict.anomalies


def _remark(event: e.VerdictReached) -> str:
    verdict = event.verdict
    anomalies = ", ".join(verdict.anomalies)
    if verdict.outcome == "not-claimed":
        return f"observed: {verdict.observed}" + (f" ({anomalies})" if anomalies else "")
    if verdict.outcome == "pass":
        return ""
    return verdict.reason if anomalies in verdict.reason else f"{anomalies}; {verdict.reason}".rstrip("; ")


def certified(event: e.Certified) -> list[tuple[str, str]]:
    """Labelled lines after the table: profiles, mutants, file."""
    rows = [
        ("granted", ", ".join(event.granted) or "no profile"),
        *(
            ("", f"{profile} as far as this world covers it: nothing is said of {', '.join(ids)}")
            for profile, ids in event.uncovered.items()
        ),
        *(
            ("refused", f"{profile}: {_refusal(reason, event.demanded.get(profile))}")
            for profile, reason in event.refused.items()
        ),
        ("mutants", f"{event.mutants_caught} of {event.mutants_total} caught by these judges"),
        ("durability", _DURABILITY.get(event.durability, event.durability)),
        ("certificate", event.path or "not written"),
    ]
    absent = {"mutants": not event.mutants_total, "durability": not event.durability}
    return [row for row in rows if not absent.get(row[0])]


def _refusal(reason: str, demanded: int | None) -> str:
    """Why a profile is refused; promises that nobody makes are counted where they are many, as they are known beforehand.
    `demanded`: how many the profile has in all; those that were kept are not in the reason.
    """
    parts = reason.split("; ")
    judged = [one for one in parts if not one.endswith(_UNCLAIMED)]
    idle = len(parts) - len(judged)
    if idle <= _UNCLAIMED_MAX:
        return reason
    if not judged and idle == demanded:
        return f"none of its {idle} promises is claimed"
    if not judged:
        return (
            f"{idle} of its {demanded} promises are not claimed"
            if demanded
            else f"{idle} of its promises are not claimed"
        )
    return "; ".join((*judged, f"{idle} more are not claimed"))


_UNCLAIMED = " not-claimed"
#: How many of these a refusal names.
_UNCLAIMED_MAX = 3

#: What was survived, by class of durability, and what was not tried.
_DURABILITY: Mapping[str, str] = {
    "kill": "process kill; power loss was not tried",
    "power": "process kill and power loss",
    "never-corrupt": "process kill and power loss, which may lose the latest work but corrupts nothing",
}


def answer(event: e.Replayed) -> str:
    """What a replay found, in a few words; of a case that was edited it is said of whom."""
    words = _CALLED.get(event.answer, event.answer)
    return f"{words}, of a case that was edited by hand" if event.altered else words


def replayed(event: e.Replayed) -> list[tuple[str, str]]:
    """Labelled lines of a replay's answer; the first is the answer itself."""
    rows = [
        (_CALLED.get(event.answer, event.answer), _meaning(event)),
        ("case", event.altered),
        ("run", run(event.scenario, None)),
        ("expected", event.expected),
        ("why", event.reason),
        ("got" if event.answer != "diverged" else "followed", _got(event)),
        ("not claimed", event.beside),
        ("how often", f"{event.times} of {event.of}" if event.of > 1 and event.answer != "clean" else ""),
        ("digest", _digests(event)),
    ]
    if event.at_event is not None:
        rows += [("before event" if event.answer == "stopped" else "at event", _place(event))]
    if event.at_event is not None and event.answer == "diverged":
        known = event.since_event is None
        rows += [
            ("recorded", event.recorded or ("(nothing)" if known else "")),
            ("replayed", event.replayed or "(nothing)"),
        ]
    return [(label, text) for label, text in rows if text]


def _meaning(event: e.Replayed) -> str:
    """Of a mended case that shows what nobody claims, of what it is said that nothing was violated."""
    if event.answer == "fixed" and event.beside:
        return "nothing that is claimed was violated any more"
    return _ANSWERS[event.answer]


def _got(event: e.Replayed) -> str:
    """What it showed; of a run that diverged, what it shows when it is followed as far as it fits."""
    return event.got or ("as far as it fits, nothing is violated" if event.answer == "diverged" else "")


def _place(event: e.Replayed) -> str:
    """The event's number, or the two it lies between."""
    if event.since_event is None:
        return str(event.at_event)
    return f"{event.since_event} to {event.at_event}, one of these"


def _digests(event: e.Replayed) -> str:
    if event.digest is None:
        return ""
    if event.recorded_digest in (None, event.digest):
        return f"{event.digest}{' (as recorded)' if event.recorded_digest else ''}"
    return f"{event.digest} (recorded: {event.recorded_digest})"


#: What a dash in the table of obligations means.
UNJUDGED = "–: no judge yet, so that no certificate says anything of it"
#: Titles of the columns of a listed obligation.
OBLIGATION_COLUMNS = ("id", "level", "kind", "profile", "at least", "mutants", "promise")


def obligation(event: e.ObligationListed) -> tuple[str, ...]:
    """One row of the table of obligations."""
    least, mutants = str(event.minimum or ""), str(len(event.mutants) or "")
    if event.judge is None:
        least = mutants = "–"
    return event.id, event.level, event.kind, event.profile, least, mutants, event.promise


def mutant(event: e.MutantJudged) -> tuple[str, str, str, str]:
    """One row of the matrix: mutant, obligation, what became of it, and how."""
    others = ", ".join(event.others)
    unjudged = f" ({event.unjudged} could not be judged)" if event.unjudged else ""
    how = f"{counted(event.runs, 'run')}{unjudged}, {event.seconds:.1f} s"
    if event.outcome == "caught":
        how = f"{run(event.scenario, event.seed)}; {how}" + (f"; also {others}" if others else "")
    elif others:
        how = f"by {others}; {how}"
    return event.mutant, event.obligation, event.outcome, how


def ended(event: e.CampaignEnded) -> list[str]:
    """The last lines: how much was run, and the exit code with its reason."""
    lines = []
    if runs := event.counts.get("runs", 0):
        kinds = [
            f"{n} {_called(name.removeprefix('runs_'))}"
            for name, n in event.counts.items()
            if name.startswith("runs_") and n
        ]
        told = f" ({', '.join(kinds)})" if kinds else ""
        lines.append(f"{counted(runs, 'run')}{told} in {event.seconds:.1f} s, {_rate(event, runs)}")
    reason = f": {event.reason}" if event.reason else ""
    lines.append(f"exit {int(event.exit_code)}{reason}")
    return lines


def _rate(event: e.CampaignEnded, runs: int) -> str:
    """By seeds where each is one run; of a sweep, which makes hundreds of one seed, by runs."""
    if (seeds := event.counts.get("seeds", 0)) and seeds != runs and event.seconds:
        return f"{runs / event.seconds:.1f} runs/s"
    return f"{event.seeds_per_second:.1f} {'seeds' if seeds else 'runs'}/s"


def _called(outcome: str) -> str:
    """What runs that ended so are called; one that breaks a promise nobody makes has not failed, and passed neither."""
    return "break only what is not claimed" if outcome == "not-claimed" else outcome


def style(outcome: Outcome) -> str:
    """The colour of a verdict; it repeats the word beside it and never carries meaning alone."""
    styles: Mapping[Outcome, str] = {
        "pass": "green",
        "fail": "red",
        "error": "red",
        "inconclusive": "yellow",
        "not-covered": "cyan",
        "not-claimed": "dim",
    }
    return styles[outcome]
