"""Credentials: secrets that requests name and only a worker can tell.

A plan, the store and every message between server and worker hold the *name* of a secret. Its value is put into a request
as the last thing before it leaves, and is taken out of whatever comes back before anybody else sees that.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

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
        """The same JSON value with every secret in its texts, also as Python or JSON quote it, replaced by its name."""
        if not self._values:
            return value
        if isinstance(value, str):
            for name, secret in self._values.items():
                for form in _forms(secret):
                    value = value.replace(form, f"[{name}]")
            return value
        if isinstance(value, dict):
            return {self.hide(key): self.hide(one) for key, one in value.items()}
        return [self.hide(one) for one in value] if isinstance(value, list) else value

    def __repr__(self) -> str:
        return f"Credentials({', '.join(sorted(self._values))})"


def _forms(secret: str) -> tuple[str, ...]:
    """A secret as it is and as an error may quote it, the longest first: no form is left over as a part of another."""
    quoted = {secret, json.dumps(secret)[1:-1], repr(secret)[1:-1], secret.replace("\\", "\\\\")}
    return tuple(sorted(quoted, key=len, reverse=True))
