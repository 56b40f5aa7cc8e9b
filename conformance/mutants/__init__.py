"""Mutants: the reference runtime with exactly one promise broken each, applied from outside; they prove the judges.

A mutant is one small change to one method or setting, made for the time of a `with applied(name)` block in this process.
None lives in the runtime's own modules. Every module of this package is imported for the mutants it registers;
`all_mutants` has them in the catalogue's order of the obligation that a mutant must break, and only being caught by that
obligation counts as caught.
"""

from __future__ import annotations

import contextlib
import difflib
import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from scenarios.obligations.catalogue import CATALOGUE
from scenarios.obligations.groups import GROUPS, place
from simkit.errors import Problem, SimkitError


class Patch:
    """Replaces attributes and puts the originals back."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []

    def replace(self, owner: Any, name: str, new: Any) -> None:
        """Set `owner.name` to `new`; raises AttributeError when the owner itself has nothing of that name to break."""
        if name not in vars(owner):
            raise AttributeError(f"{owner!r} has no {name!r} of its own: the mutant has lost what it was to break")
        old = vars(owner)[name]
        self._undo.append(lambda: setattr(owner, name, old))
        setattr(owner, name, new)

    def undo(self) -> None:
        while self._undo:
            self._undo.pop()()


@attrs.frozen
class Mutant:
    """One broken promise: `change` says in a sentence what the mutant does wrong, `shown_by` names a scenario of the
    catalogue that brings it to light, `swarm` whether disks and network must misbehave by themselves in it, `config` the
    configuration that it breaks, where it is not the one that is asked for.
    """

    name: str
    obligation: str
    change: str
    apply: Callable[[Patch], None]
    shown_by: str = ""
    swarm: bool = False
    config: str | None = None


_REGISTRY: dict[str, Mutant] = {}


def mutant(
    name: str, obligation: str, *, shown_by: str, swarm: bool = False, config: str | None = None
) -> Callable[[Callable[[Patch], None]], Callable[[Patch], None]]:
    """Register a function that applies the mutant; its docstring is the change."""

    def register(apply: Callable[[Patch], None]) -> Callable[[Patch], None]:
        assert name not in _REGISTRY, f"two mutants called {name}"
        change = " ".join((apply.__doc__ or "").split())
        _REGISTRY[name] = Mutant(name, obligation, change, apply, shown_by, swarm, config)
        return apply

    return register


def all_mutants() -> Mapping[str, Mutant]:
    """Every mutant by name. Imports the modules that register them, and with them the runtime, so only on use."""
    for module in sorted(one.name for one in pkgutil.iter_modules(__path__)):
        importlib.import_module(f"{__name__}.{module}")
    return dict(sorted(_REGISTRY.items(), key=lambda item: place(item[1].obligation)))


def chosen(only: Sequence[str]) -> tuple[str, ...]:
    """The names of the mutants that `only` means, in order: each word a mutant, an obligation or a group; all of them for none.
    Raises `SimkitError` for a word that is none of these.
    """
    known = all_mutants()
    wanted = {word.upper() if word.upper() in (*CATALOGUE, *GROUPS) else _meant(word) for word in only}
    return tuple(
        name
        for name, one in known.items()
        if not only or wanted & {name, one.obligation, one.obligation.partition("-")[0]}
    )


def find(name: str) -> Mutant:
    """The mutant called `name`; raises `SimkitError` naming the nearest ones."""
    known = all_mutants()
    if name in known:
        return known[name]
    raise _unknown(name, f"--mutant {name}", f"one of {len(known)} mutants", known)


def _meant(word: str) -> str:
    """The mutant that a word of `--only` names."""
    known = all_mutants()
    if word in known:
        return word
    expected = "a mutant (no-key), an obligation (RTY-1) or a group of them (EFF)"
    raise _unknown(word, f"--only {word}", expected, [*known, *CATALOGUE, *GROUPS])


def _unknown(name: str, where: str, expected: str, known: Iterable[str]) -> SimkitError:
    """What was meant, where anything comes near; never all that there is."""
    by_lower = {one.lower(): one for one in known}
    near = [by_lower[one] for one in difflib.get_close_matches(name.lower(), by_lower, 3)]
    if not near:  # a word of a longer name, as `key` of `no-key`
        near = [one for one in by_lower.values() if name.lower() in one.lower()][:3]
    hint = "`simkit list mutants` shows all of them"
    if near:
        hint = f"did you mean {' or '.join(near)}? {hint}"
    return SimkitError(Problem("mutant-unknown", f"there is no mutant {name!r}", where, expected, hint))


@contextlib.contextmanager
def applied(name: str | None) -> Iterator[None]:
    """The runtime broken in one way for the length of the block; None breaks nothing."""
    patch = Patch()
    try:
        if name is not None:
            find(name).apply(patch)
        yield
    finally:
        patch.undo()
