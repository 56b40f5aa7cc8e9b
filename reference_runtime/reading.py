"""Reading a command line: what cannot be read is told with the usage of its own command, and with what was probably meant."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from typing import Any, NoReturn

from reference_runtime.guessing import meant


class Reader(argparse.ArgumentParser):
    """A parser that refuses by itself what it does not know; the commands' parsers are such ones, too."""

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """As of any parser, but that nothing unknown is left for whoever asked, who would tell it under another usage."""
        found, left = super().parse_known_args(args, namespace)
        if left:
            self.error(f"unrecognized arguments: {' '.join(left)}{meant(left[0], self._options())}")
        return found, left

    def error(self, message: str) -> NoReturn:
        """Leave with the usage and a message; of a word that is none of the choices, with the one that was probably meant."""
        no_choice = re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)", message)
        guess = meant(no_choice[1], re.findall(r"[\w-]+", no_choice[2])) if no_choice else ""
        super().error(f"{message}{guess}")

    def _options(self) -> list[str]:
        return [name for action in self._actions for name in action.option_strings]
