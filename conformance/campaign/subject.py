"""The subject of a certification: the files of the adapter, and of what else its manifest says is judged, by their digests.

Files that a harness or anybody else puts beside them while it is certified are no part of it, and neither are those that this
process writes its report to.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from simkit.errors import ExitCode, Problem, SimkitError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from conformance.targets import Target

#: Files that are named in a message.
SHOWN_MAX = 5


def bytes_of(target: Target, store: Path) -> dict[str, str]:
    """The digest of each file that is judged: the adapter's own, and those of the sources that its manifest names. Never
    raises, for it is asked once more when a whole campaign hangs on it: what is not there is left out.
    """
    found = adapter_bytes(target.folder, store)
    for source in target.manifest.install.sources:
        root = (target.folder / source).resolve()
        if root.is_file():
            found[source] = _digest(root)
        else:
            found |= {f"{source}/{name}": digest for name, digest in adapter_bytes(root, store).items()}
    return found


def adapter_bytes(folder: Path, store: Path) -> dict[str, str]:
    """The digest of each file of an adapter, by its path in the folder; of none in `store`, which is the kit's own, in
    compiled code, or in folders whose names begin with a dot, and of none that is standard output or error of this process.
    """
    found: dict[str, str] = {}
    own, reports = store.resolve(), _reports()
    for name, folders, files in os.walk(folder):  # it passes over what disappears as it goes
        here = Path(name)
        folders[:] = [
            one for one in folders if one != "__pycache__" and not one.startswith(".") and (here / one).resolve() != own
        ]
        found |= {
            (here / file).relative_to(folder).as_posix(): _digest(here / file)
            for file in files
            if (here / file).is_file() and not _is_one_of(here / file, reports)
        }
    return dict(sorted(found.items()))


def _reports() -> frozenset[tuple[int, int]]:
    """Standard output and error, by device and inode: a report that is sent into the adapter's folder grows all the while."""
    found = set()
    for descriptor in (1, 2):
        with suppress(OSError):  # closed
            found.add(_identity(os.fstat(descriptor)))
    return frozenset(found)


def _is_one_of(path: Path, files: frozenset[tuple[int, int]]) -> bool:
    with suppress(OSError):  # gone meanwhile
        return _identity(path.stat()) in files
    return False


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


def _digest(path: Path) -> str:
    """The digest of a file; where the system refuses it, why: a harness of the same user cannot read it either."""
    try:
        return hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest()
    except OSError as error:
        return f"unreadable: {error.strerror}"


def changed(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Files of before that are others now, or gone; what a harness has left beside them is no part of it."""
    return [name for name, digest in before.items() if after.get(name) != digest]


def demand_sources(target: Target, found: Mapping[str, str]) -> None:
    """Raise SimkitError where the manifest names a source of which no file was `found`."""
    for source in target.manifest.install.sources:
        if not any(name == source or name.startswith(f"{source}/") for name in found):
            raise SimkitError(
                Problem(
                    "source-missing",
                    f"install.sources names {source!r}, and there is no file at {(target.folder / source).resolve()}",
                    str(target.folder / "adapter.toml"),
                    "files and folders that are part of what is judged, by their paths from the adapter's folder",
                    "the certificate names them by their digest; correct the path, or leave it out",
                    ExitCode.USAGE,
                )
            )


def not_one_target(target: Target, changed: Sequence[str]) -> Problem:
    more = ", …" if len(changed) > SHOWN_MAX else ""
    return Problem(
        "target-changed",
        f"{', '.join(changed[:SHOWN_MAX])}{more} of {target.name}: changed while it was certified",
        str(target.folder),
        "one and the same adapter in all runs: the certificate names it by its digest",
        "certify again, and let nobody edit it meanwhile; what a harness writes belongs in SIMKIT_STATE",
        ExitCode.TARGET,
    )
