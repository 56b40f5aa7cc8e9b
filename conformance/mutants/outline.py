"""What the mutants say of themselves, read from their source: to list them takes no runtime, which registering them loads."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Mapping
from importlib import resources

import attrs

from scenarios.obligations.groups import place


@attrs.frozen
class Outline:
    """A mutant as its decorator and its docstring introduce it; the fields are those of `Mutant`."""

    name: str
    obligation: str
    change: str
    shown_by: str
    config: str | None = None

    @property
    def story(self) -> str:
        """The story of the scenario that shows it."""
        return self.shown_by.partition("/")[0]


@functools.cache
def outlines() -> Mapping[str, Outline]:
    """Every mutant of this package by name, in the order of `all_mutants`."""
    files = sorted(resources.files("conformance.mutants").iterdir(), key=lambda file: file.name)
    found = [one for file in files if file.name.endswith(".py") for one in _outlines(file.read_text(encoding="utf-8"))]
    return {one.name: one for one in sorted(found, key=lambda one: place(one.obligation))}


def _outlines(source: str) -> Iterator[Outline]:
    for node in (one for one in ast.parse(source).body if isinstance(one, ast.FunctionDef)):
        for decorator in node.decorator_list:
            match decorator:
                case ast.Call(ast.Name("mutant"), [ast.Constant(str(name)), ast.Constant(str(obligation))], keywords):
                    given = {one.arg: ast.literal_eval(one.value) for one in keywords}
                    change = " ".join((ast.get_docstring(node) or "").split())
                    yield Outline(name, obligation, change, given["shown_by"], given.get("config"))
