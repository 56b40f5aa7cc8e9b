"""Misuse of a context: the task is put aside with what was expected, whatever was wrong, and no history is read otherwise."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import attrs
import pytest

from reference_runtime import Refusal
from reference_runtime.commands import Misuse, Raised, Returned
from reference_runtime.misuse import WrongUse
from reference_runtime.replay import Replay
from reference_runtime.runner import advance, begin
from reference_runtime.workflow import Context, Workflow
from tests.replay_rig import CTX, ok

ANY: Any = CTX


async def _not_called(ctx: Any) -> None:
    await ctx.now


async def _gathers_a_number(ctx: Any) -> None:
    await ctx.gather(ctx.wait("go"), 5)


def _without_context(function: Callable[[], Any], _: Any) -> Any:
    return function()


def _trouble(function: Callable[[Any], Any]) -> str:
    replay = Replay(lambda: function(CTX))
    assert replay.end is None
    assert isinstance(replay.trouble, Misuse)
    return str(replay.trouble)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (
            lambda ctx: ctx.wait("s", timeout=5),
            "argument 'timeout'; did you mean 'timeout_ns'?; it is ctx.wait(signal, *, timeout_ns=None, id=None)",
        ),
        (lambda ctx: ctx.wait(), "ctx.wait: missing a required argument: 'signal'; it is ctx.wait(signal, *"),
        (lambda ctx: ctx.call("bank", 5), "ctx.call: params is 5; expected an object (a dict)"),
        (lambda ctx: ctx.call("bank", "sum"), "ctx.call: params is 'sum'; expected an object (a dict)"),
        (lambda ctx: ctx.call("bank", {}, carries=5), "ctx.call: carries is 5; expected ids of operations (a list)"),
        (lambda ctx: ctx.call("bank", {}, id=5), "ctx.call: id is 5; expected a text"),
        (lambda ctx: ctx.call("bank", {}, trys=5), "call() has no trys; it has "),
        (lambda ctx: ctx.call("bank", {}, trie=5), "; did you mean 'tries'?"),
        (lambda ctx: ctx.approve(ctx.call("bank")), "the call to approve needs an id of its own: ctx.call(..., id=...)"),
        (lambda ctx: ctx.approve(ctx.sleep(1, id="s")), "no sleep can be approved; what can be is ctx.call(..., id=...) or"),
        (lambda ctx: ctx.approve("pay"), "ctx.approve: 'pay' can be approved by nobody; expected ctx.call(..., id=...) or"),
        (lambda ctx: ctx.child("greet"), "ctx.child: plan is 'greet'; expected an object (a dict): a plan, or a workflow"),
        (lambda ctx: ctx.operation({"id": "a"}), "ctx.operation: 'op' is missing"),
        (lambda ctx: ctx.cal("bank"), "ctx has no 'cal'; did you mean 'call'?; it has approve, artifact, "),
    ],
)  # fmt: skip
def test_a_context_that_is_misused_says_what_was_expected(wrong, said):
    """With the line of the function's own code, also in a branch of it."""

    async def uses() -> None:
        await wrong(ANY)

    async def uses_in_a_branch() -> None:
        await ANY.gather(uses(), ANY.wait("go"))

    for function in (uses, uses_in_a_branch):
        trouble = _trouble(partial(_without_context, function))
        assert trouble.startswith("refused: ")
        assert said in trouble
        assert f"(test_misuse.py:{wrong.__code__.co_firstlineno})" in trouble


@pytest.mark.parametrize(("wrong", "what"), [(_not_called, "method"), (_gathers_a_number, "int")])
def test_what_cannot_be_awaited_is_told(wrong, what):
    """A method that was not called, say."""
    trouble = _trouble(wrong)
    assert trouble.startswith("refused: a workflow may await operations of its context only, each of them called; ")
    assert what in trouble
    assert f"(test_misuse.py:{wrong.__code__.co_firstlineno + 1})" in trouble


def test_a_function_that_takes_other_arguments_is_told_what_it_takes():
    """None of its code runs."""

    async def takes_none(_: Context) -> None: ...

    workflow = Workflow("w", "1", takes_none)  # type: ignore[arg-type]
    said = advance(begin(workflow, _turn()), [])
    assert said["trouble"].startswith(
        "refused: a workflow takes its context and one input, as in `async def f(ctx, input)`; "
    )
    assert said["trouble"].endswith(
        "takes_none() takes 1 positional argument but 2 were given"
        f" (test_misuse.py:{takes_none.__code__.co_firstlineno})"
    )


@pytest.mark.parametrize("cuts", [False, True])
def test_what_is_no_json_is_told_with_the_workflow_and_the_value(cuts):
    """Returned, or gone on with: with the line where its function begins, or where it goes on."""

    async def ends(ctx: Context, _: Any) -> Any:
        return ctx.continue_as_new({3}) if cuts else {3}

    said = advance(begin(Workflow("w", "1", ends), _turn()), [])
    what = "goes on with {3}" if cuts else "returned {3}"
    assert said["trouble"].startswith(
        f"refused: workflow 'w' {what}, which is no JSON (Object of type set is not JSON serializable); expected null, "
    )
    assert said["trouble"].endswith(f" (test_misuse.py:{ends.__code__.co_firstlineno + cuts})")


@pytest.mark.parametrize("caught", [TypeError, ValueError, AttributeError, Exception])
def test_a_function_that_caught_the_error_goes_on_as_it_did(caught):
    """What is raised is the error that was always raised: the commands of a history are those that its code asks for now."""

    async def careful(ctx: Any) -> str:
        await ctx.sleep(1)
        for wrong in (lambda: ctx.wait("s", timeout=5), lambda: ctx.call("bank", 5), lambda: ctx.cal("bank")):
            try:
                wrong()
            except caught:
                await ctx.call("bank")
        return "done"

    replay = Replay(lambda: careful(CTX))
    for operation in ("sleep#1", "bank#1", "bank#2", "bank#3"):
        assert replay.check() is None
        replay.deliver(ok(operation))
    assert (replay.check(), replay.end) == (None, Returned("done"))


def test_a_context_has_what_it_has():
    """Whoever looks for more is answered as by any object."""
    assert not hasattr(CTX, "nothing")
    assert not hasattr(CTX, "__nothing__")
    assert attrs.evolve(CTX, segment=2).segment == 2


def test_an_error_of_the_functions_own_is_none_of_these():
    """It fails the task as before."""

    async def adds(_: Any) -> None:
        1 + "1"  # type: ignore[operator]  # noqa: B018

    replay = Replay(lambda: adds(CTX))
    assert replay.trouble is None
    assert isinstance(replay.end, Raised)
    assert not issubclass(KeyError, WrongUse)


def test_a_child_that_cannot_be_is_told_with_its_id(store):
    """And with what was probably meant: its document may be a plan, or a workflow."""
    store.submit("t", {"version": 1, "workflow": "w", "input": None})
    (turn,) = store.claim_turns("w#1", {"w": "1"}, (), 1)
    spec = {"op": "child", "id": "kid", "plan": {"version": 1, "workflo": "greet"}}
    command = {"branch": "", "sequence": 1, "kind": "child", "id": "kid", "digest": "", "spec": spec}
    with pytest.raises(Refusal, match=r"child 'kid': a plan has version 1 and a root, a .*; did you mean 'workflow'"):
        store.take_turn(turn, "1", [command], {}, "w#1")


def _turn() -> dict[str, Any]:
    return {"task": "t", "segment": 1, "input": None, "commands": []}
