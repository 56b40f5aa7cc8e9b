"""A pytest plugin, for trio's own tests: trio runs itself, with the kernel's stand-ins for its functions in place."""

from __future__ import annotations

import simkit  # noqa: F401  # the package is whole before its parts
from simkit._kernel import shortcuts

shortcuts.take()
