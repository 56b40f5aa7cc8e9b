"""Reports: wording under snapshot, replay lines whole and last, colours and progress only where they belong."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any, get_args

import attrs
import pytest

from conformance import events as e
from conformance import reporters
from conformance.failure import Origin, replay_line
from conformance.reporters import github, plain, spacetime, wording
from conformance.reporters.progress import Lines, Live, shower
from conformance.tally import Tally
from scenarios import history as h
from scenarios.verdict import Verdict
from simkit.errors import ExitCode
from tests.report_samples import VIOLATION, every_event, history, verdicts, violation

ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
VARIABLES = ("NO_COLOR", "FORCE_COLOR", "CI", "TERM", "COLUMNS", "COLORTERM", "GITHUB_STEP_SUMMARY", "TTY_COMPATIBLE")


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "120")


def reported(kind: reporters.Format, events: tuple[e.Event, ...], out: io.StringIO | None = None) -> tuple[str, str]:
    """Standard output and standard error of a report of `events`."""
    out, err = out or io.StringIO(), io.StringIO()
    reporter = reporters.make(kind, out, err)
    for event in events:
        reporter.show(event)
    reporter.close()
    return out.getvalue(), err.getvalue()


def untimed(text: str) -> str:
    """Progress lines without their clock."""
    return re.sub(r"\[ +\d+ s\]", "[ s]", text)


@pytest.mark.parametrize("kind", get_args(reporters.Format))
def test_a_whole_campaign_as_every_format_tells_it(kind: reporters.Format, snapshot: Any) -> None:
    """What users read is the wording of the snapshot, on standard output and on standard error."""
    out, err = reported(kind, every_event())
    assert f"{out}\n---- standard error\n{untimed(err)}" == snapshot


@pytest.mark.parametrize("kind", ["pretty", "plain"])
def test_a_failure_ends_in_two_whole_replay_lines(kind: reporters.Format, monkeypatch: pytest.MonkeyPatch) -> None:
    """However narrow the terminal and long the line, both can be copied as they stand and are last."""
    monkeypatch.setenv("COLUMNS", "40")
    lines = ("simkit replay 0123456789ab", "simkit replay -t naive --scenario " + "x" * 200)
    found = violation(replay_case=lines[0], replay_seed=lines[1])
    out, _ = reported(kind, (found,))
    assert tuple(out.rstrip("\n").split("\n")[-2:]) == lines


def test_a_narrow_terminal_gets_a_list_for_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lanes too narrow to read become one line a row."""
    monkeypatch.setenv("COLUMNS", "50")
    out, _ = reported("pretty", (violation(),))
    assert "> 120.000 ms  reader" in out


def test_one_finding_is_told_once_and_counted() -> None:
    """A thousand failures of one kind are one block and a count."""
    events: tuple[e.Event, ...] = (
        e.CampaignBegan("naive", "run", "simulated"),
        *(violation(seed=n) for n in range(1000)),
    )
    out, _ = reported("plain", (*events, e.CampaignEnded({}, 1, 1, ExitCode.VIOLATION)))
    assert out.count("FAIL DUR-3") == 1
    assert "DUR-3 recomputed: 999 more times" in out


def test_json_is_one_event_a_line_without_progress() -> None:
    """Standard output of the JSON format is data only: each line an event, in order."""
    out, err = reported("json", every_event())
    said = [e.from_json(json.loads(line)) for line in out.splitlines()]
    assert said == [event for event in every_event() if not isinstance(event, e.Progress | e.Installing)]
    assert "making an environment" in err


@pytest.mark.parametrize(
    ("variables", "terminal", "coloured"),
    [
        ({}, False, False),
        ({"TERM": "xterm"}, True, True),
        ({"TERM": "xterm", "NO_COLOR": "1"}, True, False),
        ({"FORCE_COLOR": "1"}, False, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False, False),
        ({"TERM": "dumb"}, True, False),
    ],
)
def test_colours_follow_terminal_and_variables(
    variables: dict[str, str], terminal: bool, coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NO_COLOR and FORCE_COLOR are respected, and without either a terminal decides."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    out, _ = reported("pretty", (violation(),), Terminal() if terminal else io.StringIO())
    assert bool(re.search(r"\x1b\[[0-9;]*3[0-7]m", out)) == coloured


def test_colour_carries_nothing_alone() -> None:
    """Without colours the report says the same words."""
    coloured, _ = reported("pretty", every_event(), Terminal())
    bare, _ = reported("pretty", every_event())
    assert ESCAPE.sub("", coloured).split() == bare.split()


def test_progress_is_a_line_every_ten_seconds_off_terminals() -> None:
    """A log gets a line every ten seconds and the time left, and the first word of an installation at once."""
    now = [0.0]
    out = io.StringIO()
    lines = Lines(out, clock=lambda: now[0])
    lines.show(e.CampaignBegan("naive", "run", "simulated"))
    for second in range(25):
        now[0] = float(second)
        lines.show(e.Progress(second, 25, "chain"))
    for word in ("pip", "collecting", "installed"):
        lines.show(e.Installing(word))
    now[0] = 34.0
    lines.show(e.Installing("compiling"))
    assert out.getvalue() == (
        "[   10 s] 10/25 runs · chain · about 15 s left\n[   20 s] 20/25 runs · chain · about 5 s left\n"
        "[   24 s] pip\n[   34 s] compiling\n"
    )


def test_progress_is_live_on_a_terminal_and_makes_room() -> None:
    """A terminal shows a bar, which is gone before anything else is printed."""
    stream = Terminal()
    live = shower(stream, {"TERM": "xterm"})
    assert isinstance(live, Live)
    live.show(e.Progress(3, 10, "chain"))
    assert "3/10" in stream.getvalue()
    live.pause()
    live.pause()
    assert stream.getvalue().endswith(("\x1b[2K", "\x1b[?25h", "\r"))


@pytest.mark.parametrize("variables", [{"CI": "true", "TERM": "xterm"}, {"TERM": "dumb"}])
def test_progress_is_lines_in_ci(variables: dict[str, str]) -> None:
    """CI systems and dumb terminals get lines even where a terminal is pretended."""
    assert isinstance(shower(Terminal(), variables), Lines)


def test_annotations_escape_what_github_would_read() -> None:
    """Percent, line ends, and in titles colons and commas, are escaped by GitHub's rules."""
    event = attrs.evolve(violation(), anomaly="a:b,c", sentence="100%\r\nsure", table=())
    command = github.annotation(event)
    assert command is not None
    assert command.startswith("::error title=DUR-3 accepted result is reused · a%3Ab%2Cc::100%25%0D%0Asure%0A")
    assert "\n" not in command


def test_annotations_are_bounded_with_a_notice() -> None:
    """What exceeds GitHub's own limit is announced, not silently lost."""
    found = tuple(violation(obligation=f"DUR-{n}") for n in range(14))
    out, _ = reported("github", found)
    assert out.count("::error ") == github.ANNOTATIONS_MAX
    assert out.count("::notice::more findings") == 1


def test_the_step_summary_is_markdown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: Any) -> None:
    """The summary has the verdict table and the replay lines; it is appended, as GitHub asks."""
    path = tmp_path / "summary.md"
    path.write_text("earlier\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(path))
    reported("github", every_event())
    assert path.read_text() == snapshot


def test_a_summary_that_cannot_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing folder costs the summary, nothing else."""
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "no" / "summary.md"))
    out, err = reported("github", every_event())
    assert "error[file-unusable]" in err
    assert "exit 1" in out


def test_the_table_keeps_evidence_and_counts_what_it_leaves_out() -> None:
    """However tight the limit, the proof is there, in order, and gaps are counted."""
    rows = spacetime.rows(history(), VIOLATION.evidence, limit=4)
    assert [row.index for row in rows if row.evidence] == [6, 26]
    shown = [row.index for row in rows if row.index is not None]
    assert shown == sorted(shown)
    assert len(shown) == 4
    skipped = sum(int(row.text.split()[1]) for row in rows if row.index is None)
    assert skipped + len(shown) == len(history().events)


TOLD: tuple[tuple[h.Event, str, str], ...] = (
    (h.Started(0, 1, "worker"), "worker 1", "started"),
    (
        h.Received(1, 1, "checker", "r", "check", 1, token=3, subject="page@1#00ff"),
        "checker",
        "check received from worker 1, token 3, subject page@1#00ff",
    ),
    (h.Applied(2, 1, 1, "aaaaaaaaaa"), "checker", "check applied, effect 1, nonce aaaaaa"),
    (h.Replied(3, 1, 200, "executed", outcome="failed"), "checker", "check replied 200 executed, found failed"),
    (h.Paused(4, 1), "worker 1", "paused"),
    (h.Resumed(5, 1), "worker 1", "continued"),
    (
        h.Asked(6, 1, "decide", "r", 1, operation="gate", decision="approve", actor="alice"),
        "kit",
        "asks decide approve gate as alice",
    ),
    (h.Answered(7, 1, "error", "no-authority"), "kit", "decide answered error: no-authority"),
    (h.Authority(8, "alice", granted=False), "kit", "alice may not decide"),
    (h.Scanned(9, ("store", "logs"), ("logs:token",)), "kit", "searched store, logs for secrets: found logs:token"),
    (h.Scanned(10, ("store",)), "kit", "searched store for secrets: nothing found"),
    (h.Fetched(11, "page", 2, "00ff", 7, found=True), "kit", "fetched page@2: 7 bytes, digest 00ff"),
    (h.Fetched(12, "page", 3, "", 0, found=False), "kit", "fetched page@3: not there"),
    (h.Stored(13, "r/page/2", "committed"), "store", "r/page/2 committed"),
    (h.Died(14, 1, "worker", "power"), "worker 1", "lost power"),
    (h.Down(15, "worker", 500_000_000), "kit", "worker stays down for 500 ms"),
    (h.Fired(16, "kill@end"), "kit", "fault: kill@end"),
    (h.Quiet(17), "kit", "no more faults"),
    (h.Stalled(17, 81_000_000), "kit", "this machine stood still for 81 ms"),
    (h.Closed(18, "bound"), "kit", "never settled"),
)


def test_a_kill_tells_how_long_its_end_was_waited_for() -> None:
    """Between the signal and the look at what is left of the process others go on; where no time passes, nothing is told."""

    def told(*events: h.Event) -> str:
        return spacetime.whole(attrs.evolve(history(), events=events))[-1].text

    fired, died = h.Fired(5_000_000, "kill@a#1.replied+power@end"), h.Died(47_900_000, 1, "worker", "killed")
    assert (
        told(fired, h.Stored(6_000_000, "r/page/2", "committed"), died)
        == "killed, seen to be gone 42 ms after the signal"
    )
    assert told(fired, attrs.evolve(died, at_ns=5_999_999)) == "killed"
    assert told(fired, attrs.evolve(died, incarnation=2, at_ns=6_000_000), died) == "killed"  # the other's signal
    assert told(attrs.evolve(fired, label="leave@end"), died) == "killed"
    assert told(fired, attrs.evolve(died, cause="exited")) == "exited"


@pytest.mark.parametrize(
    ("reason", "demanded", "told"),
    [
        ("DUR-1 fail", 9, "DUR-1 fail"),
        ("DUR-1 fail; DUR-2 not-claimed", 9, "DUR-1 fail; DUR-2 not-claimed"),
        ("; ".join(f"DUR-{n} not-claimed" for n in range(9)), 9, "none of its 9 promises is claimed"),
        ("; ".join(f"DUR-{n} not-claimed" for n in range(9)), 12, "9 of its 12 promises are not claimed"),
        ("; ".join(f"DUR-{n} not-claimed" for n in range(9)), None, "9 of its promises are not claimed"),
        (
            "; ".join(("DUR-3 inconclusive", *(f"DUR-{n} not-claimed" for n in range(4, 9)))),
            9,
            "DUR-3 inconclusive; 5 more are not claimed",
        ),
    ],
)
def test_a_refusal_counts_what_nobody_claims(reason: str, demanded: int | None, told: str) -> None:
    """What was judged is named, and a few that were not; a list of all that is not promised tells nobody anything. What is
    claimed and was kept stands in no refusal, so only who knows how much is demanded can say that nothing is claimed.
    """
    counts = {} if demanded is None else {"Durable": demanded}
    certified = e.Certified("x", "d", refused={"Durable": reason}, demanded=counts)
    assert ("refused", f"Durable: {told}") in wording.certified(certified)


def test_every_event_of_a_history_is_told() -> None:
    """In its lane, in words; none that there is left out."""
    assert {type(event).__name__ for event, _, _ in TOLD} == set(h.KINDS)
    whole = attrs.evolve(history(), events=tuple(event for event, _, _ in TOLD))
    assert [(row.lane, row.text) for row in spacetime.whole(whole)] == [(lane, text) for _, lane, text in TOLD]


def test_the_table_shows_no_idle_polls() -> None:
    """Statuses that prove nothing are left out even when there is room; the gap says what they told."""
    rows = spacetime.rows(history(), VIOLATION.evidence, limit=99)
    assert not [row for row in rows if "status" in row.text and row.index is not None]
    assert "… 16 more events (status: running × 8)" in [row.text for row in rows]
    assert [row for row in spacetime.rows(history(), (10,), limit=99) if "status" in row.text]


def test_a_whole_run_folds_what_repeats_itself() -> None:
    """Every event has its row, but for like answers to one question, which share one that counts them."""
    table = spacetime.whole(history())
    (polls,) = [row for row in table if "status" in row.text]
    assert polls.text == "status: running × 8"
    asked = [event for event in history().events if isinstance(event, h.Asked) and event.verb == "status"]
    assert len(table) == len(history().events) - 2 * len(asked) + 1


def test_a_status_that_changes_is_a_row_of_its_own() -> None:
    """Only what repeats the row before it is folded."""
    told: list[h.Event] = []
    for ask, state in enumerate(("running", "running", "waiting", "running")):
        told += [h.Asked(ask, ask, "status", "r", 1), h.Answered(ask, ask, "ok", status=h.Status(state))]  # type: ignore[arg-type]
    table = spacetime.whole(attrs.evolve(history(), events=tuple(told)))
    assert [row.text for row in table] == ["status: running × 2", "status: waiting", "status: running"]


def test_an_answer_that_never_came_is_a_row() -> None:
    """A question that nobody answered is shown, since the worker may have died over it."""
    told = (h.Asked(0, 1, "status", "r", 1), h.Died(1, 1, "worker", "killed"))
    table = spacetime.whole(attrs.evolve(history(), events=told))
    assert [row.text for row in table] == ["asks status", "killed"]


def test_a_long_key_shows_its_head() -> None:
    """A key is recognised by its beginning."""
    told = (h.Received(0, 1, "ledger", "r", "buy", 1, key="run-1:buy:" + "x" * 60),)
    (row,) = spacetime.whole(attrs.evolve(history(), events=told))
    assert "key run-1:buy:xxxxxxxxxxxxxx…" in row.text


@pytest.mark.parametrize("kind", ["pretty", "plain"])
def test_findings_of_one_run_show_its_table_once(kind: reporters.Format) -> None:
    """The second is a few lines that say whose run it is; a finding of another run has a table and a block of its own."""
    second = violation(obligation="EFF-1", anomaly="twice")
    other = violation(obligation="EFF-2", anomaly="thrice", case_id="ba9876543210")
    out, _ = reported(kind, (violation(), second, other))
    assert out.count("(same run as DUR-3 recomputed above)") == 1
    assert out.count("kill@buy#1.received struck") == 2
    assert out.count("simkit explain EFF-1") == 1
    assert out.count("simkit replay 0123456789ab") == 2
    assert len(re.findall(r"fault: kill@buy#1\.", out.replace("\n", " "))) == 2


@pytest.mark.parametrize("kind", ["pretty", "plain"])
def test_what_is_not_claimed_is_one_short_section(kind: reporters.Format) -> None:
    """Under the table, once for each kind, with how often it was seen and one way to see it again."""
    unclaimed = violation(obligation="EFF-1", anomaly="twice", claimed=False)
    end = e.CampaignEnded({}, 1, 1, ExitCode.PASSED)
    out, _ = reported(kind, (e.CampaignBegan("toy", "run", "simulated"), unclaimed, unclaimed, *verdicts(), end))
    assert out.count("observed, not claimed") == 1
    assert "EFF-1 accepted result is reused · twice (2 times)" in out
    assert out.index("obligation") < out.index("observed, not claimed")
    assert "FAIL" not in out


@pytest.mark.parametrize("kind", ["pretty", "plain"])
@pytest.mark.parametrize(("command", "many", "shown"), [("run", 11, False), ("run", 10, True), ("certify", 11, True)])
def test_what_a_run_did_not_come_to_does_not_bury_the_rest(
    kind: reporters.Format, command: str, many: int, shown: bool
) -> None:
    """Of many such rows there is a line, and how to see them; few are shown, and all of them where each is owed."""
    seen = [
        Verdict("DUR-1", "fail", 4, 3, observed="violated", anomalies=("amnesia",)),
        Verdict("DUR-2", "inconclusive", 2, 3),
    ]
    idle = [Verdict(f"OWN-{n}", "inconclusive", 0, 3, "exercised 0 times of at least 3") for n in range(many)]
    reached = [e.VerdictReached(one) for one in (*seen, *idle)]
    end = e.CampaignEnded({}, 1, 1, ExitCode.VIOLATION)
    events: tuple[e.Event, ...] = (e.CampaignBegan("toy", command, "simulated"), *reached, end)
    out, _ = reported(kind, events)
    assert all(one.obligation in out for one in seen)
    assert ("OWN-" in out) == shown
    told = f"not shown: {many} obligations not put to the test by any of these runs; --format json has all"
    assert (told in " ".join(out.split())) != shown
    whole, _ = reported("json", events)
    assert whole.count('"VerdictReached"') == 2 + many


def test_more_proof_than_rows_is_all_shown() -> None:
    """The limit bounds context, never evidence."""
    rows = spacetime.rows(history(), range(30), limit=4)
    assert sum(row.evidence for row in rows) == len(history().events)


def test_why_places_the_fault_between_the_proofs() -> None:
    """The reason names the fault and the events on both sides of it."""
    assert spacetime.why(history(), VIOLATION.evidence) == (
        "kill@buy#1.received struck after [ledger: buy received from worker 1, key r:buy]"
        " and before [reader: quote received from worker 2]"
    )


def test_why_says_when_no_fault_was_needed() -> None:
    """A violation in an undisturbed run is not blamed on a fault."""
    calm = attrs.evolve(history(), events=tuple(x for x in history().events if not isinstance(x, h.Fired)))
    assert spacetime.why(calm, (3,)) == "no fault was needed: reader: quote received from worker 1"


def test_evidence_out_of_range_and_empty_histories_are_survived() -> None:
    """A report never fails on what a judge handed it."""
    empty = attrs.evolve(history(), events=())
    assert spacetime.rows(empty, (3,)) == ()
    assert spacetime.why(empty, (3,)) == "no fault was needed"
    assert not any(row.evidence for row in spacetime.rows(history(), (999, -5)))


def test_lanes_read_from_kit_to_services() -> None:
    """The kit stands left, then the processes, then the services."""
    rows = spacetime.rows(history(), VIOLATION.evidence)
    assert spacetime.lanes(rows) == ("kit", "worker 1", "worker 2", "reader", "ledger")


@pytest.mark.parametrize(
    ("origin", "line"),
    [
        (
            Origin("naive", "process", "chain/kill@b#1.applied"),
            "simkit replay -t naive --scenario 'chain/kill@b#1.applied'",
        ),
        (
            Origin("langgraph", "process", "tour/undisturbed", configuration="exit"),
            "simkit replay -t langgraph --config exit --scenario tour/undisturbed",
        ),
        (
            Origin("reference", "simulated", "seed/7", seed=7, mutant="timer-in-memory"),
            "simkit run -t reference --mutant timer-in-memory --seeds 7",
        ),
    ],
)
def test_replay_lines_are_whole_shell_lines(origin: Origin, line: str) -> None:
    """Everything a run needs is on its replay line, quoted for a shell."""
    assert replay_line(origin) == line


def test_a_table_without_verdicts_is_not_printed_and_one_with_is_printed_once() -> None:
    """`run` shows verdicts at its end, `certify` with its certificate, and neither twice."""
    ended = e.CampaignEnded({}, 1, 1, ExitCode.PASSED)
    certified = e.Certified("toy", "ab")
    assert "obligation  " not in reported("plain", (ended,))[0]
    assert reported("plain", (*verdicts(), ended))[0].count("obligation  ") == 1
    assert reported("plain", (*verdicts(), certified, ended))[0].count("obligation  ") == 1


def test_a_tally_counts_claimed_apart_from_observed() -> None:
    """What is not claimed never counts as a violation."""
    tally = Tally()
    for event in every_event():
        tally.add(event)
    assert tally.counts()["violations"] == 2
    assert tally.counts()["observations"] == 1
    assert tally.broken() == ("DUR-3 recomputed",)


def test_plain_columns_align() -> None:
    """Every cell of a column begins in the same place."""
    tally = Tally(verdicts=list(verdicts()))
    head, *rows = plain.table(tally)
    at = head.index("verdict")
    assert all(row[at - 1] == " " and row[at] != " " for row in rows)


def test_a_run_that_shows_a_violation_of_what_is_not_claimed_is_not_said_to_pass() -> None:
    """It fails nothing, and it passed neither."""
    ended = e.CampaignEnded({"runs": 3, "runs_not-claimed": 2, "runs_pass": 1}, 1, 3, ExitCode.PASSED)
    assert "3 runs (2 break only what is not claimed, 1 pass)" in reported("plain", (ended,))[0]


@pytest.mark.parametrize(("total", "end"), [(1, "world, 1 run"), (2, "world, 2 runs"), (None, "world")])
def test_one_run_is_not_told_as_several(total: int | None, end: str) -> None:
    """In the first line, too."""
    assert wording.began(e.CampaignBegan("reference", "run", "simulated", total=total)).endswith(end)


def test_what_nobody_claims_and_nothing_was_seen_of_is_one_line() -> None:
    """A hundred rows of nothing would hide the few that say something; machines get all of them."""
    idle = [e.VerdictReached(Verdict(f"BUD-{n}", "not-claimed", 0, 3)) for n in range(1, 5)]
    seen = e.VerdictReached(Verdict("EFF-1", "not-claimed", 2, 3, observed="violated", anomalies=("twice",)))
    events: tuple[e.Event, ...] = (*idle, seen, e.CampaignEnded({}, 1, 1, ExitCode.PASSED))
    for kind in ("plain", "pretty"):
        out, _ = reported(kind, events)
        assert "BUD-" not in out
        assert "EFF-1" in out
        assert "not shown: 4 obligations not claimed" in out
    assert "BUD-4" in reported("json", events)[0]


def test_progress_says_what_it_counts_and_nothing_of_what_is_left_once_it_stops() -> None:
    """Seeds, runs and tries to make a failure small are told apart, and each is estimated by itself."""
    now = [0.0]
    err = io.StringIO()
    lines = Lines(err, lambda: now[0])
    for at, event in (
        (0, e.Progress(0, 100, "", "seeds")),
        (20, e.Progress(20, 100, "", "seeds")),
        (40, e.Progress(2, 200, "to shrink", "tries")),
        (60, e.Progress(40, 100, "", "seeds", stopping=True)),
    ):
        now[0] = at
        lines.show(event)
    assert err.getvalue().splitlines() == [
        "[   20 s] 20/100 seeds · about 80 s left",
        "[   40 s] 2/200 tries · to shrink",
        "[   60 s] 40/100 seeds",
    ]
