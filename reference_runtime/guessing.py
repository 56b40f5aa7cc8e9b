"""Guessing: what was meant by a word that is none of those there are."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

#: How alike two words have to be, from 0 to 1: `--lease` is no `--name`.
LIKELY = 0.7


def meant(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'X'?` for the likeliest of the known words, nothing where none is likely."""
    near = get_close_matches(word, list(known), 1, LIKELY)
    return f"; did you mean {near[0]!r}?" if near else ""
