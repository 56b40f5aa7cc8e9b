"""What the mutants say of themselves, read from their source: to list them takes no runtime, which registering them loads."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Mapping
from importlib import resources
from typing import Any

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
    module = ast.parse(source).body
    named = dict(pair for one in module if (pair := _constant(one)) is not None)
    for node in (one for one in module if isinstance(one, ast.FunctionDef)):
        for decorator in node.decorator_list:
            match decorator:
                case ast.Call(ast.Name("mutant"), [ast.Constant(str(name)), ast.Constant(str(obligation))], keywords):
                    given = {one.arg: _value(one.value, named) for one in keywords}
                    change = " ".join((ast.get_docstring(node) or "").split())
                    yield Outline(name, obligation, change, given["shown_by"], given.get("config"))


def _constant(node: ast.stmt) -> tuple[str, object] | None:
    """A name of the module that stands for a text, as for a scenario that several mutants are shown by."""
    match node:
        case ast.Assign([ast.Name(name)], ast.Constant(str(text))):
            return name, text
    return None


def _value(node: ast.expr, named: Mapping[str, object]) -> Any:
    return named[node.id] if isinstance(node, ast.Name) and node.id in named else ast.literal_eval(node)
