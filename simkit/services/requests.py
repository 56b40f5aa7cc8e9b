"""Requests from the wire: JSON, strictly; `BadRequestError` names the field that is off. No I/O."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any, Final

import attrs

from simkit.services.contracts import (
    ANSWER_BYTES_MAX,
    CONTRACTS,
    LOOKUP_ENTRIES,
    SCRIPT_ENTRIES,
    BadRequestError,
    Request,
)

#: Names of a request's fields, in the order in which messages list them.
FIELDS: Final = tuple(field.name for field in attrs.fields(Request))
#: Most parts of one artifact.
PARTS_MAX: Final = 10_000

_ACTIONS: Final = {
    ("store", False): ("put", "commit", "abort"),
    ("store", True): ("get", "list"),
    ("operation", False): ("start", "cancel", "delete"),
    ("operation", True): ("get",),
}


def load_json(text: bytes, *, field: str) -> Any:
    """JSON from the wire, strictly: UTF-8, finite numbers, bounded depth. Raises `BadRequestError` naming `field`."""
    try:
        return json.loads(text.decode("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise BadRequestError(field, f"not JSON ({error!s:.100}); got {text[:80]!r}") from None


def parse_request(data: object, *, given: Mapping[str, object] | None = None) -> Request:
    """A request from decoded JSON. What is `given` by the transport (a path, a header) may not stand in `data`."""
    if not isinstance(data, dict):
        raise BadRequestError("body", f"expected a JSON object; got {data!r:.80}")
    if unknown := sorted(set(data) - set(FIELDS)):
        raise BadRequestError(unknown[0], f"unknown field; a request has {', '.join(FIELDS)}")
    if twice := sorted(set(data) & set(given or {})):
        raise BadRequestError(twice[0], "given by method, path or header here, not by the body")
    fields = {**data, **(given or {})}
    service, lookup = _known_service(fields.get("service")), _flag(fields, "lookup")
    request = Request(
        service=service,
        run=_text(fields, "run"),
        op=_text(fields, "op"),
        key=_optional_text(fields, "key"),
        params=_object(fields, "params"),
        carries=_nonces(fields),
        script=_script(fields, service, lookup=lookup),
        lookup=lookup,
        token=_optional_count(fields, "token"),
        remaining_ns=_optional_count(fields, "remaining_ns", least=None),
        secret=_secret(fields),
        part=_optional_count(fields, "part", least=1),
        subject=_optional_text(fields, "subject"),
        version=_optional_count(fields, "version", least=1),
        digest=_optional_text(fields, "digest"),
        actor=_optional_text(fields, "actor"),
    )
    _check(request)
    return request


def _check(request: Request) -> None:
    contract = CONTRACTS[request.service]
    if request.lookup and not contract.looked_up:
        known = ", ".join(name for name, one in CONTRACTS.items() if one.looked_up)
        raise BadRequestError("lookup", f"{request.service} cannot be looked up; {known} can")
    if not request.lookup and not contract.called:
        raise BadRequestError("lookup", f"{request.service} can only be looked up")
    try:
        request.fingerprint()
    except ValueError as error:
        raise BadRequestError("params", f"{error!s:.100}; expected finite numbers") from None
    _param_count(request, "answer_bytes", least=0, most=ANSWER_BYTES_MAX)
    if check := _CHECKS.get(request.service):
        check(request)


# -- what single services ask for ------------------------------------------------------------------------------------


def _check_model(request: Request) -> None:
    if not isinstance(request.params.get("prompt", ""), str):
        raise BadRequestError("params.prompt", f"expected a string; got {request.params['prompt']!r:.80}")
    _param_count(request, "tokens", least=0)
    _param_count(request, "uses", least=0)


def _check_store(request: Request) -> None:
    action = _action(request)
    _param_text(request, "location")
    if action in {"put", "commit"}:
        parts = _param_count(request, "parts", least=1, most=PARTS_MAX, required=True)
        if action == "put" and (request.part is None or request.part > parts):
            raise BadRequestError("part", f"expected the number of one of {parts} parts, from 1; got {request.part!r}")
    if action == "put":
        _param_data(request)
    if action == "commit" and request.digest is None:
        raise BadRequestError("digest", "expected the sha256 of the whole content, in hex; got None")


def _check_operation(request: Request) -> None:
    action = _action(request)
    if action in {"cancel", "delete"} or (request.lookup and "name" in request.params):
        _param_text(request, "name")
    _param_count(request, "ns", least=0)
    if not isinstance(request.params.get("stubborn", False), bool):
        raise BadRequestError("params.stubborn", f"expected true or false; got {request.params['stubborn']!r:.80}")


def _check_desk(request: Request) -> None:
    if request.actor is None:
        _param_text(request, "actor")


def _check_checker(request: Request) -> None:
    for name in ("subject", "version", "digest"):
        if getattr(request, name) is None:
            raise BadRequestError(name, "a checker is asked about a subject, its version and its digest; got None")


_CHECKS: Final = {
    "model": _check_model,
    "store": _check_store,
    "operation": _check_operation,
    "desk": _check_desk,
    "checker": _check_checker,
}


def _action(request: Request) -> str:
    known = _ACTIONS[request.service, request.lookup]
    if request.service == "operation" and request.lookup and "action" not in request.params:
        return "get"
    action = request.params.get("action", "start" if request.service == "operation" else None)
    if action not in known:
        raise BadRequestError("params.action", f"expected one of {', '.join(known)}; got {action!r:.80}")
    return str(action)


def _param_text(request: Request, name: str) -> None:
    value = request.params.get(name)
    if not isinstance(value, str) or not value:
        raise BadRequestError(f"params.{name}", f"expected a string that is not empty; got {value!r:.80}")


def _param_count(request: Request, name: str, *, least: int, most: int | None = None, required: bool = False) -> int:
    """The whole number `params` has under `name`, `least` when it has none."""
    value = request.params.get(name)
    if value is None and not required:
        return least
    if not _is_count(value, least, most):
        bounds = f"{least} to {most}" if most is not None else f"{least} or more"
        raise BadRequestError(f"params.{name}", f"expected a whole number, {bounds}; got {value!r:.80}")
    assert isinstance(value, int)
    return value


def _param_data(request: Request) -> None:
    value = request.params.get("data")
    try:
        base64.b64decode(value, validate=True)  # type: ignore[arg-type]  # a wrong type is what is looked for
    except (TypeError, ValueError):
        raise BadRequestError("params.data", f"expected bytes in base64; got {value!r:.80}") from None


# -- fields of every request -----------------------------------------------------------------------------------------


def _known_service(name: object) -> str:
    if not isinstance(name, str) or name not in CONTRACTS:
        raise BadRequestError("service", f"no service {name!r:.80}; there are {', '.join(CONTRACTS)}")
    return name


def _text(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or not value:
        raise BadRequestError(name, f"expected a string that is not empty; got {value!r:.80}")
    return value


def _optional_text(fields: Mapping[str, Any], name: str) -> str | None:
    return None if fields.get(name) is None else _text(fields, name)


def _secret(fields: Mapping[str, Any]) -> str | None:
    """The one field whose value no message may repeat."""
    value = fields.get("secret")
    if value is not None and (not isinstance(value, str) or not value):
        raise BadRequestError("secret", f"expected a string that is not empty; got a {type(value).__name__}")
    return value


def _is_count(value: object, least: int | None, most: int | None = None) -> bool:
    if not isinstance(value, int) or isinstance(value, bool):
        return False
    return (least is None or value >= least) and (most is None or value <= most)


def _optional_count(fields: Mapping[str, Any], name: str, *, least: int | None = 0) -> int | None:
    value = fields.get(name)
    if value is not None and not _is_count(value, least):
        bounds = "" if least is None else f", {least} or more"
        raise BadRequestError(name, f"expected a whole number{bounds}; got {value!r:.80}")
    return value


def _object(fields: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = fields.get(name, {})
    if not isinstance(value, dict):
        raise BadRequestError(name, f"expected an object; got {value!r:.80}")
    return value


def _nonces(fields: Mapping[str, Any]) -> dict[str, str]:
    carries = _object(fields, "carries")
    for op, nonce in carries.items():
        if not isinstance(nonce, str):
            raise BadRequestError(f"carries.{op:.80}", f"expected a nonce, a string; got {nonce!r:.80}")
    return carries


def _script(fields: Mapping[str, Any], service: str, *, lookup: bool) -> tuple[str, ...]:
    script = fields.get("script", [])
    known = (*SCRIPT_ENTRIES, *CONTRACTS[service].entries, *(LOOKUP_ENTRIES[1:] if lookup else ()))
    if not isinstance(script, list) or any(entry not in known for entry in script):
        raise BadRequestError("script", f"expected a list of {', '.join(known)}; got {script!r:.80}")
    return tuple(script)


def _flag(fields: Mapping[str, Any], name: str) -> bool:
    value = fields.get(name, False)
    if not isinstance(value, bool):
        raise BadRequestError(name, f"expected true or false; got {value!r:.80}")
    return value


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")
