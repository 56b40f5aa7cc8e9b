"""Promises: what the receiver behind each tool promises, which alone decides what an unknown outcome permits.

Some names stand for a promise each, and are there always. A tool of one's own is *declared*, by its name, in a file that the
server and the workers are given: `{"fax": {"promise": "blind"}, "bank": {"promise": "keyed", "tries": 5}}`. The server writes
what is declared down with every operation as that is admitted, where it stays; a worker is given nothing of a tool that it has
not declared, or has declared to promise something else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from reference_runtime import jsontext
from reference_runtime.guessing import meant
from reference_runtime.model import Json, Refusal, Semantics

#: The tools that are there always.
SEMANTICS: Mapping[str, Semantics] = {
    "ledger": "keyed",
    "registry": "lookup",
    "mailer": "blind",
    "reader": "read",
    "flaky": "keyed",
    "fenced": "fenced",
    "operation": "keyed",
}
#: Tools that belong to a kind of leaf and are not called by name.
MODEL, STORE, CHECKER = "model", "store", "checker"
#: What a tool of one's own may promise.
DECLARABLE: tuple[Semantics, ...] = ("read", "keyed", "fenced", "lookup", "blind")
#: Names that are taken; at `desk` it is asked who may approve.
TAKEN = frozenset({*SEMANTICS, MODEL, STORE, CHECKER, "desk"})
LIMITS = ("tries", "elapsed_ns", "key_lifetime_ns")
_NUMBER_MAX = 2**62
#: A name is a part of an address.
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}", re.ASCII)


@attrs.frozen
class Promise:
    """What a tool promises, and the limits that hold for each of its operations whatever a plan or the server says more.

    `tries`: calls at most; `elapsed_ns`: how long after the first call one more may be made; `key_lifetime_ns`: how long the
    receiver remembers a key, at least, where it takes one.
    """

    semantics: Semantics
    tries: int | None = None
    elapsed_ns: int | None = None
    key_lifetime_ns: int | None = None

    @property
    def limits(self) -> Json:
        """The limits that there are, by name."""
        return {name: value for name in LIMITS if (value := getattr(self, name)) is not None}


KNOWN: Mapping[str, Promise] = {name: Promise(semantics) for name, semantics in SEMANTICS.items()}


def check_declared(tools: Mapping[str, Promise], where: str = "tools") -> None:
    """Refuse tools of one's own that cannot be. Raises `Refusal` (`bad-tools`)."""
    for name, one in tools.items():
        if name in TAKEN:
            raise _bad(where, name, f"the name is taken; taken are {', '.join(sorted(TAKEN))}")
        if not _NAME.fullmatch(name):
            raise _bad(where, name, "a name has 1 to 64 of a to z, 0 to 9, _ and -, and begins with a letter")
        if one.semantics not in DECLARABLE:
            raise _bad(where, name, f"promise is {one.semantics!r:.80}; expected one of {', '.join(DECLARABLE)}")
        for limit, value in one.limits.items():
            low = 0 if limit == "elapsed_ns" else 1
            if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= _NUMBER_MAX:
                raise _bad(
                    where, name, f"{limit} is {value!r:.80}; expected a whole number from {low} to {_NUMBER_MAX}"
                )
        if one.key_lifetime_ns is not None and one.semantics not in ("keyed", "fenced"):
            raise _bad(where, name, f"it has a key_lifetime_ns, and takes no key as it is {one.semantics}")


def load_declared(*paths: str) -> dict[str, Promise]:
    """The tools that are declared in files. Raises `Refusal`: `tools-unreadable`, or `bad-tools` with file, tool and field."""
    found: dict[str, Promise] = {}
    for path in paths:
        for name, one in _declared_in(path).items():
            if found.setdefault(name, one) != one:
                raise _bad(
                    path, name, "it is declared otherwise in another file; expected one declaration of each tool"
                )
    return found


def _declared_in(path: str) -> dict[str, Promise]:
    try:
        data = jsontext.read(Path(path).read_bytes(), unique=True)
    except OSError as error:
        raise Refusal("tools-unreadable", f"{path}: {error.strerror or error}") from error
    except ValueError as error:
        raise Refusal("bad-tools", f"{path}: {error}") from error
    if not isinstance(data, dict):
        raise Refusal(
            "bad-tools", f'{path} is {data!r:.80}; expected an object, as in {{"fax": {{"promise": "blind"}}}}'
        )
    tools = {name: _read(path, name, one) for name, one in data.items()}
    check_declared(tools, path)
    return tools


def _read(where: str, name: str, data: Any) -> Promise:
    fields = ("promise", *LIMITS)
    expected = f"expected an object with a promise of {', '.join(DECLARABLE)}"
    if not isinstance(data, dict):
        raise _bad(where, name, f"it is {data!r:.80}; {expected}")
    if unknown := [field for field in data if field not in fields]:
        guess = meant(unknown[0], fields)
        raise _bad(where, name, f"unknown key {', '.join(unknown):.120}; it has {', '.join(fields)}{guess}")
    if "promise" not in data:
        raise _bad(where, name, f"it is {data!r:.80}; {expected}")
    limits: Json = {limit: data.get(limit) for limit in LIMITS}
    return Promise(data["promise"], **limits)


def _bad(where: str, name: str, what: str) -> Refusal:
    return Refusal("bad-tools", f"{where}: tool {name!r:.80}: {what}")


def pair(tool: str, semantics: str) -> str:
    """A tool with what it promises, in words that are no other's: no name has a blank in it."""
    return f"{tool} {semantics}"
