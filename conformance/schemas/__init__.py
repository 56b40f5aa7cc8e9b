"""JSON Schemas (draft 2020-12) of what the kit writes, shipped as files beside this module and derived from the types.

`python -m conformance.schemas` writes the files anew after a type has changed; a test holds them together.
"""

from __future__ import annotations

import enum
import json
import types
import typing
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import attrs

from conformance.files import LATER

Schema = dict[str, Any]

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_PLAIN: Mapping[Any, Schema] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    type(None): {"type": "null"},
    Any: {},
}


def build() -> dict[str, Schema]:
    """File name → schema."""
    return {"certificate.schema.json": _certificate(), "event.schema.json": _event()}


def _certificate() -> Schema:
    from conformance import certificate

    schema = _object(certificate.Certificate, {"schema": {"const": certificate.SCHEMA}})
    counts = {"type": "object", "additionalProperties": {"type": "integer", "minimum": 0}}
    footer = {"counts": counts, "digest": {"type": "string", "pattern": "^[0-9a-f]{64}$"}}
    schema["properties"]["footer"] = _closed(footer)
    schema["required"].append("footer")
    return {"$schema": _DIALECT, "$id": certificate.SCHEMA, "title": "A certificate of simkit", **schema}


def _event() -> Schema:
    from conformance import events

    lines = [
        _object(cls, {"schema": {"const": events.SCHEMA}, "event": {"const": name}})
        for name, cls in events.KINDS.items()
    ]
    return {"$schema": _DIALECT, "$id": events.SCHEMA, "title": "One line of simkit's event stream", "oneOf": lines}


def _object(cls: type, first: Mapping[str, Schema]) -> Schema:
    hints = typing.get_type_hints(cls)
    fields = attrs.fields(attrs.resolve_types(cls))
    properties = {field.name: _schema(hints[field.name]) for field in fields}
    return _closed({**first, **properties}, [field.name for field in fields if LATER in field.metadata])


def _closed(properties: Mapping[str, Any], optional: Collection[str] = ()) -> Schema:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
    }


def _schema(hint: Any) -> Schema:
    if hint in _PLAIN:
        return dict(_PLAIN[hint])
    if isinstance(hint, type) and attrs.has(hint):
        return _object(hint, {})
    if isinstance(hint, type) and issubclass(hint, enum.IntEnum):
        return {"enum": [int(member) for member in hint]}
    origin = typing.get_origin(hint)
    make = _GENERIC.get(origin)
    if make is None:
        raise TypeError(f"no JSON Schema for {hint!r}; expected plain types, attrs classes, tuples, mappings, unions")
    return make(typing.get_args(hint))


def _choice(args: tuple[Any, ...]) -> Schema:
    return {"anyOf": [_schema(arg) for arg in args]}


_GENERIC: Mapping[Any, Callable[[tuple[Any, ...]], Schema]] = {
    typing.Literal: lambda args: {"enum": list(args)},
    typing.Union: _choice,
    types.UnionType: _choice,
    tuple: lambda args: {"type": "array", "items": _schema(args[0])},
    Mapping: lambda args: {"type": "object", "additionalProperties": _schema(args[1])},
}


def text(schema: Schema) -> str:
    """The text of a schema's file."""
    return json.dumps(schema, indent=1) + "\n"


def write_all(folder: Path = Path(__file__).parent) -> None:
    """Write every schema file into `folder`."""
    for name, schema in build().items():
        (folder / name).write_text(text(schema), encoding="utf-8")
