"""Which tests become several items, each with a part of the seeds, so that several processes can share one test."""

from __future__ import annotations

from simkit import trials
from simkit._pytest import nodes
from simkit.errors import Problem, SimkitError
from simkit.settings import Settings
from simkit.testing import Spec, strategy_of

#: A test with fewer seeds is not split by itself: what is made once an item, such as fixtures, would be made more often.
_FROM = 100
_PARTS_MAX = 1000


def wanted(text: str | None) -> int | None:
    """What `--simkit-split` says: a number of parts, or None for as many as there are processes. SimkitError."""
    if text is None or text == "auto":
        return None
    if text == "off":
        return 1
    if text.isdecimal() and 1 <= int(text) <= _PARTS_MAX:
        return int(text)
    raise SimkitError(
        Problem(
            "split", f"--simkit-split: {text!r}", "the command line", f"a number from 1 to {_PARTS_MAX}, auto or off"
        )
    )


def parts(spec: Spec, settings: Settings, overriding: range | None, count: int | None, processes: int) -> list[range]:
    """The seeds of a test in parts; nothing for one that stays whole.

    Args:
        spec: the test.
        settings: of the project.
        overriding: seeds that the command line gives to every test.
        count: how many parts the command line wants; None for as many as there are processes.
        processes: that share the tests.
    """
    seeds = overriding or spec.seeds or settings.seeds
    if not isinstance(seeds, range) or (count is None and len(seeds) < _FROM):
        return []
    strategy = strategy_of(spec, settings)
    if trials.covers_one_world(strategy):  # its runs are one enumeration
        return []
    found = nodes.parts_of(
        seeds, processes if count is None else count, trials.BLOCK if trials.explores(strategy) else 1
    )
    return found if len(found) > 1 else []
