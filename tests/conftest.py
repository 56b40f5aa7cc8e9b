"""What all tests share: hypothesis profiles, and that nightly tests run only when asked for, as in `make nightly`.

Profiles: `ci` draws the same examples every time, so that a red run is red again; `dev` looks for new ones.
"""

from __future__ import annotations

import os

import hypothesis
import pytest

# How long it takes to make examples is a matter of what else the machine does, and of no test.
_UNTIMED = hypothesis.settings(deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow], print_blob=True)
hypothesis.settings.register_profile("ci", _UNTIMED, derandomize=True, database=None)
hypothesis.settings.register_profile("dev", _UNTIMED)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))

_LEFT_OUT = pytest.StashKey[int]()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "nightly" in config.getoption("-m"):
        return
    nightly = [item for item in items if item.get_closest_marker("nightly") is not None]
    if nightly:
        config.hook.pytest_deselected(items=nightly)
        items[:] = [item for item in items if item.get_closest_marker("nightly") is None]
        config.stash[_LEFT_OUT] = len(nightly)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """What was not run."""
    if left_out := config.stash.get(_LEFT_OUT, 0):
        terminalreporter.write_line(f"{left_out} nightly tests were left out: `make nightly` runs them")
