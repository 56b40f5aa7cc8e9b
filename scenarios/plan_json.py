"""Plans as JSON and back: one table of fields for every kind of operation.

Fields that have their default are not written, but for those that `call` has always had. Reading raises `PlanError` with
the place, the field and what was expected.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

from scenarios.operation import (
    Allowance,
    Approve,
    Artifact,
    Branch,
    Call,
    Check,
    Child,
    Compensate,
    Fail,
    Loop,
    Model,
    Nondet,
    Op,
    Par,
    Race,
    Reserve,
    Seq,
    Sleep,
    Wait,
)
from scenarios.unrolling import PlanError

DEPTH_MAX = 100

CLASSES: Final[Mapping[str, type[Op]]] = {
    cls.__name__.lower(): cls
    for cls in (
        Seq, Par, Race, Branch, Loop, Call, Wait, Sleep, Approve, Model, Child, Artifact, Check, Fail, Nondet, Compensate
    )
}  # fmt: skip
_INTEGERS = ("times", "ns", "tries", "elapsed_ns", "timeout_ns", "validity_ns", "tokens", "uses", "size", "parts")
_TEXTS = ("service", "signal", "on", "of", "prompt", "name", "reason", "kind", "secret")
_FLAGS = ("tolerate", "detached", "required")
_LISTS = ("carries", "script", "lookups")
_TYPES: Final[Mapping[str, type]] = {
    **dict.fromkeys(_INTEGERS, int),
    **dict.fromkeys(_TEXTS, str),
    **dict.fromkeys(_FLAGS, bool),
    **dict.fromkeys((*_LISTS, "children"), list),
    **dict.fromkeys(("params", "plan", "share"), dict),
}
_ALWAYS = ("params", "carries", "script")  # what a call has always written


def dump(op: Op) -> dict[str, Any]:
    """An operation as JSON."""
    data: dict[str, Any] = {"op": type(op).__name__.lower(), "id": op.id}
    for field in attrs.fields(type(op)):
        value = getattr(op, field.name)
        if field.name == "id" or (_is_default(field, value) and not (isinstance(op, Call) and field.name in _ALWAYS)):
            continue
        match field.name:
            case "children":
                data["children"] = [dump(child) for child in value]
            case "root":
                data["plan"] = {"version": 1, "root": dump(value)}
            case "share":
                data["share"] = dump_allowance(value)
            case name:
                data[name] = list(value) if isinstance(value, tuple) else dict(value) if name == "params" else value
    return data


def _is_default(field: attrs.Attribute[Any], value: object) -> bool:
    if field.default is attrs.NOTHING:
        return False
    default: Any = field.default
    default = default.factory() if isinstance(default, attrs.Factory) else default  # type: ignore[arg-type]
    return bool(value == default)


def load(data: object, where: str, depth: int = 0) -> Op:
    """An operation from JSON, found at `where`. Raises `PlanError`."""
    if not isinstance(data, dict):
        raise PlanError(f"{where}: an operation is an object; got {data!r:.80}")
    kind, id_ = data.get("op"), data.get("id")
    if not isinstance(kind, str) or kind not in CLASSES or not isinstance(id_, str):
        raise PlanError(f"{where}: op {kind!r} with id {id_!r}; expected one of {', '.join(CLASSES)} and a string id")
    if depth > DEPTH_MAX:
        raise PlanError(f"{where} ({id_}): deeper than {DEPTH_MAX} operations")
    fields = attrs.fields_dict(CLASSES[kind])
    values: dict[str, Any] = {"id": id_}
    for name, field in fields.items():
        if name != "id" and (
            field.default is attrs.NOTHING or data.get("plan" if name == "root" else name) is not None
        ):
            values[name] = _field(data, field, f"{where} ({id_})", f"{where}/{id_}", depth)
    return CLASSES[kind](**values)


def _field(data: Mapping[str, Any], field: attrs.Attribute[Any], who: str, where: str, depth: int) -> object:
    name = "plan" if field.name == "root" else field.name
    value: Any = data.get(name)
    wanted = _TYPES[name]
    if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
        raise PlanError(f"{who}: {name} must be {wanted.__name__}; got {value!r:.80}")
    match name:
        case "children":
            return tuple(load(child, f"{where}[{n}]", depth + 1) for n, child in enumerate(data[name]))
        case "plan":
            return load(_root(value, who), where, depth + 1)
        case "share":
            return load_allowance(value, who)
        case "carries" | "script" | "lookups":
            return tuple(_texts(data[name], f"{who}: {name}"))
        case _:
            return value


def _texts(values: list[object], who: str) -> list[str]:
    found = [value for value in values if isinstance(value, str)]
    if len(found) < len(values):
        raise PlanError(f"{who} must be a list of strings; got {values!r:.80}")
    return found


def _root(data: object, who: str) -> object:
    if not isinstance(data, dict) or data.get("version") != 1 or "root" not in data:
        raise PlanError(f"{who}: a plan is an object with version 1 and a root; got {data!r:.120}")
    return data["root"]


def dump_allowance(allowance: Allowance) -> dict[str, Any]:
    """An allowance as JSON, without what it does not limit."""
    data = attrs.asdict(allowance, recurse=False, filter=lambda _, value: value is not None)
    return {name: attrs.asdict(value) if isinstance(value, Reserve) else value for name, value in data.items()}


def load_allowance(data: object, who: str) -> Allowance:
    """An allowance from JSON. Raises `PlanError`."""
    if not isinstance(data, dict):
        raise PlanError(f"{who}: an allowance is an object; got {data!r:.80}")
    reserve = data.get("reserve")
    plain = {name: value for name, value in data.items() if name != "reserve"}
    try:
        return Allowance(**_numbers(plain, who), reserve=None if reserve is None else Reserve(**_numbers(reserve, who)))
    except TypeError:
        known = ", ".join(attrs.fields_dict(Allowance))
        raise PlanError(f"{who}: an allowance of {', '.join(map(str, data))}; expected some of {known}") from None


def _numbers(data: object, who: str) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise PlanError(f"{who}: a reserve is an object; got {data!r:.80}")
    for name, value in data.items():
        if not isinstance(value, int) or isinstance(value, bool):
            raise PlanError(f"{who}: an allowance of {value!r:.40} {name}; expected a whole number")
    return data
