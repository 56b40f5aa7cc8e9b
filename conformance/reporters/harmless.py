"""What others wrote, on a screen: an adapter's message moves no cursor, sets no title, and hides nothing that was said before.

Every event passes here on its way to a report for people, so that none of them has to think of it. JSON lines are for programs:
they say exactly what was said, escaped as JSON has it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs

from simkit.errors import printable

if TYPE_CHECKING:
    from conformance.events import Event
    from conformance.reporters import Reporter


class Harmless:
    """A report whose every text can be printed."""

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter

    def show(self, event: Event) -> None:
        self._reporter.show(_cleaned(event))

    def close(self) -> None:
        self._reporter.close()


def _cleaned(value: Any) -> Any:
    """The same value with every text in it printable."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, Mapping):
        return {_cleaned(key): _cleaned(one) for key, one in value.items()}
    if isinstance(value, tuple | list):
        return type(value)(map(_cleaned, value))
    if attrs.has(type(value)):
        return attrs.evolve(
            value, **{field.alias: _cleaned(getattr(value, field.name)) for field in attrs.fields(type(value))}
        )
    return value
