"""Sphinx configuration. `generate.py` beside it writes the page of obligations."""

from __future__ import annotations

import importlib.metadata

from pygments.lexers.special import TextLexer
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


def setup(app: Sphinx) -> None:
    """Diagrams are shown as their text here; forges draw them."""
    app.add_lexer("mermaid", TextLexer)
