"""A story explained: its sentence, the shape of its plan, its scenarios and what they exercise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance import events as e
from conformance import invocation
from conformance.cli import listing, relations

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from scenarios.operation import Op

#: The fields that say of an operation to whom it goes or what it is about.
_ABOUT = ("service", "signal", "of", "on", "name", "prompt", "kind", "reason")


def explained(wanted: str) -> e.Explained | None:
    """The story of the catalogue that is called `wanted`; else nothing."""
    from scenarios.catalogue import STORIES, scenarios_of

    story = STORIES.get(wanted)
    if story is None:
        return None
    names = [one.name for one in scenarios_of(story.name, workers=True)]
    sections = {
        "story": story.story,
        "plan": "\n".join(_outline(story.plan.root)),
        "scenarios": f"{len(names)}; {invocation.line('list', 'scenarios', f'{story.name}/*')} names them",
        "exercises": ", ".join(id_ for id_ in listing.registry() if story.name in relations.stories_of(id_)),
        "try it": invocation.line("replay", "-t", "reference", "--scenario", names[0]),
    }
    return e.Explained("story", story.name, "a named plan", {head: text for head, text in sections.items() if text})


def known() -> Iterable[str]:
    """The names of all stories."""
    from scenarios.catalogue import STORIES

    return STORIES


def _outline(op: Op, depth: int = 0) -> Iterator[str]:
    """An operation and what is inside it, one line each."""
    about = [str(value) for name in _ABOUT if isinstance(value := getattr(op, name, None), str)]
    yield f"{'  ' * depth}{type(op).__name__.lower()} {op.id}" + (f" ({', '.join(about)})" if about else "")
    inside = (op.root,) if hasattr(op, "root") else getattr(op, "children", ())
    for one in inside:
        yield from _outline(one, depth + 1)
