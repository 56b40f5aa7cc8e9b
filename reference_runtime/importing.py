"""Importing: the modules that are named on a command line, and what to say of one that cannot be had."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reference_runtime.model import Refusal


def names_in(module: str, code: str) -> Mapping[str, Any]:
    """What a module has, by name. Raises `Refusal` with this code, whatever the module does as it is imported."""
    try:
        return vars(importlib.import_module(module))
    except Exception as error:
        raise Refusal(code, f"{module} cannot be imported: {_why(module, error)}") from error


def _why(module: str, error: Exception) -> str:
    said = f"{type(error).__name__}: {error}"
    if not isinstance(error, ModuleNotFoundError) or not module.startswith(error.name or module):
        return said  # of what it imports itself
    if module.endswith(".py"):
        name = Path(module).stem
        return f"a module is named without .py and its folder: {name}"
    return f"{said}; looked for in {Path(sys.path[0] or '.').resolve()}, and where Python's packages are"
