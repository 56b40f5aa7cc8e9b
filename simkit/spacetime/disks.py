"""Many changes of one disk at one time, with nothing else between them, as one row: pages of a log tell little one by one."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from simkit.spacetime.model import Draft, Place

#: Fewer than this in a row are told one by one.
FOLDED_MIN = 4
_NAMED_MAX = 3
_TEXT = re.compile(r"(?P<kind>\S+) (?P<path>.*?)(?: \d+ B at \d+)? \(boundary (?P<number>\d+)\)")
#: What may come of a change: the last one before it stays as it is.
_OUTCOMES = ("death", "fault", "failure")


def folded(drafts: Sequence[Draft]) -> list[Draft]:
    """The rows, with long sequences of changes of a disk told in one row each; what decides stays."""
    rows: list[Draft] = []
    groups = [list(group) for _, group in itertools.groupby(drafts, _of_disk)]
    for at, group in enumerate(groups):
        later = groups[at + 1][0].kind if at + 1 < len(groups) else ""
        rows += _fold(group, keeps_last=later in _OUTCOMES)
    return rows


def _of_disk(draft: Draft) -> tuple[Place, int] | None:
    """Place and time of a change that may be folded; what may not is a group of its own kind."""
    if draft.kind == "disk" and not draft.decides and _TEXT.fullmatch(draft.text):
        return draft.place, draft.at_ns
    return None


def _fold(group: list[Draft], *, keeps_last: bool) -> Iterator[Draft]:
    last = group[-1:] if keeps_last else []
    some = group[: len(group) - len(last)]
    if _of_disk(group[0]) is None or len(some) < FOLDED_MIN:
        yield from group
        return
    yield attrs.evolve(some[0], text=_told(some))
    yield from last


def _told(group: Sequence[Draft]) -> str:
    found = [match for draft in group if (match := _TEXT.fullmatch(draft.text))]
    kinds, paths = Counter(one["kind"] for one in found), Counter(one["path"] for one in found)
    where = f"(boundaries {found[0]['number']} to {found[-1]['number']})"
    if len(kinds) == len(paths) == 1:
        return f"{len(found)} × {found[0]['kind']} {found[0]['path']} {where}"
    shown = ", ".join(f"{path} × {times}" for path, times in paths.most_common(_NAMED_MAX))
    more = f" and {len(paths) - _NAMED_MAX} more" if len(paths) > _NAMED_MAX else ""
    return f"{len(found)} changes: {shown}{more} {where}"
