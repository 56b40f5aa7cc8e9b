"""What may be submitted: a plan, or a workflow by its name.

`{"version": 1, "workflow": "greet", "input": {"name": "Ada"}}`, with `allowance`, `deadline_ns` and `code` as in a plan. A
plan may also be given to the interpreter: then its operations are those the plan has, asked for by a workflow.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reference_runtime import plan, spelling
from reference_runtime.guessing import meant
from reference_runtime.leaves import PlanError, Step, Tools
from reference_runtime.model import Json
from reference_runtime.plan import Terms
from reference_runtime.promises import KNOWN

INTERPRETER = "interpret"
FIELDS = ("version", "workflow", "input", "allowance", "deadline_ns", "code")
_SHARED = ("allowance", "deadline_ns", "code")


def replayed(document: Mapping[str, Any]) -> Json:
    """A plan as work for the interpreter, under the same terms."""
    shared = {name: document[name] for name in _SHARED if name in document}
    return {"version": 1, "workflow": INTERPRETER, "input": dict(document), **shared}


def workflow_of(document: object) -> tuple[str, Any] | None:
    """The name and the input of a workflow; None for a plan. Raises `PlanError`."""
    if not isinstance(document, dict) or "workflow" not in document:
        return None
    name = document["workflow"]
    if unknown := [field for field in document if field not in FIELDS]:
        raise PlanError(
            f"a workflow has no {', '.join(unknown)}; it has {', '.join(FIELDS)}{meant(unknown[0], FIELDS)}"
        )
    if "version" not in document:
        raise PlanError(f"version is missing; expected version 1 beside workflow {name!r:.80}")
    if not plan.is_first_version(document.get("version")) or not isinstance(name, str) or not name:
        raise PlanError(f"a workflow has version 1 and a name; got {document.get('version')!r} and {name!r:.80}")
    return name, document.get("input")


def parse(document: object, tools: Tools = KNOWN) -> tuple[Step, ...]:
    """The steps that are known at once: those of a plan, none of a workflow. Raises as `plan.parse`."""
    found = workflow_of(document)
    if found is None:
        if isinstance(document, dict) and "root" not in document:
            guess = next((guess for name in document if (guess := meant(str(name), ("workflow", "root")))), "")
            raise PlanError(
                f"a plan has version 1 and a root, a workflow version 1 and a workflow; got {document!r:.120}{guess}"
            )
        return plan.parse(document, tools)
    terms(document)
    if found[0] == INTERPRETER:
        plan.parse(found[1], tools)
    return ()


def read_again(document: object, tools: Tools = KNOWN) -> tuple[Step, ...]:
    """The steps, as of `parse`, of a document that was admitted, by itself or in that of a parent."""
    return plan.read_again(document, tools) if workflow_of(document) is None else ()


def undeclared(document: object, tools: Tools) -> str | None:
    """A tool that a plan calls which was admitted, or a child of it, and that is not there any more; nothing of a workflow."""
    todo: list[Any] = [document]
    while todo:
        one = todo.pop()
        if not isinstance(one, dict):
            continue
        if isinstance(tool := one.get("service"), str) and tool not in tools:
            return tool
        todo += one.get("children") or ()
        todo += (one.get("root"), one.get("plan"))
    return None


def check_spelling(document: object) -> None:
    """Refuse a document, which was read without a mistake, whose plan says more than was read. Raises `PlanError`."""
    found = workflow_of(document)
    written = document if found is None else found[1] if found[0] == INTERPRETER else None
    if isinstance(written, dict):
        spelling.check_spelling(written)


def terms(document: object) -> Terms:
    """What a document says about its task as a whole. Raises `PlanError`."""
    found = workflow_of(document)
    if found is None or not isinstance(document, dict):
        return plan.terms(document)
    shared = {name: document[name] for name in _SHARED if name in document}
    return plan.terms({"version": 1, "root": None, **shared}, found[0])
