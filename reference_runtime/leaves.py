"""Leaves of a plan: one operation's JSON in, a step out, every field checked by name and type.

What a kind of leaf may say is in its reader below; what is common to all of them (params, carries, script) has the same
meaning everywhere. A mistake names the operation, what was found and what was expected.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import attrs

from reference_runtime.guessing import meant
from reference_runtime.model import AMOUNT_MAX, Json, Kind, Refusal, Semantics
from reference_runtime.promises import CHECKER, MODEL, STORE, Promise

PARTS_MAX = 10_000
#: The most bytes of one artifact: they are made, and their digest taken, in memory, while everybody else waits.
SIZE_MAX = 256 * 1024 * 1024
#: The most of anything that is counted: sums of it stay what the store can keep, and 146 years from now is a date.
COUNT_MAX = 2**62
DRAWS = ("time", "random", "uuid")
LOOKUPS = ("ok", "down")


class PlanError(Refusal):
    """A plan that cannot be: names the operation, what was found and what was expected."""

    def __init__(self, message: str) -> None:
        super().__init__("bad-plan", message)

    def __reduce__(self) -> tuple[type[PlanError], tuple[str]]:
        return type(self), (self.message,)


@attrs.frozen
class Step:
    """One operation to be, with the operations that must be settled first.

    `guards`: (gate, arm) pairs, this operation is skipped when one of these gates takes another arm. `ends`: of a race, the
    operations that end each child. `more`: what only this kind of operation has, as JSON.
    """

    id: str
    kind: Kind
    needs: tuple[str, ...] = ()
    tool: str = ""  # what carries it out, where somebody does
    semantics: Semantics | None = None
    params: Mapping[str, Any] = attrs.field(factory=dict)
    carries: tuple[str, ...] = ()
    script: tuple[str, ...] = ()
    signal: str = ""  # waits
    ns: int = 0  # sleeps
    subject: str | None = None  # what an approval, a check, a compensation or a branch is about
    tolerate: bool = False  # a definite refusal is an accepted outcome
    guards: tuple[tuple[str, str], ...] = ()
    ends: tuple[tuple[str, ...], ...] = ()
    more: Mapping[str, Any] = attrs.field(factory=dict)

    @property
    def spec(self) -> Json:
        """Everything that whoever carries the operation out needs to know of it, as JSON."""
        return {
            "params": self.params,
            "carries": self.carries,
            "script": self.script,
            "signal": self.signal,
            "ns": self.ns,
            **self.more,
        }


#: The tools that can be called, and what they promise.
Tools: TypeAlias = Mapping[str, Promise]
_Reader: TypeAlias = Callable[[Json, Tools], Step]


def read_leaf(kind: str, data: Json, tools: Tools) -> Step:
    """The step of a leaf; what it needs and guards it is not known here. Raises `PlanError`."""
    return READERS[kind](data, tools)


def field(data: Json, name: str, wanted: type, default: Any = None) -> Any:
    """A field's value, or `default` where it is absent or null. Raises `PlanError` for another type."""
    value = data.get(name)
    if value is None and default is not None:
        return default
    if name not in data:
        others = ", ".join(one for one in data if one not in ("op", "id")) or "nothing else"
        raise wrong(data, f"{name} must be {wanted.__name__}, and is not there; it has {others:.80}")
    if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
        raise wrong(data, f"{name} must be {wanted.__name__}; got {value!r:.80}")
    return value


def wrong(data: Json, what: str) -> PlanError:
    """The error about an operation, or about a plan as a whole, which has no id."""
    named = f" {data['id']!r}" if "id" in data or data.get("op") != "plan" else ""
    return PlanError(f"{data.get('op')}{named}: {what}")


def names(data: Json, name: str, known: tuple[str, ...] | None = None) -> tuple[str, ...]:
    """A list of texts, absent meaning none; of `known` ones where that is given. Raises `PlanError`."""
    values = field(data, name, list, [])
    for value in values:
        if not isinstance(value, str) or (known is not None and value not in known):
            raise wrong(data, f"{name} has {value!r:.80}; expected {' or '.join(known) if known else 'texts'}")
    return tuple(values)


def count(data: Json, name: str, low: int, default: int | None = None, high: int | None = None) -> int:
    """A whole number in its bounds. Raises `PlanError`."""
    value: int = field(data, name, int, default)
    if not low <= value <= (COUNT_MAX if high is None else high):
        most = f", at most {COUNT_MAX if high is None else high}"
        raise wrong(data, f"{name} is {_shown(value)}; expected {low} or more{most}")
    return value


def _shown(number: int) -> str:
    """A whole number for an error; one that would fill pages by its size only."""
    return str(number) if -COUNT_MAX < number < 2**128 else f"a number of {number.bit_length()} bits"


def _given(data: Json, **readers: Callable[[str], Any]) -> Json:
    """The optional fields that are there, each read by its reader."""
    return {name: reader(name) for name, reader in readers.items() if data.get(name) is not None}


def _service(data: Json, tools: Tools) -> tuple[str, Promise]:
    tool = field(data, "service", str)
    if tool not in tools:
        raise wrong(
            data,
            f"no service {tool!r:.80}{meant(tool, tools)}; there are {', '.join(tools)};"
            " serve --tools declares one of your own",
        )
    return tool, tools[tool]


def _limits(data: Json) -> Json:
    return _given(data, tries=lambda name: count(data, name, 1), elapsed_ns=lambda name: count(data, name, 0))


def _terms(data: Json, promise: Promise) -> Json:
    """What holds for a request to a tool, whether it does something or undoes it; `declared` holds for all of the tool's."""
    given = _given(
        data,
        secret=lambda name: field(data, name, str),
        lookups=lambda name: names(data, name, LOOKUPS),
    )
    return _limits(data) | given | ({"declared": promise.limits} if promise.limits else {})


def _call(data: Json, tools: Tools) -> Step:
    tool, promise = _service(data, tools)
    return Step(
        data["id"],
        "call",
        tool=tool,
        semantics=promise.semantics,
        params=field(data, "params", dict, {}),
        carries=names(data, "carries"),
        script=names(data, "script"),
        tolerate=field(data, "tolerate", bool, False),
        more=_terms(data, promise),
    )


def _compensate(data: Json, tools: Tools) -> Step:
    tool, promise = _service(data, tools)
    return Step(
        data["id"],
        "compensate",
        tool=tool,
        semantics=promise.semantics,
        params=field(data, "params", dict, {}),
        script=names(data, "script"),
        subject=field(data, "of", str),
        more=_terms(data, promise),
    )


def _wait(data: Json, _: Tools) -> Step:
    more = _given(data, timeout_ns=lambda name: count(data, name, 0))
    return Step(data["id"], "wait", signal=field(data, "signal", str), more=more)


def _sleep(data: Json, _: Tools) -> Step:
    return Step(data["id"], "sleep", ns=count(data, "ns", 0))


def _approve(data: Json, _: Tools) -> Step:
    more = _given(data, validity_ns=lambda name: count(data, name, 0))
    return Step(data["id"], "approve", subject=field(data, "of", str), more=more)


def _model(data: Json, _: Tools) -> Step:
    more = {"tokens": count(data, "tokens", 0, high=AMOUNT_MAX)} | _given(data, uses=lambda name: count(data, name, 0))
    return Step(
        data["id"],
        "model",
        tool=MODEL,
        semantics="metered",
        params={"prompt": field(data, "prompt", str), **more},
        carries=names(data, "carries"),
        script=names(data, "script"),
        more=more | _limits(data),
    )


def _child(data: Json, _: Tools) -> Step:
    more = {"plan": field(data, "plan", dict), "detached": field(data, "detached", bool, False)}
    return Step(data["id"], "child", more=more | _given(data, share=lambda name: field(data, name, dict)))


def _artifact(data: Json, _: Tools) -> Step:
    more = {
        "name": field(data, "name", str),
        "size": count(data, "size", 0, high=SIZE_MAX),
        "parts": count(data, "parts", 1, 1, PARTS_MAX),
    }
    return Step(
        data["id"], "artifact", tool=STORE, semantics="keyed", carries=names(data, "carries"), more=more | _limits(data)
    )


def _check(data: Json, _: Tools) -> Step:
    return Step(
        data["id"],
        "check",
        tool=CHECKER,
        semantics="read",
        script=names(data, "script"),
        subject=field(data, "of", str),
        more={"required": field(data, "required", bool, True)},
    )


def _fail(data: Json, _: Tools) -> Step:
    return Step(data["id"], "fail", more={"reason": field(data, "reason", str)})


def _nondet(data: Json, _: Tools) -> Step:
    kind = field(data, "kind", str)
    if kind not in DRAWS:
        raise wrong(data, f"kind is {kind!r}; expected {', '.join(DRAWS)}")
    return Step(data["id"], "nondet", more={"kind": kind})


READERS: Mapping[str, _Reader] = {
    "call": _call,
    "wait": _wait,
    "sleep": _sleep,
    "approve": _approve,
    "model": _model,
    "child": _child,
    "artifact": _artifact,
    "check": _check,
    "fail": _fail,
    "nondet": _nondet,
    "compensate": _compensate,
}
