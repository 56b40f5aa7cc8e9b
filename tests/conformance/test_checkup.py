"""`doctor -t` of targets that run as real processes: one undisturbed run, with what is wrong told where it is."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from conformance import campaign
from conformance import events as e
from conformance.store import Store
from conformance.targets import ADAPTERS
from simkit.errors import ExitCode

pytestmark = pytest.mark.slow


def checked(target: Path, store: Path) -> tuple[e.CampaignBegan, dict[str, e.Checked]]:
    told: list[e.Event] = []
    result = campaign.doctor(str(target), store=Store(store), emit=told.append, stopping=lambda: False)
    assert isinstance(told[0], e.CampaignBegan)
    return told[0], {check.name: check for check in result.checks}


@pytest.fixture
def adapter(tmp_path: Path) -> Path:
    """A copy of an adapter whose undisturbed runs are faultless."""
    return Path(shutil.copytree(ADAPTERS / "naive", tmp_path / "mine"))


def test_a_good_adapter_is_well(adapter: Path, tmp_path: Path) -> None:
    """Its units start, say hello and carry out a run, and the world is the one that was really tried."""
    began, checks = checked(adapter, tmp_path / "store")
    assert began.world == "process"
    assert checks["units"].detail == "worker started and said hello, as real processes"
    assert checks["answers"].ok
    assert "two runs" not in checks  # determinism is a question to the simulated world


def test_an_adapter_that_cannot_start_is_told(adapter: Path, tmp_path: Path) -> None:
    """What it printed, how to start it by hand, and its exit code."""
    (adapter / "adapter.py").write_text("raise SystemExit('no such engine')")
    check = checked(adapter, tmp_path / "store")[1]["units"]
    assert (check.ok, check.exit_code) == (False, ExitCode.TARGET)
    assert "no such engine" in check.detail
    assert "by hand: cd " in check.hint


def test_an_adapter_that_answers_nonsense_is_told(adapter: Path, tmp_path: Path) -> None:
    """Units that start may still answer what is no status: the allowed states are named."""
    code = (adapter / "adapter.py").read_text()
    wrong = "    def status(self, run):\n        return {'state': 'finished'}\n\n    def _status("
    (adapter / "adapter.py").write_text(code.replace("    def status(", wrong, 1))
    check = checked(adapter, tmp_path / "store")[1]["answers"]
    assert (check.ok, check.exit_code) == (False, ExitCode.TARGET)
    assert "none of unknown, running, waiting, done" in check.detail
