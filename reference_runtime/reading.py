"""Reading a command line: what cannot be read is told with the usage of its own command, and with what was probably meant."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from reference_runtime.guessing import meant

#: What is called so elsewhere, and what says it here: of a server where it listens, of others where that is.
SAME: Mapping[str, Sequence[str]] = dict.fromkeys(
    ("--port", "--host", "--bind", "--address", "--url"), ("--listen", "--server")
)


class Reader(argparse.ArgumentParser):
    """A parser that refuses by itself what it does not know; the commands' parsers are such ones, too."""

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """As of any parser, but that nothing unknown is left for whoever asked, who would tell it under another usage."""
        found, left = super().parse_known_args(args, namespace)
        if left:
            self.error(f"unrecognized arguments: {' '.join(left)}{self._meant(left[0])}")
        return found, left

    def error(self, message: str) -> NoReturn:
        """Leave with the usage and a message; of a word that is none of the choices, with the one that was probably meant."""
        no_choice = re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)", message)
        guess = meant(no_choice[1], re.findall(r"[\w-]+", no_choice[2])) if no_choice else ""
        super().error(f"{message}{guess or self._commands(message)}")

    def _meant(self, option: str) -> str:
        """What was probably meant by an option that is none: one that is spelt alike, or that says the same here."""
        name, known = option.partition("=")[0], self._options()
        same = next((one for one in SAME.get(name, ()) if one in known), None)
        return meant(name, known) if same is None else f"; did you mean {same!r}?"

    def _commands(self, message: str) -> str:
        """The commands that there are, where it is one of them that is missing."""
        lists = (one for one in self._actions if isinstance(one, argparse._SubParsersAction))  # noqa: SLF001 - has no other name
        return next(
            (f"; there are {', '.join(one.choices)}" for one in lists if message.endswith(str(one.metavar))), ""
        )

    def _options(self) -> list[str]:
        return [name for action in self._actions for name in action.option_strings]
