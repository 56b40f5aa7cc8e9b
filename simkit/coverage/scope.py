"""Whose code counts: the files of the program, never those of simkit, trio and Python itself; and what they are called.

A file is called by its path below the folder that holds its package, so that its name is the same on every machine.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import attrs
import trio

_NEVER = (str(Path(__file__).parent.parent) + os.sep, str(Path(trio.__file__).parent) + os.sep, "<frozen")
_STANDARD_LIBRARY = tuple({sysconfig.get_path(name) + os.sep: None for name in ("stdlib", "platstdlib")})
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")


@attrs.frozen
class Scope:
    """Folders (they end in a separator) and files, each with how much of a path is not part of a file's name."""

    places: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, program: object) -> Scope:
        """The module that a program is defined in, and the package that the module is in."""
        module = sys.modules.get(module_of(program))
        package = None if module is None else sys.modules.get(module.__name__.partition(".")[0])
        found = [folder + os.sep for folder in getattr(package, "__path__", ())]
        found += [file for file in (getattr(module, "__file__", None), code_of(program)) if file is not None]
        return cls(tuple((place, _folder_length(place)) for place in dict.fromkeys(found)))

    @classmethod
    def below(cls, prefixes: Iterable[str | os.PathLike[str]]) -> Scope:
        """Files, and all files in folders."""
        found = [os.path.abspath(os.fspath(prefix)) for prefix in prefixes]  # noqa: PTH100  # links stay links, as in code
        places = [path + os.sep if Path(path).is_dir() else path for path in found]
        return cls(tuple((place, _folder_length(place)) for place in dict.fromkeys(places)))

    def name(self, filename: str) -> str | None:
        """What a file of the program is called; None for one that does not count."""
        if filename.startswith(_NEVER) or _is_pythons(filename):
            return None
        for place, cut in self.places:
            if filename == place or (place.endswith(os.sep) and filename.startswith(place)):
                return filename[cut:].replace(os.sep, "/")
        return None


def _is_pythons(filename: str) -> bool:
    return filename.startswith(_STANDARD_LIBRARY) and not any(part in filename for part in _INSTALLED)


def _folder_length(path: str) -> int:
    return len(os.path.dirname(path.rstrip(os.sep))) + 1 if os.sep in path else 0  # noqa: PTH120  # it may be no path


def core(program: Any) -> Any:
    """The function inside partials and wrappers."""
    while True:
        if isinstance(program, functools.partial):
            program = program.func
        elif hasattr(program, "__wrapped__"):
            program = program.__wrapped__
        elif inspect.ismethod(program):
            program = program.__func__
        elif inspect.isfunction(program) or inspect.isclass(program) or not inspect.ismethod(call := program.__call__):
            return program
        else:
            program = call


def module_of(program: object) -> str:
    """The name of the module that defines a program."""
    return str(getattr(core(program), "__module__", ""))


def code_of(program: object) -> str | None:
    """The file of a program's own code: that of an example in a text is no module's."""
    code = getattr(core(program), "__code__", None)
    return None if code is None else str(code.co_filename)
