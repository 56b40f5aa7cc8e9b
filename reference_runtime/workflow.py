"""Workflows: work written as an async function, and the context through which it acts.

    @workflow("greet", code="1")
    async def greet(ctx, name):
        answer = await ctx.call("mailer", {"to": name})
        return answer["nonce"]

A workflow awaits operations of its context and nothing else; everything between them may run any number of times, so it
computes and decides, and reads no clock, no chance and no file. An operation's outcome is recorded once, and every later
run of the function is given the recorded one. Operations are those of plans: the context writes the same leaves.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, Literal, NoReturn, TypeAlias

import attrs

from reference_runtime.commands import DRAW, Ask, ContinueAsNew, Join, Made, Outcome, Stopped
from reference_runtime.guessing import meant
from reference_runtime.importing import names_in
from reference_runtime.misuse import WrongUse, told
from reference_runtime.model import Json, Refusal
from reference_runtime.spelling import FIELDS

__all__ = ["Context", "Function", "OperationFailed", "Stopped", "Workflow", "load", "workflow"]

#: What an approval may be about: of these nothing begins before the decision.
APPROVED = ("call", "model")
_APPROVABLE = " or ".join(f"ctx.{one}(..., id=...)" for one in APPROVED)


class OperationFailed(Exception):  # noqa: N818 - it is how an operation ended, not a fault
    """An operation that was refused for good, as the workflow sees it; let through, it fails the task for that reason."""

    def __init__(self, operation: str, reason: str) -> None:
        super().__init__(operation, reason)
        self.operation = operation
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.operation}: {self.reason}"


@attrs.frozen
class Context:
    """What a workflow may do. `task` is its task's id, `segment` counts how often its history was cut (from 1)."""

    task: str
    segment: int = 1
    _made: Made = attrs.field(factory=Made, eq=False, repr=False)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        known = [one for one in dir(type(self)) if not one.startswith("_")]
        raise WrongUse(f"ctx has no {name!r}{meant(name, known)}; it has {', '.join(known)}")

    # -- operations

    @told
    def call(
        self,
        tool: str,
        params: Mapping[str, Any] | None = None,
        *,
        id: str | None = None,
        carries: Iterable[str] = (),
        script: Iterable[str] = (),
        **limits: Any,
    ) -> Ask[Json]:
        """Have a tool do something; its answer. `carries`: ids whose nonces go along. `limits` as in a plan: `tries`,
        `elapsed_ns`, `secret`, `lookups`. Raises `OperationFailed`.
        """
        said = {"service": tool, "params": dict(params or {}), "carries": list(carries), "script": list(script)}
        return self._ask("call", tool, {**said, **_terms("call", limits)}, _answer, id)

    @told
    def model(
        self, prompt: str, tokens: int, *, id: str | None = None, carries: Iterable[str] = (), **limits: Any
    ) -> Ask[Json]:
        """Ask a model; its answer. At most `tokens` are spent, which are reserved before. Raises `OperationFailed`."""
        said = {"prompt": prompt, "tokens": tokens, "script": [], "carries": list(carries), **_terms("model", limits)}
        return self._ask("model", "model", said, _answer, id)

    @told
    def wait(self, signal: str, *, timeout_ns: int | None = None, id: str | None = None) -> Ask[Json | None]:
        """Wait for a signal of this name, also one that came before; its payload, or None after `timeout_ns`."""
        return self._ask("wait", signal, {"signal": signal, **_given(timeout_ns=timeout_ns)}, _payload, id)

    @told
    def sleep(self, ns: int, *, id: str | None = None) -> Ask[None]:
        """Let at least `ns` nanoseconds pass, through restarts."""
        return self._ask("sleep", "sleep", {"ns": ns}, _nothing, id)

    @told
    def approve(self, call: Ask[Any], *, validity_ns: int | None = None, id: str | None = None) -> Ask[str]:
        """Have a human decide on a call, also of a model, which is awaited afterwards and needs an explicit id; its nonce.

        The decision is bound to what the call says, and looked at again when that is sent. Denied or expired, the task fails.
        Given up, in a race say, the call raises `OperationFailed` when it is awaited, unless it was asked about anew.
        Where it is the call that was given up, the approval raises it.
        """
        if not isinstance(call, Ask):
            raise WrongUse(f"ctx.approve: {call!r:.80} can be approved by nobody; expected {_APPROVABLE}, not awaited")
        if (kind := call.leaf["op"]) not in APPROVED:
            raise WrongUse(f"no {kind} can be approved; what can be is {_APPROVABLE}")
        if call.id is None:
            raise WrongUse("the call to approve needs an id of its own: ctx.call(..., id=...)")
        self._made.use(call)
        said = {"of": call.id, **_given(validity_ns=validity_ns), "action": {**call.leaf, "id": call.id}}
        return self._ask("approve", "approve", said, _nonce, id)

    @told
    def child(self, plan: Mapping[str, Any], *, id: str | None = None, **terms: Any) -> Ask[Any]:
        """Have a task of its own done, and wait for it unless `detached`; its result: what its function returned, or of a plan
        the accepted nonces by operation. That of a detached one is not waited for: None. `terms` as in a plan. Raises
        `OperationFailed`.
        """
        return self._ask("child", "child", {"plan": dict(plan), **_terms("child", terms)}, _result, id)

    @told
    def artifact(
        self, name: str, size: int, *, parts: int = 1, carries: Iterable[str] = (), id: str | None = None
    ) -> Ask[Json]:
        """Store an artifact of `size` bytes under a name; its accepted entry."""
        return self._ask(
            "artifact", name, {"name": name, "size": size, "parts": parts, "carries": list(carries)}, _answer, id
        )

    @told
    def check(self, of: str, *, id: str | None = None, **terms: Any) -> Ask[Json]:
        """Have the artifact made by operation `of` checked. Raises `OperationFailed` when it does not pass."""
        return self._ask("check", "check", {"of": of, "script": [], **_terms("check", terms)}, _answer, id)

    @told
    def compensate(
        self, of: str, tool: str, params: Mapping[str, Any], *, id: str | None = None, **limits: Any
    ) -> Ask[None]:
        """Note how to make up for call `of`, should the task fail or be cancelled; the workflow goes on at once. `limits` as
        those of a call.

        Note it before the call: a stop that comes while the call is under way lets the function say nothing more.
        """
        said = {"of": of, "service": tool, "params": dict(params), **_terms("compensate", limits)}
        return self._ask("compensate", "compensate", said, _nothing, id, waits=False)

    # -- what a run must not find out for itself

    @told
    def now(self) -> Ask[int]:
        """The wall clock's time in nanoseconds, read once."""
        return self._ask(DRAW, "time", {"kind": "time"}, lambda outcome: int(_nonce(outcome)), None)

    @told
    def random(self) -> Ask[float]:
        """A number from 0 up to 1, drawn once."""
        return self._ask(DRAW, "random", {"kind": "random"}, lambda outcome: float(_nonce(outcome)), None)

    @told
    def uuid(self) -> Ask[str]:
        """A fresh identifier, drawn once."""
        return self._ask(DRAW, "uuid", {"kind": "uuid"}, _nonce, None)

    # -- control

    @told
    def gather(self, *parts: Awaitable[Any]) -> Join:
        """Several operations or coroutines side by side: all values, in order. When one raises, the rest is stopped."""
        return self._join("all", parts)

    @told
    def race(self, *parts: Awaitable[Any]) -> Join:
        """The first to end: its index and value. The others are stopped; what they had not begun is skipped."""
        return self._join("first", parts)

    def continue_as_new(self, state: object) -> NoReturn:
        """Begin anew with `state` (JSON) as input and an empty history; signals nobody has taken are kept."""
        raise ContinueAsNew(state)

    @told
    def operation(self, leaf: Mapping[str, Any], *, waits: bool = True) -> Ask[Outcome]:
        """Any operation, as a plan writes it, with its id; how it ended."""
        body = {name: value for name, value in leaf.items() if name != "id"}
        return self._made.note(Ask(str(leaf["op"]), body, lambda outcome: outcome, str(leaf["id"]), waits))

    # -- what was made, so that what was forgotten is found

    def _ask(
        self,
        op: str,
        name: str,
        said: Json,
        read: Callable[[Outcome], Any],
        id_: str | None,
        *,
        waits: bool = True,
    ) -> Ask[Any]:
        if not isinstance(id_, str | None):
            raise WrongUse(f"ctx.{op}: id is {id_!r:.80}; expected a text")
        # what was refused for good is for the function to decide about, so it does not by itself fail the task
        leaf = {"op": op, **said, "tolerate": True} if waits else {"op": op, **said}
        return self._made.note(Ask(name, leaf, read, id_, waits))

    def _join(self, mode: Literal["all", "first"], parts: Sequence[Awaitable[Any]]) -> Join:
        for one in parts:
            self._made.use(one)
        return self._made.note(Join(mode, parts))


Function: TypeAlias = Callable[[Context, Any], Coroutine[Any, Any, Any]]


@attrs.frozen
class Workflow:
    """An async function under its name, with the version of its code."""

    name: str
    code: str
    function: Function


def workflow(name: str, *, code: str = "1") -> Callable[[Function], Workflow]:
    """Register an async function `(ctx, input) -> result` as a workflow. Change `code` whenever its commands change."""
    return lambda function: Workflow(name, code, function)


def load(*modules: str) -> tuple[Workflow, ...]:
    """The workflows of importable modules, by name. Raises `Refusal`: `no-workflows`, or `two-workflows` of one name, of which
    only one could be meant.
    """
    found: dict[str, Workflow] = {}
    for module in modules:
        for one in _workflows_in(module):
            if found.setdefault(one.name, one) != one:
                raise Refusal(
                    "two-workflows", f"{module}: {one.name!r} names two functions; each needs a name of its own"
                )
    return tuple(found[name] for name in sorted(found))


def _workflows_in(module: str) -> list[Workflow]:
    found = [one for one in names_in(module, "no-workflows").values() if isinstance(one, Workflow)]
    if not found:
        raise Refusal("no-workflows", f"{module} has no function marked @workflow")
    return found


def _terms(op: str, given: Mapping[str, Any]) -> Json:
    """What is said of an operation beside its arguments. Raises `WrongUse`."""
    if unknown := [name for name in given if name not in FIELDS[op]]:
        guess = meant(unknown[0], FIELDS[op])
        raise WrongUse(f"{op}() has no {', '.join(unknown)}; it has {', '.join(FIELDS[op])}{guess}")
    return _given(**given)


def _given(**values: Any) -> Json:
    return {name: value for name, value in values.items() if value is not None}


def _answer(outcome: Outcome) -> Json:
    if outcome.state == "failed":
        raise OperationFailed(outcome.operation, outcome.reason)
    return dict(outcome.answer or {})


def _payload(outcome: Outcome) -> Json | None:
    said = _answer(outcome)
    return None if outcome.answer is None else said  # a signal may have nothing in it, and has come all the same


def _nonce(outcome: Outcome) -> str:
    return str(_answer(outcome).get("nonce", ""))


def _result(outcome: Outcome) -> Any:
    return _answer(outcome).get("result")


def _nothing(outcome: Outcome) -> None:
    _answer(outcome)
