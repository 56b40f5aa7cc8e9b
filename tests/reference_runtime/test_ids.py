"""Ids that come from outside: what they may be, and that every way in is guarded."""

from __future__ import annotations

import json

import pytest

from reference_runtime import ids
from reference_runtime.ids import ID_CHARACTERS_MAX
from reference_runtime.model import Refusal
from reference_runtime.plan import PlanError, parse
from reference_runtime.rpc import parse_request
from tests.runtime_rig import call, plan

BAD = {
    "": "is empty",
    "x" * (ID_CHARACTERS_MAX + 1): "has 257 characters; at most 256",
    "a\nb": r"has the character U\+000A; expected printable ones",
    "a\0": r"has the character U\+0000",
    "\u202etxt": r"has the character U\+202E",
    " a": "has a blank at an end",
    "a ": "has a blank at an end",
}
GOOD = ["t", "x" * ID_CHARACTERS_MAX, "Rechnung 7/ä", "\U0001f600", "a.b#c@d", "%s", "''"]
VERBS = {
    "signal": ("id", {"task": "t", "name": "n", "payload": {}}),
    "decide": (
        "id",
        {"task": "t", "operation": "o", "decision": "approve", "digest": "", "actor": "a", "payload": {}},
    ),
    "cancel": ("id", {"task": "t"}),
    "pause": ("id", {"task": "t"}),
    "unpause": ("id", {"task": "t"}),
    "retry": ("id", {"task": "t"}),
    "hello": ("name", {"code": {}}),
    "submit": ("task", {"plan": {}}),
}


@pytest.mark.parametrize(("verb", "said"), VERBS.items(), ids=VERBS.keys())
def test_every_way_in_is_guarded(verb, said):
    """A bad id is refused by the name of its field and by what is wrong with it; a good one is not touched."""
    field, more = said
    for id_, why in BAD.items():
        with pytest.raises(Refusal, match=f"bad-id: .*{why}"):
            parse_request(json.dumps({"id": 1, "verb": verb, "params": {field: id_, **more}}).encode())
    for id_ in GOOD:
        assert (
            parse_request(json.dumps({"id": 1, "verb": verb, "params": {field: id_, **more}}).encode())[2][field] == id_
        )


def test_operations_of_a_plan_have_good_ids():
    """They end up in keys as well."""
    for id_ in BAD:
        with pytest.raises(PlanError, match="operation id"):
            parse(plan(call(id_)))
    assert [step.id for step in parse(plan(*(call(id_) for id_ in GOOD)))] == GOOD


def test_no_task_takes_the_name_of_a_child():
    """Nor do the keys of its operations look like those of another task."""
    with pytest.raises(Refusal, match=r"bad-id: task 't\.1:child' has a : in it"):
        parse_request(json.dumps({"id": 1, "verb": "submit", "params": {"task": "t.1:child", "plan": {}}}).encode())
    parse_request(json.dumps({"id": 1, "verb": "status", "params": {"task": "t.1:child"}}).encode())


@pytest.mark.parametrize("id_", ["c", "2", "a~", "2~c", "2~2", "~", "7~~", "sweep", "a~2x"])
def test_what_was_made_for_an_operation_leads_back_to_it(id_: str) -> None:
    """Also where its own id ends with the sign that stands between, and for sweeps as for checks made anew."""
    assert ids.swept(ids.made_for(id_, "sweep"), "sweep") == id_
    assert ids.made_anew(ids.made_for(id_, "2")) == id_
