"""Certificates as files: written whole or not at all, and taken back only when complete, unchanged and free of contradictions.

`write` stores one atomically. `load` and `parse` refuse a file without footer, one whose counts or digest disagree with it,
and one that states what cannot all be true; the error says which, and never that it should be repaired by hand.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import cattrs

from conformance.certificate import CONVERTER, SCHEMA, Certificate
from conformance.files import NotPlainError, digest, parse_plain, telling, write_atomic
from conformance.recomputed import contradictions, misread
from simkit.errors import Problem, SimkitError

#: What certificates of the first builds had none of, and do not count.
_LATER = ("not-covered",)
_SHOWN_CHARS = 40  # of a file that is none
_NAMED_MAX = 5  # contradictions that an error names
_RETRY = "certify again; a certificate is never repaired by hand"


def dump(certificate: Certificate) -> str:
    """The file's text: readable, keys sorted, newline last."""
    return json.dumps(certificate.to_json(), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def write(certificate: Certificate, path: Path) -> None:
    """Write atomically. Raises SimkitError when the disk is full or the folder may not be written."""
    write_atomic(path, dump(certificate))


def load(path: Path) -> Certificate:
    """Read a certificate back. Raises SimkitError when missing, truncated, altered or of another schema."""
    return parse(_read(path), str(path))


def _read(path: Path) -> str:
    if not path.is_file():
        raise SimkitError(
            Problem(
                "certificate-missing",
                "there is no such certificate",
                str(path),
                "a file written by `simkit certify`",
                "certificates are kept in .simkit/certificates unless --out says otherwise",
            )
        )
    with telling(path):
        return path.read_text(encoding="utf-8", errors="replace")


def is_certificate(path: Path) -> bool:
    """Whether this file is a certificate, or was one before it was cut short or changed. Its keys are sorted, so that a
    beginning shows no schema; a case begins with its own.
    """
    try:
        text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    except OSError:
        return False
    return bool(re.match(r'\s*\{\s*"cases"', text)) or bool(re.search(r'"schema": ?"simkit/certificate/', text))


def parse(text: str, where: str) -> Certificate:
    """Check and read the text of a certificate; `where` is named in errors."""
    _check_is_one(text, where)
    data = _parse_json(text, where)
    _check_schema(data, where)
    footer = _check_footer(data, where)
    try:
        body = {key: value for key, value in data.items() if key not in {"schema", "footer"}}
        certificate = CONVERTER.structure(body, Certificate)
    except Exception as error:  # cattrs groups its errors; every one of them names its path
        raise SimkitError(
            Problem(
                "certificate-malformed",
                "; ".join(cattrs.transform_error(error, path="certificate", format_exception=_describe)),
                where,
                "the fields of conformance/schemas/certificate.schema.json",
                _RETRY,
            )
        ) from error
    _check_unchanged(data, footer, certificate, where)
    _check_consistent(data, certificate, where)
    return certificate


def _describe(error: BaseException, wanted: type | None) -> str:
    if get_origin(wanted) is Literal:
        return f"none of {', '.join(map(str, get_args(wanted)))}"
    return cattrs.v.format_exception(error, wanted)


def _check_is_one(text: str, where: str) -> None:
    """One that breaks off begins as one all the same; a list is some other JSON, or the head of a file of settings."""
    if text.lstrip()[:1] == "{" or (text.lstrip()[:1] == "[" and _is_json(text)):
        return
    first = next((line for line in text.splitlines() if line.strip()), "")
    what = f"the file begins with {first[:_SHOWN_CHARS]!r}" if first else "the file is empty"
    raise SimkitError(
        Problem(
            "not-a-certificate",
            f"{what}: this is no certificate",
            where,
            f'one whole JSON object with schema "{SCHEMA}" and a footer, as `simkit certify` writes it',
            "certificates are kept in .simkit/certificates unless --out says otherwise",
        )
    )


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _parse_json(text: str, where: str) -> Any:
    try:
        return parse_plain(text)
    except NotPlainError as error:
        raise SimkitError(
            Problem("certificate-malformed", str(error), where, "plain JSON in which every key occurs once", _RETRY)
        ) from error
    except json.JSONDecodeError as error:
        raise SimkitError(
            Problem(
                "certificate-truncated",
                f"the file breaks off or is not JSON: {error.msg} at line {error.lineno}, column {error.colno}",
                where,
                f'one whole JSON object with schema "{SCHEMA}" and a footer',
                _RETRY,
            )
        ) from error


def _check_schema(data: Any, where: str) -> None:
    found = data.get("schema") if isinstance(data, dict) else None
    if str(found).startswith("simkit/case/"):
        hint = "`simkit replay CASE` runs it again, `simkit explain CASE` tells what is known of it"
        raise SimkitError(Problem("not-a-certificate", "this is a case", where, f'"{SCHEMA}"', hint))
    if found != SCHEMA:
        raise SimkitError(
            Problem(
                "certificate-schema",
                f"schema is {found!r}",
                where,
                f'"{SCHEMA}"',
                "read it with the version of simkit that wrote it, or certify again with this one",
            )
        )


def _check_footer(data: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    footer = data.get("footer")
    if isinstance(footer, dict) and isinstance(footer.get("counts"), dict) and isinstance(footer.get("digest"), str):
        if more := sorted(footer.keys() - {"counts", "digest"}):
            raise SimkitError(
                Problem(
                    "certificate-malformed",
                    f"the footer has {', '.join(more)}",
                    where,
                    "counts and digest only",
                    _RETRY,
                )
            )
        return footer
    raise SimkitError(
        Problem(
            "certificate-unfinished",
            "there is no whole footer, so nothing says that the file is complete",
            where,
            "a footer with counts and digest",
            _RETRY,
        )
    )


def _check_unchanged(data: Mapping[str, Any], footer: Mapping[str, Any], certificate: Certificate, where: str) -> None:
    counts, told = certificate.counts(), {**dict.fromkeys(_LATER, 0), **footer["counts"]}
    if off := [name for name in dict.fromkeys((*counts, *told)) if told.get(name) != counts.get(name)]:
        found = ", ".join(f"{counts.get(name, 'no')} {name}" for name in off)
        stated = ", ".join(f"{told.get(name)} {name}" for name in off)
        raise SimkitError(
            Problem("certificate-altered", f"the file has {found}; its footer says {stated}", where, stated, _RETRY)
        )
    computed = digest({**data, "footer": {"counts": footer["counts"]}})
    if computed != footer["digest"]:
        raise SimkitError(
            Problem(
                "certificate-altered",
                f"the content's digest is {computed[:12]}…; its footer says {footer['digest'][:12]}…",
                where,
                "content and digest that agree",
                _RETRY,
            )
        )


def _check_consistent(data: Mapping[str, Any], certificate: Certificate, where: str) -> None:
    """Is everything in it as it was written, of the right type, and can it all be true together?"""
    read = {key: value for key, value in data.items() if key != "footer"}
    found = [*misread(read, certificate.to_json()), *contradictions(certificate)]
    if found:
        more = f"; and {len(found) - _NAMED_MAX} more" if len(found) > _NAMED_MAX else ""
        raise SimkitError(
            Problem(
                "certificate-inconsistent",
                "; ".join(found[:_NAMED_MAX]) + more,
                where,
                "contents that follow from one another, as `simkit certify` writes them",
                _RETRY,
            )
        )
