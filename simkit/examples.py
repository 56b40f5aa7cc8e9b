"""Arguments of a test as JSON and back, so that a case can hold them; bytes, tuples and references go in an envelope."""

from __future__ import annotations

import json
import math
from typing import Any

import attrs

_KEY = "$simkit"


@attrs.frozen
class Reference:
    """Something that a run itself makes, by its name; see `simkit.stateful`."""

    name: str


class NotJsonError(TypeError):
    """A value that no case can hold."""


def encoded(value: Any) -> Any:
    """As JSON that `decoded` gives back equal and of the same types; NotJsonError."""
    if value is None or isinstance(value, bool | str) or type(value) is int:
        return value
    if type(value) is float and math.isfinite(value):
        return value
    if type(value) is list:
        return [encoded(one) for one in value]
    if type(value) is dict and all(type(key) is str for key in value) and _KEY not in value:
        return {key: encoded(one) for key, one in value.items()}
    if type(value) is bytes:
        return {_KEY: "bytes", "hex": value.hex()}
    if type(value) is tuple:
        return {_KEY: "tuple", "items": [encoded(one) for one in value]}
    if type(value) is Reference:
        return {_KEY: "reference", "name": value.name}
    raise NotJsonError(f"{type(value).__name__} is not JSON: {value!r}"[:200])


def decoded(value: Any) -> Any:
    """What `encoded` was given. Raises ValueError for an envelope that it did not write."""
    if isinstance(value, list):
        return [decoded(one) for one in value]
    if not isinstance(value, dict):
        return value
    match value:
        case {"$simkit": "bytes", "hex": str(digits)}:
            return bytes.fromhex(digits)
        case {"$simkit": "tuple", "items": list(items)}:
            return tuple(decoded(one) for one in items)
        case {"$simkit": "reference", "name": str(name)}:
            return Reference(name)
        case {"$simkit": other}:
            raise ValueError(f"unknown envelope {json.dumps(other)}")
    return {key: decoded(one) for key, one in value.items()}
