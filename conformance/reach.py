"""What a manifest rules out: promises that can never be put to the test with it, and which line of it says so."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from conformance.manifest import Manifest

_Check = Callable[["Manifest"], str]


def _without(kind: str) -> _Check:
    def check(manifest: Manifest) -> str:
        return "" if kind in manifest.operations.supported else f"[operations] supported has no {kind!r}"

    return check


def _operations_hidden(manifest: Manifest) -> str:
    return "" if manifest.shows.operations else "[shows] operations is off"


def _ids_hidden(manifest: Manifest) -> str:
    shown = manifest.shows.operations or manifest.shows.attempts
    return "" if shown else "[shows] operations and attempts are off"


_RULED_OUT: Final[Mapping[str, _Check]] = {
    "DUR-7": _ids_hidden,
    "DUR-12": _operations_hidden,
    "SCH-1": _without("sleep"),
    "SCH-4": _without("wait"),
    "SIG-1": _without("wait"),
    "SIG-2": _without("wait"),
}


def ruled_out(obligation: str, manifest: Manifest) -> str:
    """Why this obligation cannot be put to the test with this manifest; nothing when it can."""
    check = _RULED_OUT.get(obligation)
    return check(manifest) if check else ""
