"""Ctrl-C, SIGTERM, SIGHUP and worse, on processes and on several jobs: what was judged is kept, and nobody is left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import trio

from conformance import events as e
from conformance.campaign.patience import interruptible
from conformance.cli.session import Done, Session, conduct
from conformance.store import Store
from simkit.errors import ExitCode
from tests.bad_input_rig import DEADLINE_S, GOOD, MARKS, PROC, SLOW, Bench, Ran, end_of, running, survivors

pytestmark = MARKS


CAMPAIGNS = {
    "certify": ("certify", "target", "--jobs", "4"),
    "run": ("run", "-t", "reference", "--seeds", "0-9999", "--jobs", "2"),
}
SENDERS = {"one": os.kill, "group": os.killpg}
EVERYDAY = (("certify", "one", signal.SIGTERM), ("run", "group", signal.SIGHUP))


#: Who sends what to what: Ctrl-C in every way, each other signal once a day, and the rest of them at night.
INTERRUPTS = [
    pytest.param(
        campaign,
        sender,
        number,
        marks=() if number == signal.SIGINT or (campaign, sender, number) in EVERYDAY else pytest.mark.nightly,
    )
    for campaign in CAMPAIGNS
    for sender in SENDERS
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
]


@pytest.mark.parametrize(("campaign", "sender", "number"), INTERRUPTS)
def test_the_first_interrupt_finishes_saves_and_summarises(
    bench: Bench, tmp_path: Path, campaign: str, sender: str, number: int
) -> None:
    """To one process or to the whole group: what runs is finished, what was judged is summed up and kept, exit 130."""
    bench.adapter(GOOD)
    with running(tmp_path, *CAMPAIGNS[campaign]) as process:
        SENDERS[sender](process.pid, number)
        code, told, err = end_of(process)
    assert code == 130, err
    assert "finished and saved first" in err
    assert not any(word in err for word in ("error[", "Traceback", "ignored")), err
    assert told[-1]["event"] == "CampaignEnded"
    assert told[-1]["reason"].startswith("interrupted")
    assert told[-1]["counts"]["runs"] >= 1
    assert any(one["event"] == "VerdictReached" for one in told)
    assert survivors(str(tmp_path)) == []
    kept = next(tmp_path.glob(".simkit/runs/*.jsonl")).read_text()
    assert kept.count('"RunFinished"') == told[-1]["counts"]["runs"]
    saved = [json.loads(path.read_text()) for path in tmp_path.glob(".simkit/certificates/*.json")]
    assert [one["complete"] for one in saved] == ([False] if campaign == "certify" else [])


@pytest.mark.parametrize("sender", SENDERS)
@pytest.mark.parametrize("campaign", CAMPAIGNS)
def test_the_second_interrupt_ends_at_once(bench: Bench, tmp_path: Path, campaign: str, sender: str) -> None:
    """Nothing more is finished; what was judged is in the journal, and summed up where no certificate would be made of it; no
    process and no temporary folder is left.
    """
    bench.adapter(SLOW)
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    os.environ["TMPDIR"], before = str(temporary), os.environ.get("TMPDIR")
    try:
        with running(tmp_path, *CAMPAIGNS[campaign], seen=2) as process:  # others are under way
            SENDERS[sender](process.pid, signal.SIGINT)
            assert process.stderr is not None
            while "ends at once" not in process.stderr.readline():
                pass
            began = time.monotonic()
            SENDERS[sender](process.pid, signal.SIGINT)
            code, told, err = end_of(process)
    finally:
        os.environ.pop("TMPDIR")
        if before is not None:
            os.environ["TMPDIR"] = before
    assert code == 130, err
    assert time.monotonic() - began < DEADLINE_S / 4
    assert not any(word in err for word in ("error[", "Traceback", "ignored")), err
    assert told[-1]["event"] == "CampaignEnded"
    assert any(one["event"] == "VerdictReached" for one in told) == (campaign == "run")
    assert survivors(str(tmp_path)) == []
    assert list(temporary.iterdir()) == []
    assert '"RunFinished"' in next(tmp_path.glob(".simkit/runs/*.jsonl")).read_text()


#: Sends itself a signal as soon as the first heavy package is loaded.
STRUCK_EARLY = """
import os, sys
from conformance.cli import main
class Striking:
    def find_spec(self, name, *_):
        if name == "cyclopts":
            os.kill(os.getpid(), int(sys.argv[1]))
sys.meta_path.insert(0, Striking())
sys.exit(main(["list", "scenarios"]))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_while_simkit_is_loaded_says_that_nothing_was_run(number: int) -> None:
    """In one line, by the exit code of every interrupted command."""
    done = subprocess.run(
        [sys.executable, "-c", STRUCK_EARLY, str(int(number))],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "interrupted before anything was run: there is nothing to keep\n"


def test_a_terminal_that_went_away_before_does_not_end_a_command(bench: Bench) -> None:
    """`nohup` lets it ignore the end of the terminal, and so it does."""
    bench.adapter(GOOD)
    words = ("replay", "-t", "target", "--scenario", "chain/undisturbed")
    done = bench.simkit(*words, shell="trap '' HUP; (sleep 0.2; kill -HUP $$; sleep 1; kill -HUP $$) & ")
    assert done.code == 0, done.err
    assert "stopping" not in done.err


class Striking:
    """A report over which the last word is an interrupt's."""

    def __init__(self) -> None:
        self.shown: list[e.Event] = []

    def show(self, event: e.Event) -> None:
        if isinstance(event, e.CampaignEnded):
            os.kill(os.getpid(), signal.SIGINT)
        self.shown.append(event)

    def close(self) -> None:
        pass


def test_an_interrupt_over_the_last_word_takes_it_from_nobody(tmp_path: Path) -> None:
    """All was judged by then: it is told and kept, and its exit code stands."""

    def body(session: Session) -> Done:
        session.emit(e.CampaignBegan("naive", "run", "process"))
        return ExitCode.PASSED, "all is well"

    report = Striking()
    assert conduct(Session("run", report, Store(tmp_path)), body, campaign=True) == 0
    assert isinstance(report.shown[-1], e.CampaignEnded)
    assert '"CampaignEnded"' in next(tmp_path.glob("runs/*.jsonl")).read_text()


def test_jobs_leave_when_their_campaign_is_killed(tmp_path: Path) -> None:
    """A campaign that is killed outright cannot clean up: the processes that ran its seeds notice and leave."""
    with running(tmp_path, *CAMPAIGNS["run"]) as process:
        process.kill()
        process.wait(DEADLINE_S)
        end = time.monotonic() + DEADLINE_S
        while survivors(str(tmp_path)):
            assert time.monotonic() < end, survivors(str(tmp_path))
            time.sleep(0.01)


def test_a_lost_job_is_told_and_loses_nothing(tmp_path: Path) -> None:
    """A process of the kit that the system kills (out of memory) is the kit's trouble: exit 70, results kept."""
    with running(tmp_path, *CAMPAIGNS["run"]) as process:
        children = (PROC / f"{process.pid}/task/{process.pid}/children").read_text().split()
        jobs = [one for one in children if b"spawn_main" in (PROC / one / "cmdline").read_bytes()]
        os.kill(int(jobs[0]), signal.SIGKILL)
        code, told, err = end_of(process)
    assert code == 70
    Ran(code, "", err).tells("job-lost", "memory")
    assert told[-1]["counts"]["runs"] >= 1
    assert survivors(str(tmp_path)) == []


def test_an_interrupt_lets_every_block_be_left_in_order() -> None:
    """A handler that raises while trio waits for the system cancels what runs, whose clean-up may still await."""

    def strike(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    async def main() -> None:
        with interruptible():
            threading.Thread(target=os.kill, args=(os.getpid(), signal.SIGTERM)).start()
            try:
                await trio.sleep_forever()
            finally:
                with trio.CancelScope(shield=True):
                    await trio.sleep(0)
                    left.append("in order")

    left: list[str] = []
    before = signal.signal(signal.SIGTERM, strike)
    try:
        with pytest.raises(KeyboardInterrupt):
            trio.run(main)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert left == ["in order"]
