"""The subject of a certification: the files of the adapter, and of what else its manifest says is judged, by their digests."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from conformance.files import telling
from simkit.errors import ExitCode, Problem, SimkitError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from conformance.targets import Target

#: Files that are named in a message.
SHOWN_MAX = 5
#: Folders of the kit's and of tools, in which nothing of an adapter lies; and all whose names begin with a dot.
_NOT_OF_IT = frozenset({"__pycache__"})


def bytes_of(target: Target, store: Path) -> dict[str, str]:
    """The digest of each file that is judged: the adapter's own, and those of the sources that its manifest names."""
    found = adapter_bytes(target.folder, store)
    for source in target.manifest.install.sources:
        root = (target.folder / source).resolve()
        inside = adapter_bytes(root, store) if root.is_dir() else _one_file(root)
        if not inside:
            raise SimkitError(_no_source(target, source, root))
        found |= {f"{source}/{name}": digest for name, digest in inside.items()}
    return found


def _one_file(path: Path) -> dict[str, str]:
    if not path.is_file():
        return {}
    with telling(path):
        return {path.name: hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest()}


def adapter_bytes(folder: Path, store: Path) -> dict[str, str]:
    """The digest of each file of an adapter, by its path in the folder; of none in `store`, which is the kit's own."""
    found = {}
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        strange = any(part in _NOT_OF_IT or part.startswith(".") for part in inside.parts[:-1])
        if strange or path.is_relative_to(store.absolute()) or not path.is_file():
            continue
        with telling(path):
            found[inside.as_posix()] = hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest()
    return found


def changed(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Files of before that are others now, or gone; what a harness has left beside them is no part of it."""
    return [name for name, digest in before.items() if after.get(name) != digest]


def _no_source(target: Target, source: str, root: Path) -> Problem:
    return Problem(
        "source-missing",
        f"install.sources names {source!r}, and there is no file at {root}",
        str(target.folder / "adapter.toml"),
        "files and folders that are part of what is judged, by their paths from the adapter's folder",
        "the certificate names them by their digest; correct the path, or leave it out",
        ExitCode.USAGE,
    )


def not_one_target(target: Target, changed: Sequence[str]) -> Problem:
    return Problem(
        "target-changed",
        f"{', '.join(changed[:SHOWN_MAX])} of {target.name}: changed while it was certified",
        str(target.folder),
        "one and the same adapter in all runs: the certificate names it by its digest",
        "certify again, and let nobody edit it meanwhile; what a harness writes belongs in SIMKIT_STATE",
        ExitCode.TARGET,
    )
