"""Histories of Porcupine's test data, and what is known of them: `data/porcupine.tar.xz`, licence inside.

102 logs of an etcd under Jepsen (a compare-and-set register that begins as nil), and six of a key-value store with appends.
The verdicts are those of Porcupine's own tests (Anish Athalye, github.com/anishathalye/porcupine, MIT licence).
"""

from __future__ import annotations

import functools
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from simkit.checking import UNKNOWN, Model, Operation, models

ARCHIVE = Path(__file__).parent / "data" / "porcupine.tar.xz"
#: Numbers of the linearizable ones among the etcd logs; there is no number 95.
LINEARIZABLE = {2, 5, 7, 18, 25, 31, 38, 45, 48, 49, 51, 53, 56, 67, 75, 76, 80, 87, 92, 98, 100, 101, 102}
ETCD = {f"etcd_{number:03d}": number in LINEARIZABLE for number in range(103) if number != 95}
KEY_VALUE = {f"{clients}-{kind}": kind == "ok" for clients in ("c01", "c10", "c50") for kind in ("ok", "bad")}
_LINE = re.compile(r"INFO\s+jepsen\.util\s+-\s+(\d+)\s+:(invoke|ok|fail|info)\s+:(read|write|cas)\s+(.*?)\s*$")
_EDN = re.compile(r'\{:process (\d+), :type :(\w+), :f :(\w+), :key "(.*)", :value (?:nil|"(.*)")\}')

Event = tuple[str, str, tuple[Any, ...], Any]  # process, type, what was asked, answer


@functools.cache
def texts() -> dict[str, str]:
    """Every file of the archive, by its name without folder and suffix."""
    with tarfile.open(ARCHIVE) as archive:
        return {Path(one.name).stem: _text(archive, one) for one in archive.getmembers() if one.isfile()}


def _text(archive: tarfile.TarFile, member: tarfile.TarInfo) -> str:
    file = archive.extractfile(member)
    assert file is not None
    return file.read().decode()


def history(name: str) -> tuple[list[Operation], Model]:
    """A history, and the model to judge it by."""
    if name in ETCD:
        return _operations(_etcd(texts()[name])), models.cas_register()
    return _operations(_key_value(texts()[name])), models.key_value(missing="")


def _operations(events: Iterator[Event]) -> list[Operation]:
    """Positions in the log are the moments. What has no known outcome does not return."""
    begun: dict[str, tuple[int, tuple[Any, ...]]] = {}
    operations = []
    for moment, (process, kind, asked, answer) in enumerate(events):
        if kind == "invoke":
            begun[process] = moment, asked
            continue
        called, question = begun.pop(process)
        operations.append(Operation(process, question, answer, called, None if answer is UNKNOWN else moment))
    operations += [Operation(process, asked, UNKNOWN, called, None) for process, (called, asked) in begun.items()]
    return operations


def _etcd(text: str) -> Iterator[Event]:
    for line in text.splitlines():
        found = _LINE.match(line)
        if found is None:
            continue
        process, kind, name, value = found.groups()
        if kind == "invoke":
            yield process, kind, (name, *map(int, re.findall(r"\d+", value))), None
        elif name == "cas" and value.startswith("["):
            yield process, kind, (), kind == "ok"
        elif kind == "ok":
            yield process, kind, (), (None if value == "nil" else int(value)) if name == "read" else None
        elif name == "read":
            yield process, kind, (), UNKNOWN  # timed out; others that did so are not told of again


def _key_value(text: str) -> Iterator[Event]:
    for line in text.splitlines():
        found = _EDN.match(line)
        assert found is not None, line
        process, kind, name, key, value = found.groups()
        asked = (name, key) if name == "get" else (name, key, value)
        yield process, kind, asked, value if name == "get" else None
