"""Node ids of failing seeds: `test_kv.py::test_x[seed=17]`, `test_kv.py::test_x[wal-seed=17]` beside other parameters."""

from __future__ import annotations

import re
from collections.abc import Iterable

_OF_SEED = re.compile(r"(?P<base>.*?)(?:\[(?:(?P<others>.*)-)?seed=(?P<seed>\d+)\])", re.DOTALL)


def with_seed(nodeid: str, seed: int) -> str:
    """The id of one seed of the test `nodeid`."""
    if nodeid.endswith("]"):
        return f"{nodeid[:-1]}-seed={seed}]"
    return f"{nodeid}[seed={seed}]"


def split(nodeid: str) -> tuple[str, int | None]:
    """The id of the test, and the seed; None when it is no id of a seed."""
    match = _OF_SEED.fullmatch(nodeid)
    if match is None:
        return nodeid, None
    others = match["others"]
    return match["base"] + (f"[{others}]" if others is not None else ""), int(match["seed"])


def function_of(nodeid: str) -> str:
    """The id without any parameters."""
    return nodeid.split("[", 1)[0]


def seeds_of(function: str, nodeids: Iterable[str]) -> list[int]:
    """The seeds that `nodeids` name of the test function `function`, whatever its other parameters."""
    found = [split(nodeid) for nodeid in nodeids]
    return sorted({seed for base, seed in found if seed is not None and function_of(base) == function})
