"""The judge of histories on Porcupine's test data: all verdicts right, within few situations."""

from __future__ import annotations

import pytest

from simkit.checking import check
from tests.quality.porcupine import ETCD, KEY_VALUE, history

#: Situations that all etcd logs together may take; the plain search of Wing, Gong and Lowe takes over a million.
SITUATIONS_MAX = 5_000


def test_every_etcd_log_is_judged_right() -> None:
    """102 logs of an etcd under Jepsen, 23 of them linearizable; no bound is met."""
    verdicts = {name: check(*history(name)) for name in ETCD}
    wrong = {name for name, verdict in verdicts.items() if bool(verdict) != ETCD[name]}
    assert wrong == set()
    assert {verdict.answer for verdict in verdicts.values()} == {"linearizable", "not linearizable"}
    assert sum(verdict.situations for verdict in verdicts.values()) <= SITUATIONS_MAX


@pytest.mark.parametrize("name", KEY_VALUE)
def test_every_key_value_log_is_judged_right(name: str) -> None:
    """One, ten and fifty clients; where a log is wrong, the evidence names a read."""
    operations, model = history(name)
    verdict = check(operations, model)
    assert verdict.answer == ("linearizable" if KEY_VALUE[name] else "not linearizable")
    assert verdict.situations <= SITUATIONS_MAX
    if verdict.evidence is not None:
        assert verdict.evidence.exact
        assert verdict.evidence.misplaced.asked[0] == "get"
