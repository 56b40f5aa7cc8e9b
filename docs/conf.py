"""Sphinx configuration. `generate.py` beside it writes the page of obligations."""

from __future__ import annotations

import importlib.metadata

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
