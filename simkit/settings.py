"""Settings of the test tools: the table `[tool.simkit]` of pyproject.toml, with profiles; and ranges of seeds.

Everything that is wrong is told at once, each unknown key beside the nearest one that there is.
"""

from __future__ import annotations

import difflib
import math
import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs

from simkit.errors import Problem, SimkitError
from simkit.limits import Limits

_SEEDS_MAX = 10_000_000
_SEED_END = 1 << 256
_TABLE = "tool.simkit"
_LIMITS = Limits()


@attrs.frozen
class Settings:
    """What may stand in `[tool.simkit]` and in each `[tool.simkit.profiles.NAME]`."""

    seeds: range = range(50)
    strategy: str = "random"
    store: str = ".simkit"  # cases go to its folder `cases`
    steps_max: int = 1_000_000
    step_s: float = _LIMITS.step_s  # of the processor, for one step
    memory_bytes: int = _LIMITS.memory_bytes  # what the process gains during one run
    shrink_runs: int = 1000  # 0: show failures as they were drawn
    shrink_seconds: int = 20
    explain_runs: int = 250  # 0: do not explain
    table_rows: int = 24  # of the space-time table below a failure; 0: none

    @property
    def limits(self) -> Limits:
        """The bounds of one run."""
        return Limits(steps=self.steps_max, step_s=self.step_s, memory_bytes=self.memory_bytes)


def parse_seeds(text: str) -> range:
    """`"50"` is the first fifty, `"100-199"` are those, both ends included. Raises ValueError."""
    match = re.fullmatch(r"(\d+)(?:-(\d+))?", text.strip())
    if match is None:
        raise ValueError(f"expected a number of seeds, such as 50, or a range, such as 100-199; got {text!r}")
    first, last = match.groups()
    seeds = range(int(first)) if last is None else range(int(first), int(last) + 1)
    if seeds and seeds[-1] >= _SEED_END:
        raise ValueError(f"{text!r} goes beyond the last seed, 2**256 - 1")
    if not 0 < len(seeds) <= _SEEDS_MAX:
        raise ValueError(f"{text!r} stands for {len(seeds)} seeds; expected 1 to {_SEEDS_MAX}")
    return seeds


def parse_seed(text: str) -> int:
    """One seed. Raises ValueError."""
    if re.fullmatch(r"\d{1,80}", text.strip()) is None or int(text) >= _SEED_END:
        raise ValueError(f"expected a seed: a whole number from 0 to 2**256 - 1; got {text!r}")
    return int(text)


def load(folder: Path, profile: str | None = None) -> Settings:
    """The settings of the project in `folder`, by `profile`, else by the one that `profile = …` names; SimkitError."""
    path = folder / "pyproject.toml"
    table = _table(path)
    profiles = table.pop("profiles", {})
    default = table.pop("profile", None)
    wrong = _wrong_in(_TABLE, table)
    if isinstance(profiles, Mapping):
        for name, values in profiles.items():
            place = f"{_TABLE}.profiles.{name}"
            wrong += _wrong_in(place, values) if isinstance(values, Mapping) else [f"{place}: expected a table"]
    else:
        wrong.append(f"{_TABLE}.profiles: expected tables, such as [{_TABLE}.profiles.nightly]")
        profiles = {}
    chosen = profile if profile is not None else default
    if chosen is not None and chosen not in profiles:
        asked = "--simkit-profile" if profile is not None else f"{_TABLE}.profile"
        wrong.append(f"{asked}: there is no profile {chosen!r}{_nearest(str(chosen), list(profiles))}")
    if wrong:
        raise _wrong(path, wrong)
    values = {**table, **(profiles[chosen] if chosen is not None else {})}
    return Settings(**{name: _READERS[name](value) for name, value in values.items()})


def _table(path: Path) -> dict[str, Any]:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise _wrong(path, [f"it is not TOML: {error}"]) from None
    table = document.get("tool", {}).get("simkit", {})
    if not isinstance(table, dict):
        raise _wrong(path, [f"{_TABLE}: expected a table"])
    return dict(table)


def _wrong_in(place: str, values: Mapping[str, Any]) -> list[str]:
    known = [*_READERS, *(("profile", "profiles") if place == _TABLE else ())]
    wrong = []
    for key, value in values.items():
        if key not in _READERS:
            wrong.append(f"{place}.{key}: unknown key{_nearest(key, known)}")
            continue
        try:
            _READERS[key](value)
        except ValueError as error:
            wrong.append(f"{place}.{key}: {error}")
    return wrong


def _nearest(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]!r}?" if close else f"; there are {', '.join(sorted(known)) or 'none'}"


def _wrong(path: Path, wrong: list[str]) -> SimkitError:
    what = (
        wrong[0]
        if len(wrong) == 1
        else "".join([f"{len(wrong)} settings are wrong", *(f"\n    {one}" for one in wrong)])
    )
    return SimkitError(
        Problem(
            "settings-malformed",
            what,
            str(path) if path.exists() else f"{path.parent}, which has no {path.name}",
            f"the keys of [{_TABLE}]: {', '.join(_READERS)}, profile, profiles",
            "docs/pytest.md lists what each key means",
        )
    )


# ---- readers: a value of TOML to a value of Settings, or ValueError


def _seeds(value: Any) -> range:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError(f"expected a number of seeds, or a range such as '100-199'; got {value!r}")  # noqa: TRY004
    return parse_seeds(str(value))


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"expected text; got {value!r}")
    return value


def _strategy(value: Any) -> str:
    from simkit.trials import is_known, known_names

    if not is_known(value):
        raise ValueError(f"expected one of {known_names()}; got {value!r}")
    return str(value)


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"expected a whole number from 0; got {value!r}")
    return value


def _positive(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"expected a whole number from 1; got {value!r}")
    return value


def _seconds(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise ValueError(f"expected a number of seconds above 0; got {value!r}")
    return float(value)


_READERS: dict[str, Callable[[Any], Any]] = {
    "seeds": _seeds,
    "strategy": _strategy,
    "store": _text,
    "steps_max": _positive,
    "step_s": _seconds,
    "memory_bytes": _positive,
    "shrink_runs": _whole,
    "shrink_seconds": _whole,
    "explain_runs": _whole,
    "table_rows": _whole,
}
