"""Credentials: secrets that requests name and only a worker can tell.

A plan, the store and every message between server and worker hold the *name* of a secret. Its value is put into a request
as the last thing before it leaves, and is taken out of whatever comes back before anybody else sees that.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from reference_runtime.recognising import replaced

#: The environment's variable that holds them, a JSON object of names and values.
SECRETS = "SIMKIT_SECRETS"


class Credentials:
    """Secrets by name; shown without their values."""

    def __init__(self, values: Mapping[str, Any] | None = None) -> None:
        """Raises ValueError, without the value, for one that no header could carry."""
        self._values: dict[str, str] = dict(values or {})
        for name, value in (values or {}).items():
            if not isinstance(value, str) or not value or not value.isascii() or not value.isprintable():
                raise ValueError(f"secret {name!r}: expected printable ASCII text that is not empty")
        # the longest first: one that is a part of another leaves nothing of it over
        self._longest = sorted(self._values.items(), key=lambda one: -len(one[1]))

    @classmethod
    def from_json(cls, text: str) -> Credentials:
        """Read `{"name": "value", …}`. Raises ValueError that repeats nothing of the text."""
        try:
            values = json.loads(text)
        except ValueError:
            values = None
        if not isinstance(values, dict):
            raise ValueError("secrets: expected a JSON object of names and values")  # noqa: TRY004 - of a text
        return cls(values)

    def value(self, name: str) -> str | None:
        """The secret of that name, or None."""
        return self._values.get(name)

    def hide(self, value: Any) -> Any:
        """The same JSON value with every secret in it replaced by its name, however it is written (`recognising`)."""
        if not self._values:
            return value
        if isinstance(value, str):
            for name, secret in self._longest:
                value = replaced(value, secret, f"[{name}]")
            return value
        if isinstance(value, dict):
            return {self.hide(key): self.hide(one) for key, one in value.items()}
        if isinstance(value, list):
            return [self.hide(one) for one in value]
        if isinstance(value, int | float) and str(value) in self._values.values():
            return self.hide(str(value))
        return value

    def __repr__(self) -> str:
        return f"Credentials({', '.join(sorted(self._values))})"
