"""Which named points (`simkit.points`) a campaign has hit: counts added up over runs, and the points that no run has hit.

`declared` reads them from source text, so that a point nobody ever reached is known as well.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast, get_args

import attrs

from simkit.points import PointCount, PointKind
from simkit.world import Outcome

__all__ = ["Coverage", "DeclaredPoint", "declared"]

_KINDS = get_args(PointKind)
_HOMES = ("simkit", "simkit.points")


@attrs.frozen(order=True)
class DeclaredPoint:
    """A named point as it stands in the source."""

    name: str
    kind: PointKind
    where: str  # file:line


@attrs.frozen
class Coverage:
    """The counts of many runs."""

    runs: int = 0
    points: Mapping[str, PointCount] = attrs.field(factory=dict)

    @classmethod
    def of(cls, outcomes: Iterable[Outcome[Any]]) -> Coverage:
        """Add up the counts of `outcomes`."""
        found = cls()
        for outcome in outcomes:
            found = found.merge(cls(1, outcome.points))
        return found

    def merge(self, other: Coverage) -> Coverage:
        """Add two up; neither changes. The order of names is that of the first time, `self` first."""
        points = dict(self.points)
        for name, count in other.points.items():
            mine = points.get(name)
            points[name] = count if mine is None else _sum(mine, count)
        return Coverage(self.runs + other.runs, points)

    def never(self, points: Iterable[DeclaredPoint] = ()) -> list[DeclaredPoint]:
        """The points that no run has hit, of those `declared` and of those that were reached without effect.

        One that must not be reached does not count as missing.
        """
        known = {point.name: point for point in points}
        for name, count in self.points.items():
            known.setdefault(name, DeclaredPoint(name, count.kind, count.where))
        return sorted(
            point
            for name, point in known.items()
            if point.kind != "unreachable" and not (name in self.points and self.points[name].hit)
        )


def _sum(one: PointCount, other: PointCount) -> PointCount:
    return attrs.evolve(one, reached=one.reached + other.reached, held=one.held + other.held)


def declared(*paths: Path | str) -> list[DeclaredPoint]:
    """The named points in Python files and in all those below folders, by name; only names written as a literal count."""
    files = [file for path in map(Path, paths) for file in (sorted(path.rglob("*.py")) if path.is_dir() else [path])]
    return sorted(
        point for file in files for point in _points_in(ast.parse(file.read_text(encoding="utf-8")), str(file))
    )


def _points_in(tree: ast.Module, file: str) -> Iterator[DeclaredPoint]:
    modules, functions = _names(tree)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        kind = None
        if isinstance(node.func, ast.Name):
            kind = functions.get(node.func.id)
        elif isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) in modules:
            kind = node.func.attr
        name = next((part.value for part in (*node.args[:1], *_named(node)) if isinstance(part, ast.Constant)), None)
        if kind in _KINDS and isinstance(name, str):
            yield DeclaredPoint(name, cast("PointKind", kind), f"{file}:{node.lineno}")


def _named(call: ast.Call) -> Iterator[ast.expr]:
    return (keyword.value for keyword in call.keywords if keyword.arg == "name")


def _names(tree: ast.Module) -> tuple[list[str], dict[str, str]]:
    """What a file calls the modules that hold the functions, and the functions."""
    modules, functions = [], {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules += [alias.asname or alias.name for alias in node.names if alias.name in _HOMES]
        elif isinstance(node, ast.ImportFrom) and node.module in _HOMES:
            for alias in node.names:
                functions[alias.asname or alias.name] = alias.name
                if f"{node.module}.{alias.name}" in _HOMES:
                    modules.append(alias.asname or alias.name)
    return modules, functions
