"""`cases` and `list`: what is saved and what there is, by group, as `Listed` events."""

from __future__ import annotations

import fnmatch
from typing import TYPE_CHECKING

from conformance import events as e
from conformance.cli import saved, usage
from simkit.errors import Problem, SimkitError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from conformance.mutants.outline import Outline
    from conformance.store import Store
    from scenarios.faults import Reported
    from scenarios.obligations import Obligation
    from scenarios.obligations.catalogue import Promise


def cases(store: Store) -> Iterator[e.Listed | Problem]:
    """Every saved case, newest last; one that cannot be read comes as its problem, and the others are listed all the same."""
    for path, case in store.list_cases():
        if isinstance(case, Problem):
            yield case
            continue
        fields = {
            "target": saved.subject(case),
            "world": str(case.world),
            "seed": saved.seed(case),
            "scenario": str(case.scenario.get("name", "")),
            "shrunk": str(case.options.get("shrunk", "")),
        }
        yield e.Listed("cases", path.stem, saved.findings(case), fields)


def obligations() -> Iterator[e.ObligationListed]:
    """Every promise of the catalogue in its order, whether it has a judge or not."""
    from conformance.cli import relations

    yield from map(relations.described, catalogue().values())


def adapters() -> Iterator[e.Listed]:
    """The shipped adapters."""
    for one in usage.adapters().values():
        fields = {"storage": one.storage, "configurations": ", ".join(one.configurations)}
        yield e.Listed("adapters", one.name, one.version, fields)


def scenarios() -> Iterator[e.Listed]:
    """The named plans with their stories, each with the scenarios made of it."""
    from scenarios.catalogue import STORIES, scenarios_of

    for name, story in STORIES.items():
        yield e.Listed("scenarios", f"{name}/*", story.story)
        for scenario in scenarios_of(name, workers=True):
            yield e.Listed("scenarios", scenario.name)


def mutants() -> Iterator[e.Listed]:
    """The broken runtimes that prove the judges."""
    for name, one in mutant_registry().items():
        yield e.Listed("mutants", name, one.change, {"must break": one.obligation})


KINDS: Mapping[str, Callable[[], Iterator[e.Listed | e.ObligationListed]]] = {
    "obligations": obligations,
    "adapters": adapters,
    "scenarios": scenarios,
    "mutants": mutants,
}
_TITLES: Mapping[str, str] = {
    "obligations": "the promises, and what breaks them",
    "adapters": "the harnesses that can be certified",
    "scenarios": "the named scenarios",
    "mutants": "the broken runtimes that prove the judges",
}


def groups() -> Iterator[e.Listed]:
    """What there is to list, with how much of it there is."""
    for name, kind in KINDS.items():
        yield e.Listed("groups", name, f"{sum(1 for _ in kind())}: {_TITLES[name]}")


def chosen(words: Sequence[str], options: Sequence[str] = ()) -> Iterator[e.Listed | e.ObligationListed]:
    """What of the groups that are named matches any of the other words: all of it when there are none. Raises `SimkitError`
    for a word that names nothing.
    """
    kinds = [*dict.fromkeys((*(word for word in words if word in KINDS), *options))]
    filters = [word for word in words if word not in KINDS]
    if not kinds and filters:
        raise _no_group(filters[0])
    lists = [[*KINDS[kind]()] for kind in kinds] or [[*groups()]]
    matched = [[_matching(list_one, word) for word in filters] for list_one in lists]
    for at, word in enumerate(filters):
        if not any(by_word[at] for by_word in matched):
            raise _nothing(word, kinds, [event.id for list_one in lists for event in list_one])
    for list_one, by_word in zip(lists, matched, strict=True):
        wanted = {event.id for found in by_word for event in found}
        yield from (event for event in list_one if not filters or event.id in wanted)


def _matching(events: Sequence[e.Listed | e.ObligationListed], word: str) -> Sequence[e.Listed | e.ObligationListed]:
    """Those whose id is `word`; else those that belong to what is called so; else those of which it is a part, or a glob."""
    lower = word.lower()
    if any(sign in word for sign in "*?["):
        return [event for event in events if any(fnmatch.fnmatchcase(text.lower(), lower) for text in _texts(event))]
    by_id = [event for event in events if event.id.lower() == lower]
    by_belonging = by_id or [event for event in events if any(text.lower() == lower for text in _texts(event))]
    return by_belonging or [event for event in events if any(lower in text.lower() for text in _texts(event))]


def _texts(event: e.Listed | e.ObligationListed) -> tuple[str, ...]:
    """Its id, and what it belongs to."""
    more = event.fields.values() if isinstance(event, e.Listed) else (event.group, event.profile)
    return event.id, *more


def _no_group(word: str) -> SimkitError:
    hint = usage.nearest(word, KINDS) or "`simkit list` alone shows the groups"
    expected = ", ".join(KINDS) + "; then parts of names"
    return SimkitError(Problem("group-unknown", f"there is no group {word!r}", "command line", expected, hint))


def _nothing(word: str, kinds: Sequence[str], ids: Sequence[str]) -> SimkitError:
    hint = usage.nearest(word, (*ids, *KINDS)) or f"`simkit list {' '.join(kinds)}` shows them all"
    what = f"nothing among {' and '.join(kinds)} matches {word!r}"
    expected = "an id, what it belongs to, or a part or a glob of these"
    return SimkitError(Problem("list-unknown", what, "command line", expected, hint))


def catalogue() -> Mapping[str, Promise]:
    """Every promise by id."""
    from scenarios.obligations.catalogue import CATALOGUE

    return CATALOGUE


def registry() -> Mapping[str, Obligation]:
    """The obligations that have a judge, by id."""
    from scenarios.obligations import OBLIGATIONS

    return OBLIGATIONS


def faults() -> Mapping[str, Reported]:
    """The kinds of reported faults by number."""
    from scenarios.faults import FAULTS

    return FAULTS


def mutant_registry() -> Mapping[str, Outline]:
    """The mutants by name, as far as they can be told of without loading what they break."""
    from conformance.mutants.outline import outlines

    return outlines()
