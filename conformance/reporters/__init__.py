"""Reports: consumers of the event stream. Data goes to standard output, progress and trouble to standard error.

    pretty      for people at a terminal (rich)      plain    for people, logs and diffs
    jsonlines   one event a line, the source         github   annotations and a step summary, over plain

`spacetime` chooses the rows of a failure's table, `wording` holds the sentences, `progress` shows how far it is, and `harmless`
keeps what others wrote from driving the terminal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol, TextIO

from conformance.reporters.harmless import Harmless

if TYPE_CHECKING:
    from conformance.events import Event

Format = Literal["pretty", "plain", "json", "github"]


class Reporter(Protocol):
    """Consumes events in order. `close` is called once, also after a failure."""

    def show(self, event: Event) -> None: ...

    def close(self) -> None: ...


def make(kind: Format, out: TextIO, err: TextIO) -> Reporter:
    """The reporter of this name, loaded only now: what is not used costs nothing at start."""
    if kind == "json":
        from conformance.reporters.jsonlines import JsonLines

        return JsonLines(out, err)
    return Harmless(_for_people(kind, out, err))


def _for_people(kind: Format, out: TextIO, err: TextIO) -> Reporter:
    if kind == "plain":
        from conformance.reporters.plain import Plain

        return Plain(out, err)
    if kind == "github":
        from conformance.reporters.github import GitHub

        return GitHub(out, err)
    from conformance.reporters.pretty import Pretty

    return Pretty(out, err)
