"""The stories, in modules by what they are about; each module has its `STORIES`. `basic` comes first, then by name."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from scenarios.story import Story


def _collected() -> dict[str, Story]:
    names = sorted((module.name for module in pkgutil.iter_modules(__path__)), key=lambda name: (name != "basic", name))
    found: dict[str, Story] = {}
    for name in names:
        for story in importlib.import_module(f"{__name__}.{name}").STORIES:
            assert story.name not in found, f"two stories are called {story.name}"
            found[story.name] = story
    return found


#: Every story by its name.
STORIES: Final[Mapping[str, Story]] = MappingProxyType(_collected())
