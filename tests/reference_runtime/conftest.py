"""What the tests of the store share."""

from __future__ import annotations

import pytest

from reference_runtime import Store
from reference_runtime.model import Policy


@pytest.fixture
def store(tmp_path):
    """A store on a real file that makes nobody wait."""
    return Store.open(str(tmp_path / "s.db"), policy=Policy(backoff_ns_min=2, backoff_ns_max=2))


@pytest.fixture
def reopened():
    """The same file, by the same policy, after the process is gone."""

    def reopen(store: Store) -> Store:
        path = store.db.filename
        store.close()
        return Store.open(path, policy=store.policy)

    return reopen


@pytest.fixture
def clock(monkeypatch):
    """The wall clock, in hand: a list of one number, nanoseconds."""
    now = [10**15]
    monkeypatch.setattr("time.time_ns", lambda: now[0])
    return now
