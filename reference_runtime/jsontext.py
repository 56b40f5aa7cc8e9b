"""JSON from outside: what could be read in two ways, or never be written down again, is refused as it is read.

Python reads more than JSON: NaN and infinities, halves of surrogate pairs, fields that are there twice, and nesting up to where
its own stack ends. Each of these would come up later, far from who sent it.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import Any, NoReturn

#: Deeper than any plan (a hundred groups of two levels, and children), and far from the end of the interpreter's stack.
NESTED_MAX = 400


def read(data: bytes | str, *, unique: bool = False) -> Any:
    """The value of a JSON text in UTF-8; with `unique`, no object has a field twice. Raises ValueError saying why not."""
    text = data if isinstance(data, str) else data.decode()
    try:
        value = (_UNIQUE if unique else _PLAIN).decode(text)
        is_deep = text.count("[") + text.count("{") > NESTED_MAX and _is_deep(value)
    except RecursionError:
        is_deep = True
    if is_deep:
        raise ValueError(f"it is nested more than {NESTED_MAX} deep")
    if "\\u" in text or (isinstance(data, str) and not text.isascii()):
        _check_texts(value)
    return value


def _check_texts(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ValueError("half of a surrogate pair is in it, which is no text") from None


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(NESTED_MAX + 1):
        level = [inner for one in level for inner in _inside(one)]
        if not level:
            return False
    return True


def _inside(value: Any) -> Any:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        often = Counter(name for name, _ in pairs)
        raise ValueError(f"the field {next(name for name, times in often.items() if times > 1)!r:.80} is there twice")
    return value


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        _no_number(text)
    return value


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text:.80} is no number that JSON has")


_PLAIN = json.JSONDecoder(parse_float=_finite, parse_constant=_no_number)
_UNIQUE = json.JSONDecoder(parse_float=_finite, parse_constant=_no_number, object_pairs_hook=_object)
