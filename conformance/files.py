"""Files of the kit's own: canonical JSON and its digest, atomic writes, and system errors told so that one can act on
them.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from simkit.errors import Problem, SimkitError

#: Marks a field, in its metadata, that files of earlier builds do not have.
LATER = "later"

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_REFUSED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


def canonical(value: Any) -> str:
    """The one JSON text of `value`: sorted keys, no spaces, no NaN. Equal values have equal texts."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


class NotPlainError(ValueError):
    """JSON that readers may take in different ways; its text says what of it."""


def parse_plain(text: str) -> Any:
    """The value of a JSON text. Raises `NotPlainError` for two equal keys in an object, of which most readers see the last one
    only, for NaN and its like, and for what is nested more deeply than can be read; else `json.JSONDecodeError`.
    """
    try:
        return json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
    except RecursionError:
        raise NotPlainError("it is nested too deeply") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        again = next(key for key, n in Counter(key for key, _ in pairs).items() if n > 1)
        raise NotPlainError(f"the key {again!r} occurs more than once in one object")
    return found


def _no_number(constant: str) -> object:
    raise NotPlainError(f"{constant} is no JSON")


def digest(value: Any) -> str:
    """Hex blake2b (256 bits) of the canonical JSON of `value`."""
    return hashlib.blake2b(canonical(value).encode(), digest_size=32).hexdigest()


def write_atomic(path: Path, text: str) -> None:
    """Write `text` to `path` whole or not at all, making folders as needed.

    Written beside the target, synced, then renamed over it: a reader, or a crash, sees the old file or the new one.
    Raises SimkitError when the disk is full or the folder may not be written.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with telling(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with temporary.open("w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        finally:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)


@contextmanager
def telling(path: Path) -> Iterator[None]:
    """Turn an OSError about `path` into a SimkitError with a hint."""
    try:
        yield
    except OSError as error:
        raise SimkitError(explain(error, path)) from error


def explain(error: OSError, path: Path) -> Problem:
    """The problem that `error`, met at `path`, stands for."""
    where = str(path)
    if error.errno in _FULL:
        return Problem(
            "disk-full",
            f"no space left while writing ({error.strerror})",
            where,
            "room for a few megabytes of cases, certificates and run journals",
            "free some space, or choose another place with --store DIR; what was judged is printed and stays valid",
        )
    if error.errno in _REFUSED:
        return Problem(
            "folder-unwritable",
            f"the file system refused the write ({error.strerror})",
            where,
            "a folder this user may create files in",
            "change its permissions, or choose another place with --store DIR",
        )
    if error.errno in {errno.ENOTDIR, errno.EEXIST, errno.EISDIR}:
        return Problem(
            "path-in-the-way",
            f"something of another kind is in the way ({error.strerror})",
            where,
            "a folder, or a path that does not exist yet",
            "move it away, or choose another place with --store DIR / --out FILE",
        )
    what = f"cannot be used: {error.strerror or error}"
    return Problem(
        "file-unusable", what, where, "a readable, writable path", "choose another place with --store DIR / --out FILE"
    )
