"""A case: one run as a JSON file that replays. Seeds are for people, cases for machines.

A case of the simulated world holds the tape's departures and the recorded schedule, and is replayed from these, so that
it means the same when what the seed drew has changed. The file's name is the digest of what is in it, which it holds as
`id` too: a case that was edited by hand still runs, and says so.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import attrs

from simkit import ladder as ladders
from simkit.errors import ExitCode, Problem, SimkitError
from simkit.ladder import Ladder
from simkit.strategy import Fifo, ReplaySchedule, Segment
from simkit.tape import Site, Tape, rows

if TYPE_CHECKING:
    from simkit.world import Outcome

SCHEMA = "simkit/case/2"
#: Read as well, and written again as it was: its cases have no ladder.
SCHEMA_BEFORE = "simkit/case/1"
_ID_DIGITS = 12
_AN_ID = re.compile(f"[0-9a-f]{{{_ID_DIGITS}}}")
_SIZE_MAX = 64 * 1024 * 1024
WorldName = Literal["simulated", "process"]


@functools.cache
def kit_version() -> str:
    """The version of this kit."""
    return importlib.metadata.version("simkit")


def _as_departures(value: Mapping[Site, int] | list[Any]) -> dict[Site, int]:
    return dict(Tape.from_departures(value).unused())


def _as_ladder(value: Mapping[str, Any] | Ladder | None) -> Ladder | None:
    return Ladder.from_json(value)


def _as_schedule(value: Any) -> tuple[Segment, ...]:
    return tuple((int(task), int(steps)) for task, steps in value)


@attrs.frozen
class Case:
    """One run, and what was found in it. The mappings are JSON, opaque to simkit."""

    world: WorldName
    target: Mapping[str, Any]
    scenario: Mapping[str, Any]
    seed: int | None = None
    options: Mapping[str, Any] = attrs.field(factory=dict)
    departures: Mapping[Site, int] = attrs.field(factory=dict, converter=_as_departures)
    schedule: tuple[Segment, ...] = attrs.field(default=(), converter=_as_schedule)
    expect: Mapping[str, Any] | None = None  # {"obligation": …, "anomaly": …}; None for a run that passed
    digest: str = ""  # of the trace
    kit: str = attrs.field(factory=kit_version)
    ladder: Ladder | None = attrs.field(default=None, converter=_as_ladder, repr=False)  # of the trace
    schema: str = SCHEMA
    #: How the file it was read from differs from what simkit wrote; empty where it does not. Not part of the case.
    altered: str = attrs.field(default="", eq=False, repr=False)

    @classmethod
    def of_run(
        cls,
        outcome: Outcome[Any],
        *,
        target: Mapping[str, Any],
        seed: int,
        expect: Mapping[str, Any],
        scenario: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> Case:
        """The case that has a simulated run again, as it was recorded."""
        return cls(
            world="simulated",
            target=target,
            scenario=scenario or {},
            seed=seed,
            options=options or {},
            departures=outcome.departures,
            schedule=outcome.schedule,
            expect=expect,
            digest=outcome.digest,
            ladder=Ladder.of(outcome.trace),
        )

    @classmethod
    def of_program(
        cls, outcome: Outcome[Any], name: str, *, seed: int, anomaly: str, options: Mapping[str, Any]
    ) -> Case:
        """The case of a run of a plain program, which shows the anomaly again; `name` is what `program_name` says of it."""
        expect = {"obligation": "program", "anomaly": anomaly}
        return cls.of_run(outcome, target={"program": name}, seed=seed, expect=expect, options=options)

    @property
    def id(self) -> str:
        """The first 12 hex digits of the digest of its canonical JSON."""
        return hashlib.blake2b(self._canonical(), digest_size=16).hexdigest()[:_ID_DIGITS]

    def tape(self) -> Tape:
        """A tape that repeats its choices."""
        return Tape.from_departures(self.departures, entropy=self.seed or 0)

    def strategy(self) -> ReplaySchedule:
        """A strategy that repeats its schedule. At the end of a run that met a bound somebody is still to be picked."""
        return ReplaySchedule(self.schedule, then=Fifo() if "limits" in self.options else None)

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        fields = {name: getattr(self, name) for name in _fields_of(self.schema)}
        fields["departures"] = rows(self.departures)
        fields["schedule"] = [list(segment) for segment in self.schedule]
        if "ladder" in fields:
            fields["ladder"] = None if self.ladder is None else self.ladder.to_json()
        return {"schema": self.schema, **fields}

    def text(self) -> str:
        """What its file holds: the fields, and the id that they had when it was written."""
        fields = self.to_json()
        whole = {"schema": fields.pop("schema"), "id": self.id, **fields}
        return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"

    def save(self, folder: Path | str) -> Path:
        """Write `folder/<id>.json`, whole or not at all, and return its path."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.id}.json"
        draft = path.with_suffix(f".{os.getpid()}.draft")  # another process may be saving the same case
        try:
            draft.write_text(self.text(), encoding="utf-8")
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
        return path

    @classmethod
    def load(cls, path: Path | str) -> Case:
        """Read a case; SimkitError tells a file that is missing, cut short, malformed or of another version.

        One that was edited by hand, or lies under the name of another, is `altered`.
        """
        found = cls.from_json(_read(Path(path)), where=str(path))
        name = Path(path).stem
        if found.altered or not _AN_ID.fullmatch(name) or name == found.id:
            return found
        return attrs.evolve(
            found, altered=f"edited by hand, or renamed: {name} by its file's name, {found.id} by its content"
        )

    @classmethod
    def from_json(cls, data: Any, *, where: str = "a case") -> Case:
        """Make a case of JSON values; every field that is wrong is named at once."""
        if not isinstance(data, dict):
            raise _malformed(where, f"it holds {_kind(data)}", "an object")
        schema = data.get("schema")
        if schema not in (SCHEMA, SCHEMA_BEFORE):
            raise _other_version(where, schema)
        checks = {name: _CHECKS[name] for name in _fields_of(schema)}
        wrong = [told for name, check in checks.items() if (told := check(name, data.get(name)))]
        wrong += [f"{name}: unknown field" for name in data if name not in checks and name not in {"schema", "id"}]
        if wrong:
            raise _malformed(where, "; ".join(wrong), "the fields of a case as simkit writes them")
        if data["world"] == "process" and (odd := [name for name in _SIMULATED_ONLY if data.get(name)]):
            what = f"it is of real processes, and has {', '.join(odd)}, which only simulated runs have"
            raise _malformed(where, what, "the world that the case was found in")
        found = cls(schema=schema, **{name: data[name] for name in checks if name in data})
        if data.get("id", found.id) == found.id:
            return found
        return attrs.evolve(
            found, altered=f"edited by hand: it was written as case {data['id']}, and is now {found.id}"
        )

    def _canonical(self) -> bytes:
        return json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()


def program_name(program: object) -> str:
    """What a case calls a program: its module and its name there; of what has no name, what it is."""
    return f"{getattr(program, '__module__', '?')}:{getattr(program, '__qualname__', type(program).__qualname__)}"


def _read(path: Path) -> Any:
    try:
        if path.stat().st_size > _SIZE_MAX:
            raise _malformed(str(path), f"it has more than {_SIZE_MAX} bytes", "a case of at most that size")
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SimkitError(
            Problem(
                "case-missing", "there is no such case", str(path), "a case file", "`simkit cases` lists what there is"
            )
        ) from None
    except UnicodeDecodeError:
        raise _malformed(str(path), "it is not text in UTF-8", "JSON text") from None
    except json.JSONDecodeError as error:
        cut = error.pos >= len(error.doc.rstrip()) or error.msg.startswith("Unterminated")
        short = "it is cut short" if cut else "it is not JSON"
        raise _malformed(
            f"{path}:{error.lineno}:{error.colno}", f"{short}: {error.msg}", "one whole JSON object"
        ) from None
    except RecursionError:
        raise _malformed(str(path), "it is nested too deeply", "the fields of a case as simkit writes them") from None
    except OSError as error:
        what = f"the case cannot be read: {error.strerror}"
        raise SimkitError(Problem("case-unreadable", what, str(path), "a readable file")) from error


def _malformed(where: str, what: str, expected: str) -> SimkitError:
    hint = "find it again from its seed, or fetch the file anew: it was changed or cut after simkit wrote it"
    return SimkitError(
        Problem("case-malformed", f"the case is malformed: {what}", where, expected, hint, ExitCode.USAGE)
    )


def _other_version(where: str, schema: object) -> SimkitError:
    return SimkitError(
        Problem(
            "case-version",
            f"the case has the schema {schema!r}",
            where,
            f"{SCHEMA} or {SCHEMA_BEFORE}",
            "replay it with the version of simkit that wrote it, or find it again from its seed with this one",
            ExitCode.USAGE,
        )
    )


# ---- checks: each returns what is wrong with a field, or nothing


def _text(name: str, value: Any) -> str:
    return "" if isinstance(value, str) else f"{name}: expected text, got {_kind(value)}"


def _object(name: str, value: Any) -> str:
    return "" if isinstance(value, dict) else f"{name}: expected an object, got {_kind(value)}"


def _object_or_none(name: str, value: Any) -> str:
    return "" if value is None else _object(name, value)


def _seed(name: str, value: Any) -> str:
    whole = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return "" if value is None or whole else f"{name}: expected a whole number from 0 or null, got {_kind(value)}"


def _world(name: str, value: Any) -> str:
    return "" if value in get_args(WorldName) else f"{name}: expected one of {get_args(WorldName)}, got {value!r}"


def _departures(name: str, value: Any) -> str:
    rows_of_four = isinstance(value, list) and all(
        isinstance(row, list) and [type(cell) for cell in row] == [str, str, int, int] and row[2] >= 0 and row[3] > 0
        for row in value
    )
    return "" if rows_of_four else f"{name}: expected rows of [stream label, site key, occurrence, value]"


def _schedule(name: str, value: Any) -> str:
    pairs = isinstance(value, list) and all(
        isinstance(row, list) and [type(cell) for cell in row] == [int, int] and row[0] >= 0 and row[1] > 0
        for row in value
    )
    return "" if pairs else f"{name}: expected rows of [task number, steps]"


def _ladder(name: str, value: Any) -> str:
    problem = ladders.problem_with(value)
    return f"{name}: {problem}" if problem else ""


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "nothing"}
    return names.get(type(value), f"the number {value}")


#: What is recorded of simulated runs only.
_SIMULATED_ONLY = ("departures", "schedule", "digest", "ladder")

_CHECKS: Mapping[str, Callable[[str, Any], str]] = {
    "world": _world,
    "target": _object,
    "scenario": _object,
    "seed": _seed,
    "options": _object,
    "departures": _departures,
    "schedule": _schedule,
    "expect": _object_or_none,
    "digest": _text,
    "kit": _text,
    "ladder": _ladder,
}


def _fields_of(schema: str) -> list[str]:
    """The fields of a case of this schema, in the order in which they are written."""
    return [name for name in _CHECKS if name != "ladder" or schema != SCHEMA_BEFORE]
