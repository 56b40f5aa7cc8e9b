"""What a campaign keeps for somebody to look at: cases with what was seen of their runs, and that alone of odd runs without."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import attrs

from conformance import evidence
from conformance.campaign.judged import Judged, Small
from conformance.campaign.kinds import CASES_MAX

if TYPE_CHECKING:
    from conformance.events import Emit
    from conformance.store import Store
    from simkit.case import Case


@attrs.frozen
class Kept:
    """A failure made small, with its case and the folder of what was seen of it."""

    small: Small
    case_id: str | None
    folder: str


class Keeping:
    """Writes into the store, and knows what it wrote. `again`: all runs are of this case, and make no other."""

    def __init__(self, store: Store, emit: Emit, again: Case | None) -> None:
        self.cases: list[str] = []
        self._store = store
        self._emit = emit
        self._again = again
        self._odd: Counter[str] = Counter()  # runs without a case of which something was kept, by what was odd

    def case(self, judged: Judged) -> str | None:
        """Save the run's case; None when the store refuses it, which is told."""
        assert judged.case is not None
        if self._again is not None:
            return self._again.id
        case_id = self._store.keep(judged.case, self._emit)
        if case_id is not None:
            self.cases.append(case_id)
        return case_id

    def seen(self, judged: Judged, case_id: str) -> str:
        """Keep what was seen beside the case; the folder, or nothing."""
        if self._again is not None:
            return ""
        return self._store.keep_run(judged.scenario, evidence.files(judged.history, judged.logs), case_id, self._emit)

    def small(self, small: Small) -> Kept:
        """Save its case, and keep beside it what was seen of it and the case it was made of."""
        judged = small.judged
        case_id = self.case(judged)
        if case_id is None:
            return Kept(small, None, "")
        beside = {"unshrunk.json": small.unshrunk.text(), **small.drawn}
        files = evidence.files(judged.history, judged.logs)
        files |= {name: text.encode() for name, text in beside.items()}
        return Kept(small, case_id, self._store.keep_run(judged.scenario, files, case_id, self._emit))

    def odd(self, judged: Judged, kind: str) -> str:
        """Keep what was seen of a run without a case, for the first few of a kind; the folder, or nothing."""
        self._odd[kind] += 1
        if self._odd[kind] > CASES_MAX:
            return ""
        return self._store.keep_run(judged.scenario, evidence.files(judged.history, judged.logs), None, self._emit)
