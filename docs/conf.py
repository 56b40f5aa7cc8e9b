"""Sphinx configuration; the directive `obligations` lists what the registry in `scenarios` holds."""

from __future__ import annotations

import importlib.metadata
from typing import TYPE_CHECKING, ClassVar

from sphinx.util.docutils import SphinxDirective

from scenarios.obligations import ANOMALIES, OBLIGATIONS, Obligation

if TYPE_CHECKING:
    from docutils import nodes
    from sphinx.application import Sphinx

project = "simkit"
author = "The simkit authors"
copyright = "the simkit authors"
version = release = importlib.metadata.version("simkit")

extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = f"simkit {release}"
html_theme_options = {"navigation_with_keys": True}
exclude_patterns = ["build"]
nitpicky = True


class Obligations(SphinxDirective):
    """`{obligations}`: every obligation by profile, from the registry that the judges run from, then the anomalies."""

    has_content: ClassVar[bool] = False

    def run(self) -> list[nodes.Node]:
        rows: dict[str, list[Obligation]] = {}
        for obligation in OBLIGATIONS.values():
            rows.setdefault(obligation.profile, []).append(obligation)
        if not rows:
            raise self.error("scenarios.obligations.OBLIGATIONS is empty")
        pages = [*map(_profile, rows, rows.values()), _anomalies()]
        return self.parse_text_to_nodes("\n\n".join(pages), allow_section_headings=True)


def _profile(name: str, obligations: list[Obligation]) -> str:
    return f"## {name}\n\n" + "\n\n".join(map(_entry, obligations))


def _entry(obligation: Obligation) -> str:
    promise = obligation.promise.strip().rstrip(".")
    causes = "".join(f"- {cause}\n" for cause in obligation.causes)
    return (
        f"({obligation.id.lower()})=\n### {obligation.id} · {obligation.name}\n\n"
        f"{promise[:1].upper()}{promise[1:]}.\n\n"
        f"{obligation.level}, {obligation.kind}; tested by {obligation.tested_by}; to pass, exercised at least "
        f"{obligation.minimum} times. Broken, it is called *{'* or *'.join(obligation.anomalies)}*.\n\n"
        f"What usually breaks it:\n\n{causes}"
    )


def _anomalies() -> str:
    return "## Anomalies\n\n" + "\n".join(f"*{name}*\n: {meaning}\n" for name, meaning in ANOMALIES.items())


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("obligations", Obligations)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
