"""Node ids: of failing seeds, `test_kv.py::test_x[seed=17]`, beside other parameters `test_kv.py::test_x[wal-seed=17]`; and of
parts of the seeds of a test, `test_kv.py::test_x[seeds=0-249]`.
"""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Iterable, Sequence

import attrs

_OURS = re.compile(
    r"(?P<base>.*?)\[(?:(?P<others>.*)-)?(?:seed=(?P<seed>\d+)|seeds=(?P<first>\d+)-(?P<last>\d+))\]", re.DOTALL
)

_NEAR_MAX = 3


@attrs.frozen
class Node:
    """An id, taken apart."""

    base: str  # the id of the test with all of its seeds
    seed: int | None = None
    part: range | None = None


def parsed(nodeid: str) -> Node:
    """Take an id apart; one that names no seeds is its own base."""
    match = _OURS.fullmatch(nodeid)
    if match is None:
        return Node(nodeid)
    base = match["base"] + (f"[{match['others']}]" if match["others"] is not None else "")
    if match["seed"] is not None:
        return Node(base, int(match["seed"]))
    return Node(base, None, range(int(match["first"]), int(match["last"]) + 1))


def with_seed(nodeid: str, seed: int) -> str:
    """The id of one seed of the test that `nodeid` is, or is a part of."""
    base = parsed(nodeid).base
    return f"{base[:-1]}-seed={seed}]" if base.endswith("]") else f"{base}[seed={seed}]"


def function_of(nodeid: str) -> str:
    """The id without any parameters."""
    return nodeid.split("[", 1)[0]


def seeds_of(function: str, nodeids: Iterable[str]) -> list[int]:
    """The seeds that `nodeids` name of the test function `function`, whatever its other parameters."""
    found = [parsed(nodeid) for nodeid in nodeids]
    return sorted({node.seed for node in found if node.seed is not None and function_of(node.base) == function})


def find(wanted: str, nodeids: Sequence[str]) -> str | None:
    """The id of the test `wanted`: itself, else the only one of the same name in a file of the same name, as pytest may have
    been started elsewhere. None for none, or for several.
    """
    if wanted in nodeids:
        return wanted
    same = [nodeid for nodeid in dict.fromkeys(nodeids) if _named(nodeid) == _named(wanted)]
    return same[0] if len(same) == 1 else None


def nearest(wanted: str, nodeids: Sequence[str]) -> list[str]:
    """A few ids that somebody who says `wanted` may mean: of tests of the same name, else with similar ids."""
    same = [nodeid for nodeid in nodeids if nodeid.rpartition("::")[2] == wanted.rpartition("::")[2]]
    return same[:_NEAR_MAX] or difflib.get_close_matches(wanted, nodeids, n=_NEAR_MAX)


def _named(nodeid: str) -> tuple[str, str]:
    """The name of the file, and what follows it."""
    path, _, rest = nodeid.partition("::")
    return path.rpartition("/")[2], rest


def parts_of(seeds: range, count: int, unit: int = 1) -> list[range]:
    """`seeds` in at most `count` parts of about the same size, cut only at multiples of `unit`."""
    first, last = seeds.start // unit, (seeds.stop - 1) // unit + 1
    count = min(count, last - first)
    cuts = [(first + (last - first) * at // count) * unit for at in range(count + 1)]
    cuts[0], cuts[-1] = seeds.start, seeds.stop
    return [range(start, stop) for start, stop in itertools.pairwise(cuts)]


def id_of(value: int | range) -> str:
    """How a seed, or a part of the seeds, is called among the parameters."""
    return f"seed={value}" if isinstance(value, int) else f"seeds={value.start}-{value.stop - 1}"
