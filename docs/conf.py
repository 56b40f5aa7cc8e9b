"""Sphinx configuration; the `obligations` and `anomalies` directives list what the registry in `scenarios` holds."""

from __future__ import annotations

import importlib.metadata
from typing import TYPE_CHECKING, Any, ClassVar

from sphinx.util.docutils import SphinxDirective

from scenarios.obligations import OBLIGATIONS

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
    """`{obligations}`: every obligation, grouped by profile, from the registry the judges run from."""

    has_content: ClassVar[bool] = False

    def run(self) -> list[nodes.Node]:
        rows: dict[str, list[Any]] = {}
        for obligation in OBLIGATIONS.values():
            rows.setdefault(obligation.profile, []).append(obligation)
        if not rows:
            raise self.error("scenarios.obligations.OBLIGATIONS is empty")
        return self.parse_text_to_nodes("\n\n".join(map(_profile, rows, rows.values())), allow_section_headings=True)


def _profile(name: str, obligations: list[Any]) -> str:
    return f"## {name}\n\n" + "\n\n".join(map(_entry, obligations))


def _entry(obligation: Any) -> str:
    promise = obligation.promise.strip().rstrip(".")
    return (
        f"({obligation.id.lower()})=\n### {obligation.id}\n\n{promise[:1].upper()}{promise[1:]}.\n\n"
        f"{obligation.level}, {obligation.kind}; put to the test at least {obligation.minimum} times; "
        f"broken, it is called *{obligation.anomaly}*."
    )


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("obligations", Obligations)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
